/*
 * ovstage_instancing.h - which prims are instances of which prototypes, in the newest executed state, sealed or not.
 *
 * What makes a prim the root of an instance is the attribute usd-prototype, an array of path ids (RELATIONSHIP_PATH_ID)
 * whose first is the root of the prototype. What brings the scene writes it; prims inside an instance have none.
 */
#ifndef OVSTAGE_INSTANCING_H
#define OVSTAGE_INSTANCING_H

#include "ovstage_api/ovstage_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * ovstage_instancing_get_instance_roots - list the roots of all instances of a prototype; prims inside an instance are
 * not listed. The list is empty for a path that is no prototype.
 *
 *   out_instance_roots  a new list, of which the caller owns the one reference; released through the path dictionary
 */
ovstage_api_status_t ovstage_instancing_get_instance_roots(ovstage_instance_t* instance, ovx_primpath_t prototype_root,
                                                           ovx_primpath_list_t* out_instance_roots);

/*
 * ovstage_instancing_get_prototype_root - tell the prototype of an instance.
 *
 * Errors    NOT_FOUND: instance_root is not the root of an instance. INVALID_ARGUMENT: no path, NULL.
 */
ovstage_api_status_t ovstage_instancing_get_prototype_root(ovstage_instance_t* instance, ovx_primpath_t instance_root,
                                                           ovx_primpath_t* out_prototype_root);

/*
 * ovstage_instancing_get_prototype_roots - list the roots of all prototypes. The list may be empty.
 *
 *   out_prototype_roots  a new list, of which the caller owns the one reference; released through the path dictionary
 */
ovstage_api_status_t ovstage_instancing_get_prototype_roots(ovstage_instance_t* instance,
                                                            ovx_primpath_list_t* out_prototype_roots);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OVSTAGE_INSTANCING_H */
