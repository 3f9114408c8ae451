// SPDX-License-Identifier: MIT
// Maps of query, key and value as one node: found in front of a step of attention, left alone where one
// of them differs or its result is wanted.  Decoders test the numbers.

#include <math.h>

#include "attncl/ops.h"
#include "attncl/optim.h"
#include "device/context.h"
#include "gemm/gemm.h"
#include "graph/graph.h"
#include "support/fused_nodes.h"
#include "support/test.h"

enum { ROWS = 2, C = 12, LIMIT = 3 };
enum form {
    PLAIN,
    NORM,
    TURNED, // queries and keys are normalised and turned by the step
    OTHER_ROWS,
    OTHER_NORM_WEIGHT,
    OTHER_NORM_BIAS,
    OTHER_EPS,
    OTHER_TYPE,
    ACTIVATION,
    GATE,
    RESIDUAL,
    OVERWRITTEN,
    WANTED,
    USED_BETWEEN, // a query turned before the last map
    OTHER_USER,
    N_FORMS
};

static attncl_value sines(attncl_graph *g, int rank, int64_t rows, float phase)
{
    float data[C * C];
    for (int i = 0; i < C * C; ++i)
        data[i] = sinf(phase + (float)i);
    return attncl_graph_constant(g, ATTNCL_F32, rank, (int64_t[]){rows, C}, data);
}

// By the heads' own norm and a table of one position.
static attncl_value turned(attncl_graph *g, attncl_value x, attncl_value weight)
{
    const attncl_value table = attncl_reshape(g, weight, 3, (int64_t[]){1, 2, C / 2});
    x = attncl_rms_norm(g, attncl_reshape(g, x, 3, (int64_t[]){ROWS, 1, C}), weight, 1e-5f);
    x = attncl_rotary(g, x, table, ATTNCL_ROTARY_HALVES, ATTNCL_NONE_VALUE);
    return attncl_reshape(g, x, 2, (int64_t[]){ROWS, C});
}

static attncl_graph *build(enum form form)
{
    const struct attention_step_fwd_params params = {.scale = 1, .n_heads = 2};
    attncl_linear_desc desc = ATTNCL_LINEAR_DESC_INIT;
    attncl_graph *g = NULL;
    attncl_value in[10] = {{0}}, z;

    ck_ok(attncl_graph_create(test_context(), &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){ROWS, C});
    const attncl_value w = sines(g, 1, C, 7), b = sines(g, 1, C, 8);
    z = form == PLAIN || form == OTHER_ROWS ? x : attncl_layer_norm(g, x, w, b, 1e-5f);
    if (form == TURNED)
        z = attncl_rms_norm(g, x, w, 1e-5f);
    for (int i = 0; i < 3; ++i) {
        const attncl_value bias = i == 1 ? ATTNCL_NONE_VALUE : sines(g, 1, C, 4 + (float)i);
        attncl_value from = z;
        if (i == 2 && form == OTHER_ROWS)
            from = sines(g, 2, ROWS, 9);
        else if (i == 2 && form == OTHER_NORM_WEIGHT)
            from = attncl_layer_norm(g, x, b, b, 1e-5f);
        else if (i == 2 && form == OTHER_NORM_BIAS)
            from = attncl_layer_norm(g, x, w, w, 1e-5f);
        else if (i == 2 && form == OTHER_EPS)
            from = attncl_layer_norm(g, x, w, b, 1e-3f);
        desc.activation = i == 2 && form == ACTIVATION ? ATTNCL_RELU : ATTNCL_IDENTITY;
        desc.gate = i == 2 && form == GATE ? x : ATTNCL_NONE_VALUE;
        desc.residual = i == 2 && form == RESIDUAL ? x : ATTNCL_NONE_VALUE;
        const attncl_value map =
            (i == 0 && form == OVERWRITTEN) || (i == 2 && form == OTHER_TYPE)
                ? attncl_graph_state(g, "map", i ? ATTNCL_F16 : ATTNCL_F32, 2, (int64_t[]){C, C})
                : sines(g, 2, C, (float)i);
        in[i] = attncl_linear_fused(g, &desc, from, map, bias);
        if (i == 0 && form == OVERWRITTEN)
            attncl_accumulate(g, map, sines(g, 2, C, 0));
        if (i == 0 && form == USED_BETWEEN)
            in[i] = turned(g, in[i], w);
    }
    if (form == OTHER_USER)
        attncl_graph_output(g, "twice", attncl_add(g, in[1], in[1]));
    in[3] = attncl_graph_input(g, "position", ATTNCL_I32, 1, (int64_t[]){1});
    in[4] = attncl_graph_state(g, "keys", ATTNCL_F32, 3, (int64_t[]){LIMIT, ROWS, C});
    in[5] = attncl_graph_state(g, "values", ATTNCL_F32, 3, (int64_t[]){LIMIT, ROWS, C});
    if (form == TURNED) {
        in[7] = in[8] = attncl_slice(g, w, 0, 0, C / 2);
        in[9] = attncl_reshape(g, w, 3, (int64_t[]){C / 4, 2, 2});
    }
    attncl_graph_output(g, "y",
                        attncl__graph_add(g, &attncl__op_attention_step_fwd, &params, in, 10));
    if (form == WANTED)
        attncl_graph_output(g, "k", in[1]);
    return g;
}

LOOP_TEST(only_maps_of_the_same_rows, 0, N_FORMS)
{
    const struct gemm gemm = GEMM_OF(1, ROWS, C, C, .trans_b = true);
    const bool does = attncl__gemm_can_take_others(&test_context()->caps, &gemm);
    attncl_graph *g = build((enum form)_i);

    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(count_maps(g, FUSED_LINEAR_MORE), does && _i <= TURNED);
    attncl_graph_destroy(g);
}

FIXTURE_ONCE(device_up, device_down);
