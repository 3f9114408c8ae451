// SPDX-License-Identifier: MIT

#include "support/derivative.h"

#include <math.h>

#include "support/test.h"

double host_dot(const struct host *a, const struct host *b)
{
    double sum = 0;

    for (int64_t i = 0; i < a->count; ++i)
        sum += a->data[i] * b->data[i];
    return sum;
}

void ck_derivative(loss_fn loss, void *context, struct host *x, const struct host *dx,
                   const char *name)
{
    static const double step = 1e-5, allowed = 1e-7;

    ck_assert_int_eq(x->count, dx->count);
    for (int64_t i = 0; i < x->count; ++i) {
        const double at = x->data[i];
        x->data[i] = at + step;
        const double above = loss(context);
        x->data[i] = at - step;
        const double below = loss(context);
        x->data[i] = at;
        const double want = (above - below) / (2 * step);
        ck_assert_msg(fabs(dx->data[i] - want) <= allowed * (1 + fabs(want) + fabs(above)),
                      "d%s[%lld] is %.10g, differences give %.10g", name, (long long)i, dx->data[i],
                      want);
    }
}
