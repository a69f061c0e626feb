/*
 * script.c - plays golden scripts, the files of tests/scripts, through the C interface. Their README has the language.
 *
 *     script FILE ...
 *
 * From top to bottom: memory and words, values, answers, the commands, the play. A mistake in a script ends the
 * program.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

#define FOREVER OVSTAGE_TIMEOUT_INFINITE

enum { WORDS = 64, NAMED = 16, GROUPS = 16, LINES = 256, LINE = 1024 };

static const char* at_file;
static int at_line;

static void mistake(const char* format, ...) {
  va_list list;
  va_start(list, format);
  printf("%s, line %d: ", at_file, at_line);
  vprintf(format, list);
  printf("\n");
  va_end(list);
  exit(2);
}

/* ---- Memory that lasts for one command --------------------------------------------------------------------------- */

static struct scrap {
  struct scrap* next;
  uint64_t bytes[];
}* scraps;

static void* scrap(size_t size) {
  struct scrap* made = (struct scrap*)calloc(1, sizeof *made + size + 8);
  if (made == NULL) mistake("out of memory");
  made->next = scraps;
  scraps = made;
  return made->bytes;
}

static void sweep(void) {
  while (scraps != NULL) {
    struct scrap* next = scraps->next;
    free(scraps);
    scraps = next;
  }
}

static char* copied(const char* text, size_t length) {
  char* copy = (char*)scrap(length + 1);
  memcpy(copy, text, length);
  return copy;
}

/* ---- What a script has given names to ---------------------------------------------------------------------------- */

typedef struct {
  char name[32];
  ovstage_query_handle_t query;
} named_query;

typedef struct {
  char name[32];
  ovstage_map_handle_t map;
  bool array, content; /* content: the buffer starts with something that can be shown */
  ovstage_map_group_t groups[GROUPS];
  int group_count;
  ovstage_go_block_t* views[GROUPS]; /* kept beyond the commit */
  void* view_data[GROUPS];
  size_t view_bytes[GROUPS];
  int view_count;
} named_map;

typedef struct {
  char name[32];
  ovstage_read_group_t groups[GROUPS];
  int group_count;
} named_groups;

static struct {
  ovstage_instance_t* stage;
  path_dictionary_instance_t* dictionary;
  const ovstage_go_v1_t* go;
  named_query queries[NAMED];
  named_map maps[NAMED];
  named_groups held[NAMED];
  int query_count, map_count, held_count;
} play;

/* ---- The answer of a command ------------------------------------------------------------------------------------- */

static char answer[LINES][LINE];
static int answer_count;

static void say(const char* format, ...) {
  if (answer_count == LINES) mistake("an answer of more than %d lines", LINES);
  va_list list;
  va_start(list, format);
  if (vsnprintf(answer[answer_count++], LINE, format, list) >= LINE) mistake("a line of more than %d bytes", LINE);
  va_end(list);
}

static void add(const char* format, ...) { /* to the last line */
  char* line = answer[answer_count - 1];
  size_t length = strlen(line);
  va_list list;
  va_start(list, format);
  if (vsnprintf(line + length, LINE - length, format, list) >= (int)(LINE - length))
    mistake("a line of more than %d bytes", LINE);
  va_end(list);
}

static const char* code_of(ovstage_api_status_t status) {
  switch (status) {
    case OVSTAGE_ERROR_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case OVSTAGE_ERROR_INVALID_HANDLE:
      return "INVALID_HANDLE";
    case OVSTAGE_ERROR_NOT_FOUND:
      return "NOT_FOUND";
    case OVSTAGE_ERROR_PRIM_NOT_FOUND:
      return "PRIM_NOT_FOUND";
    case OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION:
      return "WRITE_FLOOR_VIOLATION";
    case OVSTAGE_ERROR_NOT_SUPPORTED:
      return "NOT_SUPPORTED";
    case OVSTAGE_ERROR_OP_FAILED:
      return "OP_FAILED";
    case OVSTAGE_ERROR_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    default:
      return "ANOTHER_CODE";
  }
}

/* A call that was refused; true if it was not. */
static bool accepted(ovstage_api_status_t status) {
  if (status == OVSTAGE_OK) return true;
  ovx_string_t text = ovstage_get_last_error();
  say("refused %s: %.*s", code_of(status), (int)text.length, text.ptr);
  return false;
}

/* The same for a call that enqueues; an operation that failed says so. */
static bool ended(ovstage_enqueue_result_t enqueued) {
  if (!accepted(enqueued.status)) return false;
  ovstage_op_wait_result_t result;
  if (ovstage_wait_op(play.stage, enqueued.op_index, FOREVER, &result) != OVSTAGE_OK) mistake("a wait failed");
  bool good = result.error_op_id_count == 0;
  if (!good) {
    ovx_string_t text = ovstage_get_last_op_error(play.stage, enqueued.op_index);
    say("failed %s: %.*s", code_of(play.go->op_status(play.stage, enqueued.op_index)), (int)text.length, text.ptr);
  }
  if (ovstage_release_op(play.stage, enqueued.op_index) != OVSTAGE_OK) mistake("an operation can't be released");
  return good;
}

/* The same for a call of the dictionary. */
static bool named(ovx_api_result_t result) {
  if (result.status == OVX_API_SUCCESS) return true;
  say("refused INVALID_ARGUMENT: %.*s", (int)result.error.length, result.error.ptr);
  path_dictionary_release_error(play.dictionary, result.error);
  return false;
}

/* ---- Words ------------------------------------------------------------------------------------------------------- */

typedef struct {
  char* args[WORDS];
  int arg_count;
  char* keys[WORDS];
  char* values[WORDS];
  int option_count;
} command;

static char* option(const command* c, const char* key) {
  for (int i = 0; i < c->option_count; i++)
    if (strcmp(c->keys[i], key) == 0) return c->values[i];
  return NULL;
}

/* Cuts a line at its spaces. What stands in "quotes" or [brackets] is one word; key=value is an option. */
static command taken_apart(const char* line) {
  command c;
  memset(&c, 0, sizeof c);
  while (*(line += strspn(line, " ")) != '\0') {
    const char* end = line;
    for (char until = ' '; *end != '\0' && (*end != ' ' || until != ' '); end++) {
      if (until != ' ' && *end == until)
        until = ' ';
      else if (until == ' ' && *end == '"')
        until = '"';
      else if (until == ' ' && *end == '[' && end == line)
        until = ']';
    }
    char* word = copied(line, (size_t)(end - line));
    size_t key = 0;
    while (islower((unsigned char)word[key])) key++;
    if (c.arg_count == WORDS || c.option_count == WORDS) mistake("more than %d words", WORDS);
    if (key > 0 && word[key] == '=') {
      word[key] = '\0';
      c.keys[c.option_count] = word;
      c.values[c.option_count++] = word + key + 1;
    } else {
      c.args[c.arg_count++] = word;
    }
    line = end;
  }
  return c;
}

/* The parts of a word between commas, or of a [list] between spaces; NULL behind the last. */
static char** parts(const char* word, char mark, size_t* count) {
  char* text = copied(word, strlen(word));
  char** list = (char**)scrap((strlen(word) + 2) * sizeof *list);
  *count = 0;
  for (char* next = text; next != NULL && *next != '\0'; *count += 1) {
    list[*count] = next;
    next = strchr(next, mark);
    if (next != NULL) *next++ = '\0';
  }
  return list;
}

static uint64_t number(const char* word) {
  char* end = NULL;
  uint64_t value = strtoull(word, &end, 10);
  if (end == word || *end != '\0') mistake("%s is no number", word);
  return value;
}

static char* inner(char* word) { /* without its first and last character */
  word[strlen(word) - 1] = '\0';
  return word + 1;
}

/* Cuts NAME@ORDINAL. */
static ovstage_ordinal_t ordinal_of(char* word) {
  char* at = strchr(word, '@');
  if (at == NULL) mistake("%s has no ordinal", word);
  *at = '\0';
  return number(at + 1);
}

static ovx_token_t token(const char* text) {
  ovx_string_t string = view(text);
  ovx_token_t made = 0;
  return named(path_dictionary_create_tokens_from_strings(play.dictionary, &string, 1, &made)) ? made : 0;
}

static ovx_token_t* tokens(const char* names, size_t* count) {
  char** texts = parts(names, ',', count);
  ovx_token_t* list = (ovx_token_t*)scrap((*count + 1) * sizeof *list);
  for (size_t i = 0; i < *count; i++) list[i] = token(texts[i]);
  return list;
}

static ovx_string_or_token_t* names_of(const char* names, size_t* count) {
  ovx_token_t* list = tokens(names, count);
  ovx_string_or_token_t* found = (ovx_string_or_token_t*)scrap((*count + 1) * sizeof *found);
  for (size_t i = 0; i < *count; i++) found[i] = by_token(list[i]);
  return found;
}

static const char* text_of(ovx_token_t of) {
  if (of == 0) return "";
  ovx_string_t text;
  if (!named(path_dictionary_get_strings_from_tokens(play.dictionary, &of, 1, &text))) return "";
  return copied(text.ptr, text.length);
}

static const char* path_text(ovx_primpath_t path) {
  ovx_token_t buffer[64];
  ovx_token_t* found = NULL;
  size_t count = 0, processed = 0;
  if (!named(path_dictionary_get_tokens_from_paths(play.dictionary, &path, 1, buffer, 64, &found, &count, &processed)))
    return "";
  if (count == 0) return "/";
  char* text = (char*)scrap(LINE);
  for (size_t i = 0; i < count; i++) {
    strncat(text, "/", LINE - strlen(text) - 1);
    strncat(text, text_of(found[i]), LINE - strlen(text) - 1);
  }
  return text;
}

/* The query of some prims, $name or paths; made: it ends with the call. 0 where it was refused. */
static ovstage_query_handle_t query_made(const char* prims) {
  size_t count = 0;
  char** texts = parts(strcmp(prims, "-") == 0 ? "" : prims, ',', &count);
  ovx_string_t* strings = (ovx_string_t*)scrap((count + 1) * sizeof *strings);
  for (size_t i = 0; i < count; i++) strings[i] = view(texts[i]);
  ovx_primpath_list_t list = OVX_INVALID_PRIMPATH_LIST;
  ovstage_query_handle_t query = 0;
  if (!named(path_dictionary_create_path_list_from_strings(play.dictionary, strings, count, &list))) return 0;
  accepted(ovstage_query_from_path_list(play.stage, list, &query));
  named(path_dictionary_release_path_list_reference(play.dictionary, list));
  return query;
}

static named_query* query_named(const char* name) {
  for (int i = 0; i < play.query_count; i++)
    if (strcmp(play.queries[i].name, name) == 0) return &play.queries[i];
  return NULL;
}

/* False where the prims were refused: the answer says so already. */
static bool query_on(const char* prims, ovstage_query_handle_t* query, bool* made) {
  *made = prims[0] != '$';
  if (*made) return (*query = query_made(prims)) != 0;
  named_query* known = query_named(prims + 1);
  *query = known == NULL ? 0 : known->query;
  return true;
}

static void query_off(ovstage_query_handle_t query, bool made) {
  if (made) ended(ovstage_release_query(play.stage, query));
}

static void name_query(const char* name, ovstage_query_handle_t query) {
  named_query* known = query_named(name);
  if (known != NULL) {
    ended(ovstage_release_query(play.stage, known->query));
  } else {
    if (play.query_count == NAMED) mistake("more than %d queries", NAMED);
    known = &play.queries[play.query_count++];
    snprintf(known->name, sizeof known->name, "%s", name);
  }
  known->query = query;
}

static named_map* map_named(const char* name) {
  for (int i = play.map_count; i-- > 0;)
    if (strcmp(play.maps[i].name, name) == 0) return &play.maps[i];
  mistake("there is no map %s", name);
  return NULL;
}

/* The group that a script calls map.number. */
static ovstage_map_group_t* group_named(char* word, named_map** of) {
  char* dot = strchr(word, '.');
  if (dot == NULL) mistake("%s is no group of a map, such as m.0", word);
  *dot = '\0';
  *of = map_named(word);
  uint64_t at = number(dot + 1);
  if (at >= (uint64_t)(*of)->group_count) mistake("%s.%s was not fetched", word, dot + 1);
  return &(*of)->groups[at];
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static const struct {
  const char* name;
  uint8_t code, bits;
  bool plain; /* C has numbers of it */
} elements[] = {
    {"bool8", kDLBool, 8, true},        {"int8", kDLInt, 8, true},
    {"int16", kDLInt, 16, true},        {"int32", kDLInt, 32, true},
    {"int64", kDLInt, 64, true},        {"uint8", kDLUInt, 8, true},
    {"uint16", kDLUInt, 16, true},      {"uint32", kDLUInt, 32, true},
    {"uint64", kDLUInt, 64, true},      {"float16", kDLFloat, 16, false},
    {"float32", kDLFloat, 32, true},    {"float64", kDLFloat, 64, true},
    {"bfloat16", kDLBfloat, 16, false}, {"complex64", kDLComplex, 64, false},
    {"float8_e4m3fn", 10, 8, false},    {"float8_e5m2", 12, 8, false},
};
enum { ELEMENTS = sizeof elements / sizeof elements[0] };

static const char* const roles[] = {"NONE",
                                    "ASSET_PATH_ID",
                                    "TOKEN_ID",
                                    "PATH_EXPRESSION_STRING",
                                    "RELATIONSHIP_PATH_ID",
                                    "POINT",
                                    "VECTOR",
                                    "NORMAL",
                                    "COLOR",
                                    "QUATERNION",
                                    "MATRIX",
                                    "TEXTURE_COORDINATE",
                                    "CONNECTION_PATH_ID",
                                    "STRING",
                                    "TIME_CODE",
                                    "FRAME"};

static ovstage_attribute_semantic_t role_of(const char* name) {
  for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
    if (strcmp(roles[i], name) == 0) return (ovstage_attribute_semantic_t)i;
  mistake("there is no role %s", name);
  return OVSTAGE_SEMANTIC_NONE;
}

static ovstage_prim_mode_t mode_of(const command* c) {
  const char* mode = option(c, "mode");
  if (mode == NULL || strcmp(mode, "upsert") == 0) return OVSTAGE_PRIM_MODE_UPSERT;
  if (strcmp(mode, "insert") == 0) return OVSTAGE_PRIM_MODE_INSERT;
  if (strcmp(mode, "require") == 0) return OVSTAGE_GO_PRIM_MODE_REQUIRE;
  if (strcmp(mode, "update") != 0) mistake("there is no mode %s", mode);
  return OVSTAGE_GO_PRIM_MODE_UPDATE;
}

/* What a type in a script means: float32x3, or float32x3[] for arrays. */
static DLDataType parse_type(const char* word, bool* array) {
  size_t length = strlen(word);
  *array = length > 2 && strcmp(word + length - 2, "[]") == 0;
  char* name = copied(word, *array ? length - 2 : length);
  for (int pass = 0; pass < 2; pass++) {
    char* lanes = pass == 0 ? NULL : strrchr(name, 'x');
    if (lanes != NULL) *lanes++ = '\0';
    for (int i = 0; i < ELEMENTS; i++)
      if (strcmp(elements[i].name, name) == 0)
        return type_of(elements[i].code, elements[i].bits, lanes == NULL ? 1 : (uint16_t)number(lanes));
  }
  mistake("%s is no type", word);
  return EXISTING;
}

static int element_of(DLDataType type) {
  for (int i = 0; i < ELEMENTS; i++)
    if (elements[i].code == type.code && elements[i].bits == type.bits) return i;
  mistake("an element type that scripts do not know");
  return 0;
}

static const char* type_text(DLDataType type, bool array) {
  char* text = (char*)scrap(64);
  snprintf(text, 64, "%s", elements[element_of(type)].name);
  if (type.lanes > 1) snprintf(text + strlen(text), 16, "x%d", type.lanes);
  if (array) strcat(text, "[]");
  return text;
}

static size_t size_of(DLDataType type) { return (size_t)type.bits / 8 * type.lanes; }

/* A number as memory has it. A text stands for its token, a <path> for its handle. */
static uint64_t bits_of(DLDataType type, char* number_text) {
  if (number_text[0] == '"') return token(inner(number_text));
  if (number_text[0] == '<') {
    ovx_string_t string = view(inner(number_text));
    ovx_primpath_t path = 0;
    named(path_dictionary_create_paths_from_strings(play.dictionary, &string, 1, &path));
    return path;
  }
  if (strcmp(number_text, "true") == 0) return 1;
  if (strcmp(number_text, "false") == 0) return 0;
  uint64_t bits = 0;
  if (type.code == kDLFloat && type.bits == 32) {
    float value = strtof(number_text, NULL);
    memcpy(&bits, &value, sizeof value);
  } else if (type.code == kDLFloat && type.bits == 64) {
    double value = strtod(number_text, NULL);
    memcpy(&bits, &value, sizeof value);
  } else if (type.code == kDLInt) {
    bits = (uint64_t)strtoll(number_text, NULL, 10);
  } else {
    bits = strtoull(number_text, NULL, 0);
  }
  return bits;
}

/* Reads one row, 1,2,3 for three lanes, into memory. Machines that this runs on are little-endian. */
static void encode(DLDataType type, char* row, char* to) {
  size_t count = 0;
  char** numbers = parts(row, ',', &count);
  if (row[0] == '"' || row[0] == '<') {
    numbers[0] = copied(row, strlen(row));
    count = 1;
  }
  if (count != type.lanes) mistake("%s is no value of %d lanes", row, type.lanes);
  for (size_t i = 0; i < count; i++) {
    uint64_t bits = bits_of(type, numbers[i]);
    memcpy(to + i * type.bits / 8, &bits, type.bits / 8);
  }
}

typedef enum { NUMBERS, TEXTS, PATHS } meaning;

static void add_value(DLDataType type, meaning meant, const char* from) {
  for (int lane = 0; lane < type.lanes; lane++, from += type.bits / 8) {
    if (lane > 0) add(",");
    uint64_t bits = 0;
    memcpy(&bits, from, type.bits / 8);
    if (meant == TEXTS) {
      add("\"%s\"", text_of(bits));
    } else if (meant == PATHS) {
      add("<%s>", path_text(bits));
    } else if (type.code == kDLBool) {
      add(bits != 0 ? "true" : "false");
    } else if (!elements[element_of(type)].plain) {
      add("%#" PRIx64, bits);
    } else if (type.code == kDLFloat && type.bits == 32) {
      float value;
      memcpy(&value, from, sizeof value);
      add("%.9g", (double)value);
    } else if (type.code == kDLFloat) {
      double value;
      memcpy(&value, from, sizeof value);
      add("%.17g", value);
    } else if (type.code == kDLInt) {
      int shift = 64 - type.bits;
      add("%" PRId64, (int64_t)(bits << shift) >> shift);
    } else {
      add("%" PRIu64, bits);
    }
  }
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

static const char* prim_text(const ovstage_prim_group_t* prims, uint32_t k) {
  size_t position = prims->index_map != NULL ? prims->index_map[k] : prims->offset + k, count = 0;
  ovx_primpath_t path = 0;
  named(path_dictionary_get_paths_from_path_list(play.dictionary, prims->list, position, 1, &path, &count));
  return path_text(path);
}

/* The prims of a group, with their values. */
static void say_rows(const ovstage_prim_group_t* prims, const ovstage_data_t* data, bool array, bool values,
                     meaning meant) {
  for (uint32_t k = 0; k < prims->count; k++) {
    say("%s", prim_text(prims, k));
    if (!values) continue;
    uint32_t row = data->index_map != NULL ? data->index_map[k] : k;
    const DLTensor* tensor = &data->tensors[array ? row : 0];
    const char* bytes = (const char*)tensor->data + tensor->byte_offset;
    size_t size = size_of(stored_type(tensor));
    add(array ? " [" : " ");
    if (!array) {
      add_value(stored_type(tensor), meant, bytes + row * size);
      continue;
    }
    for (int64_t i = 0; i < tensor->shape[0]; i++) {
      if (i > 0) add(" ");
      add_value(stored_type(tensor), meant, bytes + (size_t)i * size);
    }
    add("]");
  }
}

static void say_group(const ovstage_read_group_t* g) {
  const char* name = text_of(g->attribute);
  say("%s@%" PRIu64, name, g->ordinal);
  if (g->is_delete) {
    add(" deleted");
    say_rows(&g->prims, &g->data, false, false, NUMBERS);
    return;
  }
  const char* type = text_of(play.go->tensors_type(g->data.tensors));
  add(" %s", type_text(stored_type(g->data.tensors), g->is_array));
  if (g->semantic != OVSTAGE_SEMANTIC_NONE) add(" %s", roles[g->semantic]);
  if (type[0] != '\0') add(" (%s)", type);
  if (g->data.index_map != NULL && !g->is_array) add(" indexed");
  meaning meant = NUMBERS;
  if (g->semantic == OVSTAGE_SEMANTIC_TOKEN_ID || strcmp(type, "string") == 0 || strcmp(type, "string[]") == 0)
    meant = TEXTS;
  else if (g->semantic == OVSTAGE_SEMANTIC_RELATIONSHIP_PATH_ID || strncmp(name, "usd-", 4) == 0)
    meant = PATHS;
  say_rows(&g->prims, &g->data, g->is_array, true, meant);
}

static void release_groups(named_groups* of) {
  for (int i = 0; i < of->group_count; i++) accepted(ovstage_release_group(play.stage, &of->groups[i]));
  of->group_count = 0;
}

/* Takes all groups of a read and says them. */
static void take_groups(ovstage_read_handle_t read, named_groups* to, bool say_them) {
  ovstage_api_status_t status;
  while ((status = ovstage_fetch_read_next(play.stage, read, FOREVER, &to->groups[to->group_count])) == OVSTAGE_OK) {
    if (say_them) say_group(&to->groups[to->group_count]);
    if (++to->group_count == GROUPS) mistake("more than %d groups", GROUPS);
  }
  if (status != OVSTAGE_ERROR_END_OF_ITERATION) accepted(status);
}

/* Reads `latest END PRIMS NAMES` or `range START END PRIMS NAMES`. */
static void read_groups(char** args, named_groups* to) {
  to->group_count = 0;
  ovstage_ordinal_range_t range = latest(0);
  range.has_start_ordinal = strcmp(args[0], "range") == 0;
  if (range.has_start_ordinal) range.start_ordinal = number(*++args);
  range.end_ordinal = number(args[1]);
  size_t count = 0;
  ovx_token_t* names = tokens(args[3], &count);
  ovstage_query_handle_t query;
  ovstage_read_handle_t read = 0;
  bool made;
  if (!query_on(args[2], &query, &made)) return;
  if (ended(ovstage_read_attributes(play.stage, query, names, count, range, &read))) {
    take_groups(read, to, true);
    char why[LINE];
    ovx_token_t of;
    size_t length;
    for (size_t i = 0; (length = play.go->read_missing(play.stage, read, i, &of, why, sizeof why)) > 0; i++)
      say("nothing of %s: %.*s", text_of(of), (int)length, why);
    ended(ovstage_release_read(play.stage, read));
  }
  query_off(query, made);
}

/* ---- Commands: floors -------------------------------------------------------------------------------------------- */

static void do_history(command* c) { accepted(play.go->keep_history(play.stage, number(c->args[1]))); }

static void do_seal(command* c) {
  ovstage_write_floor_desc_t floor;
  memset(&floor, 0, sizeof floor);
  floor.ordinal = number(c->args[1]);
  const char *only = option(c, "only"), *but = option(c, "but"), *names = only != NULL ? only : but;
  floor.scope = only != NULL ? OVSTAGE_SCOPE_INCLUDE : but != NULL ? OVSTAGE_SCOPE_EXCLUDE : OVSTAGE_SCOPE_ALL;
  if (names != NULL) floor.attributes = tokens(names, &floor.attribute_count);
  ended(ovstage_advance_write_floor(play.stage, &floor));
}

static void say_ordinal(ovstage_enqueue_result_t asked, const ovstage_ordinal_query_handle_t* handle) {
  ovstage_ordinal_t ordinal = 0;
  if (!ended(asked) || !accepted(ovstage_fetch_ordinal(play.stage, *handle, FOREVER, &ordinal))) return;
  say("%" PRIu64, ordinal);
  ended(ovstage_release_ordinal_query(play.stage, *handle));
}

static void do_floor(command* c) {
  ovstage_ordinal_query_handle_t handle = 0;
  ovx_string_or_token_t name = by_token(c->arg_count > 1 ? token(c->args[1]) : 0);
  say_ordinal(ovstage_get_attribute_write_floor(play.stage, name, &handle), &handle);
}

static void do_oldest(command* c) {
  (void)c;
  ovstage_ordinal_query_handle_t handle = 0;
  say_ordinal(ovstage_get_oldest_preserved_ordinal(play.stage, &handle), &handle);
}

/* ---- Commands: writes -------------------------------------------------------------------------------------------- */

static void choose_rows(const command* c, ovstage_write_data_t* data) {
  const char *rows = option(c, "rows"), *mask = option(c, "mask"), *count = option(c, "count");
  if (rows != NULL) {
    size_t n = 0;
    char** list = parts(rows, ',', &n);
    uint32_t* index_map = (uint32_t*)scrap((n + 1) * sizeof *index_map);
    for (size_t i = 0; i < n; i++) index_map[i] = (uint32_t)number(list[i]);
    data->index_map = index_map;
    data->count = (uint32_t)n;
  }
  if (mask != NULL) {
    uint64_t* words = (uint64_t*)scrap(strlen(mask) / 8 + 8);
    for (size_t i = 0; mask[i] != '\0'; i++) words[i / 64] |= (uint64_t)(mask[i] == '1') << (i % 64);
    data->mask = words;
    data->count = (uint32_t)strlen(mask);
  }
  if (count != NULL) data->count = (uint32_t)number(count);
}

static DLTensor tensor_from(DLDataType type, char** rows, size_t count) {
  char* bytes = (char*)scrap(count * size_of(type));
  for (size_t i = 0; i < count; i++) encode(type, rows[i], bytes + i * size_of(type));
  int64_t* shape = (int64_t*)scrap(sizeof *shape);
  shape[0] = (int64_t)count;
  return tensor_of(bytes, type, 1, shape);
}

/* Reads ATTRIBUTE TYPE VALUES. */
static ovstage_attribute_write_t write_from(const command* c, char** args, size_t count) {
  ovstage_attribute_write_t write;
  memset(&write, 0, sizeof write);
  if (count < 2) mistake("a write is an attribute, a type and values");
  write.attribute = by_token(token(args[0]));
  DLDataType type = parse_type(args[1], &write.data.is_array);
  char** rows = args + 2;
  count -= 2;
  DLTensor* tensors = (DLTensor*)scrap((count + 1) * sizeof *tensors);
  write.data.tensors = tensors;
  write.data.tensor_count = 1;
  if (write.data.is_array && count > 0 && rows[0][0] == '[') {
    write.data.tensor_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
      size_t values = 0;
      char** list = parts(inner(rows[i]), ' ', &values);
      tensors[i] = tensor_from(type, list, values);
    }
  } else {
    tensors[0] = tensor_from(type, rows, count);
  }
  choose_rows(c, &write.data);
  if (option(c, "role") != NULL) write.data.semantic = role_of(option(c, "role"));
  return write;
}

/* Reads ATTRIBUTE TYPE VALUES, several of them with & in between. */
static size_t writes_from(const command* c, char** args, size_t count, ovstage_attribute_write_t* to) {
  size_t made = 0;
  for (size_t from = 0; from < count;) {
    size_t end = from;
    while (end < count && strcmp(args[end], "&") != 0) end++;
    to[made++] = write_from(c, args + from, end - from);
    from = end + 1;
  }
  return made;
}

static ovx_string_or_token_t* types_from(const command* c, size_t count) {
  ovx_string_or_token_t* list = (ovx_string_or_token_t*)scrap((count + 1) * sizeof *list);
  const char* type = option(c, "type");
  for (size_t i = 0; i < count; i++) list[i] = by_token(type == NULL ? 0 : token(type));
  return list;
}

static void do_write(command* c) {
  ovstage_ordinal_t ordinal = ordinal_of(c->args[2]);
  ovstage_attribute_write_t writes[WORDS];
  size_t count = writes_from(c, c->args + 2, (size_t)c->arg_count - 2, writes);
  ovstage_query_handle_t query;
  bool made;
  if (answer_count > 0 || !query_on(c->args[1], &query, &made)) return;
  if (count == 1 && option(c, "type") == NULL)
    ended(ovstage_write_attribute(play.stage, query, writes[0].attribute, ordinal, writes[0].data, mode_of(c)));
  else
    ended(play.go->write_typed(play.stage, query, writes, types_from(c, count), count, ordinal, mode_of(c)));
  query_off(query, made);
}

static void do_delete(command* c) {
  ovstage_ordinal_t ordinal = ordinal_of(c->args[2]);
  size_t count = 0;
  ovx_string_or_token_t* names = strcmp(c->args[2], "*") == 0 ? NULL : names_of(c->args[2], &count);
  ovstage_query_handle_t query;
  bool made;
  if (!query_on(c->args[1], &query, &made)) return;
  ended(ovstage_delete_attributes(play.stage, query, names, count, ordinal));
  query_off(query, made);
}

static void do_publish(command* c) {
  ovstage_go_delete_t deletes[WORDS];
  ovstage_go_batch_t batches[WORDS];
  ovstage_attribute_write_t writes[WORDS];
  ovstage_query_handle_t made[WORDS];
  size_t delete_count = 0, batch_count = 0, write_count = 0, made_count = 0;
  for (int at = 2; at < c->arg_count;) {
    int end = at + 1;
    while (end < c->arg_count && strcmp(c->args[end], "-") != 0 && strcmp(c->args[end], "+") != 0) end++;
    if (end - at < 3) mistake("a part of a publication is - PRIMS NAMES or + PRIMS NAME TYPE VALUES");
    ovstage_query_handle_t query = made[made_count++] = query_made(c->args[at + 1]);
    if (c->args[at][0] == '-') {
      ovstage_go_delete_t* d = &deletes[delete_count++];
      memset(d, 0, sizeof *d);
      d->query = query;
      if (strcmp(c->args[at + 2], "*") != 0) d->attributes = names_of(c->args[at + 2], &d->attribute_count);
    } else {
      ovstage_go_batch_t* b = &batches[batch_count++];
      b->query = query;
      b->writes = &writes[write_count];
      b->write_count = writes_from(c, c->args + at + 2, (size_t)(end - at - 2), &writes[write_count]);
      write_count += b->write_count;
    }
    at = end;
  }
  ended(play.go->publish_typed(play.stage, deletes, delete_count, batches, batch_count, types_from(c, write_count),
                               number(c->args[1])));
  for (size_t i = 0; i < made_count; i++) ended(ovstage_release_query(play.stage, made[i]));
}

/* ---- Commands: maps ---------------------------------------------------------------------------------------------- */

static void do_map(command* c) {
  ovstage_ordinal_t ordinal = ordinal_of(c->args[3]);
  bool array = false, made;
  ovstage_map_desc_t desc = map_of(token(c->args[3]), c->arg_count > 4 ? parse_type(c->args[4], &array) : EXISTING);
  desc.prim_mode = mode_of(c);
  if (option(c, "role") != NULL) desc.semantic = role_of(option(c, "role"));
  ovstage_go_map_options_t options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  const char *initial = option(c, "initial"), *sizes = option(c, "sizes"), *group = option(c, "group");
  if (initial != NULL)
    options.initial = strcmp(initial, "zero") == 0      ? OVSTAGE_GO_INITIAL_ZERO
                      : strcmp(initial, "discard") == 0 ? OVSTAGE_GO_INITIAL_DISCARD
                                                        : OVSTAGE_GO_INITIAL_CURRENT;
  if (group != NULL) options.group_rows = number(group);
  size_t size_count = 0;
  size_t* element_sizes = NULL;
  if (sizes != NULL) {
    char** list = parts(sizes, ',', &size_count);
    element_sizes = (size_t*)scrap((size_count + 1) * sizeof *element_sizes);
    for (size_t i = 0; i < size_count; i++) element_sizes[i] = number(list[i]);
  }
  ovstage_query_handle_t query;
  ovstage_map_handle_t map = 0;
  if (!query_on(c->args[2], &query, &made)) return;
  if (ended(play.go->map_attribute(play.stage, query, &desc, ordinal, element_sizes, size_count, &options, &map))) {
    if (play.map_count == NAMED) mistake("more than %d maps", NAMED);
    named_map* m = &play.maps[play.map_count++];
    memset(m, 0, sizeof *m);
    snprintf(m->name, sizeof m->name, "%s", c->args[1]);
    m->map = map;
    m->array = sizes != NULL;
    m->content = options.initial != OVSTAGE_GO_INITIAL_DISCARD;
  }
  query_off(query, made);
}

static void do_fetch(command* c) {
  named_map* m = map_named(c->args[1]);
  if (m->group_count == GROUPS) mistake("more than %d groups", GROUPS);
  ovstage_map_group_t* g = &m->groups[m->group_count];
  ovstage_api_status_t status = ovstage_fetch_map_next(play.stage, m->map, FOREVER, g);
  if (status == OVSTAGE_ERROR_END_OF_ITERATION) {
    say("no more");
  } else if (accepted(status)) {
    say("%s.%d %s", m->name, m->group_count++, type_text(stored_type(g->data.tensors), m->array));
    say_rows(&g->prims, &g->data, m->array, m->content, NUMBERS);
  }
}

/* Writes rows of a fetched group, from its first on; - leaves one as it is. */
static void do_fill(command* c) {
  named_map* m;
  ovstage_map_group_t* g = group_named(c->args[1], &m);
  for (int k = 0; k + 2 < c->arg_count; k++) {
    char* row = c->args[k + 2];
    const DLTensor* tensor = &g->data.tensors[m->array ? k : 0];
    size_t size = size_of(stored_type(tensor)), count = 1;
    if (strcmp(row, "-") == 0) continue;
    char** values = m->array ? parts(inner(row), ' ', &count) : &row;
    char* to = (char*)tensor->data + (m->array ? 0 : (size_t)k * size);
    if (m->array && (int64_t)count != tensor->shape[0]) mistake("row %d has another number of elements", k);
    for (size_t i = 0; i < count; i++) encode(stored_type(tensor), values[i], to + i * size);
  }
}

static void do_commit(command* c) {
  named_map* m;
  if (strchr(c->args[1], '.') != NULL) {
    ovstage_map_group_t* g = group_named(c->args[1], &m);
    ended(play.go->unmap_group(play.stage, m->map, g, NO_SYNC, OVSTAGE_GO_COMMIT_AUTO));
  } else {
    m = map_named(c->args[1]);
    ended(play.go->unmap_attribute(play.stage, m->map, NO_SYNC, OVSTAGE_GO_COMMIT_AUTO));
  }
}

static void do_abort(command* c) { accepted(play.go->abort_map(play.stage, map_named(c->args[1])->map)); }

/* Keeps a view of a mapped buffer beyond its commit; scribble writes to all of them. */
static void do_view(command* c) {
  named_map* m;
  ovstage_map_group_t* g = group_named(c->args[1], &m);
  if (m->view_count == GROUPS) mistake("more than %d views", GROUPS);
  int at = m->view_count++;
  m->views[at] = play.go->tensors_block(g->data.tensors);
  play.go->block_retain(m->views[at]);
  m->view_data[at] = g->data.tensors->data;
  m->view_bytes[at] = (size_t)g->data.tensors->shape[0] * size_of(stored_type(g->data.tensors));
}

static void do_scribble(command* c) {
  named_map* m = map_named(c->args[1]);
  for (int i = 0; i < m->view_count; i++) memset(m->view_data[i], 0xff, m->view_bytes[i]);
}

/* ---- Commands: reads and queries --------------------------------------------------------------------------------- */

static void do_read(command* c) {
  named_groups groups;
  read_groups(c->args + 1, &groups);
  release_groups(&groups);
}

/* The prims of since: * stands for all. */
static bool followed_on(const char* prims, ovstage_query_handle_t* query, bool* made) {
  *made = false;
  *query = 0;
  return strcmp(prims, "*") == 0 || query_on(prims, query, made);
}

static void do_since(command* c) {
  size_t count = 0;
  char** words = parts(c->args[2], ',', &count);
  ovstage_go_cursor_t* cursors = (ovstage_go_cursor_t*)scrap((count + 1) * sizeof *cursors);
  for (size_t i = 0; i < count; i++) {
    char* at = strchr(words[i], '@');
    if (at == NULL) mistake("%s has no ordinal", words[i]);
    *at = '\0';
    cursors[i].resync = strcmp(at + 1, "-") == 0;
    if (!cursors[i].resync) cursors[i].since = number(at + 1);
    cursors[i].attribute = token(words[i]);
  }
  ovstage_query_handle_t query;
  ovstage_read_handle_t read = 0;
  bool made;
  if (!followed_on(c->args[1], &query, &made)) return;
  if (ended(play.go->read_since(play.stage, query, cursors, count, &read))) {
    named_groups groups;
    groups.group_count = 0;
    take_groups(read, &groups, true);
    release_groups(&groups);
    ended(ovstage_release_read(play.stage, read));
    for (size_t i = 0; i < count; i++)
      say("%s until %" PRIu64 "%s", text_of(cursors[i].attribute), cursors[i].until, cursors[i].resync ? " anew" : "");
  }
  query_off(query, made);
}

static void do_level(command* c) {
  ovstage_go_stage_options_t options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.interface_level = ovstage_go_interface_named(c->args[1]);
  accepted(play.go->set_stage_options(play.stage, &options));
}

/* How the tensors of a read are described: type and axes, of arrays the axes of each. */
static void do_layout(command* c) {
  named_groups groups;
  read_groups(c->args + 1, &groups);
  answer_count = 0;
  for (int i = 0; i < groups.group_count; i++) {
    const ovstage_read_group_t* g = &groups.groups[i];
    say("%s %s", text_of(g->attribute), type_text(g->data.tensors->dtype, g->is_array));
    for (uint32_t k = 0; k < g->data.tensor_count; k++)
      for (int32_t axis = 0; axis < g->data.tensors[k].ndim; axis++)
        add("%s%" PRId64, axis == 0 ? " " : ",", g->data.tensors[k].shape[axis]);
  }
  release_groups(&groups);
}

static named_groups* held_named(const char* name, bool make) {
  for (int i = 0; i < play.held_count; i++)
    if (strcmp(play.held[i].name, name) == 0) return &play.held[i];
  if (!make || play.held_count == NAMED) mistake("nothing is held as %s", name);
  named_groups* groups = &play.held[play.held_count++];
  groups->group_count = 0;
  snprintf(groups->name, sizeof groups->name, "%s", name);
  return groups;
}

static void do_hold(command* c) {
  named_groups* groups = held_named(c->args[1], true);
  release_groups(groups);
  read_groups(c->args + 2, groups);
}

static void do_show(command* c) {
  named_groups* groups = held_named(c->args[1], false);
  for (int i = 0; i < groups->group_count; i++) say_group(&groups->groups[i]);
}

static void do_drop(command* c) { release_groups(held_named(c->args[1], false)); }

static void do_query(command* c) {
  ovstage_query_handle_t query = query_made(c->args[2]);
  if (query != 0) name_query(c->args[1], query);
}

/* The prims of a query that exist, in its order: those that have a path. */
static void say_prims(ovstage_query_handle_t query) {
  ovx_token_t path = token("usd-path");
  ovstage_read_handle_t read = 0;
  named_groups groups;
  groups.group_count = 0;
  if (!ended(ovstage_read_attributes(play.stage, query, &path, 1, latest(0), &read))) return;
  take_groups(read, &groups, false);
  for (int i = 0; i < groups.group_count; i++)
    say_rows(&groups.groups[i].prims, &groups.groups[i].data, false, false, NUMBERS);
  release_groups(&groups);
  ended(ovstage_release_read(play.stage, read));
}

static void do_list(command* c) {
  ovstage_query_handle_t query;
  bool made;
  if (!query_on(c->args[1], &query, &made)) return;
  say_prims(query);
  query_off(query, made);
}

static ovstage_filter_op_t operator_of(const char* word) {
  static const char* const names[] = {"has", "in", "contains", "prefix", "<", "<=", ">", ">="};
  for (int i = 0; i < 8; i++)
    if (strcmp(names[i], word) == 0) return (ovstage_filter_op_t)i;
  mistake("there is no operator %s", word);
  return OVSTAGE_FILTER_OP_HAS;
}

static void do_filter(command* c) {
  ovstage_go_condition_t whole, conditions[WORDS];
  memset(&whole, 0, sizeof whole);
  memset(conditions, 0, sizeof conditions);
  whole.match = OVSTAGE_GO_MATCH_ALL;
  whole.conditions = conditions;
  if (c->arg_count > 2 && strcmp(c->args[2], "any") == 0) whole.match = OVSTAGE_GO_MATCH_ANY;
  if (c->arg_count > 2 && strcmp(c->args[2], "none") == 0) whole.match = OVSTAGE_GO_MATCH_NONE;
  for (int from = 3; from < c->arg_count;) {
    int end = from;
    while (end < c->arg_count && strcmp(c->args[end], "&") != 0) end++;
    ovstage_predicate_t* p = &conditions[whole.count++].predicate;
    p->attribute = by_token(token(c->args[from]));
    p->op = operator_of(c->args[from + 1]);
    ovx_string_t* values = (ovx_string_t*)scrap(sizeof *values * WORDS);
    for (int i = from + 2; i < end; i++)
      values[p->value_count++] = view(c->args[i][0] == '"' ? inner(c->args[i]) : c->args[i]);
    p->values = values;
    from = end + 1;
  }
  ovstage_query_handle_t query = 0;
  if (!ended(play.go->query(play.stage, &whole, NULL, 0, &query))) return;
  name_query(c->args[1], query);
  say_prims(query);
}

static void do_refresh(command* c) {
  named_query* known = query_named(c->args[1]);
  if (known == NULL) mistake("there is no query %s", c->args[1]);
  if (ended(play.go->refresh_query(play.stage, known->query))) say_prims(known->query);
}

static int by_text(const void* a, const void* b) { return strcmp((const char*)a, (const char*)b); }

static void do_carried(command* c) {
  ovstage_query_handle_t query;
  ovstage_query_result_t result;
  bool made;
  if (!query_on(c->args[1], &query, &made)) return;
  if (accepted(ovstage_fetch_query_result(play.stage, query, FOREVER, &result))) {
    for (size_t i = 0; i < result.attribute_count; i++) say("%s", text_of(result.attributes[i]));
    qsort(answer, (size_t)answer_count, LINE, by_text);
    accepted(ovstage_release_query_result(play.stage, &result));
  }
  query_off(query, made);
}

static void do_attributes(command* c) {
  (void)c;
  ovstage_go_attribute_t found[WORDS];
  size_t count = 0;
  if (!accepted(play.go->attributes(play.stage, found, sizeof found[0], WORDS, &count))) return;
  if (count > WORDS) mistake("more than %d attributes", WORDS);
  for (size_t i = 0; i < count; i++) {
    say("%s %s", text_of(found[i].attribute), type_text(found[i].dtype, found[i].is_array));
    if (found[i].semantic != OVSTAGE_SEMANTIC_NONE) add(" %s", roles[found[i].semantic]);
    if (found[i].type_name != 0) add(" (%s)", text_of(found[i].type_name));
    add(" prims %" PRIu64 " floor %" PRIu64, found[i].prims, found[i].write_floor);
  }
  qsort(answer, (size_t)answer_count, LINE, by_text);
}

/* ---- Commands: scenes -------------------------------------------------------------------------------------------- */

static void do_clone(command* c) {
  ovstage_ordinal_t ordinal = ordinal_of(c->args[2]);
  size_t count = 0;
  char** texts = parts(c->args[2], ',', &count);
  ovx_string_t* targets = (ovx_string_t*)scrap((count + 1) * sizeof *targets);
  for (size_t i = 0; i < count; i++) targets[i] = view(texts[i]);
  ended(ovstage_clone(play.stage, view(c->args[1]), targets, count, ordinal));
}

static void do_compute(command* c) {
  ended(ovstage_compute_hierarchy(play.stage, OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL, number(c->args[1]),
                                  number(c->args[2])));
}

static void do_relatives(command* c) {
  static const char* const names[] = {"parent", "children", "siblings"};
  int relation = 0;
  while (strcmp(names[relation], c->args[1]) != 0)
    if (++relation == 3) mistake("there are no relatives %s", c->args[1]);
  size_t count = 0;
  char** texts = parts(c->args[2], ',', &count);
  ovx_string_t* strings = (ovx_string_t*)scrap((count + 1) * sizeof *strings);
  for (size_t i = 0; i < count; i++) strings[i] = view(texts[i]);
  ovx_primpath_list_t list = OVX_INVALID_PRIMPATH_LIST;
  if (!named(path_dictionary_create_path_list_from_strings(play.dictionary, strings, count, &list))) return;
  ovstage_hierarchy_handle_t handle = 0;
  ovstage_hierarchy_result_t result;
  if (ended(ovstage_get_hierarchy(play.stage, list, 1, (ovstage_hierarchy_relation_t)relation, &handle)) &&
      accepted(ovstage_fetch_hierarchy_result(play.stage, handle, &result))) {
    for (size_t i = 0; i < result.input_count; i++) {
      const ovstage_hierarchy_item_t* item = &result.items[i];
      say("%s:", texts[i]);
      for (size_t k = 0; k < item->path_count; k++) {
        ovx_string_t path = result.paths[item->path_offset + k].string;
        add(" %.*s", (int)path.length, path.ptr);
      }
      if (item->status != OVSTAGE_OK) add(" is no prim");
    }
    accepted(ovstage_release_hierarchy_result(play.stage, &result));
    ended(ovstage_release_hierarchy(play.stage, handle));
  }
  named(path_dictionary_release_path_list_reference(play.dictionary, list));
}

static ovx_primpath_t path_named(const char* text) {
  ovx_string_t string = view(text);
  ovx_primpath_t path = 0;
  return named(path_dictionary_create_paths_from_strings(play.dictionary, &string, 1, &path)) ? path : 0;
}

/* The paths of a list that was made for the player, sorted. */
static void say_paths(ovx_primpath_list_t list) {
  ovx_primpath_t paths[LINES];
  size_t count = 0;
  named(path_dictionary_get_paths_from_path_list(play.dictionary, list, 0, LINES, paths, &count));
  for (size_t i = 0; i < count; i++) say("%s", path_text(paths[i]));
  qsort(answer, (size_t)answer_count, LINE, by_text);
  named(path_dictionary_release_path_list_reference(play.dictionary, list));
}

static void do_prototypes(command* c) {
  (void)c;
  ovx_primpath_list_t list = OVX_INVALID_PRIMPATH_LIST;
  if (accepted(ovstage_instancing_get_prototype_roots(play.stage, &list))) say_paths(list);
}

static void do_instances(command* c) {
  ovx_primpath_list_t list = OVX_INVALID_PRIMPATH_LIST;
  if (accepted(ovstage_instancing_get_instance_roots(play.stage, path_named(c->args[1]), &list))) say_paths(list);
}

static void do_prototype(command* c) {
  ovx_primpath_t found = 0;
  if (accepted(ovstage_instancing_get_prototype_root(play.stage, path_named(c->args[1]), &found)))
    say("%s", path_text(found));
}

/* ---- The play ---------------------------------------------------------------------------------------------------- */

static const struct {
  const char* name;
  int args;
  void (*run)(command*);
} commands[] = {
    {"history", 1, do_history},
    {"seal", 1, do_seal},
    {"floor", 0, do_floor},
    {"oldest", 0, do_oldest},
    {"write", 3, do_write},
    {"delete", 2, do_delete},
    {"publish", 1, do_publish},
    {"map", 3, do_map},
    {"fetch", 1, do_fetch},
    {"fill", 2, do_fill},
    {"commit", 1, do_commit},
    {"abort", 1, do_abort},
    {"view", 1, do_view},
    {"scribble", 1, do_scribble},
    {"read", 4, do_read},
    {"hold", 5, do_hold},
    {"show", 1, do_show},
    {"drop", 1, do_drop},
    {"query", 2, do_query},
    {"filter", 1, do_filter},
    {"refresh", 1, do_refresh},
    {"list", 1, do_list},
    {"carried", 1, do_carried},
    {"attributes", 0, do_attributes},
    {"clone", 2, do_clone},
    {"compute", 2, do_compute},
    {"relatives", 2, do_relatives},
    {"since", 2, do_since},
    {"level", 1, do_level},
    {"layout", 4, do_layout},
    {"prototypes", 0, do_prototypes},
    {"instances", 1, do_instances},
    {"prototype", 1, do_prototype},
};

static void run(const char* line) {
  answer_count = 0;
  command c = taken_apart(line);
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (strcmp(commands[i].name, c.args[0]) != 0) continue;
    if (c.arg_count <= commands[i].args) mistake("%s takes at least %d words", c.args[0], commands[i].args);
    commands[i].run(&c);
    return;
  }
  mistake("there is no command %s", c.args[0]);
}

static bool agrees(const char* want, const char* got) {
  size_t length = strlen(want);
  if (length >= 3 && strcmp(want + length - 3, "...") == 0) return strncmp(want, got, length - 3) == 0;
  return strcmp(want, got) == 0;
}

static bool open_play(void) {
  memset(&play, 0, sizeof play);
  ovstage_instance_desc_t desc;
  desc.name = "script";
  if (!CHECK(ovstage_create_instance(&desc, &play.stage) == OVSTAGE_OK)) return false;
  play.dictionary = ovstage_get_path_dictionary(play.stage);
  const void* table = NULL;
  CHECK(ovstage_query_extension(play.stage, OVSTAGE_GO_V1_NAME, &table) == OVSTAGE_OK);
  play.go = (const ovstage_go_v1_t*)table;
  return play.go != NULL;
}

/* Gives everything back and wants nothing to be alive then. */
static void close_play(void) {
  answer_count = 0;
  for (int i = 0; i < play.held_count; i++) release_groups(&play.held[i]);
  for (int i = 0; i < play.map_count; i++) {
    play.go->abort_map(play.stage, play.maps[i].map);
    for (int k = 0; k < play.maps[i].view_count; k++) play.go->block_release(play.maps[i].views[k]);
  }
  for (int i = 0; i < play.query_count; i++) ended(ovstage_release_query(play.stage, play.queries[i].query));
  ovstage_go_counters_t counters = zero_counters();
  CHECK(play.go->counters(play.stage, &counters) == OVSTAGE_OK);
  CHECK(answer_count == 0);
  CHECK(counters.live_groups + counters.live_maps + counters.live_operations + counters.live_queries +
            counters.live_reads ==
        0);
  CHECK(ovstage_destroy_instance(play.stage) == OVSTAGE_OK);
}

/* Compares an answer with the lines below its command; next is the line after them. */
static char* compared(const char* line, int number_of_line, char* next) {
  int want = 0;
  bool same = true;
  char* first = next;
  while (strncmp(next, "    ", 4) == 0) {
    char* end = next + strcspn(next, "\n");
    char* text = copied(next + 4, (size_t)(end - next - 4));
    same = same && want < answer_count && agrees(text, answer[want]);
    want++;
    at_line++;
    next = *end == '\0' ? end : end + 1;
  }
  same = same && want == answer_count;
  if (!check(same, line, at_file, number_of_line)) {
    printf("  expected:\n%.*s  got:\n", (int)(next - first), first);
    for (int i = 0; i < answer_count; i++) printf("    %s\n", answer[i]);
  }
  return next;
}

static char* content_of(const char* file) {
  FILE* stream = fopen(file, "rb");
  if (stream == NULL) mistake("it can't be opened");
  fseek(stream, 0, SEEK_END);
  long length = ftell(stream);
  rewind(stream);
  char* text = (char*)calloc(1, (size_t)length + 1);
  if (text == NULL || fread(text, 1, (size_t)length, stream) != (size_t)length) mistake("it can't be read");
  fclose(stream);
  return text;
}

static int play_file(const char* file) {
  at_file = file;
  at_line = 0;
  int count = 0;
  char* text = content_of(file);
  if (!open_play()) return 0;
  for (char* next = text; *next != '\0';) {
    char* end = next + strcspn(next, "\n");
    char* line = copied(next, (size_t)(end - next));
    next = *end == '\0' ? end : end + 1;
    at_line++;
    if (line[0] == '\0' || line[0] == '#') continue;
    if (line[0] == ' ') mistake("an answer without a command");
    int number_of_line = at_line;
    run(line);
    count++;
    next = compared(line, number_of_line, next);
    sweep();
  }
  close_play();
  sweep();
  free(text);
  return count;
}

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; i++) count += play_file(argv[i]);
  if (argc < 2 || count == 0) {
    printf("usage: script FILE ...; nothing was played\n");
    return 2;
  }
  printf("%d scripts, %d commands, %d checks, %d failed\n", argc - 1, count, passed + failed, failed);
  return failed == 0 ? 0 : 1;
}
