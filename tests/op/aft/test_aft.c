// SPDX-License-Identifier: MIT
// Attention-free mixing and its gradients against their references (tests/ref/aft.c, aft_bwd.c): with a table of biases, and
// with biases of each head by distance.

#include "device/context.h"
#include "ref/ref.h"
#include "support/op_spec.h"
#include "support/op_test.h"
#include <math.h>

static struct ref_aft_data make(int64_t steps)
{
    return (struct ref_aft_data){.q = host_random(1, DIMS(steps, 1, 9)),
                                 .k = host_random(2, DIMS(steps, 1, 9)),
                                 .v = host_random(3, DIMS(steps, 1, 9)),
                                 .pos_bias = host_random(4, DIMS(steps, steps)),
                                 .window = 5,
                                 .causal = 1};
}

static struct host *run(const struct ref_aft_data *d)
{
    struct host *y = host_like(d->q);

    ck_ok(run_op("aft_fwd", SPEC_PARAMS(aft_fwd, .window = 5, .causal = 1),
                 HOSTS(d->q, d->k, d->v, d->pos_bias, NULL), HOSTS(y)));
    return y;
}

static struct host *check(const struct ref_aft_data *d)
{
    struct host *got = run(d), *want = host_like(got), *scale = host_like(got);

    ref_aft_fwd(d, want, scale);
    ck_terms(got, want, scale, 1e-5, 1e-30, "y");
    return got;
}

static void add_to_row(struct host *k, int64_t t, double value)
{
    for (int64_t c = 0; c < k->dim[2]; ++c)
        k->data[t * k->dim[2] + c] += value;
}

// A product of factors, which rounds otherwise, for the rows before one huge key; running maxima,
// to the bit, from it on.  The row before it is right.  The first channel's keys make running
// maxima of its neighbours'.
TEST(a_product_where_ranges_allow)
{
    const int64_t steps = 229, huge = 180, width = 9, neighbours = 4;
    int64_t differ = 0;

    if (on_simulator())
        return;
    const struct ref_aft_data d = make(steps);
    add_to_row(d.k, huge, 400);
    const struct host *by_range = check(&d);
    for (int64_t t = 0; t < steps; t += 8)
        d.k->data[t * width] -= 1000;
    const struct host *maxima = run(&d);
    for (int64_t i = 0; i < by_range->count; ++i) {
        if (i % width == 0 || i % width >= neighbours)
            continue;
        if (i < 64 * width)
            differ += by_range->data[i] != maxima->data[i];
        if (i >= huge * width)
            ck_assert_msg(by_range->data[i] == maxima->data[i], "y[%lld] = %.9g, by maxima %.9g",
                          (long long)i, by_range->data[i], maxima->data[i]);
    }
    ck_assert_int_gt(differ, 0);
}

// Work-groups of the shapes that GPUs of each vendor get, products and running maxima in each.
LOOP_TEST(groups_of_other_vendors, 0, 3)
{
    static const struct {
        enum device_vendor vendor;
        unsigned group_multiple;
    } vendors[] = {{VENDOR_NVIDIA, 32}, {VENDOR_AMD, 32}, {VENDOR_AMD, 64}};
    struct device_caps *caps = &test_context()->caps, before = *caps;

    if (caps->variant != VARIANT_GPU || caps->max_group < 256 || (on_simulator() && _i < 2))
        return;
    caps->vendor = vendors[_i].vendor;
    caps->group_multiple = vendors[_i].group_multiple;
    caps->compute_units = 1;
    const struct ref_aft_data d = make(70);
    add_to_row(d.k, 40, 400);
    check(&d);
    *caps = before;
}

// 16 MB beside inputs and outputs at T = 4096, B = 8, C = 512, whatever the form and the mask.
TEST(scratch_is_bounded)
{
    struct device_caps caps = test_context()->caps;
    const struct aft_fwd_params params = {.window = 64};
    struct tensor_desc in[5] = {{0}}, out[2] = {{0}};
    struct op_sig sig = {
        .caps = &caps, .params = &params, .n_in = 5, .n_out = 2, .in = in, .out = out};
    const int64_t x[] = {4096, 8, 512}, n[] = {4096, 4096}, mask[] = {4096, 4096, 1};

    for (int i = 0; i < 3; ++i)
        ck_ok(attncl__desc_make(ATTNCL_F32, 3, x, &sig.in[i]));
    ck_ok(attncl__desc_make(ATTNCL_F32, 2, n, &sig.in[3]));
    for (int masked = 0; masked < 2; ++masked)
        for (int variant = VARIANT_CPU; variant <= VARIANT_GPU; ++variant) {
            size_t bytes = 0;
            caps.variant = (enum kernel_variant)variant;
            if (masked)
                ck_ok(attncl__desc_make(ATTNCL_U8, 3, mask, &sig.in[4]));
            ck_ok(attncl__op_aft_fwd.scratch(&sig, &bytes));
            ck_assert_uint_le(bytes, 16u << 20);
        }
}
