// SPDX-License-Identifier: MIT
//
// Custom-gradient regions: ranges of nodes with a backward pass of their own.

#include <stddef.h>

#include "graph/internal.h"

struct grad_region *attncl__grad_region_begin(attncl_graph *g, int n_in, int n_out,
                                              const void *context, size_t context_bytes)
{
    const size_t values = (size_t)(n_in + n_out) * sizeof(attncl_value);
    const size_t lists = (values + sizeof(max_align_t) - 1) / sizeof(max_align_t);
    const size_t head_bytes = sizeof(struct grad_region) + (lists + 1) * sizeof(max_align_t);
    if (!attncl__graph_building(g))
        return NULL;
    struct grad_region *region = attncl__alloc_zero(head_bytes + context_bytes);
    if (!region) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "a custom-gradient region of %d values", n_in + n_out);
        return NULL;
    }

    const size_t head = (sizeof *region + sizeof(max_align_t) - 1) / sizeof(max_align_t);
    max_align_t *const base = (max_align_t *)region;
    region->n_in = n_in;
    region->n_out = n_out;
    region->in = (attncl_value *)(base + head);
    region->out = region->in + n_in;
    void *const copy = base + head + lists;
    memcpy(copy, context, context_bytes);
    region->context = copy;
    g->region_first = g->n_nodes;
    return region;
}

void attncl__grad_region_end(attncl_graph *g, struct grad_region *region)
{
    struct node_region *regions = NULL;
    if (!region)
        return;
    if (!attncl__graph_failed(g) && g->n_nodes > g->region_first)
        regions = attncl__grow_list(g->regions, (size_t)g->n_regions, &g->regions_capacity,
                                    sizeof *regions);
    if (!regions) {
        if (!attncl__graph_failed(g) && g->n_nodes > g->region_first)
            GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "region %d", g->n_regions);
        attncl__free(region);
        return;
    }
    g->regions = regions;
    for (int n = g->region_first; n < g->n_nodes; ++n)
        g->nodes[n].region = g->n_regions;
    g->regions[g->n_regions++] = (struct node_region){g->region_first, g->n_nodes - 1, region};
}
