/*
 * absent.c - the functions of the interface that this library does not have.
 *
 * Each is exported all the same, so that a client of the whole interface links and runs. A call is refused with
 * NOT_SUPPORTED and a text that names the function and what to use instead. Two kinds of functions work, since they
 * need nothing that is missing: those that fill in defaults, and those that release what was never made.
 */
#include <inttypes.h>
#include <string.h>

#include "ring.h"

/* Why, and what to do instead. */
static const char NO_USD[] =
    "is not supported: this library does not read USD; load scenes with the Python package, "
    "ovstage.population";
static const char NO_EXPORT[] =
    "is not supported: this library does not write USD; export with the Python package, "
    "ovstage.population";

static ovstage_api_status_t refuse(ovstage_instance_t* instance, const char* symbol, const char* why) {
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status = ov_fail(OVSTAGE_ERROR_NOT_SUPPORTED, "%s %s", symbol, why);
  return ov_leave(instance->context, symbol, status);
}

static ovstage_enqueue_result_t reject(ovstage_instance_t* instance, const char* symbol, const char* why) {
  ovstage_enqueue_result_t result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  result.status = ov_fail(OVSTAGE_ERROR_NOT_SUPPORTED, "%s %s", symbol, why);
  return ov_accept(instance->context, symbol, result);
}

/* ---- Population and export: what answers more than that it is not there ------------------------------------------ */

/* Population has a last error of its own, which repeats the common one. */
static ovstage_api_status_t remember(ovstage_api_status_t status) {
  ov_thread* thread = ov_thread_here();
  if (thread == NULL) return status;
  if (status == OVSTAGE_OK)
    ov_text_clear(&thread->population_error);
  else
    ov_text_set(&thread->population_error, thread->error.bytes, thread->error.length);
  return status;
}

ovstage_api_status_t ovstage_population_register_usd_schemas(const ovx_string_t* paths, size_t path_count) {
  const char* symbol = "ovstage_population_register_usd_schemas";
  ovstage_api_status_t status = ov_begin(symbol);
  if (status != OVSTAGE_OK || path_count == 0) return remember(status);
  if (paths == NULL) return remember(ov_null("paths"));
  for (size_t i = 0; i < path_count; i++)
    if (is_ovx_string_empty(&paths[i]))
      return remember(
          ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "paths[%zu] is empty, expected a plugInfo.json or its folder", i));
  return remember(ov_fail(OVSTAGE_ERROR_NOT_SUPPORTED, "%s %s", symbol, NO_USD));
}

/* No operation was ever accepted, so that whatever the id, it was never issued. */
static ovstage_api_status_t refuse_wait(ovstage_instance_t* stage, const char* symbol,
                                        ovstage_population_op_id_t op_id) {
  ovstage_api_status_t status = ov_enter_instance(stage, symbol);
  if (status != OVSTAGE_OK) return remember(status);
  status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT,
                   "%s: op_id %" PRIu64 " was never issued: USD calls are in the Python package, ovstage.population",
                   symbol, op_id);
  return remember(ov_leave(stage->context, symbol, status));
}

ovstage_api_status_t ovstage_population_wait_op(ovstage_instance_t* stage, ovstage_population_op_id_t op_id,
                                                ovstage_timeout_ns_t timeout_ns,
                                                ovstage_population_op_wait_result_t* out_wait_result) {
  (void)timeout_ns;
  if (out_wait_result != NULL) memset(out_wait_result, 0, sizeof *out_wait_result);
  return refuse_wait(stage, "ovstage_population_wait_op", op_id);
}

ovx_string_t ovstage_population_get_last_error(void) {
  ov_thread* thread = ov_thread_here();
  return thread != NULL ? ov_text_view(&thread->population_error) : (ovx_string_t){NULL, 0};
}

ovx_string_t ovstage_population_get_last_op_error(ovstage_population_op_id_t op_id) {
  (void)op_id;
  return (ovx_string_t){NULL, 0};
}

/* ---- Export ------------------------------------------------------------------------------------------------------ */

ovstage_api_status_t ovstage_population_export_desc_init(ovstage_population_export_desc_t* desc) {
  ovstage_api_status_t status = ov_begin("ovstage_population_export_desc_init");
  if (status != OVSTAGE_OK) return status;
  if (desc == NULL) return ov_null("desc");
  *desc = (ovstage_population_export_desc_t){
      .struct_size = sizeof *desc,
      .source_api_schema_policy = OVSTAGE_POPULATION_EXPORT_SOURCE_API_SCHEMAS_EXPLICIT_ONLY,
      .projection = OVSTAGE_POPULATION_EXPORT_PROJECTION_EXPLICIT_RULES,
      .selection = OVSTAGE_POPULATION_EXPORT_SELECTION_EXPLICIT_PREDICATE,
      .layer_mode = OVSTAGE_POPULATION_EXPORT_LAYER_MODE_OVER,
      .transform_policy = OVSTAGE_POPULATION_EXPORT_TRANSFORM_USD_XFORM_OP,
      .unknown_metadata_policy = OVSTAGE_POPULATION_EXPORT_UNKNOWN_METADATA_DROP,
      .prim_predicate = ovstage_population_prim_predicate_all(),
      .property_predicate = ovstage_population_property_predicate_all(),
  };
  return OVSTAGE_OK;
}

ovstage_api_status_t ovstage_population_export_desc_init_snapshot(ovstage_population_export_desc_t* desc,
                                                                  ovstage_ordinal_t ordinal) {
  ovstage_api_status_t status = ovstage_population_export_desc_init(desc);
  if (status == OVSTAGE_OK) desc->ordinal = ordinal;
  return status;
}

ovstage_api_status_t ovstage_population_export_wait_op(ovstage_instance_t* stage, ovstage_population_op_id_t op_id,
                                                       ovstage_timeout_ns_t timeout_ns,
                                                       ovstage_population_export_report_t* report) {
  (void)timeout_ns;
  if (report != NULL) memset(report, 0, sizeof *report);
  return refuse_wait(stage, "ovstage_population_export_wait_op", op_id);
}

/* ---- Population and export: one list ----------------------------------------------------------------------------- */

/* What an out parameter says of a call that was refused. */
#define NOTHING (void)0
#define NO_HANDLE(out, none) \
  if (out != NULL) *out = none
#define NO_REPORT(out) \
  if (out != NULL) memset(out, 0, sizeof *out)

/* A function that only says why it is not there: its name, why, its out parameter, its parameters behind the stage. */
#define REFUSED(name, why, out, ...)                                                \
  ovstage_api_status_t name(ovstage_instance_t* stage __VA_OPT__(, ) __VA_ARGS__) { \
    out;                                                                            \
    return remember(refuse(stage, #name, why));                                     \
  }
#define REJECTED(name, why, out, ...)                                                              \
  ovstage_population_enqueue_result_t name(ovstage_instance_t* stage __VA_OPT__(, ) __VA_ARGS__) { \
    out;                                                                                           \
    return (ovstage_population_enqueue_result_t){remember(reject(stage, #name, why).status), 0};   \
  }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter" /* nothing is looked at but the stage */

REJECTED(ovstage_population_open_usd_from_file, NO_USD, NOTHING, ovx_string_t path, ovstage_ordinal_t ordinal,
         double time, uint32_t domains)
REJECTED(ovstage_population_open_usd_from_string, NO_USD, NOTHING, ovx_string_t usda, ovstage_ordinal_t ordinal,
         double time, uint32_t domains)
REJECTED(ovstage_population_open_usd_from_file_with_desc, NO_USD, NOTHING, ovx_string_t path, ovstage_ordinal_t ordinal,
         double time, const ovstage_population_desc_t* descs, size_t desc_count)
REJECTED(ovstage_population_open_usd_from_string_with_desc, NO_USD, NOTHING, ovx_string_t usda,
         ovstage_ordinal_t ordinal, double time, const ovstage_population_desc_t* descs, size_t desc_count)
REJECTED(ovstage_population_add_usd_reference_from_file, NO_USD,
         NO_HANDLE(out_handle, OVSTAGE_POPULATION_INVALID_USD_REFERENCE_HANDLE), ovx_string_t ref_file_path,
         ovx_string_t target_path, ovstage_population_usd_reference_handle_t* out_handle)
REJECTED(ovstage_population_add_usd_reference_from_string, NO_USD,
         NO_HANDLE(out_handle, OVSTAGE_POPULATION_INVALID_USD_REFERENCE_HANDLE), ovx_string_t ref_str,
         ovx_string_t target_path, ovstage_population_usd_reference_handle_t* out_handle)
REJECTED(ovstage_population_remove_usd_reference, NO_USD, NOTHING, ovstage_population_usd_reference_handle_t handle)
REJECTED(ovstage_population_reset_usd, NO_USD, NOTHING)
REJECTED(ovstage_population_apply_usd_time, NO_USD, NOTHING, ovstage_ordinal_t ordinal, double time)
REJECTED(ovstage_population_apply_usd_changes, NO_USD, NOTHING, ovstage_ordinal_t ordinal)
REFUSED(ovstage_population_export_destination_create, NO_EXPORT,
        NO_HANDLE(out_destination, OVSTAGE_POPULATION_EXPORT_INVALID_DESTINATION_HANDLE), ovx_string_t usd_identifier,
        ovstage_population_export_destination_mode_t mode,
        ovstage_population_export_destination_handle_t* out_destination)
REJECTED(ovstage_population_export_destination_enqueue_create, NO_EXPORT,
         NO_HANDLE(out_destination, OVSTAGE_POPULATION_EXPORT_INVALID_DESTINATION_HANDLE), ovx_string_t usd_identifier,
         ovstage_population_export_destination_mode_t mode,
         ovstage_population_export_destination_handle_t* out_destination)
REFUSED(ovstage_population_export_to_destination, NO_EXPORT, NO_REPORT(report),
        ovstage_population_export_destination_handle_t destination, const ovstage_population_export_desc_t* desc,
        ovstage_population_export_report_t* report)
REJECTED(ovstage_population_export_enqueue_to_destination, NO_EXPORT, NOTHING,
         ovstage_population_export_destination_handle_t destination, const ovstage_population_export_desc_t* desc)
REFUSED(ovstage_population_export_destination_save, NO_EXPORT, NOTHING,
        ovstage_population_export_destination_handle_t destination)
REJECTED(ovstage_population_export_destination_enqueue_save, NO_EXPORT, NOTHING,
         ovstage_population_export_destination_handle_t destination)
REFUSED(ovstage_population_export_destination_destroy, NO_EXPORT, NOTHING,
        ovstage_population_export_destination_handle_t destination)
REJECTED(ovstage_population_export_destination_enqueue_destroy, NO_EXPORT, NOTHING,
         ovstage_population_export_destination_handle_t destination)
REFUSED(ovstage_population_export_to_usd_file, NO_EXPORT, NO_REPORT(report), ovx_string_t usd_identifier,
        const ovstage_population_export_desc_t* desc, ovstage_population_export_report_t* report)
REJECTED(ovstage_population_export_enqueue_to_usd_file, NO_EXPORT, NOTHING, ovx_string_t usd_identifier,
         const ovstage_population_export_desc_t* desc)

#pragma GCC diagnostic pop

/* ---- Alignment --------------------------------------------------------------------------------------------------- */

int ovalign_align(const ovalign_request_t* request, ovalign_result_t* out_result) {
  if (out_result != NULL) memset(out_result, 0, sizeof *out_result);
  ovstage_api_status_t status = ov_begin("ovalign_align");
  if (status != OVSTAGE_OK) return (int)status;
  if (request == NULL) return (int)ov_null("request");
  if (out_result == NULL) return (int)ov_null("out_result");
  return (int)ov_fail(OVSTAGE_ERROR_NOT_SUPPORTED, "ovalign_align is not supported by this version");
}

void ovalign_release(ovalign_result_t* result) {
  if (result != NULL) memset(result, 0, sizeof *result); /* nothing was ever allocated for one */
}
