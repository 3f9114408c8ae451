// SPDX-License-Identifier: MIT
// A fused feed-forward network of few rows, split by hidden units, against the references of what
// it fuses.
// Reference: tests/support/fused_step_test.c and tests/ref/activation.c.

#include <math.h>

#include "attncl/kinds.h"
#include "device/context.h"
#include "ref/ref.h"
#include "support/fused_step_test.h"

// Chains of at most some 100 FMAs, the norm's roundings, an activation's few units in the
// last place: relative to sums of absolute values, all of it is below this.
static const double tolerance = 4e-6;

struct network {
    int64_t m, d, f, d_out, n_before;
    int n_blocks; // 0: as many as the device takes
    attncl_activation activation;
    bool biased;
};

static void check(const struct network *n)
{
    const struct stream s = stream_make(3, n->m, n->d, n->n_before);
    struct host *w1 = host_random(21, DIMS(n->f, n->d)), *b1 = host_random(22, DIMS(n->f));
    struct host *w2 = host_random(23, DIMS(n->d_out, n->f)), *given = n->biased ? b1 : NULL;
    const struct fused_ffn_fwd_params params = {stream_eps, (int32_t)n->activation,
                                                blocks_of(n->f, n->n_blocks)};
    struct host *partials = host_new(ATTNCL_F32, DIMS(params.n_blocks, n->m, n->d_out));
    struct host *reduced = host_like(s.x);
    const attncl_status status =
        run_op("fused_ffn_fwd", &params,
               HOSTS(s.x, s.norm_weight, s.norm_bias, s.partials, s.bias, w1, given, w2),
               (struct host *const[]){partials, reduced}, s.partials ? 2 : 1);

    if (test_context()->caps.variant != VARIANT_CPU || test_context()->caps.max_loop_iterations) {
        ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "cannot be one launch on this device");
        return;
    }
    ck_ok(status);
    struct host *argument = map_rows(s.z, w1, given), *hidden = host_like(argument);
    ref_activation_fwd(argument, (int)n->activation, hidden);
    ck_partials(partials, map_rows(hidden, w2, NULL),
                map_sizes(map_sizes(s.z, w1, given), w2, NULL), tolerance);
    if (s.partials)
        ck_near(reduced, s.reduced, 1e-5, 1e-5);
}

static const struct network networks[] = {
    {1, 16, 16, 16, 1, 1, ATTNCL_RELU, true},   {1, 48, 96, 32, 0, 0, ATTNCL_GELU, true},
    {2, 32, 64, 48, 3, 4, ATTNCL_GELU, false},  {5, 32, 48, 32, 2, 2, ATTNCL_SILU, true},
    {16, 16, 32, 16, 1, 2, ATTNCL_RELU, false}, {3, 16, 80, 16, 4, 0, ATTNCL_TANH, true},
};

LOOP_TEST(meets_the_definitions, 0, sizeof networks / sizeof networks[0])
{
    check(&networks[_i]);
}

TEST(refusals)
{
    const struct stream s = stream_make(3, 2, 16, 1);
    struct host *w1 = host_random(1, DIMS(32, 16)), *w2 = host_random(2, DIMS(16, 32));
    struct host *other = host_random(3, DIMS(16, 48)),
                *partials = host_new(ATTNCL_F32, DIMS(1, 2, 16));
    struct host *reduced = host_like(s.x), *many = host_random(4, DIMS(3, 2, 17));
    struct fused_ffn_fwd_params params = {stream_eps, ATTNCL_RELU, 1};

#define ATTEMPT(before, first, second)                                                             \
    run_op("fused_ffn_fwd", &params,                                                               \
           HOSTS(s.x, s.norm_weight, s.norm_bias, before, s.bias, first, NULL, second),            \
           HOSTS(partials, reduced))
    ck_fails(ATTEMPT(s.partials, other, w2), ATTNCL_ERR_SHAPE, "w1 is [16, 48], x has 16 channels");
    ck_fails(ATTEMPT(s.partials, w1, other), ATTNCL_ERR_SHAPE, "w2 is [16, 48], w1 is [32, 16]");
    ck_fails(ATTEMPT(many, w1, w2), ATTNCL_ERR_SHAPE,
             "partials are [3, 2, 17], x has 2 rows of 16");
    params.n_blocks = 0;
    ck_fails(ATTEMPT(s.partials, w1, w2), ATTNCL_ERR_ARGUMENT, "0 channel blocks");
    params.n_blocks = 1000;
    partials = host_new(ATTNCL_F32, DIMS(1000, 2, 16));
    ck_fails(ATTEMPT(s.partials, w1, w2), ATTNCL_ERR_UNSUPPORTED,
             "1000 blocks cannot be one launch");
#undef ATTEMPT
}
