// SPDX-License-Identifier: MIT
//
// A beam's score is the sum of its tokens' log probabilities.  Each step keeps the K best of all
// continuations of a sequence's beams; a finished beam's only continuation is itself.

#include "model/beam.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"

void attncl__beams_free(struct beams *b)
{
    attncl__free(b->list);
    attncl__free(b->next);
    attncl__free(b->tokens);
}

attncl_status attncl__beams_create(struct beams *b)
{
    const size_t steps = (size_t)b->n_steps;
    size_t n, n_tokens;
    REQUIRE(ckd_mul_size((size_t)b->n_batch, (size_t)b->n_each, &n) &&
                ckd_mul_size(n, 2 * steps, &n_tokens) && n_tokens <= INT32_MAX,
            ATTNCL_ERR_SHAPE, "%" PRId64 " sequences of %" PRId64 " beams are too many", b->n_batch,
            b->n_each);
    b->n = (int64_t)n;
    b->list = attncl__alloc_array(n, sizeof *b->list);
    b->next = attncl__alloc_array(n, sizeof *b->next);
    b->tokens = attncl__alloc_array(n_tokens, sizeof *b->tokens);
    REQUIRE(b->list && b->next && b->tokens, ATTNCL_ERR_NO_MEMORY, "%zu beams", n);
    for (size_t i = 0; i < n_tokens; ++i)
        b->tokens[i] = (int32_t)b->eos;
    for (size_t i = 0; i < n; ++i) {
        b->list[i] = (struct beam){.tokens = b->tokens + i * steps};
        b->next[i] = (struct beam){.tokens = b->tokens + (n + i) * steps};
    }
    return ATTNCL_OK;
}

// Logarithm of the sum of exp(x), ignoring NaN.
static double log_sum_exp(const float *x, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i)
        max = fmax(max, (double)x[i]);
    for (int64_t i = 0; i < n && isfinite(max); ++i)
        sum += isnan(x[i]) ? 0 : exp((double)x[i] - max);
    return isfinite(max) ? max + log(sum) : max;
}

// If the sum is not finite, the largest scores get probability 1.
static double log_probability(float x, double log_sum)
{
    if (isnan(x))
        return -INFINITY;
    return isfinite(log_sum) ? (double)x - log_sum : (double)x == log_sum ? 0 : -INFINITY;
}

struct candidate {
    double score;
    int32_t beam, token;
};

// Inserts a candidate into the sorted list of the best; equal ones stay in order of insertion.
static void insert_candidate(struct candidate *best, int64_t *n, int64_t max, struct candidate c)
{
    int64_t at = *n;
    if (*n == max && !(c.score > best[max - 1].score))
        return;
    *n += *n < max;
    at = at < max ? at : max - 1;
    for (; at > 0 && c.score > best[at - 1].score; --at)
        best[at] = best[at - 1];
    best[at] = c;
}

static void choose_candidates(const struct beams *b, const float *logits, int64_t first, bool all,
                              struct candidate *best)
{
    const int64_t n_vocab = b->n_vocab;
    int64_t n = 0;
    for (int64_t i = first; i < first + (all ? b->n_each : 1); ++i) {
        const float *row = logits + i * n_vocab;
        const struct beam *beam = &b->list[i];
        if (beam->is_finished) {
            insert_candidate(best, &n, b->n_each,
                             (struct candidate){beam->score, (int32_t)i, (int32_t)b->eos});
            continue;
        }
        const double log_sum = log_sum_exp(row, n_vocab);
        for (int64_t c = 0; c < n_vocab; ++c)
            insert_candidate(best, &n, b->n_each,
                             (struct candidate){beam->score + log_probability(row[c], log_sum),
                                                (int32_t)i, (int32_t)c});
    }
}

static void extend_beam(struct beams *b, int64_t i, int64_t t, struct candidate c)
{
    const struct beam *from = &b->list[c.beam];
    struct beam *to = &b->next[i];
    memcpy(to->tokens, from->tokens, (size_t)t * sizeof *to->tokens);
    to->tokens[t] = c.token;
    to->score = c.score;
    to->from = c.beam;
    to->length = from->length + !from->is_finished;
    to->is_finished = from->is_finished || (b->eos >= 0 && c.token == b->eos);
}

bool attncl__beams_advance(struct beams *b, int64_t t, const float *logits)
{
    struct candidate best[BEAM_MAX] = {{0}};
    bool goes_on = false;
    for (int64_t first = 0; first < b->n; first += b->n_each) {
        choose_candidates(b, logits, first, t > 0, best);
        for (int64_t k = 0; k < b->n_each; ++k) {
            extend_beam(b, first + k, t, best[k]);
            goes_on |= !b->next[first + k].is_finished;
        }
    }
    struct beam *old = b->list;
    b->list = b->next;
    b->next = old;
    return goes_on;
}

const struct beam *attncl__beams_best(const struct beams *b, int64_t sequence)
{
    const struct beam *first = b->list + sequence * b->n_each, *best = first;
    double max = -INFINITY;
    for (int64_t k = 0; k < b->n_each; ++k) {
        const double score = first[k].score / pow((double)first[k].length, b->length_penalty);
        if (score > max) {
            best = &first[k];
            max = score;
        }
    }
    return best;
}
