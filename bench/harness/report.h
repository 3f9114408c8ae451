// SPDX-License-Identifier: MIT
// What is told: a table on standard output while cases run, and the same as JSON at the end.
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <jansson.h>

#include "harness/measure.h"

enum outcome {
    OUTCOME_OK,
    OUTCOME_WRONG,   // beyond its limit: not timed
    OUTCOME_FAILED,  // the library reported an error
    OUTCOME_NOT_RUN, // the device cannot, or the device's time was used up
};

struct result {
    const struct bench_case *c;
    enum outcome outcome;
    char reason[256]; // why it failed or did not run
    double error, error_limit;
    double compile_s;
    struct timing timing;
};

// JSON {"version", "devices": [{..., "results": [...]}]}
struct report {
    json_t *root;   // NULL: no JSON wanted
    json_t *device; // the present one; borrowed
    size_t n_wrong, n_failed;
};

void report_begin(struct report *r, bool json);
void report_device(struct report *r, const attncl_device_info *info, enum case_set set);
void report_result(struct report *r, const attncl_device_info *info, const struct result *result);
// That the full sizes were left out on the present device, whose loops end after `limit` rounds.
void report_loop_limit(struct report *r, size_t n_cases, uint64_t limit);
void report_no_device(struct report *r, const attncl_device_info *info, const char *reason);
// Writes the JSON; false, with a message printed, when it cannot.
bool report_write(const struct report *r, const char *path);
void report_end(struct report *r);

// A case's family and sizes, as --list and --json give them; owned by the caller.
json_t *report_case(const struct bench_case *c);

#endif
