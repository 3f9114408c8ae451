// SPDX-License-Identifier: MIT
// The report of attncl-bench-openblas, in the form of bench/JSON.md: OpenBLAS as a baseline.
#ifndef BENCH_OPENBLAS_JSON_H
#define BENCH_OPENBLAS_JSON_H

#include <jansson.h>

#include "harness/stats.h"

struct openblas_setting {
    const char *config; // as OpenBLAS describes itself
    int threads;
    const char *clock; // "wall" or "CPU"
};

// Owned by the caller.
json_t *openblas_report(int argc, char **argv, const struct openblas_setting *setting);

struct openblas_figure {
    int m, n, k;
    const char *form; // of A and B: N plain, T transposed, C causal
    int runs;
    struct spread theirs;
    double ours_s; // the library's least time, measured interleaved with theirs
};

void openblas_add(json_t *report, const struct openblas_figure *f);

#endif
