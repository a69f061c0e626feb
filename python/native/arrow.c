/*
 * arrow.c - the values of a read group as an Arrow array, through the Arrow PyCapsule interface.
 *
 * One entry a prim, in the order of the group. A value of L lanes is a fixed-size list of L, the array of a prim is a
 * list; prims that lost the attribute are nulls. Arrow readers see the column's own bytes wherever the two layouts
 * agree: rows in the order of the prims, arrays one behind the other. They get a copy where an index map reorders rows,
 * where arrays lie apart, and of truth values, which are bits there and bytes here.
 *
 * Bytes that are not copied are held by a DLPack export: it keeps the block, is counted like every export, and its
 * deleter, like all of Arrow's release callbacks here, is C that runs on any thread and needs no interpreter.
 */
#include "native.h"

/* ---- The Arrow C data interface: this layout is the ABI ---------------------------------------------------------- */

enum { ARROW_FLAG_NULLABLE = 2 };

typedef struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
} ArrowSchema;

typedef struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
} ArrowArray;

static const char schema_name[] = "arrow_schema", array_name[] = "arrow_array";

/* ---- What the group holds ---------------------------------------------------------------------------------------- */

typedef struct {
  const DLTensor* tensors; /* NULL where there is none */
  const uint32_t* rows;    /* which row, or which tensor, each entry has; NULL = its own */
  int64_t entries;
  const char* format; /* Arrow's name of a base element */
  int64_t size;       /* bytes of one */
  int64_t lanes;
  bool ragged, deleted, bits;
  bool wide; /* lists whose offsets do not fit into 32 bits */
} values;

static const char* format_of(DLDataType type) {
  switch (type.code << 8 | type.bits) {
    case kDLInt << 8 | 8:
      return "c";
    case kDLInt << 8 | 16:
      return "s";
    case kDLInt << 8 | 32:
      return "i";
    case kDLInt << 8 | 64:
      return "l";
    case kDLUInt << 8 | 8:
      return "C";
    case kDLUInt << 8 | 16:
      return "S";
    case kDLUInt << 8 | 32:
      return "I";
    case kDLUInt << 8 | 64:
      return "L";
    case kDLFloat << 8 | 16:
      return "e";
    case kDLFloat << 8 | 32:
      return "f";
    case kDLFloat << 8 | 64:
      return "g";
    case kDLBool << 8 | 8:
      return "b";
    default:
      return NULL;
  }
}

/* Tensor, or first row, of entry i. */
static int64_t row_of(const values* v, int64_t i) { return v->rows ? v->rows[i] : i; }

static int64_t extent_of(const values* v, int64_t i) { return v->tensors[row_of(v, i)].shape[0]; }

static int64_t elements_of(const values* v) {
  int64_t total = 0;
  for (int64_t i = 0; i < v->entries; i++) total += extent_of(v, i);
  return total;
}

/* False with an exception set. The group must be open. */
static bool look(const Group* group, values* out) {
  const ovstage_read_group_t* raw = &group->raw.read;
  if (!group->fetched || group->kind != GROUP_READ) {
    PyErr_SetString(PyExc_ValueError, "only a group that was fetched from a read is offered to Arrow readers");
    return false;
  }
  *out = (values){.tensors = raw->data.tensors,
                  .rows = raw->data.index_map,
                  .entries = raw->data.count,
                  .ragged = raw->is_array,
                  .deleted = raw->is_delete};
  if (out->deleted) {
    out->entries = raw->prims.count;
    return true;
  }
  if (!out->tensors || raw->data.tensor_count == 0) {
    PyErr_SetString(PyExc_ValueError, "the group has no tensors that an Arrow reader could be given");
    return false;
  }
  DLDataType type = out->tensors[0].dtype;
  out->format = format_of(type);
  out->size = type.bits / 8;
  out->lanes = row_width(out->tensors);
  out->bits = type.code == kDLBool;
  if (!out->format) {
    char name[32];
    name_type(name, sizeof name, type);
    PyErr_Format(PyExc_ValueError, "Arrow has no type for %s: take the group's values through dlpack() or array()",
                 name);
    return false;
  }
  out->wide = out->ragged && elements_of(out) > INT32_MAX;
  return true;
}

/* ---- Schemas ----------------------------------------------------------------------------------------------------- */

/* A node with its strings and its child. Consumers may move a node out of its parent: each owns itself. */
typedef struct {
  char format[16];
  ArrowSchema child;
  ArrowSchema* children[1];
  char name[];
} schema_node;

static void release_schema(ArrowSchema* self) {
  for (int64_t i = 0; i < self->n_children; i++) {
    if (self->children[i]->release) self->children[i]->release(self->children[i]);
  }
  free(self->private_data);
  self->release = NULL;
}

/* The node's child is all zero until it is filled in by the same means. NULL: out of memory. */
static schema_node* open_schema(ArrowSchema* out, const char* name, bool parent) {
  schema_node* node = calloc(1, sizeof *node + strlen(name) + 1);
  if (!node) return NULL;
  strcpy(node->name, name);
  node->children[0] = &node->child;
  *out = (ArrowSchema){.format = node->format,
                       .name = node->name,
                       .flags = ARROW_FLAG_NULLABLE,
                       .n_children = parent,
                       .children = parent ? node->children : NULL,
                       .release = release_schema,
                       .private_data = node};
  return node;
}

/* List of fixed-size list of element, each layer where there is one. False: out of memory, and nothing is left. */
static bool describe(ArrowSchema* out, const values* v, const char* name, bool ragged) {
  bool fixed = !ragged && v->lanes > 1;
  schema_node* node = open_schema(out, name, ragged || fixed);
  if (!node) return false;
  if (ragged)
    strcpy(node->format, v->wide ? "+L" : "+l");
  else if (fixed)
    PyOS_snprintf(node->format, sizeof node->format, "+w:%d", (int)v->lanes);
  else
    strcpy(node->format, v->deleted ? "n" : v->format);
  values element = *v;
  element.lanes = 1;
  bool good = !(ragged || fixed) || describe(&node->child, ragged ? v : &element, "item", false);
  if (!good) out->release(out);
  return good;
}

static void end_schema(PyObject* capsule) {
  ArrowSchema* schema = PyCapsule_GetPointer(capsule, schema_name);
  if (schema->release) schema->release(schema);
  free(schema);
}

static PyObject* arrow_schema(PyObject* object, PyObject* name) {
  Group* group = (Group*)object;
  values v;
  const char* text = PyUnicode_AsUTF8AndSize(name, NULL);
  if (!text || !group_open(group, "__arrow_c_schema__") || !look(group, &v)) return NULL;
  ArrowSchema* schema = calloc(1, sizeof *schema);
  if (!schema || !describe(schema, &v, text, v.ragged)) {
    free(schema);
    return PyErr_NoMemory();
  }
  PyObject* capsule = PyCapsule_New(schema, schema_name, end_schema);
  if (!capsule) {
    schema->release(schema);
    free(schema);
  }
  return capsule;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

/* What the nodes of one array share: its bytes. */
typedef struct {
  int64_t references;
  DLManagedTensorVersioned* exported; /* the column's bytes; NULL = copied */
  void* copied;
  void* offsets;
} bytes;

static void release_bytes(bytes* shared) {
  if (__atomic_sub_fetch(&shared->references, 1, __ATOMIC_ACQ_REL) != 0) return;
  if (shared->exported) shared->exported->deleter(shared->exported);
  free(shared->copied);
  free(shared->offsets);
  free(shared);
}

typedef struct {
  bytes* shared;
  const void* buffers[2];
  ArrowArray child;
  ArrowArray* children[1];
} array_node;

static void release_array(ArrowArray* self) {
  array_node* node = self->private_data;
  for (int64_t i = 0; i < self->n_children; i++) {
    if (self->children[i]->release) self->children[i]->release(self->children[i]);
  }
  release_bytes(node->shared);
  free(node);
  self->release = NULL;
}

/* `data` is the second buffer of the node, after the validity bits, which nothing here has; NULL = it has one only. */
static array_node* open_array(ArrowArray* out, bytes* shared, int64_t length, const void* data, bool parent) {
  array_node* node = calloc(1, sizeof *node);
  if (!node) return NULL;
  node->shared = shared;
  node->buffers[1] = data;
  node->children[0] = &node->child;
  __atomic_add_fetch(&shared->references, 1, __ATOMIC_RELAXED);
  *out = (ArrowArray){.length = length,
                      .n_buffers = data ? 2 : 1,
                      .n_children = parent,
                      .buffers = node->buffers,
                      .children = parent ? node->children : NULL,
                      .release = release_array,
                      .private_data = node};
  return node;
}

/* `count` values of v->lanes elements that begin at `data`. False: out of memory, and nothing is left. */
static bool lay_out_values(ArrowArray* out, const values* v, bytes* shared, int64_t count, const void* data) {
  if (v->lanes == 1) return open_array(out, shared, count, data, false) != NULL;
  array_node* node = open_array(out, shared, count, NULL, true);
  if (!node) return false;
  bool good = open_array(&node->child, shared, count * v->lanes, data, false) != NULL;
  if (!good) out->release(out);
  return good;
}

static const void* address(const DLTensor* t) { return (const char*)t->data + t->byte_offset; }

/* True where the values lie one behind the other, as Arrow wants them, from *out on. */
static bool lie_in_order(const values* v, const void** out) {
  static const uint8_t nothing[256] __attribute__((aligned(256)));
  if (v->bits || (!v->ragged && v->rows)) return false;
  if (!v->ragged) {
    *out = address(v->tensors);
    return true;
  }
  *out = start_of_run(v->tensors, v->rows, (size_t)v->entries, (size_t)(v->lanes * v->size));
  if (*out) return true;
  *out = nothing;
  return elements_of(v) == 0;
}

/* One behind the other. Truth values become bits on the way, lowest first. */
static void gather(const values* v, char* to) {
  int64_t width = v->lanes * v->size, bit = 0;
  for (int64_t i = 0; i < v->entries; i++) {
    int64_t row = row_of(v, i), count = v->ragged ? extent_of(v, i) : 1;
    const char* from = v->ragged ? address(&v->tensors[row]) : (const char*)address(v->tensors) + row * width;
    for (int64_t k = 0; v->bits && k < count * v->lanes; k++, bit++) to[bit / 8] |= (char)((from[k] != 0) << bit % 8);
    if (v->bits) continue;
    memcpy(to, from, (size_t)(count * width));
    to += count * width;
  }
}

static bool write_offsets(const values* v, bytes* shared) {
  shared->offsets = malloc(((size_t)v->entries + 1) * (v->wide ? sizeof(int64_t) : sizeof(int32_t)));
  if (!shared->offsets) return false;
  int64_t end = 0;
  for (int64_t i = 0; i <= v->entries; i++) {
    if (v->wide)
      ((int64_t*)shared->offsets)[i] = end;
    else
      ((int32_t*)shared->offsets)[i] = (int32_t)end;
    if (i < v->entries) end += extent_of(v, i);
  }
  return true;
}

/* The bytes of the values, the column's own or copies. False with an exception set. */
static bool take_bytes(Group* group, const values* v, bytes* shared, const void** data) {
  keep held;
  if (!group_hold_payload(group, "__arrow_c_array__", &held)) return false;
  bool good = true;
  if (held.block && lie_in_order(v, data)) {
    ovstage_instance_t* instance = group->stage ? group->stage->instance : NULL;
    shared->exported = native.go->export_versioned(instance, held.block, v->tensors, DLPACK_FLAG_BITMASK_READ_ONLY);
    good = shared->exported != NULL;
  } else {
    int64_t elements = (v->ragged ? elements_of(v) : v->entries) * v->lanes;
    good = (shared->copied = calloc(1, (size_t)(v->bits ? elements / 8 + 1 : elements * v->size + 1))) != NULL;
    if (good) WITHOUT_GIL(gather(v, shared->copied));
    *data = shared->copied;
  }
  good = good && (!v->ragged || write_offsets(v, shared));
  if (!good) PyErr_NoMemory();
  keep_release(&held);
  return good;
}

static void end_array(PyObject* capsule) {
  ArrowArray* array = PyCapsule_GetPointer(capsule, array_name);
  if (array->release) array->release(array);
  free(array);
}

/* False with an exception set, and nothing is left. */
static bool fill(ArrowArray* out, Group* group, const values* v, bytes* shared) {
  const void* data = NULL;
  if (v->deleted) {
    array_node* node = open_array(out, shared, v->entries, NULL, false);
    out->n_buffers = 0;
    out->null_count = v->entries;
    return node || PyErr_NoMemory();
  }
  if (!take_bytes(group, v, shared, &data)) return false;
  bool good;
  if (v->ragged) {
    array_node* node = open_array(out, shared, v->entries, shared->offsets, true);
    good = node && lay_out_values(&node->child, v, shared, elements_of(v), data);
    if (node && !good) out->release(out);
  } else {
    good = lay_out_values(out, v, shared, v->entries, data);
  }
  return good || PyErr_NoMemory();
}

static PyObject* arrow_array(PyObject* object, PyObject* unused) {
  (void)unused;
  Group* group = (Group*)object;
  values v;
  if (!group_open(group, "__arrow_c_array__") || !look(group, &v)) return NULL;
  ArrowArray* array = calloc(1, sizeof *array);
  bytes* shared = calloc(1, sizeof *shared);
  if (!array || !shared) {
    free(array);
    free(shared);
    return PyErr_NoMemory();
  }
  shared->references = 1;
  bool filled = fill(array, group, &v, shared);
  release_bytes(shared); /* the nodes have references of their own */
  PyObject* capsule = filled ? PyCapsule_New(array, array_name, end_array) : NULL;
  if (capsule) return capsule;
  if (filled) array->release(array);
  free(array);
  return NULL;
}

PyMethodDef group_arrow_methods[] = {
    {"_arrow_schema", arrow_schema, METH_O, DOC_Group__arrow_schema},
    {"_arrow_array", arrow_array, METH_NOARGS, DOC_Group__arrow_array},
    {NULL, NULL, 0, NULL},
};
