// SPDX-License-Identifier: MIT
// KV caches that begin small and grow with the text: scores are those of the whole sequence, whatever calls cross the ends.

#include <string.h>

#include "attncl/parameters.h"
#include "model/decoder.h"
#include "model/drawing.h"
#include "support/compare.h"

enum { LIMIT = 70, FIRST = 17, LENGTH = LIMIT, ROW = BATCH * VOCABULARY };

#define LAYER "\"layer\": \"transformer\", \"pos\": \"no_pos\", \"heads\": 3, \"d_ff\": 40"
#define ROPE  LAYER ", \"rope\": true"
static const struct {
    const char *config;
    attncl_dtype type;
    int first; // room of a new decoder
    double tolerance;
} forms[] = {
    {"\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40", ATTNCL_F32, FIRST, 2e-5},
    {LAYER ", \"window\": 5", ATTNCL_F32, FIRST, 2e-5},
    {LAYER ", \"window\": 17, \"window_layers\": [1, 0]", ATTNCL_F32, FIRST, 2e-5}, // a ring later
    {LAYER ", \"n_kv_heads\": 1", ATTNCL_Q8, FIRST, 2e-2},
    {ROPE, ATTNCL_F16, FIRST, 5e-3},
    {"\"layer\": \"aft_local\", \"seq_len\": 70, \"local_window_size\": 9, \"d_ff\": 40",
     ATTNCL_F32, LIMIT, 2e-5},
    {ROPE ", \"rope_scaling\": \"longrope\", \"rope_factor\": 9, "
          "\"rope_original_max_position_embeddings\": 5, "
          "\"rope_short_factor\": [1, 1.2, 1.3, 1.4], \"rope_long_factor\": [2, 3, 4, 5]",
     ATTNCL_F32, 5, 2e-5},
};
enum { N_FORMS = COUNT_OF(forms) };

static int32_t text[LENGTH * BATCH];
static float whole[LENGTH][ROW];

static attncl_model *open_model(int form)
{
    attncl_model *model = create_drawing("lm", forms[form].config, LIMIT);

    for (int i = 0; i < LENGTH * BATCH; ++i)
        text[i] = (7 * i + i * i / 5) % VOCABULARY;
    get_scores(model, LENGTH, text, whole[0]);
    return model;
}

static attncl_decoder *open_small(attncl_model *model, attncl_dtype type)
{
    const attncl_decoder_options options = {.state_dtype = type};
    attncl_decoder *d = NULL;

    ck_ok(attncl__decoder_create_for(model, BATCH, 0, FIRST, &options, &d));
    return d;
}

// Takes n tokens more at once, or a step.
static void take(attncl_decoder *d, int n, double tolerance)
{
    const int64_t at = attncl_decoder_position(d), end = at + n;
    float got[ROW];

    if (n > 1)
        ck_ok(attncl_decoder_prefill(d, n, text + at * BATCH, got));
    else
        ck_ok(attncl_decoder_step(d, text + at * BATCH, got));
    ck_floats(got, whole[end - 1], ROW, 0, tolerance, "%d tokens behind %d", n, (int)at);
}

// Checks the room of the decoder that has the text: longrope's second one begins with twice the short texts.
static void check_room(const attncl_decoder *d, int form, int room, int longrope_room)
{
    const attncl_decoder *at = d->beyond && d->position > d->window ? d->beyond : d;
    const int first = forms[form].first;

    ck_assert_int_eq(at->capacity, first == LIMIT ? LIMIT : first < FIRST ? longrope_room : room);
}

LOOP_TEST(scores_are_those_of_the_sequence, 0, N_FORMS)
{
    const double tolerance = forms[_i].tolerance;
    attncl_model *model = open_model(_i);
    attncl_decoder *d = open_small(model, forms[_i].type);

    const attncl_graph *g = attncl_decoder_graph(d);
    check_room(d, _i, FIRST, 5);
    ck_assert_int_eq(attncl_decoder_limit(d), LIMIT);
    take(d, 8, tolerance);
    take(d, 9, tolerance);
    ck_assert_ptr_eq(attncl_decoder_graph(d), g);
    check_room(d, _i, FIRST, 20);
    take(d, 1, tolerance);
    take(d, 1, tolerance);
    check_room(d, _i, 2 * FIRST, 20);
    take(d, 9, tolerance); // as before the growth
    take(d, 3, tolerance);
    for (int i = 0; i < 5; ++i)
        take(d, 1, tolerance);
    check_room(d, _i, 4 * FIRST, 40);
    take(d, LENGTH - 36 - 1, tolerance);
    take(d, 1, tolerance);
    check_room(d, _i, LIMIT, LIMIT);
    ck_ok(attncl_decoder_reset(d));
    take(d, 8, tolerance);
    attncl_decoder_destroy(d);

    d = open_small(model, forms[_i].type);
    take(d, 2 * FIRST - 1, tolerance); // in one go, whose padding has no room
    take(d, 1, tolerance);
    close_model(model, d);
}

LOOP_TEST(drawn_tokens_are_those_of_steps, 0, N_FORMS)
{
    enum { BEFORE = FIRST - 5, N = 20 };
    static const attncl_sampling s = {sizeof(attncl_sampling), 0.7, 9, 0xfedcba9876543210u};
    int32_t drawn[2][N * BATCH];
    attncl_model *model = open_model(_i);

    for (int at_once = 1; at_once <= N; at_once += N - 1) {
        attncl_decoder *d = open_small(model, forms[_i].type);
        int32_t *to = drawn[at_once > 1];
        take(d, BEFORE, forms[_i].tolerance);
        for (int i = 0; i < N; i += at_once)
            ck_ok(attncl_decoder_sample(
                d, at_once, i ? to + (i - 1) * BATCH : text + BEFORE * BATCH, &s, to + i * BATCH));
        ck_assert_int_eq(attncl_decoder_position(d), BEFORE + N);
        attncl_decoder_destroy(d);
    }
    ck_assert_mem_eq(drawn[0], drawn[1], sizeof drawn[0]);
    attncl_model_destroy(model);
}

TEST(a_decoder_begins_small)
{
    static const int max_len[] = {900, 1025, 100000}, rows[] = {900, 1024, 1024};

    for (int i = 0; i < 3; ++i) {
        attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
        attncl_model *model = create_drawing("lm", forms[0].config, max_len[i]);
        attncl_decoder *d = test_decoder(model, BATCH, ATTNCL_F32);
        ck_assert_int_eq(attncl_decoder_limit(d), max_len[i]);
        ck_ok(attncl_graph_memory(attncl_decoder_graph(d), &report));
        ck_assert_int_eq((int)report.state_bytes, 2 * 2 * rows[i] * BATCH * 24 * 4);
        close_model(model, d);
    }
}

TEST(no_room_changes_nothing)
{
    struct device_caps *caps = &test_context()->caps;
    const struct device_caps kept = *caps;
    attncl_model *model = open_model(0);
    attncl_decoder *d = open_small(model, ATTNCL_F32);
    const attncl_sampling s = ATTNCL_SAMPLING_INIT;
    int32_t drawn[BATCH];

    take(d, FIRST, 2e-5);
    const int32_t *next = text + FIRST * BATCH;
    caps->global_bytes = 100000;
    ck_fails(attncl_decoder_step(d, next, NULL), ATTNCL_ERR_DEVICE_MEMORY, "room for 18 tokens: ");
    ck_fails(attncl_decoder_prefill(d, 20, next, NULL), ATTNCL_ERR_DEVICE_MEMORY,
             "for 37 tokens: ");
    ck_fails(attncl_decoder_sample(d, 1, next, &s, drawn), ATTNCL_ERR_DEVICE_MEMORY, "room for 18");
    *caps = kept;
    ck_assert_int_eq(attncl_decoder_position(d), FIRST);
    take(d, 1, 2e-5);
    take(d, 20, 2e-5);
    close_model(model, d);
}

FIXTURE_ONCE(device_up, device_down);
