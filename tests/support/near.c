// SPDX-License-Identifier: MIT
//
// Comparisons that fail the test.  Apart from compare.c and host.c, which others share and which need no Check.

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "support/compare.h"
#include "support/host.h"
#include "support/test.h"

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

// "[1, 4, 2]": where element `i` of h is.
static const char *place_text(const struct host *h, int64_t i, char text[SHAPE_TEXT_BYTES])
{
    struct tensor_desc place = {.rank = h->rank};

    for (int axis = h->rank - 1; axis >= 0; --axis) {
        place.dim[axis] = i % h->dim[axis];
        i /= h->dim[axis];
    }
    return attncl__format_shape(&place, text);
}

void ck_near(const struct host *got, const struct host *want, double rtol, double atol)
{
    struct worst w = {0};
    char place[SHAPE_TEXT_BYTES];

    ck_assert_int_eq(got->count, want->count);
    for (int64_t i = 0; i < got->count; ++i)
        worst_add(&w, i, got->data[i], want->data[i], atol + rtol * fabs(want->data[i]));
    if (w.n > 0)
        ck_worst(&w, 1, "at %s", place_text(got, w.at, place));
}

void ck_terms(const struct host *got, const struct host *want, const struct host *size,
              double relative, double absolute, const char *name)
{
    struct worst w = {0};

    ck_assert_int_eq(got->count, want->count);
    for (int64_t i = 0; i < got->count; ++i)
        worst_add(&w, i, got->data[i], want->data[i], relative * size->data[i] + absolute);
    if (w.n > 0)
        ck_worst(&w, 1, "%s of %lld", name, (long long)got->count);
}
