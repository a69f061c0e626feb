/*
 * scene.c - the flat functions about what prims are to each other; what they do is said in
 * ovstage.h and ovstage_instancing.h.
 *
 * They are like the slots of vtable.c: enter, check the pointers, let Go answer, leave.
 */
#include <string.h>

#include "_cgo_export.h"
#include "ring.h"

typedef ovstage_api_status_t S;
typedef ovstage_enqueue_result_t E;

/* ---- Clones ------------------------------------------------------------------------------------------------------ */

E ovstage_clone(ovstage_instance_t* instance, ovx_string_t source_path, const ovx_string_t* target_paths,
                size_t num_target_paths, ovstage_ordinal_t ordinal) {
  const char* symbol = "ovstage_clone";
  E result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  if (num_target_paths > OV_MOST_ENTRIES) {
    result.status = ov_too_many("num_target_paths", num_target_paths);
  } else if (num_target_paths > 0 && target_paths == NULL) {
    result.status =
        ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "target_paths is NULL with num_target_paths %zu", num_target_paths);
  } else {
    ovx_string_t* source = ov_input_texts(&in, "source_path", &source_path, 1);
    ovx_string_t* targets = ov_input_texts(&in, "target_paths", target_paths, num_target_paths);
    if ((result.status = ov_inputs_status(&in)) == OVSTAGE_OK)
      result = ovgoClone(instance->context, source, targets, num_target_paths, ordinal);
  }
  ov_inputs_close(&in);
  return ov_accept(instance->context, symbol, result);
}

/* ---- Relatives --------------------------------------------------------------------------------------------------- */

E ovstage_get_hierarchy(ovstage_instance_t* instance, ovx_primpath_list_t prim_paths, ovstage_ordinal_t ordinal,
                        ovstage_hierarchy_relation_t relation, ovstage_hierarchy_handle_t* out_hierarchy_handle) {
  const char* symbol = "ovstage_get_hierarchy";
  if (out_hierarchy_handle != NULL) *out_hierarchy_handle = OVSTAGE_INVALID_HIERARCHY_HANDLE;
  E result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  if (out_hierarchy_handle == NULL)
    result.status = ov_null("out_hierarchy_handle");
  else
    result = ovgoGetHierarchy(instance->context, prim_paths, ordinal, (uint32_t)relation, out_hierarchy_handle);
  return ov_accept(instance->context, symbol, result);
}

S ovstage_fetch_hierarchy_result(ovstage_instance_t* instance, ovstage_hierarchy_handle_t hierarchy_handle,
                                 ovstage_hierarchy_result_t* out_result) {
  const char* symbol = "ovstage_fetch_hierarchy_result";
  if (out_result != NULL) memset(out_result, 0, sizeof *out_result);
  S status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status = out_result == NULL ? ov_null("out_result")
                              : ovgoFetchHierarchyResult(instance->context, hierarchy_handle, out_result);
  return ov_leave(instance->context, symbol, status);
}

S ovstage_release_hierarchy_result(ovstage_instance_t* instance, const ovstage_hierarchy_result_t* result) {
  const char* symbol = "ovstage_release_hierarchy_result";
  if (ov_forked) return OVSTAGE_OK;
  S status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status =
      result == NULL ? ov_null("result") : ovgoReleaseHierarchyResult(instance->context, result->hierarchy_result_id);
  return ov_leave(instance->context, symbol, status);
}

E ovstage_release_hierarchy(ovstage_instance_t* instance, ovstage_hierarchy_handle_t handle) {
  const char* symbol = "ovstage_release_hierarchy";
  E result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  return ov_accept(instance->context, symbol, ovgoReleaseHierarchy(instance->context, handle));
}

/* ---- World transforms -------------------------------------------------------------------------------------------- */

static const ovstage_hierarchy_computation_model_desc_t MODELS[] = {
    {OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL, literal_to_ovx_string("cpu-incremental"),
     literal_to_ovx_string("On the CPU; recomputes what lies below a changed transform.")},
    {OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_INCREMENTAL, literal_to_ovx_string("gpu-incremental"),
     literal_to_ovx_string("On the GPU, what changed only; fails where CUDA is not loaded.")},
    {OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_GLOBAL, literal_to_ovx_string("gpu-global"),
     literal_to_ovx_string("On the GPU, all of the scene; fails where CUDA is not loaded.")},
    {OVSTAGE_HIERARCHY_COMPUTATION_MODEL_RUNTIME_DEFAULT, literal_to_ovx_string("runtime-default"),
     literal_to_ovx_string("The default of the process when the instance was made.")},
};

S ovstage_get_hierarchy_computation_models(ovstage_instance_t* instance,
                                           const ovstage_hierarchy_computation_model_desc_t** out_models,
                                           size_t* out_model_count) {
  const char* symbol = "ovstage_get_hierarchy_computation_models";
  if (out_models != NULL) *out_models = NULL;
  if (out_model_count != NULL) *out_model_count = 0;
  S status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  if (out_models == NULL || out_model_count == NULL) {
    status = ov_null(out_models == NULL ? "out_models" : "out_model_count");
  } else {
    *out_models = MODELS;
    *out_model_count = sizeof MODELS / sizeof *MODELS;
  }
  return ov_leave(instance->context, symbol, status);
}

E ovstage_compute_hierarchy(ovstage_instance_t* instance, ovstage_hierarchy_computation_model_id_t computation_model_id,
                            ovstage_ordinal_t input_ordinal, ovstage_ordinal_t output_ordinal) {
  const char* symbol = "ovstage_compute_hierarchy";
  E result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  ovstage_context_t* c = instance->context;
  uint32_t model = computation_model_id == OVSTAGE_HIERARCHY_COMPUTATION_MODEL_RUNTIME_DEFAULT
                       ? c->hierarchy_model
                       : (uint32_t)computation_model_id;
  return ov_accept(c, symbol, ovgoComputeHierarchy(c, model, input_ordinal, output_ordinal));
}

/* ---- Instancing -------------------------------------------------------------------------------------------------- */

S ovstage_instancing_get_instance_roots(ovstage_instance_t* instance, ovx_primpath_t prototype_root,
                                        ovx_primpath_list_t* out_instance_roots) {
  const char* symbol = "ovstage_instancing_get_instance_roots";
  if (out_instance_roots != NULL) *out_instance_roots = OVX_INVALID_PRIMPATH_LIST;
  S status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status = out_instance_roots == NULL
               ? ov_null("out_instance_roots")
               : ovgoInstancingGetInstanceRoots(instance->context, prototype_root, out_instance_roots);
  return ov_leave(instance->context, symbol, status);
}

S ovstage_instancing_get_prototype_root(ovstage_instance_t* instance, ovx_primpath_t instance_root,
                                        ovx_primpath_t* out_prototype_root) {
  const char* symbol = "ovstage_instancing_get_prototype_root";
  if (out_prototype_root != NULL) *out_prototype_root = OVX_INVALID_PRIMPATH;
  S status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status = out_prototype_root == NULL
               ? ov_null("out_prototype_root")
               : ovgoInstancingGetPrototypeRoot(instance->context, instance_root, out_prototype_root);
  return ov_leave(instance->context, symbol, status);
}

S ovstage_instancing_get_prototype_roots(ovstage_instance_t* instance, ovx_primpath_list_t* out_prototype_roots) {
  const char* symbol = "ovstage_instancing_get_prototype_roots";
  if (out_prototype_roots != NULL) *out_prototype_roots = OVX_INVALID_PRIMPATH_LIST;
  S status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status = out_prototype_roots == NULL ? ov_null("out_prototype_roots")
                                       : ovgoInstancingGetPrototypeRoots(instance->context, out_prototype_roots);
  return ov_leave(instance->context, symbol, status);
}
