// SPDX-License-Identifier: MIT
// attncl-bench's command line.
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cases.h"
#include "tools/options.h"

enum { OPTIONS_MAX_DEVICES = 16 };

// Which cases: all at full size, the headline ones, those bound by launches.
enum sizes_kind { SIZES_FULL, SIZES_QUICK, SIZES_SMALL };
extern const char *const sizes_names[]; // "full", "quick", "small"

struct options {
    const char *devices[OPTIONS_MAX_DEVICES];
    size_t n_devices; // 0: every device
    bool suites[N_SUITES];
    const char *only;  // parts of names of cases or families, commas between; NULL: all
    const char *json;  // file; NULL: none
    const char *label; // of this machine, for reports of several; NULL: none
    enum sizes_kind sizes;
    bool sizes_given; // else small ones where the device limits loops
    bool list;
    bool cold;        // time compilation
    bool roofline;    // measure it even where suite `device` is not wanted
    bool interleaved; // stop after each round of a case, until a line comes
    double budget_s;  // per device
    size_t min_runs;  // per case
    size_t n_rounds;
};

// True when the options name the case and it has these sizes.  --only takes parts of names, ignoring case.
bool options_want(const struct options *o, enum sizes_kind sizes, const struct bench_case *c);

// OPTIONS_OK, or the exit status that the program ends with.
int options_read(int argc, char **argv, struct options *ret);

#endif
