// SPDX-License-Identifier: MIT
//
// ATTNCL_GUARD: everything a run writes is poisoned before it, and the canaries (constant words on
// both sides of every value) must be intact after it.

#include <string.h>

#include "exec/exec.h"

attncl_status attncl__program_poison(struct program *p)
{
    if (p->n_guarded && p->arena)
        TRY(attncl__buffer_fill(p->ctx, p->arena, CANARY_WORD, 0, p->arena_bytes));
    for (size_t i = 0; i < p->n_guarded; ++i) {
        const struct guarded *v = &p->guarded[i];
        if (v->poisoned)
            TRY(attncl__buffer_fill(p->ctx, v->whole, CANARY_WORD, 0,
                                    whole_words(v->bytes + 2 * CANARY_BYTES)));
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

static attncl_status check_one(attncl_context *ctx, const struct guarded *v)
{
    const size_t end = v->start + whole_words(v->bytes);
    unsigned char before[CANARY_BYTES], after[CANARY_BYTES];

    TRY(attncl__buffer_read(ctx, v->whole, v->start - CANARY_BYTES, before, sizeof before));
    // The tail of the last canary may lie beyond the buffer by the rounding of `bytes`.
    TRY(attncl__buffer_read(ctx, v->whole, end, after, CANARY_BYTES - 4));
    const bool before_intact = intact(before, 0, sizeof before);
    REQUIRE(before_intact && intact(after, 0, CANARY_BYTES - 4), ATTNCL_ERR_STATE,
            "%s%s%s: memory %s a value of %zu bytes was overwritten", v->scope,
            *v->scope ? ": " : "", v->name, before_intact ? "after" : "before", v->bytes);
    return ATTNCL_OK;
}

attncl_status attncl__graph_check_canaries(attncl_graph *g)
{
    const struct program *p = attncl__graph_program(g);

    if (!p || !p->n_guarded)
        return ATTNCL_OK;
    TRY(attncl__queue_finish(p->ctx));
    for (size_t i = 0; i < p->n_guarded; ++i)
        TRY(check_one(p->ctx, &p->guarded[i]));
    return ATTNCL_OK;
}
