// SPDX-License-Identifier: MIT
// One case on one device: its data, its graph, and parts of its data as doubles for the check.
#ifndef BENCH_CASE_DATA_H
#define BENCH_CASE_DATA_H

#include "attncl/attncl.h"
#include "cases.h"
#include "support/host.h"

enum { MAX_CASE_ARRAYS = 128 };

// Random data by name: an input of the graph, a weight, or the result.
struct case_data_array {
    char name[96];
    attncl_dtype dtype;
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
    int64_t count;
    void *data;
    attncl_tensor *tensor; // of a weight
    bool is_input;
};

struct case_data {
    attncl_context *ctx;
    const struct bench_case *c;
    attncl_graph *graph;
    void *state;          // of the family
    attncl_status status; // first failure of the functions below; they do nothing once it is set
    struct case_data_array arrays[MAX_CASE_ARRAYS];
    int n_arrays;
    double compile_s;
    size_t
        repeats; // of what is timed in one run; case_data_open() makes it 1, a family may say more
    double flop, bytes; // of one of them, from families without a graph; 0 when not known
};

// Builds, compiles and fills; the family's open when it has one.  *t starts empty but for ctx and
// c, and is released by case_data_close() whatever the result.
attncl_status case_data_open(struct case_data *t);
void case_data_close(struct case_data *t);
// One run, not waited for.
attncl_status case_data_run(struct case_data *t);
// The result into array "y".
attncl_status case_data_read(struct case_data *t);
// Waits for a run by reading its result.
attncl_status case_data_settle(struct case_data *t);
size_t case_data_array_bytes(const struct case_data_array *a);

// -- for build functions.  Names give the data: the same name has the same data in every case of
// the same shape.

// Uniform in (-spread, spread).
attncl_value case_data_input(struct case_data *t, const char *name, double spread, int rank,
                             const int64_t *dim);
// In [low, high).
attncl_value case_data_indices(struct case_data *t, const char *name, int64_t low, int64_t high,
                               int rank, const int64_t *dim);
attncl_value case_data_weight(struct case_data *t, const char *name, double spread, int rank,
                              const int64_t *dim);
// A linear map's weight [out, in]: spread that keeps the variance of its input.
attncl_value case_data_map(struct case_data *t, const char *name, int64_t out, int64_t in);

// Data only, for families that open themselves.  Zeros when spread is 0; NULL: no memory.
struct case_data_array *case_data_array_add(struct case_data *t, const char *name, double spread,
                                            int rank, const int64_t *dim);
struct case_data_array *case_data_array_indices(struct case_data *t, const char *name, int64_t low,
                                                int64_t high, int rank, const int64_t *dim);
struct case_data_array *case_data_array_find(const struct case_data *t, const char *name);

// -- for check functions: a part of an array, as doubles, in the arena that host_reset() empties.

// Indices begin, begin + step ... of one axis; count 0: the whole axis.
struct part {
    int64_t begin, count, step;
};
#define ALL                                                                                        \
    (struct part)                                                                                  \
    {                                                                                              \
        0, 0, 1                                                                                    \
    }
static inline struct part part_one(int64_t index)
{
    return (struct part){index, 1, 1};
}
static inline struct part part_first(int64_t count)
{
    return (struct part){0, count, 1};
}
// `count` indices spread over an axis, the last one included; all of them when there are no more.
struct part part_spread(int64_t count, int64_t extent);

struct host *case_data_part(const struct case_data *t, const char *name, const struct part *parts);
struct host *case_data_whole(const struct case_data *t, const char *name);
#define PART(t, name, ...) case_data_part((t), (name), (const struct part[]){__VA_ARGS__})

#endif
