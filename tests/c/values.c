/*
 * values.c - what can be written, and how it is read: parts of a query, array columns, deletes, ranges, and tensors
 * that change owner.
 *
 * Rows are spelled as text: "1 2||6|-" are four prims that hold an array of two floats, an empty one, one of one float,
 * and nothing.
 */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 130, LONGEST = 8, ROOM = 4096 };

/* ---- Payloads ---------------------------------------------------------------------------------------------------- */

typedef struct {
  float values[MANY];
  int64_t shapes[LONGEST];
  DLTensor tensors[LONGEST]; /* one for each row of the text */
  ovstage_write_data_t data;
} payload;

/* Not to be copied: it points into itself. */
static payload* fixed(payload* p, const char* text) {
  memset(p, 0, sizeof *p);
  float* value = p->values;
  uint32_t count = 0;
  for (bool more = true; more; count++) {
    float* first = value;
    char* end = NULL;
    for (float f = strtof(text, &end); end != text; f = strtof(text, &end)) {
      *value++ = f;
      text = end;
    }
    p->shapes[count] = value - first;
    p->tensors[count] = tensor_of(value > first ? first : NULL, type_of(kDLFloat, 32, 1), 1, &p->shapes[count]);
    more = *text++ == '|';
  }
  p->data = payload_of(p->tensors, count);
  return p;
}

static payload* arrays(payload* p, const char* text) {
  fixed(p, text)->data.is_array = true;
  return p;
}

/* The same, for the leading `count` prims, from these source rows. */
static payload* gathered(payload* p, const uint32_t* index_map, uint32_t count) {
  p->data.index_map = index_map;
  p->data.count = count;
  return p;
}

static payload* masked(payload* p, const uint64_t* mask, uint32_t count) {
  p->data.mask = mask;
  p->data.count = count;
  return p;
}

static ovstage_enqueue_result_t put(const scene* s, ovstage_query_handle_t query, ovx_token_t attribute,
                                    ovstage_ordinal_t ordinal, const payload* p) {
  return ovstage_write_attribute(s->stage, query, by_token(attribute), ordinal, p->data, OVSTAGE_PRIM_MODE_UPSERT);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* What one prim holds. */
typedef struct {
  int64_t length; /* -1: nothing */
  float values[LONGEST];
} row;

static bool is_canonical(const DLTensor* tensor) {
  return CHECK(tensor->ndim > 0 && tensor->shape != NULL) &&
         CHECK(shows(tensor, tensor->shape[0], stored_type(tensor), OVSTAGE_SEMANTIC_NONE, level()));
}

/* The row of covered prim k, by the rules of ovstage_data_t. */
static row row_of(const ovstage_read_group_t* group, uint32_t k) {
  const uint32_t at = group->data.index_map != NULL ? group->data.index_map[k] : k;
  const DLTensor* tensor = &group->data.tensors[group->is_array ? at : 0];
  row r;
  memset(&r, 0, sizeof r);
  if (!is_canonical(tensor)) return r;
  r.length = (group->is_array ? tensor->shape[0] : 1) * stored_type(tensor).lanes;
  if (!CHECK(r.length <= LONGEST)) return r;
  const float* values = (const float*)tensor->data + (group->is_array ? 0 : at * (size_t)r.length);
  memcpy(r.values, values, (size_t)r.length * sizeof(float));
  return r;
}

/* Enters a group's rows at the positions of its prims. */
static void enter(const ovstage_read_group_t* group, row* rows, size_t count) {
  CHECK(!group->is_delete && group->data.count == group->prims.count);
  CHECK(group->data.mask == NULL && (!group->is_array || group->data.index_map == NULL));
  CHECK(group->data.tensor_count == (group->is_array ? group->prims.count : 1));
  for (uint32_t k = 0; k < group->prims.count; k++) {
    const uint32_t at = group->prims.index_map != NULL ? group->prims.index_map[k] : group->prims.offset + k;
    if (CHECK(at < count)) rows[at] = row_of(group, k);
  }
}

static void read_rows(const scene* s, ovstage_query_handle_t query, ovx_token_t attribute, ovstage_ordinal_t end,
                      row* rows, size_t count) {
  for (size_t i = 0; i < count; i++) rows[i].length = -1;
  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  if (!DONE(s, ovstage_read_attributes(s->stage, query, &attribute, 1, latest(end), &read))) return;
  ovstage_read_group_t group;
  while (ovstage_fetch_read_next(s->stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK) {
    CHECK(group.attribute == attribute);
    enter(&group, rows, count);
    CHECK(ovstage_release_group(s->stage, &group) == OVSTAGE_OK);
  }
  DONE(s, ovstage_release_read(s->stage, read));
}

static void spell(const row* rows, size_t count, char* text) {
  for (size_t i = 0; i < count; i++) {
    if (i > 0) *text++ = '|';
    if (rows[i].length < 0) *text++ = '-';
    for (int64_t k = 0; k < rows[i].length; k++) text += sprintf(text, k > 0 ? " %g" : "%g", (double)rows[i].values[k]);
  }
  *text = '\0';
}

/* Reads one attribute and wants these rows, however many groups they come in. */
static void expect_rows(const scene* s, ovstage_query_handle_t query, ovx_token_t attribute, ovstage_ordinal_t end,
                        const char* expected, const char* function, int line) {
  size_t count = 1;
  for (const char* c = expected; *c != '\0'; c++) count += *c == '|';
  row rows[LONGEST];
  char text[ROOM];
  read_rows(s, query, attribute, end, rows, count);
  spell(rows, count, text);
  if (!check(strcmp(text, expected) == 0, expected, function, line)) printf("    the rows are %s\n", text);
}

#define EXPECT_ROWS(scene, query, attribute, end, expected) \
  expect_rows((scene), (query), (attribute), (end), (expected), __func__, __LINE__)

/* A scene with a fourth prim. */
static const char* const FOUR[4] = {"/World/A", "/World/B", "/World/C", "/World/D"};

/* /World/P0, /World/P1, ... */
static ovstage_query_handle_t query_of_many(const scene* s) {
  char paths[MANY][16];
  ovx_string_t strings[MANY];
  for (int i = 0; i < MANY; i++) {
    sprintf(paths[i], "/World/P%d", i);
    strings[i] = view(paths[i]);
  }
  ovx_primpath_list_t list = OVX_INVALID_PRIMPATH_LIST;
  CHECK(path_dictionary_create_path_list_from_strings(s->dictionary, strings, MANY, &list).status == OVX_API_SUCCESS);
  ovstage_query_handle_t query = OVSTAGE_INVALID_QUERY_HANDLE;
  CHECK(ovstage_query_from_path_list(s->stage, list, &query) == OVSTAGE_OK);
  CHECK(path_dictionary_release_path_list_reference(s->dictionary, list).status == OVX_API_SUCCESS);
  return query;
}

/* ---- Parts of a query -------------------------------------------------------------------------------------------- */

static void check_index_map(void) {
  scene s;
  if (!open_scene(&s, "index map")) return;
  ovx_token_t value = token_of(&s, "value");
  ovstage_query_handle_t four = query_of(&s, FOUR, 4);
  payload p;
  DONE(&s, put(&s, four, value, 1, fixed(&p, "10 20 30 40")));
  const uint32_t cycle[3] = {1, 2, 0};
  DONE(&s, put(&s, four, value, 2, gathered(fixed(&p, "111 222 333"), cycle, 3)));
  DONE(&s, seal(&s, 2));
  EXPECT_ROWS(&s, four, value, 2, "222|333|111|40"); /* a gather: the entries are source rows */

  const uint32_t zeros[4] = {0, 0, 0, 0};
  DONE(&s, put(&s, four, value, 3, gathered(fixed(&p, "7 8 9"), zeros, 4))); /* one for all, others not referred to */
  DONE(&s, seal(&s, 3));
  EXPECT_ROWS(&s, four, value, 3, "7|7|7|7");

  const uint32_t beyond[2] = {0, 1};
  CHECK_REFUSED(put(&s, four, value, 4, gathered(fixed(&p, "5"), beyond, 2)), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "index_map[1] is 1");
  CHECK_REFUSED(put(&s, four, value, 4, gathered(fixed(&p, "5"), zeros, 0)), OVSTAGE_ERROR_INVALID_ARGUMENT, "count");
  CHECK_REFUSED(put(&s, four, value, 4, gathered(fixed(&p, "5"), zeros, 5)), OVSTAGE_ERROR_INVALID_ARGUMENT, "count");
  const uint64_t mask = 1;
  CHECK_REFUSED(put(&s, four, value, 4, masked(gathered(fixed(&p, "5"), zeros, 1), &mask, 1)),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "mask");
  DONE(&s, seal(&s, 4));
  EXPECT_ROWS(&s, four, value, 4, "7|7|7|7");
  DONE(&s, ovstage_release_query(s.stage, four));
  close_scene(&s);
}

static void check_mask(void) {
  scene s;
  if (!open_scene(&s, "mask")) return;
  ovx_token_t value = token_of(&s, "value"), fresh = token_of(&s, "fresh");
  ovstage_query_handle_t four = query_of(&s, FOUR, 4);
  payload p;
  DONE(&s, put(&s, four, value, 1, fixed(&p, "222 333 111 40")));
  const uint64_t last = 0x8, odd = ~(uint64_t)0x5, none = 0;
  DONE(&s, put(&s, four, value, 2, masked(fixed(&p, "0 0 0 44"), &last, 4)));
  DONE(&s, put(&s, four, value, 3, masked(fixed(&p, "1 2 3"), &odd, 3))); /* surplus bits mean nothing */
  DONE(&s, put(&s, four, value, 3, masked(fixed(&p, "1 2 3"), &none, 3)));
  DONE(&s, put(&s, four, fresh, 3, masked(fixed(&p, "1 2 3 4"), &last, 4)));
  DONE(&s, seal(&s, 3));
  EXPECT_ROWS(&s, four, value, 3, "222|2|111|44");
  EXPECT_ROWS(&s, four, fresh, 3, "-|-|-|4"); /* only what is selected comes into being */
  CHECK_REFUSED(put(&s, four, value, 4, masked(fixed(&p, "4"), &last, 4)), OVSTAGE_ERROR_INVALID_ARGUMENT, "1 row");
  CHECK_REFUSED(put(&s, four, value, 4, masked(fixed(&p, "4"), &last, 0)), OVSTAGE_ERROR_INVALID_ARGUMENT, "count");
  DONE(&s, ovstage_release_query(s.stage, four));
  close_scene(&s);
}

/* Three words of a mask: bit i % 64 of word i / 64. */
static void check_wide_mask(void) {
  scene s;
  if (!open_scene(&s, "wide mask")) return;
  ovx_token_t value = token_of(&s, "value");
  ovstage_query_handle_t many = query_of_many(&s);
  payload p;
  fixed(&p, "0");
  p.shapes[0] = MANY;
  DONE(&s, put(&s, many, value, 1, &p));
  for (int i = 0; i < MANY; i++) p.values[i] = (float)i;
  uint64_t mask[3] = {0, 0, 0};
  for (int i = 0; i < MANY; i += 3) mask[i / 64] |= 1ULL << (i % 64);
  DONE(&s, put(&s, many, value, 2, masked(&p, mask, MANY)));
  DONE(&s, seal(&s, 2));
  row rows[MANY];
  read_rows(&s, many, value, 2, rows, MANY);
  for (int i = 0; i < MANY; i++) CHECK(rows[i].length == 1 && rows[i].values[0] == (i % 3 == 0 ? (float)i : 0));
  DONE(&s, ovstage_release_query(s.stage, many));
  close_scene(&s);
}

static void check_count(void) {
  scene s;
  if (!open_scene(&s, "count")) return;
  ovx_token_t value = token_of(&s, "value");
  ovstage_query_handle_t four = query_of(&s, FOUR, 4);
  payload p;
  fixed(&p, "1 2")->data.count = 2;
  DONE(&s, put(&s, four, value, 1, &p));
  DONE(&s, seal(&s, 1));
  EXPECT_ROWS(&s, four, value, 1, "1|2|-|-"); /* the leading prims */
  p.data.count = 5;
  CHECK_REFUSED(put(&s, four, value, 2, &p), OVSTAGE_ERROR_INVALID_ARGUMENT, "count is 5");
  p.data.count = 3;
  CHECK_REFUSED(put(&s, four, value, 2, &p), OVSTAGE_ERROR_INVALID_ARGUMENT, "3 prims");
  p.data.count = 0;
  CHECK_REFUSED(put(&s, four, value, 2, &p), OVSTAGE_ERROR_INVALID_ARGUMENT, "4 prims");
  DONE(&s, ovstage_release_query(s.stage, four));
  close_scene(&s);
}

/* INSERT looks at the prims that would be written only; UPDATE leaves absent ones alone. */
static void check_modes(void) {
  scene s;
  if (!open_scene(&s, "modes")) return;
  ovx_token_t value = token_of(&s, "value"), other = token_of(&s, "other");
  ovstage_query_handle_t four = query_of(&s, FOUR, 4);
  ovx_string_or_token_t name = by_token(value);
  payload p;
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  const uint64_t last = 0x8, all = 0xf;
  masked(fixed(&p, "0 0 0 4"), &all, 4);
  CHECK_REFUSED(ovstage_write_attribute(s.stage, four, name, 2, p.data, OVSTAGE_PRIM_MODE_INSERT),
                OVSTAGE_ERROR_PRIM_NOT_FOUND, "/World/A");
  DONE(&s, seal(&s, 1));
  EXPECT_ROWS(&s, four, value, 1, "1|2|3|-"); /* all or nothing */

  fixed(&p, "10 20 30 40");
  DONE(&s, ovstage_write_attribute(s.stage, four, name, 2, p.data, OVSTAGE_GO_PRIM_MODE_UPDATE));
  DONE(&s, ovstage_write_attribute(s.stage, four, by_token(other), 2, p.data, OVSTAGE_GO_PRIM_MODE_UPDATE));
  DONE(&s, seal(&s, 2));
  EXPECT_ROWS(&s, four, value, 2, "10|20|30|-");
  EXPECT_ROWS(&s, four, other, 2, "10|20|30|-"); /* the prim has to exist, not the attribute */

  CHECK_REFUSED(ovstage_write_attribute(s.stage, four, name, 3, p.data, OVSTAGE_GO_PRIM_MODE_REQUIRE),
                OVSTAGE_ERROR_PRIM_NOT_FOUND, "prim /World/D does not exist");
  masked(fixed(&p, "0 0 0 4"), &last, 4);
  DONE(&s, ovstage_write_attribute(s.stage, four, name, 3, p.data, OVSTAGE_PRIM_MODE_INSERT));
  DONE(&s, seal(&s, 3));
  EXPECT_ROWS(&s, four, value, 3, "10|20|30|4");
  fixed(&p, "1 2 3 4");
  DONE(&s, ovstage_write_attribute(s.stage, four, name, 4, p.data, OVSTAGE_GO_PRIM_MODE_REQUIRE));
  DONE(&s, seal(&s, 4));
  EXPECT_ROWS(&s, four, value, 4, "1|2|3|4");
  DONE(&s, ovstage_release_query(s.stage, four));
  close_scene(&s);
}

/* Each entry has a payload of its own kind; what is wrong with one keeps all of them from being written. */
static void check_batches(void) {
  scene s;
  if (!open_scene(&s, "batches")) return;
  ovx_token_t a = token_of(&s, "a"), b = token_of(&s, "b"), c = token_of(&s, "c");
  const uint32_t one[1] = {1};
  payload plain, ragged, part;
  ovstage_attribute_write_t writes[3];
  writes[0].attribute = by_token(a);
  writes[0].data = fixed(&plain, "1 2 3")->data;
  writes[1].attribute = by_name("b");
  writes[1].data = arrays(&ragged, "1|2 3|")->data;
  writes[2].attribute = by_token(c);
  writes[2].data = gathered(fixed(&part, "9"), one, 1)->data;
  CHECK_REFUSED(ovstage_write_attributes(s.stage, s.query, writes, 3, 1, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "\"c\"");
  DONE(&s, seal(&s, 1));
  EXPECT_ROWS(&s, s.query, a, 1, "-|-|-"); /* nor the good ones */
  EXPECT_ROWS(&s, s.query, b, 1, "-|-|-");

  writes[2].data = gathered(fixed(&part, "8 9"), one, 1)->data;
  DONE(&s, ovstage_write_attributes(s.stage, s.query, writes, 3, 2, OVSTAGE_PRIM_MODE_UPSERT));
  DONE(&s, ovstage_write_attributes(s.stage, s.query, NULL, 0, 2, OVSTAGE_PRIM_MODE_UPSERT));
  DONE(&s, seal(&s, 2));
  EXPECT_ROWS(&s, s.query, a, 2, "1|2|3");
  EXPECT_ROWS(&s, s.query, b, 2, "1|2 3|");
  EXPECT_ROWS(&s, s.query, c, 2, "9|-|-");

  writes[1].attribute = by_name("a");
  CHECK_REFUSED(ovstage_write_attributes(s.stage, s.query, writes, 2, 3, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "\"a\""); /* named twice, once by its token */
  writes[1].attribute = by_token(0xdeadbeef);
  CHECK_REFUSED(ovstage_write_attributes(s.stage, s.query, writes, 2, 3, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "writes[1]");
  close_scene(&s);
}

/* ---- Array columns ----------------------------------------------------------------------------------------------- */

static void check_arrays(void) {
  scene s;
  if (!open_scene(&s, "arrays")) return;
  ovx_token_t value = token_of(&s, "value");
  const char* turned[3] = {"/World/C", "/World/D", "/World/B"};
  ovstage_query_handle_t query = query_of(&s, turned, 3);
  payload p;
  DONE(&s, put(&s, s.query, value, 1, arrays(&p, "1 2||6")));
  DONE(&s, seal(&s, 1));
  EXPECT_ROWS(&s, s.query, value, 1, "1 2||6");
  DONE(&s, put(&s, query, value, 2, arrays(&p, "7 8 9|10|11")));
  DONE(&s, seal(&s, 2));
  EXPECT_ROWS(&s, s.query, value, 2, "1 2|11|7 8 9");
  EXPECT_ROWS(&s, query, value, 2, "7 8 9|10|11");
  DONE(&s, put(&s, s.query, value, 3, arrays(&p, "||")));
  DONE(&s, seal(&s, 3));
  EXPECT_ROWS(&s, s.query, value, 3, "||");

  const uint64_t middle = 0x2;
  const uint32_t swapped[3] = {1, 0, 0};
  DONE(&s, put(&s, s.query, value, 4, gathered(arrays(&p, "1|2 2"), swapped, 3)));
  DONE(&s, put(&s, s.query, value, 5, masked(arrays(&p, "|5 5 5|"), &middle, 3)));
  DONE(&s, seal(&s, 5));
  EXPECT_ROWS(&s, s.query, value, 5, "2 2|5 5 5|1");
  DONE(&s, ovstage_release_query(s.stage, query));
  close_scene(&s);
}

/* A single tensor is cut into rows of equal length. */
static void check_packed_arrays(void) {
  scene s;
  if (!open_scene(&s, "packed arrays")) return;
  ovx_token_t value = token_of(&s, "value");
  const uint32_t last[2] = {2, 0};
  payload p;
  DONE(&s, put(&s, s.query, value, 1, arrays(&p, "1 2 3 4 5 6")));
  DONE(&s, seal(&s, 1));
  EXPECT_ROWS(&s, s.query, value, 1, "1 2|3 4|5 6");
  DONE(&s, put(&s, s.query, value, 2, gathered(arrays(&p, "1 2 3"), last, 2))); /* three rows: the highest entry is 2 */
  DONE(&s, seal(&s, 2));
  EXPECT_ROWS(&s, s.query, value, 2, "3|1|5 6");
  CHECK_REFUSED(put(&s, s.query, value, 3, arrays(&p, "1 2 3 4")), OVSTAGE_ERROR_INVALID_ARGUMENT, "divide evenly");
  DONE(&s, put(&s, s.query, value, 3, arrays(&p, ""))); /* no elements: no element for each */
  DONE(&s, seal(&s, 3));
  EXPECT_ROWS(&s, s.query, value, 3, "||");
  close_scene(&s);
}

/* The descriptor of a group, entry by entry; lanes are taken as sent, trailing axes are forgotten but not folded. */
static void check_array_layout(void) {
  scene s;
  if (!open_scene(&s, "array layout")) return;
  ovx_token_t value = token_of(&s, "value");
  float points[PRIMS * 6] = {0};
  for (int i = 0; i < PRIMS * 6; i++) points[i] = (float)i;
  int64_t shapes[PRIMS][2] = {{2, 1}, {0, 0}, {1, 3}};
  DLTensor tensors[PRIMS];
  for (int i = 0; i < PRIMS; i++) tensors[i] = tensor_of(&points[6 * i], type_of(kDLFloat, 32, 2), 2, shapes[i]);
  ovstage_write_data_t data = payload_of(tensors, PRIMS);
  data.is_array = true;
  data.semantic = OVSTAGE_SEMANTIC_TEXTURE_COORDINATE;
  DONE(&s, ovstage_write_attribute(s.stage, s.query, by_token(value), 1, data, OVSTAGE_PRIM_MODE_UPSERT));
  DONE(&s, seal(&s, 1));
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  const int64_t lengths[PRIMS] = {2, 0, 3};
  if (read_first(&s, s.query, value, 1, &read, &group)) {
    CHECK(group.is_array && !group.is_delete && group.semantic == OVSTAGE_SEMANTIC_TEXTURE_COORDINATE);
    CHECK(group.ordinal == 1 && group.meta.attribute_write_floor_ordinal == 1 && group.meta.layout_generation >= 1);
    CHECK(group.prims.count == PRIMS && group.data.count == PRIMS && group.data.tensor_count == PRIMS);
    CHECK(group.data.index_map == NULL && group.data.mask == NULL && group.data.cuda_sync.stream == 0);
    for (int i = 0; i < PRIMS; i++) {
      const DLTensor* tensor = &group.data.tensors[i];
      CHECK(shows(tensor, lengths[i], tensors[i].dtype, group.semantic, level()));
      CHECK(memcmp(tensor->data, &points[6 * i], (size_t)lengths[i] * 2 * sizeof(float)) == 0);
    }
    CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
    CHECK(ovstage_fetch_read_next(s.stage, read, 0, &group) == OVSTAGE_ERROR_END_OF_ITERATION);
  }
  DONE(&s, ovstage_release_read(s.stage, read));
  close_scene(&s);
}

static void check_array_refusals(void) {
  scene s;
  if (!open_scene(&s, "array refusals")) return;
  ovx_token_t plain = token_of(&s, "plain"), ragged = token_of(&s, "ragged");
  const ovstage_api_status_t bad = OVSTAGE_ERROR_INVALID_ARGUMENT;
  payload p;
  DONE(&s, put(&s, s.query, plain, 1, fixed(&p, "1 2 3")));
  DONE(&s, put(&s, s.query, ragged, 1, arrays(&p, "1|2|3")));
  CHECK_REFUSED(put(&s, s.query, plain, 2, arrays(&p, "1|2|3")), bad, "\"plain\""); /* a column has one kind */
  CHECK_REFUSED(put(&s, s.query, ragged, 2, fixed(&p, "1 2 3")), bad, "\"ragged\"");
  CHECK_REFUSED(put(&s, s.query, ragged, 2, fixed(&p, "1|2|3")), bad, "is_array");
  CHECK_REFUSED(put(&s, s.query, ragged, 2, arrays(&p, "1|2")), bad, "2 tensors");
  arrays(&p, "1|2|3")->tensors[2].dtype = type_of(kDLInt, 32, 1);
  CHECK_REFUSED(put(&s, s.query, ragged, 2, &p), bad, "int32");
  arrays(&p, "1|2|3")->tensors[1].device.device_type = kDLCUDA;
  CHECK_REFUSED(put(&s, s.query, ragged, 2, &p), OVSTAGE_ERROR_NOT_SUPPORTED, "tensors[1]");
  arrays(&p, "1|2|3")->data.semantic = OVSTAGE_SEMANTIC_TOKEN_ID;
  CHECK_REFUSED(put(&s, s.query, ragged, 2, &p), bad, "TOKEN_ID");
  fixed(&p, "1 2 3")->tensors[0].dtype = type_of(kDLUInt, 64, 1);
  p.data.semantic = OVSTAGE_SEMANTIC_RELATIONSHIP_PATH_ID; /* an array, always */
  p.shapes[0] = 1;
  const uint32_t zeros[PRIMS] = {0, 0, 0};
  CHECK_REFUSED(put(&s, s.query, token_of(&s, "targets"), 2, gathered(&p, zeros, PRIMS)), bad, "RELATIONSHIP_PATH_ID");
  DONE(&s, seal(&s, 2));
  EXPECT_ROWS(&s, s.query, ragged, 2, "1|2|3");
  close_scene(&s);
}

/* All tensors of a group show one buffer, which keeps the exports of any of them alive, whatever else goes. */
static void check_array_exports(void) {
  scene s;
  if (!open_scene(&s, "array exports")) return;
  ovx_token_t value = token_of(&s, "value");
  payload p;
  DONE(&s, put(&s, s.query, value, 1, arrays(&p, "1 2||3 4 5")));
  DONE(&s, seal(&s, 1));
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  DLManagedTensorVersioned* exported[PRIMS] = {NULL, NULL, NULL};
  const int64_t lengths[PRIMS] = {2, 0, 3};
  if (read_first(&s, s.query, value, 1, &read, &group)) {
    const DLTensor* tensors = group.data.tensors;
    ovstage_go_block_t* block = s.go->tensors_block(tensors);
    CHECK(block != NULL);
    for (int i = 0; i < PRIMS; i++) exported[i] = s.go->export_versioned(NULL, block, &tensors[i], 0);
    s.go->tensors_retain(tensors);
    CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
    for (int i = 0; i < PRIMS; i++) CHECK(is_canonical(&tensors[i]) && tensors[i].shape[0] == lengths[i]);
    s.go->tensors_release(tensors);
  }
  DONE(&s, ovstage_release_read(s.stage, read));
  close_scene(&s);
  const float values[PRIMS][3] = {{1, 2}, {0}, {3, 4, 5}};
  for (int i = 0; i < PRIMS && exported[i] != NULL; i++) {
    CHECK(exported[i]->dl_tensor.shape[0] == lengths[i] && exported[i]->dl_tensor.data != NULL);
    CHECK(memcmp(exported[i]->dl_tensor.data, values[i], (size_t)lengths[i] * sizeof(float)) == 0);
    exported[i]->deleter(exported[i]);
  }
}

/* What was fetched before a column changed, in whatever way, still shows what it showed. */
static void check_array_snapshots(void) {
  scene s;
  if (!open_scene(&s, "array snapshots")) return;
  ovx_token_t value = token_of(&s, "value");
  payload p;
  DONE(&s, put(&s, s.query, value, 1, arrays(&p, "1 2|3|4")));
  DONE(&s, seal(&s, 1));
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  if (read_first(&s, s.query, value, 1, &read, &group)) {
    const uint64_t middle = 0x2;
    for (ovstage_ordinal_t i = 2; i < 30; i++) {
      DONE(&s, put(&s, s.query, value, i, masked(arrays(&p, "|5 6 7 8|"), &middle, 3)));
      DONE(&s, seal(&s, i));
    }
    row held[PRIMS];
    char text[ROOM];
    enter(&group, held, PRIMS);
    spell(held, PRIMS, text);
    CHECK(strcmp(text, "1 2|3|4") == 0);
    CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  }
  DONE(&s, ovstage_release_read(s.stage, read));
  EXPECT_ROWS(&s, s.query, value, 29, "1 2|5 6 7 8|4");
  close_scene(&s);
}

/* ---- Maps of array columns --------------------------------------------------------------------------------------- */

/* Opens a session with these lengths and takes its one group. */
static bool map_arrays(const scene* s, ovx_token_t attribute, ovstage_ordinal_t ordinal, const size_t* sizes,
                       ovstage_map_handle_t* map, ovstage_map_group_t* group) {
  ovstage_map_desc_t desc = map_of(attribute, type_of(kDLFloat, 32, 1));
  *map = OVSTAGE_INVALID_MAP_HANDLE;
  memset(group, 0, sizeof *group);
  if (!DONE(s, ovstage_map_attribute(s->stage, s->query, &desc, ordinal, sizes, PRIMS, map))) return false;
  if (!CHECK(ovstage_fetch_map_next(s->stage, *map, OVSTAGE_TIMEOUT_INFINITE, group) == OVSTAGE_OK)) return false;
  CHECK(group->prims.count == PRIMS && group->prims.offset == 0 && group->prims.index_map == NULL);
  CHECK(group->data.count == PRIMS && group->data.index_map == NULL);
  if (!CHECK(group->data.tensor_count == PRIMS)) return false;
  for (int i = 0; i < PRIMS; i++)
    CHECK(is_canonical(&group->data.tensors[i]) && group->data.tensors[i].shape[0] == (int64_t)sizes[i]);
  ovstage_map_group_t none;
  return CHECK(ovstage_fetch_map_next(s->stage, *map, 0, &none) == OVSTAGE_ERROR_END_OF_ITERATION);
}

static float* mapped_row(const ovstage_map_group_t* group, int i) { return (float*)group->data.tensors[i].data; }

static void check_map_arrays(void) {
  scene s;
  if (!open_scene(&s, "map arrays")) return;
  ovx_token_t value = token_of(&s, "value");
  ovstage_map_handle_t map;
  ovstage_map_group_t group;
  const size_t first[PRIMS] = {2, 0, 3}, second[PRIMS] = {1, 2, 4};
  if (map_arrays(&s, value, 1, first, &map, &group)) {
    for (int k = 0; k < 3; k++) CHECK(mapped_row(&group, 2)[k] == 0); /* new values start from zeros */
    mapped_row(&group, 0)[1] = 12;
    mapped_row(&group, 2)[2] = 23;
    DONE(&s, ovstage_unmap_group(s.stage, map, &group, NO_SYNC));
    CHECK_REFUSED(ovstage_unmap_group(s.stage, map, &group, NO_SYNC), OVSTAGE_ERROR_INVALID_HANDLE, "data.tensors");
    DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
  }
  DONE(&s, seal(&s, 1));
  EXPECT_ROWS(&s, s.query, value, 1, "0 12||0 0 23");

  if (map_arrays(&s, value, 2, second, &map, &group)) { /* what both lengths have in common, then zeros */
    CHECK(mapped_row(&group, 0)[0] == 0 && mapped_row(&group, 1)[1] == 0);
    CHECK(mapped_row(&group, 2)[2] == 23 && mapped_row(&group, 2)[3] == 0);
    mapped_row(&group, 1)[0] = 5;
    DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
  }
  DONE(&s, seal(&s, 2));
  EXPECT_ROWS(&s, s.query, value, 2, "0|5 0|0 0 23 0");
  if (map_arrays(&s, value, 3, first, &map, &group)) {
    mapped_row(&group, 0)[0] = 99;
    CHECK(s.go->abort_map(s.stage, map) == OVSTAGE_OK);
  }
  DONE(&s, seal(&s, 3));
  EXPECT_ROWS(&s, s.query, value, 3, "0|5 0|0 0 23 0");
  close_scene(&s);
}

static void check_map_array_refusals(void) {
  scene s;
  if (!open_scene(&s, "map array refusals")) return;
  ovx_token_t ragged = token_of(&s, "ragged"), plain = token_of(&s, "plain");
  const ovstage_api_status_t bad = OVSTAGE_ERROR_INVALID_ARGUMENT;
  const size_t sizes[PRIMS] = {1, 1, 1}, huge[PRIMS] = {1, SIZE_MAX / 2, 1};
  payload p;
  DONE(&s, put(&s, s.query, ragged, 1, arrays(&p, "1|2|3")));
  DONE(&s, put(&s, s.query, plain, 1, fixed(&p, "1 2 3")));
  ovstage_map_handle_t map = 4711;
  ovstage_map_desc_t desc = map_of(ragged, EXISTING);
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 2, NULL, PRIMS, &map), bad, "element_sizes is NULL");
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 2, NULL, 0, &map), bad, "ragged"); /* it is an array */
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 2, sizes, 2, &map), bad, "2 entries");
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 2, sizes, 0, &map), bad, "0 entries");
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 2, huge, PRIMS, &map), OVSTAGE_ERROR_OUT_OF_MEMORY,
                "element_sizes[1]");
  desc = map_of(plain, EXISTING);
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 2, sizes, PRIMS, &map), bad, "plain"); /* it is not */
  CHECK(map == OVSTAGE_INVALID_MAP_HANDLE);
  close_scene(&s);
}

/* A view of one row that is still held at the commit changes none of what was committed. */
static void check_map_array_live_view(void) {
  scene s;
  if (!open_scene(&s, "map array live view")) return;
  ovx_token_t value = token_of(&s, "value");
  ovstage_map_handle_t map;
  ovstage_map_group_t group;
  const size_t sizes[PRIMS] = {2, 1, 0};
  if (map_arrays(&s, value, 1, sizes, &map, &group)) {
    float* values = mapped_row(&group, 0);
    values[0] = 1, values[1] = 2;
    ovstage_go_block_t* block = s.go->tensors_block(group.data.tensors);
    DLManagedTensorVersioned* exported = s.go->export_versioned(s.stage, block, &group.data.tensors[0], 0);
    DONE(&s, s.go->unmap_attribute(s.stage, map, NO_SYNC, OVSTAGE_GO_COMMIT_AUTO));
    values[0] = values[1] = -1; /* too late, and harmless */
    DONE(&s, seal(&s, 1));
    EXPECT_ROWS(&s, s.query, value, 1, "1 2|0|");
    exported->deleter(exported);
  }
  close_scene(&s);
}

/* ---- Deletes ----------------------------------------------------------------------------------------------------- */

static size_t count_attributes(const scene* s, ovstage_query_handle_t query) {
  ovstage_query_result_t found;
  if (!CHECK(ovstage_fetch_query_result(s->stage, query, 0, &found) == OVSTAGE_OK)) return 99;
  const size_t count = found.attribute_count;
  CHECK(ovstage_release_query_result(s->stage, &found) == OVSTAGE_OK);
  return count;
}

static void check_deletes(void) {
  scene s;
  if (!open_scene(&s, "deletes")) return;
  ovx_token_t a = token_of(&s, "a"), b = token_of(&s, "b");
  ovstage_query_handle_t second = query_of(&s, &FOUR[1], 1);
  payload p;
  DONE(&s, write_floats(&s, a, 1, 1, 2, 3));
  DONE(&s, put(&s, s.query, b, 1, arrays(&p, "1|2|3 4")));
  DONE(&s, seal(&s, 1));
  CHECK(count_attributes(&s, second) == 2);
  ovx_string_or_token_t names[2] = {by_token(a), by_name("nobody-has-this")};
  DONE(&s, ovstage_delete_attributes(s.stage, second, names, 2, 2)); /* removing what is absent is fine */
  EXPECT_ROWS(&s, s.query, a, 9, "1|2|3");                           /* not sealed yet */
  DONE(&s, seal(&s, 2));
  EXPECT_ROWS(&s, s.query, a, 9, "1|-|3");
  EXPECT_ROWS(&s, s.query, b, 9, "1|2|3 4");
  CHECK(count_attributes(&s, second) == 1);

  DONE(&s, ovstage_delete_attributes(s.stage, second, NULL, 0, 3)); /* all of the prim */
  DONE(&s, ovstage_delete_attributes(s.stage, second, NULL, 0, 3));
  DONE(&s, seal(&s, 3));
  EXPECT_ROWS(&s, s.query, b, 9, "1|-|3 4");
  CHECK(count_attributes(&s, second) == 0);

  fixed(&p, "7")->tensors[0].dtype = type_of(kDLInt, 32, 1); /* of another schema, where there was a prim before */
  DONE(&s, ovstage_write_attribute(s.stage, second, by_token(a), 4, p.data, OVSTAGE_PRIM_MODE_INSERT));
  DONE(&s, seal(&s, 4));
  CHECK(count_attributes(&s, second) == 1);
  DONE(&s, ovstage_release_query(s.stage, second));
  close_scene(&s);
}

static void check_delete_refusals(void) {
  scene s;
  if (!open_scene(&s, "delete refusals")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  DONE(&s, seal(&s, 2));
  const ovstage_api_status_t sealed = OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION, bad = OVSTAGE_ERROR_INVALID_ARGUMENT;
  ovx_string_or_token_t names[2] = {by_token(value), by_name("usd-parent")};
  CHECK_REFUSED(ovstage_delete_attributes(s.stage, s.query, names, 1, 2), sealed, "value");
  CHECK_REFUSED(ovstage_delete_attributes(s.stage, s.query, NULL, 0, 2), sealed, "value");
  CHECK_REFUSED(ovstage_delete_attributes(s.stage, s.query, names, 2, 3), OVSTAGE_ERROR_NOT_SUPPORTED, "usd-parent");
  CHECK_REFUSED(ovstage_delete_attributes(s.stage, s.query, NULL, 2, 3), bad, "attributes is NULL");
  CHECK_REFUSED(ovstage_delete_attributes(s.stage, s.query, names, SIZE_MAX, 3), bad, "attribute_count");
  names[1] = by_token(0xdeadbeef);
  CHECK_REFUSED(ovstage_delete_attributes(s.stage, s.query, names, 2, 3), bad, "attributes[1]");
  names[1] = by_name("");
  CHECK_REFUSED(ovstage_delete_attributes(s.stage, s.query, names, 2, 3), bad, "attributes[1]");
  CHECK_REFUSED(ovstage_delete_attributes(s.stage, 0xdeadbeef, names, 1, 3), OVSTAGE_ERROR_INVALID_HANDLE, "query");
  DONE(&s, seal(&s, 3));
  EXPECT_ROWS(&s, s.query, value, 3, "1|2|3");
  close_scene(&s);
}

/* ---- Ranges ------------------------------------------------------------------------------------------------------ */

static ovstage_ordinal_range_t between(ovstage_ordinal_t start, ovstage_ordinal_t end) {
  ovstage_ordinal_range_t range = latest(end);
  range.start_ordinal = start;
  range.has_start_ordinal = true;
  return range;
}

static void check_tombstone(const ovstage_read_group_t* group) {
  CHECK(group->is_delete && group->prims.count == 1 && group->prims.index_map == NULL && group->prims.offset == 1);
  CHECK(group->data.tensors == NULL && group->data.tensor_count == 0 && group->data.count == 0);
  CHECK(group->data.index_map == NULL && group->data.mask == NULL);
}

/* A range shows what changed in it: values, and what was lost as a tombstone. */
static void check_ranges(void) {
  scene s;
  if (!open_scene(&s, "ranges")) return;
  ovx_token_t value = token_of(&s, "value");
  ovx_string_or_token_t name = by_token(value);
  ovstage_query_handle_t second = query_of(&s, &FOUR[1], 1);
  const uint32_t zero = 0;
  payload p;
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));
  DONE(&s, put(&s, s.query, value, 2, gathered(fixed(&p, "10"), &zero, 1)));
  DONE(&s, ovstage_delete_attributes(s.stage, second, &name, 1, 2));
  DONE(&s, seal(&s, 2));
  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  ovstage_read_group_t group;
  DONE(&s, ovstage_read_attributes(s.stage, s.query, &value, 1, between(2, 2), &read));
  int values = 0, tombstones = 0;
  while (ovstage_fetch_read_next(s.stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK) {
    CHECK(group.attribute == value && group.ordinal == 2 && group.read_group_id != OVSTAGE_INVALID_READ_GROUP_ID);
    if (group.is_delete) {
      check_tombstone(&group);
      tombstones++;
    } else {
      CHECK(group.prims.count == 1 && row_of(&group, 0).values[0] == 10);
      values++;
    }
    CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  }
  CHECK(values == 1 && tombstones == 1);
  DONE(&s, ovstage_release_read(s.stage, read));

  CHECK_REFUSED(ovstage_read_attributes(s.stage, s.query, &value, 1, between(3, 2), &read),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "3");
  ovstage_ordinal_query_handle_t question = OVSTAGE_INVALID_ORDINAL_QUERY_HANDLE;
  ovstage_ordinal_t oldest = 4711;
  DONE(&s, ovstage_get_oldest_preserved_ordinal(s.stage, &question));
  CHECK(ovstage_fetch_ordinal(s.stage, question, OVSTAGE_TIMEOUT_INFINITE, &oldest) == OVSTAGE_OK && oldest <= 2);
  DONE(&s, ovstage_release_ordinal_query(s.stage, question));
  DONE(&s, ovstage_release_query(s.stage, second));
  close_scene(&s);
}

/* ---- Tensors that change owner ----------------------------------------------------------------------------------- */

/* A tensor that can be given away. Its deleter counts, and spoils the values: nobody may need them any more. */
typedef struct {
  DLManagedTensorVersioned tensor;
  int deletions;
  int64_t shape[1];
  float* values;
  float room[LONGEST + 32];
} gift;

static void take_back(DLManagedTensorVersioned* self) {
  gift* g = (gift*)self->manager_ctx;
  g->deletions++;
  for (int64_t i = 0; i < g->shape[0]; i++) g->values[i] = -1;
}

/* `beside` floats behind an address that a column could take over. */
static const DLManagedTensorVersioned* wrap(gift* g, int beside, const char* text) {
  payload p;
  fixed(&p, text);
  memset(g, 0, sizeof *g);
  g->values = (float*)(((uintptr_t)g->room + 63) & ~(uintptr_t)63) + beside;
  g->shape[0] = p.shapes[0];
  memcpy(g->values, p.values, (size_t)g->shape[0] * sizeof(float));
  g->tensor.version.major = DLPACK_MAJOR_VERSION;
  g->tensor.version.minor = DLPACK_MINOR_VERSION;
  g->tensor.manager_ctx = g;
  g->tensor.deleter = take_back;
  g->tensor.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  g->tensor.dl_tensor = tensor_of(g->values, type_of(kDLFloat, 32, 1), 1, g->shape);
  return &g->tensor;
}

static ovstage_write_data_t giving(const DLManagedTensorVersioned* const* tensors, uint32_t count) {
  ovstage_write_data_t data = payload_of(NULL, count);
  data.managed_tensors = tensors;
  return data;
}

static ovstage_enqueue_result_t give(const scene* s, ovx_token_t attribute, ovstage_ordinal_t ordinal,
                                     ovstage_write_data_t data) {
  return ovstage_write_attribute(s->stage, s->query, by_token(attribute), ordinal, data, OVSTAGE_PRIM_MODE_UPSERT);
}

static const void* address_of(const scene* s, ovx_token_t attribute, ovstage_ordinal_t end) {
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  const void* address = NULL;
  if (read_first(s, s->query, attribute, end, &read, &group)) {
    address = group.data.tensors->data;
    CHECK(ovstage_release_group(s->stage, &group) == OVSTAGE_OK);
  }
  DONE(s, ovstage_release_read(s->stage, read));
  return address;
}

/* What covers a column is the column, and its deleter runs when the column and all readers have let go. */
static void check_adoption(void) {
  scene s;
  if (!open_scene(&s, "adoption")) return;
  ovx_token_t value = token_of(&s, "value");
  gift first, second, third;
  const DLManagedTensorVersioned* tensors[3] = {wrap(&first, 0, "1 2 3"), wrap(&second, 0, "4 5 6"),
                                                wrap(&third, 0, "7 8 9")};
  third.tensor.deleter = NULL; /* nothing to be done */
  DONE(&s, give(&s, value, 1, giving(&tensors[0], 1)));
  DONE(&s, seal(&s, 1));
  CHECK(first.deletions == 0 && address_of(&s, value, 1) == first.values);

  const uint64_t middle = 0x2;
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  payload p;
  CHECK(read_first(&s, s.query, value, 1, &read, &group));
  DONE(&s, put(&s, s.query, value, 2, masked(fixed(&p, "0 20 0"), &middle, 3)));
  DONE(&s, seal(&s, 2));
  EXPECT_FLOATS(&s, value, 2, 1, 20, 3);
  CHECK(first.values[1] == 2); /* never written to */
  DONE(&s, give(&s, value, 3, giving(&tensors[1], 1)));
  DONE(&s, seal(&s, 3));
  EXPECT_FLOATS(&s, value, 3, 4, 5, 6);
  CHECK(first.deletions == 0); /* a reader holds it */
  CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  CHECK(first.deletions == 1);
  DONE(&s, ovstage_release_read(s.stage, read));

  DONE(&s, give(&s, value, 4, giving(&tensors[2], 1)));
  DONE(&s, seal(&s, 4));
  EXPECT_FLOATS(&s, value, 4, 7, 8, 9);
  CHECK(second.deletions == 1);
  close_scene(&s);
  CHECK(first.deletions == 1 && second.deletions == 1);
}

/* An export outlives the stage, and the deleter waits for it. */
static void check_adoption_export(void) {
  scene s;
  if (!open_scene(&s, "adoption export")) return;
  ovx_token_t value = token_of(&s, "value");
  gift g;
  const DLManagedTensorVersioned* tensor = wrap(&g, 0, "1 2 3");
  DONE(&s, give(&s, value, 1, giving(&tensor, 1)));
  DONE(&s, seal(&s, 1));
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  DLManagedTensorVersioned* exported = NULL;
  if (read_first(&s, s.query, value, 1, &read, &group)) {
    exported = s.go->export_versioned(NULL, s.go->tensors_block(group.data.tensors), group.data.tensors, 0);
    CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  }
  DONE(&s, ovstage_release_read(s.stage, read));
  close_scene(&s);
  CHECK(g.deletions == 0);
  if (!CHECK(exported != NULL)) return;
  CHECK(exported->dl_tensor.data == g.values);
  exported->deleter(exported);
  CHECK(g.deletions == 1);
}

/* What a deleter can do: look at the stage that lets go of its tensor, and write to it. */
typedef struct {
  gift given;
  const scene* at;
  ovx_token_t value;
} caller;

static void take_back_and_call(DLManagedTensorVersioned* self) {
  caller* c = (caller*)self->manager_ctx;
  payload p;
  ovstage_read_group_t unknown;
  memset(&unknown, 0, sizeof unknown);
  c->given.deletions++;
  DONE(c->at, put(c->at, c->at->query, c->value, 100, fixed(&p, "1 1 1")));
  CHECK(ovstage_release_group(c->at->stage, &unknown) != OVSTAGE_OK);
}

static const DLManagedTensorVersioned* wrap_caller(caller* c, const scene* s, ovx_token_t value, int beside) {
  wrap(&c->given, beside, "1 2 3");
  c->given.tensor.manager_ctx = c;
  c->given.tensor.deleter = take_back_and_call;
  c->at = s;
  c->value = value;
  return &c->given.tensor;
}

/* A deleter runs when the call has let go of everything, and what the call has said stays said. */
static void check_deleter_that_calls(void) {
  scene s;
  if (!open_scene(&s, "deleter that calls")) return;
  ovx_token_t value = token_of(&s, "value"), other = token_of(&s, "other");
  caller adopted, copied, refused;
  const DLManagedTensorVersioned* tensors[3] = {wrap_caller(&adopted, &s, other, 0), wrap_caller(&copied, &s, other, 1),
                                                wrap_caller(&refused, &s, other, 0)};
  payload p;
  DONE(&s, give(&s, value, 1, giving(&tensors[0], 1)));
  DONE(&s, seal(&s, 1));
  DONE(&s, put(&s, s.query, value, 2, fixed(&p, "4 5 6")));
  CHECK(adopted.given.deletions == 0);
  DONE(&s, seal(&s, 2)); /* the column lets go of it under the stage's mutex */
  CHECK(adopted.given.deletions == 1);
  DONE(&s, give(&s, value, 3, giving(&tensors[1], 1)));
  CHECK(copied.given.deletions == 1);
  CHECK_FAILS(give(&s, value, 2, giving(&tensors[2], 1)).status, OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION, "write floor");
  CHECK(refused.given.deletions == 1);

  wrap_caller(&adopted, &s, other, 0);
  DONE(&s, give(&s, value, 4, giving(&tensors[0], 1)));
  adopted.given.tensor.deleter = take_back; /* the stage has gone when it runs */
  close_scene(&s);
  CHECK(adopted.given.deletions == 1);
}

/* What was fetched and kept is valid memory, whoever takes the group or the stage away meanwhile. */
static void check_kept_groups(void) {
  scene s;
  if (!open_scene(&s, "kept groups")) return;
  ovx_token_t value = token_of(&s, "value");
  payload p;
  DONE(&s, put(&s, s.query, value, 1, fixed(&p, "1 2 3")));
  DONE(&s, seal(&s, 1));
  ovstage_read_handle_t read;
  ovstage_read_group_t group, last;
  const DLTensor *kept = NULL, *none = (const DLTensor*)&p;
  DONE(&s, ovstage_read_attributes(s.stage, s.query, &value, 1, latest(1), &read));
  CHECK(s.go->fetch_read(s.stage, read, 0, &group, NULL) == OVSTAGE_ERROR_INVALID_ARGUMENT);
  CHECK(s.go->fetch_read(s.stage, read, 0, NULL, &kept) == OVSTAGE_ERROR_INVALID_ARGUMENT);
  CHECK(s.go->fetch_read(s.stage, read, 0, &group, &kept) == OVSTAGE_OK && kept == group.data.tensors);
  CHECK(s.go->fetch_read(s.stage, read, 0, &last, &none) == OVSTAGE_ERROR_END_OF_ITERATION && none == NULL);
  DONE(&s, ovstage_release_read(s.stage, read));
  CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  close_scene(&s);
  CHECK(((const float*)kept->data)[2] == 3);
  s.go->tensors_release(kept);
}

/* What does not cover a column, or lies askew, is copied and has been deleted when the call returns. */
static void check_managed_copies(void) {
  scene s;
  if (!open_scene(&s, "managed copies")) return;
  ovx_token_t value = token_of(&s, "value"), ragged = token_of(&s, "ragged");
  gift g, rows[PRIMS];
  const DLManagedTensorVersioned* tensor = wrap(&g, 1, "1 2 3");
  DONE(&s, give(&s, value, 1, giving(&tensor, 1)));
  CHECK(g.deletions == 1);
  DONE(&s, seal(&s, 1));
  EXPECT_FLOATS(&s, value, 1, 1, 2, 3);

  const uint32_t turned[PRIMS] = {2, 1, 0};
  wrap(&g, 0, "4 5 6");
  ovstage_write_data_t data = giving(&tensor, 1);
  data.index_map = turned;
  data.count = PRIMS;
  DONE(&s, give(&s, value, 2, data));
  CHECK(g.deletions == 1);
  const int64_t backwards[1] = {-1};
  wrap(&g, 0, "7 8 9");
  g.tensor.dl_tensor.strides = (int64_t*)backwards;
  g.tensor.dl_tensor.data = g.values + 2;
  DONE(&s, seal(&s, 2));
  EXPECT_FLOATS(&s, value, 2, 6, 5, 4);
  DONE(&s, give(&s, value, 4, giving(&tensor, 1)));
  CHECK(g.deletions == 1);
  wrap(&g, 0, "0 0 0"); /* covers, but is not the newest */
  DONE(&s, give(&s, value, 3, giving(&tensor, 1)));
  CHECK(g.deletions == 1);
  DONE(&s, seal(&s, 4));
  EXPECT_FLOATS(&s, value, 4, 9, 8, 7);

  const DLManagedTensorVersioned* arrays_given[PRIMS] = {wrap(&rows[0], 0, "1 2"), wrap(&rows[1], 0, ""),
                                                         wrap(&rows[2], 0, "3")};
  data = giving(arrays_given, PRIMS);
  data.is_array = true;
  DONE(&s, give(&s, ragged, 5, data));
  for (int i = 0; i < PRIMS; i++) CHECK(rows[i].deletions == 1);
  DONE(&s, seal(&s, 5));
  EXPECT_ROWS(&s, s.query, ragged, 5, "1 2||3");
  close_scene(&s);
  CHECK(g.deletions == 1 && rows[0].deletions == 1);
}

/* Wants a call that gives `g` away to be refused and its deleter to have run, once. */
static void given_in_vain(gift* g, ovstage_enqueue_result_t result, ovstage_api_status_t expected, const char* part,
                          int line) {
  check(result.status == expected && result.op_index == OVSTAGE_INVALID_OP_ID, part, __func__, line);
  check(contains(ovstage_get_last_error(), part), part, __func__, line);
  check(g->deletions == 1, "deleted once", __func__, line);
  g->deletions = 0;
}

#define IN_VAIN(gift, call, expected, part) given_in_vain((gift), (call), (expected), (part), __LINE__)

static void check_managed_refusals(void) {
  scene s;
  if (!open_scene(&s, "managed refusals")) return;
  ovx_token_t value = token_of(&s, "value");
  const ovstage_api_status_t bad = OVSTAGE_ERROR_INVALID_ARGUMENT;
  gift g;
  const DLManagedTensorVersioned* tensor = wrap(&g, 0, "1 2 3");
  const DLManagedTensorVersioned* with_null[2] = {NULL, tensor};
  const DLManagedTensorVersioned* twice[2] = {tensor, tensor};
  ovstage_write_data_t data = giving(&tensor, 1);
  data.tensors = &tensor->dl_tensor;
  IN_VAIN(&g, give(&s, value, 1, data), bad, "managed_tensors");
  data = giving(with_null, 2);
  data.is_array = true;
  IN_VAIN(&g, give(&s, value, 1, data), bad, "managed_tensors[0] is NULL");
  data = giving(twice, 2);
  data.is_array = true;
  IN_VAIN(&g, give(&s, value, 1, data), bad, "twice");
  data = giving(&tensor, 1);
  IN_VAIN(&g, give(&s, value, 0, data), OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION, "value");
  IN_VAIN(&g, give(&s, 0xdeadbeef, 1, data), bad, "token");
  data.count = 2;
  IN_VAIN(&g, give(&s, value, 1, data), bad, "2 prims");
  data.count = 0;
  IN_VAIN(&g, ovstage_write_attribute(s.stage, 0xdeadbeef, by_token(value), 1, data, OVSTAGE_PRIM_MODE_UPSERT),
          OVSTAGE_ERROR_INVALID_HANDLE, "query");
  IN_VAIN(&g, s.stage->vtable->write_attribute(NULL, s.query, by_token(value), 1, data, OVSTAGE_PRIM_MODE_UPSERT), bad,
          "NULL");
  s.go->instance_retain(s.stage);
  close_scene(&s);
  IN_VAIN(&g, give(&s, value, 1, data), OVSTAGE_ERROR_INVALID_HANDLE, "destroyed");
  s.go->instance_release(s.stage);
}

/* A tensor of a later DLPack is not looked into: what would be its descriptor is anything. */
static void check_managed_versions(void) {
  scene s;
  if (!open_scene(&s, "managed versions")) return;
  ovx_token_t value = token_of(&s, "value");
  gift g;
  const DLManagedTensorVersioned* tensor = wrap(&g, 0, "1 2 3");
  g.tensor.version.minor = DLPACK_MINOR_VERSION + 10; /* whose layout is the same */
  DONE(&s, give(&s, value, 1, giving(&tensor, 1)));
  CHECK(g.deletions == 0);
  DONE(&s, seal(&s, 1));
  EXPECT_FLOATS(&s, value, 1, 1, 2, 3);

  gift later;
  tensor = wrap(&later, 0, "4 5 6");
  later.tensor.version.major = DLPACK_MAJOR_VERSION + 1;
  memset(&later.tensor.dl_tensor, 0xff, sizeof later.tensor.dl_tensor);
  IN_VAIN(&later, give(&s, value, 2, giving(&tensor, 1)), OVSTAGE_ERROR_NOT_SUPPORTED, "DLPack 2");
  close_scene(&s);
  CHECK(g.deletions == 1);
}

/* One call gives away more than a few, and each comes back once, whether or not the batch is accepted. */
static void check_managed_batches(void) {
  enum { ENTRIES = 6 };
  scene s;
  if (!open_scene(&s, "managed batches")) return;
  static const char* const names[ENTRIES] = {"a", "b", "c", "d", "e", "f"};
  gift gifts[ENTRIES];
  const DLManagedTensorVersioned* tensors[ENTRIES];
  ovstage_attribute_write_t writes[ENTRIES];
  for (int i = 0; i < ENTRIES; i++) {
    tensors[i] = wrap(&gifts[i], 0, "1 2 3");
    writes[i].attribute = by_name(names[i]);
    writes[i].data = giving(&tensors[i], 1);
  }
  gifts[ENTRIES - 1].shape[0] = 2; /* the last does not fit */
  CHECK_REFUSED(ovstage_write_attributes(s.stage, s.query, writes, ENTRIES, 1, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "\"f\"");
  for (int i = 0; i < ENTRIES; i++) CHECK(gifts[i].deletions == 1);
  for (int i = 0; i < ENTRIES; i++) wrap(&gifts[i], 0, "4 5 6");
  tensors[3] = tensors[1]; /* given twice */
  CHECK_REFUSED(ovstage_write_attributes(s.stage, s.query, writes, ENTRIES, 1, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "twice");
  for (int i = 0; i < ENTRIES; i++) CHECK(gifts[i].deletions == (i == 3 ? 0 : 1));
  CHECK_REFUSED(ovstage_write_attributes(s.stage, s.query, writes, SIZE_MAX, 1, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "write_count"); /* nor is it looked into */

  tensors[3] = &gifts[3].tensor;
  for (int i = 0; i < ENTRIES; i++) wrap(&gifts[i], i % 2, "7 8 9"); /* every other one is askew */
  DONE(&s, ovstage_write_attributes(s.stage, s.query, writes, ENTRIES, 1, OVSTAGE_PRIM_MODE_UPSERT));
  DONE(&s, seal(&s, 1));
  for (int i = 0; i < ENTRIES; i++) {
    CHECK(gifts[i].deletions == i % 2);
    EXPECT_FLOATS(&s, token_of(&s, names[i]), 1, 7, 8, 9);
  }
  close_scene(&s);
  for (int i = 0; i < ENTRIES; i++) CHECK(gifts[i].deletions == 1);
}

/* ---- Publications ------------------------------------------------------------------------------------------------ */

static ovstage_go_batch_t batch_of(ovstage_query_handle_t query, const ovstage_attribute_write_t* writes,
                                   size_t count) {
  ovstage_go_batch_t batch;
  batch.query = query;
  batch.writes = writes;
  batch.write_count = count;
  return batch;
}

/* Deletes, a change of type and new prims in one operation. What is wrong with the last batch keeps all of it away. */
static void check_publication(void) {
  scene s;
  if (!open_scene(&s, "publication")) return;
  ovx_token_t a = token_of(&s, "a"), b = token_of(&s, "b");
  ovstage_query_handle_t first = query_of(&s, FOUR, 1), second = query_of(&s, &FOUR[1], 1);
  ovstage_query_handle_t four = query_of(&s, FOUR, 4);
  payload numbers, reformed, runs;
  DONE(&s, write_floats(&s, a, 1, 1, 2, 3));
  DONE(&s, write_floats(&s, b, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));

  ovx_string_or_token_t name = by_token(b);
  ovstage_go_delete_t deletes[2];
  memset(deletes, 0, sizeof deletes);
  deletes[0].query = second; /* the prim */
  deletes[1].query = first;
  deletes[1].attributes = &name;
  deletes[1].attribute_count = 1;
  ovstage_attribute_write_t writes[2], reform[1];
  writes[0].attribute = by_token(a);
  writes[0].data = fixed(&numbers, "10 20 30 40")->data;
  writes[1].attribute = by_name("runs");
  writes[1].data = arrays(&runs, "1|2 3||4")->data;
  reform[0].attribute = by_name("b");
  reform[0].data = arrays(&reformed, "7 8 9")->data;
  ovstage_go_batch_t batches[3] = {batch_of(four, writes, 2), batch_of(first, reform, 1), batch_of(second, reform, 1)};
  CHECK_REFUSED(s.go->publish(s.stage, NULL, 0, batches, 2, 2), OVSTAGE_ERROR_INVALID_ARGUMENT, "\"b\"");
  CHECK_REFUSED(s.go->publish(s.stage, deletes, 2, batches, 3, 1), OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION, "\"a\"");
  batches[2].writes = writes;
  CHECK_REFUSED(s.go->publish(s.stage, deletes, 2, batches, 3, 2), OVSTAGE_ERROR_INVALID_ARGUMENT, "has 4 rows");
  batches[2].query = 0xdeadbeef;
  CHECK_REFUSED(s.go->publish(s.stage, deletes, 2, batches, 3, 2), OVSTAGE_ERROR_INVALID_HANDLE, "query handle");
  DONE(&s, seal(&s, 2));
  EXPECT_ROWS(&s, four, a, 2, "1|2|3|-");
  EXPECT_ROWS(&s, four, b, 2, "1|2|3|-");
  EXPECT_ROWS(&s, four, token_of(&s, "runs"), 2, "-|-|-|-");

  DONE(&s, s.go->publish(s.stage, deletes, 2, batches, 2, 3));
  DONE(&s, s.go->publish(s.stage, NULL, 0, NULL, 0, 3));
  DONE(&s, seal(&s, 3));
  EXPECT_ROWS(&s, four, a, 3, "10|20|30|40"); /* the second prim went, and came back */
  EXPECT_ROWS(&s, first, b, 3, "7 8 9");
  EXPECT_ROWS(&s, second, b, 3, "-");
  EXPECT_ROWS(&s, four, token_of(&s, "runs"), 3, "1|2 3||4");
  DONE(&s, ovstage_release_query(s.stage, first));
  DONE(&s, ovstage_release_query(s.stage, second));
  DONE(&s, ovstage_release_query(s.stage, four));
  close_scene(&s);
}

/* The name of a type is part of what a column is, groups and the list of attributes have it, and a name that is none is
 * refused before anything is written. */
static void check_type_names(void) {
  scene s;
  if (!open_scene(&s, "type names")) return;
  ovx_token_t a = token_of(&s, "a"), string = token_of(&s, "string");
  ovstage_query_handle_t four = query_of(&s, FOUR, 4);
  payload numbers, more;
  ovstage_attribute_write_t writes[2];
  writes[0].attribute = by_token(a);
  writes[0].data = fixed(&numbers, "1 2 3 4")->data;
  writes[1].attribute = by_name("b");
  writes[1].data = fixed(&more, "5 6 7 8")->data;
  ovx_string_or_token_t types[2] = {by_name("metres"), by_token(0)};
  ovx_string_or_token_t strange[2] = {by_name("metres"), by_token(0xdeadbeef)};
  CHECK_REFUSED(s.go->write_typed(s.stage, four, writes, strange, 2, 1, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "type_name: 3735928559 is not a token");
  size_t count = 99;
  CHECK(s.go->attributes(s.stage, NULL, sizeof(ovstage_go_attribute_t), 0, &count) == OVSTAGE_OK && count == 0);
  DONE(&s, s.go->write_typed(s.stage, four, writes, types, 2, 1, OVSTAGE_PRIM_MODE_UPSERT));
  types[0] = by_token(string);
  CHECK_REFUSED(s.go->write_typed(s.stage, four, writes, types, 1, 2, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "does not match");
  ovstage_go_batch_t batch = batch_of(four, &writes[1], 1);
  types[0] = by_name("seconds");
  DONE(&s, s.go->publish_typed(s.stage, NULL, 0, &batch, 1, types, 2)); /* the column had none */
  DONE(&s, s.go->write_typed(s.stage, four, writes, NULL, 2, 3, OVSTAGE_PRIM_MODE_UPSERT));
  DONE(&s, seal(&s, 3));

  ovstage_go_attribute_t rows[3];
  memset(rows, 0, sizeof rows);
  CHECK(s.go->attributes(s.stage, rows, sizeof rows[0], 1, &count) == OVSTAGE_OK && count == 2);
  CHECK(rows[0].attribute == a && rows[1].attribute == 0); /* no more than there was room for */
  CHECK(s.go->attributes(s.stage, rows, sizeof rows[0], 3, &count) == OVSTAGE_OK && count == 2);
  CHECK(rows[0].type_name == token_of(&s, "metres") && rows[1].type_name == token_of(&s, "seconds"));
  CHECK(rows[0].prims == 4 && rows[0].write_floor == 3 && !rows[0].is_array && rows[0].dtype.bits == 32);
  CHECK(s.go->attributes(s.stage, rows, offsetof(ovstage_go_attribute_t, dtype), 2, &count) == OVSTAGE_OK);

  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  DONE(&s, ovstage_read_attributes(s.stage, four, &a, 1, latest(3), &read));
  CHECK(ovstage_fetch_read_next(s.stage, read, 0, &group) == OVSTAGE_OK);
  CHECK(s.go->tensors_type(group.data.tensors) == token_of(&s, "metres"));
  CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  DONE(&s, ovstage_release_read(s.stage, read));
  DONE(&s, ovstage_release_query(s.stage, four));
  close_scene(&s);
}

/* What all batches give away comes back once, whether or not the publication is accepted. */
static void check_managed_publication(void) {
  enum { BATCHES = 6 };
  scene s;
  if (!open_scene(&s, "managed publication")) return;
  static const char* const names[BATCHES] = {"a", "b", "c", "d", "e", "f"};
  gift gifts[BATCHES];
  const DLManagedTensorVersioned* tensors[BATCHES];
  ovstage_attribute_write_t writes[BATCHES];
  ovstage_go_batch_t batches[BATCHES];
  for (int i = 0; i < BATCHES; i++) {
    tensors[i] = wrap(&gifts[i], 0, "1 2 3");
    writes[i].attribute = by_name(names[i]);
    writes[i].data = giving(&tensors[i], 1);
    batches[i] = batch_of(s.query, &writes[i], 1);
  }
  gifts[BATCHES - 1].shape[0] = 2; /* the last does not fit */
  CHECK_REFUSED(s.go->publish(s.stage, NULL, 0, batches, BATCHES, 1), OVSTAGE_ERROR_INVALID_ARGUMENT, "\"f\"");
  for (int i = 0; i < BATCHES; i++) CHECK(gifts[i].deletions == 1);
  for (int i = 0; i < BATCHES; i++) wrap(&gifts[i], 0, "4 5 6");
  tensors[3] = tensors[1]; /* given twice, in two batches */
  CHECK_REFUSED(s.go->publish(s.stage, NULL, 0, batches, BATCHES, 1), OVSTAGE_ERROR_INVALID_ARGUMENT, "twice");
  for (int i = 0; i < BATCHES; i++) CHECK(gifts[i].deletions == (i == 3 ? 0 : 1));
  CHECK_REFUSED(s.go->publish(s.stage, NULL, 0, batches, SIZE_MAX, 1), OVSTAGE_ERROR_INVALID_ARGUMENT, "batch_count");

  tensors[3] = &gifts[3].tensor;
  for (int i = 0; i < BATCHES; i++) wrap(&gifts[i], i % 2, "7 8 9"); /* every other one is askew */
  DONE(&s, s.go->publish(s.stage, NULL, 0, batches, BATCHES, 1));
  DONE(&s, seal(&s, 1));
  for (int i = 0; i < BATCHES; i++) {
    CHECK(gifts[i].deletions == i % 2);
    EXPECT_FLOATS(&s, token_of(&s, names[i]), 1, 7, 8, 9);
  }
  close_scene(&s);
  for (int i = 0; i < BATCHES; i++) CHECK(gifts[i].deletions == 1);
}

/* ---- Tensors that nobody keeps, history -------------------------------------------------------------------------- */

/* Without prims there is nothing to be kept. */
static void check_managed_without_prims(void) {
  scene s;
  if (!open_scene(&s, "managed without prims")) return;
  ovstage_query_handle_t nobody = query_of(&s, NULL, 0);
  gift g;
  const DLManagedTensorVersioned* tensor = wrap(&g, 0, "1 2 3");
  ovx_string_or_token_t name = by_name("value");
  DONE(&s, ovstage_write_attribute(s.stage, nobody, name, 1, giving(&tensor, 1), OVSTAGE_PRIM_MODE_UPSERT));
  CHECK(g.deletions == 1);
  DONE(&s, ovstage_release_query(s.stage, nobody));
  close_scene(&s);
  CHECK(g.deletions == 1);
}

/* With history the values as of the last sealed ordinals stay readable; without it a read gets the newest. */
static void check_history(void) {
  scene s;
  if (!open_scene(&s, "history")) return;
  ovx_token_t value = token_of(&s, "value");
  CHECK(s.go->keep_history(s.stage, 2) == OVSTAGE_OK);
  for (uint64_t ordinal = 1; ordinal <= 3; ordinal++) {
    float x = (float)ordinal;
    DONE(&s, write_floats(&s, value, ordinal, x, x, x));
    DONE(&s, seal(&s, ordinal));
  }
  EXPECT_FLOATS(&s, value, 3, 3, 3, 3);
  EXPECT_FLOATS(&s, value, 2, 2, 2, 2);
  CHECK(s.go->keep_history(s.stage, 0) == OVSTAGE_OK);
  close_scene(&s);
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

const check_group value_groups[] = {
    {"parts: index_map", check_index_map},
    {"parts: mask", check_mask},
    {"parts: mask of several words", check_wide_mask},
    {"parts: count", check_count},
    {"parts: modes", check_modes},
    {"batches", check_batches},
    {"arrays", check_arrays},
    {"arrays: packed", check_packed_arrays},
    {"arrays: layout", check_array_layout},
    {"arrays: refused", check_array_refusals},
    {"arrays: exports", check_array_exports},
    {"arrays: snapshots", check_array_snapshots},
    {"arrays: maps", check_map_arrays},
    {"arrays: refused maps", check_map_array_refusals},
    {"arrays: maps with live views", check_map_array_live_view},
    {"deletes", check_deletes},
    {"deletes: refused", check_delete_refusals},
    {"ranges", check_ranges},
    {"history", check_history},
    {"managed tensors: adopted", check_adoption},
    {"managed tensors: adopted and exported", check_adoption_export},
    {"managed tensors: deleters that call", check_deleter_that_calls},
    {"groups that are kept", check_kept_groups},
    {"managed tensors: copied", check_managed_copies},
    {"managed tensors: refused", check_managed_refusals},
    {"managed tensors: versions", check_managed_versions},
    {"managed tensors: batches", check_managed_batches},
    {"managed tensors: no prims", check_managed_without_prims},
    {"publication", check_publication},
    {"publication: managed tensors", check_managed_publication},
    {"type names", check_type_names},
};
const size_t value_group_count = sizeof value_groups / sizeof value_groups[0];
