// SPDX-License-Identifier: MIT

#include <math.h>
#include <stdlib.h>

#include "attncl/feedback.h"
#include "ref/layers.h"
#include "ref/ref.h"
#include "support/op_spec.h"

// s_j and, in *size_ret, the sum of the sizes of its terms.
static double score(const struct ref_feedback *x, int64_t count, int64_t j, int64_t b, int64_t h,
                    double *size_ret)
{
    const int64_t n_heads = x->u->dim[0], width = x->u->dim[1], batch = x->q->dim[0];
    const int64_t place = x->places->dim[0] - count + j;
    const double *q = x->q->data + (b * n_heads + h) * width, *u = x->u->data + h * width;
    const double *k = x->k->data + ((j * batch + b) * n_heads + h) * width;
    const double *p = x->places->data + (place * n_heads + h) * width;
    double sum = x->place_bias ? x->place_bias->data[place * n_heads + h] : 0, size = fabs(sum);

    for (int64_t c = 0; c < width; ++c) {
        sum += x->place_bias ? (q[c] + u[c]) * k[c] + q[c] * p[c] : (q[c] + u[c]) * (k[c] + p[c]);
        size += (fabs(q[c]) + fabs(u[c])) * (fabs(k[c]) + fabs(p[c]));
    }
    *size_ret = size / sqrt((double)width);
    return sum / sqrt((double)width);
}

double ref_feedback_factor(const struct ref_feedback *x, int64_t count, int64_t row, int64_t j)
{
    const int64_t first = x->grows ? count * x->q->dim[0] * x->u->dim[0] : 0;
    return x->dropout.p > 0 ? ref_dropout_factor(&x->dropout, first + row, x->k->dim[0], j) : 1;
}

void ref_feedback_attention_fwd(const struct ref_feedback *x, int64_t count, struct host *y,
                                struct host *weights, struct host *bound)
{
    const int64_t n_heads = x->u->dim[0], width = x->u->dim[1], batch = x->q->dim[0];
    const double ulp = ldexp(1, -24);
    double *p = malloc((size_t)(count + 1) * sizeof *p);

    for (int64_t row = 0; row < batch * n_heads; ++row) {
        const int64_t b = row / n_heads, h = row % n_heads;
        double row_max = -INFINITY, sum = 0, largest = 0, size;
        for (int64_t j = 0; j < count; ++j) {
            p[j] = score(x, count, j, b, h, &size);
            row_max = fmax(row_max, p[j]);
            largest = fmax(largest, size);
        }
        for (int64_t j = 0; j < count; ++j)
            sum += p[j] = exp(p[j] - row_max);
        // A score rounds once for each of its terms and a few times more; an exponential is off by
        // as much relatively, as is their sum.
        const double off = 2 * (double)(width + 8) * ulp * largest + (double)(count + 30) * ulp;
        for (int64_t c = 0; c < width; ++c) {
            double mean = 0, spread = 0;
            for (int64_t j = 0; j < count; ++j) {
                const double v = x->v->data[((j * batch + b) * n_heads + h) * width + c];
                const double weight = p[j] / sum * ref_feedback_factor(x, count, row, j);
                mean += weight * v;
                spread += weight * fabs(v);
            }
            y->data[row * width + c] = mean;
            bound->data[row * width + c] = off * spread + 1e-37;
        }
        for (int64_t j = 0; weights && j < count; ++j)
            weights->data[j * batch * n_heads + row] = p[j] / sum;
    }
    free(p);
}

// -- the op

enum { Q, KEYS, VALUES, PLACES, U, PLACE_BIAS, POSITION, DCACHE, STEP };

static struct ref_feedback definition(const void *params, struct host *const *in)
{
    const struct feedback_attention_fwd_params *p = params;

    return (struct ref_feedback){
        .q = in[Q],
        .k = in[KEYS],
        .v = in[VALUES],
        .places = in[PLACES],
        .u = in[U],
        .place_bias = in[PLACE_BIAS],
        .dropout = {p->dropout.p, p->dropout.seed, (uint32_t)p->dropout.site,
                    in[STEP] ? (uint32_t)in[STEP]->data[0] : 0},
        .grows = in[POSITION],
    };
}

static int64_t count_of(struct host *const *in)
{
    const double n = (double)in[KEYS]->dim[0];

    return (int64_t)(in[POSITION] ? fmin(fmax(in[POSITION]->data[0], 0), n) : n);
}

static void attention(const void *params, struct host *const *in, struct host *const *out)
{
    const struct ref_feedback x = definition(params, in);
    ref_feedback_attention_fwd(&x, count_of(in), out[0], out[1], host_like(out[0]));
}

static void attention_bwd(const void *params, struct host *const *in, struct host *const *dy,
                          struct host *const *dx)
{
    const struct ref_feedback x = definition(params, in);
    const struct ref_feedback d = {.q = dx[Q],
                                   .k = dx[KEYS],
                                   .v = dx[VALUES],
                                   .places = dx[PLACES],
                                   .u = dx[U],
                                   .place_bias = dx[PLACE_BIAS]};
    ref_feedback_attention_bwd(&x, count_of(in), dy[0], dy[1], &d);
}

// The reference says how far y may be off; a weight as far as an exponential of scores below 30 in size.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    struct host *in[STEP + 1];

    for (int i = 0; i <= STEP; ++i)
        in[i] = (struct host *)spec_in(p, i);
    const struct ref_feedback x = definition(spec_params(p), in);
    if (k == 0)
        ref_feedback_attention_fwd(&x, count_of(in), host_like(want), NULL, allowed);
    for (int64_t i = 0; k == 1 && i < want->count; ++i)
        allowed->data[i] = 2e-5 * want->data[i] + 1e-9;
}

static void hide_future(struct host *const *in) // is not looked at
{
    const int64_t n = in[KEYS]->dim[0], each = n > 0 ? in[KEYS]->count / n : 0;

    for (int64_t i = count_of(in) * each; i < in[KEYS]->count; ++i)
        in[KEYS]->data[i] = in[VALUES]->data[i] = NAN;
}

static void scale_keys(struct host *const *in)
{
    host_scale(in[KEYS], 1e4);
}

static void scale_scores(struct host *const *in)
{
    scale_keys(in);
    host_scale(in[Q], 1e4);
}

// One memory outdoes all, at a block's edge; and -inf beside it weighs nothing.
static void set_peak(struct host *const *in)
{
    for (int64_t i = 0; i < in[PLACE_BIAS]->count; ++i)
        in[PLACE_BIAS]->data[i] = i == 64 ? 1e5 : i % 2 ? -INFINITY : -1e5;
}

#define PARAMS(...) SPEC_PARAMS(feedback_attention_fwd, __VA_ARGS__)
#define DROPOUT(p_) .dropout = {.p = p_, .seed = 0x123456789u, .site = 5}
#define BIASED      "key_pos_bias f32 P H;"
#define WEIGHTS     "weights f32 S B H"
#define GROWING     "position i32:-3:S+5 1;"
#define DROPPED     "step i32:0:99"
#define GROWS(name_, params_, with_, ...)                                                          \
    {                                                                                              \
        name_, params_, with_, .grad = "", .special = "", .prepare = hide_future, __VA_ARGS__      \
    }
static const char growing[] =
    "S=7 B=2 C=10 H=2 D=5 P=11; S=400 B=1 C=16 H=2 D=8 P=410; S=400 B=1 C=66 H=2 D=33 P=400",
                  stored[] = "S=9 B=3 C=10 H=2 D=5 P=11; S=130 B=2 C=48 H=3 D=16 P=140",
                  large[] = "S=70 B=1 C=8 H=2 D=4 P=70";

// Smoke: blocks of 64 and 256 memories are left, met and passed; heads narrower and wider than a vector.
OP_SPEC(
    feedback_attention_fwd,
    .in = "query f32 B C; key f32 S B H D; value f32 S B H D; key_pos_embeddings f32 P H D; "
          "query_pos_bias f32 H D; key_pos_bias? f32 P H; position? i32 1; dcache? f32; step? i32",
    .out = "y f32 B C; weights? f32 S B H", .ref = attention,
    .grad = "query key value key_pos_embeddings query_pos_bias key_pos_bias",
    .ref_bwd = attention_bwd, .allow = allow, .leeway = MEETS | SPREADS, .nonzero = "PDHC",
    .data = INT_ENDS,
    .smoke = "S=2 B=3 C=10 H=2 D=5 P=4; S=1 B=1 C=1 H=1 D=1 P=1; S=17 B=2 C=48 H=3 D=16 P=17; "
             "S=65 B=1 C=33 H=1 D=33 P=90; S=300 B=1 C=19 H=1 D=19 P=301",
    .gpu = "S=64 B=8 C=512 H=8 D=64 P=64",
    .full = "S=63 B=1 C=16 H=2 D=8 P=64; S=64 B=1 C=7 H=1 D=7 P=64; S=5 B=1 C=130 H=1 D=130 P=9",
    .special = "S=5 B=2 C=14 H=2 D=7 P=6",
    .cases = {{"joint", PARAMS(0)},
              {"split", PARAMS(0), BIASED},
              {"joint, weights", PARAMS(.want_weights = 1), WEIGHTS},
              {"split, weights", PARAMS(.want_weights = 1), BIASED WEIGHTS},
              {"joint, dropout", PARAMS(DROPOUT(.3)), DROPPED, .special = ""},
              {"split, dropout", PARAMS(DROPOUT(.3)), BIASED DROPPED, .special = ""},
              {"all dropped", PARAMS(DROPOUT(1)), DROPPED, .special = ""},
              GROWS("growing, joint", PARAMS(0), GROWING, .smoke = growing),
              GROWS("growing, split", PARAMS(0), BIASED GROWING, .smoke = growing),
              GROWS("growing, dropout", PARAMS(DROPOUT(.3)), BIASED GROWING DROPPED,
                    .smoke = growing),
              GROWS("F16 cache", PARAMS(0), "key f16 S B H D; value f16 S B H D;" GROWING,
                    .smoke = stored),
              GROWS("BF16 cache", PARAMS(0), "key bf16 S B H D; value bf16 S B H D;" BIASED GROWING,
                    .smoke = stored),
              GROWS("F16 cache, dropout", PARAMS(DROPOUT(.3)),
                    "key f16 S B H D; value f16 S B H D;" GROWING DROPPED, .smoke = stored),
              {"large keys", PARAMS(0), BIASED, .grad = "", .smoke = large, .special = "",
               .prepare = scale_keys},
              {"large scores", PARAMS(0), NULL, .grad = "", .smoke = large, .special = "",
               .prepare = scale_scores},
              {"peak", PARAMS(0), BIASED, .grad = "", .smoke = "S=70 B=1 C=1 H=1 D=1 P=70",
               .special = "", .prepare = set_peak}},
    .refusals = {
        {ATTNCL_ERR_SHAPE, "key has S = 2, key_pos_embeddings has P = 1", NULL,
         "key_pos_embeddings f32 1 H D"},
        {ATTNCL_ERR_DTYPE, "key is F16", NULL, "key f16 S B H D; value f16 S B H D"}, // no cache's
        {ATTNCL_ERR_DTYPE, "value is F32", NULL, "key f16 S B H D;" GROWING},
        {ATTNCL_ERR_ARGUMENT, "weights of a memory that grows", PARAMS(.want_weights = 1),
         GROWING}});

// With its linear maps, as users call it.
enum {
    QUERY,
    KEY,
    VALUE,
    QUERY_WEIGHT,
    POS_EMBEDDINGS,
    QUERY_BIAS,
    OUTPUT_WEIGHT,
    OUTPUT_BIAS,
    POS_BIAS,
    RESIDUAL,
    KEY_WEIGHT,
    VALUE_WEIGHT,
    VALUE_BIAS,
    DROPOUT_STEP
};

static struct host *mapped(const struct host *x, const struct host *weight, const struct host *bias)
{
    struct host *y = host_like(x);

    ref_dense(x, weight, bias, y);
    return y;
}

static void layer(const void *params, struct host *const *in, struct host *const *out)
{
    const struct dropout_fwd_params *p = params;
    const bool maps = in[KEY_WEIGHT];
    const struct ref_feedback x = {
        .q = mapped(in[QUERY], in[QUERY_WEIGHT], NULL),
        .k = maps ? mapped(in[KEY], in[KEY_WEIGHT], NULL) : in[KEY],
        .v = maps ? mapped(in[VALUE], in[VALUE_WEIGHT], in[VALUE_BIAS]) : in[VALUE],
        .places = in[POS_EMBEDDINGS],
        .u = in[QUERY_BIAS],
        .place_bias = in[POS_BIAS],
        .dropout = {p->p, p->seed, (uint32_t)p->site,
                    in[DROPOUT_STEP] ? (uint32_t)in[DROPOUT_STEP]->data[0] : 0}};
    struct host *mixed = host_like(out[0]);

    ref_feedback_attention_fwd(&x, in[KEY]->dim[0], mixed, NULL, host_like(mixed));
    ref_dense(mixed, in[OUTPUT_WEIGHT], in[OUTPUT_BIAS], out[0]);
    if (in[RESIDUAL])
        ref_add_fwd(out[0], in[RESIDUAL], out[0]);
}

static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    const attncl_shape heads = attncl_graph_shape(g, in[QUERY_BIAS]);
    const attncl_dropout_desc dropout = spec_dropout(params, in[DROPOUT_STEP]);
    attncl_feedback_params maps = ATTNCL_FEEDBACK_PARAMS_INIT;
    attncl_attention_inputs inputs = ATTNCL_ATTENTION_INPUTS_INIT;

    maps.query_weight = in[QUERY_WEIGHT];
    maps.key_weight = in[KEY_WEIGHT];
    maps.value_weight = in[VALUE_WEIGHT];
    maps.value_bias = in[VALUE_BIAS];
    maps.output_weight = in[OUTPUT_WEIGHT];
    maps.output_bias = in[OUTPUT_BIAS];
    maps.key_pos_embeddings = in[POS_EMBEDDINGS];
    maps.query_pos_bias = in[QUERY_BIAS];
    maps.key_pos_bias = in[POS_BIAS];
    maps.dropout = &dropout;
    inputs.query = in[QUERY];
    inputs.key = in[KEY];
    inputs.value = in[VALUE];
    inputs.residual = in[RESIDUAL];
    out[0] = attncl_feedback_attention(g, &maps, heads.dim[0], &inputs, NULL);
}

#define DROP(p_) SPEC_PARAMS(dropout_fwd, .p = p_, .seed = 0x123456789u, .site = 5)
// Scores are sums of some C terms of products; weights below 1; maps of C terms behind.
OP_SPEC(feedback_attention,
        .in = "query f32 B C; key f32 S B H D; value f32 S B H D; query_weight f32:-0.5:0.5 C C; "
              "key_pos_embeddings f32 P H D; query_pos_bias f32 H D; output_weight f32 C C; "
              "output_bias? f32 C; "
              "key_pos_bias? f32 P H; residual? f32 B C; key_weight? f32:-0.5:0.5 C C; "
              "value_weight? f32 C C; "
              "value_bias? f32 C; step? i32:0:99",
        .out = "y f32 B C", .ref = layer, .build = build,
        .grad = "query key value query_weight key_pos_embeddings query_pos_bias output_weight "
                "output_bias key_pos_bias "
                "residual key_weight value_weight value_bias",
        .rel = 40, .abs = 80, .grad_tolerance = 3e-5, .smoke = "B=2 C=8 S=5 H=2 D=4 P=7",
        .cases = {{"joint", DROP(0), "output_bias f32 C"},
                  {"split, maps", DROP(0),
                   "key f32 S B C; value f32 S B C; key_pos_bias f32 P H; residual f32 B C; "
                   "key_weight f32:-0.5:0.5 C C; "
                   "value_weight f32 C C; value_bias f32 C"},
                  {"dropout", DROP(0.3), "output_bias f32 C; step i32:0:99"}});
