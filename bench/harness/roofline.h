// SPDX-License-Identifier: MIT
// A device's limits as suite `device` measured them, and what a case could reach under them.
#ifndef BENCH_ROOFLINE_H
#define BENCH_ROOFLINE_H

#include "harness/result.h"

enum { ROOFLINE_MAX_COPIES = 8, ROOFLINE_MAX_PROVIDERS = 4 };

// Rates per second, times in seconds; 0: not measured.
struct roofline {
    struct {
        double bytes, rate; // footprint, read and written together; bytes per second
    } copy[ROOFLINE_MAX_COPIES];
    size_t n_copies;
    double copy_rate; // of the largest footprint: beyond the caches
    double fma_rate;
    double launch_s, launch_queued_s;
    double to_device_rate, from_device_rate;
    struct {
        const char *name;
        double rate;
    } gemm[ROOFLINE_MAX_PROVIDERS];
    size_t n_providers;
};

// Takes what a case of suite `device` found.
void roofline_take(struct roofline *r, const struct result *x);

// Of a finished result: sets its bound, its share of the roofline, and of a copy with its own
// footprint, as far as they are known.
void roofline_judge(const struct roofline *r, struct result *x);

#endif
