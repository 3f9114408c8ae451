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

// Of a query each; two heads.
static int attended(struct host **in, struct host **out)
{
    in[0] = host_random(1, DIMS(1, 2, 5, 8));
    in[1] = host_random(2, DIMS(1, 2, 9, 8));
    in[2] = host_random(3, DIMS(1, 2, 9, 8));
    in[3] = in[4] = NULL;
    *out = host_new(ATTNCL_F32, DIMS(1, 5, 2, 8));
    return 5;
}

// The sum so far and two values.
static int remembered(struct host **in, struct host **out)
{
    in[0] = host_random(1, DIMS(4));
    for (unsigned i = 1; i < 4; ++i)
        in[i] = host_random(i + 1, DIMS(2, 21));
    *out = host_like(in[1]);
    return 4;
}

static void ref_of_loss(struct host *const *in, int kind, struct host *out)
{
    (void)kind;
    ref_cross_entropy_fwd(in[0], in[1], ATTNCL_REDUCE_NONE, -1, 0, out);
}

static void ref_of_attention(struct host *const *in, int kind, struct host *out)
{
    const struct ref_attention a = {.scale = 0.5, .causal = kind};
    struct host *weights = host_new(ATTNCL_F32, DIMS(1, 2, 5, 9));

    ref_attention_weights(&a, in[0], in[1], weights);
    ref_attention_mix(weights, in[2], false, out);
}

static void ref_of_mixing(struct host *const *in, int kind, struct host *out)
{
    (void)kind;
    ref_aft_fwd(&(struct ref_aft_data){in[0], in[1], in[2], .pos_bias = in[3]}, out,
                host_like(out));
}

static void ref_of_additive(struct host *const *in, int kind, struct host *out)
{
    (void)kind;
    ref_additive_attention(in[0], in[1], in[2], in[3], NULL, out,
                           host_new(ATTNCL_F32, DIMS(2, 5, 6)));
}

static void ref_of_pooling(struct host *const *in, int kind, struct host *out)
{
    ref_attention_pooling_fwd(kind, 1, in[0], in[1], in[2], out, host_new(ATTNCL_F32, DIMS(7, 5)));
}

static void ref_of_memory(struct host *const *in, int kind, struct host *out)
{
    ref_feedback_mix_fwd(in[0], kind, in[1], &in[2], 2, out);
}

static void ref_of_gru(struct host *const *in, int kind, struct host *out)
{
    (void)kind;
    ref_gru_fwd(in[0], in[1], in[2], in[3], true, out);
}

static const struct example examples[] = {
    {"cross_entropy_fwd", 0, inputs_scored, ref_of_loss},
    {"attention_fwd", 0, attended, ref_of_attention},
    {"attention_fwd", 1, attended, ref_of_attention}, // causal: keys that a query does not see
    {"aft_fwd", 0, inputs_mixed, ref_of_mixing},
    {"additive_attention_fwd", 0, inputs_additive, ref_of_additive},
    {"attention_pooling_fwd", 0, inputs_pooled, ref_of_pooling}, // Gaussian
    {"attention_pooling_fwd", 1, inputs_pooled, ref_of_pooling}, // boxcar
    {"attention_pooling_fwd", 2, inputs_pooled, ref_of_pooling}, // constant
    {"attention_pooling_fwd", 3, inputs_pooled, ref_of_pooling}, // Epanechikov
    {"gru_fwd", 0, inputs_recurrent, ref_of_gru},
    {"feedback_mix_fwd", 1, remembered, ref_of_memory},
};

static const void *params_of(const struct example *e)
{
    static struct cross_entropy_fwd_params loss;
    static struct attention_fwd_params attention;
    static struct aft_fwd_params mixing;
    static struct attention_pooling_fwd_params pooling;
    static struct additive_attention_fwd_params scores;
    static struct gru_fwd_params gru;
    static int32_t kind;

    loss = (struct cross_entropy_fwd_params){ATTNCL_REDUCE_NONE, -1, 0};
    attention = (struct attention_fwd_params){
        .scale = 0.5f, .causal = e->kind, .layout = ATTNCL_LAYOUT_BATCH_FIRST};
    pooling = (struct attention_pooling_fwd_params){e->kind, 1, 0};
    gru.layout = ATTNCL_LAYOUT_TIME_FIRST;
    kind = e->kind;
    return e->inputs == inputs_pooled      ? (const void *)&pooling
           : e->inputs == inputs_additive  ? (const void *)&scores
           : e->inputs == inputs_recurrent ? (const void *)&gru
           : e->inputs == attended         ? (const void *)&attention
           : e->inputs == inputs_mixed     ? (const void *)&mixing
           : e->inputs == inputs_scored    ? (const void *)&loss
                                           : (const void *)&kind;
}

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
            ck_ok(run_op(e->op, params_of(e), in, n, HOSTS(got)));
            for (int64_t j = 0; j < got->count; ++j)
                ck_assert_msg(alike(got->data[j], want->data[j]),
                              "%s %d: %g in input %d makes [%lld] %g, expected %g", e->op, e->kind,
                              specials[s % 3], i, (long long)j, got->data[j], want->data[j]);
            *at = old;
        }
}
