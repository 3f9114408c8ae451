// SPDX-License-Identifier: MIT
// Fused decode steps: found where they may be, left alone elsewhere, and compute the same.

#include <math.h>

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/ops.h"
#include "attncl/transformer.h"
#include "compile/lowered.h"
#include "device/context.h"
#include "exec/exec.h"
#include "layer/layer.h"
#include "op/fused/fused.h"
#include "support/compare.h"
#include "support/fused_nodes.h"
#include "support/test.h"

// Fused steps of one kind once the graph is lowered and fused.
static int count_steps(const attncl_graph *g, int kind)
{
    struct lowered p = {0};
    int count = 0;

    ck_ok(attncl__lower(g, NULL, &p));
    attncl__eliminate_dead(&p);
    ck_ok(attncl__fuse(&p));
    for (int n = 0; n < p.n_nodes; ++n) {
        const struct lowered_node *node = &p.nodes[n];
        count += !node->dead && node->cls == &attncl__op_fused_step_fwd &&
                 ((const struct fused_step_fwd_params *)node->params)->kind == kind;
    }
    attncl__lowered_free(&p);
    return count;
}

enum { ROWS = 2, MANY = 33, CHANNELS = 32, F = 48, WINDOW = 2, STEPS = 4, LAYERS = 2, HEADS = 2 };

struct stack {
    attncl_graph *g;
    attncl_value between[2 * LAYERS]; // results of the layer norms
    attncl_value y;
};

static attncl_value filled(attncl_graph *g, int rank, int64_t rows, int64_t columns, float phase)
{
    float data[F * CHANNELS];
    for (int i = 0; i < F * CHANNELS; ++i)
        data[i] = 0.3f * sinf(phase + (float)i * 1.7f);
    return attncl_graph_constant(g, ATTNCL_F32, rank, (int64_t[]){rows, columns}, data);
}

enum kind { AFT, MHA, N_KINDS, AFT_HEADS = N_KINDS, AFT_RMS, MHA_TURNED, MHA_NORMED, ALL_KINDS };

static attncl_value norm(attncl_graph *g, enum kind kind, attncl_value x, float phase)
{
    if (kind == AFT_RMS)
        return attncl_rms_norm(g, x, filled(g, 1, CHANNELS, 0, phase), 1e-5f);
    return attncl_layer_norm(g, x, filled(g, 1, CHANNELS, 0, phase),
                             filled(g, 1, CHANNELS, 0, phase + 1), 1e-5f);
}

static attncl_value mix(attncl_graph *g, enum kind kind, attncl_value z, attncl_value position,
                        float phase, attncl_value x)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    attncl_attention_desc attention = ATTNCL_ATTENTION_DESC_INIT;
    const struct cache_desc cache = {.limit = STEPS, .dtype = ATTNCL_F32, .desc = &attention};
    const bool heads = kind == AFT_HEADS; // one for each channel
    const attncl_aft_params p = {
        .struct_size = sizeof(attncl_aft_params),
        .query_weight = filled(g, 2, CHANNELS, CHANNELS, phase + 1),
        .query_bias = filled(g, 1, CHANNELS, 0, phase + 2),
        .key_weight = filled(g, 2, CHANNELS, CHANNELS, phase + 3),
        .value_weight = filled(g, 2, CHANNELS, CHANNELS, phase + 4),
        .value_bias = filled(g, 1, CHANNELS, 0, phase + 5),
        .pos_bias = heads ? filled(g, 2, CHANNELS, 2 * WINDOW - 1, phase + 6)
                          : filled(g, 2, STEPS, STEPS, phase + 6),
        .output_weight = filled(g, 2, CHANNELS, CHANNELS, phase + 7),
        .output_bias = filled(g, 1, CHANNELS, 0, phase + 8),
    };
    const attncl_mha_params mha = {
        .struct_size = sizeof(attncl_mha_params),
        .query_weight = p.query_weight,
        .query_bias = p.query_bias,
        .key_weight = p.key_weight,
        .value_weight = p.value_weight,
        .value_bias = p.value_bias,
        .output_weight = p.output_weight,
        .output_bias = p.output_bias,
        .key_norm =
            kind == MHA_NORMED ? filled(g, 1, CHANNELS / HEADS, 0, phase + 6) : ATTNCL_NONE_VALUE,
    };

    if (kind == MHA_TURNED)
        attention.rotary = attncl_reshape(g, filled(g, 2, STEPS, CHANNELS / HEADS, phase + 6), 3,
                                          (int64_t[]){STEPS, 2, CHANNELS / HEADS / 2});
    attention.slopes = filled(g, 1, HEADS, 0, phase + 9);
    desc.kind = heads ? ATTNCL_AFT_CONV : ATTNCL_AFT_LOCAL;
    desc.window = WINDOW;
    desc.causal = 1;
    return kind != MHA && kind < MHA_TURNED
               ? attncl_aft_step(g, &desc, &p, z, position, x)
               : attncl__multi_head_attention_decode(g, &mha, HEADS, &cache, z, position, x);
}

static attncl_value layer(attncl_graph *g, enum kind kind, attncl_value x, attncl_value position,
                          float phase, attncl_value between[2])
{
    const attncl_ffn_params ffn = {
        .struct_size = sizeof(attncl_ffn_params),
        .layer1_weight = filled(g, 2, F, CHANNELS, phase + 9),
        .layer1_bias = filled(g, 1, F, 0, phase + 10),
        .layer2_weight = filled(g, 2, CHANNELS, F, phase + 11),
        .layer2_bias = filled(g, 1, CHANNELS, 0, phase + 12),
    };

    between[0] = norm(g, kind, x, phase);
    x = mix(g, kind, between[0], position, phase, x);
    between[1] = norm(g, kind, x, phase + 20);
    return attncl_feed_forward(g, &ffn, ATTNCL_GELU, between[1], x);
}

static struct stack build(enum kind kind, int64_t rows)
{
    struct stack s = {.g = NULL};
    char scope[16];

    ck_ok(attncl_graph_create(test_context(), &s.g));
    const attncl_value position =
        attncl_graph_input(s.g, "position", ATTNCL_I32, 1, (int64_t[]){1});
    attncl_value x = attncl_graph_input(s.g, "x", ATTNCL_F32, 2, (int64_t[]){rows, CHANNELS});
    for (int i = 0; i < LAYERS; ++i) {
        snprintf(scope, sizeof scope, "%d", i);
        attncl_graph_push_scope(s.g, scope);
        x = layer(s.g, kind, x, position, 50.0f * (float)i, s.between + 2 * i);
        attncl_graph_pop_scope(s.g);
    }
    s.y = x;
    return s;
}

static bool device_fuses_steps(void)
{
    const struct device_caps *caps = &test_context()->caps;
    return caps->variant == VARIANT_CPU && !caps->max_loop_iterations;
}

static void expect_steps(const attncl_graph *g, int mixes, int ffn, int reductions)
{
    const bool does = device_fuses_steps();

    ck_assert_int_eq(count_steps(g, FUSED_AFT) + count_steps(g, FUSED_ATTENTION), does ? mixes : 0);
    ck_assert_int_eq(count_steps(g, FUSED_FFN), does ? ffn : 0);
    ck_assert_int_eq(count_fused(g, &attncl__op_split_k_reduce_fwd), does ? reductions : 0);
    ck_assert_int_eq(count_fused(g, &attncl__op_aft_step_fwd) +
                         count_fused(g, &attncl__op_attention_step_fwd),
                     does ? LAYERS - mixes : LAYERS);
}

// y of all steps.
static void run(struct stack *s, float y[STEPS][ROWS * CHANNELS])
{
    for (int32_t t = 0; t < STEPS; ++t) {
        float x[ROWS * CHANNELS];
        for (int i = 0; i < ROWS * CHANNELS; ++i)
            x[i] = cosf((float)(i * (t + 1)));
        ck_ok(attncl_graph_write(s->g, "x", x, sizeof x));
        ck_ok(attncl_graph_write(s->g, "position", &t, sizeof t));
        ck_ok(attncl_graph_run(s->g));
        ck_ok(attncl__graph_check_canaries(s->g));
        ck_ok(attncl_graph_read(s->g, "y", y[t], sizeof y[t]));
    }
}

static void run_fused(enum kind kind, float y[STEPS][ROWS * CHANNELS])
{
    struct stack s = build(kind, ROWS);

    attncl_graph_output(s.g, "y", s.y);
    ck_ok(attncl_graph_compile(s.g, NULL));
    expect_steps(s.g, LAYERS, LAYERS, 1);
    run(&s, y);
    attncl_graph_destroy(s.g);
}

static void near_each_other(float a[STEPS][ROWS * CHANNELS], float b[STEPS][ROWS * CHANNELS])
{
    for (int t = 0; t < STEPS; ++t)
        ck_floats(a[t], b[t], ROWS * CHANNELS, 1e-5, 1e-5, "step %d", t);
}

static void stays(enum kind kind, int64_t rows)
{
    struct stack s = build(kind, rows);

    attncl_graph_output(s.g, "y", s.y);
    ck_ok(attncl_graph_compile(s.g, NULL));
    expect_steps(s.g, 0, 0, 0);
    attncl_graph_destroy(s.g);
}

LOOP_TEST(two_launches_a_layer_compute_the_same, 0, N_KINDS)
{
    float fused[STEPS][ROWS * CHANNELS], apart[STEPS][ROWS * CHANNELS];
    run_fused((enum kind)_i, fused);

    struct stack s = build((enum kind)_i, ROWS);
    attncl_graph_output(s.g, "y", s.y);
    for (int i = 0; i < 2 * LAYERS; ++i)
        attncl_graph_output(s.g, (const char *[]){"a", "b", "c", "d"}[i], s.between[i]);
    ck_ok(attncl_graph_compile(s.g, NULL));
    expect_steps(s.g, 0, 0, 0);
    run(&s, apart);
    near_each_other(fused, apart);
    attncl_graph_destroy(s.g);
}

// With biases of heads, behind RMS norms, of heads that are turned or normalised.
LOOP_TEST(other_steps_stay, AFT_HEADS, ALL_KINDS)
{
    stays((enum kind)_i, ROWS);
}

// A layer whose norm is an output is not fused; a new chain starts after it.
LOOP_TEST(chains_end_at_outputs, 0, N_KINDS)
{
    float fused[STEPS][ROWS * CHANNELS], apart[STEPS][ROWS * CHANNELS];
    run_fused((enum kind)_i, apart);

    struct stack s = build((enum kind)_i, ROWS);
    attncl_graph_output(s.g, "y", s.y);
    attncl_graph_output(s.g, "z", s.between[1]); // the first network's input
    ck_ok(attncl_graph_compile(s.g, NULL));
    expect_steps(s.g, LAYERS, 1, 2);
    run(&s, fused);
    near_each_other(fused, apart);
    attncl_graph_destroy(s.g);
    stays((enum kind)_i, MANY);
}
