// SPDX-License-Identifier: MIT
// A device of the run and what is known of it.
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <jansson.h>

#include "harness/case_run.h"
#include "harness/options.h"
#include "harness/roofline_share.h"

enum { MAX_BENCH_DEVICES = 64 };

struct bench_device {
    attncl_device_info info;
    char address[32];    // "PLATFORM:DEVICE"
    attncl_context *ctx; // NULL: not run, for `reason`
    char reason[256];
    bool failed; // not run, though the driver says that it is available
    enum case_set set;
    uint64_t max_loop_iterations; // 0: none known
    bool limited;                 // full sizes are left out for it
    bool driver_does_not_wait;
    size_t n_wanted, n_done;                  // cases
    double spent_s;                           // timing
    struct roofline roofline, first_roofline; // the best until now; before the cases
    struct roofline_shares shares;
    struct case_run *case_run; // at the present case; NULL: none
    json_t *json;              // borrowed from the report
};

struct bench_devices {
    struct bench_device list[MAX_BENCH_DEVICES];
    size_t n;
};

// Every device, or those that the options name.  False, with a message printed, when there is none.
bool bench_devices_open(struct bench_devices *all, const struct options *o);
// Returns how many could not be closed; messages are printed.
size_t bench_devices_close(struct bench_devices *all);

bool bench_device_runs(const struct bench_device *s, enum case_set set);

// What is left of the budget, shared equally among the cases to come: a case that needs less leaves
// more to the others.  One that takes more, for its least number of runs, does not starve them.
double bench_device_time_share(const struct bench_device *s, double budget_s);

#endif
