/*
 * filter.c - queries that choose prims by what they are and what they carry, and the attributes that follow from paths.
 */
#include "scene.h"

#include <string.h>

/* ---- Filters ----------------------------------------------------------------------------------------------------- */

/* One condition with at most one value; NULL for none. Not to be copied: it points into itself. */
typedef struct {
  ovx_string_t value;
  ovstage_predicate_t predicate;
  ovstage_filter_t filter;
} condition;

static const ovstage_filter_t* where(condition* c, ovx_string_or_token_t attribute, ovstage_filter_op_t op,
                                     const char* value) {
  memset(c, 0, sizeof *c);
  c->predicate.attribute = attribute;
  c->predicate.op = op;
  if (value != NULL) {
    c->value = view(value);
    c->predicate.values = &c->value;
    c->predicate.value_count = 1;
  }
  c->filter.predicates = &c->predicate;
  c->filter.count = 1;
  return &c->filter;
}

static ovstage_query_handle_t ask(const scene* s, const ovstage_filter_t* filter, const ovx_token_t* attrs,
                                  size_t attr_count) {
  ovstage_query_handle_t query = 4711;
  DONE(s, ovstage_query(s->stage, filter, attrs, attr_count, &query));
  return query;
}

/* Wants a result with a number of prims and exactly this attribute, 0 for none. */
#define RESULT(scene, query, prims, attribute) wants((scene), (query), (prims), (attribute), __func__, __LINE__)

static void wants(const scene* s, ovstage_query_handle_t query, size_t prims, ovx_token_t attribute,
                  const char* function, int line) {
  ovstage_query_result_t result;
  if (!CHECK(ovstage_fetch_query_result(s->stage, query, OVSTAGE_TIMEOUT_INFINITE, &result) == OVSTAGE_OK)) return;
  check(result.all_handle == query, "the query's own handle", function, line);
  check(result.total_prim_count == prims, "the expected number of prims", function, line);
  check(attribute == 0 ? result.attribute_count == 0 : result.attribute_count == 1 && result.attributes[0] == attribute,
        "the expected attribute", function, line);
  CHECK(ovstage_release_query_result(s->stage, &result) == OVSTAGE_OK);
}

/* How many prims meet one condition. */
static size_t count(const scene* s, const char* attribute, ovstage_filter_op_t op, const char* value) {
  condition c;
  ovstage_query_handle_t query = ask(s, where(&c, by_name(attribute), op, value), NULL, 0);
  ovstage_query_result_t result;
  memset(&result, 0, sizeof result);
  CHECK(ovstage_fetch_query_result(s->stage, query, OVSTAGE_TIMEOUT_INFINITE, &result) == OVSTAGE_OK);
  CHECK(ovstage_release_query_result(s->stage, &result) == OVSTAGE_OK);
  DONE(s, ovstage_release_query(s->stage, query));
  return result.total_prim_count;
}

static ovx_primpath_t path_of(const scene* s, const char* text) {
  ovx_string_t string = view(text);
  ovx_primpath_t path = OVX_INVALID_PRIMPATH;
  CHECK(path_dictionary_create_paths_from_strings(s->dictionary, &string, 1, &path).status == OVX_API_SUCCESS);
  return path;
}

/* Reads a derived attribute and wants one group with these paths, one a row. */
#define PATHS(scene, query, attribute, ...)                                                                 \
  do {                                                                                                      \
    static const char* const expected[] = {__VA_ARGS__};                                                    \
    paths((scene), (query), (attribute), expected, sizeof expected / sizeof *expected, __func__, __LINE__); \
  } while (0)

static void paths(const scene* s, ovstage_query_handle_t query, const char* attribute, const char* const* expected,
                  uint32_t n, const char* function, int line) {
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  if (!read_first(s, query, token_of(s, attribute), 7, &read, &group)) return;
  const DLTensor* tensor = group.data.tensors;
  check(group.ordinal == 7 && !group.is_delete && !group.is_array, "a plain group", function, line);
  check(group.prims.count == n && group.data.count == n && group.data.index_map == NULL, "rows", function, line);
  if (check(group.data.tensor_count == 1 && tensor->ndim == 1 && tensor->shape[0] == (int64_t)n &&
                tensor->dtype.code == kDLUInt && tensor->dtype.bits == 64 && tensor->dtype.lanes == 1,
            "the canonical layout", function, line))
    for (uint32_t k = 0; k < n; k++)
      check(((const uint64_t*)tensor->data)[k] == path_of(s, expected[k]), expected[k], function, line);
  CHECK(ovstage_release_group(s->stage, &group) == OVSTAGE_OK);
  CHECK(ovstage_fetch_read_next(s->stage, read, 0, &group) == OVSTAGE_ERROR_END_OF_ITERATION);
  DONE(s, ovstage_release_read(s->stage, read));
}

static void check_filters(void) {
  scene s;
  if (!open_scene(&s, "filters")) return;
  ovx_token_t value = token_of(&s, "value");
  condition c;
  ovstage_query_handle_t query = ask(&s, NULL, NULL, 0);
  RESULT(&s, query, 0, 0);
  DONE(&s, ovstage_release_query(s.stage, query));

  DONE(&s, write_floats(&s, value, 1, 1, 2, 3)); /* /World/A, /World/B, /World/C; not sealed */
  query = ask(&s, NULL, NULL, 0);
  RESULT(&s, query, 3, value);
  PATHS(&s, query, "usd-path", "/World/A", "/World/B", "/World/C");
  DONE(&s, ovstage_release_query(s.stage, query));

  query = ask(&s, where(&c, by_token(value), OVSTAGE_FILTER_OP_HAS, NULL), &value, 1);
  RESULT(&s, query, 3, value);
  DONE(&s, ovstage_release_query(s.stage, query));
  ovx_token_t other = token_of(&s, "usd-path");
  query = ask(&s, where(&c, by_token(value), OVSTAGE_FILTER_OP_HAS, "ignored"), &other, 1);
  RESULT(&s, query, 3, 0);
  DONE(&s, ovstage_release_query(s.stage, query));

  CHECK(count(&s, "usd-path", OVSTAGE_FILTER_OP_IN, "/World/B") == 1);
  CHECK(count(&s, "usd-path", OVSTAGE_FILTER_OP_IN, "/World") == 0); /* no ancestor is created */
  CHECK(count(&s, "usd-path", OVSTAGE_FILTER_OP_PREFIX, "/Wor") == 3);
  CHECK(count(&s, "usd-path", OVSTAGE_FILTER_OP_PREFIX, "/World/C") == 1);
  CHECK(count(&s, "usd-path", OVSTAGE_FILTER_OP_PREFIX, "") == 3);
  CHECK(count(&s, "usd-parent", OVSTAGE_FILTER_OP_IN, "/World") == 3);
  CHECK(count(&s, "usd-parent", OVSTAGE_FILTER_OP_IN, "/") == 0);
  CHECK(count(&s, "usd-children", OVSTAGE_FILTER_OP_CONTAINS, "/World/A") == 0);
  CHECK(count(&s, "never written", OVSTAGE_FILTER_OP_HAS, NULL) == 0);
  CHECK(count(&s, "value", OVSTAGE_FILTER_OP_GE, "2") == 2);
  CHECK(count(&s, "value", OVSTAGE_FILTER_OP_IN, "2.0") == 1);

  uint64_t types[PRIMS] = {token_of(&s, "Mesh"), token_of(&s, "Cube"), token_of(&s, "Mesh")};
  int64_t shape[1] = {PRIMS};
  DLTensor tensor = tensor_of(types, type_of(kDLUInt, 64, 1), 1, shape);
  DONE(&s, write_tensor(&s, token_of(&s, "usd-prim-type"), 1, &tensor, OVSTAGE_SEMANTIC_TOKEN_ID));
  CHECK(count(&s, "usd-prim-type", OVSTAGE_FILTER_OP_IN, "Mesh") == 2);
  CHECK(count(&s, "usd-prim-type", OVSTAGE_FILTER_OP_IN, "Sphere") == 0);
  uint64_t schemas[4] = {token_of(&s, "A"), token_of(&s, "B"), token_of(&s, "C"), token_of(&s, "A")};
  int64_t lengths[PRIMS] = {2, 0, 2};
  DLTensor rows[PRIMS];
  for (int i = 0; i < PRIMS; i++) rows[i] = tensor_of(schemas + i, type_of(kDLUInt, 64, 1), 1, &lengths[i]);
  ovstage_write_data_t data = payload_of(rows, PRIMS);
  data.is_array = true;
  data.semantic = OVSTAGE_SEMANTIC_TOKEN_ID;
  DONE(&s, ovstage_write_attribute(s.stage, s.query, by_name("usd-schemas"), 1, data, OVSTAGE_PRIM_MODE_UPSERT));
  CHECK(count(&s, "usd-schemas", OVSTAGE_FILTER_OP_CONTAINS, "A") == 2);
  CHECK(count(&s, "usd-schemas", OVSTAGE_FILTER_OP_CONTAINS, "B") == 1);

  /* Two conditions, of which one has two values. */
  ovx_string_t names[2] = {view("/World/B"), view("/World/C")};
  condition both[2];
  where(&both[0], by_name("usd-path"), OVSTAGE_FILTER_OP_IN, NULL);
  both[0].predicate.values = names;
  both[0].predicate.value_count = 2;
  where(&both[1], by_name("usd-prim-type"), OVSTAGE_FILTER_OP_IN, "Mesh");
  ovstage_predicate_t predicates[2] = {both[0].predicate, both[1].predicate};
  ovstage_filter_t filter = {predicates, 2};
  query = ask(&s, &filter, &value, 1);
  RESULT(&s, query, 1, value);
  PATHS(&s, query, "usd-path", "/World/C");

  /* The query stays what it was, and serves like any other. */
  DONE(&s, ovstage_delete_attributes(s.stage, query, NULL, 0, 2));
  CHECK(count(&s, "value", OVSTAGE_FILTER_OP_HAS, NULL) == 2);
  RESULT(&s, query, 1, 0);
  DONE(&s, ovstage_release_query(s.stage, query));
  CHECK_REFUSED(ovstage_release_query(s.stage, query), OVSTAGE_ERROR_INVALID_HANDLE, "query");
  close_scene(&s);
}

static void check_filter_refusals(void) {
  scene s;
  if (!open_scene(&s, "refused filters")) return;
  DONE(&s, write_floats(&s, token_of(&s, "value"), 1, 1, 2, 3));
  condition c;
  ovstage_query_handle_t query = 4711;
#define REFUSED_FILTER(filter, status, part)                                        \
  do {                                                                              \
    query = 4711;                                                                   \
    CHECK_REFUSED(ovstage_query(s.stage, (filter), NULL, 0, &query), status, part); \
    CHECK(query == OVSTAGE_INVALID_QUERY_HANDLE);                                   \
  } while (0)
  REFUSED_FILTER(where(&c, by_name("usd-active"), OVSTAGE_FILTER_OP_IN, "true"), OVSTAGE_ERROR_NOT_SUPPORTED,
                 "usd-active");
  REFUSED_FILTER(where(&c, by_name("usd-active"), OVSTAGE_FILTER_OP_HAS, NULL), OVSTAGE_ERROR_NOT_SUPPORTED, "HAS");
  REFUSED_FILTER(where(&c, by_name("value"), OVSTAGE_FILTER_OP_PREFIX, "1"), OVSTAGE_ERROR_NOT_SUPPORTED, "PREFIX");
  REFUSED_FILTER(where(&c, by_name("usd-path"), (ovstage_filter_op_t)77, "/"), OVSTAGE_ERROR_NOT_SUPPORTED, "77");
  REFUSED_FILTER(where(&c, by_name("value"), OVSTAGE_FILTER_OP_LT, "much"), OVSTAGE_ERROR_INVALID_ARGUMENT, "much");
  REFUSED_FILTER(where(&c, by_name("value"), OVSTAGE_FILTER_OP_LT, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "one value");
  REFUSED_FILTER(where(&c, by_name("value"), OVSTAGE_FILTER_OP_IN, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "IN needs");
  REFUSED_FILTER(where(&c, by_name("usd-path"), OVSTAGE_FILTER_OP_IN, "World/A"), OVSTAGE_ERROR_INVALID_ARGUMENT,
                 "World/A");
  REFUSED_FILTER(where(&c, by_token(0xdeadbeef), OVSTAGE_FILTER_OP_HAS, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT,
                 "filter.predicates[0].attribute");
  REFUSED_FILTER(where(&c, by_name(""), OVSTAGE_FILTER_OP_HAS, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT,
                 "filter.predicates[0].attribute");
  where(&c, by_name("usd-path"), OVSTAGE_FILTER_OP_IN, "/World/A");
  c.predicate.values = NULL;
  REFUSED_FILTER(&c.filter, OVSTAGE_ERROR_INVALID_ARGUMENT, "filter.predicates[0].values is NULL");
  c.predicate.values = &c.value;
  c.value.ptr = NULL;
  REFUSED_FILTER(&c.filter, OVSTAGE_ERROR_INVALID_ARGUMENT, "filter.predicates[0].values[0]");
  c.filter.predicates = NULL;
  REFUSED_FILTER(&c.filter, OVSTAGE_ERROR_INVALID_ARGUMENT, "filter.predicates is NULL");
  c.filter.count = SIZE_MAX;
  REFUSED_FILTER(&c.filter, OVSTAGE_ERROR_INVALID_ARGUMENT, "filter.count");
#undef REFUSED_FILTER
  CHECK_REFUSED(ovstage_query(s.stage, NULL, NULL, 0, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "out_query_handle");
  CHECK_REFUSED(ovstage_query(s.stage, NULL, NULL, 1, &query), OVSTAGE_ERROR_INVALID_ARGUMENT, "attrs is NULL");
  ovx_token_t unknown = 0xdeadbeef;
  CHECK_REFUSED(ovstage_query(s.stage, NULL, &unknown, SIZE_MAX, &query), OVSTAGE_ERROR_INVALID_ARGUMENT, "attr_count");
  CHECK_REFUSED(ovstage_query(s.stage, NULL, &unknown, 1, &query), OVSTAGE_ERROR_INVALID_ARGUMENT, "attrs[0]");
  close_scene(&s);
}

/* ---- Combinations, and asking again ------------------------------------------------------------------------------ */

static ovstage_go_condition_t combine(ovstage_go_match_t match, const ovstage_go_condition_t* conditions, size_t n) {
  ovstage_go_condition_t c;
  memset(&c, 0, sizeof c);
  c.match = match;
  c.conditions = conditions;
  c.count = n;
  return c;
}

static void check_conditions(void) {
  scene s;
  if (!open_scene(&s, "conditions")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  condition one, two;
  ovstage_go_condition_t below[2], inner, filter;
  memset(below, 0, sizeof below); /* zero is a predicate */
  below[0].predicate = *where(&one, by_token(value), OVSTAGE_FILTER_OP_LT, "2")->predicates;
  below[1].predicate = *where(&two, by_name("usd-path"), OVSTAGE_FILTER_OP_IN, "/World/C")->predicates;
  ovstage_query_handle_t query;

  DONE(&s, s.go->query(s.stage, NULL, NULL, 0, &query));
  RESULT(&s, query, 3, value);
  DONE(&s, ovstage_release_query(s.stage, query));
  DONE(&s, s.go->query(s.stage, &below[0], &value, 1, &query));
  PATHS(&s, query, "usd-path", "/World/A");
  DONE(&s, ovstage_release_query(s.stage, query));
  filter = combine(OVSTAGE_GO_MATCH_ALL, below, 2);
  DONE(&s, s.go->query(s.stage, &filter, NULL, 0, &query));
  RESULT(&s, query, 0, 0);
  DONE(&s, ovstage_release_query(s.stage, query));
  filter = combine(OVSTAGE_GO_MATCH_ANY, below, 2);
  DONE(&s, s.go->query(s.stage, &filter, NULL, 0, &query));
  PATHS(&s, query, "usd-path", "/World/A", "/World/C");
  DONE(&s, ovstage_release_query(s.stage, query));
  inner = filter;
  filter = combine(OVSTAGE_GO_MATCH_NONE, &inner, 1);
  DONE(&s, s.go->query(s.stage, &filter, &value, 1, &query));
  PATHS(&s, query, "usd-path", "/World/B");
  DONE(&s, ovstage_release_query(s.stage, query));

#define REFUSED_CONDITION(part)                                                                          \
  do {                                                                                                   \
    query = 4711;                                                                                        \
    CHECK_REFUSED(s.go->query(s.stage, &filter, NULL, 0, &query), OVSTAGE_ERROR_INVALID_ARGUMENT, part); \
    CHECK(query == OVSTAGE_INVALID_QUERY_HANDLE);                                                        \
  } while (0)
  filter = combine(OVSTAGE_GO_MATCH_ANY, NULL, 0);
  REFUSED_CONDITION("ANY needs at least one condition");
  filter = combine(OVSTAGE_GO_MATCH_NONE, NULL, 1);
  REFUSED_CONDITION("condition.conditions is NULL with count 1");
  filter = combine(OVSTAGE_GO_MATCH_ALL, below, SIZE_MAX);
  REFUSED_CONDITION("condition.conditions");
  filter = combine((ovstage_go_match_t)9, below, 2);
  REFUSED_CONDITION("match 9 is not one of");
  memset(&filter, 0, sizeof filter);
  REFUSED_CONDITION("condition.predicate.attribute");
  filter = combine(OVSTAGE_GO_MATCH_ANY, &filter, 1); /* lies in itself */
  REFUSED_CONDITION("conditions lie more than 64 levels deep in each other");
  two.value = view("World/C");
  filter = combine(OVSTAGE_GO_MATCH_ANY, below, 2);
  REFUSED_CONDITION("predicate 1: ");
#undef REFUSED_CONDITION
  CHECK_REFUSED(s.go->query(s.stage, NULL, NULL, 0, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "out must not be NULL");
  CHECK_REFUSED(s.go->query(s.stage, NULL, NULL, 1, &query), OVSTAGE_ERROR_INVALID_ARGUMENT, "attrs is NULL");
  CHECK_REFUSED(s.go->query(s.stage, NULL, &value, SIZE_MAX, &query), OVSTAGE_ERROR_INVALID_ARGUMENT, "attr_count");
  close_scene(&s);
}

static void check_refresh(void) {
  scene s;
  if (!open_scene(&s, "refresh")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));
  condition c;
  char limit[] = "1";
  where(&c, by_token(value), OVSTAGE_FILTER_OP_GT, limit);
  ovstage_query_handle_t query = ask(&s, &c.filter, NULL, 0);
  memset(&c, 0, sizeof c); /* the query has its own copy */
  limit[0] = '?';
  PATHS(&s, query, "usd-path", "/World/B", "/World/C");
  ovstage_read_handle_t read;
  DONE(&s, ovstage_read_attributes(s.stage, query, &value, 1, latest(1), &read));

  DONE(&s, write_floats(&s, value, 2, 5, 0, 0));
  RESULT(&s, query, 2, value);
  DONE(&s, s.go->refresh_query(s.stage, query));
  RESULT(&s, query, 1, value);
  PATHS(&s, query, "usd-path", "/World/A");

  ovstage_read_group_t group;
  if (CHECK(ovstage_fetch_read_next(s.stage, read, 0, &group) ==
            OVSTAGE_OK)) { /* of the prims that it was opened with */
    CHECK(group.prims.count == 2);
    CHECK(((const float*)group.data.tensors->data)[0] == 2 && ((const float*)group.data.tensors->data)[1] == 3);
    CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  }
  DONE(&s, ovstage_release_read(s.stage, read));

  DONE(&s, s.go->refresh_query(s.stage, s.query)); /* a path list is not asked */
  RESULT(&s, s.query, 3, value);
  DONE(&s, ovstage_release_query(s.stage, query));
  CHECK_REFUSED(s.go->refresh_query(s.stage, query), OVSTAGE_ERROR_INVALID_HANDLE, "query handle");
  close_scene(&s);
}

/* ---- Parts of queries -------------------------------------------------------------------------------------------- */

static void check_parts(void) {
  scene s;
  if (!open_scene(&s, "parts")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  size_t prims = 4711;
  CHECK(s.go->query_count(s.stage, s.query, &prims) == OVSTAGE_OK && prims == PRIMS);

  uint64_t mask = ~(uint64_t)2; /* bits beyond the prims are not looked at */
  ovstage_query_handle_t part = 4711, again = 4711;
  CHECK(s.go->query_where(s.stage, s.query, &mask, PRIMS, &part) == OVSTAGE_OK);
  mask = 2;
  PATHS(&s, part, "usd-path", "/World/A", "/World/C");
  CHECK(s.go->query_count(s.stage, part, &prims) == OVSTAGE_OK && prims == 2);
  CHECK(s.go->query_where(s.stage, part, &mask, 2, &again) == OVSTAGE_OK);
  DONE(&s, ovstage_release_query(s.stage, part));
  PATHS(&s, again, "usd-path", "/World/C");
  DONE(&s, ovstage_release_query(s.stage, again));

  CHECK(s.go->query_where(s.stage, part, &mask, 2, &again) == OVSTAGE_ERROR_INVALID_HANDLE && again == 0);
  CHECK(s.go->query_count(s.stage, part, &prims) == OVSTAGE_ERROR_INVALID_HANDLE && prims == 0);
  mask = 0;
  CHECK(s.go->query_where(s.stage, s.query, &mask, PRIMS, &part) == OVSTAGE_OK);
  CHECK(s.go->query_where(s.stage, part, NULL, 0, &again) == OVSTAGE_OK); /* nobody of nobody */
  DONE(&s, ovstage_release_query(s.stage, part));
  DONE(&s, ovstage_release_query(s.stage, again));
  close_scene(&s);
}

/* ---- Derived attributes ------------------------------------------------------------------------------------------ */

static void check_derived(void) {
  scene s;
  if (!open_scene(&s, "derived")) return;
  ovx_token_t value = token_of(&s, "value");
  const char* const tree[] = {"/World", "/World/A/x", "/World/A", "/never"};
  ovstage_query_handle_t query = query_of(&s, tree, 4);
  float numbers[PRIMS] = {1, 2, 3};
  int64_t shape[1] = {PRIMS};
  DLTensor tensor = tensor_of(numbers, type_of(kDLFloat, 32, 1), 1, shape);
  ovstage_write_data_t data = payload_of(&tensor, 1);
  data.count = PRIMS;
  const uint32_t straight[PRIMS] = {0, 1, 2};
  data.index_map = straight;
  DONE(&s, ovstage_write_attribute(s.stage, query, by_token(value), 1, data, OVSTAGE_PRIM_MODE_UPSERT));
  PATHS(&s, query, "usd-path", "/World", "/World/A/x", "/World/A"); /* not sealed, and needs not be */
  PATHS(&s, query, "usd-parent", "/World/A", "/World");

  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  if (read_first(&s, query, token_of(&s, "usd-children"), 3, &read, &group)) {
    CHECK(group.is_array && group.ordinal == 3 && group.prims.count == 2 && group.data.tensor_count == 2);
    if (CHECK(group.prims.index_map != NULL)) CHECK(group.prims.index_map[0] == 0 && group.prims.index_map[1] == 2);
    const DLTensor* rows = group.data.tensors;
    CHECK(rows[0].shape[0] == 1 && *(const uint64_t*)rows[0].data == path_of(&s, "/World/A"));
    CHECK(rows[1].shape[0] == 1 && *(const uint64_t*)rows[1].data == path_of(&s, "/World/A/x"));
    CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
    DONE(&s, ovstage_release_read(s.stage, read));
  }

  DONE(&s, seal(&s, 1));
  ovstage_ordinal_range_t range = latest(1);
  range.start_ordinal = 1;
  range.has_start_ordinal = true;
  ovx_token_t path = token_of(&s, "usd-path");
  DONE(&s, ovstage_read_attributes(s.stage, query, &path, 1, range, &read));
  CHECK(ovstage_fetch_read_next(s.stage, read, 0, &group) == OVSTAGE_ERROR_END_OF_ITERATION); /* no history */
  DONE(&s, ovstage_release_read(s.stage, read));
  ovx_token_t active = token_of(&s, "usd-active");
  CHECK_REFUSED(ovstage_read_attributes(s.stage, query, &active, 1, latest(1), &read), OVSTAGE_ERROR_NOT_SUPPORTED,
                "usd-active");
  CHECK(read == OVSTAGE_INVALID_READ_HANDLE);
  DONE(&s, ovstage_release_query(s.stage, query));
  close_scene(&s);
}

const check_group filter_groups[] = {
    {"filters", check_filters},
    {"filters: refused", check_filter_refusals},
    {"filters: combined", check_conditions},
    {"queries asked again", check_refresh},
    {"parts of queries", check_parts},
    {"derived attributes", check_derived},
};
const size_t filter_group_count = sizeof filter_groups / sizeof filter_groups[0];
