// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/optim.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_sgd_step(const struct ref_sgd *s, int64_t taken, struct host *p, const struct host *g,
                  struct host *buffer)
{
    for (int64_t i = 0; i < p->count; ++i) {
        double d = g->data[i] + (s->weight_decay != 0 ? s->weight_decay * p->data[i] : 0);
        if (s->momentum != 0) {
            buffer->data[i] =
                taken == 0 ? d : s->momentum * buffer->data[i] + (1 - s->dampening) * d;
            d = s->nesterov ? d + s->momentum * buffer->data[i] : buffer->data[i];
        }
        p->data[i] -= s->learning_rate * d;
    }
}

// -- the op

static void rates(const void *params, struct host *const *in, struct host *const *out)
{
    const struct sgd_rates_fwd_params *p = params;
    const bool first = in[0]->data[0] == 0;

    out[0]->data[0] = in[1] ? in[1]->data[0] : p->learning_rate;
    out[0]->data[1] = first ? 0 : p->momentum;
    out[0]->data[2] = first ? 1 : 1 - p->dampening;
}

#define RATES(...) SPEC_PARAMS(sgd_rates_fwd, __VA_ARGS__)
OP_SPEC(sgd_rates_fwd, .in = "step i32:0:1; learning_rate? f32:0.01:0.1", .out = "rates f32 3",
        .ref = rates, .rel = 1, .smoke = "S=1", .gpu = "S=1", .special = "S=1",
        .cases = {{"first", RATES(0.1, 0.9, 0.4)},
                  {"later", RATES(0.1, 0.9, 0.4), "step i32:5:6"},
                  {"given", RATES(0, 0.9, 0.4), "step i32:1:2; learning_rate f32:0.01:0.1"}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "momentum is -0.5", RATES(1, -0.5, 0)},
                     {ATTNCL_ERR_SHAPE, "learning_rate", .with = "learning_rate f32 4"}});

enum { PARAM, GRAD, RATE, BUFFER };
enum { P_NEW, B_NEW, N_NEW };

// Element i after the step; without a buffer every step is a first one, as in PyTorch, which makes it at the first step
// that it takes.  size: of the terms without cancelling signs.
static void step_of(const struct sgd_step_fwd_params *p, const struct host *const *in, int64_t i,
                    double now[N_NEW], double size[N_NEW])
{
    const double *const r = in[RATE]->data, old = in[PARAM]->data[i],
                        b = in[BUFFER] ? in[BUFFER]->data[i] : 0;
    const double keep = in[BUFFER] ? r[1] : 0, rest = in[BUFFER] ? r[2] : 1;
    double d = in[GRAD]->data[i], d_size = fabs(d) + fabs(p->decay * old);

    if (p->decay != 0)
        d += p->decay * old;
    if (p->momentum != 0) {
        now[B_NEW] = rest * d + (keep != 0 ? keep * b : 0);
        size[B_NEW] = fabs(rest) * d_size + (keep != 0 ? fabs(keep * b) : 0);
        d = p->nesterov ? d + p->momentum * now[B_NEW] : now[B_NEW];
        d_size = p->nesterov ? d_size + p->momentum * size[B_NEW] : size[B_NEW];
    }
    now[P_NEW] = old - r[0] * d;
    size[P_NEW] = fabs(old) + fabs(r[0]) * d_size;
    if (isnan(r[0])) { // changes nothing
        now[P_NEW] = old;
        now[B_NEW] = b;
    }
}

static void to_new(const void *params, struct host *const *in, struct host *p, struct host *b)
{
    double now[N_NEW], size[N_NEW];

    for (int64_t i = 0; i < p->count; ++i) {
        step_of(params, (const struct host *const *)in, i, now, size);
        p->data[i] = now[P_NEW];
        if (b)
            b->data[i] = now[B_NEW];
    }
}

static void step(const void *params, struct host *const *in, struct host *const *out)
{
    to_new(params, in, out[0], out[1]);
}

static void update(const void *params, struct host *const *in, struct host *const *out)
{
    (void)out;
    to_new(params, in, in[PARAM], in[BUFFER]);
}

// Six roundings of the sizes of terms.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct host *const in[] = {spec_in(p, 0), spec_in(p, 1), spec_in(p, 2), spec_in(p, 3)};
    double now[N_NEW], size[N_NEW];

    (void)want;
    for (int64_t i = 0; i < allowed->count; ++i) {
        step_of(spec_params(p), in, i, now, size);
        allowed->data[i] = isnan(in[RATE]->data[0])
                               ? 0
                               : 6 * 0x1p-24 * size[k != 0]; // the state at 3, or output 1
    }
}

// Hides what the buffer holds.
static void first_step(struct host *const *in)
{
    in[RATE]->data[1] = 0;
    in[RATE]->data[2] = 1;
    for (int64_t i = 0; i < in[BUFFER]->count; ++i)
        in[BUFFER]->data[i] = NAN;
}

static void no_rate(struct host *const *in)
{
    in[RATE]->data[0] = NAN;
    if (in[GRAD]->count > 0)
        in[GRAD]->data[in[GRAD]->count - 1] = NAN;
}

#define SGD(...) SPEC_PARAMS(sgd_step_fwd, __VA_ARGS__)
#define MOMENTUM "momentum_buffer f32 N"
#define STEP_IN  "param f32 N; grad f32 N; rates f32:0.1:0.9 3; momentum_buffer? f32 N"
#define STEP_CASES(more)                                                                           \
    {"plain", SGD(0, 0, 0)}, {"decay", SGD(0, 0.3, 0)},                                            \
        {"no rate", SGD(0, 0.1, 0), .prepare = no_rate},                                           \
        {"momentum", SGD(0.9, 0.1, 0), MOMENTUM more},                                             \
        {"Nesterov", SGD(0.5, 0.1, 1), MOMENTUM more},                                             \
        {"first", SGD(0.9, 0, 0), MOMENTUM more, .prepare = first_step},                           \
    {                                                                                              \
        "momentum, no rate", SGD(0.9, 0.1, 1), MOMENTUM more, .prepare = no_rate                   \
    }
#define SHORT_RATES                                                                                \
    {                                                                                              \
        ATTNCL_ERR_SHAPE, "rates is [4], must be [3]", .with = "rates f32:0.1:0.9 4"               \
    }
#define NO_MOMENTUM                                                                                \
    {                                                                                              \
        ATTNCL_ERR_ARGUMENT, "nesterov needs momentum", SGD(0, 0, 1)                               \
    }

OP_SPEC(sgd_step_fwd, .in = STEP_IN, .out = "p f32 N; b? f32 N", .ref = step, .allow = allow,
        .smoke = "N=1,37,2100", .gpu = "N=262144", .special = "N=37", .full = "N=70001",
        .cases = {STEP_CASES("; b f32 N"), {"no buffer", SGD(0.9, 0, 0), "b f32 N"}},
        .refusals = {SHORT_RATES, NO_MOMENTUM});

OP_SPEC(sgd_update_fwd, .in = STEP_IN, .out = "", .ref = update, .allow = allow,
        .smoke = "N=1,37,2100", .gpu = "N=262144", .special = "N=37", .full = "N=70001",
        .cases = {STEP_CASES("")},
        .refusals = {SHORT_RATES,
                     NO_MOMENTUM,
                     {ATTNCL_ERR_ARGUMENT, "momentum_buffer is missing", SGD(0.9, 0, 0)},
                     {ATTNCL_ERR_ARGUMENT, "momentum is 0: it has no buffer", .with = MOMENTUM}});

// Rates and step as users call them.
enum { ALL_PARAM, ALL_GRAD, ALL_BUFFER, ALL_STEP, ALL_RATE };

static void sgd(const void *params, struct host *const *in, struct host *const *out)
{
    const attncl_sgd_desc *d = params;
    const struct ref_sgd s = {in[ALL_RATE] ? in[ALL_RATE]->data[0] : d->learning_rate, d->momentum,
                              d->dampening, d->weight_decay, d->nesterov};

    host_set(out[0], in[ALL_PARAM]->data);
    if (in[ALL_BUFFER])
        host_set(out[1], in[ALL_BUFFER]->data);
    ref_sgd_step(&s, (int64_t)in[ALL_STEP]->data[0], out[0], in[ALL_GRAD], out[1]);
}

static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    const attncl_sgd_values before = {sizeof before, in[ALL_PARAM], in[ALL_BUFFER]};
    attncl_sgd_values after = ATTNCL_SGD_VALUES_INIT;

    attncl_sgd_step(g, params, attncl_sgd_rates(g, params, in[ALL_RATE], in[ALL_STEP]),
                    in[ALL_GRAD], &before, &after);
    out[0] = after.param;
    out[1] = after.momentum_buffer;
}

#define DESC(...)                                                                                  \
    &(const attncl_sgd_desc)                                                                       \
    {                                                                                              \
        sizeof(attncl_sgd_desc), 0.1, __VA_ARGS__                                                  \
    }
OP_SPEC(sgd,
        .in = "param f32 N*; grad f32 N*; momentum_buffer? f32 N*; step i32:0:3; learning_rate? "
              "f32:0.01:0.1",
        .out = "p f32 N*; b? f32 N*", .ref = sgd, .build = build, .rel = 10, .abs = 6,
        .smoke = "N=37,3x700",
        .cases = {{"plain", DESC(0, 0, 0.03, 0), "learning_rate f32:0.01:0.1"},
                  {"momentum", DESC(0.9, 0.4, 0.03, 0), "momentum_buffer f32 N*; b f32 N*"},
                  {"Nesterov", DESC(0.9, 0, 0, 1),
                   "momentum_buffer f32 N*; b f32 N*; learning_rate f32:0.01:0.1"},
                  {"first", DESC(0.9, 0, 0, 0), "b f32 N*; step i32:0:1"}});
