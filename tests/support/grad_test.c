// SPDX-License-Identifier: MIT

#include "support/grad_test.h"

#include "support/compare.h"
#include "support/spec_point.h"

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
