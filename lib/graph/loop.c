// SPDX-License-Identifier: MIT
//
// Loops: a stretch of nodes that a run does several times.  They are recorded once; each round
// reads its number from device memory, so that the host enqueues all rounds without waiting.

#include "base/alloc.h"
#include "graph/parts.h"

const struct loop *attncl__graph_loop_of(const attncl_graph *g, int node)
{
    for (int i = 0; i < g->n_loops; ++i)
        if (g->loops[i].first <= node && node <= g->loops[i].last)
            return &g->loops[i];
    return NULL;
}

static attncl_value begin(attncl_graph *g, int64_t n_rounds, bool back)
{
    const int64_t one = 1;
    if (!attncl__graph_building(g))
        return ATTNCL_NONE_VALUE;
    if (g->in_loop)
        return GRAPH_FAIL(g, ATTNCL_ERR_STATE, "a loop in a loop");
    if (n_rounds < 0 || n_rounds > INT32_MAX)
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "a loop of %" PRId64 " rounds", n_rounds);

    struct loop *loops = attncl__graph_grow(g->loops, g->n_loops, &g->loops_room, sizeof *loops);
    if (!loops)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "loop %d", g->n_loops);
    g->loops = loops;
    g->loops[g->n_loops++] = (struct loop){.first = g->n_nodes, .n_rounds = n_rounds};
    g->in_loop = true;

    const struct loop_round_fwd_params params = {(int32_t)n_rounds, back};
    const attncl_value next = attncl_graph_state(g, "round", ATTNCL_I32, 1, &one);
    return attncl__graph_add(g, &attncl__op_loop_round_fwd, &params, IN(next));
}

attncl_value attncl__graph_loop_begin(attncl_graph *g, int64_t n_rounds)
{
    return begin(g, n_rounds, false);
}

attncl_value attncl__graph_loop_begin_back(attncl_graph *g, int64_t n_rounds)
{
    return begin(g, n_rounds, true);
}

void attncl__graph_loop_end(attncl_graph *g)
{
    if (attncl__graph_failed(g))
        return;
    assert(g->in_loop);
    g->loops[g->n_loops - 1].last = g->n_nodes - 1;
    g->in_loop = false;
}
