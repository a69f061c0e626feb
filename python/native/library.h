/*
 * library.h - the functions of libovstage.so, which the extension is not linked to.
 *
 * The library is opened when the first stage is made (library.c), since opening it starts the engine, after which this
 * process must not fork. What a stage offers is called through the table of its instance. The flat functions are called
 * by their own names, as if they were linked: each name stands for a pointer of one table. A function that is new here
 * gets a line in both lists.
 */
#ifndef OVSTAGE_NATIVE_LIBRARY_H
#define OVSTAGE_NATIVE_LIBRARY_H

#include <ovstage/ovstage.h>

#define LIBRARY_FUNCTIONS(X)          \
  X(clone)                            \
  X(compute_hierarchy)                \
  X(create_instance)                  \
  X(destroy_instance)                 \
  X(fetch_hierarchy_result)           \
  X(flush_log)                        \
  X(get_hierarchy)                    \
  X(get_hierarchy_computation_models) \
  X(get_last_error)                   \
  X(get_usd_stage_id)                 \
  X(initialize)                       \
  X(instancing_get_instance_roots)    \
  X(instancing_get_prototype_root)    \
  X(instancing_get_prototype_roots)   \
  X(release_hierarchy)                \
  X(release_hierarchy_result)         \
  X(set_log_callback)                 \
  X(shutdown)

typedef struct {
#define POINTER(name) __typeof__(ovstage_##name)* name;
  LIBRARY_FUNCTIONS(POINTER)
#undef POINTER
} library_functions;

extern library_functions library; /* NULL until it is open, but for get_last_error */

#define ovstage_clone library.clone
#define ovstage_compute_hierarchy library.compute_hierarchy
#define ovstage_create_instance library.create_instance
#define ovstage_destroy_instance library.destroy_instance
#define ovstage_fetch_hierarchy_result library.fetch_hierarchy_result
#define ovstage_flush_log library.flush_log
#define ovstage_get_hierarchy library.get_hierarchy
#define ovstage_get_hierarchy_computation_models library.get_hierarchy_computation_models
#define ovstage_get_last_error library.get_last_error
#define ovstage_get_usd_stage_id library.get_usd_stage_id
#define ovstage_initialize library.initialize
#define ovstage_instancing_get_instance_roots library.instancing_get_instance_roots
#define ovstage_instancing_get_prototype_root library.instancing_get_prototype_root
#define ovstage_instancing_get_prototype_roots library.instancing_get_prototype_roots
#define ovstage_release_hierarchy library.release_hierarchy
#define ovstage_release_hierarchy_result library.release_hierarchy_result
#define ovstage_set_log_callback library.set_log_callback
#define ovstage_shutdown library.shutdown

#endif
