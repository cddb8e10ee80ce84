/* Reading one line of an operations file (see generate.cpp for the format): fields separated by one space. C99, used by the C and the C++ runner. */
#ifndef WARMROUTE_TESTS_SURFACES_LINE_H
#define WARMROUTE_TESTS_SURFACES_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (1u << 20)

static inline void line_die(const char* what) {
  fprintf(stderr, "operations: %s\n", what);
  exit(2);
}

/* Cuts the next field off. "-" is the empty string. */
static inline char* line_field(char** rest) {
  char* begin = *rest;
  char* end;
  if (begin == NULL) line_die("a field is missing");
  end = strchr(begin, ' ');
  *rest = end == NULL ? NULL : end + 1;
  if (end != NULL) *end = '\0';
  if (strcmp(begin, "-") == 0) *begin = '\0';
  return begin;
}
static inline int64_t line_int(char** rest) { return (int64_t)strtoll(line_field(rest), NULL, 10); }
static inline double line_double(char** rest) { return strtod(line_field(rest), NULL); }

/* A list of numbers that grows and is used again. */
typedef struct line_u64s {
  uint64_t* data;
  size_t size, room;
} line_u64s;
typedef struct line_u32s {
  uint32_t* data;
  size_t size, room;
} line_u32s;

static inline void line_push_u64(line_u64s* list, uint64_t value) {
  if (list->size == list->room) {
    list->room = list->room == 0 ? 64 : list->room * 2;
    list->data = (uint64_t*)realloc(list->data, list->room * sizeof *list->data);
    if (list->data == NULL) line_die("out of memory");
  }
  list->data[list->size++] = value;
}
static inline void line_push_u32(line_u32s* list, uint32_t value) {
  if (list->size == list->room) {
    list->room = list->room == 0 ? 64 : list->room * 2;
    list->data = (uint32_t*)realloc(list->data, list->room * sizeof *list->data);
    if (list->data == NULL) line_die("out of memory");
  }
  list->data[list->size++] = value;
}

/* "a1,b2,..." in hexadecimal. */
static inline void line_hex_list(char** rest, line_u64s* out) {
  char* at = line_field(rest);
  out->size = 0;
  while (*at != '\0') {
    char* end;
    line_push_u64(out, (uint64_t)strtoull(at, &end, 16));
    if (end == at) line_die("not a list of hexadecimal numbers");
    at = *end == ',' ? end + 1 : end;
  }
}

/* "a,b,..." in decimal. returns: how many. */
static inline size_t line_counts(char** rest, int64_t* out, size_t room) {
  char* at = line_field(rest);
  size_t count = 0;
  while (*at != '\0') {
    char* end;
    if (count == room) line_die("too many numbers");
    out[count++] = (int64_t)strtoll(at, &end, 10);
    if (end == at) line_die("not a list of numbers");
    at = *end == ',' ? end + 1 : end;
  }
  return count;
}

/* Bytes in hexadecimal, in place of the digits: *size of them. */
static inline char* line_bytes(char** rest, size_t* size) {
  char* digits = line_field(rest);
  const size_t count = strlen(digits) / 2;
  size_t i;
  for (i = 0; i < count; ++i) {
    char pair[3];
    char* end;
    pair[0] = digits[2 * i];
    pair[1] = digits[2 * i + 1];
    pair[2] = '\0';
    digits[i] = (char)strtoul(pair, &end, 16);
    if (end != pair + 2) line_die("not bytes in hexadecimal");
  }
  *size = count;
  return digits;
}

/* "seed:count,seed:count,...": token k of a run is seed * 2654435761 + k * 40503, modulo 2^32. */
static inline void line_runs(char** rest, line_u32s* out) {
  char* at = line_field(rest);
  out->size = 0;
  while (*at != '\0') {
    char* end;
    const uint32_t seed = (uint32_t)strtoul(at, &end, 10);
    uint32_t count, k;
    if (*end != ':') line_die("not a list of runs");
    count = (uint32_t)strtoul(end + 1, &end, 10);
    for (k = 0; k < count; ++k) line_push_u32(out, seed * 2654435761u + k * 40503u);
    at = *end == ',' ? end + 1 : end;
  }
}

#endif
