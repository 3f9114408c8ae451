// SPDX-License-Identifier: MIT
// lm_sample against a decoder whose scores the test reads: few tokens, which the host draws, and many, which the
// device does.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/parameters.h"
#include "model/drawing.h"

enum { PROMPT = 4, MAX_STEPS = 30 };

static const char *const configs[] = {
    "\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40",
    "\"layer\": \"aft_local\", \"seq_len\": 40, \"local_window_size\": 9, \"d_ff\": 40",
    "\"layer\": \"gmlp\", \"seq_len\": 40, \"d_ffn\": 40",
    "\"layer\": \"feedback\", \"heads\": 3, \"d_ff\": 40",
};
enum { N_CONFIGS = sizeof configs / sizeof configs[0] };

static const int32_t prompt[PROMPT * BATCH] = {3, 0, 36, 7, 8, 9, 1, 1, 1, 30, 20, 10};

static attncl_model *open_model(const char *arch, const char *config, const char *steps)
{
    char keys[200];

    snprintf(keys, sizeof keys, "%s%s", config, steps);
    return create_drawing(arch, keys, 40);
}

// The first of the largest; one that is no number is never it.
static int32_t likeliest(const float *scores)
{
    int32_t best = -1;

    for (int32_t c = 0; c < VOCABULARY; ++c)
        if (!isnan(scores[c]) && (best < 0 || scores[c] > scores[best]))
            best = c;
    return best;
}

static void write_bias(attncl_model *model, float first)
{
    float bias[VOCABULARY];

    ck_ok(attncl_model_param_read(model, "generator.projection.bias", bias, sizeof bias));
    bias[0] = first;
    ck_ok(attncl_model_param_write(model, "generator.projection.bias", bias, sizeof bias));
}

static void want_tokens(attncl_model *model, int n_steps, int32_t *tokens)
{
    float scores[BATCH * VOCABULARY];
    attncl_decoder *decoder = NULL;

    ck_ok(attncl_decoder_create(model, BATCH, NULL, &decoder));
    memcpy(tokens, prompt, sizeof prompt);
    for (int t = 0; t < PROMPT + n_steps - 1; ++t) {
        ck_ok(attncl_decoder_step(decoder, tokens + t * BATCH, scores));
        for (int b = 0; b < BATCH && t + 1 >= PROMPT; ++b)
            tokens[(t + 1) * BATCH + b] = likeliest(scores + b * VOCABULARY);
    }
    attncl_decoder_destroy(decoder);
}

static void check_tokens(attncl_model *sampling, int n_steps, const int32_t *want)
{
    const attncl_array input = {.name = "tokens",
                                .dtype = ATTNCL_I32,
                                .rank = 2,
                                .dim = {PROMPT, BATCH},
                                .data = (void *)prompt,
                                .bytes = sizeof prompt};
    attncl_results *results = NULL;

    ck_ok(attncl_model_run(sampling, &input, 1, &results, NULL));
    const attncl_array *tokens = attncl_results_at(results, 0);
    ck_assert_int_eq(tokens->dim[0], PROMPT + n_steps);
    for (int i = 0; i < (PROMPT + n_steps) * BATCH; ++i)
        ck_assert_msg(((const int64_t *)tokens->data)[i] == want[i], "token %d is %d, expected %d",
                      i, (int)((const int64_t *)tokens->data)[i], (int)want[i]);
    attncl_results_destroy(results);
}

LOOP_TEST(tokens_are_the_likeliest, 0, N_CONFIGS)
{
    static const int steps[] = {0, 1, 2, 15, MAX_STEPS};
    int32_t want[(PROMPT + MAX_STEPS) * BATCH];
    attncl_model *model = open_model("lm", configs[_i], "");

    want_tokens(model, MAX_STEPS, want);
    for (size_t i = 0; i < COUNT_OF(steps); ++i) {
        char key[40];
        snprintf(key, sizeof key, ", \"steps\": %d", steps[i]);
        attncl_model *sampling = open_model("lm_sample", configs[_i], key);
        check_tokens(sampling, steps[i], want);
        attncl_model_destroy(sampling);
    }
    attncl_model_destroy(model);
}

// A score that is no number is never the largest; those on the device would end at it.
TEST(no_number_is_never_the_likeliest)
{
    int32_t want[(PROMPT + MAX_STEPS) * BATCH];
    attncl_model *model = open_model("lm", configs[0], "");
    attncl_model *sampling = open_model("lm_sample", configs[0], ", \"steps\": 30");

    write_bias(model, NAN);
    write_bias(sampling, NAN);
    want_tokens(model, MAX_STEPS, want);
    check_tokens(sampling, MAX_STEPS, want);
    attncl_model_destroy(sampling);
    attncl_model_destroy(model);
}

FIXTURE_ONCE(device_up, device_down);
