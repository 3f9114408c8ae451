// SPDX-License-Identifier: MIT
// Decoders that keep keys and values, or the rows of gMLP, in 16 bits: what they store, half the memory, prompts (in F32 too) and
// drawn tokens as by steps, and who refuses.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/parameters.h"
#include "device/context.h"
#include "support/compare.h"
#include "support/op_test.h"

enum { BATCH = 2, VOCABULARY = 13, ROW = BATCH * VOCABULARY, LONGEST = 150, WIDTH = 24 };

static const attncl_dtype dtypes[] = {ATTNCL_F16, ATTNCL_BF16};
// Half a step of the type at 1.
static const double roundings[] = {0x1p-11, 0x1p-8};

static attncl_model *create(const char *layer, int n_layers)
{
    attncl_model *model = NULL;
    char config[400];

    snprintf(config, sizeof config,
             "{%s, \"d_model\": %d, \"n_layers\": %d, \"n_vocab\": %d, \"max_len\": 155}", layer,
             WIDTH, n_layers, VOCABULARY);
    ck_ok(attncl_model_create(test_context(), "lm", config, 5, &model));
    return model;
}

static attncl_model *create_transformer(int n_layers)
{
    return create("\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40", n_layers);
}

// Layers that have such states, each with both types.
static const struct {
    const char *config;
    double effect; // how much less scores move than what is rounded
} layers[] = {
    {"\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40", 64},
    {"\"layer\": \"gmlp\", \"seq_len\": 155, \"d_ffn\": 40",
     1024}, // first weights of positions are small
    {"\"layer\": \"feedback\", \"heads\": 3, \"d_ff\": 40", 64},
    {"\"layer\": \"feedback_kv\", \"heads\": 3, \"d_ff\": 40", 64},
    {"\"layer\": \"aft_local\", \"seq_len\": 155, \"local_window_size\": 9, \"d_ff\": 40", 256},
    {"\"layer\": \"aft_full\", \"seq_len\": 155, \"d_ff\": 40", 256},
    {"\"layer\": \"aft_conv\", \"heads\": 3, \"window_size\": 7, \"d_ff\": 40", 256},
    {"\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40, \"window\": 9", 64},
};
enum { N_FORMS = COUNT_OF(layers) * COUNT_OF(dtypes) };

static attncl_dtype dtype_of(int form)
{
    return dtypes[form % 2];
}

static double rounding_of(int form)
{
    return roundings[form % 2];
}

static attncl_model *create_form(int form)
{
    return create(layers[form / 2].config, 2);
}

// Smoke runs give each layer one of the two types.
static bool is_left_out(int form)
{
    return form / 2 % 2 != form % 2 && !test_has_full_sizes();
}

static void fill_tokens(int32_t tokens[LONGEST * BATCH])
{
    for (int i = 0; i < LONGEST * BATCH; ++i)
        tokens[i] = (i * 7 + i * i / 5) % VOCABULARY;
}

// With rows in 8 bits, also of heads that share keys and of a width that is no multiple of 4: scores near those of F32, a prompt
// as its tokens, and bytes: half a step of 1 / 254 of a head's largest.
LOOP_TEST(rows_in_8_bits, 0, 2)
{
    enum { LENGTH = 17 };
    static const char *const configs[] = {
        "\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40",
        "\"layer\": \"transformer\", \"heads\": 4, \"n_kv_heads\": 2, \"d_ff\": 40"};
    static const int row_bytes[] = {24 + 4 * 3, 12 + 4 * 2};
    const double rounding = 1.0 / 254;
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    int32_t tokens[LONGEST * BATCH];
    float got[ROW], want[ROW];
    struct worst worst = {0};
    attncl_model *model = create(configs[_i], 2);
    attncl_decoder *narrow = test_decoder(model, BATCH, ATTNCL_Q8);
    attncl_decoder *wide = test_decoder(model, BATCH, ATTNCL_F32);

    fill_tokens(tokens);
    for (int t = 0; t < LENGTH; ++t) {
        ck_ok(attncl_decoder_step(narrow, tokens + t * BATCH, got));
        ck_ok(attncl_decoder_step(wide, tokens + t * BATCH, want));
        for (int i = 0; i < ROW; ++i)
            worst_add(&worst, t * ROW + i, (double)got[i], (double)want[i], largest_of(want, ROW));
    }
    ck_worst(&worst, 8 * rounding, "Q8");
    ck_assert_double_gt(worst.ratio, rounding / 64);
    memcpy(want, got, sizeof want);
    ck_ok(attncl_decoder_reset(narrow));
    ck_ok(attncl_decoder_prefill(narrow, LENGTH, tokens, got));
    ck_floats(got, want, ROW, 0, (2e-6 + rounding / 64) * largest_of(want, ROW), "a prompt");
    ck_ok(attncl_graph_memory(attncl_decoder_graph(narrow), &report));
    ck_assert_int_eq((int)report.state_bytes, 2 * 2 * 155 * BATCH * row_bytes[_i]);
    attncl_decoder_destroy(narrow);
    attncl_decoder_destroy(wide);
    attncl_model_destroy(model);
}

TEST(rows_in_8_bits_are_of_a_kv_cache)
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    attncl_decoder *decoder = NULL;
    attncl_model *model = create_form(2);

    options.state_dtype = ATTNCL_Q8;
    ck_fails(attncl_decoder_create(model, 1, &options, &decoder), ATTNCL_ERR_UNSUPPORTED,
             "only for layer transformer; layer gmlp keeps its state in F32, F16 or BF16");
    attncl_model_destroy(model);
}

// Scores move by about as much as a key or a value.  None stays.
LOOP_TEST(scores_are_near_those_of_f32, 0, N_FORMS)
{
    int32_t tokens[LONGEST * BATCH];
    float got[ROW], want[ROW];
    struct worst worst = {0};

    if (is_left_out(_i))
        return;
    attncl_model *model = create_form(_i);
    attncl_decoder *narrow = test_decoder(model, BATCH, dtype_of(_i));
    attncl_decoder *wide = test_decoder(model, BATCH, ATTNCL_F32);

    fill_tokens(tokens);
    // gMLP's rows move scores enough after 10 steps.
    for (int t = 0; t < (on_simulator() ? 12 : !test_has_full_sizes() ? 40 : LONGEST); ++t) {
        ck_ok(attncl_decoder_step(narrow, tokens + t * BATCH, got));
        ck_ok(attncl_decoder_step(wide, tokens + t * BATCH, want));
        for (int i = 0; i < ROW; ++i)
            worst_add(&worst, t * ROW + i, (double)got[i], (double)want[i], largest_of(want, ROW));
    }
    ck_worst(&worst, 8 * rounding_of(_i), "%s", attncl_dtype_name(dtype_of(_i)));
    ck_assert_double_gt(worst.ratio, rounding_of(_i) / layers[_i / 2].effect);
    attncl_decoder_destroy(narrow);
    attncl_decoder_destroy(wide);
    attncl_model_destroy(model);
}

static const char *const others[] = {
    "\"layer\": \"aft_local\", \"seq_len\": 155, \"local_window_size\": 0, \"d_ff\": 40",
    "\"layer\": \"aft_simple\", \"d_ff\": 40",
};

// Prompts attend to what is stored: positions beyond windows, lengths with and without padding.  Other sums of a prompt can
// round a key or value to its neighbour.  After the forms, all layers in F32.
LOOP_TEST(a_prompt_is_its_tokens, 0, N_FORMS + COUNT_OF(layers) + COUNT_OF(others))
{
    const int wide = _i - (int)N_FORMS; // < 0: 16 bits
    const bool all = wide >= 0 || test_has_full_sizes();
    static const int64_t lengths[] = {2, 16, 17, 97, 128, 145};
    static float want[LONGEST][ROW];
    int32_t tokens[LONGEST * BATCH];
    float got[ROW];

    if (wide < 0 && is_left_out(_i))
        return;
    attncl_model *model = wide < 0 ? create_form(_i)
                          : wide < (int)COUNT_OF(layers)
                              ? create(layers[wide].config, 2)
                              : create(others[wide - (int)COUNT_OF(layers)], 2);
    attncl_decoder *decoder = test_decoder(model, BATCH, wide < 0 ? dtype_of(_i) : ATTNCL_F32);
    const double tolerance = wide < 0 ? 2e-6 + rounding_of(_i) / 512 : 1e-5;

    fill_tokens(tokens);
    for (int t = 0; t < (on_simulator() ? 20 : all ? LONGEST : 24); ++t)
        ck_ok(attncl_decoder_step(decoder, tokens + t * BATCH, want[t]));
    for (size_t i = 0; i < (on_simulator() ? 2 : all ? COUNT_OF(lengths) : 3); ++i) {
        int64_t t = lengths[i];
        if (all && i % 2 != (size_t)_i % 2 && !test_has_full_sizes())
            continue;
        ck_ok(attncl_decoder_reset(decoder));
        ck_ok(attncl_decoder_prefill(decoder, t, tokens, got));
        for (int j = 0; j < 4; ++j, ++t) {
            ck_floats(got, want[t - 1], ROW, 0, tolerance * largest_of(want[t - 1], ROW),
                      "scores after %d tokens", (int)t);
            ck_ok(attncl_decoder_step(decoder, tokens + t * BATCH, got));
        }
    }
    // Behind another one, at the end of the cache too, where its padding has no place.
    static const int64_t parts[][2] = {{3, 9}, {7, 14}, {70, 75}, {21, 129}};
    for (size_t i = 0; i < (on_simulator() ? 1 : all ? COUNT_OF(parts) : 2); ++i) {
        const int64_t end = parts[i][0] + parts[i][1];
        ck_ok(attncl_decoder_reset(decoder));
        ck_ok(attncl_decoder_prefill(decoder, parts[i][0], tokens, NULL));
        ck_ok(
            attncl_decoder_prefill(decoder, end - parts[i][0], tokens + parts[i][0] * BATCH, got));
        ck_floats(got, want[end - 1], ROW, 0, tolerance * largest_of(want[end - 1], ROW),
                  "scores after %d and %d tokens", (int)parts[i][0], (int)(end - parts[i][0]));
    }
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
}

// The step that draws shares the state, as do prompts.
LOOP_TEST(drawn_tokens_are_those_of_steps, 0, N_FORMS)
{
    enum { PROMPT = 5, DRAWN = 6 };
    int32_t tokens[LONGEST * BATCH], drawn[DRAWN * BATCH];
    float scores[ROW];
    attncl_sampling likeliest = ATTNCL_SAMPLING_INIT;

    if (is_left_out(_i))
        return;
    attncl_model *model = create_form(_i);
    attncl_decoder *decoder = test_decoder(model, BATCH, dtype_of(_i));
    attncl_decoder *stepped = test_decoder(model, BATCH, dtype_of(_i));

    fill_tokens(tokens);
    likeliest.temperature = 0;
    ck_ok(attncl_decoder_prefill(decoder, PROMPT, tokens, NULL));
    ck_ok(attncl_decoder_sample(decoder, DRAWN, tokens + PROMPT * BATCH, &likeliest, drawn));
    for (int t = 0; t < PROMPT; ++t)
        ck_ok(attncl_decoder_step(stepped, tokens + t * BATCH, NULL));
    for (int t = 0; t < DRAWN; ++t) {
        const int32_t *taken = t > 0 ? drawn + (t - 1) * BATCH : tokens + PROMPT * BATCH;
        ck_ok(attncl_decoder_step(stepped, taken, scores));
        for (int b = 0; b < BATCH; ++b)
            for (int c = 0; c < VOCABULARY; ++c)
                ck_assert(scores[b * VOCABULARY + c] <=
                          scores[b * VOCABULARY + drawn[t * BATCH + b]]);
    }
    attncl_decoder_destroy(decoder);
    attncl_decoder_destroy(stepped);
    attncl_model_destroy(model);
}

// What the first layer stores does not depend on what it has stored: the rounded values of F32.
LOOP_TEST(states_are_read_as_they_are_stored, 0, COUNT_OF(dtypes))
{
    enum { LIMIT = 155, COUNT = LIMIT * BATCH * WIDTH, STEPS = 3 };
    static float wide_keys[COUNT];
    static uint16_t keys[COUNT], want[COUNT];
    int32_t tokens[LONGEST * BATCH];
    attncl_shape shape;
    attncl_model *model = create_transformer(1);
    attncl_decoder *narrow = test_decoder(model, BATCH, dtypes[_i]);
    attncl_decoder *wide = test_decoder(model, BATCH, ATTNCL_DTYPE_NONE); // the default
    attncl_graph *g = attncl_decoder_graph(narrow);

    fill_tokens(tokens);
    for (int t = 0; t < STEPS; ++t) {
        ck_ok(attncl_decoder_step(narrow, tokens + t * BATCH, NULL));
        ck_ok(attncl_decoder_step(wide, tokens + t * BATCH, NULL));
    }
    ck_assert_int_eq((int)attncl_graph_state_count(g), 2);
    ck_assert_str_eq(attncl_graph_state_name(g, 0, &shape), "keys");
    ck_assert_int_eq(shape.dtype, dtypes[_i]);
    ck_assert_int_eq(shape.dim[0], LIMIT);
    ck_ok(attncl_graph_state_read(g, "keys", keys, sizeof keys));
    ck_ok(attncl_graph_state_read(attncl_decoder_graph(wide), "keys", wide_keys, sizeof wide_keys));
    ck_ok(attncl_elements_convert(ATTNCL_F32, wide_keys, dtypes[_i], want, COUNT));
    ck_assert_mem_eq(keys, want, sizeof keys);
    ck_ok(attncl_graph_state_write(g, "keys", want, sizeof want));
    ck_fails(attncl_graph_state_read(g, "keys", wide_keys, sizeof wide_keys), ATTNCL_ERR_ARGUMENT,
             dtypes[_i] == ATTNCL_F16 ? "of F16 has 14880 bytes, 29760 were given"
                                      : "of BF16 has 14880 bytes, 29760 were given");
    attncl_decoder_destroy(narrow);
    attncl_decoder_destroy(wide);
    attncl_model_destroy(model);
}

LOOP_TEST(memory_is_halved, 0, 2)
{
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    size_t bytes[2];
    attncl_model *model = create_form(2 * _i);

    for (int i = 0; i < 2; ++i) {
        attncl_decoder *decoder = test_decoder(model, BATCH, i ? ATTNCL_BF16 : ATTNCL_F32);
        ck_ok(attncl_graph_memory(attncl_decoder_graph(decoder), &report));
        bytes[i] = report.state_bytes;
        attncl_decoder_destroy(decoder);
    }
    ck_assert_int_eq((int)bytes[0], 4 * 2 * 155 * BATCH * (_i ? 20 : 2 * WIDTH));
    ck_assert_int_eq((int)bytes[1], (int)bytes[0] / 2);
    attncl_model_destroy(model);
}

// Without a window AFT keeps sums alone, which stay in F32.
LOOP_TEST(other_layers_refuse_by_name, 0, COUNT_OF(others))
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    attncl_decoder *decoder = NULL;
    char name[20], words[80];
    attncl_model *model = create(others[_i], 1);

    ck_assert_int_eq(sscanf(others[_i], "\"layer\": \"%19[a-z_]", name), 1);
    snprintf(words, sizeof words, "state_dtype is F16, layer %s keeps its state in F32: sums",
             name);
    options.state_dtype = ATTNCL_F16;
    ck_fails(attncl_decoder_create(model, 1, &options, &decoder), ATTNCL_ERR_UNSUPPORTED, words);
    ck_assert_ptr_null(decoder);
    options.state_dtype = ATTNCL_F32;
    ck_ok(attncl_decoder_create(model, 1, &options, &decoder));
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
}

TEST(options_are_checked)
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    attncl_decoder *decoder = NULL;
    attncl_model *model = create_transformer(1);

    options.state_dtype = ATTNCL_F64;
    ck_fails(attncl_decoder_create(model, 1, &options, &decoder), ATTNCL_ERR_ARGUMENT,
             "state_dtype is F64, must be F32, F16, BF16 or Q8");
    options.struct_size = 3;
    ck_fails(attncl_decoder_create(model, 1, &options, &decoder), ATTNCL_ERR_ARGUMENT,
             "attncl_decoder_options");
    ck_ok(attncl_decoder_create(model, 1, NULL, &decoder));
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
}
