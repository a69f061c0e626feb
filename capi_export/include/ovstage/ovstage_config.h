/*
 * ovstage_config.h - entries for ovstage_initialize.
 *
 *     ovstage_config_entry_t entry = ovstage_config_entry_runtime_default_hierarchy_computation_model(
 *         OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL);
 *     ovstage_config_t config = {&entry, 1};
 *     ovstage_initialize(&config);
 *
 * An entry borrows the text it is made from, which must live until ovstage_initialize returns.
 */
#ifndef OVSTAGE_CONFIG_H
#define OVSTAGE_CONFIG_H

#include "ovstage_types.h"

#include <ovx/config_tokens.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An entry of type STRING. */
static inline ovstage_config_entry_t ovstage_config_entry_string(ovstage_config_string_t key, ovx_string_t value) {
  ovstage_config_entry_t entry;
  entry.key_type = OVSTAGE_CONFIG_KEY_TYPE_STRING;
  entry.key.string_key = key;
  entry.value.string_value = value;
  return entry;
}

/* An entry of type UINT64. */
static inline ovstage_config_entry_t ovstage_config_entry_uint64(ovstage_config_uint64_t key, uint64_t value) {
  ovstage_config_entry_t entry;
  entry.key_type = OVSTAGE_CONFIG_KEY_TYPE_UINT64;
  entry.key.uint64_key = key;
  entry.value.blob_value.data = NULL; /* the number fills half of the union; leave no stray bytes in the other half */
  entry.value.blob_value.size = 0;
  entry.value.uint_value = value;
  return entry;
}

/* The entry that chooses the process's default hierarchy model: a concrete one, or RUNTIME_DEFAULT for "no choice". */
static inline ovstage_config_entry_t ovstage_config_entry_runtime_default_hierarchy_computation_model(
    ovstage_hierarchy_computation_model_id_t model) {
  return ovstage_config_entry_uint64(OVSTAGE_CONFIG_RUNTIME_DEFAULT_HIERARCHY_COMPUTATION_MODEL, (uint64_t)model);
}

/* The entry that tells a static loader where its package is. `path` may contain OVX_CONFIG_EXECUTABLE_DIR_TOKEN, which
 * the loader substitutes; libovstage.so ignores the entry. */
static inline ovstage_config_entry_t ovstage_config_entry_binary_package_root_path(ovx_string_t path) {
  return ovstage_config_entry_string(OVSTAGE_CONFIG_BINARY_PACKAGE_ROOT_PATH, path);
}

/*
 * ovstage_executable_dir - the absolute directory of the running executable, without a trailing separator.
 *
 * Only a static loader provides this function. libovstage.so does not: a program that calls it does not link.
 *
 * Returns   A view that is valid until this thread's next call; {NULL, 0} if unknown.
 */
ovx_string_t ovstage_executable_dir(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OVSTAGE_CONFIG_H */
