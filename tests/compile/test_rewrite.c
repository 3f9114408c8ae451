// SPDX-License-Identifier: MIT
// A step of AFT layers, or of attention layers, becomes two launches a layer where no consumer
// looks between, and computes the same.

#include <math.h>
#include <string.h>

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/ops.h"
#include "attncl/transformer.h"
#include "graph/internal.h"
#include "support/test.h"

enum { ROWS = 2, C = 32, F = 48, WINDOW = 2, STEPS = 4, LAYERS = 2, MANY = 17, HEADS = 2 };

struct stack {
    attncl_graph *g;
    attncl_value between[2 * LAYERS]; // results of the layer norms
    attncl_value y;
};

static attncl_value filled(attncl_graph *g, int rank, int64_t rows, int64_t columns, float phase)
{
    float data[F * C];
    for (int i = 0; i < F * C; ++i)
        data[i] = 0.3f * sinf(phase + (float)i * 1.7f);
    return attncl_graph_constant(g, ATTNCL_F32, rank, (int64_t[]){rows, columns}, data);
}

static attncl_value norm(attncl_graph *g, attncl_value x, float phase)
{
    return attncl_layer_norm(g, x, filled(g, 1, C, 0, phase), filled(g, 1, C, 0, phase + 1), 1e-5f);
}

enum kind { AFT, MHA, N_KINDS };

static attncl_value mix(attncl_graph *g, enum kind kind, attncl_value z, attncl_value position,
                        float phase, attncl_value x)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    const attncl_aft_params p = {
        .struct_size = sizeof(attncl_aft_params),
        .query_weight = filled(g, 2, C, C, phase + 1),
        .query_bias = filled(g, 1, C, 0, phase + 2),
        .key_weight = filled(g, 2, C, C, phase + 3),
        .value_weight = filled(g, 2, C, C, phase + 4),
        .value_bias = filled(g, 1, C, 0, phase + 5),
        .pos_bias = filled(g, 2, STEPS, STEPS, phase + 6),
        .output_weight = filled(g, 2, C, C, phase + 7),
        .output_bias = filled(g, 1, C, 0, phase + 8),
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
    };

    desc.window = WINDOW;
    desc.causal = 1;
    return kind == AFT ? attncl_aft_step(g, &desc, &p, z, position, x)
                       : attncl_multi_head_attention_step(g, &mha, HEADS, STEPS, z, position, x);
}

static attncl_value layer(attncl_graph *g, enum kind kind, attncl_value x, attncl_value position,
                          float phase, attncl_value between[2])
{
    const attncl_ffn_params ffn = {
        .struct_size = sizeof(attncl_ffn_params),
        .layer1_weight = filled(g, 2, F, C, phase + 9),
        .layer1_bias = filled(g, 1, F, 0, phase + 10),
        .layer2_weight = filled(g, 2, C, F, phase + 11),
        .layer2_bias = filled(g, 1, C, 0, phase + 12),
    };

    between[0] = norm(g, x, phase);
    x = mix(g, kind, between[0], position, phase, x);
    between[1] = norm(g, x, phase + 20);
    return attncl_feed_forward(g, &ffn, ATTNCL_GELU, between[1], x);
}

static struct stack build(enum kind kind, int64_t rows)
{
    struct stack s = {.g = NULL};
    char scope[8];

    ck_ok(attncl_graph_create(test_context(), &s.g));
    const attncl_value position =
        attncl_graph_input(s.g, "position", ATTNCL_I32, 1, (int64_t[]){1});
    attncl_value x = attncl_graph_input(s.g, "x", ATTNCL_F32, 2, (int64_t[]){rows, C});
    for (int i = 0; i < LAYERS; ++i) {
        snprintf(scope, sizeof scope, "%d", i);
        attncl_graph_push_scope(s.g, scope);
        x = layer(s.g, kind, x, position, 50.0f * (float)i, s.between + 2 * i);
        attncl_graph_pop_scope(s.g);
    }
    s.y = x;
    return s;
}

static bool device_rewrites(void)
{
    const struct device_caps *caps = &test_context()->caps;
    return caps->variant == VARIANT_CPU && !caps->max_loop_iterations;
}

static int count_live(const attncl_graph *g, const struct op_class *cls)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; ++i)
        n += g->nodes[i].live && g->nodes[i].cls == cls;
    return n;
}

static void expect(const attncl_graph *g, int mixes, int ffn, int reductions)
{
    const bool does = device_rewrites();

    ck_assert_int_eq(count_live(g, &attncl__op_fused_aft_step_fwd) +
                         count_live(g, &attncl__op_fused_attention_step_fwd),
                     does ? mixes : 0);
    ck_assert_int_eq(count_live(g, &attncl__op_fused_ffn_fwd), does ? ffn : 0);
    ck_assert_int_eq(count_live(g, &attncl__op_split_k_reduce_fwd), does ? reductions : 0);
    ck_assert_int_eq(count_live(g, &attncl__op_aft_step_fwd) +
                         count_live(g, &attncl__op_attention_step_fwd),
                     does ? LAYERS - mixes : LAYERS);
}

// y of all steps.
static void run(struct stack *s, float y[STEPS][ROWS * C])
{
    for (int32_t t = 0; t < STEPS; ++t) {
        float x[ROWS * C];
        for (int i = 0; i < ROWS * C; ++i)
            x[i] = cosf((float)(i * (t + 1)));
        ck_ok(attncl_graph_write(s->g, "x", x, sizeof x));
        ck_ok(attncl_graph_write(s->g, "position", &t, sizeof t));
        ck_ok(attncl_graph_run(s->g));
        ck_ok(attncl__graph_check_canaries(s->g));
        ck_ok(attncl_graph_read(s->g, "y", y[t], sizeof y[t]));
    }
}

static void run_rewritten(enum kind kind, float y[STEPS][ROWS * C])
{
    struct stack s = build(kind, ROWS);

    attncl_graph_output(s.g, "y", s.y);
    ck_ok(attncl_graph_compile(s.g, NULL));
    expect(s.g, LAYERS, LAYERS, 1);
    run(&s, y);
    attncl_graph_destroy(s.g);
}

static void near_each_other(float a[STEPS][ROWS * C], float b[STEPS][ROWS * C])
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < ROWS * C; ++i)
            ck_assert_msg(fabsf(a[t][i] - b[t][i]) <= 1e-5f * (1 + fabsf(b[t][i])),
                          "step %d, y[%d] is %g, apart %g", t, i, (double)a[t][i], (double)b[t][i]);
}

LOOP_TEST(two_launches_a_layer_compute_the_same, 0, N_KINDS)
{
    float rewritten[STEPS][ROWS * C], apart[STEPS][ROWS * C];
    run_rewritten((enum kind)_i, rewritten);

    struct stack s = build((enum kind)_i, ROWS);
    attncl_graph_output(s.g, "y", s.y);
    for (int i = 0; i < 2 * LAYERS; ++i)
        attncl_graph_output(s.g, (const char *[]){"a", "b", "c", "d"}[i], s.between[i]);
    ck_ok(attncl_graph_compile(s.g, NULL));
    expect(s.g, 0, 0, 0);
    run(&s, apart);
    near_each_other(rewritten, apart);
    attncl_graph_destroy(s.g);
}

// A plan is taken back when nodes are added, and made again; and when the graph goes unused.
LOOP_TEST(plans_are_made_anew, 0, N_KINDS)
{
    float once[STEPS][ROWS * C], again[STEPS][ROWS * C];
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    run_rewritten((enum kind)_i, once);

    struct stack s = build((enum kind)_i, ROWS);
    attncl_graph_output(s.g, "y", s.y);
    ck_ok(attncl_graph_memory(s.g, &report));
    expect(s.g, LAYERS, LAYERS, 1);
    attncl_graph_output(s.g, "twice", attncl_add(s.g, s.y, s.y));
    ck_assert_int_eq(count_live(s.g, &attncl__op_split_k_reduce_fwd), 0);
    ck_ok(attncl_graph_compile(s.g, NULL));
    expect(s.g, LAYERS, LAYERS, 1);
    run(&s, again);
    ck_assert_int_eq(memcmp(once, again, sizeof once), 0);
    attncl_graph_destroy(s.g);

    s = build((enum kind)_i, ROWS);
    attncl_graph_output(s.g, "y", s.y);
    ck_ok(attncl_graph_memory(s.g, &report));
    attncl_graph_destroy(s.g);
}

// A layer whose norm is wanted stays; the next one begins anew.
LOOP_TEST(chains_end_where_somebody_looks, 0, N_KINDS)
{
    float rewritten[STEPS][ROWS * C], apart[STEPS][ROWS * C];
    run_rewritten((enum kind)_i, apart);

    struct stack s = build((enum kind)_i, ROWS);
    attncl_graph_output(s.g, "y", s.y);
    attncl_graph_output(s.g, "z", s.between[1]); // the first network's input
    ck_ok(attncl_graph_compile(s.g, NULL));
    expect(s.g, LAYERS, 1, 2);
    run(&s, rewritten);
    near_each_other(rewritten, apart);
    attncl_graph_destroy(s.g);

    s = build((enum kind)_i, MANY);
    attncl_graph_output(s.g, "y", s.y);
    ck_ok(attncl_graph_compile(s.g, NULL));
    expect(s.g, 0, 0, 0);
    attncl_graph_destroy(s.g);
}
