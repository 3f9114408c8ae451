// SPDX-License-Identifier: MIT
//
// Checks of attncl selftest: decoding token by token, and prompts at once, against a run of all positions; and tokens
// drawn on the device.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/parameters.h"
#include "selftest.h"

enum { POSITIONS = 12, PROMPT = 7, SAMPLED = 6, BATCH = 2, VOCABULARY = 40 };
#define SIZES                                                                                      \
    "\"d_model\": 32, \"d_ff\": 48, \"n_layers\": 1, \"n_vocab\": 40, \"seq_len\": 12, "           \
    "\"max_len\": 12, \"activation\": \"gelu\""

#define TRANSFORMER "{\"layer\": \"transformer\", \"heads\": 2, " SIZES "}"
#define GMLP        "{\"layer\": \"gmlp\", \"d_ffn\": 64, " SIZES "}"
#define FEEDBACK_KV "{\"layer\": \"feedback_kv\", \"heads\": 2, " SIZES "}"

const struct model_check selftest_decodings[] = {
    {"decoding, transformer", TRANSFORMER},
    {"decoding, aft_local", "{\"layer\": \"aft_local\", \"local_window_size\": 5, " SIZES "}"},
    {"decoding, aft_full", "{\"layer\": \"aft_full\", " SIZES "}"},
    {"decoding, aft_simple", "{\"layer\": \"aft_simple\", " SIZES "}"},
    {"decoding, aft_conv",
     "{\"layer\": \"aft_conv\", \"heads\": 2, \"window_size\": 5, " SIZES "}"},
    {"decoding, gmlp", GMLP},
    {"decoding, feedback", "{\"layer\": \"feedback\", \"heads\": 2, " SIZES "}"},
    {"decoding, feedback_kv", FEEDBACK_KV},
};
const size_t selftest_n_decodings = sizeof selftest_decodings / sizeof selftest_decodings[0];

// The gradients of other layers differ only in ops that have checks of their own.
const struct model_check selftest_trainings[] = {
    {"training, transformer", TRANSFORMER},
    {"training, gmlp", GMLP},
    {"training, feedback_kv", FEEDBACK_KV},
};
const size_t selftest_n_trainings = sizeof selftest_trainings / sizeof selftest_trainings[0];

struct sequences {
    int32_t tokens[POSITIONS][BATCH];
    float all[POSITIONS][BATCH][VOCABULARY], step[BATCH][VOCABULARY]; // scores
};

static attncl_status run_all(attncl_model *model, struct sequences *s)
{
    const attncl_array tokens = {
        .name = "tokens", .dtype = ATTNCL_I32, .rank = 2, .dim = {POSITIONS, BATCH}};
    attncl_graph *g = NULL;
    attncl_status status = attncl_model_graph(model, &tokens, 1, &g);

    if (status == ATTNCL_OK)
        status = attncl_graph_write(g, "tokens", s->tokens, sizeof s->tokens);
    if (status == ATTNCL_OK)
        status = attncl_graph_run(g);
    if (status == ATTNCL_OK)
        status = attncl_graph_read(g, "output", s->all, sizeof s->all);
    attncl_graph_destroy(g);
    return status;
}

// Compares the scores of all sequences after `position`.
static void compare(const struct sequences *s, int position, struct outcome *ret)
{
    const double tolerance = 1e-5;
    const float *got = s->step[0], *want = s->all[position][0];
    double largest = 0;

    for (int i = 0; i < BATCH * VOCABULARY; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (int i = 0; i < BATCH * VOCABULARY; i++)
        outcome_compare(ret, "scores", (int64_t)position * BATCH * VOCABULARY + i, (double)got[i],
                        (double)want[i], tolerance * (1e-3 + largest));
}

// Decodes the first n_first tokens at once, then those up to n_prompt at once, then the others one by one.
static attncl_status decode(attncl_decoder *decoder, struct sequences *s, int n_first, int n_prompt,
                            struct outcome *ret)
{
    attncl_status status = attncl_decoder_reset(decoder);

    if (n_first > 0 && status == ATTNCL_OK)
        status = attncl_decoder_prefill(decoder, n_first, s->tokens[0], s->step[0]);
    if (n_prompt > n_first && status == ATTNCL_OK)
        status =
            attncl_decoder_prefill(decoder, n_prompt - n_first, s->tokens[n_first], s->step[0]);
    if (n_prompt > 0 && status == ATTNCL_OK)
        compare(s, n_prompt - 1, ret);
    for (int t = n_prompt; t < POSITIONS && status == ATTNCL_OK; t++) {
        status = attncl_decoder_step(decoder, s->tokens[t], s->step[0]);
        if (status == ATTNCL_OK)
            compare(s, t, ret);
    }
    return status;
}

// Compares the likeliest tokens, drawn on the device, with those of the scores of steps.
static attncl_status sample(attncl_decoder *decoder, const struct sequences *s, struct outcome *ret)
{
    attncl_sampling likeliest = ATTNCL_SAMPLING_INIT;
    int32_t drawn[SAMPLED][BATCH], token[BATCH];
    float scores[BATCH][VOCABULARY];
    attncl_status status = attncl_decoder_reset(decoder);

    likeliest.temperature = 0;
    if (status == ATTNCL_OK)
        status = attncl_decoder_sample(decoder, SAMPLED, s->tokens[0], &likeliest, drawn[0]);
    if (status == ATTNCL_OK)
        status = attncl_decoder_reset(decoder);
    memcpy(token, s->tokens[0], sizeof token);
    for (int t = 0; t < SAMPLED && status == ATTNCL_OK; t++) {
        status = attncl_decoder_step(decoder, token, scores[0]);
        for (int b = 0; b < BATCH && status == ATTNCL_OK; b++) {
            token[b] = 0;
            for (int i = 1; i < VOCABULARY; i++)
                if (scores[b][i] > scores[b][token[b]])
                    token[b] = i;
            outcome_compare(ret, "token", (int64_t)t * BATCH + b, drawn[t][b], token[b], 0.5);
        }
    }
    return status;
}

static attncl_status run_and_compare(const struct model_check *d, attncl_context *context,
                                     struct sequences *s, struct outcome *ret)
{
    attncl_model *model = NULL;
    attncl_decoder *decoder = NULL;
    attncl_status status = attncl_model_create(context, "lm", d->config, 1, &model);

    if (status == ATTNCL_OK)
        status = run_all(model, s);
    if (status == ATTNCL_OK)
        status = attncl_decoder_create(model, BATCH, NULL, &decoder);
    if (status == ATTNCL_OK)
        status = decode(decoder, s, 0, 0, ret);
    if (status == ATTNCL_OK)
        status = decode(decoder, s, PROMPT, PROMPT, ret);
    if (status == ATTNCL_OK)
        status = decode(decoder, s, 2, POSITIONS - 1, ret);
    if (status == ATTNCL_OK)
        status = sample(decoder, s, ret);
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
    return status;
}

int check_decoding(const struct model_check *d, attncl_context *context, struct outcome *ret)
{
    struct sequences *s = malloc(sizeof *s);

    *ret = (struct outcome){.worst = 0};
    snprintf(ret->op, sizeof ret->op, "%s", d->op);
    if (!s)
        return tool_error("out of memory");
    for (int t = 0; t < POSITIONS; t++)
        for (int b = 0; b < BATCH; b++)
            s->tokens[t][b] = (t * t + 5 * t + 17 * b) % VOCABULARY;
    if (run_and_compare(d, context, s, ret) != ATTNCL_OK)
        snprintf(ret->message, sizeof ret->message, "%s", attncl_last_error());
    free(s);
    return TOOL_OK;
}
