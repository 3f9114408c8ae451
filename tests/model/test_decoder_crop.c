// SPDX-License-Identifier: MIT
// A decoder with a window, on texts that are longer: against the model's graph of the last tokens.

#include <math.h>
#include <string.h>

#include "attncl/parameters.h"
#include "model/drawing.h"
#include "support/compare.h"

enum { LIMIT = 12, WINDOW = 5, N = 14 };

static const char *const configs[] = {
    "\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40",
    "\"layer\": \"aft_local\", \"seq_len\": 12, \"local_window_size\": 4, \"d_ff\": 40",
    "\"layer\": \"gmlp\", \"seq_len\": 12, \"d_ffn\": 40",
    "\"layer\": \"feedback\", \"heads\": 3, \"d_ff\": 40",
    "\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40, \"pos\": \"no_pos\", \"rope\": true, "
    "\"rope_width\": 4, \"rope_scaling\": \"longrope\", \"rope_factor\": 9, "
    "\"rope_original_max_position_embeddings\": 3, \"rope_short_factor\": [1, 2], "
    "\"rope_long_factor\": [3, 20]",
};
enum { N_CONFIGS = sizeof configs / sizeof configs[0] };

static const attncl_sampling samplings[] = {
    {sizeof(attncl_sampling), 0, 0, 0},
    {sizeof(attncl_sampling), 0.7, 9, 0xfedcba9876543210u},
};
enum { N_SAMPLINGS = sizeof samplings / sizeof samplings[0] };

static attncl_status create(attncl_model *model, int64_t window, attncl_dtype type,
                            attncl_decoder **decoder_ret)
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;

    options.window = window;
    options.state_dtype = type;
    return attncl_decoder_create(model, BATCH, &options, decoder_ret);
}

static attncl_model *open_model(const char *config, attncl_decoder **decoder_ret)
{
    attncl_model *model = create_drawing("lm", config, LIMIT);
    ck_ok(create(model, WINDOW, ATTNCL_F32, decoder_ret));
    return model;
}

// The scores after `n` tokens, of the last WINDOW of them.
static void scores_of(attncl_model *model, int n, const int32_t *text, float *scores)
{
    static float all[WINDOW * BATCH * VOCABULARY];
    const int length = n < WINDOW ? n : WINDOW;

    get_scores(model, length, text + (n - length) * BATCH, all);
    memcpy(scores, all + (length - 1) * BATCH * VOCABULARY, BATCH * VOCABULARY * sizeof *scores);
}

// Sums of other orders.
static void ck_scores(const float *got, const float *want)
{
    ck_floats(got, want, BATCH * VOCABULARY, 0, 2e-5, "scores");
}

static void fill_text(int32_t *text, int n)
{
    for (int i = 0; i < n * BATCH; ++i)
        text[i] = (7 * i + i * i / 5) % VOCABULARY;
}

LOOP_TEST(scores_are_those_of_the_last_tokens, 0, N_CONFIGS)
{
    int32_t text[N * BATCH];
    float got[BATCH * VOCABULARY], want[BATCH * VOCABULARY];
    attncl_decoder *decoder = NULL;
    attncl_model *model = open_model(configs[_i], &decoder);

    fill_text(text, N);
    ck_assert_int_eq(attncl_decoder_limit(decoder), 0);
    for (int i = 0; i < N; ++i) {
        const bool wanted = i % 3 != 1; // scores that are not asked for are not computed
        ck_ok(attncl_decoder_step(decoder, text + i * BATCH, wanted ? got : NULL));
        ck_assert_int_eq(attncl_decoder_position(decoder), i + 1);
        if (!wanted)
            continue;
        scores_of(model, i + 1, text, want);
        ck_scores(got, want);
    }
    // Prompts up to the window, beyond it, and from within it.
    for (int n = WINDOW; n <= N; n += 3) {
        for (int before = 0; before < 3; before += 2) {
            ck_ok(attncl_decoder_reset(decoder));
            for (int i = 0; i < before; ++i)
                ck_ok(attncl_decoder_step(decoder, text + i * BATCH, NULL));
            ck_ok(attncl_decoder_prefill(decoder, n - before, text + before * BATCH, got));
            scores_of(model, n, text, want);
            ck_scores(got, want);
        }
    }
    close_model(model, decoder);
}

// Into the window, across its end, in it and beyond; to the bit, as the same graph computes the scores.
LOOP_TEST(tokens_are_those_of_steps, 0, N_CONFIGS *N_SAMPLINGS)
{
    const attncl_sampling *s = &samplings[_i % N_SAMPLINGS];
    int32_t want[N * BATCH], got[N * BATCH];
    attncl_decoder *decoder = NULL;
    attncl_model *model = open_model(configs[_i / N_SAMPLINGS], &decoder);

    check_drawn(decoder, N, s, want, got);
    ck_ok(attncl_decoder_prefill(decoder, 1, start, NULL));
    ck_ok(attncl_decoder_sample(decoder, WINDOW - 1, want, s, got + BATCH));
    ck_ok(attncl_decoder_sample(decoder, 1, want + (WINDOW - 1) * BATCH, s, got + WINDOW * BATCH));
    ck_ok(attncl_decoder_step(decoder, want + WINDOW * BATCH, NULL));
    ck_ok(attncl_decoder_sample(decoder, N - WINDOW - 2, want + (WINDOW + 1) * BATCH, s,
                                got + (WINDOW + 2) * BATCH));
    memcpy(got, want, sizeof start);
    memcpy(got + (WINDOW + 1) * BATCH, want + (WINDOW + 1) * BATCH, sizeof start);
    ck_assert_mem_eq(got, want, sizeof want);
    close_model(model, decoder);
}

// More than the device keeps.
TEST(many_tokens_at_once)
{
    enum { MANY = 300 };
    static int32_t want[MANY * BATCH], got[MANY * BATCH];
    attncl_decoder *decoder = NULL;

    if (on_simulator())
        return;
    attncl_model *model = open_model(configs[1], &decoder);
    check_drawn(decoder, MANY, &samplings[1], want, got);
    close_model(model, decoder);
}

// Beyond the window, in a call that began in it.
TEST(scores_that_are_not_finite)
{
    float weight[VOCABULARY * 24], bias[VOCABULARY] = {0};
    int32_t got[N * BATCH];
    attncl_decoder *decoder = NULL;
    attncl_model *model = open_model(configs[0], &decoder);

    // All draw token 1; the embedding of the last position of the window is not finite, so that the scores after
    // WINDOW tokens are not.
    ck_ok(attncl_model_param_read(model, "src_embed.linear.weight", weight, sizeof weight));
    bias[1] = 1e6f;
    ck_ok(attncl_model_param_write(model, "generator.projection.bias", bias, sizeof bias));
    ck_ok(attncl_decoder_sample(decoder, WINDOW + 1, start, &samplings[0], got));
    ck_ok(attncl_decoder_reset(decoder));
    weight[24] = NAN;
    ck_ok(attncl_model_param_write(model, "src_embed.linear.weight", weight, sizeof weight));
    for (int i = 0; i < WINDOW; ++i)
        ck_ok(attncl_decoder_step(decoder, start, NULL));
    ck_fails(attncl_decoder_sample(decoder, 4, start, &samplings[0], got), ATTNCL_ERR_STATE,
             "after 7 tokens are not finite, in sequence 0");
    for (int i = 0; i < 4 * BATCH; ++i)
        ck_assert_int_eq(got[i], i < BATCH ? 1 : -1);
    ck_assert_int_eq(attncl_decoder_position(decoder), WINDOW);
    ck_fails(attncl_decoder_step(decoder, start, NULL), ATTNCL_ERR_STATE, "reset");

    // In a call that began in the window, the position is that before the call.
    ck_ok(attncl_decoder_reset(decoder));
    for (int i = 0; i < WINDOW - 1; ++i)
        ck_ok(attncl_decoder_step(decoder, start, NULL));
    ck_fails(attncl_decoder_sample(decoder, 4, start, &samplings[0], got), ATTNCL_ERR_STATE,
             "after 6 tokens are not finite, in sequence 0");
    ck_assert_int_eq(attncl_decoder_position(decoder), WINDOW - 1);
    ck_fails(attncl_decoder_step(decoder, start, NULL), ATTNCL_ERR_STATE, "reset");
    ck_ok(attncl_decoder_reset(decoder));
    ck_ok(attncl_decoder_step(decoder, start, NULL));
    close_model(model, decoder);
}

// What is kept of earlier positions may be in 16 bits; the last tokens of a longer text are computed anew.
TEST(states_of_16_bits)
{
    int32_t text[N * BATCH];
    float got[BATCH * VOCABULARY], want[BATCH * VOCABULARY];
    attncl_decoder *decoder = NULL, *halves = NULL;
    attncl_model *model = open_model(configs[0], &decoder);

    fill_text(text, N);
    ck_ok(create(model, WINDOW, ATTNCL_BF16, &halves));
    ck_ok(attncl_decoder_prefill(decoder, N, text, want));
    for (int i = 0; i < N; ++i)
        ck_ok(attncl_decoder_step(halves, text + i * BATCH, got));
    ck_assert_mem_eq(got, want, sizeof want);
    attncl_decoder_destroy(halves);
    close_model(model, decoder);
}

// Without a window the limit is the model's, and so is that of slots, which turn by it from their first token on.
TEST(longrope_without_a_window)
{
    int32_t text[N * BATCH];
    float got[BATCH * VOCABULARY], want[BATCH * VOCABULARY];
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    attncl_decoder *decoder = NULL, *slots = NULL;
    attncl_model *model = open_model(configs[N_CONFIGS - 1], &slots);

    attncl_decoder_destroy(slots);
    fill_text(text, N);
    ck_ok(create(model, 0, ATTNCL_F32, &decoder));
    options.slot_limit = WINDOW;
    ck_ok(attncl_decoder_create(model, BATCH, &options, &slots));
    for (int i = 0; i < WINDOW; ++i) {
        scores_of(model, i + 1, text, want);
        ck_ok(attncl_decoder_step(decoder, text + i * BATCH, got));
        ck_scores(got, want);
        ck_ok(attncl_decoder_step(slots, text + i * BATCH, got));
    }
    ck_scores(got, want);
    ck_assert_int_eq(attncl_decoder_limit(decoder), LIMIT);
    ck_fails(attncl_decoder_prefill(decoder, N - WINDOW, text, NULL), ATTNCL_ERR_STATE,
             "has taken 5 tokens, the model takes at most 12, not 9 more");
    attncl_decoder_destroy(slots);

    // A text whose first step as a long one fails leaves nothing to the next text.
    float bias[VOCABULARY] = {NAN};
    ck_ok(attncl_decoder_reset(decoder));
    ck_ok(attncl_decoder_prefill(decoder, 3, text + BATCH, NULL));
    ck_ok(attncl_model_param_write(model, "generator.projection.bias", bias, sizeof bias));
    ck_fails(attncl_decoder_sample(decoder, 1, start, &samplings[0], text + 4 * BATCH),
             ATTNCL_ERR_STATE, "not finite");
    bias[0] = 0;
    ck_ok(attncl_model_param_write(model, "generator.projection.bias", bias, sizeof bias));
    ck_ok(attncl_decoder_reset(decoder));
    for (int i = 0; i < 4; ++i)
        ck_ok(attncl_decoder_step(decoder, text + i * BATCH, got));
    scores_of(model, 4, text, want);
    ck_scores(got, want);
    close_model(model, decoder);
}

TEST(refusals)
{
    const int32_t high[BATCH] = {0, VOCABULARY, 0};
    float logits[BATCH * VOCABULARY];
    attncl_decoder *decoder = NULL, *other = NULL;
    attncl_model *model = open_model(configs[0], &decoder);

    ck_fails(create(model, -1, ATTNCL_F32, &other), ATTNCL_ERR_ARGUMENT,
             "window is -1, allowed are 0 to 12");
    ck_fails(create(model, LIMIT + 1, ATTNCL_F32, &other), ATTNCL_ERR_ARGUMENT,
             "window is 13, allowed are 0 to 12");
    ck_assert_ptr_null(other);
    for (int i = 0; i < WINDOW + 2; ++i)
        ck_ok(attncl_decoder_step(decoder, start, NULL));
    ck_fails(attncl_decoder_step(decoder, high, logits), ATTNCL_ERR_ARGUMENT, "37");
    ck_assert_int_eq(attncl_decoder_position(decoder), WINDOW + 2);
    ck_ok(create(model, LIMIT, ATTNCL_F32, &other));
    attncl_decoder_destroy(other);
    close_model(model, decoder);
}

FIXTURE_ONCE(device_up, device_down);
