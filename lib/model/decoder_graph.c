// SPDX-License-Identifier: MIT
//
// Opens a decoder's graphs, larger ones as its text grows, and runs that of a step.

#include <inttypes.h>

#include "model/decoder.h"

// Whose state a graph shares; NULL: it has its own.  A prompt of one slot has that of a prompt before it.
static const attncl_graph *state_owner(const attncl_decoder *d, enum decoding kind)
{
    if (kind != DECODE_SAMPLING && kind != DECODE_PREFILL && kind != DECODE_APPEND)
        return NULL;
    if (!d->slot_positions)
        return d->graph;
    for (int i = 0; i < N_PREFILLS; ++i)
        if (d->prefills[i].graph)
            return d->prefills[i].graph;
    return NULL;
}

attncl_status attncl__decoder_open(const attncl_decoder *d, enum decoding kind, int64_t n_tokens,
                                   attncl_graph **graph_ret)
{
    attncl_model *model = d->model;
    const attncl_graph *owner = state_owner(d, kind);
    const bool is_prompt = kind == DECODE_PREFILL || kind == DECODE_APPEND;
    const int64_t batch = is_prompt ? attncl__decoder_prompt_batch(d) : d->batch;
    struct build b;

    TRY(attncl__model_begin(model, NULL, 0, &b));
    b.n_positions = d->capacity;
    b.state_dtype = d->state_dtype;
    const attncl_status status =
        model->arch->build_decoding(&b, model->settings, kind, n_tokens, batch);
    if (owner)
        attncl__graph_share_state(b.graph, owner);
    return attncl__model_end(&b, status, graph_ret);
}

void attncl__decoder_prefill_free(struct prefill *p)
{
    attncl_graph_destroy(p->graph);
    attncl__free(p->tokens);
    *p = (struct prefill){NULL};
}

static attncl_status open_larger(const attncl_decoder *d, attncl_graph **graph_ret)
{
    TRY(attncl__decoder_open(d, DECODE_STEP, 0, graph_ret));
    for (int64_t i = 0; i < d->batch; ++i)
        TRY(attncl__graph_copy_rows(d->graph, i, *graph_ret, i, 0, d->position));
    return ATTNCL_OK;
}

attncl_status attncl__decoder_make_room(attncl_decoder *d, int64_t n)
{
    const int64_t before = d->capacity;
    attncl_graph *graph = NULL;

    if (before == d->limit || n <= before - d->position)
        return ATTNCL_OK;
    while (n > d->capacity - d->position)
        d->capacity *= 2;
    d->capacity = d->capacity < d->limit ? d->capacity : d->limit;
    const attncl_status status = open_larger(d, &graph);
    if (status != ATTNCL_OK) {
        attncl_graph_destroy(graph);
        d->capacity = before;
        return attncl__prefix_failure(status, "room for %" PRId64 " tokens", d->position + n);
    }
    for (int i = 0; i < N_PREFILLS; ++i)
        attncl__decoder_prefill_free(&d->prefills[i]);
    attncl_graph_destroy(d->sampling_step);
    d->sampling_step = NULL;
    attncl_graph_destroy(d->graph); // waits for the copies
    d->graph = graph;
    return ATTNCL_OK;
}

attncl_status attncl__check_tokens(int64_t n_vocab, int64_t n, const int32_t *tokens)
{
    for (int64_t i = 0; i < n; ++i)
        REQUIRE(tokens[i] >= 0 && tokens[i] < n_vocab, ATTNCL_ERR_ARGUMENT,
                "tokens: element %" PRId64 " is %d, allowed are 0 to %" PRId64, i, (int)tokens[i],
                n_vocab - 1);
    return ATTNCL_OK;
}

attncl_status attncl__decoder_step_begin(attncl_decoder *decoder)
{
    return decoder->uploads_pending ? attncl_context_finish(attncl__graph_context(decoder->graph))
                                    : ATTNCL_OK;
}

attncl_status attncl__decoder_step_run(attncl_decoder *decoder, size_t bytes, float *logits)
{
    decoder->uploads_pending = true;
    TRY(attncl__graph_write_queued(decoder->graph, "step", decoder->step, bytes));
    TRY(attncl_graph_run(decoder->graph));
    if (logits) {
        const size_t n = (size_t)(decoder->batch * decoder->vocabulary);
        const attncl_status status =
            attncl_graph_read(decoder->graph, "logits", logits, n * sizeof *logits);
        if (status != ATTNCL_OK)
            return attncl__graph_mark_run_failed(decoder->graph,
                                                 status); // the run cannot be taken back
        decoder->uploads_pending = false;
    }
    return ATTNCL_OK;
}
