// SPDX-License-Identifier: MIT
// A device of the run and what is known of it.
#ifndef BENCH_STATION_H
#define BENCH_STATION_H

#include <jansson.h>

#include "harness/attempt.h"
#include "harness/options.h"
#include "harness/shares.h"

enum { STATIONS_MAX = 64 };

struct station {
    attncl_device_info info;
    char address[32];    // "PLATFORM:DEVICE"
    attncl_context *ctx; // NULL: not run, for `reason`
    char reason[256];
    bool failed; // not run, though the driver says that it is available
    enum case_set set;
    uint64_t loop_limit; // 0: none known
    bool limited;        // full sizes are left out for it
    bool driver_does_not_wait;
    size_t n_wanted, n_done;                  // cases
    double spent_s;                           // timing
    struct roofline roofline, first_roofline; // the best until now; before the cases
    struct shares shares;
    struct attempt *attempt; // at the present case; NULL: none
    json_t *json;            // borrowed from the report
};

struct stations {
    struct station list[STATIONS_MAX];
    size_t n;
};

// Every device, or those that the options name.  False, with a message printed, when there is none.
bool stations_open(struct stations *all, const struct options *o);
// Returns how many could not be closed; messages are printed.
size_t stations_close(struct stations *all);

bool station_runs(const struct station *s, enum case_set set);

// What is left of the budget, shared equally among the cases to come: a case that needs less leaves
// more to the others.  One that takes more, for its least number of runs, does not starve them.
double station_share(const struct station *s, double budget_s);

#endif
