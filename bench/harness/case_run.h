// SPDX-License-Identifier: MIT
// A run of a case on a device: opened, run once, checked, and only then timed.
#ifndef BENCH_CASE_RUN_H
#define BENCH_CASE_RUN_H

#include "harness/roofline.h"

struct case_run_setting {
    attncl_context *ctx;   // the device's, unless compilation is timed
    const char *device;    // "PLATFORM:DEVICE"
    const char *directory; // of programs, when compilation is timed: cold, then cached; else NULL
    bool driver_does_not_wait;
};

struct case_run {
    struct result result;
    struct case_data data;
    struct samples wall;
    struct case_run_setting setting;
    attncl_context *own;        // of this case run alone, when compilation is timed
    char cache_buster[64];      // makes this case run's programs new to every cache
    double first_s, cold_run_s; // a first run, which some drivers compile in
    double spent_s;             // timing
};

// Afterwards the outcome is OUTCOME_OK when it can be timed.  NULL: no memory.
struct case_run *case_run_begin(const struct case_run_setting *setting, const struct bench_case *c);
// Nothing unless the outcome is OUTCOME_OK.
void case_run_round(struct case_run *a, const struct measure_options *options);
// Completes the result and releases all but it.
void case_run_end(struct case_run *a, const struct measure_options *options);
void case_run_free(struct case_run *a);

#endif
