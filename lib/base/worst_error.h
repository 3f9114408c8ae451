// SPDX-License-Identifier: MIT
// Comparison of a kernel's results with expected ones.  A result that is NaN or infinite, which an element that no
// kernel wrote is too, is the worst and stays it.
#ifndef ATTNCL_BASE_WORST_ERROR_H
#define ATTNCL_BASE_WORST_ERROR_H

#include <stdbool.h>
#include <stdint.h>

// The poison in buffers that no kernel has written yet: a quiet NaN that arithmetic does not produce.
#define CANARY_WORD 0x7fc0deadu

// The worst element so far; start with {0}.
struct worst_error {
    double error;   // |found - expected| / unit; INFINITY: one of the three is not finite
    double largest; // |expected| that is finite
    int64_t n, at;  // compared elements; index of the worst
    double found, expected;
};

void attncl__worst_error_add(struct worst_error *w, int64_t at, double found, double expected,
                             double unit);

// True when something was compared and the worst error is at most `limit`, a finite number.
bool attncl__error_within(const struct worst_error *w, double limit);

// "element 7 is 3, expected 2.5"
enum { WORST_ERROR_BYTES = 96 };
const char *attncl__worst_error_text(const struct worst_error *w, char text[WORST_ERROR_BYTES]);

#endif
