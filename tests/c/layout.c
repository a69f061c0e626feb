/*
 * layout.c - the binary interface, as clients were compiled against it: sizes, offsets, slots, numbers and prototypes.
 *
 * Nothing here runs: that it compiles, as C and (layout.cpp) as C++, is the test. The numbers hold for LP64 systems.
 */
#include <assert.h>
#include <stddef.h>

#include <ovstage/ovalign.h>
#include <ovstage/ovstage.h>
#include <ovstage/ovstage_go.h>
#include <ovstage/ovstage_population_export.h>
#include <ovx/path_dictionary/path_dictionary.h>
#include <ovx/path_dictionary/path_dictionary_helper.h>

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes), "size of " #type)
#define AT(type, member, bytes) static_assert(offsetof(type, member) == (bytes), "offset of " #member " in " #type)
#define SLOT(type, member, number) AT(type, member, (number) * sizeof(void*))
#define IS(constant, number) static_assert((constant) == (number), "value of " #constant)

SIZE(void*, 8);
SIZE(size_t, 8);
SIZE(bool, 1);

/* ---- DLPack ------------------------------------------------------------------------------------------------------ */

SIZE(DLTensor, 48);
AT(DLTensor, data, 0);
AT(DLTensor, device, 8);
AT(DLTensor, ndim, 16);
AT(DLTensor, dtype, 20);
AT(DLTensor, shape, 24);
AT(DLTensor, strides, 32);
AT(DLTensor, byte_offset, 40);

SIZE(DLDevice, 8);
AT(DLDevice, device_type, 0);
AT(DLDevice, device_id, 4);

SIZE(DLDataType, 4);
AT(DLDataType, code, 0);
AT(DLDataType, bits, 1);
AT(DLDataType, lanes, 2);

SIZE(DLPackVersion, 8);
AT(DLPackVersion, major, 0);
AT(DLPackVersion, minor, 4);

SIZE(DLManagedTensor, 64);
AT(DLManagedTensor, dl_tensor, 0);
AT(DLManagedTensor, manager_ctx, 48);
AT(DLManagedTensor, deleter, 56);

SIZE(DLManagedTensorVersioned, 80);
AT(DLManagedTensorVersioned, version, 0);
AT(DLManagedTensorVersioned, manager_ctx, 8);
AT(DLManagedTensorVersioned, deleter, 16);
AT(DLManagedTensorVersioned, flags, 24);
AT(DLManagedTensorVersioned, dl_tensor, 32);

SIZE(DLPackExchangeAPIHeader, 16);
AT(DLPackExchangeAPIHeader, version, 0);
AT(DLPackExchangeAPIHeader, prev_api, 8);

SIZE(DLPackExchangeAPI, 56);
AT(DLPackExchangeAPI, header, 0);
AT(DLPackExchangeAPI, managed_tensor_allocator, 16);
AT(DLPackExchangeAPI, managed_tensor_from_py_object_no_sync, 24);
AT(DLPackExchangeAPI, managed_tensor_to_py_object_no_sync, 32);
AT(DLPackExchangeAPI, dltensor_from_py_object_no_sync, 40);
AT(DLPackExchangeAPI, current_work_stream, 48);

IS(DLPACK_MAJOR_VERSION, 1);
IS(DLPACK_MINOR_VERSION, 3);
IS(DLPACK_FLAG_BITMASK_READ_ONLY, 1);
IS(DLPACK_FLAG_BITMASK_IS_COPIED, 2);
IS(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, 4);

SIZE(DLDeviceType, 4);
IS(kDLCPU, 1);
IS(kDLCUDA, 2);
IS(kDLCUDAHost, 3);
IS(kDLOpenCL, 4);
IS(kDLVulkan, 7);
IS(kDLMetal, 8);
IS(kDLVPI, 9);
IS(kDLROCM, 10);
IS(kDLROCMHost, 11);
IS(kDLExtDev, 12);
IS(kDLCUDAManaged, 13);
IS(kDLOneAPI, 14);
IS(kDLWebGPU, 15);
IS(kDLHexagon, 16);
IS(kDLMAIA, 17);
IS(kDLTrn, 18);

IS(kDLInt, 0);
IS(kDLUInt, 1);
IS(kDLFloat, 2);
IS(kDLOpaqueHandle, 3);
IS(kDLBfloat, 4);
IS(kDLComplex, 5);
IS(kDLBool, 6);
IS(kDLFloat8_e3m4, 7);
IS(kDLFloat8_e4m3, 8);
IS(kDLFloat8_e4m3b11fnuz, 9);
IS(kDLFloat8_e4m3fn, 10);
IS(kDLFloat8_e4m3fnuz, 11);
IS(kDLFloat8_e5m2, 12);
IS(kDLFloat8_e5m2fnuz, 13);
IS(kDLFloat8_e8m0fnu, 14);
IS(kDLFloat6_e2m3fn, 15);
IS(kDLFloat6_e3m2fn, 16);
IS(kDLFloat4_e2m1fn, 17);

/* ---- ovx --------------------------------------------------------------------------------------------------------- */

SIZE(ovx_string_t, 16);
AT(ovx_string_t, ptr, 0);
AT(ovx_string_t, length, 8);

SIZE(ovx_token_t, 8);

SIZE(ovx_primpath_t, 8);

SIZE(ovx_primpath_list_t, 8);

SIZE(ovx_string_or_token_t, 24);
AT(ovx_string_or_token_t, token, 0);
AT(ovx_string_or_token_t, string, 8);

SIZE(ovx_string_or_prim_path_t, 24);
AT(ovx_string_or_prim_path_t, path, 0);
AT(ovx_string_or_prim_path_t, string, 8);

SIZE(ovx_api_result_t, 24);
AT(ovx_api_result_t, status, 0);
AT(ovx_api_result_t, error, 8);

SIZE(path_dictionary_instance_t, 16);
AT(path_dictionary_instance_t, vtable, 0);
AT(path_dictionary_instance_t, context, 8);

SIZE(ovx_api_status_t, 4);
IS(OVX_API_SUCCESS, 0);
IS(OVX_API_ERROR, 1);

IS(OVX_INVALID_TOKEN, 0);
IS(OVX_INVALID_PRIMPATH, 0);
IS(OVX_INVALID_PRIMPATH_LIST, 0);

static_assert(sizeof(OVX_CONFIG_EXECUTABLE_DIR_TOKEN) == sizeof("${executable_dir}"), "the token is a literal");

SIZE(path_dictionary_vtable_t, 12 * sizeof(void*));
SLOT(path_dictionary_vtable_t, create_tokens_from_strings, 0);
SLOT(path_dictionary_vtable_t, create_paths_from_tokens, 1);
SLOT(path_dictionary_vtable_t, create_paths_from_strings, 2);
SLOT(path_dictionary_vtable_t, create_path_list_from_paths, 3);
SLOT(path_dictionary_vtable_t, create_path_list_from_strings, 4);
SLOT(path_dictionary_vtable_t, add_path_list_reference, 5);
SLOT(path_dictionary_vtable_t, release_path_list_reference, 6);
SLOT(path_dictionary_vtable_t, get_strings_from_tokens, 7);
SLOT(path_dictionary_vtable_t, get_tokens_from_paths, 8);
SLOT(path_dictionary_vtable_t, get_num_paths_from_path_list, 9);
SLOT(path_dictionary_vtable_t, get_paths_from_path_list, 10);
SLOT(path_dictionary_vtable_t, release_error, 11);

/* ---- Stage: numbers ---------------------------------------------------------------------------------------------- */

IS(OVSTAGE_VERSION_MAJOR, 0);
IS(OVSTAGE_VERSION_MINOR, 2);
IS(OVSTAGE_VERSION_PATCH, 1);

SIZE(ovstage_api_status_t, 4);
IS(OVSTAGE_OK, 0);
IS(OVSTAGE_ERROR_INVALID_ARGUMENT, 1);
IS(OVSTAGE_ERROR_INVALID_HANDLE, 2);
IS(OVSTAGE_ERROR_NOT_FOUND, 3);
IS(OVSTAGE_ERROR_PRIM_NOT_FOUND, 4);
IS(OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION, 5);
IS(OVSTAGE_ERROR_NOT_SUPPORTED, 6);
IS(OVSTAGE_ERROR_QUEUE_FULL, 7);
IS(OVSTAGE_ERROR_END_OF_ITERATION, 8);
IS(OVSTAGE_ERROR_OUT_OF_MEMORY, 9);
IS(OVSTAGE_ERROR_LAYOUT_CHANGED, 10);
IS(OVSTAGE_ERROR_TIMEOUT, 11);
IS(OVSTAGE_ERROR_OP_FAILED, 12);
IS(OVSTAGE_ERROR_OUT_OF_RANGE, 13);
IS(OVSTAGE_ERROR_INTERNAL, 99);

SIZE(ovstage_filter_op_t, 4);
IS(OVSTAGE_FILTER_OP_HAS, 0);
IS(OVSTAGE_FILTER_OP_IN, 1);
IS(OVSTAGE_FILTER_OP_CONTAINS, 2);
IS(OVSTAGE_FILTER_OP_PREFIX, 3);
IS(OVSTAGE_FILTER_OP_LT, 4);
IS(OVSTAGE_FILTER_OP_LE, 5);
IS(OVSTAGE_FILTER_OP_GT, 6);
IS(OVSTAGE_FILTER_OP_GE, 7);

SIZE(ovstage_prim_mode_t, 4);
IS(OVSTAGE_PRIM_MODE_UPSERT, 0);
IS(OVSTAGE_PRIM_MODE_INSERT, 1);

SIZE(ovstage_scope_t, 4);
IS(OVSTAGE_SCOPE_ALL, 0);
IS(OVSTAGE_SCOPE_INCLUDE, 1);
IS(OVSTAGE_SCOPE_EXCLUDE, 2);

SIZE(ovstage_attribute_semantic_t, 4);
IS(OVSTAGE_SEMANTIC_NONE, 0);
IS(OVSTAGE_SEMANTIC_ASSET_PATH_ID, 1);
IS(OVSTAGE_SEMANTIC_TOKEN_ID, 2);
IS(OVSTAGE_SEMANTIC_PATH_EXPRESSION_STRING, 3);
IS(OVSTAGE_SEMANTIC_RELATIONSHIP_PATH_ID, 4);
IS(OVSTAGE_SEMANTIC_POINT, 5);
IS(OVSTAGE_SEMANTIC_VECTOR, 6);
IS(OVSTAGE_SEMANTIC_NORMAL, 7);
IS(OVSTAGE_SEMANTIC_COLOR, 8);
IS(OVSTAGE_SEMANTIC_QUATERNION, 9);
IS(OVSTAGE_SEMANTIC_MATRIX, 10);
IS(OVSTAGE_SEMANTIC_TEXTURE_COORDINATE, 11);
IS(OVSTAGE_SEMANTIC_CONNECTION_PATH_ID, 12);
IS(OVSTAGE_SEMANTIC_STRING, 13);
IS(OVSTAGE_SEMANTIC_TIME_CODE, 14);
IS(OVSTAGE_SEMANTIC_FRAME, 15);

SIZE(ovstage_config_key_type_t, 4);
IS(OVSTAGE_CONFIG_KEY_TYPE_BOOL, 0);
IS(OVSTAGE_CONFIG_KEY_TYPE_INT64, 1);
IS(OVSTAGE_CONFIG_KEY_TYPE_UINT64, 2);
IS(OVSTAGE_CONFIG_KEY_TYPE_DOUBLE, 3);
IS(OVSTAGE_CONFIG_KEY_TYPE_STRING, 4);
IS(OVSTAGE_CONFIG_KEY_TYPE_BLOB, 5);
IS(OVSTAGE_CONFIG_KEY_TYPE_COUNT, 6);

IS(OVSTAGE_CONFIG_BOOL_COUNT, 0);
IS(OVSTAGE_CONFIG_INT64_COUNT, 0);
IS(OVSTAGE_CONFIG_RUNTIME_DEFAULT_HIERARCHY_COMPUTATION_MODEL, 0);
IS(OVSTAGE_CONFIG_UINT64_COUNT, 1);
IS(OVSTAGE_CONFIG_DOUBLE_COUNT, 0);
IS(OVSTAGE_CONFIG_BINARY_PACKAGE_ROOT_PATH, 0);
IS(OVSTAGE_CONFIG_STRING_COUNT, 1);
IS(OVSTAGE_CONFIG_BLOB_COUNT, 0);

SIZE(ovstage_log_severity_t, 4);
IS(OVSTAGE_LOG_VERBOSE, -2);
IS(OVSTAGE_LOG_INFO, -1);
IS(OVSTAGE_LOG_WARNING, 0);
IS(OVSTAGE_LOG_ERROR, 1);
IS(OVSTAGE_LOG_NONE, 3);

SIZE(ovstage_hierarchy_computation_model_id_t, 4);
IS(OVSTAGE_HIERARCHY_COMPUTATION_MODEL_INVALID, 0);
IS(OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL, 1);
IS(OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_INCREMENTAL, 2);
IS(OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_GLOBAL, 3);
IS(OVSTAGE_HIERARCHY_COMPUTATION_MODEL_RUNTIME_DEFAULT, 4);
IS(OVSTAGE_HIERARCHY_COMPUTATION_MODEL_DEFAULT_CPU, 1);
IS(OVSTAGE_HIERARCHY_COMPUTATION_MODEL_DEFAULT_GPU, 3);

SIZE(ovstage_hierarchy_relation_t, 4);
IS(OVSTAGE_HIERARCHY_PARENT, 0);
IS(OVSTAGE_HIERARCHY_CHILDREN, 1);
IS(OVSTAGE_HIERARCHY_SIBLINGS, 2);

SIZE(ovalign_device_t, 4);
IS(OVALIGN_DEVICE_CPU, 0);
IS(OVALIGN_DEVICE_CUDA, 1);

IS(OVSTAGE_INVALID_OP_ID, 0);
IS(OVSTAGE_INVALID_QUERY_HANDLE, 0);
IS(OVSTAGE_INVALID_READ_HANDLE, 0);
IS(OVSTAGE_INVALID_MAP_HANDLE, 0);
IS(OVSTAGE_INVALID_ORDINAL_QUERY_HANDLE, 0);
IS(OVSTAGE_INVALID_READ_GROUP_ID, 0);
IS(OVSTAGE_INVALID_QUERY_RESULT_ID, 0);
IS(OVSTAGE_INVALID_HIERARCHY_HANDLE, 0);
IS(OVSTAGE_INVALID_HIERARCHY_RESULT_ID, 0);
IS(OVSTAGE_INVALID_HIERARCHY_COMPUTATION_MODEL_ID, 0);
IS(OVSTAGE_POPULATION_INVALID_OP_ID, 0);
IS(OVSTAGE_POPULATION_INVALID_USD_REFERENCE_HANDLE, 0);
IS(OVSTAGE_POPULATION_EXPORT_INVALID_DESTINATION_HANDLE, 0);
IS(OVSTAGE_TIMEOUT_INFINITE, UINT64_MAX);

SIZE(ovstage_ordinal_t, 8);
SIZE(ovstage_mask_t, 8);
SIZE(ovstage_timeout_ns_t, 8);
SIZE(ovstage_op_id_t, 8);
SIZE(ovstage_query_handle_t, 8);
SIZE(ovstage_read_handle_t, 8);
SIZE(ovstage_map_handle_t, 8);
SIZE(ovstage_ordinal_query_handle_t, 8);
SIZE(ovstage_read_group_id_t, 8);
SIZE(ovstage_query_result_id_t, 8);
SIZE(ovstage_hierarchy_handle_t, 8);
SIZE(ovstage_hierarchy_result_id_t, 8);
SIZE(ovstage_population_op_id_t, 8);
SIZE(ovstage_population_usd_reference_handle_t, 8);
SIZE(ovstage_population_export_destination_handle_t, 8);

/* ---- Stage: structures ------------------------------------------------------------------------------------------- */

SIZE(ovstage_cuda_sync_t, 16);
AT(ovstage_cuda_sync_t, stream, 0);
AT(ovstage_cuda_sync_t, wait_event, 8);

SIZE(ovstage_enqueue_result_t, 16);
AT(ovstage_enqueue_result_t, status, 0);
AT(ovstage_enqueue_result_t, op_index, 8);

SIZE(ovstage_op_wait_result_t, 24);
AT(ovstage_op_wait_result_t, error_op_ids, 0);
AT(ovstage_op_wait_result_t, error_op_id_count, 8);
AT(ovstage_op_wait_result_t, lowest_pending_op_id, 16);

SIZE(ovstage_data_t, 48);
AT(ovstage_data_t, tensors, 0);
AT(ovstage_data_t, tensor_count, 8);
AT(ovstage_data_t, count, 12);
AT(ovstage_data_t, index_map, 16);
AT(ovstage_data_t, mask, 24);
AT(ovstage_data_t, cuda_sync, 32);

SIZE(ovstage_prim_group_t, 24);
AT(ovstage_prim_group_t, list, 0);
AT(ovstage_prim_group_t, offset, 8);
AT(ovstage_prim_group_t, count, 12);
AT(ovstage_prim_group_t, index_map, 16);

SIZE(ovstage_attribute_meta_t, 16);
AT(ovstage_attribute_meta_t, attribute_write_floor_ordinal, 0);
AT(ovstage_attribute_meta_t, layout_generation, 8);

SIZE(ovstage_ordinal_range_t, 24);
AT(ovstage_ordinal_range_t, start_ordinal, 0);
AT(ovstage_ordinal_range_t, end_ordinal, 8);
AT(ovstage_ordinal_range_t, has_start_ordinal, 16);

SIZE(ovstage_read_group_t, 120);
AT(ovstage_read_group_t, read_group_id, 0);
AT(ovstage_read_group_t, attribute, 8);
AT(ovstage_read_group_t, ordinal, 16);
AT(ovstage_read_group_t, is_delete, 24);
AT(ovstage_read_group_t, is_array, 25);
AT(ovstage_read_group_t, semantic, 28);
AT(ovstage_read_group_t, prims, 32);
AT(ovstage_read_group_t, data, 56);
AT(ovstage_read_group_t, meta, 104);

SIZE(ovstage_map_group_t, 88);
AT(ovstage_map_group_t, prims, 0);
AT(ovstage_map_group_t, data, 24);
AT(ovstage_map_group_t, meta, 72);

SIZE(ovstage_map_desc_t, 40);
AT(ovstage_map_desc_t, attribute, 0);
AT(ovstage_map_desc_t, dtype, 24);
AT(ovstage_map_desc_t, semantic, 28);
AT(ovstage_map_desc_t, prim_mode, 32);

SIZE(ovstage_predicate_t, 48);
AT(ovstage_predicate_t, attribute, 0);
AT(ovstage_predicate_t, op, 24);
AT(ovstage_predicate_t, values, 32);
AT(ovstage_predicate_t, value_count, 40);

SIZE(ovstage_filter_t, 16);
AT(ovstage_filter_t, predicates, 0);
AT(ovstage_filter_t, count, 8);

SIZE(ovstage_query_result_t, 40);
AT(ovstage_query_result_t, query_result_id, 0);
AT(ovstage_query_result_t, attributes, 8);
AT(ovstage_query_result_t, attribute_count, 16);
AT(ovstage_query_result_t, all_handle, 24);
AT(ovstage_query_result_t, total_prim_count, 32);

SIZE(ovstage_write_floor_desc_t, 32);
AT(ovstage_write_floor_desc_t, ordinal, 0);
AT(ovstage_write_floor_desc_t, scope, 8);
AT(ovstage_write_floor_desc_t, attributes, 16);
AT(ovstage_write_floor_desc_t, attribute_count, 24);

SIZE(ovstage_write_data_t, 64);
AT(ovstage_write_data_t, tensors, 0);
AT(ovstage_write_data_t, managed_tensors, 8);
AT(ovstage_write_data_t, tensor_count, 16);
AT(ovstage_write_data_t, count, 20);
AT(ovstage_write_data_t, index_map, 24);
AT(ovstage_write_data_t, mask, 32);
AT(ovstage_write_data_t, cuda_sync, 40);
AT(ovstage_write_data_t, semantic, 56);
AT(ovstage_write_data_t, is_array, 60);

SIZE(ovstage_attribute_write_t, 88);
AT(ovstage_attribute_write_t, attribute, 0);
AT(ovstage_attribute_write_t, data, 24);

SIZE(ovstage_instance_t, 16);
AT(ovstage_instance_t, vtable, 0);
AT(ovstage_instance_t, context, 8);

SIZE(ovstage_instance_desc_t, 8);
AT(ovstage_instance_desc_t, name, 0);

SIZE(ovstage_config_entry_t, 24);
AT(ovstage_config_entry_t, key_type, 0);
AT(ovstage_config_entry_t, key, 4);
AT(ovstage_config_entry_t, value, 8);

SIZE(ovstage_config_t, 16);
AT(ovstage_config_t, entries, 0);
AT(ovstage_config_t, entry_count, 8);

SIZE(ovstage_hierarchy_item_t, 24);
AT(ovstage_hierarchy_item_t, status, 0);
AT(ovstage_hierarchy_item_t, path_offset, 8);
AT(ovstage_hierarchy_item_t, path_count, 16);

SIZE(ovstage_hierarchy_result_t, 48);
AT(ovstage_hierarchy_result_t, hierarchy_result_id, 0);
AT(ovstage_hierarchy_result_t, ordinal, 8);
AT(ovstage_hierarchy_result_t, items, 16);
AT(ovstage_hierarchy_result_t, input_count, 24);
AT(ovstage_hierarchy_result_t, paths, 32);
AT(ovstage_hierarchy_result_t, path_count, 40);

SIZE(ovstage_hierarchy_computation_model_desc_t, 40);
AT(ovstage_hierarchy_computation_model_desc_t, model_id, 0);
AT(ovstage_hierarchy_computation_model_desc_t, name, 8);
AT(ovstage_hierarchy_computation_model_desc_t, description, 24);

SIZE(ovalign_request_t, 64);
AT(ovalign_request_t, groups, 0);
AT(ovalign_request_t, group_count, 8);
AT(ovalign_request_t, attributes, 16);
AT(ovalign_request_t, attr_count, 24);
AT(ovalign_request_t, prim_list, 32);
AT(ovalign_request_t, prim_order, 40);
AT(ovalign_request_t, prim_order_count, 48);
AT(ovalign_request_t, device, 56);

SIZE(ovalign_attr_result_t, 16);
AT(ovalign_attr_result_t, groups, 0);
AT(ovalign_attr_result_t, group_count, 8);

SIZE(ovalign_result_t, 32);
AT(ovalign_result_t, attrs, 0);
AT(ovalign_result_t, attr_count, 8);
AT(ovalign_result_t, group_count, 16);
AT(ovalign_result_t, skipped, 24);

SIZE(ovstage_vtable_t, 28 * sizeof(void*));
SLOT(ovstage_vtable_t, wait_op, 0);
SLOT(ovstage_vtable_t, release_op, 1);
SLOT(ovstage_vtable_t, advance_write_floor, 2);
SLOT(ovstage_vtable_t, get_oldest_preserved_ordinal, 3);
SLOT(ovstage_vtable_t, get_attribute_write_floor, 4);
SLOT(ovstage_vtable_t, fetch_ordinal, 5);
SLOT(ovstage_vtable_t, release_ordinal_query, 6);
SLOT(ovstage_vtable_t, query, 7);
SLOT(ovstage_vtable_t, query_from_path_list, 8);
SLOT(ovstage_vtable_t, fetch_query_result, 9);
SLOT(ovstage_vtable_t, release_query_result, 10);
SLOT(ovstage_vtable_t, release_query, 11);
SLOT(ovstage_vtable_t, read_attributes, 12);
SLOT(ovstage_vtable_t, fetch_read_next, 13);
SLOT(ovstage_vtable_t, release_group, 14);
SLOT(ovstage_vtable_t, release_read, 15);
SLOT(ovstage_vtable_t, write_attribute, 16);
SLOT(ovstage_vtable_t, map_attribute, 17);
SLOT(ovstage_vtable_t, fetch_map_next, 18);
SLOT(ovstage_vtable_t, unmap_group, 19);
SLOT(ovstage_vtable_t, unmap_attribute, 20);
SLOT(ovstage_vtable_t, delete_attributes, 21);
SLOT(ovstage_vtable_t, get_version, 22);
SLOT(ovstage_vtable_t, get_error_string, 23);
SLOT(ovstage_vtable_t, get_last_op_error, 24);
SLOT(ovstage_vtable_t, get_path_dictionary, 25);
SLOT(ovstage_vtable_t, write_attributes, 26);
SLOT(ovstage_vtable_t, query_extension, 27);

/* ---- Population -------------------------------------------------------------------------------------------------- */

SIZE(ovstage_population_prim_predicate_t, 24);
AT(ovstage_population_prim_predicate_t, kind, 0);
AT(ovstage_population_prim_predicate_t, values, 8);
AT(ovstage_population_prim_predicate_t, value_count, 16);

SIZE(ovstage_population_property_predicate_t, 24);
AT(ovstage_population_property_predicate_t, kind, 0);
AT(ovstage_population_property_predicate_t, values, 8);
AT(ovstage_population_property_predicate_t, value_count, 16);

SIZE(ovstage_population_selector_t, 80);
AT(ovstage_population_selector_t, prim_predicate, 0);
AT(ovstage_population_selector_t, property_predicate, 24);
AT(ovstage_population_selector_t, prim_metadata_paths, 48);
AT(ovstage_population_selector_t, prim_metadata_path_count, 56);
AT(ovstage_population_selector_t, property_metadata_paths, 64);
AT(ovstage_population_selector_t, property_metadata_path_count, 72);

SIZE(ovstage_population_desc_t, 40);
AT(ovstage_population_desc_t, domains, 0);
AT(ovstage_population_desc_t, selectors, 8);
AT(ovstage_population_desc_t, selector_count, 16);
AT(ovstage_population_desc_t, stage_metadata_paths, 24);
AT(ovstage_population_desc_t, stage_metadata_path_count, 32);

SIZE(ovstage_population_enqueue_result_t, 16);
AT(ovstage_population_enqueue_result_t, status, 0);
AT(ovstage_population_enqueue_result_t, op_index, 8);

SIZE(ovstage_population_op_wait_result_t, 24);
AT(ovstage_population_op_wait_result_t, error_op_ids, 0);
AT(ovstage_population_op_wait_result_t, error_op_id_count, 8);
AT(ovstage_population_op_wait_result_t, lowest_pending_op_id, 16);

SIZE(ovstage_population_domain_t, 4);
IS(OVSTAGE_POPULATION_DOMAIN_NONE, 0);
IS(OVSTAGE_POPULATION_DOMAIN_RENDERING, 1);
IS(OVSTAGE_POPULATION_DOMAIN_PHYSICS, 2);
IS(OVSTAGE_POPULATION_DOMAIN_ALL, 3);

SIZE(ovstage_population_prim_predicate_kind_t, 4);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_NONE, 0);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_ALL, 1);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_AND, 2);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_OR, 3);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_NOT, 4);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PARENT, 5);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_ANCESTOR, 6);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PROPERTY, 7);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_TYPE, 8);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_IS_A_TYPE, 9);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_SCHEMA, 10);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_APPLIED_SCHEMA, 11);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_APPLIED_SCHEMA_IN_NAMESPACE, 12);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PATH, 13);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_IS_UNDER_PATH, 14);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_KIND, 15);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_PURPOSE, 16);
IS(OVSTAGE_POPULATION_PRIM_PREDICATE_HAS_METADATA, 17);

SIZE(ovstage_population_property_predicate_kind_t, 4);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_NONE, 0);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_ALL, 1);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_AND, 2);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_OR, 3);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_NOT, 4);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_DECLARED_BY_SCHEMA, 5);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_HAS_NAME, 6);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_IN_NAMESPACE, 7);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_HAS_METADATA, 8);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_ATTRIBUTE, 9);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_RELATIONSHIP, 10);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_CUSTOM, 11);
IS(OVSTAGE_POPULATION_PROPERTY_PREDICATE_IS_AUTHORED, 12);

/* ---- Export ------------------------------------------------------------------------------------------------------ */

SIZE(ovstage_population_export_attribute_rule_t, 104);
AT(ovstage_population_export_attribute_rule_t, path, 0);
AT(ovstage_population_export_attribute_rule_t, path_match, 16);
AT(ovstage_population_export_attribute_rule_t, source_attribute_name, 24);
AT(ovstage_population_export_attribute_rule_t, source_attribute_name_match, 40);
AT(ovstage_population_export_attribute_rule_t, destination_attribute_name, 48);
AT(ovstage_population_export_attribute_rule_t, usd_type_name, 64);
AT(ovstage_population_export_attribute_rule_t, required_schema_name, 80);
AT(ovstage_population_export_attribute_rule_t, flags, 96);

SIZE(ovstage_population_export_prim_rule_t, 56);
AT(ovstage_population_export_prim_rule_t, path, 0);
AT(ovstage_population_export_prim_rule_t, path_match, 16);
AT(ovstage_population_export_prim_rule_t, usd_type_name, 24);
AT(ovstage_population_export_prim_rule_t, unknown_type_metadata_key, 40);

SIZE(ovstage_population_export_api_schema_rule_t, 64);
AT(ovstage_population_export_api_schema_rule_t, path, 0);
AT(ovstage_population_export_api_schema_rule_t, path_match, 16);
AT(ovstage_population_export_api_schema_rule_t, schema_name, 24);
AT(ovstage_population_export_api_schema_rule_t, instance_name, 40);
AT(ovstage_population_export_api_schema_rule_t, flags, 56);

SIZE(ovstage_population_export_property_edge_rule_t, 80);
AT(ovstage_population_export_property_edge_rule_t, path, 0);
AT(ovstage_population_export_property_edge_rule_t, path_match, 16);
AT(ovstage_population_export_property_edge_rule_t, source_property_name, 24);
AT(ovstage_population_export_property_edge_rule_t, destination_property_name, 40);
AT(ovstage_population_export_property_edge_rule_t, usd_type_name, 56);
AT(ovstage_population_export_property_edge_rule_t, property_kind, 72);
AT(ovstage_population_export_property_edge_rule_t, flags, 76);

SIZE(ovstage_population_export_metadata_rule_t, 64);
AT(ovstage_population_export_metadata_rule_t, path, 0);
AT(ovstage_population_export_metadata_rule_t, path_match, 16);
AT(ovstage_population_export_metadata_rule_t, source_metadata_name, 24);
AT(ovstage_population_export_metadata_rule_t, destination_metadata_name, 40);
AT(ovstage_population_export_metadata_rule_t, metadata_kind, 56);
AT(ovstage_population_export_metadata_rule_t, flags, 60);

SIZE(ovstage_population_export_desc_t, 176);
AT(ovstage_population_export_desc_t, struct_size, 0);
AT(ovstage_population_export_desc_t, source_api_schema_policy, 4);
AT(ovstage_population_export_desc_t, projection, 8);
AT(ovstage_population_export_desc_t, ordinal, 16);
AT(ovstage_population_export_desc_t, since_ordinal, 24);
AT(ovstage_population_export_desc_t, selection, 32);
AT(ovstage_population_export_desc_t, layer_mode, 36);
AT(ovstage_population_export_desc_t, transform_policy, 40);
AT(ovstage_population_export_desc_t, unknown_metadata_policy, 44);
AT(ovstage_population_export_desc_t, prim_predicate, 48);
AT(ovstage_population_export_desc_t, property_predicate, 72);
AT(ovstage_population_export_desc_t, prim_rules, 96);
AT(ovstage_population_export_desc_t, prim_rule_count, 104);
AT(ovstage_population_export_desc_t, api_schema_rules, 112);
AT(ovstage_population_export_desc_t, api_schema_rule_count, 120);
AT(ovstage_population_export_desc_t, attribute_rules, 128);
AT(ovstage_population_export_desc_t, attribute_rule_count, 136);
AT(ovstage_population_export_desc_t, property_rules, 144);
AT(ovstage_population_export_desc_t, property_rule_count, 152);
AT(ovstage_population_export_desc_t, metadata_rules, 160);
AT(ovstage_population_export_desc_t, metadata_rule_count, 168);

SIZE(ovstage_population_export_report_t, 184);
AT(ovstage_population_export_report_t, prims_examined, 0);
AT(ovstage_population_export_report_t, prims_exported, 8);
AT(ovstage_population_export_report_t, prims_skipped, 16);
AT(ovstage_population_export_report_t, attributes_examined, 24);
AT(ovstage_population_export_report_t, attributes_exported, 32);
AT(ovstage_population_export_report_t, attributes_skipped, 40);
AT(ovstage_population_export_report_t, attributes_unsupported, 48);
AT(ovstage_population_export_report_t, api_schemas_examined, 56);
AT(ovstage_population_export_report_t, api_schemas_applied, 64);
AT(ovstage_population_export_report_t, api_schemas_skipped, 72);
AT(ovstage_population_export_report_t, custom_attributes_inferred, 80);
AT(ovstage_population_export_report_t, unknown_metadata_preserved, 88);
AT(ovstage_population_export_report_t, transforms_examined, 96);
AT(ovstage_population_export_report_t, transforms_exported, 104);
AT(ovstage_population_export_report_t, property_edges_examined, 112);
AT(ovstage_population_export_report_t, property_edges_exported, 120);
AT(ovstage_population_export_report_t, property_edges_skipped, 128);
AT(ovstage_population_export_report_t, property_edges_unsupported, 136);
AT(ovstage_population_export_report_t, metadata_examined, 144);
AT(ovstage_population_export_report_t, metadata_exported, 152);
AT(ovstage_population_export_report_t, metadata_skipped, 160);
AT(ovstage_population_export_report_t, metadata_unsupported, 168);
AT(ovstage_population_export_report_t, source_states_unavailable, 176);

SIZE(ovstage_population_export_selection_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_SELECTION_EXPLICIT_PREDICATE, 0);
IS(OVSTAGE_POPULATION_EXPORT_SELECTION_CHANGED_PROPERTIES_SINCE_ORDINAL, 1);

SIZE(ovstage_population_export_layer_mode_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_LAYER_MODE_OVER, 0);
IS(OVSTAGE_POPULATION_EXPORT_LAYER_MODE_DEF, 1);

SIZE(ovstage_population_export_path_match_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_PATH_MATCH_EXACT, 0);
IS(OVSTAGE_POPULATION_EXPORT_PATH_MATCH_PREFIX, 1);

SIZE(ovstage_population_export_name_match_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_NAME_MATCH_EXACT, 0);
IS(OVSTAGE_POPULATION_EXPORT_NAME_MATCH_GLOB, 1);

SIZE(ovstage_population_export_transform_policy_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_TRANSFORM_USD_XFORM_OP, 0);
IS(OVSTAGE_POPULATION_EXPORT_TRANSFORM_NONE, 1);
IS(OVSTAGE_POPULATION_EXPORT_TRANSFORM_USD_MATRIX_OP, 2);

SIZE(ovstage_population_export_unknown_metadata_policy_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_UNKNOWN_METADATA_DROP, 0);
IS(OVSTAGE_POPULATION_EXPORT_UNKNOWN_METADATA_PRESERVE, 1);
IS(OVSTAGE_POPULATION_EXPORT_UNKNOWN_METADATA_FAIL, 2);

SIZE(ovstage_population_export_source_api_schema_policy_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_SOURCE_API_SCHEMAS_EXPLICIT_ONLY, 0);
IS(OVSTAGE_POPULATION_EXPORT_SOURCE_API_SCHEMAS_APPLY_RECORDED, 1);

SIZE(ovstage_population_export_projection_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_PROJECTION_EXPLICIT_RULES, 0);
IS(OVSTAGE_POPULATION_EXPORT_PROJECTION_SCHEMA_DECLARED, 1);

SIZE(ovstage_population_export_rule_flags_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_RULE_NONE, 0);
IS(OVSTAGE_POPULATION_EXPORT_RULE_EXPORT_DEFAULT_VALUE, 1);
IS(OVSTAGE_POPULATION_EXPORT_RULE_DERIVED_ALLOWED, 2);
IS(OVSTAGE_POPULATION_EXPORT_RULE_INFER_CUSTOM_TYPE, 8);
IS(OVSTAGE_POPULATION_EXPORT_RULE_REQUIRED, 16);

SIZE(ovstage_population_export_property_kind_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_PROPERTY_INVALID, 0);
IS(OVSTAGE_POPULATION_EXPORT_PROPERTY_RELATIONSHIP, 1);
IS(OVSTAGE_POPULATION_EXPORT_PROPERTY_CONNECTION, 2);
IS(OVSTAGE_POPULATION_EXPORT_PROPERTY_MATERIAL_BINDING, 3);

SIZE(ovstage_population_export_metadata_kind_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_METADATA_PRIM, 0);
IS(OVSTAGE_POPULATION_EXPORT_METADATA_LAYER_CUSTOM_DATA, 1);
IS(OVSTAGE_POPULATION_EXPORT_METADATA_REFERENCES, 2);
IS(OVSTAGE_POPULATION_EXPORT_METADATA_LAYER_STANDARD, 3);

SIZE(ovstage_population_export_destination_mode_t, 4);
IS(OVSTAGE_POPULATION_EXPORT_DESTINATION_EMPTY, 0);
IS(OVSTAGE_POPULATION_EXPORT_DESTINATION_OPEN_EXISTING, 1);

static_assert(sizeof(OVSTAGE_POPULATION_EXPORT_UNKNOWN_APPLIED_API_SCHEMAS_CUSTOM_DATA_KEY) ==
                  sizeof("ovpopulation:unknownAppliedAPISchemas"),
              "the key is a literal");

/* ---- This library's own table ------------------------------------------------------------------------------------ */

SIZE(ovstage_go_note_t, 20);
AT(ovstage_go_note_t, major, 0);
AT(ovstage_go_note_t, minor, 4);
AT(ovstage_go_note_t, patch, 8);
AT(ovstage_go_note_t, table_version, 12);
AT(ovstage_go_note_t, table_size, 16);
static_assert(sizeof OVSTAGE_GO_NOTE_NAME == 8, "the name fills two words");

SIZE(ovstage_go_interface_t, 4);
IS(OVSTAGE_GO_INTERFACE_DEFAULT, 0);
IS(OVSTAGE_GO_INTERFACE_0_2, 2);
IS(OVSTAGE_GO_INTERFACE_0_3, 3);

SIZE(ovstage_go_stage_options_t, 8);
AT(ovstage_go_stage_options_t, struct_size, 0);
AT(ovstage_go_stage_options_t, interface_level, 4);

SIZE(ovstage_go_map_options_t, 16);
AT(ovstage_go_map_options_t, struct_size, 0);
AT(ovstage_go_map_options_t, initial, 4);
AT(ovstage_go_map_options_t, group_rows, 8);

SIZE(ovstage_go_counters_t, 128);
AT(ovstage_go_counters_t, struct_size, 0);
AT(ovstage_go_counters_t, reserved, 4);
AT(ovstage_go_counters_t, live_exports, 8);
AT(ovstage_go_counters_t, live_groups, 16);
AT(ovstage_go_counters_t, live_maps, 24);
AT(ovstage_go_counters_t, live_operations, 32);
AT(ovstage_go_counters_t, live_queries, 40);
AT(ovstage_go_counters_t, live_reads, 48);
AT(ovstage_go_counters_t, bytes_columns, 56);
AT(ovstage_go_counters_t, bytes_pooled, 64);
AT(ovstage_go_counters_t, bytes_copied, 72);
AT(ovstage_go_counters_t, live_blocks, 80);
AT(ovstage_go_counters_t, rows_resolved, 88);
AT(ovstage_go_counters_t, detach_moves, 96);
AT(ovstage_go_counters_t, detach_copies, 104);
AT(ovstage_go_counters_t, maps_adopted, 112);
AT(ovstage_go_counters_t, refused_unasked, 120);

SIZE(ovstage_go_unasked_t, 72);
AT(ovstage_go_unasked_t, struct_size, 0);
AT(ovstage_go_unasked_t, status, 4);
AT(ovstage_go_unasked_t, call, 8);
AT(ovstage_go_unasked_t, attribute, 24);
AT(ovstage_go_unasked_t, reason, 40);
AT(ovstage_go_unasked_t, text, 56);

SIZE(ovstage_go_match_t, 4);
IS(OVSTAGE_GO_MATCH_PREDICATE, 0);
IS(OVSTAGE_GO_MATCH_ALL, 1);
IS(OVSTAGE_GO_MATCH_ANY, 2);
IS(OVSTAGE_GO_MATCH_NONE, 3);

SIZE(ovstage_go_condition_t, 72);
AT(ovstage_go_condition_t, match, 0);
AT(ovstage_go_condition_t, reserved, 4);
AT(ovstage_go_condition_t, predicate, 8);
AT(ovstage_go_condition_t, conditions, 56);
AT(ovstage_go_condition_t, count, 64);

SIZE(ovstage_go_delete_t, 24);
AT(ovstage_go_delete_t, query, 0);
AT(ovstage_go_delete_t, attributes, 8);
AT(ovstage_go_delete_t, attribute_count, 16);

SIZE(ovstage_go_batch_t, 24);
AT(ovstage_go_batch_t, query, 0);
AT(ovstage_go_batch_t, writes, 8);
AT(ovstage_go_batch_t, write_count, 16);

SIZE(ovstage_go_attribute_t, 64);
AT(ovstage_go_attribute_t, attribute, 0);
AT(ovstage_go_attribute_t, type_name, 8);
AT(ovstage_go_attribute_t, dtype, 16);
AT(ovstage_go_attribute_t, semantic, 20);
AT(ovstage_go_attribute_t, is_array, 24);
AT(ovstage_go_attribute_t, prims, 32);
AT(ovstage_go_attribute_t, write_floor, 40);
AT(ovstage_go_attribute_t, newest, 48);
AT(ovstage_go_attribute_t, bytes, 56);

SIZE(ovstage_go_v1_t, 400);
AT(ovstage_go_v1_t, struct_size, 0);
AT(ovstage_go_v1_t, version, 4);
AT(ovstage_go_v1_t, instance_retain, 8);
AT(ovstage_go_v1_t, instance_release, 16);
AT(ovstage_go_v1_t, block_retain, 24);
AT(ovstage_go_v1_t, block_release, 32);
AT(ovstage_go_v1_t, block_refs, 40);
AT(ovstage_go_v1_t, tensors_block, 48);
AT(ovstage_go_v1_t, tensors_retain, 56);
AT(ovstage_go_v1_t, tensors_release, 64);
AT(ovstage_go_v1_t, export_versioned, 72);
AT(ovstage_go_v1_t, export_legacy, 80);
AT(ovstage_go_v1_t, map_attribute, 88);
AT(ovstage_go_v1_t, unmap_group, 96);
AT(ovstage_go_v1_t, unmap_attribute, 104);
AT(ovstage_go_v1_t, abort_map, 112);
AT(ovstage_go_v1_t, counters, 120);
AT(ovstage_go_v1_t, process_counters, 128);
AT(ovstage_go_v1_t, trim, 136);
AT(ovstage_go_v1_t, op_status, 144);
AT(ovstage_go_v1_t, keep_history, 152);
AT(ovstage_go_v1_t, query, 160);
AT(ovstage_go_v1_t, refresh_query, 168);
AT(ovstage_go_v1_t, publish, 176);
AT(ovstage_go_v1_t, query_count, 184);
AT(ovstage_go_v1_t, query_where, 192);
AT(ovstage_go_v1_t, fetch_read, 200);
AT(ovstage_go_v1_t, fetch_map, 208);
AT(ovstage_go_v1_t, log_mark, 216);
AT(ovstage_go_v1_t, log_wait, 224);
AT(ovstage_go_v1_t, log_cut, 232);
AT(ovstage_go_v1_t, log_next, 240);
AT(ovstage_go_v1_t, write_typed, 248);
AT(ovstage_go_v1_t, publish_typed, 256);
AT(ovstage_go_v1_t, tensors_type, 264);
AT(ovstage_go_v1_t, attributes, 272);
AT(ovstage_go_v1_t, tell_unasked, 280);
AT(ovstage_go_v1_t, read_missing, 288);
AT(ovstage_go_v1_t, export_copy_versioned, 296);
AT(ovstage_go_v1_t, export_copy_legacy, 304);
AT(ovstage_go_v1_t, guard_reads, 312);
AT(ovstage_go_v1_t, try_name, 320);
AT(ovstage_go_v1_t, end_name, 328);
AT(ovstage_go_v1_t, list_of_known, 336);
AT(ovstage_go_v1_t, wait_floor, 344);
AT(ovstage_go_v1_t, floor_moves, 352);
AT(ovstage_go_v1_t, read_since, 360);
AT(ovstage_go_v1_t, set_stage_options, 368);
AT(ovstage_go_v1_t, stage_interface, 376);
AT(ovstage_go_v1_t, compact, 384);
AT(ovstage_go_v1_t, path_texts, 392);

SIZE(ovstage_go_cursor_t, 32);
AT(ovstage_go_cursor_t, attribute, 0);
AT(ovstage_go_cursor_t, since, 8);
AT(ovstage_go_cursor_t, until, 16);
AT(ovstage_go_cursor_t, resync, 24);
AT(ovstage_go_cursor_t, limited, 25);

SIZE(ovstage_go_initial_t, 4);
IS(OVSTAGE_GO_INITIAL_CURRENT, 0);
IS(OVSTAGE_GO_INITIAL_ZERO, 1);
IS(OVSTAGE_GO_INITIAL_DISCARD, 2);

SIZE(ovstage_go_commit_t, 4);
IS(OVSTAGE_GO_COMMIT_ADOPT, 0);
IS(OVSTAGE_GO_COMMIT_AUTO, 1);

/* ---- Prototypes of the 47 exported functions ----------------------------------------------------------------------
 *
 * Declared once more, with the short forms that follow: a declaration that differs from the header's does not compile.
 */

#ifdef __cplusplus
extern "C" {
#endif

typedef ovstage_instance_t* I;
typedef ovstage_api_status_t S;
typedef ovstage_enqueue_result_t E;
typedef ovstage_population_enqueue_result_t PE;
typedef ovstage_population_export_destination_handle_t D;
typedef const ovstage_population_export_desc_t* X;
typedef ovstage_population_export_report_t* R;

ovx_string_t ovstage_get_last_error(void);
S ovstage_initialize(const ovstage_config_t*);
S ovstage_shutdown(void);
S ovstage_set_log_callback(ovstage_log_severity_t, const ovx_string_t*, ovstage_log_callback_t, void*);
S ovstage_flush_log(ovstage_timeout_ns_t);
S ovstage_create_instance(const ovstage_instance_desc_t*, I*);
S ovstage_destroy_instance(I);
S ovstage_get_usd_stage_id(I, uint64_t*);
E ovstage_clone(I, ovx_string_t, const ovx_string_t*, size_t, ovstage_ordinal_t);
E ovstage_get_hierarchy(I, ovx_primpath_list_t, ovstage_ordinal_t, ovstage_hierarchy_relation_t,
                        ovstage_hierarchy_handle_t*);
S ovstage_fetch_hierarchy_result(I, ovstage_hierarchy_handle_t, ovstage_hierarchy_result_t*);
S ovstage_release_hierarchy_result(I, const ovstage_hierarchy_result_t*);
E ovstage_release_hierarchy(I, ovstage_hierarchy_handle_t);
S ovstage_get_hierarchy_computation_models(I, const ovstage_hierarchy_computation_model_desc_t**, size_t*);
E ovstage_compute_hierarchy(I, ovstage_hierarchy_computation_model_id_t, ovstage_ordinal_t, ovstage_ordinal_t);

S ovstage_instancing_get_instance_roots(I, ovx_primpath_t, ovx_primpath_list_t*);
S ovstage_instancing_get_prototype_root(I, ovx_primpath_t, ovx_primpath_t*);
S ovstage_instancing_get_prototype_roots(I, ovx_primpath_list_t*);

S ovstage_population_register_usd_schemas(const ovx_string_t*, size_t);
PE ovstage_population_open_usd_from_file(I, ovx_string_t, ovstage_ordinal_t, double, uint32_t);
PE ovstage_population_open_usd_from_string(I, ovx_string_t, ovstage_ordinal_t, double, uint32_t);
PE ovstage_population_open_usd_from_file_with_desc(I, ovx_string_t, ovstage_ordinal_t, double,
                                                   const ovstage_population_desc_t*, size_t);
PE ovstage_population_open_usd_from_string_with_desc(I, ovx_string_t, ovstage_ordinal_t, double,
                                                     const ovstage_population_desc_t*, size_t);
PE ovstage_population_add_usd_reference_from_file(I, ovx_string_t, ovx_string_t,
                                                  ovstage_population_usd_reference_handle_t*);
PE ovstage_population_add_usd_reference_from_string(I, ovx_string_t, ovx_string_t,
                                                    ovstage_population_usd_reference_handle_t*);
PE ovstage_population_remove_usd_reference(I, ovstage_population_usd_reference_handle_t);
PE ovstage_population_reset_usd(I);
PE ovstage_population_apply_usd_time(I, ovstage_ordinal_t, double);
PE ovstage_population_apply_usd_changes(I, ovstage_ordinal_t);
S ovstage_population_wait_op(I, ovstage_population_op_id_t, ovstage_timeout_ns_t, ovstage_population_op_wait_result_t*);
ovx_string_t ovstage_population_get_last_error(void);
ovx_string_t ovstage_population_get_last_op_error(ovstage_population_op_id_t);

S ovstage_population_export_desc_init(ovstage_population_export_desc_t*);
S ovstage_population_export_desc_init_snapshot(ovstage_population_export_desc_t*, ovstage_ordinal_t);
S ovstage_population_export_destination_create(I, ovx_string_t, ovstage_population_export_destination_mode_t, D*);
PE ovstage_population_export_destination_enqueue_create(I, ovx_string_t, ovstage_population_export_destination_mode_t,
                                                        D*);
S ovstage_population_export_to_destination(I, D, X, R);
PE ovstage_population_export_enqueue_to_destination(I, D, X);
S ovstage_population_export_destination_save(I, D);
PE ovstage_population_export_destination_enqueue_save(I, D);
S ovstage_population_export_destination_destroy(I, D);
PE ovstage_population_export_destination_enqueue_destroy(I, D);
S ovstage_population_export_to_usd_file(I, ovx_string_t, X, R);
PE ovstage_population_export_enqueue_to_usd_file(I, ovx_string_t, X);
S ovstage_population_export_wait_op(I, ovstage_population_op_id_t, ovstage_timeout_ns_t, R);

int ovalign_align(const ovalign_request_t*, ovalign_result_t*);
void ovalign_release(ovalign_result_t*);

#ifdef __cplusplus
} /* extern "C" */
#endif

int main(void) { return 0; }
