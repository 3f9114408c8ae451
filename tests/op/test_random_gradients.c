// SPDX-License-Identifier: MIT
// Gradients against central differences of their references in double, at random shapes and sizes of inputs: extents of
// 1, odd ones, those around a vector and above a work-group.

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/grad_test.h"

enum { N_SHAPES = 6, MAX_IN = 6 };

static uint32_t state;

// In [low, high], by a linear congruential generator.
static int64_t draw(int low, int high)
{
    state = state * 1664525u + 1013904223u;
    return low + (int64_t)(state >> 8) % (high - low + 1);
}

// Of size 1, tiny or of some units.
static struct host *numbers(int rank, const int64_t *dim)
{
    static const double sizes[] = {1, 1e-3, 4};
    struct host *x = host_random((unsigned)draw(1, 1 << 20), rank, dim);

    host_scale(x, sizes[draw(0, 2)]);
    return x;
}

struct problem {
    const char *op;
    const void *params;
    ref_forward forward;
    struct host *in[MAX_IN];
    int n_in;
    unsigned wanted;
};

#define FORWARD(name)                                                                              \
    static void name(const void *params, struct host *const *in, struct host *const *out)

static const struct cross_entropy_fwd_params loss_params = {ATTNCL_REDUCE_MEAN, 1, 0.1};

FORWARD(cross_entropy)
{
    (void)params;
    ref_cross_entropy_fwd(in[0], in[1], ATTNCL_REDUCE_MEAN, 1, 0.1, out[0]);
}

static struct problem of_cross_entropy(void)
{
    const int64_t rows = draw(2, 9), width = draw(3, 70);
    struct host *targets = host_ints((unsigned)draw(1, 99), 0, (int)width, DIMS(rows));

    targets->data[0] = 2; // not all are padding
    return (struct problem){"cross_entropy_fwd",
                            &loss_params,
                            cross_entropy,
                            {numbers(DIMS(rows, width)), targets},
                            2,
                            1};
}

static const struct additive_attention_fwd_params additive_params;

FORWARD(additive_attention)
{
    struct host *weights = host_new(ATTNCL_F32, DIMS(in[0]->dim[0], in[0]->dim[1], in[1]->dim[1]));

    (void)params;
    ref_additive_attention(in[0], in[1], in[2], in[3], NULL, out[0], weights);
}

static struct problem of_additive_attention(void)
{
    const int64_t n_batch = draw(1, 3), n_keys = draw(2, 9), n = draw(1, 20);
    struct problem p = {
        "additive_attention_fwd", &additive_params, additive_attention, {NULL}, 5, 017};

    p.in[0] = host_random((unsigned)draw(1, 99), DIMS(n_batch, draw(1, 6), n));
    p.in[1] = host_random((unsigned)draw(1, 99), DIMS(n_batch, n_keys, n));
    p.in[2] = numbers(DIMS(n_batch, n_keys, draw(1, 20)));
    p.in[3] = host_random((unsigned)draw(1, 99), DIMS(n));
    return p;
}

static struct attention_fwd_params attention_params;

FORWARD(attention)
{
    const struct ref_attention a = {.scale = 0.25, .causal = attention_params.causal};
    struct host *weights =
        host_new(ATTNCL_F32, DIMS(in[0]->dim[0], in[0]->dim[1], in[0]->dim[2], in[1]->dim[2]));

    (void)params;
    ref_attention_weights(&a, in[0], in[1], weights);
    ref_attention_mix(weights, in[2], false, out[0]);
}

static struct problem of_attention(void)
{
    const int64_t n_batch = draw(1, 2), n_heads = draw(1, 2), n_keys = draw(2, 18), d = draw(1, 12);
    struct problem p = {"attention_fwd", &attention_params, attention, {NULL}, 6, 7};

    attention_params = (struct attention_fwd_params){
        .scale = 0.25f, .causal = (int32_t)draw(0, 1), .layout = ATTNCL_LAYOUT_BATCH_FIRST};
    p.in[0] = host_random((unsigned)draw(1, 99), DIMS(n_batch, n_heads, draw(2, 12), d));
    p.in[1] = host_random((unsigned)draw(1, 99), DIMS(n_batch, n_heads, n_keys, d));
    p.in[2] = numbers(DIMS(n_batch, n_heads, n_keys, draw(1, 12)));
    return p;
}

static struct aft_fwd_params aft_params;

FORWARD(aft)
{
    (void)params;
    ref_aft_fwd(&(struct ref_aft_data){in[0], in[1], in[2], .pos_bias = in[3],
                                       .window = aft_params.window, .causal = aft_params.causal},
                out[0], host_like(out[0]));
}

static struct problem of_aft(void)
{
    const int64_t steps = draw(2, 12), batch = draw(1, 2), c = draw(1, 12);

    aft_params = (struct aft_fwd_params){0, (int32_t)draw(1, 12), (int32_t)draw(0, 1)};
    return (struct problem){"aft_fwd",
                            &aft_params,
                            aft,
                            {numbers(DIMS(steps, batch, c)), numbers(DIMS(steps, batch, c)),
                             numbers(DIMS(steps, batch, c)), numbers(DIMS(steps, steps)), NULL},
                            5,
                            017};
}

static const struct gru_fwd_params gru_params = {ATTNCL_LAYOUT_TIME_FIRST};

FORWARD(gru)
{
    (void)params;
    ref_gru_fwd(in[0], in[1], in[2], in[3], true, out[0]);
}

static struct problem of_gru(void)
{
    const int64_t steps = draw(1, 5), batch = draw(1, 3), h = draw(1, 9);
    struct problem p = {"gru_fwd", &gru_params, gru, {NULL}, 4, 017};

    p.in[0] = numbers(DIMS(steps, batch, 3 * h));
    p.in[1] = host_random((unsigned)draw(1, 99), DIMS(3 * h, h));
    p.in[2] = numbers(DIMS(3 * h));
    p.in[3] = numbers(DIMS(batch, h));
    return p;
}

static struct problem (*const problems[])(void) = {
    of_cross_entropy, of_additive_attention, of_attention, of_aft, of_gru,
};

// Float rounding of sums whose terms cancel; a wrong term is some tenths.
TABLE_TEST(meet_finite_differences, problems)
{
    for (int i = 0; i < (on_simulator() ? 1 : N_SHAPES); ++i) {
        state = 7919u * (unsigned)_i + 104729u * (unsigned)i + 1u;
        const struct problem p = problems[_i]();
        ck_gradients(p.op, p.params, p.in, p.n_in, p.wanted, p.forward, 5e-5);
    }
}
