// SPDX-License-Identifier: MIT
//
// attncl sample: writes text with a language model, character by character.
//
//   p_c = exp(score_c / temperature) / sum, over the k best characters; temperature 0 takes the
//   best one
//
// The numbers come from SplitMix64 (Steele, Lea, Flood 2014), one per character: a seed gives one
// text, and the scores decide it but for differences of rounding between devices.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
    "usage: attncl sample MODEL --prompt S --length N [options]\n"
    "\n"
    "Prints the prompt and N characters that the language model continues it with, as they\n"
    "are generated.\n";

struct request {
    struct session_options session;
    int64_t length, top_k, seed;
    double temperature;
};

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

// Chooses the next token; -1 when the scores are not numbers.  candidates: [n].
static int32_t choose(const float *scores, int32_t n, const struct request *r, uint64_t *random,
                      struct candidate *candidates)
{
    const int32_t k = r->top_k > 0 && r->top_k < n ? (int32_t)r->top_k : n;
    double sum = 0, point;

    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(scores[i]))
            return -1;
        candidates[i] = (struct candidate){scores[i], i};
    }
    qsort(candidates, (size_t)n, sizeof *candidates, better_first);
    if (r->temperature == 0)
        return candidates[0].token;
    for (int32_t i = 0; i < k; i++)
        sum += exp(((double)candidates[i].score - candidates[0].score) / r->temperature);
    point = uniform(random) * sum;
    for (int32_t i = 0; i < k; i++) {
        point -= exp(((double)candidates[i].score - candidates[0].score) / r->temperature);
        if (point < 0)
            return candidates[i].token;
    }
    return candidates[k - 1].token; // rounding left a crumb
}

static void print_token(const struct vocabulary *v, int32_t token)
{
    fwrite(v->text + v->start[token], 1, v->start[token + 1] - v->start[token], stdout);
    fflush(stdout);
}

// Reads the prompt, then alternately writes a character and reads it.
static int generate(const struct request *r, attncl_decoder *decoder, const struct session *s)
{
    const struct vocabulary *v = &s->vocabulary;

    float *scores = calloc((size_t)v->n, sizeof *scores);
    struct candidate *candidates = calloc((size_t)v->n, sizeof *candidates);
    uint64_t random = (uint64_t)r->seed;
    int status = TOOL_OK;

    if (!scores || !candidates)
        status = tool_error("out of memory");
    for (size_t i = 0; i < s->n_tokens && status == TOOL_OK; i++) {
        if (attncl_decoder_step(decoder, &s->tokens[i], i + 1 < s->n_tokens ? NULL : scores) !=
            ATTNCL_OK)
            status = tool_failed();
    }
    if (status == TOOL_OK)
        fputs(r->session.text, stdout);
    for (int64_t i = 0; i < r->length && status == TOOL_OK; i++) {
        const int32_t token = choose(scores, v->n, r, &random, candidates);
        if (token < 0) {
            status =
                tool_error("the model's scores after %lld characters are not finite", (long long)i);
            break;
        }
        print_token(v, token);
        if (i + 1 < r->length && attncl_decoder_step(decoder, &token, scores) != ATTNCL_OK)
            status = tool_failed();
    }
    if (status == TOOL_OK)
        printf("\n");
    free(candidates);
    free(scores);
    return status;
}

// The last character is written, not read: it needs no position.
static bool fits(const attncl_decoder *decoder, size_t n_prompt, int64_t length)
{
    const int64_t limit = attncl_decoder_limit(decoder);

    if (limit == 0 || (int64_t)n_prompt <= limit - (length > 0 ? length - 1 : 0))
        return true;
    tool_error("a prompt of %zu and %lld more characters need %lld positions, the model has %lld",
               n_prompt, (long long)length, (long long)n_prompt + (length > 0 ? length - 1 : 0),
               (long long)limit);
    return false;
}

static int run(struct session *session, const void *request)
{
    const struct request *r = request;
    attncl_decoder *decoder = NULL;
    int status = TOOL_FAILED;

    if (attncl_decoder_create(session->model, 1, &decoder) != ATTNCL_OK)
        tool_failed();
    else if (fits(decoder, session->n_tokens, r->length))
        status = generate(r, decoder, session);
    attncl_decoder_destroy(decoder);
    return status;
}

int command_sample(int argc, char **argv)
{
    struct request r = {.length = -1, .temperature = 1};
    const struct option_row rows[] = {
        {"prompt", 'p', OPTION_TEXT, &r.session.text, "S",
         .help = "the beginning, at least one character"},
        {"length", 'n', OPTION_INTEGER, &r.length, "N", .help = "how many characters to generate",
         .high = INT32_MAX},
        {"temperature", 't', OPTION_NUMBER, &r.temperature, "X",
         .help = "scores are divided by X (1); 0: always the likeliest character", .high = 1e6},
        {"top-k", 'k', OPTION_INTEGER, &r.top_k, "K",
         .help = "only the K likeliest characters; 0: all (0)", .high = INT32_MAX},
        {"seed", 's', OPTION_INTEGER, &r.seed, "S", .help = "another seed, another text (0)",
         .high = INT64_MAX},
        DEVICE_OPTION(&r.session.device),
        {"MODEL", .kind = OPTION_OPERAND, .value = &r.session.model},
        {.name = NULL},
    };
    const int status = tool_options("sample", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (!r.session.text || !*r.session.text || r.length < 0) {
        tool_error("sample: %s; see attncl sample --help",
                   r.length < 0 ? "--length is missing" : "--prompt is missing or empty");
        return TOOL_USAGE;
    }
    r.session.text_bytes = strlen(r.session.text);
    return session_use(&r.session, run, &r);
}
