// SPDX-License-Identifier: MIT

#include "support/derivative.h"

#include <math.h>

#include "support/compare.h"
#include "support/test.h"

void ck_derivative(loss_fn loss, void *context, struct host *x, const struct host *dx,
                   const char *name)
{
    static const double step = 1e-5, allowed = 1e-7;

    struct worst w = {0};

    ck_assert_int_eq(x->count, dx->count);
    for (int64_t i = 0; i < x->count; ++i) {
        const double at = x->data[i];
        x->data[i] = at + step;
        const double above = loss(context);
        x->data[i] = at - step;
        const double below = loss(context);
        x->data[i] = at;
        const double want = (above - below) / (2 * step);
        worst_add(&w, i, dx->data[i], want, allowed * (1 + fabs(want) + fabs(above)));
    }
    ck_worst(&w, 1, "d%s", name);
}
