/*
 * process.c - the process-wide state, and the life of instances.
 *
 * Initialisations and instances hold the process state together; the last of them to go takes it down. One lock orders
 * all of it. It is held while Go makes or drops the shared path dictionary, never while foreign code runs.
 */
#include <inttypes.h>
#include <link.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "ring.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all below */
static uint64_t initialisations, instances;

enum { DEFAULT_MODEL = OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL };
static uint64_t hierarchy_model = DEFAULT_MODEL; /* what RUNTIME_DEFAULT means */

/* Called with the lock. */
static bool alive(void) { return initialisations + instances > 0; }

bool ov_process_alive(void) {
  pthread_mutex_lock(&lock);
  bool is = alive();
  pthread_mutex_unlock(&lock);
  return is;
}

/* Called with the lock, which it gives up: delivering what is left in the log is not done under it. */
static void unlock_after_drop(void) {
  if (alive()) {
    pthread_mutex_unlock(&lock);
    return;
  }
  hierarchy_model = DEFAULT_MODEL;
  uint64_t callback = ov_log_generation();
  pthread_mutex_unlock(&lock);
  ov_log_remove_if(callback);
}

/* ---- Configuration ----------------------------------------------------------------------------------------------- */

/* By key type: its name, and how many settings of it there are. */
static const struct {
  const char* name;
  int settings;
} TYPES[OVSTAGE_CONFIG_KEY_TYPE_COUNT] = {
    [OVSTAGE_CONFIG_KEY_TYPE_BOOL] = {"BOOL", OVSTAGE_CONFIG_BOOL_COUNT},
    [OVSTAGE_CONFIG_KEY_TYPE_INT64] = {"INT64", OVSTAGE_CONFIG_INT64_COUNT},
    [OVSTAGE_CONFIG_KEY_TYPE_UINT64] = {"UINT64", OVSTAGE_CONFIG_UINT64_COUNT},
    [OVSTAGE_CONFIG_KEY_TYPE_DOUBLE] = {"DOUBLE", OVSTAGE_CONFIG_DOUBLE_COUNT},
    [OVSTAGE_CONFIG_KEY_TYPE_STRING] = {"STRING", OVSTAGE_CONFIG_STRING_COUNT},
    [OVSTAGE_CONFIG_KEY_TYPE_BLOB] = {"BLOB", OVSTAGE_CONFIG_BLOB_COUNT},
};

static const char* const MODELS[] = {
    [OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL] = "CPU_INCREMENTAL",
    [OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_INCREMENTAL] = "GPU_INCREMENTAL",
    [OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_GLOBAL] = "GPU_GLOBAL",
};

/* Looks at one entry by itself. All key enums have one size, so that any member of the union tells the number. */
static ovstage_api_status_t check_entry(const ovstage_config_entry_t* entry, size_t i) {
  int type = (int)entry->key_type, key = (int)entry->key.uint64_key;
  if (type < 0 || type >= OVSTAGE_CONFIG_KEY_TYPE_COUNT)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT,
                   "config.entries[%zu].key_type: %d is not a key type, expected 0 to %d", i, type,
                   OVSTAGE_CONFIG_KEY_TYPE_COUNT - 1);
  if (key < 0 || key >= TYPES[type].settings)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "config.entries[%zu].key: there is no %s setting with number %d", i,
                   TYPES[type].name, key);
  if (entry->key_type == OVSTAGE_CONFIG_KEY_TYPE_STRING && ovx_string_has_null_data(&entry->value.string_value))
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "config.entries[%zu].value: ptr is NULL with length %zu", i,
                   entry->value.string_value.length);
  if (entry->key_type == OVSTAGE_CONFIG_KEY_TYPE_UINT64) {
    uint64_t model = entry->value.uint_value;
    if (model < OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL ||
        model > OVSTAGE_HIERARCHY_COMPUTATION_MODEL_RUNTIME_DEFAULT)
      return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT,
                     "config.entries[%zu].value: %" PRIu64
                     " is not a hierarchy computation model, expected CPU_INCREMENTAL "
                     "(1), GPU_INCREMENTAL (2), GPU_GLOBAL (3) or RUNTIME_DEFAULT (4)",
                     i, model);
  }
  return OVSTAGE_OK;
}

/* Called with the lock. Finds the model that the configuration asks for; it starts as the one in force. */
static ovstage_api_status_t check_config(const ovstage_config_t* config, uint64_t* model) {
  if (config == NULL || config->entry_count == 0) return OVSTAGE_OK;
  if (config->entries == NULL)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "config.entries is NULL with entry_count %zu", config->entry_count);
  bool seen[OVSTAGE_CONFIG_KEY_TYPE_COUNT] = {false}; /* no type has more than one setting yet */
  for (size_t i = 0; i < config->entry_count; i++) {
    const ovstage_config_entry_t* entry = &config->entries[i];
    ovstage_api_status_t status = check_entry(entry, i);
    if (status != OVSTAGE_OK) return status;
    if (seen[entry->key_type])
      return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "config.entries[%zu]: %s setting %d is given twice", i,
                     TYPES[entry->key_type].name, (int)entry->key.uint64_key);
    seen[entry->key_type] = true;
    if (entry->key_type == OVSTAGE_CONFIG_KEY_TYPE_UINT64 &&
        entry->value.uint_value != OVSTAGE_HIERARCHY_COMPUTATION_MODEL_RUNTIME_DEFAULT)
      *model = entry->value.uint_value;
  }
  if (alive() && *model != hierarchy_model)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT,
                   "config: the default hierarchy computation model is %s and stays so while a stage or an "
                   "initialisation is alive; %s was asked for",
                   MODELS[hierarchy_model], MODELS[*model]);
  return OVSTAGE_OK;
}

ovstage_api_status_t ovstage_initialize(const ovstage_config_t* config) {
  ovstage_api_status_t status = ov_begin("ovstage_initialize");
  if (status != OVSTAGE_OK) return status;
  pthread_mutex_lock(&lock);
  uint64_t model = hierarchy_model;
  status = check_config(config, &model);
  if (status == OVSTAGE_OK) {
    hierarchy_model = model;
    initialisations++;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

ovstage_api_status_t ovstage_shutdown(void) {
  if (ov_forked) return OVSTAGE_OK;
  ov_begin("ovstage_shutdown");
  pthread_mutex_lock(&lock);
  if (initialisations == 0) {
    pthread_mutex_unlock(&lock);
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT,
                   "ovstage_shutdown has no ovstage_initialize to answer: each initialisation is shut down once");
  }
  initialisations--;
  unlock_after_drop();
  return OVSTAGE_OK;
}

/* ---- Log --------------------------------------------------------------------------------------------------------- */

ovstage_api_status_t ovstage_set_log_callback(ovstage_log_severity_t severity, const ovx_string_t* channel_filter,
                                              ovstage_log_callback_t callback, void* user_data) {
  ovstage_api_status_t status = ov_begin("ovstage_set_log_callback");
  if (status != OVSTAGE_OK) return status;
  if (callback != NULL && !ov_process_alive())
    return ov_fail(OVSTAGE_ERROR_OP_FAILED,
                   "ovstage_set_log_callback needs a running library: create a stage or call ovstage_initialize first");
  return ov_log_install(severity, channel_filter, callback, user_data);
}

ovstage_api_status_t ovstage_flush_log(ovstage_timeout_ns_t timeout) {
  ovstage_api_status_t status = ov_begin("ovstage_flush_log");
  return status == OVSTAGE_OK ? ov_log_wait(ov_log_mark(), timeout) : status;
}

/* ---- One copy per process ---------------------------------------------------------------------------------------- */

/* Two copies would be two engines with a Go runtime each: handles of one mean nothing to the other. */
typedef struct copies {
  const char* own_path;
  uintptr_t own_base;
  const char* other; /* path of another one */
} copies;

static const char* basename_of(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static int look_at(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  copies* found = data;
  if ((uintptr_t)info->dlpi_addr == found->own_base || info->dlpi_name == NULL) return 0;
  if (strcmp(basename_of(info->dlpi_name), basename_of(found->own_path)) != 0) return 0;
  found->other = info->dlpi_name;
  return 1;
}

/* The loader maps a file once, however it is reached, so that another load address is another file, even where a
 * rebuild has put it under the same name. */
static ovstage_api_status_t check_single(void) {
  Dl_info own;
  if (dladdr((const void*)&ov_vtable, &own) == 0 || own.dli_fname == NULL) return OVSTAGE_OK;
  copies found = {own.dli_fname, (uintptr_t)own.dli_fbase, NULL};
  if (dl_iterate_phdr(look_at, &found) == 0) return OVSTAGE_OK;
  return ov_fail(
      OVSTAGE_ERROR_INTERNAL,
      "two copies of the library are loaded in this process, %s and %s: handles of one mean nothing to the other; "
      "load only one of them",
      found.own_path, found.other);
}

/* ---- Instances --------------------------------------------------------------------------------------------------- */

static ovstage_context_t* new_context(const char* name) {
  ovstage_context_t* context = calloc(1, sizeof *context);
  if (context == NULL) return NULL;
  context->bundle = (ovstage_instance_t){&ov_vtable, context};
  context->references = 1;
  context->floor_moves = 1; /* 0 is what a caller has that never asked */
  context->name = strdup(name);
  if (context->name != NULL && ov_op_log_open(&context->ops)) return context;
  ov_context_release(context);
  return NULL;
}

ovstage_api_status_t ovstage_create_instance(const ovstage_instance_desc_t* desc, ovstage_instance_t** out_instance) {
  if (out_instance != NULL) *out_instance = NULL;
  ovstage_api_status_t status = ov_begin("ovstage_create_instance");
  if (status != OVSTAGE_OK) return status;
  if (desc == NULL) return ov_null("desc");
  if (out_instance == NULL) return ov_null("out_instance");
  if ((status = check_single()) != OVSTAGE_OK) return status;
  uint32_t level;
  if ((status = ov_interface_of_process(&level)) != OVSTAGE_OK) return status;
  ovstage_context_t* context = new_context(desc->name != NULL ? desc->name : "");
  if (context == NULL)
    return ov_fail(OVSTAGE_ERROR_OUT_OF_MEMORY, "ovstage_create_instance: out of memory for a stage");
  pthread_mutex_lock(&lock);
  context->hierarchy_model = (uint32_t)hierarchy_model;
  context->level = level;
  status = ovgoCreateInstance(context);
  if (status == OVSTAGE_OK && instances++ == 0) ov_gate_open(&ov_dictionary_gate);
  pthread_mutex_unlock(&lock);
  if (status != OVSTAGE_OK) {
    ov_context_release(context);
    return status;
  }
  ov_log(OVSTAGE_LOG_VERBOSE, "stage \"%s\" created", context->name);
  *out_instance = &context->bundle;
  return OVSTAGE_OK;
}

ovstage_api_status_t ovstage_destroy_instance(ovstage_instance_t* instance) {
  if (ov_forked) return OVSTAGE_OK;
  ov_begin("ovstage_destroy_instance");
  if (instance == NULL) return OVSTAGE_OK;
  ovstage_context_t* context = instance->context;
  if (!ov_gate_shut(&context->gate))
    return ov_fail(OVSTAGE_ERROR_INVALID_HANDLE, "ovstage_destroy_instance called after the stage was destroyed");
  ov_floor_wake(context); /* calls that wait for a floor end now */
  ov_gate_drain(&context->gate);
  ovgoDestroyInstance(context);
  if (context->guarding) ov_memory_guard(0);
  ov_log(OVSTAGE_LOG_VERBOSE, "stage \"%s\" destroyed", context->name);
  pthread_mutex_lock(&lock);
  if (--instances == 0) {
    if (ov_gate_shut(&ov_dictionary_gate)) ov_gate_drain(&ov_dictionary_gate);
    ovgoCloseDictionary();
  }
  unlock_after_drop();
  ov_context_release(context);
  ov_give_back();
  return OVSTAGE_OK;
}

ovstage_api_status_t ovstage_get_usd_stage_id(ovstage_instance_t* instance, uint64_t* out_usd_stage_id) {
  const char* symbol = "ovstage_get_usd_stage_id";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status = out_usd_stage_id == NULL
               ? ov_null("out_usd_stage_id")
               : ov_fail(OVSTAGE_ERROR_NOT_SUPPORTED, "%s: no USD stage stands behind a stage of this library", symbol);
  return ov_leave(instance->context, symbol, status);
}
