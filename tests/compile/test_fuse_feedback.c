// SPDX-License-Identifier: MIT
// A feedback transformer's step of attention and the map of its result as one node: found for a memory that grows, left
// alone where the result, its gradients or dropout are wanted or the memory is whole.  Decoders test the numbers.

#include <math.h>

#include "attncl/ops.h"
#include "device/context.h"
#include "graph/graph.h"
#include "op/fused/fused_feedback_linear.h"
#include "support/fused_nodes.h"
#include "support/test.h"

enum { ROWS = 2, HEADS = 2, WIDTH = 6, C = HEADS * WIDTH, LIMIT = 40, OUT = 5 };
enum form { STEP, WANTED, DROPS, WHOLE, GRADIENTS, N_FORMS };

static attncl_value sines(attncl_graph *g, int rank, const int64_t *dim, float phase)
{
    float data[LIMIT * ROWS * C];
    for (int i = 0; i < LIMIT * ROWS * C; ++i)
        data[i] = sinf(phase + (float)i);
    return attncl_graph_constant(g, ATTNCL_F32, rank, dim, data);
}

static attncl_graph *build(enum form form)
{
    const int64_t memory[] = {LIMIT, ROWS, HEADS, WIDTH};
    const struct feedback_attention_fwd_params params = {
        .dropout = {.p = form == DROPS ? 0.5f : 0}};
    attncl_graph *g = NULL;

    ck_ok(attncl_graph_create(test_context(), &g));
    const attncl_value none = ATTNCL_NONE_VALUE;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){ROWS, C});
    const attncl_value position = attncl_graph_input(g, "position", ATTNCL_I32, 1, (int64_t[]){1});
    const attncl_value keys = attncl_graph_input(g, "keys", ATTNCL_F32, 4, memory);
    const attncl_value values = sines(g, 4, memory, 2);
    const attncl_value places = sines(g, 3, (int64_t[]){LIMIT, HEADS, WIDTH}, 3);
    const attncl_value u = sines(g, 2, (int64_t[]){HEADS, WIDTH}, 4);
    const attncl_value step =
        form == DROPS ? attncl_graph_input(g, "step", ATTNCL_I32, 0, NULL) : none;
    const attncl_value z =
        attncl__graph_add(g, &attncl__op_feedback_attention_fwd, &params,
                          IN(x, keys, values, places, u, none, form == WHOLE ? none : position,
                             form == GRADIENTS ? keys : none, step));
    const attncl_value y =
        attncl_linear(g, z, sines(g, 2, (int64_t[]){OUT, C}, 5), sines(g, 1, (int64_t[]){OUT}, 6));
    attncl_graph_output(g, "y", y);
    if (form == WANTED)
        attncl_graph_output(g, "z", z);
    return g;
}

LOOP_TEST(only_a_step_that_nothing_else_wants, 0, N_FORMS)
{
    const struct device_caps *caps = &test_context()->caps;
    const bool does = caps->variant == VARIANT_GPU && !caps->max_loop_iterations;
    attncl_graph *g = build((enum form)_i);

    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_eq(count_fused(g, &attncl__op_fused_feedback_linear_fwd), does && _i == STEP);
    attncl_graph_destroy(g);
}

FIXTURE_ONCE(device_up, device_down);
