// SPDX-License-Identifier: MIT
//
// A prompt at once: a graph of the whole sequence fills the state that the step's graph goes on with.

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
    return d->limit > 0 && padded > d->limit ? d->limit : padded;
}

void attncl__decoder_prefill_free(struct prefill *p)
{
    attncl_graph_destroy(p->graph);
    attncl__free(p->tokens);
    *p = (struct prefill){NULL, 0, NULL};
}

static attncl_status open_prefill(attncl_decoder *d, int64_t n_tokens, struct prefill *p)
{
    size_t count;
    REQUIRE(ckd_mul_size((size_t)n_tokens, (size_t)attncl__decoder_prompt_batch(d), &count),
            ATTNCL_ERR_NO_MEMORY, "a prompt of %" PRId64 " tokens", n_tokens);
    TRY(attncl__decoder_open(d, DECODE_PREFILL, n_tokens, &p->graph));
    p->n_tokens = n_tokens;
    p->tokens = attncl__alloc_array(count, sizeof *p->tokens);
    if (!p->tokens)
        attncl__decoder_prefill_free(p);
    REQUIRE(p->tokens, ATTNCL_ERR_NO_MEMORY, "a prompt of %" PRId64 " tokens", n_tokens);
    return ATTNCL_OK;
}

static attncl_status find_prefill(attncl_decoder *d, int64_t n_tokens, struct prefill **ret)
{
    const int64_t length = padded_length(d, n_tokens);
    for (int i = 0; i < N_PREFILLS; ++i) {
        *ret = &d->prefills[i];
        if ((*ret)->n_tokens == length)
            return ATTNCL_OK;
    }
    struct prefill made = {NULL, 0, NULL};
    TRY(open_prefill(d, length, &made));
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

static attncl_status take_at_once(attncl_decoder *d, int64_t n, struct prefill *p,
                                  const int32_t *tokens, float *logits)
{
    const int64_t batch = attncl__decoder_prompt_batch(d);
    const size_t given = (size_t)(n * batch), all = (size_t)(p->n_tokens * batch);
    memcpy(p->tokens, tokens, given * sizeof *tokens);
    memset(p->tokens + given, 0, (all - given) * sizeof *tokens);
    // Nothing has changed on the device if this fails.
    TRY(attncl_graph_write(p->graph, "tokens", p->tokens, all * sizeof *tokens));
    const attncl_status status = run_prefill(d, n, p, logits);
    if (status != ATTNCL_OK)
        return attncl__graph_run_failed(d->graph, status); // what the states hold is unknown
    d->uploads_pending = false;
    return ATTNCL_OK;
}

attncl_status attncl__decoder_prefill_take(attncl_decoder *d, int64_t n, const int32_t *tokens,
                                           float *logits, attncl_graph **graph_ret)
{
    struct prefill *p = NULL;
    const attncl_status status = find_prefill(d, n, &p);

    *graph_ret = status == ATTNCL_OK ? p->graph : NULL;
    if (status == ATTNCL_OK)
        return take_at_once(d, n, p, tokens, logits);
    if (status != ATTNCL_ERR_DEVICE_MEMORY && status != ATTNCL_ERR_UNSUPPORTED)
        return status;
    attncl__log(ATTNCL_LOG_INFO, "a prompt of %" PRId64 " tokens goes one by one: %s", n,
                attncl_last_error());
    return ATTNCL_OK;
}
