// SPDX-License-Identifier: MIT
//
// attncl_decoder_sample() draws every token, also the first, so that a seed gives the same text here, in C and in Python.

#include "sampler.h"

#include <stdlib.h>
#include <string.h>

static int open_decoder(struct sampler *p)
{
    return p->decoder ? TOOL_OK
                      : tool_status(attncl_decoder_create(p->model, 1, &p->options, &p->decoder));
}

enum { MIN_PREFILL = 32 }; // a shorter prompt is not worth a graph of its own

// Reads n tokens: all but the prompt's last, which the first step takes.
static int read_prompt(struct sampler *p, const int32_t *tokens, int64_t n)
{
    if (n >= MIN_PREFILL)
        return tool_status(attncl_decoder_prefill(p->decoder, n, tokens, NULL));
    for (int64_t i = 0; i < n; i++)
        TOOL_TRY(tool_status(attncl_decoder_step(p->decoder, &tokens[i], NULL)));
    return TOOL_OK;
}

enum { MAX_AT_ONCE = 64 };

// Draws more tokens at once while a reader does not notice the delay.
static void adapt_at_once(struct sampler *p, double seconds)
{
    const double noticed = 0.05;

    if (seconds < noticed / 2 && p->at_once < MAX_AT_ONCE)
        p->at_once *= 2;
    else if (seconds > noticed && p->at_once > 1)
        p->at_once /= 2;
}

int sampler_next(struct sampler *p, struct session *s, int64_t max)
{
    if (p->failed)
        return tool_failed();
    TOOL_TRY(open_decoder(p));
    if (attncl_decoder_position(p->decoder) == 0) {
        p->at_once = 1;
        TOOL_TRY(read_prompt(p, s->tokens, (int64_t)s->n_tokens - 1));
    }
    const int64_t count = p->at_once < max ? p->at_once : max;
    int32_t *tokens = realloc(s->tokens, (s->n_tokens + (size_t)count) * sizeof *tokens);
    if (!tokens)
        return tool_error("out of memory");
    s->tokens = tokens;
    int32_t *drawn = tokens + s->n_tokens;
    memset(drawn, 0xff, (size_t)count * sizeof *drawn); // -1: not drawn
    const double start = seconds_now();
    p->failed =
        attncl_decoder_sample(p->decoder, count, drawn - 1, &p->sampling, drawn) != ATTNCL_OK;
    if (*drawn < 0)
        return tool_failed();
    for (; drawn < tokens + s->n_tokens + count && *drawn >= 0 && !p->ended; drawn++)
        p->ended = !p->ignores_end && attncl_model_ends_text(p->model, *drawn);
    s->n_tokens = (size_t)(drawn - tokens) - p->ended;
    adapt_at_once(p, seconds_now() - start);
    return TOOL_OK;
}

int sampler_warm_up(struct sampler *p, const int32_t *tokens, size_t n)
{
    const int64_t n_read = n > MIN_PREFILL ? MIN_PREFILL : 1; // read like the prompt
    int32_t drawn;

    TOOL_TRY(open_decoder(p));
    TOOL_TRY(read_prompt(p, tokens, n_read));
    // A failure would recur in sampler_next(), which reports it.
    attncl_decoder_sample(p->decoder, 1, tokens, &p->sampling, &drawn);
    return tool_status(attncl_decoder_reset(p->decoder));
}

void sampler_close(struct sampler *p)
{
    attncl_decoder_destroy(p->decoder);
}
