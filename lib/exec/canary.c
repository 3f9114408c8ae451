// SPDX-License-Identifier: MIT
//
// ATTNCL_GUARD: everything a run writes is poisoned before it, and the canaries (constant words on
// both sides of every value) must be intact after it.

#include <string.h>

#include "base/alloc.h"
#include "graph/internal.h"

static size_t up4(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

attncl_status attncl__graph_poison(attncl_graph *g)
{
    if (g->report.arena_bytes)
        TRY(attncl__buffer_fill(g->ctx, g->arena, CANARY_WORD, 0, g->report.arena_bytes));
    for (int i = 1; i < g->n_values; ++i) {
        const struct value *v = &g->values[i];
        if (v->kind == VALUE_RESULT && v->canary_buffer)
            TRY(attncl__buffer_fill(g->ctx, v->canary_buffer, CANARY_WORD, 0,
                                    up4(v->storage.bytes + 2 * CANARY_BYTES)));
    }
    return ATTNCL_OK;
}

// True when every word of [from, to) is the canary word.
static bool intact(const unsigned char *bytes, size_t from, size_t to)
{
    for (size_t at = from; at + 4 <= to; at += 4) {
        uint32_t word;
        memcpy(&word, bytes + at, sizeof word);
        if (word != CANARY_WORD)
            return false;
    }
    return true;
}

// `whole` holds a canary, the value's bytes from `start` on, and another canary.
static attncl_status check_one(attncl_graph *g, cl_mem whole, size_t start, size_t bytes,
                               const char *who, const char *scope)
{
    attncl_status status = ATTNCL_OK;
    const size_t end = start + up4(bytes);
    unsigned char before[CANARY_BYTES], after[CANARY_BYTES];

    TRY_DONE(attncl__buffer_read(g->ctx, whole, start - CANARY_BYTES, before, sizeof before));
    // The tail of the last canary may lie beyond the buffer by the rounding of `bytes`.
    TRY_DONE(attncl__buffer_read(g->ctx, whole, end, after, CANARY_BYTES - 4));
    if (!intact(before, 0, sizeof before) || !intact(after, 0, CANARY_BYTES - 4))
        status = FAIL(ATTNCL_ERR_STATE, "%s%s%s: memory %s a value of %zu bytes was overwritten",
                      scope, *scope ? ": " : "", who,
                      intact(before, 0, sizeof before) ? "after" : "before", bytes);
done:
    return status;
}

attncl_status attncl__graph_check_canaries(attncl_graph *g)
{
    if (!g->canaries || !g->compiled)
        return ATTNCL_OK;
    TRY(attncl__queue_finish(g->ctx));
    for (size_t i = 0; i < g->n_placements; ++i) {
        const struct placement *p = &g->placements[i];
        const struct node *node = &g->nodes[p->value >= 0 ? g->values[p->value].node : p->node];
        if (p->bytes)
            TRY(check_one(g, g->arena, p->offset, p->bytes, node->cls->name, node->scope));
    }
    for (int i = 1; i < g->n_values; ++i) {
        const struct value *v = &g->values[i];
        if (!v->canary_buffer)
            continue;
        const bool result = v->kind == VALUE_RESULT;
        TRY(check_one(g, v->canary_buffer, CANARY_BYTES, v->storage.bytes,
                      result ? g->nodes[v->node].cls->name : v->name,
                      result ? g->nodes[v->node].scope : ""));
    }
    return ATTNCL_OK;
}
