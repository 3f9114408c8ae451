// SPDX-License-Identifier: MIT
// One kernel and class of shapes: the built-in choice against every candidate.
#ifndef ATTNCL_TUNE_CONTEST_H
#define ATTNCL_TUNE_CONTEST_H

#include "device/context.h"
#include "tune/duel.h"

enum { CONTEST_WORKLOADS = 2 };

struct contest {
    // Given; ctx->caps.tuned is the table to try rows in, and to leave the winner in.
    attncl_context *ctx;
    enum tunable kernel;
    int class;
    double seconds; // to be done in, roughly

    const struct workload *work[CONTEST_WORKLOADS];
    int n_work;
    double flop; // of one run of each workload

    struct workload_data data[CONTEST_WORKLOADS];
    int runs[CONTEST_WORKLOADS]; // of one sample
    struct side built_in[CONTEST_WORKLOADS], best[CONTEST_WORKLOADS];

    int n_rows, n_tried;              // candidates
    const struct candidate *best_row; // NULL: none ran and agreed
    double built_in_seconds, best_seconds, gain;
    bool kept;
};

// Finds the workloads and makes their data.
attncl_status attncl__contest_begin(struct contest *c);
// Fails when the built-in choice does; a candidate that fails is left out and logged.
attncl_status attncl__contest_hold(struct contest *c);
void attncl__contest_end(struct contest *c);

#endif
