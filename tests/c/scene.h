/*
 * scene.h - what the checks of the client stand on: counting, small constructors, and a stage with three prims.
 *
 * Files of the client are C11 and C++17 at once: structures are zeroed by functions, pointers are cast where C would
 * not need it.
 */
#ifndef SCENE_H
#define SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ovstage/ovstage.h>
#include <ovstage/ovstage_go.h>
#include <ovx/path_dictionary/path_dictionary.h>

/* ---- Checking ---------------------------------------------------------------------------------------------------- */

extern int passed, failed; /* touched by the main thread only: other threads return what they found */

/* One group of checks. It makes what it needs and gives all of it back. */
typedef struct {
  const char* name;
  void (*run)(void);
} check_group;

/* Those of values.c. */
extern const check_group value_groups[];
extern const size_t value_group_count;

/* Those of map.c. */
extern const check_group map_groups[];
extern const size_t map_group_count;

/* Those of filter.c. */
extern const check_group filter_groups[];
extern const size_t filter_group_count;

/* Those of hierarchy.c. */
extern const check_group hierarchy_groups[];
extern const size_t hierarchy_group_count;

/* Those of refusals.c. */
extern const check_group refusal_groups[];
extern const size_t refusal_group_count;

/* Those of adversary.c. */
extern const check_group adversary_groups[];
extern const size_t adversary_group_count;
extern int adversary_rounds; /* how often a call is tried against one */

/* Those of levels.c. */
extern const check_group level_groups[];
extern const size_t level_group_count;

/* Those of unasked.c. */
extern const check_group unasked_groups[];
extern const size_t unasked_group_count;

/* Those of floors.c. */
extern const check_group floor_groups[];
extern const size_t floor_group_count;

bool check(bool held, const char* condition, const char* function, int line);

#define CHECK(condition) check((condition), #condition, __func__, __LINE__)

/* A refusal: the status, no operation, and a text that names what is at fault. */
#define CHECK_REFUSED(call, expected, part)                                                          \
  do {                                                                                               \
    ovstage_enqueue_result_t refusal = (call);                                                       \
    check(refusal.status == (expected), #call " -> " #expected, __func__, __LINE__);                 \
    check(refusal.op_index == OVSTAGE_INVALID_OP_ID, #call " has no operation", __func__, __LINE__); \
    check(contains(ovstage_get_last_error(), part), #call " names " #part, __func__, __LINE__);      \
  } while (0)

/* The same for calls that return a status. */
#define CHECK_FAILS(call, expected, part)                                                       \
  do {                                                                                          \
    check((call) == (expected), #call " -> " #expected, __func__, __LINE__);                    \
    check(contains(ovstage_get_last_error(), part), #call " names " #part, __func__, __LINE__); \
  } while (0)

ovx_string_t view(const char* text);
bool equals(ovx_string_t string, const char* text);
bool contains(ovx_string_t string, const char* part);

/* ---- Small things ------------------------------------------------------------------------------------------------ */

extern const ovstage_cuda_sync_t NO_SYNC;
extern const DLDataType EXISTING; /* all zero: the dtype that the column has */

DLDataType type_of(uint8_t code, uint8_t bits, uint16_t lanes);
DLTensor tensor_of(void* data, DLDataType type, int32_t ndim, int64_t* shape); /* compact; shape stays the caller's */
ovstage_write_data_t payload_of(const DLTensor* tensors, uint32_t count);
ovx_string_or_token_t by_token(ovx_token_t token);
ovx_string_or_token_t by_name(const char* text);
ovstage_ordinal_range_t latest(ovstage_ordinal_t end);
ovstage_map_desc_t map_of(ovx_token_t attribute, DLDataType type);
ovstage_go_counters_t zero_counters(void);

/* ---- Interface levels -------------------------------------------------------------------------------------------- */

/* That of the process, which stages have that are told of none. All groups of the client run at either. */
ovstage_go_interface_t level(void);

/* The type of a value of a group's tensor, with all its lanes, however they are laid out. */
DLDataType stored_type(const DLTensor* tensor);

/* Whether a group's tensor has so many rows of this type in the layout of a level, on the host, without gaps. */
bool shows(const DLTensor* tensor, int64_t rows, DLDataType type, ovstage_attribute_semantic_t semantic,
           ovstage_go_interface_t level);

/* ---- A stage with three prims ------------------------------------------------------------------------------------ */

enum { PRIMS = 3 };

typedef struct {
  ovstage_instance_t* stage;
  path_dictionary_instance_t* dictionary;
  const ovstage_go_v1_t* go;
  ovx_primpath_list_t list;
  ovstage_query_handle_t query; /* of /World/A, /World/B, /World/C */
} scene;

bool open_scene(scene* s, const char* name);
void close_scene(scene* s); /* gives everything back and wants nothing of the instance to be alive */

/* Waits for an accepted operation, wants it to have succeeded, and releases it. */
bool done(const scene* s, ovstage_enqueue_result_t enqueued, const char* call, const char* function, int line);

#define DONE(scene, call) done((scene), (call), #call, __func__, __LINE__)

ovx_token_t token_of(const scene* s, const char* text);
ovstage_query_handle_t query_of(const scene* s, const char* const* paths, size_t count); /* of at most 8 */
ovstage_enqueue_result_t seal(const scene* s, ovstage_ordinal_t ordinal);

ovstage_enqueue_result_t write_tensor(const scene* s, ovx_token_t attribute, ovstage_ordinal_t ordinal,
                                      const DLTensor* tensor, ovstage_attribute_semantic_t semantic);

/* Three float32, one a prim. */
ovstage_enqueue_result_t write_floats(const scene* s, ovx_token_t attribute, ovstage_ordinal_t ordinal, float a,
                                      float b, float c);

/* Opens a map of the query and takes its one group, which covers it. */
bool map_all(const scene* s, const ovstage_map_desc_t* desc, ovstage_ordinal_t ordinal, ovstage_map_handle_t* map,
             ovstage_map_group_t* group);

/* A dense group: the whole query, in its order, in the layout of the level. */
bool is_dense(const ovstage_read_group_t* group, ovx_token_t attribute, DLDataType type);

/* Opens a read of one attribute and takes its first group. */
bool read_first(const scene* s, ovstage_query_handle_t query, ovx_token_t attribute, ovstage_ordinal_t end,
                ovstage_read_handle_t* read, ovstage_read_group_t* group);

/* Reads one attribute and wants one dense group with exactly these bytes. */
void expect(const scene* s, ovx_token_t attribute, ovstage_ordinal_t end, DLDataType type, const void* bytes,
            const char* function, int line);

#define EXPECT(scene, attribute, end, type, bytes) \
  expect((scene), (attribute), (end), (type), (bytes), __func__, __LINE__)

void expect_floats(const scene* s, ovx_token_t attribute, ovstage_ordinal_t end, float a, float b, float c,
                   const char* function, int line);

#define EXPECT_FLOATS(scene, attribute, end, a, b, c) \
  expect_floats((scene), (attribute), (end), (a), (b), (c), __func__, __LINE__)

#endif
