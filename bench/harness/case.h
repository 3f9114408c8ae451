// SPDX-License-Identifier: MIT
// A case on a device: its data, its graph, and the check of its result against the reference.
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include <time.h>

#include "attncl/attncl.h"
#include "cases.h"
#include "harness/stats.h"
#include "support/host.h"

enum { MAX_CASE_ARRAYS = 256 };

// Random data by name: an input of the graph, a weight, or the result.
struct case_array {
    char name[96];
    attncl_dtype dtype;
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
    int64_t count;
    void *data;
    attncl_tensor *tensor; // of a weight
    bool is_input;
    attncl_value value; // in the graph, of an input or a weight
};

struct case_data {
    attncl_context *ctx;
    const struct bench_case *c;
    attncl_graph *graph;
    void *state;          // of the family
    attncl_status status; // first failure of the functions below; they do nothing once it is set
    struct case_array arrays[MAX_CASE_ARRAYS];
    int n_arrays;
    double compile_s;
    struct case_array *gradient; // with gradients: that of the first float input; else NULL
    struct samples *latency;     // of the tokens of a decoder; NULL: not timed
    size_t repeats;     // of what is timed in one run; case_open() sets 1, a family may set more
    double flop, bytes; // of one of them, from families without a graph; 0 when not known
};

// Builds, compiles and fills; the family's open when it has one.  *t starts empty but for ctx and
// c, and is released by case_close() whatever the result.
attncl_status case_open(struct case_data *t);
void case_close(struct case_data *t);
// Before a run, untimed.
attncl_status case_prepare(struct case_data *t);
// One run, not waited for.
attncl_status case_run(struct case_data *t);
// The result into array "y".
attncl_status case_read(struct case_data *t);
// Waits for a run by reading its result.
attncl_status case_settle(struct case_data *t);
size_t case_array_bytes(const struct case_array *a);

// -- for build functions.  Names give the data: the same name has the same data in every case of
// the same shape.

// Uniform in (-spread, spread).
attncl_value case_input(struct case_data *t, const char *name, double spread, int rank,
                        const int64_t *dim);
// In [low, high).
attncl_value case_indices(struct case_data *t, const char *name, int64_t low, int64_t high,
                          int rank, const int64_t *dim);
attncl_value case_weight(struct case_data *t, const char *name, double spread, int rank,
                         const int64_t *dim);
// A linear map's weight [out, in]: spread that keeps the variance of its input.
attncl_value case_map(struct case_data *t, const char *name, int64_t out, int64_t in);

// Data only, for families that open themselves.  Zeros when spread is 0; NULL: no memory.
struct case_array *case_array_add(struct case_data *t, const char *name, double spread, int rank,
                                  const int64_t *dim);
struct case_array *case_array_indices(struct case_data *t, const char *name, int64_t low,
                                      int64_t high, int rank, const int64_t *dim);
struct case_array *case_array_find(const struct case_data *t, const char *name);

// -- for check functions: a part of an array, as doubles, in the arena that host_reset() empties.

// Indices begin, begin + step ... of one axis; count 0: the whole axis; begin -1: its last index.
struct part {
    int64_t begin, count, step;
};
static const struct part ALL = {0, 0, 1}, LAST = {-1, 1, 1};
static inline struct part part_one(int64_t index)
{
    return (struct part){index, 1, 1};
}
// `count` indices spread over an axis, the last one included; all of them when there are no more.
struct part part_spread(int64_t count, int64_t extent);

struct host *case_part(const struct case_data *t, const char *name, const struct part *parts);
struct host *case_whole(const struct case_data *t, const char *name);
#define PART(t, name, ...) case_part((t), (name), (const struct part[]){__VA_ARGS__})

// How far a result is from the definition.
struct check {
    int64_t n;         // elements compared
    double difference; // largest |got - want|; infinite when something is not finite or misshapen
    double magnitude;  // largest |want|
    double sum_length; // of the longest sum of an element: the limit grows with it
};
// Adds the elements of two arrays of one shape.
void check_compare(struct check *c, double sum_length, const struct host *got,
                   const struct host *want);
double check_error(const struct check *c); // relative to the largest value
double check_limit(const struct check *c); // what is allowed

// Seconds of a clock that only goes forward.
static inline double clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
