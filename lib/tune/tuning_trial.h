// SPDX-License-Identifier: MIT
// One kernel and class of shapes: the built-in choice against every candidate.
#ifndef ATTNCL_TUNE_TUNING_TRIAL_H
#define ATTNCL_TUNE_TUNING_TRIAL_H

#include "device/context.h"
#include "tune/ab_timing.h"

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
