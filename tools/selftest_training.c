// SPDX-License-Identifier: MIT
//
// Checks of attncl selftest: steps of optimisers, clipping, schedules, dropout.

#include <math.h>

#include "selftest.h"

enum { STEPS_TAKEN = 1 }; // what an I32 input below 2 holds

static attncl_value scalar(attncl_graph *g, attncl_value x)
{
    return attncl_reshape(g, x, 0, NULL);
}

static attncl_adam_desc adam(bool is_adamw)
{
    attncl_adam_desc desc = ATTNCL_ADAM_DESC_INIT;

    if (is_adamw)
        desc = (attncl_adam_desc)ATTNCL_ADAMW_DESC_INIT;
    desc.learning_rate = 0.1;
    return desc;
}

attncl_value check_build_adam(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    const attncl_adam_desc desc = adam(c->kind);
    attncl_adam_values before = ATTNCL_ADAM_VALUES_INIT, after = ATTNCL_ADAM_VALUES_INIT;
    const attncl_value rates = attncl_adam_rates(g, &desc, NULL, scalar(g, in[4]));

    before.param = in[0];
    before.exp_avg = in[1];
    before.exp_avg_sq = in[2];
    attncl_adam_step(g, &desc, rates, in[3], &before, &after);
    return after.param;
}

void check_ref_adam(const struct check *c, double *const *in, double *out)
{
    const attncl_adam_desc desc = adam(c->kind);
    const double c1 = 1 - pow(desc.beta1, STEPS_TAKEN + 1),
                 c2 = 1 - pow(desc.beta2, STEPS_TAKEN + 1);

    for (int64_t i = 0; i < check_count(&c->out); i++) {
        const double m = desc.beta1 * in[1][i] + (1 - desc.beta1) * in[3][i];
        const double v = desc.beta2 * in[2][i] + (1 - desc.beta2) * in[3][i] * in[3][i];
        const double root =
            desc.optimized ? (sqrt(v) + desc.eps) / sqrt(c2) : sqrt(v / c2) + desc.eps;
        out[i] = in[0][i] * (1 - desc.learning_rate * desc.weight_decay) -
                 desc.learning_rate * m / c1 / root;
    }
}

static attncl_sgd_desc sgd(void)
{
    attncl_sgd_desc desc = ATTNCL_SGD_DESC_INIT;

    desc.learning_rate = 0.1;
    desc.momentum = 0.9;
    desc.dampening = 0.25;
    desc.weight_decay = 0.01;
    return desc;
}

attncl_value check_build_sgd(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    const attncl_sgd_desc desc = sgd();
    attncl_sgd_values before = ATTNCL_SGD_VALUES_INIT, after = ATTNCL_SGD_VALUES_INIT;
    const attncl_value rates =
        attncl_sgd_rates(g, &desc, (attncl_value)ATTNCL_VALUE_INIT, scalar(g, in[3]));

    (void)c;
    before.param = in[0];
    before.momentum_buffer = in[1];
    attncl_sgd_step(g, &desc, rates, in[2], &before, &after);
    return after.param;
}

void check_ref_sgd(const struct check *c, double *const *in, double *out)
{
    const attncl_sgd_desc desc = sgd();

    for (int64_t i = 0; i < check_count(&c->out); i++) {
        const double d = in[2][i] + desc.weight_decay * in[0][i];
        out[i] =
            in[0][i] - desc.learning_rate * (desc.momentum * in[1][i] + (1 - desc.dampening) * d);
    }
}

static const double max_norm = 5;

attncl_value check_build_clip(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    attncl_value clipped[2];

    (void)c;
    (void)attncl_clip_grad_norm(g, 2, in, max_norm, ATTNCL_CLIP_EXACT, clipped);
    return clipped[0];
}

void check_ref_clip(const struct check *c, double *const *in, double *out)
{
    double squares = 0;

    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < check_count(&c->in[k]); i++)
            squares += in[k][i] * in[k][i];
    const double factor = sqrt(squares) > max_norm ? max_norm / sqrt(squares) : 1;
    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = factor * in[0][i];
}

static const double max_value = 1.5;

attncl_value check_build_clamp(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    attncl_value clipped;

    (void)c;
    attncl_clip_grad_value(g, 1, in, max_value, &clipped);
    return clipped;
}

void check_ref_clamp(const struct check *c, double *const *in, double *out)
{
    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = fmax(-max_value, fmin(max_value, in[0][i]));
}

static attncl_schedule_desc schedule(int kind)
{
    attncl_schedule_desc desc = ATTNCL_SCHEDULE_DESC_INIT;

    desc.kind = (attncl_rate_schedule)kind;
    desc.n_steps = 7;
    return desc;
}

attncl_value check_build_rate(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    const attncl_schedule_desc desc = schedule(c->kind);

    return attncl_learning_rate(g, &desc, 0.5, scalar(g, in[0]));
}

void check_ref_rate(const struct check *c, double *const *in, double *out)
{
    const attncl_schedule_desc desc = schedule(c->kind);

    (void)in;
    out[0] = 0.25 * (1 + cos(acos(-1) * (STEPS_TAKEN + 1) / desc.n_steps));
}

attncl_value check_build_accumulate(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    const attncl_value sum = attncl_graph_state(g, "sum", ATTNCL_F32, c->out.rank, c->out.dim);

    attncl_accumulate(g, sum, in[0]);
    attncl_accumulate(g, sum, in[1]);
    return attncl_add(g, sum, in[1]);
}

void check_ref_accumulate(const struct check *c, double *const *in, double *out)
{
    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = in[0][i] + 2 * in[1][i];
}

static const double dropped = 0.25;
enum { SEED = 7, SITE = 3, ROUNDS = 10 };

attncl_value check_build_dropout(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    attncl_dropout_desc desc = ATTNCL_DROPOUT_DESC_INIT;

    (void)c;
    desc.p = dropped;
    desc.seed = SEED;
    desc.site = SITE;
    desc.step = scalar(g, in[1]);
    return attncl_dropout(g, in[0], &desc);
}

// Word `at` of a block of Philox 4x32-10, as attncl/dropout.h says.
static uint32_t word_of(uint32_t block, int at)
{
    uint32_t x[4] = {block, 0, SITE, STEPS_TAKEN}, key[2] = {SEED, 0};

    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t first = 0xD2511F53ull * x[0], second = 0xCD9E8D57ull * x[2];
        const uint32_t mixed[4] = {(uint32_t)(second >> 32) ^ x[1] ^ key[0], (uint32_t)second,
                                   (uint32_t)(first >> 32) ^ x[3] ^ key[1], (uint32_t)first};
        for (int k = 0; k < 4; k++)
            x[k] = mixed[k];
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return x[at];
}

void check_ref_dropout(const struct check *c, double *const *in, double *out)
{
    const int64_t n = check_last_axis(&c->out);

    for (int64_t i = 0; i < check_count(&c->out); i++) {
        const uint32_t word =
            word_of((uint32_t)(i / n * ((n + 3) / 4) + i % n / 4), (int)(i % n % 4));
        out[i] = word >= dropped * 4294967296.0 ? in[0][i] / (1 - dropped) : 0;
    }
}
