// SPDX-License-Identifier: MIT
//
// Loops: ranges of nodes that a run executes several times.  Their commands are in the command list
// once; each iteration reads its index from device memory, so the host enqueues all iterations without
// waiting.
//
// Custom-gradient regions: ranges of nodes with a backward pass of their own.

#include <stddef.h>

#include "base/alloc.h"
#include "graph/nodes.h"

attncl_value attncl__graph_loop_begin(attncl_graph *g, int64_t trip_count, bool reversed)
{
    const int64_t one = 1;
    if (!attncl__graph_check_open(g))
        return ATTNCL_NONE_VALUE;
    if (g->in_loop)
        return GRAPH_FAIL(g, ATTNCL_ERR_STATE, "a loop in a loop");
    if (trip_count < 0 || trip_count > INT32_MAX)
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "a loop of %" PRId64 " iterations", trip_count);

    if (!GROW_LIST(g->loops, g->n_loops, g->loops_capacity))
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "loop %d", g->n_loops);
    g->loops[g->n_loops++] = (struct loop){.first = g->n_nodes, .trip_count = trip_count};
    g->in_loop = true;

    const struct loop_index_fwd_params params = {(int32_t)trip_count, reversed};
    const attncl_value next = attncl_graph_state(g, "loop_index", ATTNCL_I32, 1, &one);
    return attncl__graph_add(g, &attncl__op_loop_index_fwd, &params, IN(next));
}

void attncl__graph_loop_end(attncl_graph *g)
{
    if (attncl__graph_failed(g))
        return;
    assert(g->in_loop);
    g->loops[g->n_loops - 1].last = g->n_nodes - 1;
    g->in_loop = false;
}

static size_t align_up(size_t bytes)
{
    const size_t align = sizeof(max_align_t);
    return (bytes + align - 1) / align * align;
}

struct grad_region *attncl__grad_region_begin(attncl_graph *g, int n_in, int n_out,
                                              const void *context, size_t context_bytes)
{
    const size_t n_values = (size_t)(n_in + n_out),
                 values_at = align_up(sizeof(struct grad_region));
    const size_t context_at = values_at + align_up(n_values * sizeof(attncl_value));
    if (!attncl__graph_check_open(g))
        return NULL;
    char *memory = attncl__alloc_zero(context_at + context_bytes);
    if (!memory) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "a custom-gradient region of %zu values", n_values);
        return NULL;
    }
    struct grad_region *region = (void *)memory;
    region->n_in = n_in;
    region->n_out = n_out;
    region->in = (void *)(memory + values_at);
    region->out = region->in + n_in;
    region->context = memcpy(memory + context_at, context, context_bytes);
    g->region_first = g->n_nodes;
    return region;
}

void attncl__grad_region_end(attncl_graph *g, struct grad_region *region)
{
    if (!region)
        return;
    const bool has_nodes = !attncl__graph_failed(g) && g->n_nodes > g->region_first;
    const bool has_space = has_nodes && GROW_LIST(g->regions, g->n_regions, g->regions_capacity);
    if (has_nodes && !has_space)
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "region %d", g->n_regions);
    if (!has_space) {
        attncl__free(region);
        return;
    }
    for (int n = g->region_first; n < g->n_nodes; ++n)
        g->nodes[n].region = g->n_regions;
    g->regions[g->n_regions++] = (struct node_region){g->region_first, g->n_nodes - 1, region};
}
