// SPDX-License-Identifier: MIT

#include "support/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/worst_error.h"
#include "support/test.h"

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

static void check(const struct worst *w, double limit, const char *fmt, va_list args)
{
    char what[256];

    vsnprintf(what, sizeof what, fmt, args);
    ck_assert_msg(w->n > 0, "%s: nothing was compared", what);
    ck_assert_msg(w->ratio <= limit,
                  "%s: element %lld is %.9g%s, expected %.9g: %.3g times what is allowed (%.3g)",
                  what, (long long)w->at, w->got, is_unwritten(w->got) ? " (never written)" : "",
                  w->want, w->ratio, limit * w->allowed);
}

void ck_worst(const struct worst *w, double limit, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    check(w, limit, fmt, args);
    va_end(args);
}

void ck_floats(const float *got, const float *want, int64_t n, double relative, double absolute,
               const char *fmt, ...)
{
    struct worst w = {0};
    va_list args;

    for (int64_t i = 0; i < n; ++i)
        worst_add(&w, i, (double)got[i], (double)want[i],
                  relative * fabs((double)want[i]) + absolute);
    va_start(args, fmt);
    check(&w, 1, fmt, args);
    va_end(args);
}
