// SPDX-License-Identifier: MIT
// Maps of query, key and value as one node: found in front of a step of attention, left alone where one
// of them differs or its result is wanted, and the same numbers.

#include <math.h>

#include "attncl/ops.h"
#include "device/context.h"
#include "exec/exec.h"
#include "gemm/gemm.h"
#include "graph/graph.h"
#include "support/compare.h"
#include "support/fused_nodes.h"
#include "support/test.h"

enum { ROWS = 2, C = 12, LIMIT = 3 };
enum form { PLAIN, NORM, OTHER_ROWS, OTHER_NORM, RESIDUAL, WANTED, N_FORMS };

static attncl_value sines(attncl_graph *g, int rank, int64_t rows, float phase)
{
    float data[C * C];
    for (int i = 0; i < C * C; ++i)
        data[i] = sinf(phase + (float)i);
    return attncl_graph_constant(g, ATTNCL_F32, rank, (int64_t[]){rows, C}, data);
}

static attncl_value norm(attncl_graph *g, attncl_value x, float phase)
{
    return attncl_layer_norm(g, x, sines(g, 1, C, phase), sines(g, 1, C, phase + 1), 1e-5f);
}

static attncl_graph *build(enum form form)
{
    const struct attention_step_fwd_params params = {.scale = 1, .n_heads = 2};
    attncl_linear_desc desc = ATTNCL_LINEAR_DESC_INIT;
    attncl_graph *g = NULL;
    attncl_value in[6], z;

    ck_ok(attncl_graph_create(test_context(), &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){ROWS, C});
    z = form == PLAIN || form == OTHER_ROWS ? x : norm(g, x, 7);
    for (int i = 0; i < 3; ++i) {
        const attncl_value bias = i == 1 ? ATTNCL_NONE_VALUE : sines(g, 1, C, 4 + (float)i);
        attncl_value from = z;
        if (i == 2 && form == OTHER_ROWS)
            from = sines(g, 2, ROWS, 9);
        else if (i == 2 && form == OTHER_NORM)
            from = norm(g, x, 8);
        desc.residual = i == 2 && form == RESIDUAL ? x : ATTNCL_NONE_VALUE;
        in[i] = attncl_linear_fused(g, &desc, from, sines(g, 2, C, (float)i), bias);
    }
    in[3] = attncl_graph_input(g, "position", ATTNCL_I32, 1, (int64_t[]){1});
    in[4] = attncl_graph_state(g, "keys", ATTNCL_F32, 3, (int64_t[]){LIMIT, ROWS, C});
    in[5] = attncl_graph_state(g, "values", ATTNCL_F32, 3, (int64_t[]){LIMIT, ROWS, C});
    attncl_graph_output(g, "y",
                        attncl__graph_add(g, &attncl__op_attention_step_fwd, &params, in, 6));
    if (form == WANTED)
        attncl_graph_output(g, "k", in[1]);
    return g;
}

LOOP_TEST(only_maps_of_the_same_rows, 0, N_FORMS)
{
    const struct gemm gemm = GEMM_OF(1, ROWS, C, C, .trans_b = true);
    const bool does = attncl__gemm_takes_others(&test_context()->caps, &gemm);
    attncl_graph *g = build((enum form)_i);

    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(count_fused(g, &attncl__op_fused_qkv_fwd),
                     does && (_i == PLAIN || _i == NORM));
    attncl_graph_destroy(g);
}

static void run(enum form form, float y[LIMIT][ROWS * C])
{
    attncl_graph *g = build(form);

    ck_ok(attncl_graph_compile(g, NULL));
    for (int32_t t = 0; t < LIMIT; ++t) {
        float x[ROWS * C];
        for (int i = 0; i < ROWS * C; ++i)
            x[i] = cosf((float)(i * (t + 1)));
        ck_ok(attncl_graph_write(g, "x", x, sizeof x));
        ck_ok(attncl_graph_write(g, "position", &t, sizeof t));
        ck_ok(attncl_graph_run(g));
        ck_ok(attncl__graph_check_canaries(g));
        ck_ok(attncl_graph_read(g, "y", y[t], sizeof y[t]));
    }
    attncl_graph_destroy(g);
}

// With the norm, against the maps apart, of which one is wanted.
TEST(one_launch_computes_the_same)
{
    float together[LIMIT][ROWS * C], apart[LIMIT][ROWS * C];

    run(NORM, together);
    run(WANTED, apart);
    for (int t = 0; t < LIMIT; ++t)
        ck_floats(together[t], apart[t], ROWS * C, 1e-5, 1e-5, "step %d", t);
}

FIXTURE_ONCE(device_up, device_down);
