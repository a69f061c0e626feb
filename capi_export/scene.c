/*
 * scene.c - the flat functions about what prims are to each other; what they do is said in ovstage.h.
 *
 * They are like the slots of vtable.c: enter, check the pointers, let Go answer, leave.
 */
#include "_cgo_export.h"
#include "ring.h"

typedef ovstage_api_status_t S;
typedef ovstage_enqueue_result_t E;

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
