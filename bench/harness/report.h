// SPDX-License-Identifier: MIT
// What is told: a table on standard output while cases run, and the same as JSON at the end.
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "harness/device.h"

// The form of `root` is docs/dev/benchmark-reports.md's.
struct report {
    json_t *root;
    const char *path; // NULL: none is written
    size_t n_wrong, n_failed;
};

// path, label: borrowed, or NULL.
void report_begin(struct report *r, int argc, char **argv, const char *path, const char *label);
// Tells of a device, or why it is not run.
void report_device(struct report *r, struct bench_device *d);
void report_heading(void);
void report_run(struct report *r, const struct bench_device *d, const struct run *x);
// what: which one it is, "roofline".
void report_roofline(const struct bench_device *d, const char *what);
// The device's roofline as it is now in the JSON, and the results' shares of it.
void report_update_roofline(const struct bench_device *d);
// Writes the JSON as it is so far, replacing the file in one step; false, with a message printed,
// when it cannot.  True when none is wanted.
bool report_write(const struct report *r, bool complete);
void report_end(struct report *r);

// -- its pieces (json.c), owned by the caller

// Without devices: what measured, when, on which machine.  revision, label: NULL where there is none.
json_t *json_report(const char *program, const char *revision, int argc, char **argv,
                    const char *label);
const char *json_device_type(attncl_device_type type);
json_t *json_device(const attncl_device_info *info); // without results
json_t *json_case(const struct bench_case *c);       // as in --list
json_t *json_result(const struct run *x);
json_t *json_roofline(const struct roofline *x);

// Sets the shares of the roofline in a result, from its other fields, and returns them.
struct shares json_set_shares(json_t *result, const struct roofline *roofline);

#endif
