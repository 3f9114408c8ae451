// SPDX-License-Identifier: MIT
//
// A prompt at once: a graph of the whole sequence fills the state that the step's graph goes on with, or a graph that
// reads where the prompt begins appends to it.  A slot's rows go to the state of prompts and back.

#include <inttypes.h>
#include <string.h>

#include "base/ckd.h"
#include "base/log.h"
#include "model/decoder.h"

// The length of the graph for a prompt of n tokens: eight to each power of two, so that prompts of about
// the same length share a graph and an eighth at most is padding.
static int64_t padded_length(const attncl_decoder *d, int64_t n)
{
    int64_t unit = 1;
    while (16 * unit <= n)
        unit *= 2;
    const int64_t padded = (n + unit - 1) / unit * unit;
    return d->capacity > 0 && padded > d->capacity ? d->capacity : padded;
}

static attncl_status open_prefill(attncl_decoder *d, bool behind, int64_t n_tokens,
                                  struct prefill *p)
{
    size_t count;
    REQUIRE(ckd_mul_size(2 * (size_t)n_tokens, (size_t)attncl__decoder_prompt_batch(d), &count),
            ATTNCL_ERR_NO_MEMORY, "a prompt of %" PRId64 " tokens", n_tokens);
    TRY(attncl__decoder_open(d, behind ? DECODE_APPEND : DECODE_PREFILL, n_tokens, &p->graph));
    p->behind = behind;
    p->n_tokens = n_tokens;
    p->tokens = attncl__alloc_array(count, sizeof *p->tokens);
    if (!p->tokens)
        attncl__decoder_prefill_free(p);
    REQUIRE(p->tokens, ATTNCL_ERR_NO_MEMORY, "a prompt of %" PRId64 " tokens", n_tokens);
    return ATTNCL_OK;
}

static attncl_status find_prefill(attncl_decoder *d, bool behind, int64_t n_tokens,
                                  struct prefill **ret)
{
    const int64_t length = padded_length(d, n_tokens);
    for (int i = 0; i < N_PREFILLS; ++i) {
        *ret = &d->prefills[i];
        if ((*ret)->n_tokens == length && (*ret)->behind == behind)
            return ATTNCL_OK;
    }
    struct prefill made = {NULL};
    TRY(open_prefill(d, behind, length, &made));
    *ret = &d->prefills[d->oldest];
    d->oldest = (d->oldest + 1) % N_PREFILLS;
    attncl__decoder_prefill_free(*ret);
    **ret = made;
    return ATTNCL_OK;
}

static attncl_status run_prefill(attncl_decoder *d, int64_t n, struct prefill *p, float *logits)
{
    const int32_t last = (int32_t)(n - 1);

    TRY(attncl_graph_write(p->graph, "last", &last, sizeof last));
    TRY(attncl_graph_run(p->graph));
    if (!logits)
        return attncl__graph_wait(p->graph);
    const size_t count = (size_t)(attncl__decoder_prompt_batch(d) * d->vocabulary);
    return attncl_graph_read(p->graph, "logits", logits, count * sizeof *logits);
}

static int64_t position_of(const attncl_decoder *d, int64_t slot)
{
    return d->slot_positions ? d->slot_positions[slot] : d->position;
}

// Nothing has changed in the decoder's state if this fails.
static attncl_status write_prompt(attncl_decoder *d, int64_t slot, int64_t n,
                                  const struct prefill *p, const int32_t *tokens)
{
    const int64_t position = position_of(d, slot), batch = attncl__decoder_prompt_batch(d);
    const size_t given = (size_t)(n * batch), all = (size_t)(p->n_tokens * batch);
    int32_t *positions = p->tokens + all;

    memcpy(p->tokens, tokens, given * sizeof *tokens);
    memset(p->tokens + given, 0, (all - given) * sizeof *tokens);
    if (p->behind) {
        for (int64_t i = 0; i < (int64_t)all; ++i)
            positions[i] = (int32_t)(position + i / batch);
        if (d->slot_positions)
            TRY(attncl__graph_copy_rows(d->graph, slot, p->graph, 0, 0, position));
        TRY(attncl_graph_write(p->graph, "positions", positions, all * sizeof *positions));
        TRY(attncl_graph_write(p->graph, "last_position", positions + given - 1,
                               sizeof *positions));
    }
    return attncl_graph_write(p->graph, "tokens", p->tokens, all * sizeof *tokens);
}

attncl_status attncl__decoder_prefill_take(attncl_decoder *d, int64_t slot, int64_t n,
                                           const int32_t *tokens, float *logits, bool *taken_ret)
{
    enum { MIN_BEHIND = 8 }; // a graph of fewer is not worth its compilation
    const int64_t position = position_of(d, slot);
    struct prefill *p = NULL;

    *taken_ret = false;
    if (position == 0 ? n == 1 : n < MIN_BEHIND)
        return ATTNCL_OK;
    attncl_status status = find_prefill(d, position > 0, n, &p);
    if (status == ATTNCL_ERR_DEVICE_MEMORY || status == ATTNCL_ERR_UNSUPPORTED) {
        attncl__log(ATTNCL_LOG_INFO, "a prompt of %" PRId64 " tokens goes one by one: %s", n,
                    attncl_last_error());
        return ATTNCL_OK;
    }
    TRY(status);
    TRY(write_prompt(d, slot, n, p, tokens));
    status = run_prefill(d, n, p, logits);
    if (status == ATTNCL_OK && d->slot_positions)
        status = attncl__graph_copy_rows(p->graph, 0, d->graph, slot, position, n);
    if (status != ATTNCL_OK)
        return attncl__graph_mark_run_failed(d->graph, status); // what the states hold is unknown
    d->uploads_pending = false;
    *taken_ret = true;
    return ATTNCL_OK;
}
