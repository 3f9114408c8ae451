// SPDX-License-Identifier: MIT
// Timing of a case: warm-up, then repeated runs until a time budget is used.
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "harness/trial.h"

struct timing {
    size_t runs;
    double min_s, median_s; // wall time of one run and the wait for it
    double device_s;        // fastest sum of the commands' device times; 0 when not known
    double flop, bytes;     // of one run, by the ops' own formulas; 0 when not known
    double spent_s;         // on all of this
};

struct measure_options {
    double budget_s; // of one case
    size_t min_runs; // made even when they take longer, up to four times the budget
    // The driver's clFinish and event times do not wait for the work: a run ends with its result
    // read, and there is no device time.
    bool driver_does_not_wait;
};

attncl_status measure(struct trial *t, const struct measure_options *options,
                      struct timing *timing_ret);

#endif
