// SPDX-License-Identifier: MIT
//
//   p_c = exp(score_c / temperature) / sum, over the k best tokens; temperature 0 takes the best one
//
// The numbers come from SplitMix64 (Steele, Lea, Flood 2014), one per token: a seed gives one text, and
// the scores decide it but for differences of rounding between devices.  Where the device draws, its numbers are
// attncl_decoder_sample()'s; the likeliest token needs none.

#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// In [0, 1), 53 bits.
static double uniform(uint64_t *state)
{
    return (double)(splitmix64(state) >> 11) * 0x1p-53;
}

// A character and its score, to be sorted: best first, of equals the first in the vocabulary.
struct candidate {
    float score;
    int32_t token;
};

static int better_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

// Moves the best k of n candidates to the front, sorted.  Few of many scores are among the best so far, which
// spares sorting a large vocabulary for each token.
static void sort_best(struct candidate *candidates, int32_t n, int32_t k)
{
    qsort(candidates, (size_t)k, sizeof *candidates, better_first);
    for (int32_t i = k; i < n; i++) {
        const struct candidate next = candidates[i];
        int32_t at = k;
        if (better_first(&next, &candidates[k - 1]) > 0)
            continue;
        for (--at; at > 0 && better_first(&next, &candidates[at - 1]) < 0; --at)
            candidates[at] = candidates[at - 1];
        candidates[at] = next;
    }
}

// Chooses among the scores; -1 when they are not numbers.
static int32_t choose(struct sampler *p)
{
    const int32_t n = p->n_vocab;
    const int32_t k = p->temperature == 0            ? 1
                      : p->top_k > 0 && p->top_k < n ? (int32_t)p->top_k
                                                     : n;
    struct candidate *candidates = p->candidates;
    double sum = 0, point;

    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(p->scores[i]))
            return -1;
        candidates[i] = (struct candidate){p->scores[i], i};
    }
    sort_best(candidates, n, k);
    if (p->temperature == 0)
        return candidates[0].token;
    for (int32_t i = 0; i < k; i++)
        sum += exp(((double)candidates[i].score - candidates[0].score) / p->temperature);
    point = uniform(&p->random) * sum;
    for (int32_t i = 0; i < k; i++) {
        point -= exp(((double)candidates[i].score - candidates[0].score) / p->temperature);
        if (point < 0)
            return candidates[i].token;
    }
    return candidates[k - 1].token; // rounding left a crumb
}

// Reads what the decoder has not read yet.
static int read_text(struct sampler *p, const int32_t *tokens, size_t n)
{
    enum { AT_ONCE = 32 }; // a shorter prompt is not worth a graph of its own

    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;

    options.state_dtype = p->state_dtype;
    options.window = p->window;
    if (!p->decoder && attncl_decoder_create_with(p->model, 1, &options, &p->decoder) != ATTNCL_OK)
        return tool_failed();
    if (p->n_read == 0 && n >= AT_ONCE) {
        if (attncl_decoder_prefill(p->decoder, (int64_t)n, tokens, p->scores) != ATTNCL_OK)
            return tool_failed();
        p->n_read = n;
    }
    for (; p->n_read < n; p->n_read++)
        if (attncl_decoder_step(p->decoder, &tokens[p->n_read],
                                p->n_read + 1 == n ? p->scores : NULL) != ATTNCL_OK)
            return tool_failed();
    return TOOL_OK;
}

static bool takes_best(const struct sampler *p)
{
    return p->temperature == 0 || p->top_k == 1;
}

// More at once while that takes no longer than a reader notices.
static void adapt(struct sampler *p, double seconds)
{
    const double noticed = 0.05;

    if (seconds < noticed / 2 && p->at_once < SAMPLER_AT_ONCE)
        p->at_once *= 2;
    else if (seconds > noticed && p->at_once > 1)
        p->at_once /= 2;
}

// Draws after tokens [n], of which the last has not been read yet.  *n_ret 0: not here.
static int draw_on_device(struct sampler *p, const int32_t *tokens, size_t n, int64_t max,
                          int32_t *tokens_ret, int64_t *n_ret)
{
    attncl_sampling sampling = ATTNCL_SAMPLING_INIT;

    sampling.temperature = takes_best(p) ? 0 : p->temperature;
    sampling.top_k = p->top_k;
    sampling.seed = p->random;
    p->at_once = p->at_once > 0 ? p->at_once : 1;
    const int64_t count = p->at_once < max ? p->at_once : max;
    *n_ret = 0;
    const double start = seconds_now();
    const attncl_status status =
        attncl_decoder_sample(p->decoder, count, &tokens[n - 1], &sampling, tokens_ret);
    if (takes_best(p) && (status == ATTNCL_ERR_DEVICE_MEMORY || status == ATTNCL_ERR_UNSUPPORTED)) {
        p->stays_on_host = true;
        return TOOL_OK;
    }
    while (*n_ret < count && (status == ATTNCL_OK || tokens_ret[*n_ret] >= 0))
        ++*n_ret;
    if (status != ATTNCL_OK && *n_ret == 0)
        return tool_failed();
    p->failed = status != ATTNCL_OK;
    p->n_read += (size_t)count;
    adapt(p, seconds_now() - start);
    return TOOL_OK;
}

static int draw_on_host(struct sampler *p, const int32_t *tokens, size_t n, int32_t *token_ret)
{
    if (read_text(p, tokens, n) != TOOL_OK)
        return TOOL_FAILED;
    *token_ret = choose(p);
    if (*token_ret < 0)
        return tool_error("the model's scores after %zu tokens are not finite", n);
    return TOOL_OK;
}

int sampler_next(struct sampler *p, const int32_t *tokens, size_t n, int64_t max,
                 int32_t tokens_ret[SAMPLER_AT_ONCE], int64_t *n_ret)
{
    if (p->failed)
        return tool_failed();
    if (!p->scores) {
        p->scores = calloc((size_t)p->n_vocab, sizeof *p->scores);
        p->candidates = calloc((size_t)p->n_vocab, sizeof *p->candidates);
    }
    if (!p->scores || !p->candidates)
        return tool_error("out of memory");
    if (p->on_device && !takes_best(p) && !p->decoder && read_text(p, tokens, n - 1) != TOOL_OK)
        return TOOL_FAILED;
    *n_ret = 0;
    // Of a prompt that has been read whole the scores are here.
    if (p->decoder && p->n_read + 1 == n && (p->on_device || takes_best(p)) && !p->stays_on_host &&
        draw_on_device(p, tokens, n, max, tokens_ret, n_ret) != TOOL_OK)
        return TOOL_FAILED;
    if (*n_ret > 0)
        return TOOL_OK;
    *n_ret = 1;
    return draw_on_host(p, tokens, n, tokens_ret);
}

void sampler_close(struct sampler *p)
{
    attncl_decoder_destroy(p->decoder);
    free(p->candidates);
    free(p->scores);
}
