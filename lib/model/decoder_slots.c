// SPDX-License-Identifier: MIT
//
// Slots: a position for each sequence of a decoder, as input of the step's graph.  Idle slots have a negative one there.  A
// prompt's graph has the state of one sequence, whose rows are copied to the slot's.  The host keeps the slots' tokens: a long
// continuation is computed at once together with what is before it, since a step takes as long as many tokens of a prompt.

#include <inttypes.h>
#include <string.h>

#include "base/ckd.h"
#include "model/decoder.h"

enum { IDLE = -1 };

attncl_status attncl__decoder_slots_init(attncl_decoder *d)
{
    size_t n_tokens;

    REQUIRE(ckd_mul_size((size_t)d->batch, (size_t)d->limit, &n_tokens), ATTNCL_ERR_NO_MEMORY,
            "%" PRId64 " slots of %" PRId64 " tokens", d->batch, d->limit);
    d->slot_positions = attncl__alloc_array((size_t)d->batch, sizeof *d->slot_positions);
    d->slot_tokens = attncl__alloc_array(n_tokens, sizeof *d->slot_tokens);
    REQUIRE(d->slot_positions && d->slot_tokens, ATTNCL_ERR_NO_MEMORY,
            "%" PRId64 " slots of %" PRId64 " tokens", d->batch, d->limit);
    memset(d->slot_positions, 0, (size_t)d->batch * sizeof *d->slot_positions);
    return ATTNCL_OK;
}

static int32_t *tokens_of(const attncl_decoder *d, int64_t slot)
{
    return d->slot_tokens + slot * d->limit;
}

static void move_slot(attncl_decoder *d, int64_t slot, int64_t position)
{
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

static attncl_status check_kept(const attncl_decoder *d, int64_t slot, int64_t n)
{
    REQUIRE(n >= 0 && n <= d->slot_positions[slot], ATTNCL_ERR_ARGUMENT,
            "n is %" PRId64 ", allowed are 0 to %d, the tokens that slot %" PRId64 " has taken", n,
            (int)d->slot_positions[slot], slot);
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
    TRY(attncl__graph_state_defined(d->graph));
    if (n_taken == 0)
        return ATTNCL_OK;
    TRY(attncl__decoder_step_begin(d));
    for (int64_t i = 0; i < d->batch; ++i) {
        d->step[i] = tokens[i] == IDLE ? IDLE : d->slot_positions[i];
        d->step[d->batch + i] = tokens[i] == IDLE ? 0 : tokens[i];
    }
    TRY(attncl__decoder_step_run(d, 2 * (size_t)d->batch * sizeof *tokens, logits));
    for (int64_t i = 0; i < d->batch; ++i) {
        if (tokens[i] == IDLE)
            continue;
        tokens_of(d, i)[d->slot_positions[i]] = tokens[i];
        move_slot(d, i, d->slot_positions[i] + 1);
    }
    return ATTNCL_OK;
}

// A slot takes the first n tokens of sequence `from` of a graph.
static attncl_status copy_rows(attncl_decoder *d, attncl_graph *graph, int64_t from, int64_t to,
                               int64_t n)
{
    const attncl_status status = attncl__graph_copy_rows(graph, from, d->graph, to, n);

    if (status != ATTNCL_OK)
        return attncl__graph_run_failed(d->graph, status);
    move_slot(d, to, n);
    return ATTNCL_OK;
}

// A token at a time, all other slots idle.
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

// Whether n tokens are computed together with those before them.
static bool is_worth_all(int64_t position, int64_t n)
{
    enum { TOKENS_OF_STEP = 8, MIN_TOKENS = 16 }; // a graph of few is not worth its compilation
    return position == 0 ? n > 1 : n >= MIN_TOKENS && position + n <= TOKENS_OF_STEP * n;
}

attncl_status attncl_decoder_slot_prefill(attncl_decoder *decoder, int64_t slot, int64_t n,
                                          const int32_t *tokens, float *logits)
{
    attncl_graph *taken = NULL;

    TRY(check_slot(decoder, slot));
    REQUIRE(tokens, ATTNCL_ERR_ARGUMENT, "tokens is NULL");
    REQUIRE(n >= 1, ATTNCL_ERR_ARGUMENT, "%" PRId64 " tokens, must be at least 1", n);
    TRY(check_capacity(decoder, slot, n));
    TRY(attncl__graph_state_defined(decoder->graph));
    TRY(attncl__check_tokens(decoder->vocabulary, n, tokens));
    const int64_t position = decoder->slot_positions[slot];
    int32_t *all = tokens_of(decoder, slot);
    memcpy(all + position, tokens, (size_t)n * sizeof *tokens);
    if (is_worth_all(position, n))
        TRY(attncl__decoder_prefill_take(decoder, position + n, all, logits, &taken));
    return taken ? copy_rows(decoder, taken, 0, slot, position + n)
                 : take_steps(decoder, slot, n, all + position, logits);
}

attncl_status attncl_decoder_slot_copy(attncl_decoder *decoder, int64_t to, int64_t from, int64_t n)
{
    TRY(check_slot(decoder, to));
    TRY(check_slot(decoder, from));
    TRY(check_kept(decoder, from, n));
    TRY(attncl__graph_state_defined(decoder->graph));
    if (to == from) {
        move_slot(decoder, to, n);
        return ATTNCL_OK;
    }
    memcpy(tokens_of(decoder, to), tokens_of(decoder, from), (size_t)n * sizeof(int32_t));
    return copy_rows(decoder, decoder->graph, from, to, n);
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
