// SPDX-License-Identifier: MIT
//
// Blocks: stretches of nodes with a way back of their own.

#include <stddef.h>

#include "base/alloc.h"
#include "graph/parts.h"

const struct block *attncl__graph_block_of(const attncl_graph *g, int node)
{
    for (int i = 0; i < g->n_blocks; ++i)
        if (g->blocks[i].first <= node && node <= g->blocks[i].last)
            return &g->blocks[i];
    return NULL;
}

struct graph_block *attncl__graph_block_begin(attncl_graph *g, int n_in, int n_out,
                                              const void *context, size_t context_bytes)
{
    const size_t values = (size_t)(n_in + n_out) * sizeof(attncl_value);
    const size_t lists = (values + sizeof(max_align_t) - 1) / sizeof(max_align_t);
    const size_t room = sizeof(struct graph_block) + (lists + 1) * sizeof(max_align_t);
    if (!attncl__graph_building(g))
        return NULL;
    struct graph_block *block = attncl__alloc_zero(room + context_bytes);
    if (!block) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "a block of %d values", n_in + n_out);
        return NULL;
    }

    const size_t head = (sizeof *block + sizeof(max_align_t) - 1) / sizeof(max_align_t);
    max_align_t *const base = (max_align_t *)block;
    block->n_in = n_in;
    block->n_out = n_out;
    block->in = (attncl_value *)(base + head);
    block->out = block->in + n_in;
    void *const copy = base + head + lists;
    memcpy(copy, context, context_bytes);
    block->context = copy;
    g->block_first = g->n_nodes;
    return block;
}

void attncl__graph_block_end(attncl_graph *g, struct graph_block *block)
{
    struct block *blocks = NULL;
    if (!block)
        return;
    if (!attncl__graph_failed(g) && g->n_nodes > g->block_first)
        blocks = attncl__graph_grow(g->blocks, g->n_blocks, &g->blocks_room, sizeof *blocks);
    if (!blocks) {
        if (!attncl__graph_failed(g) && g->n_nodes > g->block_first)
            GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "block %d", g->n_blocks);
        attncl__free(block);
        return;
    }
    g->blocks = blocks;
    g->blocks[g->n_blocks++] = (struct block){g->block_first, g->n_nodes - 1, block};
}
