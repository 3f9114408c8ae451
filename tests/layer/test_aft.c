// SPDX-License-Identifier: MIT
// AFT layers against their reference, whole and position by position.

#include "attncl/aft.h"
#include "attncl/ops.h"
#include "ref/layers.h"
#include "support/layer_test.h"

enum { N = 9, T = 7, B = 2, C = 6, HEADS = 2 }; // n of pos_bias, T, B, C

// Three linear maps and one mixing of at most 9 terms: each rounds at 2^-24 of values of the size
// of 1 to 4.
static const double absolute = 4e-6, relative = 4e-6;

static attncl_aft_params feed(struct rig *b, const struct ref_aft *p)
{
    return (attncl_aft_params){
        .struct_size = sizeof(attncl_aft_params),
        .query_weight = rig_in(b, p->query_weight),
        .query_bias = rig_in(b, p->query_bias),
        .key_weight = rig_in(b, p->key_weight),
        .key_bias = rig_in(b, p->key_bias),
        .value_weight = rig_in(b, p->value_weight),
        .value_bias = rig_in(b, p->value_bias),
        .pos_bias = rig_in(b, p->pos_bias),
        .output_weight = rig_in(b, p->output_weight),
        .output_bias = rig_in(b, p->output_bias),
    };
}

static const struct kind {
    attncl_aft_kind kind;
    int64_t window;
    int effective; // window of the definition
} kinds[] = {
    {ATTNCL_AFT_LOCAL, 0, 0},    {ATTNCL_AFT_LOCAL, 1, 1}, {ATTNCL_AFT_LOCAL, 3, 3},
    {ATTNCL_AFT_LOCAL, 1000, N}, {ATTNCL_AFT_FULL, 0, N},  {ATTNCL_AFT_SIMPLE, 4, 0},
    {ATTNCL_AFT_CONV, 0, 0},
};

// AFT-conv: two heads, biases [2, 5].
static struct ref_aft random_params(const struct kind *kind)
{
    const bool conv = kind->kind == ATTNCL_AFT_CONV;
    const int64_t keys = conv ? HEADS : C;
    return (struct ref_aft){
        .query_weight = host_random(1, DIMS(C, C)),
        .query_bias = host_random(2, DIMS(C)),
        .key_weight = host_random(3, DIMS(keys, C)),
        .key_bias = host_random(4, DIMS(keys)),
        .value_weight = host_random(5, DIMS(C, C)),
        .value_bias = NULL,
        .pos_bias = conv ? host_random(7, DIMS(HEADS, 5)) : host_random(7, DIMS(N, N)),
        .output_weight = host_random(8, DIMS(C, C)),
        .output_bias = host_random(9, DIMS(C)),
    };
}

// With the residual; AFT-conv of a key and value of their own.
static void ref_layer(const struct kind *kind, const struct ref_aft *p, int causal,
                      const struct host *x, const struct host *key, const struct host *value,
                      const struct host *mask, struct host *y)
{
    struct host *q = host_like(x), *k = host_new(ATTNCL_F32, DIMS(T, B, HEADS)), *v = host_like(x);
    struct host *mixed = host_like(x), *scale = host_like(x);
    if (kind->kind != ATTNCL_AFT_CONV) {
        ref_aft_layer(p, kind->effective, causal, x, mask, y);
        ref_add_fwd(y, x, y);
        return;
    }
    ref_dense(x, p->query_weight, p->query_bias, q);
    ref_dense(key, p->key_weight, p->key_bias, k);
    ref_dense(value, p->value_weight, p->value_bias, v);
    ref_aft_conv_fwd(q, k, v, p->pos_bias, mask, causal, mixed, scale);
    ref_dense(mixed, p->output_weight, p->output_bias, y);
    ref_add_fwd(y, x, y);
}

static attncl_aft_desc describe(const struct kind *kind, int causal)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    desc.kind = kind->kind;
    desc.window = kind->window;
    desc.causal = causal;
    return desc;
}

enum visibility { ALL, CAUSAL, MASKED, N_VISIBILITIES };

LOOP_TEST(layers_match_the_reference, 0, (int)COUNT_OF(kinds) * N_VISIBILITIES)
{
    const struct kind *kind = &kinds[_i / N_VISIBILITIES];
    const enum visibility visible = (enum visibility)(_i % N_VISIBILITIES);
    const attncl_aft_desc desc = describe(kind, visible == CAUSAL);
    const struct ref_aft ref = random_params(kind);
    struct host *x = host_random(20, DIMS(T, B, C)), *y = host_like(x), *want = host_like(x);
    const bool apart = kind->kind == ATTNCL_AFT_CONV;
    struct host *key = apart ? host_random(22, DIMS(T, B, C)) : x;
    struct host *value = apart ? host_random(23, DIMS(T, B, C)) : x;
    struct host *mask = visible == MASKED ? host_mask(21, 0.5, DIMS(T, T, B)) : NULL;
    struct rig b;

    rig_open(&b);
    const attncl_aft_params params = feed(&b, &ref);
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    in.query = in.key = in.value = in.residual = rig_in(&b, x);
    if (apart) {
        in.key = rig_in(&b, key);
        in.value = rig_in(&b, value);
    }
    in.mask = rig_in(&b, mask);
    rig_out(&b, attncl_aft(b.g, &desc, &params, &in), y);
    rig_run_once(&b);

    ref_layer(kind, &ref, visible == CAUSAL, x, key, value, mask, want);
    ck_near(y, want, relative, absolute);
}

TABLE_TEST(steps_are_the_causal_layer, kinds)
{
    const struct kind *kind = &kinds[_i];
    const attncl_aft_desc desc = describe(kind, 1);
    const struct ref_aft ref = random_params(kind);
    struct host *x = host_random(40, DIMS(T, B, C)), *want = host_like(x);
    struct host *row = host_new(ATTNCL_F32, DIMS(B, C)), *position = host_new(ATTNCL_I32, DIMS(1));
    struct rig b;

    ref_layer(kind, &ref, 1, x, x, x, NULL, want);
    rig_open(&b);
    const attncl_aft_params params = feed(&b, &ref);
    const attncl_value in = rig_in(&b, row), at = rig_in(&b, position);
    rig_out(&b, attncl_aft_step(b.g, &desc, &params, in, at, in), host_like(row));
    ck_rig_steps(&b, x, want, relative, absolute);
}

LOOP_TEST(bad_layers_are_refused, 0, 7)
{
    static const struct {
        attncl_status status;
        const char *words;
    } expected[] = {
        {ATTNCL_ERR_ARGUMENT, "causal and a mask at once"},
        {ATTNCL_ERR_ARGUMENT, "window is -1, must be at least 0"},
        {ATTNCL_ERR_ARGUMENT, "aft kind 7 is unknown"},
        {ATTNCL_ERR_ARGUMENT, "attncl_aft_desc has struct_size 0"},
        {ATTNCL_ERR_ARGUMENT, "pos_bias is missing"},
        {ATTNCL_ERR_SHAPE, "pos_bias has shape [9, 8], expected [n, n]"},
        {ATTNCL_ERR_SHAPE, "T = 7"},
    };
    attncl_aft_desc desc = describe(&kinds[2], _i == 0);
    struct host *x = host_random(50, DIMS(T, B, C)), *y = host_like(x);
    struct host *table = _i == 5 ? host_random(51, DIMS(9, 8)) : host_random(51, DIMS(6, 6));
    struct host *mask = _i == 0 ? host_mask(52, 1, DIMS(1, T, 1)) : NULL;
    struct rig b;
    const attncl_aft_desc unset = ATTNCL_AFT_DESC_INIT;
    desc.window = _i == 1 ? unset.window : desc.window;
    desc.kind = _i == 2 ? (attncl_aft_kind)7 : desc.kind;
    desc.struct_size = _i == 3 ? 0 : desc.struct_size;

    rig_open(&b);
    const attncl_value in = rig_in(&b, x), seen = rig_in(&b, mask);
    const attncl_value bias = rig_in(&b, _i == 4 ? NULL : table);
    rig_out(&b, attncl_aft_mix(b.g, &desc, in, in, in, bias, seen), y);
    ck_rig_fails(&b, expected[_i].status, expected[_i].words);
}
