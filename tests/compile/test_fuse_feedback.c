// SPDX-License-Identifier: MIT
// A feedback transformer's step of attention and the map of its result as one node: found for a memory that grows, left
// alone where the result, its weights or dropout are wanted or the memory is whole, and the same numbers.

#include <math.h>

#include "attncl/ops.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "op/fused/fused_feedback_linear.h"
#include "support/compare.h"
#include "support/fused_nodes.h"
#include "support/test.h"

enum { ROWS = 2, HEADS = 2, WIDTH = 6, C = HEADS * WIDTH, LIMIT = 40, OUT = 5 };
enum form { STEP, WANTED, DROPS, WHOLE, N_FORMS };

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
    const attncl_value z = attncl__graph_add(
        g, &attncl__op_feedback_attention_fwd, &params,
        IN(x, keys, values, places, u, none, form == WHOLE ? none : position, none, step));
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

static void run(enum form form, int32_t position, float y[ROWS * OUT])
{
    float x[ROWS * C], keys[LIMIT * ROWS * C];
    attncl_graph *g = build(form);

    for (int i = 0; i < ROWS * C; ++i)
        x[i] = cosf((float)i);
    for (int i = 0; i < LIMIT * ROWS * C; ++i)
        keys[i] = i < position * ROWS * C ? cosf((float)(2 * i)) : NAN;
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_write(g, "keys", keys, sizeof keys));
    ck_ok(attncl_graph_write(g, "position", &position, sizeof position));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl__graph_check_canaries(g));
    ck_ok(attncl_graph_read(g, "y", y, ROWS * OUT * sizeof y[0]));
    attncl_graph_destroy(g);
}

TEST(one_node_computes_the_same)
{
    static const int32_t positions[] = {0, 1, 32, 33, LIMIT};

    for (size_t n = 0; n < COUNT_OF(positions); ++n) {
        float together[ROWS * OUT], apart[ROWS * OUT];
        run(STEP, positions[n], together);
        run(WANTED, positions[n], apart);
        ck_floats(together, apart, ROWS * OUT, 1e-5, 1e-5, "after %d memories", positions[n]);
    }
}

FIXTURE_ONCE(device_up, device_down);
