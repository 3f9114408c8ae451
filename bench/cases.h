// SPDX-License-Identifier: MIT
// What is measured: families of cases, and the table of cases (cases.def).
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attncl/graph.h"

struct case_data;
struct check;

// A case's extents, in the letters of the public headers; each family reads the ones it knows.
struct sizes {
    int64_t B, T, C, F, V; // batch, positions, channels, hidden channels, vocabulary
    // Rows, columns, inner length of a GEMM; rows and width of row ops.  N: a model's positions
    int64_t M, N, K;
    int64_t S, E; // source positions, embedded channels
    int64_t heads, layers;
    int64_t window; // AFT-conv: length of the filter
    bool causal;
    bool transposed;      // GEMMs: B is [N, K]
    bool backward;        // gradients of all float inputs and weights too, in the same run
    attncl_dtype weights; // language models: of matrices, F16, Q8 or Q4; NONE: F32
    const char *layer;    // language models: as "layer" in their configuration
    // suite `device`
    int64_t VW;           // floats in a vector
    const char *provider; // of GEMMs: "native", "clblast"
};

// What a case measures: the device itself, one operation, a layer of several, a whole model.
enum suite { SUITE_OP, SUITE_DEVICE, SUITE_LAYER, SUITE_MODEL, N_SUITES };

// What a case of suite `device` tells of the device's roofline.
enum quantity {
    QUANTITY_NONE,
    QUANTITY_COPY,
    QUANTITY_FMA,
    QUANTITY_LAUNCH, // alone when N = 1, else in a queue
    QUANTITY_TO_DEVICE,
    QUANTITY_FROM_DEVICE,
    QUANTITY_GEMM
};

// The lists that a case is in, as flags: what a fast device runs, what finishes on a slow one and is
// bound by its launches, and what docs/benchmarks.md shows first.
enum { FULL = 1, SMALL = 2, HEADLINE = 4 };

// A kind of case.  In the plain form open, run, read and close are NULL: build makes a graph with
// one output, which is compiled, run and read.
struct family {
    const char *name;
    enum suite suite;
    enum quantity quantity;
    const char *output; // what the graph calls the result; NULL: "y"
    // Adds inputs, weights and nodes to t->graph; the value is its output.  Failures are the
    // graph's or t->status's.
    attncl_value (*build)(struct case_data *t, const struct sizes *s);
    // Instead of build: opens whatever is run.
    attncl_status (*open)(struct case_data *t);
    // Before each run, untimed.
    attncl_status (*prepare)(struct case_data *t);
    // Instead of one run of t->graph.  Enqueues; the caller waits.
    attncl_status (*run)(struct case_data *t);
    // Instead of reading the output of t->graph into the array "y".
    attncl_status (*read)(struct case_data *t);
    // Instead of read, where a run must be waited for by reading something: less of it.
    attncl_status (*settle)(struct case_data *t);
    void (*close)(struct case_data *t);
    // Compares what array "y" holds with the double-precision definition, for a part of the result
    // when the whole would take too long.
    void (*check)(const struct case_data *t, const struct sizes *s, struct check *c);
    // Tokens that one run takes; NULL: tokens mean nothing here.
    double (*tokens)(const struct sizes *s);
};

struct bench_case {
    unsigned sets;
    const struct family *family;
    const char *name;
    struct sizes sizes;
};

extern const char *const bench_suite_names[N_SUITES]; // "op", "device" ...
extern const struct bench_case bench_cases[];
extern const size_t bench_n_cases;

#endif
