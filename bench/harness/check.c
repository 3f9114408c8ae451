// SPDX-License-Identifier: MIT

#include "harness/check.h"

#include <math.h>

void check_compare(struct check *c, const struct host *got, const struct host *want)
{
    if (got->count != want->count)
        c->difference = INFINITY;
    for (int64_t i = 0; i < got->count && i < want->count; ++i) {
        const double difference = fabs(got->data[i] - want->data[i]);
        if (!(difference <= c->difference)) // true for NaN
            c->difference = isfinite(difference) ? difference : INFINITY;
        c->magnitude = fmax(c->magnitude, fabs(want->data[i]));
    }
    c->n += got->count;
}

double check_error(const struct check *c)
{
    if (c->n == 0 || !isfinite(c->magnitude))
        return INFINITY;
    return c->magnitude > 0 ? c->difference / c->magnitude : c->difference;
}

double check_limit(const struct family *family, const struct sizes *sizes)
{
    // A float sum of n terms is off by at most n u, u = 2^-24, times the sum of the terms'
    // magnitudes.  Terms of both signs make that sum larger than the result by about sqrt(n), but
    // their rounding errors cancel in the same way, so n u of the largest result is a generous
    // limit, and a missing or doubled term is far beyond it.  16 u are for exp, erf, division.
    return (16 + family->sum_length(sizes)) * 0x1p-24;
}
