// SPDX-License-Identifier: MIT
//
// Steps that draw the next token on the device.  Their graph shares the state of the step's graph, and
// keeps the next step's position and tokens in its own state.

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/struct.h"
#include "layer/layer.h"
#include "model/decoder.h"

static attncl_status check_sampling(const attncl_sampling *given, attncl_sampling *ret)
{
    TRY(STRUCT_READ(attncl_sampling, ret, given));
    REQUIRE(ret->temperature >= 0 && isfinite(ret->temperature), ATTNCL_ERR_ARGUMENT,
            "temperature is %g, must be finite and at least 0", ret->temperature);
    REQUIRE(ret->top_k >= 0, ATTNCL_ERR_ARGUMENT, "top_k is %" PRId64 ", must be at least 0",
            ret->top_k);
    return ATTNCL_OK;
}

// Runs up to SAMPLING_ROWS steps from `position` on, with one wait.  Does not undo them on failure.
static attncl_status draw_rows(attncl_decoder *d, attncl_graph *graph, int64_t position, int64_t n,
                               int32_t *tokens_ret)
{
    const size_t row = (size_t)d->batch * sizeof *tokens_ret;

    for (int64_t i = 0; i < n; ++i)
        TRY(attncl_graph_run(graph));
    TRY(attncl_graph_state_read(graph, "drawn", d->drawn, SAMPLING_ROWS * row));
    for (int64_t i = 0; i < n; ++i)
        memcpy(tokens_ret + i * d->batch, d->drawn + (position + i) % SAMPLING_ROWS * d->batch,
               row);
    return ATTNCL_OK;
}

// ERR_STATE if a token is -1; sets all later tokens of its sequence to -1.
static attncl_status check_drawn(const attncl_decoder *d, int64_t n, int32_t *tokens)
{
    int64_t first = -1;

    for (int64_t i = 0; i < n * d->batch; ++i) {
        if (i >= d->batch && tokens[i - d->batch] < 0)
            tokens[i] = -1;
        if (tokens[i] < 0 && first < 0)
            first = i;
    }
    REQUIRE(first < 0 || d->batch > 1, ATTNCL_ERR_STATE,
            "the model's scores after %" PRId64 " tokens are not finite", d->position + first + 1);
    REQUIRE(first < 0, ATTNCL_ERR_STATE,
            "the model's scores after %" PRId64 " tokens are not finite, in sequence %" PRId64,
            d->position + first / d->batch + 1, first % d->batch);
    return ATTNCL_OK;
}

static attncl_status draw_tokens(attncl_decoder *d, attncl_graph *graph, int64_t n,
                                 int32_t *tokens_ret)
{
    memset(tokens_ret, 0xff, (size_t)(n * d->batch) * sizeof *tokens_ret); // -1
    for (int64_t i = 0; i < n; i += SAMPLING_ROWS) {
        const int64_t now = n - i < SAMPLING_ROWS ? n - i : SAMPLING_ROWS;
        TRY(draw_rows(d, graph, d->position + i, now, tokens_ret + i * d->batch));
    }
    return check_drawn(d, n, tokens_ret);
}

attncl_status attncl__decoder_draw_begin(attncl_decoder *decoder, attncl_graph *graph,
                                         const int32_t *tokens, const attncl_sampling *sampling)
{
    const size_t bytes = (size_t)decoder->batch * sizeof *tokens;
    attncl_sampling s = ATTNCL_SAMPLING_INIT;
    int32_t words[SAMPLING_WORDS];

    TRY(check_sampling(sampling, &s));
    if (!decoder->drawn)
        decoder->drawn =
            attncl__alloc_array((size_t)decoder->batch, SAMPLING_ROWS * sizeof *decoder->drawn);
    REQUIRE(decoder->drawn, ATTNCL_ERR_NO_MEMORY, "%" PRId64 " tokens",
            SAMPLING_ROWS * decoder->batch);
    attncl__sampling_words(s.temperature, s.top_k, s.seed, words);
    TRY(attncl__decoder_step_begin(decoder));
    decoder->uploads_pending = false;
    decoder->step[0] = (int32_t)decoder->position;
    memcpy(decoder->step + 1, tokens, bytes);
    TRY(attncl_graph_write(graph, "sampling", words, sizeof words));
    return attncl_graph_state_write(graph, "step", decoder->step, bytes + sizeof *tokens);
}

attncl_status attncl__decoder_draw(attncl_decoder *decoder, attncl_graph *graph, int64_t n,
                                   int32_t *tokens_ret)
{
    const attncl_status status = draw_tokens(decoder, graph, n, tokens_ret);

    if (status != ATTNCL_OK)
        return attncl__graph_mark_run_failed(decoder->graph, status); // the runs cannot be undone
    return ATTNCL_OK;
}

attncl_status attncl__decoder_sample_take(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                          const attncl_sampling *sampling, int32_t *tokens_ret)
{
    if (!decoder->sampling_step)
        TRY(attncl__decoder_open(decoder, DECODE_SAMPLING, 0, &decoder->sampling_step));
    TRY(attncl__decoder_draw_begin(decoder, decoder->sampling_step, tokens, sampling));
    return attncl__decoder_draw(decoder, decoder->sampling_step, n, tokens_ret);
}
