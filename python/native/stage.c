/*
 * stage.c - Stage: one native instance, and the calls on it that are thin.
 *
 * The bundle is retained from creation to dealloc. A call that comes after destroy, or during it from another thread,
 * is therefore answered by the library instead of being a crash.
 */
#include "native.h"

/* ---- Life -------------------------------------------------------------------------------------------------------- */

/* Find the extension table through any instance. */
static bool find_extension(ovstage_instance_t* instance) {
  if (native.go) return true;
  const void* found = NULL;
  ovstage_api_status_t status = ovstage_query_extension(instance, OVSTAGE_GO_V1_NAME, &found);
  const ovstage_go_v1_t* go = found;
  if (status == OVSTAGE_OK && go->version == 1 && go->struct_size >= sizeof *go) {
    native.go = go;
    return true;
  }
  PyErr_SetString(
      PyExc_RuntimeError,
      "Failed to load ovstage: libovstage.so and _native.abi3.so do not belong together; install the package anew");
  return false;
}

/* The level that was asked for, or that of the process. 0 with an exception. */
static ovstage_go_interface_t interface_named(PyObject* given) {
  ovstage_go_interface_t level = library_interface();
  if (!level || given == Py_None) return level;
  bool text = PyUnicode_Check(given);
  if (text && PyUnicode_CompareWithASCIIString(given, "0.2") == 0) return OVSTAGE_GO_INTERFACE_0_2;
  if (text && PyUnicode_CompareWithASCIIString(given, "0.3") == 0) return OVSTAGE_GO_INTERFACE_0_3;
  PyErr_Format(text ? PyExc_ValueError : PyExc_TypeError, "interface must be '0.2' or '0.3', got %R", given);
  return OVSTAGE_GO_INTERFACE_DEFAULT;
}

static int stage_init(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"name", "interface", NULL};
  Stage* self = (Stage*)object;
  const char* name = NULL;
  PyObject* interface = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zO:Stage", names, &name, &interface)) return -1;
  if (self->instance) {
    PyErr_SetString(PyExc_RuntimeError, "a Stage cannot be initialised twice");
    return -1;
  }
  ovstage_go_stage_options_t options = {sizeof options, interface_named(interface)};
  if (!options.interface_level || !library_open() || !begin_log()) return -1;
  ovstage_instance_desc_t desc = {name};
  ovstage_instance_t* instance = NULL;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_create_instance(&desc, &instance));
  if (status != OVSTAGE_OK) {
    raise_library_error(status);
    return -1;
  }
  bool good = find_extension(instance);
  if (good && (status = native.go->set_stage_options(instance, &options)) != OVSTAGE_OK) {
    raise_library_error(status);
    good = false;
  }
  if (!good) {
    ovstage_destroy_instance(instance);
    return -1;
  }
  native.go->instance_retain(instance);
  native.stages++;
  self->instance = instance;
  self->alive = true;
  return 0;
}

static PyObject* stage_destroy(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (native.forked)
    return Py_NewRef(
        Py_None); /* before anything is locked: the thread that holds the lock may not be in this process */
  drop_parked();
  if (!self->alive) return Py_NewRef(Py_None);
  self->alive = false; /* first: no other thread shall begin a call */
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_destroy_instance(self->instance));
  if (status != OVSTAGE_OK) {
    self->alive = true;
    return raise_library_error(status);
  }
  native.stages--;
  session_end_all(self);
  drop_finished_orphans(self);
  return end_log_of_stages() ? Py_NewRef(Py_None) : NULL;
}

static void stage_dealloc(PyObject* object) {
  Stage* self = (Stage*)object;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (self->alive && !native.forked) {
    self->alive = false;
    WITHOUT_GIL(ovstage_destroy_instance(self->instance));
    native.stages--;
    if (!end_log_of_stages()) PyErr_WriteUnraisable(NULL);
  }
  session_end_all(self);
  drop_finished_orphans(self);
  if (self->instance) native.go->instance_release(self->instance);
  Py_XDECREF(self->refusal);
  Py_XDECREF(self->spare);
  PyErr_Restore(type, value, traceback);
  free_object(object);
}

/* For what is done in Python, under locks of Python, which may be taken for good in a forked child. */
static PyObject* stage_refuse_fork(PyObject* self, PyObject* name) {
  (void)self;
  if (!native.forked) return Py_NewRef(Py_None);
  PyObject* text = PyUnicode_AsUTF8String(name);
  if (text) raise_forked(PyBytes_AsString(text));
  Py_XDECREF(text);
  return NULL;
}

/* For what is made of several calls, so that a refusal names the one that was called. */
static PyObject* stage_begins(PyObject* self, PyObject* name) {
  PyObject* text = PyUnicode_AsUTF8String(name);
  bool good = text && stage_begin((Stage*)self, PyBytes_AsString(text));
  Py_XDECREF(text);
  return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject* stage_alive(PyObject* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(((Stage*)self)->alive);
}

static PyObject* stage_interface(PyObject* object, void* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (!self->instance) {
    raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE, "interface asked before Stage.__init__");
    return NULL;
  }
  bool newer = native.go->stage_interface(self->instance) == OVSTAGE_GO_INTERFACE_0_3;
  return PyUnicode_FromString(newer ? "0.3" : "0.2");
}

/* ---- The type ---------------------------------------------------------------------------------------------------- */

static PyMethodDef own_methods[] = {
    {"destroy", stage_destroy, METH_NOARGS, DOC_Stage_destroy},
    {"_refuse_fork", stage_refuse_fork, METH_O, DOC_Stage__refuse_fork},
    {"_begin", stage_begins, METH_O, DOC_Stage__begin},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef stage_getset[] = {
    {"alive", stage_alive, NULL, DOC_Stage_alive, NULL},
    {"interface", stage_interface, NULL, DOC_Stage_interface, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot stage_slots[] = {
    {Py_tp_doc, DOC_Stage},
    {Py_tp_init, stage_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, stage_dealloc},
    {Py_tp_methods, own_methods},
    {Py_tp_getset, stage_getset},
    {0, NULL},
};

PyType_Spec stage_spec = {
    .name = "ovstage._native.Stage",
    .basicsize = sizeof(Stage),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = stage_slots,
};

PyMethodDef* const stage_methods[] = {
    stage_operation_methods, stage_unasked_methods, stage_dictionary_methods, stage_pathlist_methods,
    stage_write_methods,     stage_query_methods,   stage_read_methods,       stage_map_methods,
    stage_floor_methods,     stage_scene_methods,   stage_contents_methods,   NULL,
};
