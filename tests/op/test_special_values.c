// SPDX-License-Identifier: MIT
// NaN and infinity in the inputs of ops: where the reference has a NaN, an infinity or a finite number, the device
// has the same.  What differs on purpose is said in include/attncl/ops.h, and in the table below.

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_test.h"
#include "support/special_inputs.h"

enum { MAX_IN = 5 };

struct example {
    const char *op;
    int kind; // the activation
    // Inputs, and the result's shape and type.
    int (*inputs)(struct host **in, struct host **out);
    void (*reference)(struct host *const *in, int kind, struct host *out);
};

static void ref_of_loss(struct host *const *in, int kind, struct host *out)
{
    (void)kind;
    ref_cross_entropy_fwd(in[0], in[1], ATTNCL_REDUCE_NONE, -1, 0, out);
}

static const struct example examples[] = {
    {"cross_entropy_fwd", 0, inputs_scored, ref_of_loss},
};

static bool alike(double got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return got == want;
    return fabs(got - want) <= 1e-4 * (1 + fabs(want));
}

// Each special value in the first, a middle and the last element of each input; on the simulator, which looks at accesses, one
// of them in each place.
TABLE_TEST(are_where_the_reference_has_them, examples)
{
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    const int step = on_simulator() ? 4 : 1;
    const struct example *e = &examples[_i];
    struct host *in[MAX_IN] = {NULL}, *got;
    const int n = e->inputs(in, &got);
    struct host *want = host_like(got);

    for (int i = 0; i < n; ++i)
        for (int s = 0; in[i] && in[i]->dtype == ATTNCL_F32 && s < 9; s += step) {
            double *at = &in[i]->data[s / 3 * (in[i]->count - 1) / 2];
            const double old = *at;
            *at = specials[s % 3];
            e->reference(in, e->kind, want);
            ck_ok(run_op(e->op, &(const struct cross_entropy_fwd_params){ATTNCL_REDUCE_NONE, -1, 0},
                         in, n, HOSTS(got)));
            for (int64_t j = 0; j < got->count; ++j)
                ck_assert_msg(alike(got->data[j], want->data[j]),
                              "%s %d: %g in input %d makes [%lld] %g, expected %g", e->op, e->kind,
                              specials[s % 3], i, (long long)j, got->data[j], want->data[j]);
            *at = old;
        }
}
