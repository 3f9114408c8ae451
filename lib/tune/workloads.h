// SPDX-License-Identifier: MIT
// Workloads that are timed, and candidates that are tried.
#ifndef ATTNCL_TUNE_WORKLOADS_H
#define ATTNCL_TUNE_WORKLOADS_H

#include "attncl/graph.h"
#include "launch/tuned.h"

enum workload_kind { WORK_GEMM, WORK_ATTENTION, WORK_AFT, WORK_SOFTMAX, WORK_NORM, WORK_GELU };

// A graph of one node whose result is output "y"; "probe" is a small part of it, to wait for.
struct workload {
    unsigned kernels; // bit i: enum tunable i takes part
    int class;
    const char *name;
    enum workload_kind kind;
    int64_t size[4]; // GEMM m n k; attention B*H T D; AFT T C window; rows and width
    bool flag;       // GEMM: B transposed; AFT: with a mask
};
extern const struct workload attncl__workloads[];
extern const size_t attncl__n_workloads;

// An entry to try.  Zeros beyond the kernel's fields.
struct candidate {
    enum tunable kernel;
    int value[TUNE_MAX_FIELDS];
};
extern const struct candidate attncl__candidates[];
extern const size_t attncl__n_candidates;

// The inputs, shared by all graphs of a workload.
enum { WORKLOAD_INPUTS = 5 };
struct workload_data {
    attncl_tensor *in[WORKLOAD_INPUTS];
    int64_t n_result; // elements of "y"
    double terms;     // of the longest sum in an element
    double flop;      // approximate
};
attncl_status attncl__workload_fill(attncl_context *ctx, const struct workload *w,
                                    struct workload_data *ret);
void attncl__workload_clear(struct workload_data *data);

// Builds and compiles a graph with the context's current tuning table.  Released before the data,
// by attncl_graph_destroy().
attncl_status attncl__workload_graph(attncl_context *ctx, const struct workload *w,
                                     const struct workload_data *data, attncl_graph **ret);

#endif
