// SPDX-License-Identifier: MIT
// What is said of repeated measurements.
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

// Seconds.  The spread is q3 - q1.
struct spread {
    double min, q1, median, q3, p95, p99, max;
};

// A growing list.
struct samples {
    double *values;
    size_t n, capacity;
};

bool samples_add(struct samples *s, double value); // false: no memory
// Sorts them in place.  All zero when there are none.
struct spread samples_spread(struct samples *s);
void samples_free(struct samples *s);

#endif
