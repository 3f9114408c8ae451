// SPDX-License-Identifier: MIT
// What is told: a table on standard output while cases run, and the same as JSON at the end.
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "harness/device.h"

// The form of `root` is docs/benchmark-reports.md's.
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

#endif
