// SPDX-License-Identifier: MIT
// What is told: a table on standard output while cases run, and the same as JSON at the end.
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <jansson.h>

#include "harness/roofline.h"

// The form of `root` is bench/JSON.md's.
struct report {
    json_t *root;
    const char *path; // NULL: none is written
    size_t n_wrong, n_failed;
};

// path, label: borrowed, or NULL.
void report_begin(struct report *r, int argc, char **argv, const char *path, const char *label);
// Tells of a device; returns its part of the JSON, borrowed.  limit > 0: full sizes are left out
// because its loops end after so many rounds.
json_t *report_device(struct report *r, const attncl_device_info *info, enum case_set set,
                      uint64_t limit);
void report_no_device(struct report *r, const attncl_device_info *info, const char *reason);
void report_heading(void);
// Returns its part of the JSON, borrowed.
json_t *report_result(struct report *r, json_t *device, const attncl_device_info *info,
                      const struct result *x);
// what: which one it is, "roofline".
void report_roofline(json_t *device, const attncl_device_info *info, const char *what,
                     const struct roofline *x);
// Writes the JSON as it is so far, replacing the file in one step; false, with a message printed,
// when it cannot.  True when none is wanted.
bool report_write(const struct report *r, bool complete);
void report_end(struct report *r);

// A case's family and sizes, as --list and --json give them; owned by the caller.
json_t *report_case(const struct bench_case *c);

#endif
