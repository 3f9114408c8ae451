// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/optim.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_adam_step(const struct ref_adam *a, int64_t taken, struct host *p, struct host *g,
                   struct host *m, struct host *v, struct host *largest)
{
    const double t = (double)taken + 1;
    const double c1 = 1 - pow(a->beta1, t), c2 = 1 - pow(a->beta2, t);
    const double rate = a->now > 0 ? a->now : a->learning_rate;

    for (int64_t i = 0; i < p->count; ++i) {
        double grad = g->data[i];
        if (a->decoupled)
            p->data[i] *= 1 - (a->scheduled_decay ? rate : a->learning_rate) * a->weight_decay;
        else if (a->weight_decay != 0)
            grad += a->weight_decay * p->data[i];
        m->data[i] = a->beta1 * m->data[i] + (1 - a->beta1) * grad;
        v->data[i] = a->beta2 * v->data[i] + (1 - a->beta2) * grad * grad;
        if (largest)
            largest->data[i] = v->data[i] < largest->data[i] ? largest->data[i] : v->data[i];
        const double root = sqrt(largest ? largest->data[i] : v->data[i]);
        if (a->optimized)
            p->data[i] -= rate * sqrt(c2) / c1 * m->data[i] / (root + a->eps);
        else
            p->data[i] -= rate / c1 * m->data[i] / (root / sqrt(c2) + a->eps);
    }
}

// -- the op

static void rates(const void *params, struct host *const *in, struct host *const *out)
{
    const struct adam_rates_fwd_params *p = params;
    const double t = in[0]->data[0] + 1, now = in[1] ? in[1]->data[0] : p->learning_rate;
    const double left1 = 1 - pow(p->beta1, t), left2 = sqrt(1 - pow(p->beta2, t));

    out[0]->data[0] = p->optimized ? now * left2 / left1 : now / left1;
    out[0]->data[1] = p->optimized ? 1 : 1 / left2;
    out[0]->data[2] = p->shrink + p->scheduled_decay * now;
}

// expm1 of 3 ulp, a root, a quotient; digits of 1 - 0.9999^t are not lost.
#define RATES(...) SPEC_PARAMS(adam_rates_fwd, __VA_ARGS__)
#define GIVEN      "; learning_rate f32:0.01:0.1"
OP_SPEC(adam_rates_fwd, .in = "step i32:3:4; learning_rate? f32:0.01:0.1", .out = "rates f32 3",
        .ref = rates, .rel = 16, .smoke = "S=1", .gpu = "S=1", .special = "S=1",
        .cases = {{"PyTorch", RATES(0.1, 0.9, 0.999, 0, 0, 0)},
                  {"first", RATES(1, 0.9999, 0.9999, 0, 0, 0), "step i32:0:1", .rel = 8},
                  {"last", RATES(0.005, 0.9, 0.999, 0, 0, 0), "step i32:1000000000:1000000001"},
                  {"optimized", RATES(0.01, 0.9, 0.999, 1, 0, 0), "step i32:7:8" GIVEN},
                  {"no means", RATES(0.1, 0, 0, 0, 0, 0)},
                  {"shrinking", RATES(0.1, 0.9, 0.999, 0, 0.03, 0), "step i32:3:4" GIVEN},
                  {"scheduled", RATES(0.1, 0.9, 0.999, 0, 0, 0.3), "step i32:3:4" GIVEN},
                  {"constant", RATES(0.1, 0.9, 0.999, 0, 0, 0.3)}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "betas are 1 and 0.5", RATES(1, 1, 0.5, 0, 0, 0)},
                     {ATTNCL_ERR_ARGUMENT, "betas are 0.5 and -1", RATES(1, 0.5, -1, 0, 0, 0)}});

enum { PARAM, GRAD, MEAN, SQUARE, RATE, LARGEST };
enum { P_NEW, M_NEW, V_NEW, LARGEST_NEW, N_NEW };

// Element i after the step; `size`: how large terms are without cancelling signs, NULL: not asked for.
static void step_of(const struct adam_step_fwd_params *p, const struct host *const *in, int64_t i,
                    double now[N_NEW], double size[N_NEW])
{
    const double *const r = in[RATE]->data, old = in[PARAM]->data[i];
    const double shrunk = r[2] != 0 ? old - old * r[2] : old;
    const double g = p->decay != 0 ? in[GRAD]->data[i] + shrunk * p->decay : in[GRAD]->data[i];
    const double g_size = fabs(in[GRAD]->data[i]) + fabs(shrunk * p->decay);

    now[M_NEW] = p->beta1 * in[MEAN]->data[i] + (1 - p->beta1) * g;
    now[V_NEW] = (float)(p->beta2 * in[SQUARE]->data[i] + (1 - p->beta2) * g * g);
    now[LARGEST_NEW] =
        in[LARGEST] && now[V_NEW] < in[LARGEST]->data[i] ? in[LARGEST]->data[i] : now[V_NEW];
    const double over = sqrt(now[LARGEST_NEW]) * r[1] + p->eps;
    now[P_NEW] = shrunk - r[0] * now[M_NEW] / over;
    size[M_NEW] = fabs(p->beta1 * in[MEAN]->data[i]) + fabs(1 - p->beta1) * g_size;
    size[V_NEW] = size[LARGEST_NEW] =
        fabs(p->beta2 * in[SQUARE]->data[i]) + fabs(1 - p->beta2) * g_size * g_size;
    size[P_NEW] = fabs(old) + r[0] * size[M_NEW] / over * (1 + size[V_NEW] / now[LARGEST_NEW]);
}

static void to_new(const void *params, struct host *const *in, struct host *const new[N_NEW])
{
    static const int olds[] = {PARAM, MEAN, SQUARE, LARGEST};
    double now[N_NEW], size[N_NEW];

    for (int64_t i = 0; i < in[PARAM]->count; ++i) {
        step_of(params, (const struct host *const *)in, i, now, size);
        for (int k = 0; k < N_NEW; ++k)
            if (new[k]) // a rate that is not a number changes nothing
                new[k]->data[i] = isnan(in[RATE]->data[0]) ? in[olds[k]]->data[i] : now[k];
    }
}

static void step(const void *params, struct host *const *in, struct host *const *out)
{
    to_new(params, in, out);
}

static void update(const void *params, struct host *const *in, struct host *const *out)
{
    (void)out;
    to_new(params, in, (struct host *const[]){in[PARAM], in[MEAN], in[SQUARE], in[LARGEST]});
}

// Some ten roundings of the sizes of terms.
static void allow_new(const struct spec_point *p, int k, struct host *allowed)
{
    const struct host *in[6];
    double now[N_NEW], size[N_NEW];

    for (int i = 0; i < 6; ++i)
        in[i] = spec_in(p, i);
    for (int64_t i = 0; i < allowed->count; ++i) {
        step_of(spec_params(p), in, i, now, size);
        allowed->data[i] = isnan(in[RATE]->data[0]) ? 0 : 10 * 0x1p-24 * size[k];
    }
}

static void allow_step(const struct spec_point *p, int k, const struct host *want,
                       struct host *allowed)
{
    (void)want;
    allow_new(p, k, allowed);
}

static void allow_update(const struct spec_point *p, int k, const struct host *want,
                         struct host *allowed)
{
    static const int of_state[] = {P_NEW, -1, M_NEW, V_NEW, -1, LARGEST_NEW};

    (void)want;
    allow_new(p, of_state[k], allowed);
}

// As torch.optim.Adam: the square is more than a float holds, infinite, and its parameter stays.
static void one_is_huge(struct host *const *in)
{
    if (in[GRAD]->count > 0)
        in[GRAD]->data[in[GRAD]->count / 2] = 3e38;
}

// Changes nothing, on both sides of the end of a vector, with a gradient that is not a number.
static void no_rate(struct host *const *in)
{
    in[RATE]->data[0] = NAN;
    if (in[GRAD]->count > 0)
        in[GRAD]->data[in[GRAD]->count - 1] = NAN;
}

static void keep_weights(struct host *const *in)
{
    in[RATE]->data[2] = 0;
}

#define ADAM(...) SPEC_PARAMS(adam_step_fwd, __VA_ARGS__)
#define AMSGRAD   "max_exp_avg_sq f32:0.1:2 N"
#define STEP_IN                                                                                    \
    "param f32 N; grad f32 N; exp_avg f32 N; exp_avg_sq f32:0.1:2 N; rates f32:0.1:0.9 3; "        \
    "max_exp_avg_sq? f32:0.1:2 N"
#define STEP_CASES(more)                                                                           \
    .cases = {{"plain", ADAM(0.9, 0.999, 1e-8, 0), .prepare = keep_weights},                       \
              {"shrinking", ADAM(0.9, 0.99, 1e-3, 0)},                                             \
              {"AMSGrad", ADAM(0.9, 0.99, 1e-3, 0), AMSGRAD more},                                 \
              {"decay", ADAM(0.9, 0.999, 1e-8, 0.3), AMSGRAD more, .prepare = keep_weights},       \
              {"no means", ADAM(0, 0, 1e-3, 0)},                                                   \
              {"huge", ADAM(0.9, 0.999, 1e-8, 0), .leeway = MEETS, .prepare = one_is_huge},        \
              {"no rate", ADAM(0.9, 0.9, 1e-8, 0.3), AMSGRAD more, .prepare = no_rate}},           \
    .refusals = {                                                                                  \
        {ATTNCL_ERR_SHAPE, "rates is [4], must be [3]", .with = "rates f32:0.1:0.9 4"},            \
        {ATTNCL_ERR_ARGUMENT, "eps is -1e-08 and weight_decay 0", ADAM(0.9, 0.999, -1e-8, 0)},     \
        {ATTNCL_ERR_ARGUMENT, "eps is 1e-08 and weight_decay nan", ADAM(0.9, 0.999, 1e-8, NAN)}}

OP_SPEC(adam_step_fwd, .in = STEP_IN, .out = "p f32 N; m f32 N; v f32 N; largest? f32 N",
        .ref = step, .allow = allow_step, .smoke = "N=1,37,2100", .gpu = "N=262144",
        .special = "N=37", STEP_CASES("; largest f32 N"));

OP_SPEC(adam_update_fwd, .in = STEP_IN, .out = "", .ref = update, .allow = allow_update,
        .smoke = "N=1,37,2100", .gpu = "N=262144", .special = "N=37", STEP_CASES(""));

// Rates and step as users call them.
enum { ALL_PARAM, ALL_GRAD, ALL_MEAN, ALL_SQUARE, ALL_LARGEST, ALL_STEP, ALL_RATE };

static void adam(const void *params, struct host *const *in, struct host *const *out)
{
    const attncl_adam_desc *d = params;
    const struct ref_adam a = {.learning_rate = d->learning_rate,
                               .beta1 = d->beta1,
                               .beta2 = d->beta2,
                               .eps = d->eps,
                               .weight_decay = d->weight_decay,
                               .optimized = d->optimized,
                               .decoupled = d->decoupled,
                               .scheduled_decay = d->scheduled_decay,
                               .now = in[ALL_RATE] ? in[ALL_RATE]->data[0] : 0};

    for (int k = 0; k < N_NEW; ++k)
        if (out[k])
            host_set(out[k], in[k == 0 ? ALL_PARAM : ALL_GRAD + k]->data);
    ref_adam_step(&a, (int64_t)in[ALL_STEP]->data[0], out[P_NEW], in[ALL_GRAD], out[M_NEW],
                  out[V_NEW], out[LARGEST_NEW]);
}

static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    const attncl_adam_values before = {sizeof before, in[ALL_PARAM], in[ALL_MEAN], in[ALL_SQUARE],
                                       in[ALL_LARGEST]};
    attncl_adam_values after = ATTNCL_ADAM_VALUES_INIT;

    attncl_adam_step(g, params, attncl_adam_rates(g, params, in[ALL_RATE], in[ALL_STEP]),
                     in[ALL_GRAD], &before, &after);
    out[P_NEW] = after.param;
    out[M_NEW] = after.exp_avg;
    out[V_NEW] = after.exp_avg_sq;
    out[LARGEST_NEW] = after.max_exp_avg_sq;
}

#define DESC(...)                                                                                  \
    &(const attncl_adam_desc)                                                                      \
    {                                                                                              \
        sizeof(attncl_adam_desc), __VA_ARGS__                                                      \
    }
// As above; what cancels is as large as the largest.
OP_SPEC(adam,
        .in = "param f32 N*; grad f32 N*; exp_avg f32 N*; exp_avg_sq f32:0.1:2 N*; max_exp_avg_sq? "
              "f32:0.1:2 N*; "
              "step i32:1:20; learning_rate? f32:0.01:0.1",
        .out = "p f32 N*; m f32 N*; v f32 N*; largest? f32 N*", .ref = adam, .build = build,
        .rel = 20, .abs = 10, .smoke = "N=37,3x700",
        .cases = {
            {"labml", DESC(0.1, 0.9, 0.999, 1e-8, 0, 1, 1, 0)},
            {"AdamW", DESC(0.1, 0.9, 0.999, 1e-8, 0.01, 1, 0, 1), "learning_rate f32:0.01:0.1"},
            {"PyTorch", DESC(0.1, 0.9, 0.999, 1e-2, 0.03, 0, 0, 0)},
            {"AMSGrad", DESC(0.1, 0.9, 0.99, 1e-8, 0.03, 1, 0, 0),
             "max_exp_avg_sq f32:0.1:2 N*; largest f32 N*"}});
