/*
 * module.c - import: the types, the functions of the module, and the interpreters that may not have it.
 */
#include "native.h"

/* ---- Functions --------------------------------------------------------------------------------------------------- */

static PyObject* library_version(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  uint32_t level[3];
  return library_level(level) ? Py_BuildValue("(III)", level[0], level[1], level[2]) : NULL;
}

static PyObject* process_counters(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  drop_parked();
  if (native.forked) return raise_forked("process_counters");
  ovstage_go_counters_t counters = {.struct_size = sizeof counters};
  if (native.go) WITHOUT_GIL(native.go->process_counters(&counters)); /* else there has been no stage: all is zero */
  return counters_dict(&counters);
}

static PyObject* trim_memory(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  drop_parked();
  if (native.forked) return raise_forked("trim_memory");
  if (native.go) WITHOUT_GIL(native.go->trim());
  return Py_NewRef(Py_None);
}

static PyObject* initialize(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  (void)module;
  static signature sig = {"initialize", 1, 0, {"hierarchy_model"}, {0}};
  PyObject* given;
  uint64_t model = 0;
  if (!sort_arguments(&sig, args, nargs, kwnames, &given)) return NULL;
  bool chosen = is_given(given);
  if (chosen && !guard_uint64(given, "hierarchy_model", &model)) return NULL;
  ovstage_config_entry_t entry =
      ovstage_config_entry_uint64(OVSTAGE_CONFIG_RUNTIME_DEFAULT_HIERARCHY_COMPUTATION_MODEL, model);
  ovstage_config_t config = {chosen ? &entry : NULL, chosen};
  if (!library_open()) return NULL;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_initialize(&config));
  return status == OVSTAGE_OK ? Py_NewRef(Py_None) : raise_library_error(status);
}

static PyObject* shutdown_process(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  if (!library_open()) return NULL;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_shutdown());
  return status == OVSTAGE_OK ? Py_NewRef(Py_None) : raise_library_error(status);
}

static PyObject* mark_forked(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  native.forked = library_is_open(); /* a child of a process without an engine may start one */
  return Py_NewRef(Py_None);
}

static PyMethodDef own_functions[] = {
    {"library_version", library_version, METH_NOARGS, DOC_library_version},
    {"process_counters", process_counters, METH_NOARGS, DOC_process_counters},
    {"trim_memory", trim_memory, METH_NOARGS, DOC_trim_memory},
    {"initialize", FAST_KEYWORDS(initialize), DOC_initialize},
    {"shutdown", shutdown_process, METH_NOARGS, DOC_shutdown},
    {"_mark_forked", mark_forked, METH_NOARGS, DOC__mark_forked},
    {NULL, NULL, 0, NULL},
};

/* ---- Import ------------------------------------------------------------------------------------------------------ */

static bool intern_names(void) {
  const struct {
    PyObject** slot;
    const char* text;
  } names[] = {
      {&native.name.dlpack, "__dlpack__"},
      {&native.name.dlpack_device, "__dlpack_device__"},
      {&native.name.raw, "raw"},
      {&native.name.dtype, "dtype"},
      {&native.name.stream, "stream"},
      {&native.name.start_ordinal, "start_ordinal"},
      {&native.name.end_ordinal, "end_ordinal"},
      {&native.name.path_list, "_path_list"},
  };
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    if (!(*names[i].slot = PyUnicode_InternFromString(names[i].text))) return false;
  }
  native.empty_tuple = PyTuple_New(0);
  native.ask_versioned = Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  return native.empty_tuple && native.ask_versioned;
}

static bool make_types(PyObject* module) {
  static const struct {
    PyTypeObject** slot;
    PyType_Spec* spec;
    PyMethodDef* const* methods; /* more of them, by file; NULL: none */
  } types[] = {
      {&native.stage, &stage_spec, stage_methods}, {&native.operation, &operation_spec, NULL},
      {&native.handle, &handle_spec, NULL},        {&native.group, &group_spec, group_methods},
      {&native.managed, &managed_spec, NULL},      {&native.buffer, &buffer_spec, NULL},
      {&native.imported, &imported_spec, NULL},    {&native.hold, &hold_spec, NULL},
      {&native.owner, &owner_spec, NULL},          {&native.implicit, &implicit_spec, NULL},
  };
  for (size_t i = 0; i < COUNT_OF(types); i++) {
    PyTypeObject* type = (PyTypeObject*)PyType_FromModuleAndSpec(module, types[i].spec, NULL);
    if (!type) return false;
    *types[i].slot = type;
    for (PyMethodDef* const* table = types[i].methods; table && *table; table++)
      if (!add_methods(type, *table)) return false;
  }
  handle_class* const classes[] = {&query_class, &read_class, &map_class, &hierarchy_class, &ordinal_query_class};
  for (size_t i = 0; i < COUNT_OF(classes); i++) handle_class_add(classes[i]);
  return managed_add_exchange_table(native.managed);
}

/* Python-level forks go through os.fork, whatever started them; the library has a guard of its own for all others. */
static bool watch_forks(PyObject* module) {
  PyObject* os = PyImport_ImportModule("os");
  PyObject* watch = os ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
  PyObject* mark = watch ? PyObject_GetAttrString(module, "_mark_forked") : NULL;
  PyObject* keywords = mark ? Py_BuildValue("{s:O}", "after_in_child", mark) : NULL;
  PyObject* result = keywords ? PyObject_Call(watch, native.empty_tuple, keywords) : NULL;
  Py_XDECREF(result);
  Py_XDECREF(keywords);
  Py_XDECREF(mark);
  Py_XDECREF(watch);
  Py_XDECREF(os);
  return result != NULL;
}

static int execute(PyObject* module) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(
        PyExc_ImportError,
        "ovstage works in the main interpreter only: the engine is one per process, and its objects cannot be "
        "shared between sub-interpreters");
    return -1;
  }
  /* Imported anew after it was removed from sys.modules: the same types, so that old and new objects know each other.
   */
  if (!native.stage && (!load_error_classes() || !intern_names() || !make_types(module) || !watch_forks(module)))
    return -1;
  PyObject* infinite = PyLong_FromUnsignedLongLong(OVSTAGE_TIMEOUT_INFINITE);
  bool added = infinite && PyModule_AddObjectRef(module, "TIMEOUT_INFINITE", infinite) == 0 &&
               PyModule_AddFunctions(module, import_functions) == 0 &&
               PyModule_AddFunctions(module, log_functions) == 0;
  Py_XDECREF(infinite);
  const struct {
    const char* name;
    PyTypeObject* type;
  } types[] = {
      {"Stage", native.stage},
      {"Operation", native.operation},
      {"Handle", native.handle},
      {"Group", native.group},
      {"ManagedDLTensor", native.managed},
      {"Buffer", native.buffer},
      {"ImportedTensor", native.imported},
      {"ImplicitQuery", native.implicit},
  };
  for (size_t i = 0; added && i < COUNT_OF(types); i++) {
    added = PyModule_AddObjectRef(module, types[i].name, (PyObject*)types[i].type) == 0;
  }
  return added ? 0 : -1;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ovstage._native", .m_doc = DOC_module,
    .m_size = 0,           .m_methods = own_functions,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void) {
  /* Free-threaded builds load stable-ABI files, which do not fit them: their objects have another layout. */
  if (strstr(Py_GetVersion(), "free-threading")) {
    PyErr_SetString(
        PyExc_ImportError,
        "this build of ovstage does not support free-threaded Python: use an ordinary CPython 3.11 or newer");
    return NULL;
  }
  return PyModuleDef_Init(&definition);
}
