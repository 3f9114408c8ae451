// SPDX-License-Identifier: MIT
// How work and memory grow with the sequence, as the papers claim: by the operations of all nodes, forward and backward, and
// by the memory report.  AFT-simple, -local, -conv: linear (arXiv 2105.14103, table 1); AFT-full, attention: quadratic work,
// and memory only where the weights are asked for.  The gradient of a table [n, n] of biases is as large as the table.

#include <math.h>

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "graph/nodes.h"
#include "support/layer_test.h"

enum { T = 8192, C = 16, H = 4 }; // scratch of a bounded size counts little at this length

enum mix { AFT_SIMPLE, AFT_LOCAL, AFT_CONV, AFT_FULL, ATTENTION, ATTENTION_WEIGHTS, N_MIXES };
static const struct {
    int work, memory,
        training; // powers of T: operations; memory of a forward pass, and with gradients
} claims[N_MIXES] = {{1, 1, 1}, {1, 1, 2}, {1, 1, 1}, {2, 1, 2}, {2, 1, 1}, {2, 2, 2}};

static attncl_value input(attncl_graph *g, const char *name, int rank, const int64_t *dim)
{
    return attncl_graph_input(g, name, ATTNCL_F32, rank, dim);
}

static attncl_value aft(attncl_graph *g, enum mix mix, int64_t n, const attncl_value *qkv)
{
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    const int64_t table[2] = {mix == AFT_CONV ? H : n, mix == AFT_CONV ? 31 : n};
    desc.kind = mix == AFT_SIMPLE  ? ATTNCL_AFT_SIMPLE
                : mix == AFT_CONV  ? ATTNCL_AFT_CONV
                : mix == AFT_LOCAL ? ATTNCL_AFT_LOCAL
                                   : ATTNCL_AFT_FULL;
    desc.window = 32;
    return attncl_aft_mix(g, &desc, qkv[0], qkv[1], qkv[2],
                          mix == AFT_SIMPLE ? ATTNCL_NONE_VALUE : input(g, "bias", 2, table),
                          ATTNCL_NONE_VALUE);
}

static attncl_value attention(attncl_graph *g, enum mix mix, const attncl_value *qkv)
{
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_value weights;
    in.query = attncl_split_heads(g, qkv[0], H, ATTNCL_LAYOUT_TIME_FIRST);
    in.key = attncl_split_heads(g, qkv[1], H, ATTNCL_LAYOUT_TIME_FIRST);
    in.value = attncl_split_heads(g, qkv[2], H, ATTNCL_LAYOUT_TIME_FIRST);
    const attncl_value y =
        attncl_attention(g, NULL, &in, mix == ATTENTION_WEIGHTS ? &weights : NULL);
    if (mix == ATTENTION_WEIGHTS)
        attncl_graph_output(g, "weights", attncl_add(g, weights, weights));
    return attncl_merge_heads(g, y, ATTNCL_LAYOUT_TIME_FIRST);
}

struct cost {
    double work, memory, training;
};

// NAN, and the test counts as skipped, where the device ends loops and the graph is refused for that.
static double arena_of(attncl_graph *g)
{
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    const attncl_status status = attncl_graph_memory(g, &report);

    if (status != ATTNCL_OK && test_context()->caps.max_loop_iterations) {
        ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "loop iterations, the device stops at");
        test_skip("%s", attncl_last_error());
        return NAN;
    }
    ck_ok(status);
    return (double)report.arena_bytes;
}

// Of a layer and the gradients of query, key and value.
static struct cost cost_of(enum mix mix, int64_t n)
{
    const int64_t rows[3] = {n, 1, C}, few[3] = {n, 1, H};
    attncl_value dx[3];
    struct cost cost = {0, 0, 0};
    struct rig b;

    rig_open(&b);
    const attncl_value x[3] = {input(b.g, "q", 3, rows),
                               input(b.g, "k", 3, mix == AFT_CONV ? few : rows),
                               input(b.g, "v", 3, rows)};
    const attncl_value y = mix < ATTENTION ? aft(b.g, mix, n, x) : attention(b.g, mix, x);
    const attncl_value loss = attncl_mul(b.g, y, y), dy = input(b.g, "dy", 3, rows);
    attncl_graph_output(b.g, "loss", loss);
    cost.memory = arena_of(b.g);
    attncl_graph_gradient(b.g, 1, &loss, &dy, 3, x, dx);
    for (int i = 0; i < 3; ++i)
        attncl_graph_output(b.g, (const char *[]){"dq", "dk", "dv"}[i], dx[i]);
    cost.training = arena_of(b.g);
    for (int i = 0; i < b.g->n_nodes; ++i) {
        const struct node *node = &b.g->nodes[i];
        struct tensor_desc in[16], out[16];
        struct op_sig sig = {.cls = node->cls, .params = node->params, .in = in, .out = out};
        double flop = 0, bytes = 0;
        for (int k = 0; k < node->cls->n_in; ++k)
            in[k] = b.g->values[node->in[k]].desc;
        for (int k = 0; k < node->cls->n_out; ++k)
            out[k] = b.g->values[node->out[k]].desc;
        attncl__op_cost(node->cls, &sig, &flop, &bytes);
        cost.work += flop;
    }
    rig_close(&b);
    return cost;
}

static void check_growth(const char *what, enum mix mix, double ratio, int power)
{
    const double expected = power == 1 ? 2 : 4;
    ck_assert_msg(ratio < 1.05 * expected && (power == 1 || ratio > 0.95 * expected),
                  "mix %d: twice the length takes %.2f times the %s, expected %g", (int)mix, ratio,
                  what, expected);
}

LOOP_TEST(work_and_memory_grow_as_claimed, 0, N_MIXES)
{
    const enum mix mix = (enum mix)_i;
    const struct cost once = cost_of(mix, T);
    if (isnan(once.memory + once.training))
        return;
    const struct cost twice = cost_of(mix, 2 * T);

    check_growth("operations", mix, twice.work / once.work, claims[mix].work);
    check_growth("memory", mix, twice.memory / once.memory, claims[mix].memory);
    check_growth("memory for gradients", mix, twice.training / once.training, claims[mix].training);
}

// The state of a step: sums in AFT-simple, a ring of the window in AFT-local, all keys and values in attention.
static size_t state_of(enum mix mix, int64_t limit)
{
    const int64_t row[2] = {1, C}, square[2] = {C, C}, table[2] = {limit, limit}, one = 1;
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    struct rig b;

    rig_open(&b);
    const attncl_value x = input(b.g, "x", 2, row), w = input(b.g, "w", 2, square);
    const attncl_value position = attncl_graph_input(b.g, "position", ATTNCL_I32, 1, &one);
    attncl_value y;
    if (mix == ATTENTION) {
        attncl_mha_params p = ATTNCL_MHA_PARAMS_INIT;
        p.query_weight = p.key_weight = p.value_weight = p.output_weight = w;
        y = attncl_multi_head_attention_step(b.g, &p, H, limit, x, position, ATTNCL_NONE_VALUE);
    } else {
        attncl_aft_params p = ATTNCL_AFT_PARAMS_INIT;
        attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
        p.query_weight = p.key_weight = p.value_weight = p.output_weight = w;
        desc.kind = mix == AFT_SIMPLE ? ATTNCL_AFT_SIMPLE : ATTNCL_AFT_LOCAL;
        desc.window = 32;
        desc.causal = 1;
        if (mix != AFT_SIMPLE)
            p.pos_bias = input(b.g, "bias", 2, table);
        y = attncl_aft_step(b.g, &desc, &p, x, position, ATTNCL_NONE_VALUE);
    }
    attncl_graph_output(b.g, "y", y);
    ck_ok(attncl_graph_memory(b.g, &report));
    rig_close(&b);
    return report.state_bytes;
}

TEST(a_steps_state_is_constant_or_linear)
{
    const enum mix constant[] = {AFT_SIMPLE, AFT_LOCAL};

    for (int i = 0; i < 2; ++i)
        ck_assert_uint_eq(state_of(constant[i], 512), state_of(constant[i], 4096));
    ck_assert_uint_eq(8 * state_of(ATTENTION, 512), state_of(ATTENTION, 4096));
}
