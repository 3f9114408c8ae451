// SPDX-License-Identifier: MIT
// Steps that draw the next token on the device against steps whose scores the host reads and draws from.

#include <math.h>
#include <string.h>

#include "attncl/parameters.h"
#include "layer/layer.h"
#include "model/drawing.h"

enum { LIMIT = 40, N = 24 };

static const char *const configs[] = {
    "\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40",
    "\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40, \"tie_generator\": true",
    "\"layer\": \"aft_local\", \"seq_len\": 40, \"local_window_size\": 9, \"d_ff\": 40",
    "\"layer\": \"aft_full\", \"seq_len\": 40, \"d_ff\": 40",
    "\"layer\": \"aft_simple\", \"seq_len\": 40, \"d_ff\": 40",
    "\"layer\": \"aft_conv\", \"seq_len\": 40, \"heads\": 3, \"window_size\": 7, \"d_ff\": 40",
    "\"layer\": \"gmlp\", \"seq_len\": 40, \"d_ffn\": 40",
    "\"layer\": \"feedback\", \"heads\": 3, \"d_ff\": 40",
    "\"layer\": \"feedback_kv\", \"heads\": 3, \"d_ff\": 40",
};
enum { N_CONFIGS = sizeof configs / sizeof configs[0] };

static const attncl_sampling samplings[] = {
    {sizeof(attncl_sampling), 0, 0, 0},
    {sizeof(attncl_sampling), 1, 0, 5},
    {sizeof(attncl_sampling), 0.4, 7, 0xfedcba9876543210u},
};
enum { N_SAMPLINGS = sizeof samplings / sizeof samplings[0] };

TEST(kernels_get_the_number_of_tokens_the_factor_and_the_seed)
{
    int32_t words[SAMPLING_WORDS];
    float factor;

    attncl__sampling_words(2, 5, 0x9abcdef012345678u, words);
    memcpy(&factor, &words[1], sizeof factor);
    ck_assert_int_eq(words[0], 5);
    ck_assert_double_eq_tol((double)factor, 1.4426950408889634 / 2, 1e-7);
    ck_assert_uint_eq((uint32_t)words[2], 0x12345678u);
    ck_assert_uint_eq((uint32_t)words[3], 0x9abcdef0u);
    attncl__sampling_words(0, INT64_C(1) << 32 | 1, 0, words);
    ck_assert_int_eq(words[0], 1);
    attncl__sampling_words(1, INT64_C(1) << 32 | 1, 0, words);
    ck_assert_int_eq(words[0], INT32_MAX);
}

static attncl_model *open_model(const char *config, int max_len, attncl_decoder **decoder_ret)
{
    attncl_model *model = create_drawing("lm", config, max_len);
    ck_ok(attncl_decoder_create(model, BATCH, NULL, decoder_ret));
    return model;
}

// In one call and in several, and steps before and after; to the bit, as it is the same arithmetic.  Smoke runs draw in
// all ways from the first layer, in one from each of the others.
LOOP_TEST(tokens_are_those_of_steps, 0, N_CONFIGS *N_SAMPLINGS)
{
    const int config = _i / N_SAMPLINGS, way = _i % N_SAMPLINGS;
    const attncl_sampling *s = &samplings[way];
    int32_t want[N * BATCH], got[N * BATCH];
    attncl_decoder *decoder = NULL;

    if (config > 0 && way != config % N_SAMPLINGS && !test_has_full_sizes())
        return;
    attncl_model *model = open_model(configs[config], LIMIT, &decoder);

    check_drawn(decoder, N, s, want, got);
    ck_ok(attncl_decoder_sample(decoder, 1, start, s, got));
    ck_ok(attncl_decoder_sample(decoder, 9, got, s, got + BATCH));
    for (int i = 10; i < 13; ++i)
        ck_ok(attncl_decoder_step(decoder, want + (i - 1) * BATCH, NULL));
    ck_ok(attncl_decoder_sample(decoder, N - 13, want + 12 * BATCH, s, got + 13 * BATCH));
    memcpy(got + 10 * BATCH, want + 10 * BATCH, 3 * BATCH * sizeof *got);
    ck_assert_mem_eq(got, want, sizeof want);
    close_model(model, decoder);
}

TEST(many_tokens_at_once)
{
    enum { MANY = 600 }; // more than twice what the device keeps
    static int32_t want[MANY * BATCH], got[MANY * BATCH];
    attncl_decoder *decoder = NULL;

    if (on_simulator())
        return;
    attncl_model *model =
        open_model(test_has_full_sizes() ? configs[0] : "\"layer\": \"aft_simple\", \"d_ff\": 40",
                   700, &decoder);
    sample_by_steps(decoder, MANY, &samplings[1], want);
    ck_ok(attncl_decoder_reset(decoder));
    ck_ok(attncl_decoder_step(decoder, start, NULL));
    ck_ok(attncl_decoder_sample(decoder, MANY - 1, want, &samplings[1], got));
    ck_assert_mem_eq(got, want + BATCH, (MANY - 1) * BATCH * sizeof *got);
    close_model(model, decoder);
}

// Smoke runs: every other layer.
LOOP_TEST(after_a_prompt, 0, N_CONFIGS)
{
    enum { PROMPT = 9 };
    int32_t all[(1 + N) * BATCH], got[N * BATCH];
    attncl_decoder *decoder = NULL;

    if (_i % 2 != 0 && !test_has_full_sizes())
        return;
    attncl_model *model = open_model(configs[_i], LIMIT, &decoder);

    memcpy(all, start, sizeof start);
    sample_by_steps(decoder, N, &samplings[0], all + BATCH);
    for (int i = 0; i < 2; ++i) { // the second time all graphs are there
        ck_ok(attncl_decoder_reset(decoder));
        ck_ok(attncl_decoder_prefill(decoder, PROMPT, all, NULL));
        ck_ok(attncl_decoder_sample(decoder, N - PROMPT, all + PROMPT * BATCH, &samplings[0], got));
        ck_assert_mem_eq(got, all + (PROMPT + 1) * BATCH, (N - PROMPT) * sizeof start);
    }
    close_model(model, decoder);
}

TEST(a_refused_call_changes_nothing)
{
    const int32_t high[BATCH] = {0, VOCABULARY, 0};
    attncl_sampling s = ATTNCL_SAMPLING_INIT;
    int32_t want[N * BATCH], got[N * BATCH];
    attncl_decoder *d = NULL;
    attncl_model *model = open_model(configs[0], LIMIT, &d);

    sample_by_steps(d, N, &samplings[1], want);
    ck_ok(attncl_decoder_reset(d));
    for (int at = 0; at <= 4; at += 4) {
        const int32_t *from = at ? want + (at - 1) * BATCH : start;
        ck_fails(attncl_decoder_sample(d, N, high, &s, got), ATTNCL_ERR_ARGUMENT, "37");
        ck_fails(attncl_decoder_sample(d, 0, start, &s, got), ATTNCL_ERR_ARGUMENT, "0 tokens");
        ck_fails(attncl_decoder_sample(d, LIMIT + 1 - at, start, &s, got), ATTNCL_ERR_STATE,
                 "at most 40");
        ck_fails(attncl_decoder_sample(NULL, N, start, &s, got), ATTNCL_ERR_ARGUMENT, "NULL");
        ck_fails(attncl_decoder_sample(d, N, NULL, &s, got), ATTNCL_ERR_ARGUMENT, "NULL");
        ck_fails(attncl_decoder_sample(d, N, start, NULL, got), ATTNCL_ERR_ARGUMENT, "NULL");
        ck_fails(attncl_decoder_sample(d, N, start, &s, NULL), ATTNCL_ERR_ARGUMENT, "NULL");
        const double bad[] = {-1, NAN, INFINITY};
        for (int i = 0; i < 3; ++i) {
            s.temperature = bad[i];
            ck_fails(attncl_decoder_sample(d, N, start, &s, got), ATTNCL_ERR_ARGUMENT,
                     "temperature");
        }
        s.temperature = 1;
        s.top_k = -1;
        ck_fails(attncl_decoder_sample(d, N, start, &s, got), ATTNCL_ERR_ARGUMENT, "top_k is -1");
        s.top_k = 0;
        ck_assert_int_eq(attncl_decoder_position(d), at);
        ck_ok(attncl_decoder_sample(d, at ? N - at : 4, from, &samplings[1], got + at * BATCH));
    }
    ck_assert_mem_eq(got, want, sizeof want);
    close_model(model, d);
}

// The scores of one token are not finite from the start.
TEST(scores_that_are_not_finite)
{
    float bias[VOCABULARY] = {0};
    int32_t got[4 * BATCH];
    attncl_decoder *decoder = NULL;
    attncl_model *model = open_model(configs[0], LIMIT, &decoder);

    ck_ok(attncl_decoder_step(decoder, start, NULL));
    bias[36] = NAN;
    ck_ok(attncl_model_param_write(model, "generator.projection.bias", bias, sizeof bias));
    ck_fails(attncl_decoder_sample(decoder, 4, start, &samplings[1], got), ATTNCL_ERR_STATE,
             "after 2 tokens are not finite, in sequence 0");
    for (int i = 0; i < 4 * BATCH; ++i)
        ck_assert_int_eq(got[i], -1);
    ck_assert_int_eq(attncl_decoder_position(decoder), 1);
    ck_fails(attncl_decoder_sample(decoder, 4, start, &samplings[1], got), ATTNCL_ERR_STATE,
             "reset");
    ck_fails(attncl_decoder_step(decoder, start, NULL), ATTNCL_ERR_STATE, "reset");

    bias[36] = 0;
    ck_ok(attncl_model_param_write(model, "generator.projection.bias", bias, sizeof bias));
    ck_ok(attncl_decoder_reset(decoder));
    ck_ok(attncl_decoder_sample(decoder, 4, start, &samplings[1], got));
    close_model(model, decoder);
}

// Only a sequence that has drawn token 1, whose embedding is not finite, has such scores after it.
TEST(tokens_before_the_first_failure_are_given)
{
    float weight[VOCABULARY * 24], bias[VOCABULARY] = {0};
    int32_t got[6 * BATCH];
    attncl_decoder *decoder = NULL;
    attncl_model *model = open_model(configs[0], LIMIT, &decoder);

    ck_ok(attncl_model_param_read(model, "src_embed.linear.weight", weight, sizeof weight));
    weight[24] = NAN;
    ck_ok(attncl_model_param_write(model, "src_embed.linear.weight", weight, sizeof weight));
    bias[1] = 1e6f;
    ck_ok(attncl_model_param_write(model, "generator.projection.bias", bias, sizeof bias));
    ck_fails(attncl_decoder_sample(decoder, 6, start, &samplings[0], got), ATTNCL_ERR_STATE,
             "after 2 tokens");
    for (int i = 0; i < 6 * BATCH; ++i)
        ck_assert_int_eq(got[i], i < BATCH ? 1 : -1);
    close_model(model, decoder);
}
