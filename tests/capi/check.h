/* A test program in C: functions made by TEST, listed in one table at the end by TESTS. A check that fails prints its line and ends
   the program. `program` runs all of them, `program name` the one of that name. A test that is not listed does not compile
   (unused function). */
#ifndef WARMROUTE_TESTS_CAPI_CHECK_H
#define WARMROUTE_TESTS_CAPI_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warmroute.h"

typedef struct test_case {
  const char* name;
  void (*run)(void);
} test_case;

#define TEST(name) static void name(void)
#define CASE(name) \
  { #name, name }
#define TESTS(...)                                                       \
  int main(int argc, char** argv) {                                      \
    const test_case cases[] = {__VA_ARGS__};                             \
    return run_cases(cases, sizeof cases / sizeof cases[0], argc, argv); \
  }

int run_cases(const test_case* cases, size_t count, int argc, char** argv);

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: error: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

#define CHECK_STATUS(call, wanted) check_status((call), (wanted), #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_STATUS(call, WR_STATUS_OK)

void check_status(wr_status got, wr_status wanted, const char* call, const char* file, int line);

#define CHECK_EQ(got, wanted)                                                                           \
  do {                                                                                                  \
    const long long got_ = (long long)(got), wanted_ = (long long)(wanted);                             \
    if (got_ != wanted_) {                                                                              \
      fprintf(stderr, "%s:%d: error: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_, wanted_); \
      exit(1);                                                                                          \
    }                                                                                                   \
  } while (0)

#define CHECK_TEXT(got, wanted)                                                                           \
  do {                                                                                                    \
    if (strcmp((got), (wanted)) != 0) {                                                                   \
      fprintf(stderr, "%s:%d: error: %s is '%s', not '%s'\n", __FILE__, __LINE__, #got, (got), (wanted)); \
      exit(1);                                                                                            \
    }                                                                                                     \
  } while (0)

#endif
