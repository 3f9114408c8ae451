// SPDX-License-Identifier: MIT
// A device's limits as suite `device` measured them, and what a case could reach under them.
#ifndef BENCH_ROOFLINE_H
#define BENCH_ROOFLINE_H

#include "harness/run.h"

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

// Takes what a run of a case of suite `device` found.
void roofline_take(struct roofline *r, const struct run *x);
bool roofline_is_known(const struct roofline *r); // copy or peak

// What a run does, in what time.  Its footprint is all that it touches: what lies in a cache from
// run to run is read at the cache's speed.
struct work {
    double flop, bytes, footprint_bytes, seconds;
};
struct shares {
    const char *bound; // "compute", "memory"; NULL without a roofline
    double percent; // of the roofline; 100: as fast as the fastest copy or FMAs measured, or faster
};
struct shares roofline_shares(const struct roofline *r, const struct work *w);

#endif
