// SPDX-License-Identifier: MIT
// Multi-head attention and its parts against their reference.

#include "attncl/attention.h"
#include "attncl/ops.h"
#include "ref/layers.h"
#include "support/layer_test.h"

enum { T = 7, S = 10, B = 2, C = 12, H = 3, QUERY = 5, KEY = 4, VALUE = 6, OUT = 8 };

// Three linear maps of at most 12 terms around an average: each rounds at 2^-24 of values up to
// about 10, and the softmax turns an error of its scores into as large a relative one.
static const double absolute = 3e-5, relative = 1e-5;

static struct ref_mha random_params(int64_t query, int64_t key, int64_t value, bool bias)
{
    return (struct ref_mha){
        .query_weight = host_random(1, DIMS(C, query)),
        .query_bias = bias ? host_random(2, DIMS(C)) : NULL,
        .key_weight = host_random(3, DIMS(C, key)),
        .key_bias = bias ? host_random(4, DIMS(C)) : NULL,
        .value_weight = host_random(5, DIMS(C, value)),
        .value_bias = host_random(6, DIMS(C)),
        .output_weight = host_random(7, DIMS(OUT, C)),
        .output_bias = bias ? host_random(8, DIMS(OUT)) : NULL,
    };
}

static attncl_mha_params feed(struct rig *b, const struct ref_mha *p)
{
    return (attncl_mha_params){
        .struct_size = sizeof(attncl_mha_params),
        .query_weight = rig_in(b, p->query_weight),
        .query_bias = rig_in(b, p->query_bias),
        .key_weight = rig_in(b, p->key_weight),
        .key_bias = rig_in(b, p->key_bias),
        .value_weight = rig_in(b, p->value_weight),
        .value_bias = rig_in(b, p->value_bias),
        .output_weight = rig_in(b, p->output_weight),
        .output_bias = rig_in(b, p->output_bias),
    };
}

// Runs the layer with and without its weights as an output.
static void check(const struct ref_mha *ref, struct ref_attention a, bool time_first,
                  struct host *query, struct host *key, struct host *value)
{
    const int64_t n_queries = query->dim[!time_first], n_keys = key->dim[!time_first];
    struct host *y = host_new(ATTNCL_F32, DIMS(query->dim[0], query->dim[1], OUT));
    struct host *p = host_new(ATTNCL_F32, DIMS(B, H, n_queries, n_keys));
    struct host *want = host_like(y), *want_p = host_like(p);
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;

    desc.causal = a.causal;
    desc.layout = time_first ? ATTNCL_LAYOUT_TIME_FIRST : ATTNCL_LAYOUT_BATCH_FIRST;
    ref_multi_head_attention(ref, a, H, time_first, query, key, value, want, want_p);
    for (int with_weights = 0; with_weights < 2; ++with_weights) {
        attncl_value weights;
        struct rig b;
        rig_open(&b);
        const attncl_mha_params params = feed(&b, ref);
        attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
        in.query = rig_in(&b, query);
        in.key = key == query ? in.query : rig_in(&b, key);
        in.value = value == key ? in.key : rig_in(&b, value);
        in.mask = rig_in(&b, (struct host *)a.mask);
        in.valid_lens = rig_in(&b, (struct host *)a.valid_lens);
        rig_out(&b,
                attncl_multi_head_attention(b.g, &desc, &params, H, &in,
                                            with_weights ? &weights : NULL),
                y);
        if (with_weights)
            rig_out(&b, weights, p);
        rig_run_once(&b);
        ck_near(y, want, relative, absolute);
        if (with_weights)
            ck_near(p, want_p, relative, absolute);
    }
}

TEST(self_attention)
{
    const struct ref_mha ref = random_params(QUERY, QUERY, QUERY, true);
    struct host *x = host_random(20, DIMS(T, B, QUERY));
    struct host *mask = host_mask(21, 0.5, DIMS(T, T, B));

    for (int j = 0; j < T * B; ++j)
        mask->data[2 * T * B + j] = 0; // a query that sees nothing: the output's bias
    check(&ref, (struct ref_attention){0}, true, x, x, x);
    check(&ref, (struct ref_attention){.causal = 1}, true, x, x, x);
    check(&ref, (struct ref_attention){.mask = mask}, true, x, x, x);
}

TEST(cross_attention)
{
    const struct ref_mha ref = random_params(QUERY, KEY, VALUE, false);
    struct host *query = host_random(30, DIMS(B, T, QUERY)),
                *key = host_random(31, DIMS(B, S, KEY));
    struct host *value = host_random(32, DIMS(B, S, VALUE));
    struct host *lens = host_with(ATTNCL_I32, (const double[]){0, 4}, DIMS(B));

    check(&ref, (struct ref_attention){0}, false, query, key, value);
    check(&ref, (struct ref_attention){.valid_lens = lens}, false, query, key, value);
}

// Values whose last axis has gaps are copied; a head of another order is merged by a copy.
TEST(any_view)
{
    const struct ref_attention a = {.scale = 0.25, .window = 3};
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    struct host *x = host_random(40, DIMS(T, 5, B, H)),
                *y = host_new(ATTNCL_F32, DIMS(B, T, H * 5));
    struct host *heads = host_new(ATTNCL_F32, DIMS(B, H, T, 5)), *want = host_like(y);
    struct host *p = host_new(ATTNCL_F32, DIMS(B, H, T, T));
    const int order[] = {2, 3, 0, 1};
    struct rig b;

    for (int64_t i = 0; i < x->count; ++i) { // [T, D, B, H] to [B, H, T, D]
        const int64_t h = i % H, n = i / H % B, d = i / (H * B) % 5, t = i / (H * B * 5);
        heads->data[((n * H + h) * T + t) * 5 + d] = x->data[i];
    }
    ref_attention_weights(&a, heads, heads, p);
    ref_attention_mix(p, heads, false, want);
    rig_open(&b);
    desc.scale = 0.25f;
    desc.window = 3;
    const attncl_value v = attncl_permute(b.g, rig_in(&b, x), order);
    const attncl_attention_inputs in = {.struct_size = sizeof in, .query = v, .key = v, .value = v};
    const attncl_value z = attncl_attention(b.g, &desc, &in, NULL);
    rig_out(&b, attncl_merge_heads(b.g, z, ATTNCL_LAYOUT_BATCH_FIRST), y);
    rig_run_once(&b);
    ck_near(y, want, relative, absolute);
}

TEST(steps_are_causal_attention)
{
    const struct ref_mha ref = random_params(QUERY, QUERY, QUERY, true);
    struct host *x = host_random(60, DIMS(T, B, QUERY)),
                *want = host_new(ATTNCL_F32, DIMS(T, B, OUT));
    struct host *p = host_new(ATTNCL_F32, DIMS(B, H, T, T)),
                *row = host_new(ATTNCL_F32, DIMS(B, QUERY));
    struct host *y = host_new(ATTNCL_F32, DIMS(B, OUT)), *position = host_new(ATTNCL_I32, DIMS(1));
    const struct ref_attention causal = {.causal = 1};
    struct rig b;

    ref_multi_head_attention(&ref, causal, H, true, x, x, x, want, p);
    rig_open(&b);
    const attncl_mha_params params = feed(&b, &ref);
    const attncl_value in = rig_in(&b, row), at = rig_in(&b, position), none = ATTNCL_NONE_VALUE;
    rig_out(&b, attncl_multi_head_attention_step(b.g, &params, H, T, in, at, none), y);
    ck_rig_steps(&b, x, want, relative, absolute);
}

TEST(refusals)
{
    struct host *x = host_random(50, DIMS(T, B, C));
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    struct rig b;

    rig_open(&b);
    attncl_split_heads(b.g, rig_in(&b, x), 5, ATTNCL_LAYOUT_TIME_FIRST);
    ck_rig_fails(&b, ATTNCL_ERR_SHAPE, "C = 12 cannot be cut into H = 5 heads");

    rig_open(&b);
    desc.struct_size = 1;
    in.query = in.key = in.value =
        attncl_split_heads(b.g, rig_in(&b, x), 4, ATTNCL_LAYOUT_TIME_FIRST);
    attncl_attention(b.g, &desc, &in, NULL);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "struct_size 1");
}
