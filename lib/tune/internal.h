// SPDX-License-Identifier: MIT
// Internals of tune/: workloads, candidates and trials.
#ifndef ATTNCL_TUNE_INTERNAL_H
#define ATTNCL_TUNE_INTERNAL_H

#include "attncl/graph.h"
#include "device/context.h"
#include "launch/launch.h"

// -- workloads.c, candidates.c

enum workload_kind { WORK_GEMM, WORK_ATTENTION, WORK_AFT, WORK_SOFTMAX, WORK_NORM, WORK_GELU };

// Describes a graph of one node with output "y".  Output "probe" is a small part of it, for waiting.
struct workload {
    unsigned kernels; // bit i: a workload of enum tunable i
    int class;
    const char *name;
    enum workload_kind kind;
    // GEMM: m n k, batch (0: 1).  ATTENTION: B*H T D.  AFT: T C window.  Others: rows, width.
    int64_t size[4];
    bool flag; // GEMM: B transposed; AFT: with a mask
};
extern const struct workload attncl__workloads[];
extern const size_t attncl__n_workloads;

// A configuration to try.
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
    double terms;     // length of an element's longest sum
    double flop;      // approximate
};
// Fills data that is all zeros.  The caller clears it, after a failure too.
attncl_status attncl__workload_fill(attncl_context *ctx, const struct workload *w,
                                    struct workload_data *data);
void attncl__workload_clear(struct workload_data *data);

// Builds and compiles a graph with the context's current tuning table.  Destroy it before the data.
attncl_status attncl__workload_create_graph(attncl_context *ctx, const struct workload *w,
                                            const struct workload_data *data, attncl_graph **ret);

// -- tuning_trial.c: compares the built-in choice with every candidate, for one kernel and class of shapes

enum { AB_MAX_SAMPLES = 63 };

// One variant: a compiled graph and the times of its runs.
struct variant {
    attncl_graph *graph;
    float *result;                 // "y" of the first run
    double sample[AB_MAX_SAMPLES]; // seconds per run
    int n_samples;
};

// Creates the graph with the context's current tuning table, runs it once and reads its result.
attncl_status attncl__variant_begin(attncl_context *ctx, const struct workload *w,
                                    const struct workload_data *data, struct variant *variant);
void attncl__variant_end(struct variant *variant);

// True when the results agree within the rounding of sums of `terms` terms in different orders.
bool attncl__variants_agree(const struct variant *a, const struct variant *b, int64_t n,
                            double terms);

// Measures the seconds per run.
attncl_status attncl__variant_measure(struct variant *variant, int runs, double *seconds_ret);

enum { TRIAL_WORKLOADS = 2 };

struct tuning_trial {
    // Set by the caller.  Candidates are put into ctx->caps.tuned, where the winner stays.
    attncl_context *ctx;
    enum tunable kernel;
    int class;
    double seconds; // approximate time limit

    const struct workload *work[TRIAL_WORKLOADS];
    int n_work;
    double flop; // one run of every workload

    struct workload_data data[TRIAL_WORKLOADS];
    int runs[TRIAL_WORKLOADS]; // per sample
    struct variant built_in[TRIAL_WORKLOADS], best[TRIAL_WORKLOADS];

    int n_rows, n_tried;              // candidates: all, and those tried
    const struct candidate *best_row; // NULL: no candidate ran and agreed
    double built_in_seconds, best_seconds, gain;
    bool kept;
};

// Finds the workloads and creates their data.
attncl_status attncl__tuning_trial_begin(struct tuning_trial *trial);
// Fails if the built-in choice does; a candidate that fails is logged and left out.
attncl_status attncl__tuning_trial_run(struct tuning_trial *trial);
void attncl__tuning_trial_end(struct tuning_trial *trial);

#endif
