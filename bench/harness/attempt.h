// SPDX-License-Identifier: MIT
// A case on a device, from nothing to its result: opened, run once, checked, and only then timed.
#ifndef BENCH_ATTEMPT_H
#define BENCH_ATTEMPT_H

#include "harness/roofline.h"

struct attempt_setting {
    attncl_context *ctx; // the device's, unless compilation is timed
    const char *device;  // "PLATFORM:DEVICE"
    const char *folder;  // of programs, when compilation is timed: cold, then cached; else NULL
    bool driver_does_not_wait;
};

struct attempt {
    struct result result;
    struct trial trial;
    struct samples wall;
    struct attempt_setting setting;
    attncl_context *own;        // of this attempt alone, when compilation is timed
    char nonce[64];             // makes this attempt's programs new to every cache
    double first_s, cold_run_s; // a first run, which some drivers compile in
    double spent_s;             // timing
};

// Afterwards the outcome is OUTCOME_OK when it can be timed.  NULL: no memory.
struct attempt *attempt_begin(const struct attempt_setting *setting, const struct bench_case *c);
// Nothing unless the outcome is OUTCOME_OK.
void attempt_round(struct attempt *a, const struct measure_options *options);
// Completes the result and releases all but it.
void attempt_end(struct attempt *a, const struct measure_options *options);
void attempt_free(struct attempt *a);

#endif
