// SPDX-License-Identifier: MIT

#include "base/worst_error.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double error_of(double found, double expected, double unit)
{
    if (!isfinite(found) || !isfinite(expected) || !isfinite(unit))
        return INFINITY;
    return found == expected ? 0 : unit > 0 ? fabs(found - expected) / unit : INFINITY;
}

void attncl__worst_error_add(struct worst_error *w, int64_t at, double found, double expected,
                             double unit)
{
    const double error = error_of(found, expected, unit);

    if (isfinite(expected))
        w->largest = fmax(w->largest, fabs(expected));
    if (w->n++ == 0 || error > w->error) { // never NaN
        w->error = error;
        w->at = at;
        w->found = found;
        w->expected = expected;
    }
}

bool attncl__error_is_within(const struct worst_error *w, double limit)
{
    return w->n > 0 && isfinite(limit) && w->error <= limit;
}

const char *attncl__format_worst_error(const struct worst_error *w, char text[WORST_ERROR_BYTES])
{
    const float word = (float)w->found;
    uint32_t bits;

    memcpy(&bits, &word, sizeof bits);
    snprintf(text, WORST_ERROR_BYTES, "element %" PRId64 " is %.9g%s, expected %.9g", w->at,
             w->found, bits == CANARY_WORD ? " (never written)" : "", w->expected);
    return text;
}
