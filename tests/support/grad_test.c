// SPDX-License-Identifier: MIT

#include "support/grad_test.h"

#include <math.h>
#include <stdlib.h>

#include "support/compare.h"
#include "support/derivative.h"

static double weighted_sum(struct host *const *out, struct host *const *dy, int n_out)
{
    double sum = 0;

    for (int k = 0; k < n_out; ++k)
        if (out[k] && dy[k])
            sum += host_dot(out[k], dy[k]);
    return sum;
}

struct host *finite_differences(ref_forward forward, const void *params, struct host *const *in,
                                struct host *const *out, struct host *const *dy, int n_out, int k)
{
    struct host *d = host_like(in[k]);

    for (int64_t i = 0; i < d->count; ++i) {
        const double x = in[k]->data[i], h = 1e-4 * fmax(1, fabs(x));
        in[k]->data[i] = x + h;
        forward(params, in, out);
        const double high = weighted_sum(out, dy, n_out);
        in[k]->data[i] = x - h;
        forward(params, in, out);
        const double low = weighted_sum(out, dy, n_out);
        in[k]->data[i] = x;
        d->data[i] = (high - low) / (2 * h);
    }
    return d;
}

void ck_gradients(const char *name, const void *params, struct host *const *in, int n_in,
                  unsigned wanted, ref_forward forward, double tolerance)
{
    struct op_graph t = {.cls = attncl__op_find(name), .n_in = n_in, .wanted = wanted};

    ck_assert_msg(t.cls != NULL, "there is no op %s", name);
    for (int i = 0; i < n_in; ++i)
        t.in[i] = in[i];
    ck_ok(op_graph_open(&t, params));
    ck_ok(op_graph_run(&t));
    for (int i = 0; i < n_in; ++i) {
        if (!(wanted >> i & 1))
            continue;
        const struct host *const want =
            finite_differences(forward, params, in, t.out, t.dy, t.n_out, i);
        struct host *dx = host_like(in[i]);
        ck_ok(op_graph_read(&t, "dx", i, dx));
        const double largest = host_largest(want), unit = largest == 0 ? 1 : largest;
        struct worst w = {0};
        for (int64_t k = 0; k < want->count; ++k)
            worst_add(&w, k, dx->data[k], want->data[k], tolerance * unit);
        if (w.n > 0)
            ck_worst(&w, 1, "%s: the gradient of input %d", name, i);
    }
    op_graph_close(&t);
}
