// SPDX-License-Identifier: MIT
//
// Comparing.  Apart from host.c, which benchmarks share and which needs no Check.

#include <math.h>

#include "support/compare.h"
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
