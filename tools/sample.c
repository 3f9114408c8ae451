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

enum {
    VAL_DEVICE = 'd',
    VAL_PROMPT = 'p',
    VAL_LENGTH = 'n',
    VAL_TEMPERATURE = 't',
    VAL_TOP_K = 'k',
    VAL_SEED = 's'
};

static const struct option options[] = {{"device", required_argument, NULL, VAL_DEVICE},
                                        {"prompt", required_argument, NULL, VAL_PROMPT},
                                        {"length", required_argument, NULL, VAL_LENGTH},
                                        {"temperature", required_argument, NULL, VAL_TEMPERATURE},
                                        {"top-k", required_argument, NULL, VAL_TOP_K},
                                        {"seed", required_argument, NULL, VAL_SEED},
                                        {NULL, 0, NULL, 0}};

static const struct command command = {
    .name = "sample",
    .usage =
        "usage: attncl sample MODEL --prompt S --length N [options]\n"
        "\n"
        "Prints the prompt and N characters that the language model continues it with, as they are "
        "generated.\n"
        "\n"
        "  -p, --prompt S       the beginning, at least one character\n"
        "  -n, --length N       how many characters to generate\n"
        "  -t, --temperature X  scores are divided by X (1); 0: always the likeliest character\n"
        "  -k, --top-k K        only the K likeliest characters; 0: all (0)\n"
        "  -s, --seed S         another seed, another text (0)\n"
        "  -d, --device D       gpu, cpu, PLATFORM:DEVICE, or part of a device's name\n"
        "  -v, --verbose        the library's log on stderr\n"
        "  -h, --help           this text\n",
    .options = options,
    .n_operands = 1,
};

struct request {
    const char *model, *device, *prompt;
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

// Chooses the next token; -1 when the scores are not numbers.  `candidates` is room for n of them.
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
    char text[5];

    utf8_encode(v->code[token], text);
    fputs(text, stdout);
    fflush(stdout);
}

// Reads the prompt, then writes and reads its own characters in turn.
static int generate(const struct request *r, attncl_decoder *decoder, const struct vocabulary *v,
                    const int32_t *prompt, size_t n_prompt)
{
    float *scores = calloc((size_t)v->n, sizeof *scores);
    struct candidate *candidates = calloc((size_t)v->n, sizeof *candidates);
    uint64_t random = (uint64_t)r->seed;
    int status = TOOL_OK;

    if (!scores || !candidates)
        status = tool_error("out of memory");
    for (size_t i = 0; i < n_prompt && status == TOOL_OK; i++) {
        if (attncl_decoder_step(decoder, &prompt[i], i + 1 < n_prompt ? NULL : scores) != ATTNCL_OK)
            status = tool_failed();
    }
    if (status == TOOL_OK)
        fputs(r->prompt, stdout);
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

// With an open model.
static int sample_model(const struct request *r, attncl_model *model)
{
    struct vocabulary vocabulary = {0};
    attncl_decoder *decoder = NULL;
    int32_t *prompt = NULL;
    size_t n_prompt = 0;
    int status = TOOL_FAILED;

    if (!vocabulary_open(model, &vocabulary))
        return TOOL_FAILED;
    if (!vocabulary_encode(&vocabulary, r->prompt, strlen(r->prompt), 0, &prompt, &n_prompt))
        goto done;
    if (attncl_decoder_create(model, 1, &decoder) != ATTNCL_OK) {
        tool_failed();
        goto done;
    }
    if (fits(decoder, n_prompt, r->length))
        status = generate(r, decoder, &vocabulary, prompt, n_prompt);

done:
    attncl_decoder_destroy(decoder);
    free(prompt);
    vocabulary_close(&vocabulary);
    return status;
}

static int run(const struct request *r)
{
    struct session session = {0};
    const int status = session_open(r->device, false, r->model, &session);

    if (status != TOOL_OK)
        return status;
    return session_close(&session, sample_model(r, session.model));
}

static bool take_option(int option, struct request *r)
{
    switch (option) {
    case VAL_DEVICE:
        r->device = optarg;
        return true;
    case VAL_PROMPT:
        r->prompt = optarg;
        return true;
    case VAL_LENGTH:
        return tool_integer("--length", optarg, 0, INT32_MAX, &r->length);
    case VAL_TEMPERATURE:
        return tool_number("--temperature", optarg, 0, 1e6, &r->temperature);
    case VAL_TOP_K:
        return tool_integer("--top-k", optarg, 0, INT32_MAX, &r->top_k);
    default:
        return tool_integer("--seed", optarg, 0, INT64_MAX, &r->seed);
    }
}

int command_sample(int argc, char **argv)
{
    struct request r = {.length = -1, .temperature = 1};
    int option, status = TOOL_OK;

    while ((option = tool_option(&command, argc, argv, &status)) != OPTION_DONE) {
        if (option == OPTION_EXIT)
            return status;
        if (!take_option(option, &r))
            return TOOL_USAGE;
    }
    if (!r.prompt || !*r.prompt || r.length < 0) {
        tool_error("sample: %s; see attncl sample --help",
                   r.length < 0 ? "--length is missing" : "--prompt is missing or empty");
        return TOOL_USAGE;
    }
    r.model = argv[optind];
    return run(&r);
}
