// SPDX-License-Identifier: MIT
// Comparison of a kernel's results with expected ones.  A NaN or infinite result, which includes elements that no
// kernel wrote, counts as the worst error.
#ifndef ATTNCL_BASE_WORST_ERROR_H
#define ATTNCL_BASE_WORST_ERROR_H

#include <stdbool.h>
#include <stdint.h>

// The poison of unwritten buffers: a quiet NaN that arithmetic does not produce.
#define CANARY_WORD 0x7fc0deadu

// The worst element so far; start with {0}.
struct worst_error {
    double error;           // |found - expected| / unit; INFINITY: one of the three is not finite
    double largest;         // largest finite |expected|
    int64_t n, at;          // number of compared elements; index of the worst
    double found, expected; // of the worst
};

void attncl__worst_error_add(struct worst_error *w, int64_t at, double found, double expected,
                             double unit);

// True when at least one element was compared and the worst error is at most `limit`, which must be finite.
bool attncl__error_is_within(const struct worst_error *w, double limit);

// "element 7 is 3, expected 2.5"
enum { WORST_ERROR_BYTES = 96 };
const char *attncl__format_worst_error(const struct worst_error *w, char text[WORST_ERROR_BYTES]);

#endif
