// SPDX-License-Identifier: MIT
// Timing of a case, in rounds: the devices of a run are interleaved, so that background load
// affects all devices equally.
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "harness/case_data.h"
#include "harness/stats.h"

struct measure_options {
    double budget_s; // of one round
    size_t min_runs; // of one round; done even when they take longer, up to four times the budget
    // The driver's clFinish and event times do not wait for the work: a run ends with its result
    // read, and there is no device time.
    bool driver_does_not_wait;
};

struct timing {
    size_t runs, rounds;
    struct spread wall;  // of one run and the wait for it
    struct spread event; // sum of the commands' times on the device; 0 when not known
    double flop, bytes;  // of one run, by the ops' own formulas; 0 when not known
};

// One run and the wait for it.
attncl_status measure_once(struct case_data *t, bool driver_does_not_wait, double *seconds_ret);

// Before the first round: until caches, clocks and the driver's own late compilation have settled.
attncl_status measure_warm_up(struct case_data *t, const struct measure_options *o);
// One round: a run to warm up again, then runs whose times are added to `wall`.
attncl_status measure_round(struct case_data *t, const struct measure_options *o,
                            struct samples *wall);
// After the last round: device times in runs of their own, so that asking for events does not slow
// what is timed; operations and bytes.
attncl_status measure_events(struct case_data *t, const struct measure_options *o,
                             struct timing *timing);

#endif
