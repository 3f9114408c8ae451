// SPDX-License-Identifier: MIT
//
// Texts longer than the decoder's window: each token recomputes the last `window` tokens at positions
// from 0 on, since every position has moved.  The graph draws the next token and advances its window, so
// that several runs need only one wait.  The host keeps the tokens; the steps' states are unused.

#include <inttypes.h>
#include <string.h>

#include "base/ckd.h"
#include "model/decoder.h"

attncl_status attncl__decoder_crop_init(attncl_decoder *d, int64_t window)
{
    size_t count;

    REQUIRE(ckd_mul_size((size_t)window, (size_t)d->batch, &count), ATTNCL_ERR_NO_MEMORY,
            "a window of %" PRId64 " tokens", window);
    d->text = attncl__alloc_array(count, sizeof *d->text);
    d->cropped_text = attncl__alloc_array(count, sizeof *d->cropped_text);
    REQUIRE(d->text && d->cropped_text, ATTNCL_ERR_NO_MEMORY, "a window of %" PRId64 " tokens",
            window);
    d->window = window;
    return ATTNCL_OK;
}

void attncl__decoder_crop_keep_tokens(attncl_decoder *d, int64_t n, const int32_t *tokens)
{
    const size_t row = (size_t)d->batch * sizeof *tokens;

    if (d->window == 0)
        return;
    for (int64_t i = n > d->window ? n - d->window : 0; i < n; ++i)
        memcpy(d->text + (d->position + i) % d->window * d->batch, tokens + i * d->batch, row);
}

void attncl__decoder_crop_keep_drawn(attncl_decoder *d, int64_t n, const int32_t *tokens,
                                     const int32_t *drawn)
{
    attncl__decoder_crop_keep_tokens(d, 1, tokens);
    d->position += 1;
    attncl__decoder_crop_keep_tokens(d, n - 1, drawn);
    d->position += n - 1;
}

attncl_status attncl__decoder_crop_open(attncl_decoder *d)
{
    return d->cropped ? ATTNCL_OK : attncl__decoder_open(d, DECODE_CROPPED, d->window, &d->cropped);
}

// Copies the last `window` tokens of the text and n more tokens, the oldest first.
static void copy_window(attncl_decoder *d, int64_t n, const int32_t *tokens)
{
    const size_t row = (size_t)d->batch * sizeof *tokens;

    for (int64_t i = 0; i < d->window; ++i) {
        const int64_t at = n - d->window + i; // index in `tokens`; negative: in the text
        memcpy(d->cropped_text + i * d->batch,
               at >= 0 ? tokens + at * d->batch
                       : d->text + (d->position + at) % d->window * d->batch,
               row);
    }
}

static attncl_status write_window(attncl_decoder *d)
{
    const size_t bytes = (size_t)(d->window * d->batch) * sizeof *d->cropped_text;
    return attncl_graph_state_write(d->cropped, "window", d->cropped_text, bytes);
}

static attncl_status read_scores(attncl_decoder *d, const int32_t *tokens, float *logits)
{
    const attncl_sampling best = {sizeof best, 0, 0, 0};
    const size_t count = (size_t)(d->batch * d->vocabulary);

    TRY(attncl__decoder_draw_begin(d, d->cropped, tokens, &best));
    TRY(write_window(d));
    attncl_status status = attncl_graph_run(d->cropped);
    if (status == ATTNCL_OK)
        status = attncl_graph_read(d->cropped, "logits", logits, count * sizeof *logits);
    return status == ATTNCL_OK ? status : attncl__graph_mark_run_failed(d->graph, status);
}

attncl_status attncl__decoder_crop_take(attncl_decoder *d, int64_t n, const int32_t *tokens,
                                        float *logits)
{
    if (logits) {
        TRY(attncl__decoder_crop_open(d));
        copy_window(d, n, tokens);
        TRY(read_scores(d, tokens + (n - 1) * d->batch, logits));
    }
    attncl__decoder_crop_keep_tokens(d, n, tokens);
    d->position += n;
    return ATTNCL_OK;
}

attncl_status attncl__decoder_crop_sample(attncl_decoder *d, int64_t n, const int32_t *tokens,
                                          const attncl_sampling *sampling, int32_t *tokens_ret)
{
    TRY(attncl__decoder_crop_open(d));
    copy_window(d, 1, tokens);
    TRY(attncl__decoder_draw_begin(d, d->cropped, tokens, sampling));
    TRY(write_window(d));
    return attncl__decoder_draw(d, d->cropped, n, tokens_ret);
}
