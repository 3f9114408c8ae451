// SPDX-License-Identifier: MIT
// The one comparison of numbers in tests.  What it cannot lose: a NaN where a number is expected, a number where NaN is,
// an infinity of the wrong sign, a bound that is NaN, and an element that still holds ATTNCL_GUARD's poison, because no
// kernel wrote it.  Each is the worst there is, whatever comes after it.
#ifndef ATTNCL_TEST_COMPARE_H
#define ATTNCL_TEST_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

// The worst element so far; start with {0}.
struct worst {
    double ratio; // error / what is allowed; INFINITY: wrong whatever is allowed
    int64_t n;    // compared
    int64_t at;   // where the worst is, as the caller counts
    double got, want, allowed;
};

// |got - want| in units of `allowed`: 0 where they are equal, NaN and NaN, or the same infinity; INFINITY as above.
double error_ratio(double got, double want, double allowed);

// True of an element that holds what ATTNCL_GUARD puts into every output before a run.
bool is_unwritten(double got);

void worst_add(struct worst *w, int64_t at, double got, double want, double allowed);

// The absolute values' largest; NaN where one is NaN, so that a bound made of it fails.
double largest_of(const float *x, int64_t n);

// Fails the test unless the worst is at most `limit` times what is allowed and something was compared; the message
// begins with what `fmt` says and has the index and both values.
void ck_worst(const struct worst *w, double limit, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Fails the test unless |got - want| <= relative * |want| + absolute for all n floats.
void ck_floats(const float *got, const float *want, int64_t n, double relative, double absolute,
               const char *fmt, ...) __attribute__((format(printf, 6, 7)));

#endif
