// SPDX-License-Identifier: MIT
//
// Slots: each sequence of a decoder has its own position, an input of the step's graph that is negative
// for idle slots.  A prompt's graph has the state of one sequence, to and from which a slot's rows are
// copied.

#include <inttypes.h>
#include <string.h>

#include "model/decoder.h"

enum { IDLE = -1 };

attncl_status attncl__decoder_slots_init(attncl_decoder *d)
{
    int32_t **const counts[] = {&d->slot_positions, &d->slot_ends};

    for (int i = 0; i < 2; ++i) {
        *counts[i] = attncl__alloc_array((size_t)d->batch, sizeof **counts[i]);
        REQUIRE(*counts[i], ATTNCL_ERR_NO_MEMORY, "%" PRId64 " slots", d->batch);
        memset(*counts[i], 0, (size_t)d->batch * sizeof **counts[i]);
    }
    return ATTNCL_OK;
}

static void move_slot(attncl_decoder *d, int64_t slot, int64_t position)
{
    int32_t *const end = &d->slot_ends[slot];

    *end = position > 0 && *end > position ? *end : (int32_t)position;
    d->slot_positions[slot] = (int32_t)position;
    d->position = 0;
    for (int64_t i = 0; i < d->batch; ++i)
        d->position = d->slot_positions[i] > d->position ? d->slot_positions[i] : d->position;
}

static attncl_status check_slot(const attncl_decoder *d, int64_t slot)
{
    REQUIRE(d, ATTNCL_ERR_ARGUMENT, "decoder is NULL");
    REQUIRE(d->slot_positions, ATTNCL_ERR_STATE,
            "the decoder has no slots, it was created with slot_limit 0");
    REQUIRE(slot >= 0 && slot < d->batch, ATTNCL_ERR_ARGUMENT,
            "slot is %" PRId64 ", allowed are 0 to %" PRId64, slot, d->batch - 1);
    return ATTNCL_OK;
}

static attncl_status check_capacity(const attncl_decoder *d, int64_t slot, int64_t n)
{
    REQUIRE(n <= d->limit - d->slot_positions[slot], ATTNCL_ERR_STATE,
            "slot %" PRId64 " has taken %d tokens and takes at most %" PRId64 ", not %" PRId64
            " more",
            slot, (int)d->slot_positions[slot], d->limit, n);
    return ATTNCL_OK;
}

// The fewest positions that a layer keeps.
static int64_t count_rows(const attncl_decoder *d)
{
    int64_t n = d->limit;
    attncl_shape shape;

    for (size_t i = 0; attncl_graph_state_name(d->graph, i, &shape); ++i)
        n = shape.dim[0] < n ? shape.dim[0] : n;
    return n;
}

// After n tokens a ring must have the n_rows - 1 last ones.
static attncl_status check_kept(const attncl_decoder *d, int64_t slot, int64_t n)
{
    const int64_t end = d->slot_ends[slot], n_rows = count_rows(d);

    REQUIRE(n >= 0 && n <= d->slot_positions[slot], ATTNCL_ERR_ARGUMENT,
            "n is %" PRId64 ", allowed are 0 to %d, the tokens that slot %" PRId64 " has taken", n,
            (int)d->slot_positions[slot], slot);
    REQUIRE(n == 0 || end <= n_rows || n >= end - 1, ATTNCL_ERR_ARGUMENT,
            "n is %" PRId64 ", slot %" PRId64 " has taken %" PRId64
            " tokens and keeps the last %" PRId64
            " in layers with that window: allowed are 0 and %" PRId64 " to %d",
            n, slot, end, n_rows, end - 1, (int)d->slot_positions[slot]);
    return ATTNCL_OK;
}

attncl_status attncl__decoder_slots_step(attncl_decoder *d, const int32_t *tokens, float *logits)
{
    int64_t n_taken = 0;

    for (int64_t i = 0; i < d->batch; ++i) {
        if (tokens[i] == IDLE)
            continue;
        REQUIRE(tokens[i] >= 0 && tokens[i] < d->vocabulary, ATTNCL_ERR_ARGUMENT,
                "the token of slot %" PRId64 " is %d, allowed are 0 to %" PRId64 ", and -1: idle",
                i, (int)tokens[i], d->vocabulary - 1);
        TRY(check_capacity(d, i, 1));
        ++n_taken;
    }
    TRY(attncl__graph_check_state_defined(d->graph));
    if (n_taken == 0)
        return ATTNCL_OK;
    TRY(attncl__decoder_step_begin(d));
    for (int64_t i = 0; i < d->batch; ++i) {
        d->step[i] = tokens[i] == IDLE ? IDLE : d->slot_positions[i];
        d->step[d->batch + i] = tokens[i] == IDLE ? 0 : tokens[i];
    }
    TRY(attncl__decoder_step_run(d, 2 * (size_t)d->batch * sizeof *tokens, logits));
    for (int64_t i = 0; i < d->batch; ++i)
        if (tokens[i] != IDLE)
            move_slot(d, i, d->slot_positions[i] + 1);
    return ATTNCL_OK;
}

// Takes tokens one by one, with all other slots idle.
static attncl_status take_steps(attncl_decoder *d, int64_t slot, int64_t n, const int32_t *tokens,
                                float *logits)
{
    const size_t row = (size_t)d->vocabulary * sizeof *logits;
    int32_t *step = attncl__alloc_array((size_t)d->batch, sizeof *step);
    float *all = logits ? attncl__alloc_array((size_t)d->batch, row) : NULL;
    attncl_status status = ATTNCL_OK;

    if (!step || (logits && !all))
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "the scores of %" PRId64 " slots", d->batch));
    for (int64_t i = 0; i < d->batch; ++i)
        step[i] = IDLE;
    for (int64_t i = 0; i < n; ++i) {
        step[slot] = tokens[i];
        TRY_DONE(attncl__decoder_slots_step(d, step, i + 1 == n ? all : NULL));
    }
    if (logits)
        memcpy(logits, all + slot * d->vocabulary, row);
done:
    attncl__free(all);
    attncl__free(step);
    return status;
}

attncl_status attncl_decoder_slot_prefill(attncl_decoder *decoder, int64_t slot, int64_t n,
                                          const int32_t *tokens, float *logits)
{
    bool taken = false;

    TRY(check_slot(decoder, slot));
    REQUIRE(tokens, ATTNCL_ERR_ARGUMENT, "tokens is NULL");
    REQUIRE(n >= 1, ATTNCL_ERR_ARGUMENT, "%" PRId64 " tokens, must be at least 1", n);
    TRY(check_capacity(decoder, slot, n));
    TRY(attncl__graph_check_state_defined(decoder->graph));
    TRY(attncl__check_tokens(decoder->vocabulary, n, tokens));
    TRY(attncl__decoder_prefill_take(decoder, slot, n, tokens, logits, &taken));
    if (!taken)
        return take_steps(decoder, slot, n, tokens, logits);
    move_slot(decoder, slot, decoder->slot_positions[slot] + n);
    return ATTNCL_OK;
}

attncl_status attncl_decoder_slot_copy(attncl_decoder *decoder, int64_t to, int64_t from, int64_t n)
{
    TRY(check_slot(decoder, to));
    TRY(check_slot(decoder, from));
    TRY(check_kept(decoder, from, n));
    TRY(attncl__graph_check_state_defined(decoder->graph));
    if (to != from) {
        const attncl_status status =
            attncl__graph_copy_rows(decoder->graph, from, decoder->graph, to, 0, n);
        if (status != ATTNCL_OK)
            return attncl__graph_mark_run_failed(decoder->graph, status);
        decoder->slot_ends[to] = decoder->slot_ends[from];
    }
    move_slot(decoder, to, n);
    return ATTNCL_OK;
}

attncl_status attncl_decoder_slot_truncate(attncl_decoder *decoder, int64_t slot, int64_t n)
{
    TRY(check_slot(decoder, slot));
    TRY(check_kept(decoder, slot, n));
    move_slot(decoder, slot, n);
    return ATTNCL_OK;
}

int64_t attncl_decoder_slot_position(const attncl_decoder *decoder, int64_t slot)
{
    return decoder && decoder->slot_positions && slot >= 0 && slot < decoder->batch
               ? decoder->slot_positions[slot]
               : 0;
}
