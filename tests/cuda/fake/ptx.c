/*
 * ptx.c - kernels: their text, and a thread after the other.
 *
 * A subset of PTX (NVIDIA's "Parallel Thread Execution ISA"): entries with parameters, integer arithmetic, predicates,
 * branches, and loads and stores of parameters and global memory. What the subset lacks is refused when the text is
 * loaded. Threads run to their end one by one, so that what they would do to each other's memory is not shown.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { ENTRIES = 32, PARAMETERS = 16, LABELS = 128, REGISTERS = 64, OPERANDS = 4, LANES = 4, NAME = 64 };
enum { MOST_STEPS = 1000000, SPANS = 32 };

typedef enum {
  RETURN,
  BRANCH,
  LOAD_PARAMETER,
  LOAD,
  STORE,
  MOVE,
  MULTIPLY_ADD,
  MULTIPLY_ADD_WIDE,
  MULTIPLY,
  MULTIPLY_WIDE,
  ADD,
  SUBTRACT,
  DIVIDE,
  REMAINDER,
  SHIFT_LEFT,
  SHIFT_RIGHT,
  AND,
  OR,
  EQUAL,
  UNEQUAL,
  LESS,
  LESS_EQUAL,
  GREATER,
  GREATER_EQUAL
} code;

/* How an instruction begins, and how many operands it has. What follows are types. */
static const struct {
  const char* text;
  code code;
  int operands;
} instructions[] = {
    {"ret", RETURN, 0},
    {"bra", BRANCH, 1},
    {"ld.param.", LOAD_PARAMETER, 2},
    {"ld.global.", LOAD, 2},
    {"st.global.", STORE, 2},
    {"mov.", MOVE, 2},
    {"cvta.to.global.", MOVE, 2},
    {"cvt.", MOVE, 2},
    {"mad.lo.", MULTIPLY_ADD, 4},
    {"mad.wide.u32", MULTIPLY_ADD_WIDE, 4},
    {"mul.lo.", MULTIPLY, 3},
    {"mul.wide.u32", MULTIPLY_WIDE, 3},
    {"add.", ADD, 3},
    {"sub.", SUBTRACT, 3},
    {"div.u", DIVIDE, 3},
    {"rem.u", REMAINDER, 3},
    {"shl.b", SHIFT_LEFT, 3},
    {"shr.u", SHIFT_RIGHT, 3},
    {"and.", AND, 3},
    {"or.", OR, 3},
    {"setp.eq.", EQUAL, 3},
    {"setp.ne.", UNEQUAL, 3},
    {"setp.lt.u", LESS, 3},
    {"setp.le.u", LESS_EQUAL, 3},
    {"setp.gt.u", GREATER, 3},
    {"setp.ge.u", GREATER_EQUAL, 3},
};

typedef struct {
  enum { REGISTER, NUMBER, THREAD, BLOCK, THREADS, BLOCKS } kind;
  int index[LANES]; /* of registers; of the address in a load or store the first */
  int lanes;
  uint64_t number; /* or the offset of an address, of a parameter, or the instruction that a label stands before */
  char label[NAME];
} operand;

typedef struct {
  code code;
  int predicate; /* a register, or -1 */
  bool negated;
  int bits; /* of the result */
  int lanes;
  operand operands[OPERANDS];
} instruction;

struct function {
  char name[NAME];
  instruction* first; /* up to a RETURN at the latest */
  int count;
  int parameters, size; /* of all of them, in bytes */
  struct {
    char name[NAME];
    int size, offset;
  } parameter[PARAMETERS];
};

struct module {
  function entries[ENTRIES];
  int count;
};

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* What is known while one entry is read. */
typedef struct {
  function* entry;
  char registers[REGISTERS][16];
  int count;
  struct {
    char name[NAME];
    int at;
  } labels[LABELS];
  int label_count;
} reading;

static result refuse(const char* what, const char* text) {
  fake_fault("ptx: %s: %.40s", what, text);
  return INVALID_PTX;
}

static char* without_comments(const char* text) {
  char *copy = strdup(text), *to = copy;
  if (copy == NULL) abort();
  for (const char* from = copy; *from != '\0';) {
    if (from[0] == '/' && from[1] == '/') {
      while (*from != '\0' && *from != '\n') from++;
    } else {
      *to++ = isspace((unsigned char)*from) ? ' ' : *from;
      from++;
    }
  }
  *to = '\0';
  return copy;
}

static char* trimmed(char* text) {
  while (*text == ' ') text++;
  for (char* end = text + strlen(text); end > text && end[-1] == ' ';) *--end = '\0';
  return text;
}

static int register_of(reading* in, const char* name) {
  for (int i = 0; i < in->count; i++)
    if (strcmp(in->registers[i], name) == 0) return i;
  if (in->count == REGISTERS) return -1;
  (void)snprintf(in->registers[in->count], sizeof in->registers[0], "%s", name);
  return in->count++;
}

/* %r1, 7, %tid.x, {%r0, %r1}, [%d3+8], [parameter], LABEL */
static bool read_operand(reading* in, char* text, operand* out) {
  static const struct {
    const char* name;
    int kind;
  } special[] = {{"%tid.x", THREAD}, {"%ctaid.x", BLOCK}, {"%ntid.x", THREADS}, {"%nctaid.x", BLOCKS}};
  out->lanes = 1;
  for (size_t i = 0; i < sizeof special / sizeof *special; i++)
    if (strcmp(text, special[i].name) == 0) return out->kind = special[i].kind, true;
  if (*text == '{') {
    char* save = NULL;
    out->lanes = 0;
    for (char* one = strtok_r(text + 1, ",}", &save); one != NULL; one = strtok_r(NULL, ",}", &save)) {
      if (out->lanes == LANES) return false;
      out->index[out->lanes++] = register_of(in, trimmed(one));
    }
    return out->kind = REGISTER, true;
  }
  if (*text == '[') {
    char name[NAME] = "";
    long offset = 0;
    if (sscanf(text, "[ %63[^]+ ] + %ld", name, &offset) < 1) return false;
    out->number = (uint64_t)offset;
    for (int i = 0; i < in->entry->parameters; i++)
      if (strcmp(in->entry->parameter[i].name, name) == 0) return out->index[0] = i, out->kind = NUMBER, true;
    out->index[0] = register_of(in, name);
    return out->kind = REGISTER, *name == '%' && out->index[0] >= 0;
  }
  if (*text == '%') return out->kind = REGISTER, (out->index[0] = register_of(in, text)) >= 0;
  if (isdigit((unsigned char)*text) || *text == '-')
    return out->kind = NUMBER, out->number = (uint64_t)strtoll(text, NULL, 0), true;
  (void)snprintf(out->label, NAME, "%s", text);
  return out->kind = NUMBER, true;
}

/* How many bits the last type in `add.u64` has; of a cvt the first counts, into which it converts. */
static int bits_of(const char* mnemonic) {
  const char* type =
      strncmp(mnemonic, "cvt.", 4) == 0 && mnemonic[4] != 'a' ? mnemonic + 4 : strrchr(mnemonic, '.') + 1;
  return atoi(type + 1);
}

static bool is_signed(const char* mnemonic) {
  const char* type = strrchr(mnemonic, '.');
  return type != NULL && (type[1] == 's' || type[1] == 'f');
}

static result read_instruction(reading* in, char* text, instruction* out) {
  char whole[NAME];
  (void)snprintf(whole, sizeof whole, "%s", text);
  out->predicate = -1;
  if (*text == '@') {
    text++;
    if (*text == '!') out->negated = true, text++;
    char* end = strchr(text, ' ');
    if (end == NULL) return refuse("a predicate of nothing", whole);
    *end = '\0';
    out->predicate = register_of(in, text);
    text = trimmed(end + 1);
  }
  char* operands = strchr(text, ' ');
  if (operands != NULL) *operands++ = '\0';
  size_t known = 0, count = sizeof instructions / sizeof *instructions;
  while (known < count && strncmp(text, instructions[known].text, strlen(instructions[known].text)) != 0) known++;
  if (known == count || is_signed(text)) return refuse("an instruction that is not known", whole);
  out->code = instructions[known].code;
  out->bits = strchr(text, '.') != NULL ? bits_of(text) : 0;
  if (out->code == MULTIPLY_WIDE || out->code == MULTIPLY_ADD_WIDE) out->bits = 64;
  out->lanes = strstr(text, ".v4.") != NULL ? 4 : strstr(text, ".v2.") != NULL ? 2 : 1;
  int found = 0, deep = 0;
  for (char *at = operands, *from = operands; from != NULL; at++) {
    if (*at == '{' || *at == '[') deep++;
    if (*at == '}' || *at == ']') deep--;
    if ((*at != ',' || deep != 0) && *at != '\0') continue;
    bool last = *at == '\0';
    *at = '\0';
    if (found == OPERANDS || !read_operand(in, trimmed(from), &out->operands[found++]))
      return refuse("an operand", whole);
    from = last ? NULL : at + 1;
  }
  return found == instructions[known].operands ? OK : refuse("too few or too many operands", whole);
}

/* `.param .u64 p_dst, .param .u32 p_cells` */
static result read_parameters(function* entry, char* text) {
  char* save = NULL;
  for (char* one = strtok_r(text, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save)) {
    char type[16], name[NAME];
    if (entry->parameters == PARAMETERS || sscanf(one, " .param .%15s %63s", type, name) != 2)
      return refuse("a parameter", one);
    int size = atoi(type + 1) / 8, offset = (entry->size + size - 1) / size * size;
    (void)snprintf(entry->parameter[entry->parameters].name, NAME, "%s", name);
    entry->parameter[entry->parameters].size = size;
    entry->parameter[entry->parameters++].offset = offset;
    entry->size = offset + size;
  }
  return OK;
}

static result find_labels(reading* in) {
  for (int i = 0; i < in->entry->count; i++) {
    instruction* one = &in->entry->first[i];
    if (one->code != BRANCH) continue;
    int k = 0;
    while (k < in->label_count && strcmp(in->labels[k].name, one->operands[0].label) != 0) k++;
    if (k == in->label_count) return refuse("a label that is nowhere", one->operands[0].label);
    one->operands[0].number = (uint64_t)in->labels[k].at;
  }
  return OK;
}

/* What stands between the braces. */
static result read_body(reading* in, char* text) {
  function* entry = in->entry;
  size_t most = 1;
  for (const char* c = text; *c != '\0'; c++) most += *c == ';';
  entry->first = calloc(most, sizeof *entry->first);
  if (entry->first == NULL) abort();
  for (text = trimmed(text); *text != '\0';) {
    size_t word = strcspn(text, " :;");
    if (text[word] == ':') {
      if (in->label_count == LABELS) return refuse("too many labels", text);
      (void)snprintf(in->labels[in->label_count].name, NAME, "%.*s", (int)word, text);
      in->labels[in->label_count++].at = entry->count;
      text = trimmed(text + word + 1);
      continue;
    }
    char* end = strchr(text, ';');
    if (end == NULL) return refuse("an instruction without an end", text);
    *end = '\0';
    if (*text != '.') { /* registers need no declaration here */
      result refused = read_instruction(in, trimmed(text), &entry->first[entry->count++]);
      if (refused != OK) return refused;
    }
    text = trimmed(end + 1);
  }
  entry->first[entry->count++].code = RETURN;
  return find_labels(in);
}

static result read_entry(module* into, char* name, char** rest) {
  if (into->count == ENTRIES) return refuse("too many entries", name);
  reading in = {.entry = &into->entries[into->count++]};
  char *open = strchr(name, '('), *close = strchr(name, ')'), *body = strchr(name, '{'), *end = NULL;
  int deep = 0; /* braces of vectors stand within */
  for (char* c = body; c != NULL && *c != '\0' && end == NULL; c++) {
    deep += (*c == '{') - (*c == '}');
    if (deep == 0) end = c;
  }
  if (open == NULL || close == NULL || end == NULL || close > body) return refuse("an entry without a body", name);
  *open = *close = *end = '\0';
  *rest = end + 1;
  (void)snprintf(in.entry->name, NAME, "%s", trimmed(name));
  result refused = read_parameters(in.entry, open + 1);
  return refused != OK ? refused : read_body(&in, body + 1);
}

result ptx_load(module** loaded, const char* text) {
  char* copy = without_comments(text);
  module* made = calloc(1, sizeof *made);
  if (made == NULL) abort();
  bool version = strstr(copy, ".version ") != NULL, target = strstr(copy, ".target ") != NULL;
  result refused = version && target ? OK : refuse("no .version or no .target", copy);
  char* at = copy;
  while (refused == OK && (at = strstr(at, ".entry ")) != NULL) refused = read_entry(made, at + 7, &at);
  if (refused == OK && made->count == 0) refused = refuse("no entry", copy);
  free(copy);
  if (refused != OK) {
    ptx_unload(made);
    return refused;
  }
  *loaded = made;
  return OK;
}

void ptx_unload(module* loaded) {
  for (int i = 0; i < loaded->count; i++) free(loaded->entries[i].first);
  free(loaded);
}

function* ptx_find(module* loaded, const char* name) {
  for (int i = 0; i < loaded->count; i++)
    if (strcmp(loaded->entries[i].name, name) == 0) return &loaded->entries[i];
  return NULL;
}

const char* ptx_name(const function* entry) { return entry->name; }

result ptx_arguments(const function* entry, void** values, char* into, size_t room) {
  if ((size_t)entry->size > room || (values == NULL && entry->parameters > 0)) return INVALID_VALUE;
  for (int i = 0; i < entry->parameters; i++)
    memcpy(into + entry->parameter[i].offset, values[i], (size_t)entry->parameter[i].size);
  return OK;
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

/* What a launch has touched of one block: [0] reads, [1] writes. */
typedef struct {
  block* of;
  size_t low[2], high[2];
  bool used[2];
} span;

typedef struct {
  const function* entry;
  const char* arguments;
  unsigned block, blocks, thread, threads;
  uint64_t registers[REGISTERS];
  span* spans;
  int* span_count;
} running;

static uint64_t value(const running* now, const operand* of) {
  switch (of->kind) {
    case REGISTER:
      return now->registers[of->index[0]];
    case NUMBER:
      return of->number;
    case THREAD:
      return now->thread;
    case BLOCK:
      return now->block;
    case THREADS:
      return now->threads;
    case BLOCKS:
      return now->blocks;
  }
  return 0;
}

static void note(running* now, block* b, size_t low, size_t high, bool write) {
  int k = 0;
  while (k < *now->span_count && now->spans[k].of != b) k++;
  if (k == SPANS) abort();
  if (k == *now->span_count) now->spans[(*now->span_count)++] = (span){.of = b};
  span* s = &now->spans[k];
  if (!s->used[write] || low < s->low[write]) s->low[write] = low;
  if (!s->used[write] || high > s->high[write]) s->high[write] = high;
  s->used[write] = true;
}

static result access_memory(running* now, const instruction* one) {
  bool write = one->code == STORE;
  const operand *where = &one->operands[write ? 0 : 1], *lanes = &one->operands[write ? 1 : 0];
  size_t size = (size_t)one->bits / 8, all = size * (size_t)one->lanes;
  address at = now->registers[where->index[0]] + where->number;
  block* b = memory_find(at);
  if (b == NULL || at + all > b->start + b->size || b->state == FREED) {
    fake_fault("kernel %s, thread %u: illegal address %llx", now->entry->name, now->block * now->threads + now->thread,
               at);
    return ILLEGAL_ADDRESS;
  }
  if (at % all != 0) {
    fake_fault("kernel %s: misaligned address %llx for %zu bytes", now->entry->name, at, all);
    return ILLEGAL_ADDRESS;
  }
  char* bytes = b->alias + (at - b->start);
  for (int k = 0; k < one->lanes; k++, bytes += size) {
    if (write) {
      uint64_t lane = lanes->kind == REGISTER ? now->registers[lanes->index[k]] : lanes->number;
      memcpy(bytes, &lane, size);
    } else {
      now->registers[lanes->index[k]] = 0;
      memcpy(&now->registers[lanes->index[k]], bytes, size);
    }
  }
  note(now, b, at - b->start, at - b->start + all, write);
  return OK;
}

static uint64_t calculate(const instruction* one, uint64_t a, uint64_t b, uint64_t c) {
  switch (one->code) {
    case MOVE:
      return a;
    case MULTIPLY_ADD:
      return a * b + c;
    case MULTIPLY_ADD_WIDE:
      return (uint64_t)(uint32_t)a * (uint32_t)b + c;
    case MULTIPLY:
      return a * b;
    case MULTIPLY_WIDE:
      return (uint64_t)(uint32_t)a * (uint32_t)b;
    case ADD:
      return a + b;
    case SUBTRACT:
      return a - b;
    case DIVIDE:
      return b != 0 ? a / b : UINT64_MAX;
    case REMAINDER:
      return b != 0 ? a % b : a;
    case SHIFT_LEFT:
      return b < 64 ? a << b : 0;
    case SHIFT_RIGHT:
      return b < 64 ? a >> b : 0;
    case AND:
      return a & b;
    case OR:
      return a | b;
    case EQUAL:
      return a == b;
    case UNEQUAL:
      return a != b;
    case LESS:
      return a < b;
    case LESS_EQUAL:
      return a <= b;
    case GREATER:
      return a > b;
    case GREATER_EQUAL:
      return a >= b;
    default:
      return 0;
  }
}

static void load_parameter(running* now, const instruction* one) {
  int which = one->operands[1].index[0];
  uint64_t* into = &now->registers[one->operands[0].index[0]];
  *into = 0;
  memcpy(into, now->arguments + now->entry->parameter[which].offset, (size_t)now->entry->parameter[which].size);
}

static void store_result(running* now, const instruction* one) {
  uint64_t mask = one->bits == 64 ? UINT64_MAX : ((uint64_t)1 << one->bits) - 1;
  bool wide = one->code == MULTIPLY_WIDE || one->code == MULTIPLY_ADD_WIDE; /* of narrower operands */
  uint64_t in[3] = {0};
  for (int i = 0; i < 3; i++) {
    in[i] = value(now, &one->operands[i + 1]);
    if (!wide) in[i] &= mask;
  }
  now->registers[one->operands[0].index[0]] = calculate(one, in[0], in[1], in[2]) & mask;
}

static result run_thread(running* now) {
  const function* entry = now->entry;
  for (int at = 0, steps = 0;; steps++) {
    const instruction* one = &entry->first[at++];
    if (steps == MOST_STEPS) {
      fake_fault("kernel %s does not end", entry->name);
      return ILLEGAL_ADDRESS;
    }
    if (one->predicate >= 0 && (now->registers[one->predicate] != 0) == one->negated) continue;
    result bad = OK;
    switch (one->code) {
      case RETURN:
        return OK;
      case BRANCH:
        at = (int)one->operands[0].number;
        break;
      case LOAD_PARAMETER:
        load_parameter(now, one);
        break;
      case LOAD:
      case STORE:
        bad = access_memory(now, one);
        break;
      default:
        store_result(now, one);
        break;
    }
    if (bad != OK) return bad;
  }
}

result ptx_run(const function* entry, const char* arguments, unsigned blocks, unsigned threads, const toucher* by) {
  span spans[SPANS];
  int count = 0;
  result bad = OK;
  for (unsigned b = 0; b < blocks && bad == OK; b++) {
    for (unsigned t = 0; t < threads && bad == OK; t++) {
      running now = {entry, arguments, b, blocks, t, threads, {0}, spans, &count};
      bad = run_thread(&now);
    }
  }
  for (int k = 0; k < count; k++)
    for (int w = 0; w < 2; w++)
      if (spans[k].used[w])
        memory_touch(spans[k].of->start + spans[k].low[w], spans[k].high[w] - spans[k].low[w], w == 1, by);
  return bad;
}
