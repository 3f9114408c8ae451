// SPDX-License-Identifier: MIT
// attncl-bench's command line.
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct options {
    const char *device; // NULL: every device
    const char *only;   // part of a case's or family's name; NULL: all
    const char *json;   // file; NULL: none
    bool quick, full;   // which sizes; neither: as the device can
    bool list;
    double budget_s; // per device
    size_t min_runs; // per case
};

// OPTIONS_RUN, or the program is to end with *exit_ret.
enum options_next { OPTIONS_RUN, OPTIONS_EXIT };
enum options_next options_read(int argc, char **argv, struct options *ret, int *exit_ret);

#endif
