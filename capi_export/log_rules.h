/*
 * log_rules.h - which messages pass: the severity and the rules that ovstage_set_log_callback takes.
 *
 * The library reads it, and the extension, which judges a callback that it gets before there is a library.
 */
#ifndef OV_LOG_RULES_H
#define OV_LOG_RULES_H

#include <ovstage/ovstage_types.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The one channel so far. Rules name it, or a prefix of it. */
#define LOG_CHANNEL "ovstage"

static ovx_string_t log_trim(ovx_string_t s) {
  while (s.length > 0 && strchr(" \t\r\n", s.ptr[0])) s.ptr++, s.length--;
  while (s.length > 0 && strchr(" \t\r\n", s.ptr[s.length - 1])) s.length--;
  return s;
}

/* Splits at the first `separator`; without one everything is the first part. */
static ovx_string_t log_cut(ovx_string_t* rest, char separator) {
  const char* at = rest->length > 0 ? memchr(rest->ptr, separator, rest->length) : NULL;
  ovx_string_t first = {rest->ptr, at != NULL ? (size_t)(at - rest->ptr) : rest->length};
  size_t used = first.length + (at != NULL);
  rest->ptr += used;
  rest->length -= used;
  return first;
}

static bool log_level_of(ovx_string_t word, int* level) {
  static const struct {
    const char* name;
    int level;
  } levels[] = {
      {"verbose", OVSTAGE_LOG_VERBOSE}, {"debug", OVSTAGE_LOG_VERBOSE},   {"info", OVSTAGE_LOG_INFO},
      {"warn", OVSTAGE_LOG_WARNING},    {"warning", OVSTAGE_LOG_WARNING}, {"error", OVSTAGE_LOG_ERROR},
      {"fatal", OVSTAGE_LOG_ERROR + 1}, /* there is no severity for it: it lets nothing pass that is sent today */
      {"none", OVSTAGE_LOG_NONE},
  };
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
    if (strlen(levels[i].name) != word.length || strncasecmp(levels[i].name, word.ptr, word.length) != 0) continue;
    *level = levels[i].level;
    return true;
  }
  return false;
}

/* Finds the threshold of LOG_CHANNEL: that of the longest matching name, of equal ones the last, without any
 * `severity`. False: the text says what is wrong. */
static bool log_threshold(int severity, ovx_string_t filter, int* level, char* text, size_t size) {
  if (severity < OVSTAGE_LOG_VERBOSE || severity > OVSTAGE_LOG_NONE || severity == OVSTAGE_LOG_ERROR + 1) {
    snprintf(text, size, "severity %d is not one of VERBOSE (-2), INFO (-1), WARNING (0), ERROR (1), NONE (3)",
             severity);
    return false;
  }
  *level = severity;
  size_t longest = 0;
  filter = log_trim(filter);
  while (filter.length > 0) {
    ovx_string_t rule = log_trim(log_cut(&filter, ',')), whole = rule;
    ovx_string_t channel = log_trim(log_cut(&rule, '='));
    int found;
    if (channel.length == 0 || !log_level_of(log_trim(rule), &found)) {
      snprintf(
          text, size,
          "channel_filter: \"%.*s\" is not a rule: expected channel=level, with level one of verbose, debug, info, "
          "warn, warning, error, fatal, none",
          (int)(whole.length < 200 ? whole.length : 200), whole.length > 0 ? whole.ptr : "");
      return false;
    }
    if (channel.length >= longest && channel.length < sizeof LOG_CHANNEL &&
        memcmp(channel.ptr, LOG_CHANNEL, channel.length) == 0) {
      longest = channel.length;
      *level = found;
    }
  }
  return true;
}

#endif
