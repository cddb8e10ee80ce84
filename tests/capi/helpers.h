/* What several of the C tests need: strings, painted memory, small fleets, and every way in which a struct's size can be wrong. */
#ifndef WARMROUTE_TESTS_CAPI_HELPERS_H
#define WARMROUTE_TESTS_CAPI_HELPERS_H

#include "check.h"

wr_str text(const char* s);
/* Size without data: what every function must refuse. */
wr_str bad_text(void);

/* Fills memory so that a write into it shows; `painted` says whether it is still as it was. */
void paint(void* memory, size_t size);
int painted(const void* memory, size_t size);

/* A router with the default options and policy. */
wr_router* new_router(void);
/* The same with `count` replicas "gpu-0", ... in the pool "". */
wr_router* new_fleet(uint32_t count, wr_replica_id* ids);
wr_replica_id add_named(wr_router* router, const char* name, const char* pool);

/* token[i] = start + i */
void count_up(uint32_t* tokens, size_t count, uint32_t start);
wr_request token_request(const uint32_t* tokens, size_t count);
/* How many of those tokens that replica is believed to hold on that tier, as a request for them alone is told. */
int64_t cached_on(wr_router* router, wr_replica_id id, const uint32_t* tokens, size_t count, uint32_t tier);

/* Calls with a struct of many sizes and expects what each deserves: never set, absurd, smaller than ever released: invalid_argument;
   longer with a zero tail: `good`; longer with a tail that is set, or a reserved member that is: unsupported. */
typedef wr_status (*sized_call)(const void* input);
void check_input_sizes(const void* init, size_t size, size_t reserved_offset, wr_status good, sized_call call);
/* The same for a struct that has grown: `first` was its size when it was first released, and callers of that size are still served. */
void check_grown_input_sizes(const void* init, size_t first, size_t size, size_t reserved_offset, wr_status good,
                             sized_call call);
/* The same for a struct that is written. `keeps_tail`: a longer caller's further bytes stay; otherwise they become 0. */
typedef wr_status (*filling_call)(void* output);
void check_output_sizes(const void* init, size_t size, int keeps_tail, filling_call call);
/* The same for a struct that has grown: `first` was its size when it was first released, and callers of that size are still served. */
void check_grown_output_sizes(const void* init, size_t first, size_t size, int keeps_tail, filling_call call);

/* The whole two-call pattern on one text or binary result: asks for the size, refuses one byte less, takes exactly that much.
   returns: the result in memory of its own, to be freed. *size: with the NUL, if there is one. */
typedef wr_status (*giving_call)(char* buf, size_t cap, size_t* needed, wr_error* err);
char* check_two_calls(giving_call call, size_t* size);

#endif
