// SPDX-License-Identifier: MIT
// A step of multi-head attention against its reference (tests/ref/attention_step.c).

#include <math.h>

#include "op/attention/attention_split.h"
#include "ref/ref.h"
#include "support/op_spec.h"

enum { Q, K, V, POSITION, KEYS, VALUES };

// A position outside counts as the nearest.
static int64_t position_of(struct host *const *in)
{
    return (int64_t)fmin(fmax(in[POSITION]->data[0], 0), (double)in[KEYS]->dim[0] - 1);
}

static void step(const void *params, struct host *const *in, struct host *const *out)
{
    const struct attention_step_fwd_params *p = params;
    ref_attention_step_fwd(in[Q], in[K], in[V], position_of(in), p->n_heads, (double)p->scale,
                           in[KEYS], in[VALUES], out[0]);
}

// The caches are exact.  A score of D products rounds D + 2 times; weights feel it twice, and a sum of t terms besides.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct attention_step_fwd_params *params = spec_params(p);
    const double width = spec_extent(p, 'C') / params->n_heads;
    const double score = 2 * (double)params->scale * (width + 2) * width * 25;

    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = k == 0 ? (score + spec_extent(p, 'P') + 16) * 5 * 0x1p-24 : 0;
}

static void hide_future(struct host *const *in) // is not looked at
{
    for (int64_t i = (position_of(in) + 1) * in[Q]->count; i < in[KEYS]->count; ++i)
        in[KEYS]->data[i] = in[VALUES]->data[i] = NAN;
}

#define HEADS(n, scale_) SPEC_PARAMS(attention_step_fwd, (float)(scale_), n)
#define STORED(type)     "keys " type " P B C; values " type " P B C"
static const char wide[] = "P=140 B=2 C=66; P=66 B=1 C=128",
                  parts[] = "P=1024 B=1 C=24; P=1024 B=2 C=258";
// Parts of the keys that are full, cut short, and not there yet; more of them than work-groups are wanted for.
OP_SPEC(
    attention_step_fwd,
    .in =
        "q f32 B C; k f32 B C; v f32 B C; position i32:-2:P+2 1; keys f32 P B C; values f32 P B C",
    .out = "y f32 B C", .ref = step, .allow = allow, .nonzero = "P", .data = INT_ENDS,
    .smoke = "P=1 B=1 C=3; P=9 B=2 C=21", .special = "P=9 B=2 C=21",
    .cases = {{"three heads", HEADS(3, 0.35)},
              {"what is to come", HEADS(3, 0.35), .special = "", .prepare = hide_future},
              {"wide heads", HEADS(2, 0.125), .smoke = wide, .special = ""},
              {"parts", HEADS(2, 0.2), .smoke = parts, .special = "", .prepare = hide_future},
              {"one part", HEADS(2, 0.2), "position i32:299:300 1", .smoke = "P=300 B=32 C=24",
               .special = ""},
              {"F16", HEADS(3, 0.35), STORED("f16"), .special = ""},
              {"BF16", HEADS(3, 0.35), STORED("bf16"), .special = ""},
              {"F16 parts", HEADS(2, 0.2), STORED("f16"), .smoke = parts, .special = ""}},
    .refusals = {{ATTNCL_ERR_DTYPE, "the cache of keys is F32, that of values F16", NULL,
                  "values f16 P B C"},
                 {ATTNCL_ERR_SHAPE, "C = 3 cannot be cut into H = 4 heads", HEADS(4, 1)}});

// A score that exceeds all others by far, in any part, decides alone.
TEST(one_score_may_outweigh_the_rest)
{
    const struct attention_step_fwd_params params = {1, 1};
    for (int64_t at = 0; at < 200; at += 66) {
        struct host *q = host_new(ATTNCL_F32, DIMS(1, 4)), *got = host_like(q);
        struct host *keys = host_new(ATTNCL_F32, DIMS(200, 1, 4));
        struct host *values = host_random(1, DIMS(200, 1, 4));
        q->data[0] = 1000;
        for (int64_t j = 0; j < 200; ++j)
            keys->data[4 * j] = j == at ? 500 : -500;
        struct host *k = host_new(ATTNCL_F32, DIMS(1, 4)), *v = host_random(2, DIMS(1, 4));
        k->data[0] = at == 199 ? 500 : -500;
        ck_ok(run_op("attention_step_fwd", &params, HOSTS(q, k, v, host_index(199), keys, values),
                     HOSTS(got)));
        for (int c = 0; c < 4; ++c)
            ck_assert_double_eq(got->data[c], at == 199 ? v->data[c] : values->data[4 * at + c]);
    }
}

// On a GPU one sequence of 8 heads has work for 64 work-groups and more at 1024 positions; a device of
// more compute units gets two for each of them, and a large batch no more than one for a head.
TEST(keys_are_shared_out_to_a_whole_gpu)
{
    const struct device_caps small = {.variant = VARIANT_GPU, .compute_units = 2};
    const struct device_caps large = {.variant = VARIANT_GPU, .compute_units = 132};

    ck_assert_int_eq(attncl__step_parts(&small, 8, 1024), 8);
    ck_assert_int_eq(attncl__step_parts(&small, 8, 100), 4);
    ck_assert_int_eq(attncl__step_parts(&small, 64, 1024), 1);
    ck_assert_int_eq(attncl__step_parts(&small, 1, 1 << 20), 64);
    ck_assert_int_eq(attncl__step_parts(&large, 8, 1024), 32);
    ck_assert_int_eq(attncl__step_parts(&large, 8, 2048), 33);
    ck_assert_int_eq(attncl__step_parts(&large, 512, 2048), 1);
    ck_assert_int_eq(attncl__step_parts(&small, 0, 2048), 1);
}
