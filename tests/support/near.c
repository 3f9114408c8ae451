// SPDX-License-Identifier: MIT
//
// Comparing.  Apart from host.c, which benchmarks share and which needs no Check.

#include <math.h>

#include "support/host.h"
#include "support/test.h"

// "[1, 4, 2]": where element `i` of h is.
static const char *place_text(const struct host *h, int64_t i, char text[SHAPE_TEXT_BYTES])
{
    struct tensor_desc place = {.rank = h->rank};

    for (int axis = h->rank - 1; axis >= 0; --axis) {
        place.dim[axis] = i % h->dim[axis];
        i /= h->dim[axis];
    }
    return attncl__shape_text(&place, text);
}

void ck_near(const struct host *got, const struct host *want, double rtol, double atol)
{
    int64_t worst = -1;
    double worst_ratio = 0;
    char place[SHAPE_TEXT_BYTES];

    ck_assert_int_eq(got->count, want->count);
    for (int64_t i = 0; i < got->count; ++i) {
        const double error = fabs(got->data[i] - want->data[i]);
        const double allowed = atol + rtol * fabs(want->data[i]);
        if (error <= allowed)
            continue;
        const double ratio = isfinite(error) && allowed > 0 ? error / allowed : INFINITY;
        if (worst < 0 || ratio > worst_ratio) {
            worst = i;
            worst_ratio = ratio;
        }
    }
    ck_assert_msg(worst < 0, "at %s: %.9g, expected %.9g, error is %.3g times what is allowed",
                  worst < 0 ? "" : place_text(got, worst, place), got->data[worst < 0 ? 0 : worst],
                  want->data[worst < 0 ? 0 : worst], worst_ratio);
}

void ck_terms(const struct host *got, const struct host *want, const struct host *size,
              double relative, double absolute, const char *name)
{
    for (int64_t i = 0; i < got->count; ++i) {
        const double error = fabs(got->data[i] - want->data[i]);
        ck_assert_msg(error <= relative * size->data[i] + absolute,
                      "%s[%lld of %lld] is %.9g, want %.9g, off by %.2g of its terms", name,
                      (long long)i, (long long)got->count, got->data[i], want->data[i],
                      error / size->data[i]);
    }
}
