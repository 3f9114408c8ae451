// SPDX-License-Identifier: MIT
// For the files of tune/: what is timed, how, and what follows from it.
#ifndef ATTNCL_TUNE_INTERNAL_H
#define ATTNCL_TUNE_INTERNAL_H

#include "attncl/graph.h"
#include "device/context.h"
#include "launch/launch.h"

// -- workloads.c, candidates.c: workloads that are timed, and candidates that are tried

enum workload_kind {
    WORK_GEMM,
    WORK_BATCH,
    WORK_ATTENTION,
    WORK_AFT,
    WORK_SOFTMAX,
    WORK_NORM,
    WORK_GELU
};

// A graph of one node whose result is output "y"; "probe" is a small part of it, to wait for.
struct workload {
    unsigned kernels; // bit i: enum tunable i takes part
    int class;
    const char *name;
    enum workload_kind kind;
    // GEMM m n k; BATCH b n k, of n x n; attention B*H T D; AFT T C window; rows and width
    int64_t size[4];
    bool flag; // GEMM: B transposed; AFT: with a mask
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
// Starts from zeros; cleared by the caller, also after a failure.
attncl_status attncl__workload_fill(attncl_context *ctx, const struct workload *w,
                                    struct workload_data *d);
void attncl__workload_clear(struct workload_data *data);

// Builds and compiles a graph with the context's current tuning table.  Released before the data,
// by attncl_graph_destroy().
attncl_status attncl__workload_graph(attncl_context *ctx, const struct workload *w,
                                     const struct workload_data *data, attncl_graph **ret);

// -- tuning_trial.c: one kernel and class of shapes, the built-in choice against every candidate

enum { AB_MAX_SAMPLES = 63 };

// One variant: a compiled graph and the times of its runs.
struct variant {
    attncl_graph *graph;
    float *result;                 // "y", once read
    double sample[AB_MAX_SAMPLES]; // seconds per run
    int n_samples;
};

// Creates the graph with the context's current tuning table, runs it once, unmeasured, and reads its
// result.
attncl_status attncl__variant_begin(attncl_context *ctx, const struct workload *w,
                                    const struct workload_data *data, struct variant *s);
void attncl__variant_end(struct variant *s);

// True when the results agree within the rounding of sums of `terms` terms in different orders.
bool attncl__variants_agree(const struct variant *a, const struct variant *b, int64_t n,
                            double terms);

// Seconds per run of `s`.
attncl_status attncl__variant_time(struct variant *s, int runs, double *seconds_ret);

enum { TRIAL_WORKLOADS = 2 };

struct tuning_trial {
    // Set by the caller.  Candidates are tried in ctx->caps.tuned, and the winner stays there.
    attncl_context *ctx;
    enum tunable kernel;
    int class;
    double seconds; // time limit, approximate

    const struct workload *work[TRIAL_WORKLOADS];
    int n_work;
    double flop; // of one run of each workload

    struct workload_data data[TRIAL_WORKLOADS];
    int runs[TRIAL_WORKLOADS]; // of one sample
    struct variant built_in[TRIAL_WORKLOADS], best[TRIAL_WORKLOADS];

    int n_rows, n_tried;              // candidates
    const struct candidate *best_row; // NULL: none ran and agreed
    double built_in_seconds, best_seconds, gain;
    bool kept;
};

// Finds the workloads and creates their data.
attncl_status attncl__tuning_trial_begin(struct tuning_trial *c);
// Fails when the built-in choice does; a candidate that fails is left out and logged.
attncl_status attncl__tuning_trial_run(struct tuning_trial *c);
void attncl__tuning_trial_end(struct tuning_trial *c);

#endif
