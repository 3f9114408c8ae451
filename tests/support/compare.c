// SPDX-License-Identifier: MIT

#include "support/compare.h"

#include <math.h>
#include <string.h>

#include "base/worst_error.h"

bool is_unwritten(double got)
{
    const float word = (float)got;
    uint32_t bits;

    memcpy(&bits, &word, sizeof bits);
    return (isnan(got) && bits == CANARY_WORD) || got == (double)CANARY_WORD; // F32, I32
}

double error_ratio(double got, double want, double allowed)
{
    const double error = fabs(got - want);

    if (is_unwritten(got) || !(allowed >= 0))
        return INFINITY;
    if (got == want || (isnan(got) && isnan(want)))
        return 0;
    if (!isfinite(got) || !isfinite(want) || !isfinite(allowed))
        return INFINITY;
    return allowed > 0 ? error / allowed : INFINITY;
}

void worst_add(struct worst *w, int64_t at, double got, double want, double allowed)
{
    const double ratio = error_ratio(got, want, allowed);

    if (w->n++ == 0 || ratio > w->ratio) // never NaN
        *w = (struct worst){ratio, w->n, at, got, want, allowed};
}

double largest_of(const float *x, int64_t n)
{
    double largest = 0;

    for (int64_t i = 0; i < n; ++i)
        if (!(fabs((double)x[i]) <= largest) && !isnan(largest))
            largest = fabs((double)x[i]);
    return largest;
}
