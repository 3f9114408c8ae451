// SPDX-License-Identifier: MIT
// attncl-bench's command line.
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cases.h"
#include "tools/options.h"

enum { OPTIONS_MAX_DEVICES = 16 };

struct options {
    const char *devices[OPTIONS_MAX_DEVICES];
    size_t n_devices; // 0: every device
    bool suites[N_SUITES];
    const char *only;  // parts of names of cases or families, commas between; NULL: all
    const char *json;  // file; NULL: none
    const char *label; // of this machine, for reports of several; NULL: none
    bool quick, full;  // which sizes; neither: as the device can
    bool list;
    bool cold;        // time compilation
    bool roofline;    // measure it even where suite `device` is not wanted
    bool interleaved; // stop after each round of a case, until a line comes
    double budget_s;  // per device
    size_t min_runs;  // per case
    size_t n_rounds;
    // --compare: two sides, each files separated by commas; NULL: measure
    const char *compare[2];
    bool markdown;
};

// OPTIONS_OK, or the exit status that the program ends with.
int options_read(int argc, char **argv, struct options *ret);

#endif
