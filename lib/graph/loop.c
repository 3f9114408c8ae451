// SPDX-License-Identifier: MIT
//
// Loops: a range of nodes that a run executes several times.  They are in the command list once;
// each iteration reads its index from device memory, so that the host enqueues all iterations
// without waiting.

#include "graph/internal.h"

static attncl_value begin(attncl_graph *g, int64_t trip_count, bool reversed)
{
    const int64_t one = 1;
    if (!attncl__graph_building(g))
        return ATTNCL_NONE_VALUE;
    if (g->in_loop)
        return GRAPH_FAIL(g, ATTNCL_ERR_STATE, "a loop in a loop");
    if (trip_count < 0 || trip_count > INT32_MAX)
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "a loop of %" PRId64 " iterations", trip_count);

    struct loop *loops =
        attncl__grow_list(g->loops, (size_t)g->n_loops, &g->loops_capacity, sizeof *loops);
    if (!loops)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "loop %d", g->n_loops);
    g->loops = loops;
    g->loops[g->n_loops++] = (struct loop){.first = g->n_nodes, .trip_count = trip_count};
    g->in_loop = true;

    const struct loop_index_fwd_params params = {(int32_t)trip_count, reversed};
    const attncl_value next = attncl_graph_state(g, "loop_index", ATTNCL_I32, 1, &one);
    return attncl__graph_add(g, &attncl__op_loop_index_fwd, &params, IN(next));
}

attncl_value attncl__graph_loop_begin(attncl_graph *g, int64_t trip_count)
{
    return begin(g, trip_count, false);
}

attncl_value attncl__graph_loop_begin_reversed(attncl_graph *g, int64_t trip_count)
{
    return begin(g, trip_count, true);
}

void attncl__graph_loop_end(attncl_graph *g)
{
    if (attncl__graph_failed(g))
        return;
    assert(g->in_loop);
    g->loops[g->n_loops - 1].last = g->n_nodes - 1;
    g->in_loop = false;
}
