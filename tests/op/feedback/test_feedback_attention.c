// SPDX-License-Identifier: MIT
// Feedback attention and its gradients against their references (tests/ref/feedback_attention.c, feedback_attention_bwd.c).

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

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
    const int64_t each = in[KEYS]->count / in[KEYS]->dim[0];

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
        {ATTNCL_ERR_SHAPE, "2 memories, key_pos_embeddings has positions for 1", NULL,
         "key_pos_embeddings f32 1 H D"},
        {ATTNCL_ERR_DTYPE, "key is F16", NULL, "key f16 S B H D; value f16 S B H D"}, // no cache's
        {ATTNCL_ERR_DTYPE, "value is F32", NULL, "key f16 S B H D;" GROWING},
        {ATTNCL_ERR_ARGUMENT, "weights of a memory that grows", PARAMS(.want_weights = 1),
         GROWING}});
