// SPDX-License-Identifier: MIT
// Decoders whose layers with a window keep that many positions, at all lengths around it: scores of steps, prompts, prompts
// behind others and drawn tokens are those of the whole sequence; bytes.

#include <string.h>

#include "attncl/parameters.h"
#include "model/drawing.h"
#include "support/compare.h"

enum { LENGTH = 60, LIMIT = 70, ROW = BATCH * VOCABULARY, WINDOW = 6 };

#define GEMMA                                                                                      \
    "\"layer\": \"transformer\", \"pos\": \"no_pos\", \"norm\": \"rms\", \"is_gated\": true, "     \
    "\"rope\": true, \"heads\": 4, \"n_kv_heads\": 2, \"d_ff\": 40, \"window_layers\": [1, 0], "
static const struct {
    const char *config;
    int window;
    attncl_dtype type;
    double near, same; // to F32, whose sums have another order; prompts to steps
} forms[] = {
    {"\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40, \"window\": 6", 6, ATTNCL_F32, 2e-5,
     2e-5},
    {"\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40, \"window\": 1", 1, ATTNCL_F32, 2e-5,
     2e-5},
    {"\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40, \"window\": 6, \"alibi\": true", 6,
     ATTNCL_F32, 2e-5, 2e-5}, // keeps all positions
    {GEMMA "\"rope_local_theta\": 100, \"softcap\": 2, \"window\": 17", 17, ATTNCL_F32, 2e-5, 2e-5},
    {GEMMA "\"qk_norm\": true, \"window\": 6", 6, ATTNCL_F16, 5e-3, 5e-4},
    {GEMMA "\"window\": 9", 9, ATTNCL_BF16, 4e-2, 1e-2},
    {GEMMA "\"head_dim\": 7, \"rope_width\": 4, \"window\": 6", 6, ATTNCL_Q8, 2e-2, 5e-3},
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

// A prompt of n tokens behind `before` others, then steps.
static void check_prompts(attncl_decoder *d, int before, int n, const int32_t *text,
                          float want[LENGTH][ROW], double tolerance)
{
    float got[ROW];
    int end = before + n;

    ck_ok(attncl_decoder_reset(d));
    if (before > 0)
        ck_ok(attncl_decoder_prefill(d, before, text, NULL));
    ck_ok(attncl_decoder_prefill(d, n, text + before * BATCH, got));
    for (int i = 0;; ++i, ++end) {
        ck_floats(got, want[end - 1], ROW, 0, tolerance, "%d and %d tokens, step %d", before, n, i);
        if (i == 3 || end == LENGTH)
            return;
        ck_ok(attncl_decoder_step(d, text + end * BATCH, got));
    }
}

LOOP_TEST(scores_are_those_of_the_sequence, 0, N_FORMS)
{
    static float whole[LENGTH][ROW], want[LENGTH][ROW];
    const int w = forms[_i].window, lengths[] = {2, w - 1, w, w + 1, 2 * w + 1, 3 * w + 2, 33};
    const int n_lengths = on_simulator() ? 3 : COUNT_OF(lengths);
    int32_t text[LENGTH * BATCH];
    attncl_model *model = create_drawing("lm", forms[_i].config, LIMIT);
    attncl_decoder *d = test_decoder(model, BATCH, forms[_i].type);

    for (int i = 0; i < LENGTH * BATCH; ++i)
        text[i] = (7 * i + i * i / 5) % VOCABULARY;
    get_scores(model, LENGTH, text, whole[0]);
    for (int i = 0; i < LENGTH; ++i) {
        ck_ok(attncl_decoder_step(d, text + i * BATCH, want[i]));
        ck_floats(want[i], whole[i], ROW, 0, forms[_i].near, "step %d", i);
    }
    for (int i = 0; i < n_lengths; ++i)
        if (lengths[i] > 1)
            check_prompts(d, 0, lengths[i], text, want, forms[_i].same);
    for (int i = 0; i < n_lengths; ++i)
        for (int n = 8; n <= 26 && lengths[i] > 0 && lengths[i] + n <= LENGTH; n += 9)
            check_prompts(d, lengths[i], n, text, want, forms[_i].same);
    close_model(model, d);
}

TEST(drawn_tokens_are_those_of_steps)
{
    static const attncl_sampling s = {sizeof(attncl_sampling), 0.7, 9, 0xfedcba9876543210u};
    int32_t want[LENGTH * BATCH], got[LENGTH * BATCH];
    attncl_model *model = create_drawing("lm", forms[0].config, LIMIT);
    attncl_decoder *d = test_decoder(model, BATCH, ATTNCL_F32);

    check_drawn(d, on_simulator() ? WINDOW + 2 : 2 * WINDOW + 3, &s, want, got);
    close_model(model, d);
}

// Gemma 3's five layers of six keep 512 positions; ALiBi's all, as do layers whose window is no shorter than the limit.
TEST(bytes)
{
    enum { N_LAYERS = 6, N_POSITIONS = 1024, LOCAL = 512, KEYS_AND_VALUES = 2, WIDTH = 8 };
    static const struct {
        const char *more;
        int slot_limit, rows; // of all layers
    } cases[] = {
        {"\"rope\": true", 0, 5 * LOCAL + N_POSITIONS},
        {"\"rope\": true", LOCAL + 1, 5 * LOCAL + LOCAL + 1},
        {"\"rope\": true", LOCAL, 6 * LOCAL},
        {"\"rope\": true", 40, 6 * 40},
        {"\"alibi\": true", 0, 6 * N_POSITIONS},
    };
    for (size_t i = 0; i < COUNT_OF(cases); ++i) {
        attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
        attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
        attncl_decoder *d = NULL;
        attncl_model *model = NULL;
        char text[400];

        snprintf(
            text, sizeof text,
            "{\"layer\": \"transformer\", \"pos\": \"no_pos\", \"heads\": 2, \"n_kv_heads\": 1, "
            "\"head_dim\": %d, \"d_ff\": 8, \"window\": %d, \"window_layers\": [1, 1, 1, 1, 1, 0], "
            "\"d_model\": 16, \"n_layers\": %d, \"n_vocab\": 9, \"max_len\": %d, %s}",
            WIDTH, LOCAL, N_LAYERS, N_POSITIONS, cases[i].more);
        ck_ok(attncl_model_create(test_context(), "lm", text, 5, &model));
        options.slot_limit = cases[i].slot_limit;
        options.state_dtype = ATTNCL_F16;
        ck_ok(attncl_decoder_create(model, BATCH, &options, &d));
        ck_ok(attncl_graph_memory(attncl_decoder_graph(d), &report));
        ck_assert_int_eq((int)report.state_bytes,
                         cases[i].rows * BATCH * KEYS_AND_VALUES * WIDTH * 2);
        close_model(model, d);
    }
}

FIXTURE_ONCE(device_up, device_down);
