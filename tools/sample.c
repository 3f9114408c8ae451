// SPDX-License-Identifier: MIT
//
// attncl sample: writes text with a language model, token by token.
//
//   p_c = exp(score_c / temperature) / sum, over the k best characters; temperature 0 takes the
//   best one
//
// The numbers come from SplitMix64 (Steele, Lea, Flood 2014), one per character: a seed gives one
// text, and the scores decide it but for differences of rounding between devices.

#define _POSIX_C_SOURCE 200809L // open_memstream
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
    "usage: attncl sample MODEL (--prompt S | --tokens LIST) [options]\n"
    "\n"
    "Prints the prompt and what the language model continues it with, as it is generated:\n"
    "N characters, or up to the model's limit.\n";

struct request {
    struct session_options session;
    const char *prompt, *tokens; // one of them
    int64_t length;              // -1: up to the limit
    int64_t top_k, seed;
    double temperature;
    bool crop, json;
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

// A text that grows, and what computes the scores of its next token.
struct sampler {
    const struct request *request;
    struct session *session;
    int32_t n_vocab;
    int64_t window; // the most tokens that the model reads; 0: no limit
    size_t n_prompt, n_read, capacity;
    float *scores; // [n_vocab]
    struct candidate *candidates;
    attncl_decoder *decoder; // while the text fits
    attncl_graph *graph;     // from then on: tokens [window, 1]
    float *all_scores;       // [window, 1, n_vocab]
};

// Reads what the decoder has not read yet.
static int read_text(struct sampler *p)
{
    const struct session *s = p->session;

    if (!p->decoder && attncl_decoder_create(s->model, 1, &p->decoder) != ATTNCL_OK)
        return tool_failed();
    for (; p->n_read < s->n_tokens; p->n_read++) {
        const bool last = p->n_read + 1 == s->n_tokens;
        if (attncl_decoder_step(p->decoder, &s->tokens[p->n_read], last ? p->scores : NULL) !=
            ATTNCL_OK)
            return tool_failed();
    }
    return TOOL_OK;
}

static int open_window(struct sampler *p)
{
    const attncl_array tokens = {
        .name = "tokens", .dtype = ATTNCL_I32, .rank = 2, .dim = {p->window, 1}};

    attncl_decoder_destroy(p->decoder);
    p->decoder = NULL;
    p->all_scores = calloc((size_t)p->window * (size_t)p->n_vocab, sizeof *p->all_scores);
    if (!p->all_scores)
        return tool_error("out of memory");
    return attncl_model_graph(p->session->model, &tokens, 1, &p->graph) == ATTNCL_OK
               ? TOOL_OK
               : tool_failed();
}

// Reads the last tokens anew, as the first ones.
static int read_window(struct sampler *p)
{
    const struct session *s = p->session;
    const size_t window = (size_t)p->window, row = (size_t)p->n_vocab * sizeof *p->scores;

    if (!p->graph && open_window(p) != TOOL_OK)
        return TOOL_FAILED;
    if (attncl_graph_write(p->graph, "tokens", s->tokens + s->n_tokens - window,
                           window * sizeof *s->tokens) != ATTNCL_OK ||
        attncl_graph_run(p->graph) != ATTNCL_OK ||
        attncl_graph_read(p->graph, "output", p->all_scores, window * row) != ATTNCL_OK)
        return tool_failed();
    memcpy(p->scores, p->all_scores + (window - 1) * (size_t)p->n_vocab, row);
    return TOOL_OK;
}

static int append(struct sampler *p, int32_t token)
{
    struct session *s = p->session;

    if (s->n_tokens >= p->capacity) {
        const size_t capacity = 2 * s->n_tokens + 256;
        int32_t *tokens = realloc(s->tokens, capacity * sizeof *tokens);
        if (!tokens)
            return tool_error("out of memory");
        s->tokens = tokens;
        p->capacity = capacity;
    }
    s->tokens[s->n_tokens++] = token;
    return TOOL_OK;
}

// Tokens `from` to n - 1 of the text, as characters or numbers.  False when the output takes no more.
static bool print_tokens(const struct sampler *p, size_t from, FILE *out)
{
    const struct session *s = p->session;
    const struct vocabulary *v = &s->vocabulary;

    for (size_t i = from; i < s->n_tokens; i++) {
        const int32_t token = s->tokens[i];
        if (p->request->tokens)
            fprintf(out, i > 0 ? " %d" : "%d", (int)token);
        else
            fwrite(v->text + v->start[token], 1, v->start[token + 1] - v->start[token], out);
    }
    return fflush(out) == 0 && !ferror(out);
}

static bool print_new(const struct sampler *p, size_t from)
{
    progress_clear();
    return p->request->json || print_tokens(p, from, stdout);
}

// The text so far; then alternately reads what is new and appends a token.
static int generate(struct sampler *p, int64_t length)
{
    struct session *s = p->session;
    uint64_t random = (uint64_t)p->request->seed;
    int status = TOOL_OK;

    for (int64_t i = 0; i < length && status == TOOL_OK; i++) {
        const bool fits = p->window == 0 || (int64_t)s->n_tokens <= p->window;
        status = fits ? read_text(p) : read_window(p);
        if (status != TOOL_OK)
            break;
        if (i == 0 && !print_new(p, 0))
            break;
        const int32_t token = choose(p->scores, p->n_vocab, p->request, &random, p->candidates);
        if (token < 0)
            return tool_error("the model's scores after %lld tokens are not finite",
                              (long long)s->n_tokens);
        status = append(p, token);
        if (status == TOOL_OK && !print_new(p, s->n_tokens - 1))
            break;
    }
    if (status == TOOL_OK && length == 0)
        print_new(p, 0);
    return status;
}

static int report(const struct sampler *p, double seconds)
{
    const struct session *s = p->session;
    json_t *tokens = json_array(), *text = NULL;
    char *characters = NULL;
    size_t bytes = 0;

    if (!p->request->json) {
        printf("\n");
        return TOOL_OK;
    }
    for (size_t i = 0; i < s->n_tokens; i++)
        json_array_append_new(tokens, json_integer(s->tokens[i]));
    FILE *memory = p->request->tokens ? NULL : open_memstream(&characters, &bytes);
    if (memory && print_tokens(p, 0, memory) && fclose(memory) == 0)
        text = json_stringn(characters, bytes);
    free(characters);
    return json_print(json_pack("{so so sI sf so}", "text", text ? text : json_null(), "tokens",
                                tokens, "prompt_tokens", (json_int_t)p->n_prompt,
                                "tokens_per_second", (double)(s->n_tokens - p->n_prompt) / seconds,
                                "device", json_device(s->context)));
}

// "1 2 3", with commas too, into the session's tokens.
static int take_tokens(const struct request *r, struct session *s, int64_t n_vocab)
{
    const char *at = r->tokens + strspn(r->tokens, " ,");

    s->tokens = calloc(strlen(r->tokens) + 1, sizeof *s->tokens);
    if (!s->tokens)
        return tool_error("out of memory");
    while (*at) {
        char *end = NULL;
        const long long token = strtoll(at, &end, 10);
        if (end == at || (*end && !strchr(" ,", *end)))
            return tool_error("--tokens: '%.20s' is not a whole number", at);
        if (token < 0 || token >= n_vocab)
            return tool_error("--tokens: %lld is not a token of the model, which has 0 to %lld",
                              token, (long long)n_vocab - 1);
        s->tokens[s->n_tokens++] = (int32_t)token;
        at = end + strspn(end, " ,");
    }
    return s->n_tokens > 0 ? TOOL_OK : tool_error("--tokens: no number in '%s'", r->tokens);
}

// How many tokens to generate, -1 where that is a mistake.  The last one is written, not read: it needs no
// position.
static int64_t length_of(const struct sampler *p)
{
    const struct request *r = p->request;
    const int64_t n = (int64_t)p->n_prompt, limit = p->window;
    const int64_t needed = n + (r->length > 0 ? r->length - 1 : 0);

    if (r->length < 0 && (r->crop || limit == 0)) {
        if (r->crop && !r->json)
            return INT64_MAX; // until it is interrupted, or its reader has enough
        tool_error(r->json ? "--json without an end: --length is missing"
                           : "this model has no limit: --length is missing");
        return -1;
    }
    if (limit == 0 || r->crop || needed <= limit)
        return r->length >= 0 ? r->length : limit - n + 1;
    tool_error("a prompt of %lld and %lld more tokens need %lld positions, the model has %lld; "
               "--crop goes on beyond them",
               (long long)n, (long long)(r->length > 0 ? r->length : 0), (long long)needed,
               (long long)limit);
    return -1;
}

// What published code crops to is seq_len; models of transformer layers can read further.
static int64_t window_of(const struct request *r, const attncl_model *model)
{
    const int64_t limit = attncl_model_decoder_limit(model);
    const int64_t cropped = r->crop ? attncl_model_config_int(model, "seq_len", limit) : limit;

    return cropped >= 1 && (limit == 0 || cropped < limit) ? cropped : limit;
}

// Whatever can be wrong with the request is found before anything is compiled.
static int run(struct session *session, const void *request)
{
    const struct request *r = request;
    const int64_t n_vocab = attncl_model_config_int(session->model, "n_vocab", 0);
    struct sampler p = {.request = r,
                        .session = session,
                        .n_vocab = (int32_t)n_vocab,
                        .window = window_of(r, session->model)};

    if (strcmp(attncl_model_arch(session->model), "lm") != 0)
        return tool_error("the model's architecture is %s, not lm",
                          attncl_model_arch(session->model));
    if (r->tokens && take_tokens(r, session, n_vocab) != TOOL_OK)
        return TOOL_FAILED;
    p.n_prompt = p.capacity = session->n_tokens;
    const int64_t length = length_of(&p);
    if (length < 0)
        return TOOL_FAILED;
    p.scores = calloc((size_t)n_vocab, sizeof *p.scores);
    p.candidates = calloc((size_t)n_vocab, sizeof *p.candidates);
    int status = p.scores && p.candidates ? TOOL_OK : tool_error("out of memory");
    const double start = seconds_now();
    if (status == TOOL_OK)
        status = generate(&p, length);
    if (status == TOOL_OK)
        status = report(&p, seconds_now() - start);
    attncl_decoder_destroy(p.decoder);
    attncl_graph_destroy(p.graph);
    free(p.all_scores);
    free(p.candidates);
    free(p.scores);
    return status;
}

int command_sample(int argc, char **argv)
{
    struct request r = {.length = -1, .temperature = 1};
    const struct option_row rows[] = {
        {"prompt", 'p', OPTION_TEXT, &r.prompt, "S",
         .help = "the beginning, at least one character"},
        {"tokens", 'i', OPTION_TEXT, &r.tokens, "LIST",
         .help = "the beginning as token numbers, \"5 12 7\"; numbers are printed too"},
        {"length", 'n', OPTION_INTEGER, &r.length, "N",
         .help = "how many tokens to generate; default: as many as the model can read",
         .high = INT32_MAX},
        {"crop", 'c', OPTION_SWITCH, &r.crop,
         .help = "read the last seq_len tokens of a text that is longer than seq_len;\n"
                 "without --length there is no end"},
        {"temperature", 't', OPTION_NUMBER, &r.temperature, "X",
         .help = "scores are divided by X (1); 0: always the likeliest token", .high = 1e6},
        {"top-k", 'k', OPTION_INTEGER, &r.top_k, "K",
         .help = "only the K likeliest tokens; 0: all (0)", .high = INT32_MAX},
        {"seed", 's', OPTION_INTEGER, &r.seed, "S", .help = "another seed, another text (0)",
         .high = INT64_MAX},
        JSON_OPTION(&r.json, "the text, its tokens and the speed as JSON, at the end"),
        DEVICE_OPTION(&r.session.device),
        {"MODEL", .kind = OPTION_OPERAND, .value = &r.session.model},
        {.name = NULL},
    };
    const int status = tool_options("sample", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (!r.tokens && (!r.prompt || !*r.prompt)) {
        tool_error("sample: --prompt is missing or empty; see attncl sample --help");
        return TOOL_USAGE;
    }
    if (r.tokens && r.prompt) {
        tool_error("sample: --prompt and --tokens exclude each other; see attncl sample --help");
        return TOOL_USAGE;
    }
    r.session.text = r.prompt;
    r.session.text_bytes = r.prompt ? strlen(r.prompt) : 0;
    return session_use(&r.session, run, &r);
}
