// SPDX-License-Identifier: MIT
// Decoding token by token against the whole sequence at once, at every position.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/parameters.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/op_test.h"

static const char *const names[] = {
    "lm_aft_local",
    "lm_aft_window_0",
    "lm_aft_window_over",
    "lm_aft_full",
    "lm_aft_simple",
    "lm_gmlp",
    "lm_transformer",
    "lm_transformer_learned",
    "lm_transformer_no_pos",
    "lm_feedback",
    "lm_feedback_kv",
    "lm_gpt2",
    "lm_post_norm",
    "lm_no_bias",
    "lm_aft_post_norm",
    "lm_feedback_tied",
    "lm_shared",
    "lm_rotary",
    "lm_parallel",
    "lm_windows",
    "lm_alibi",
    "lm_padded",
};
enum { N_NAMES = sizeof names / sizeof names[0] };

// Both ways sum the same terms in another order: see test_golden.c, twice.
static const double tolerance = 2 * 30 * 14 * 6e-8;

struct fixture {
    struct golden golden;
    attncl_model *model;
    attncl_decoder *decoder;
    int64_t n_seq, batch, n_vocab;
    int32_t tokens[16 * 4]; // [T, B]
    float logits[4 * 16];   // [B, V]
};

static void open_decoder(struct fixture *f, const char *name)
{
    *f = (struct fixture){.model = NULL};
    golden_load(&f->golden, name);
    const attncl_array *tokens = golden_input(&f->golden, "tokens");
    f->n_seq = tokens->dim[0];
    f->batch = tokens->dim[1];
    ck_assert_int_eq(tokens->dtype, ATTNCL_I64);
    ck_assert_int_le(f->n_seq, 16);
    ck_assert_int_le(f->batch, 4);
    for (int64_t i = 0; i < f->n_seq * f->batch; ++i) {
        int64_t token;
        memcpy(&token, (const char *)tokens->data + i * (int64_t)sizeof token, sizeof token);
        f->tokens[i] = (int32_t)token;
    }
    ck_ok(attncl_model_open(test_context(), f->golden.path, NULL, &f->model));
    ck_ok(attncl_decoder_create(f->model, f->batch, NULL, &f->decoder));
    f->n_vocab = attncl_decoder_vocabulary(f->decoder);
    ck_assert_int_eq(f->n_vocab, 11);
}

static void close_decoder(struct fixture *f)
{
    attncl_decoder_destroy(f->decoder);
    attncl_model_destroy(f->model);
    golden_free(&f->golden);
}

// The scores after position t.
static void compare(const struct fixture *f, int64_t t)
{
    const attncl_array *want = golden_expected(&f->golden, "output"); // [T, B, V]
    const int64_t row = f->batch * f->n_vocab;
    float *scores = malloc(want->bytes);
    ck_assert_ptr_nonnull(scores);
    memcpy(scores, want->data, want->bytes); // aligned
    ck_floats(f->logits, scores + t * row, row, 0, tolerance * largest_of(scores, f->n_seq * row),
              "%s: scores of position %d", f->golden.path, (int)t);
    free(scores);
}

// Feeds the tokens from `first` on, comparing the scores of every position.
static void feed_from(struct fixture *f, int64_t first)
{
    for (int64_t t = first; t < f->n_seq; ++t) {
        ck_assert_int_eq(attncl_decoder_position(f->decoder), t);
        ck_ok(attncl_decoder_step(f->decoder, f->tokens + t * f->batch, f->logits));
        compare(f, t);
    }
}

LOOP_TEST(a_refused_step_changes_nothing, 0, N_NAMES)
{
    struct fixture f;
    const int32_t low[4] = {0, -1, 0, 0}, high[4] = {0, 0, 11, 0};
    open_decoder(&f, names[_i]);
    ck_fails(attncl_decoder_step(f.decoder, low, f.logits), ATTNCL_ERR_ARGUMENT, "-1");
    ck_fails(attncl_decoder_step(f.decoder, high, f.logits), ATTNCL_ERR_ARGUMENT, "11");
    ck_fails(attncl_decoder_step(f.decoder, NULL, f.logits), ATTNCL_ERR_ARGUMENT, "NULL");
    feed_from(&f, 0);
    ck_fails(attncl_decoder_step(f.decoder, high, f.logits), ATTNCL_ERR_ARGUMENT, "11");
    ck_assert_int_eq(attncl_decoder_position(f.decoder), f.n_seq);
    close_decoder(&f);
}

LOOP_TEST(the_limit_is_kept, 0, N_NAMES)
{
    struct fixture f;
    open_decoder(&f, names[_i]);
    ck_assert_int_eq(attncl_decoder_limit(f.decoder), 12);
    ck_assert_int_eq(attncl_model_decoder_limit(f.model), 12);
    for (int i = 0; i < 12; ++i)
        ck_ok(attncl_decoder_step(f.decoder, f.tokens, NULL));
    ck_fails(attncl_decoder_step(f.decoder, f.tokens, f.logits), ATTNCL_ERR_STATE, "12");
    ck_assert_int_eq(attncl_decoder_position(f.decoder), 12);
    close_decoder(&f);
}

TEST(only_language_models_decode)
{
    struct golden golden;
    attncl_decoder *decoder = NULL;
    attncl_model *model = golden_open(&golden, "gmlp_block");
    ck_fails(attncl_decoder_create(model, 1, NULL, &decoder), ATTNCL_ERR_UNSUPPORTED, "gmlp_block");
    golden_close(&golden, model);

    model = golden_open(&golden, "lm_gmlp");
    ck_fails(attncl_decoder_create(model, 0, NULL, &decoder), ATTNCL_ERR_ARGUMENT, "batch is 0");
    ck_assert_ptr_null(decoder);
    golden_close(&golden, model);
}

// After a prompt of any length, and after another one in two parts, steps go on as if all were steps; a reset forgets.
LOOP_TEST(a_prompt_is_its_tokens, 0, N_NAMES)
{
    struct fixture f;
    open_decoder(&f, names[_i]);
    for (int64_t n = 1; n <= f.n_seq; n += on_simulator() ? 4 : 1) {
        ck_ok(attncl_decoder_prefill(f.decoder, n, f.tokens, f.logits));
        compare(&f, n - 1);
        feed_from(&f, n);
        ck_ok(attncl_decoder_reset(f.decoder));
    }
    ck_ok(attncl_decoder_prefill(f.decoder, 2, f.tokens, NULL));
    ck_ok(attncl_decoder_prefill(f.decoder, f.n_seq - 3, f.tokens + 2 * f.batch, f.logits));
    compare(&f, f.n_seq - 2);
    feed_from(&f, f.n_seq - 1);
    close_decoder(&f);
}

// Up to the limit behind 1, 2 and 4 tokens, as its steps would; and a step on, from what it has stored.
LOOP_TEST(a_prompt_behind_others, 0, N_NAMES)
{
    enum { LIMIT = 12 };
    struct fixture f;
    int32_t tokens[LIMIT * 4];
    float want[LIMIT][4 * 16];
    open_decoder(&f, names[_i]);
    const int64_t given = f.n_seq * f.batch, row = f.batch * f.n_vocab;
    for (int64_t i = 0; i < LIMIT * f.batch; ++i)
        tokens[i] = f.tokens[(i + i / given) % given];
    for (int64_t t = 0; t < LIMIT; ++t)
        ck_ok(attncl_decoder_step(f.decoder, tokens + t * f.batch, want[t]));
    for (int64_t first = 1; first <= 4; first *= 2) {
        const int64_t end = first == 2 ? LIMIT - 1 : LIMIT;
        ck_ok(attncl_decoder_reset(f.decoder));
        ck_ok(attncl_decoder_prefill(f.decoder, first, tokens, NULL));
        ck_ok(attncl_decoder_prefill(f.decoder, end - first, tokens + first * f.batch, f.logits));
        ck_assert_int_eq(attncl_decoder_position(f.decoder), end);
        ck_floats(f.logits, want[end - 1], row, 0, tolerance * largest_of(want[end - 1], row),
                  "%s behind %d tokens", names[_i], (int)first);
        if (end == LIMIT)
            continue;
        ck_ok(attncl_decoder_step(f.decoder, tokens + end * f.batch, f.logits));
        ck_floats(f.logits, want[end], row, 0, tolerance * largest_of(want[end], row),
                  "%s: a step on", names[_i]);
    }
    close_decoder(&f);
}

static const struct {
    const char *layer;
    attncl_dtype dtype;
} states[] = {
    {"\"transformer\", \"heads\": 3, \"d_ff\": 40", ATTNCL_F32},
    {"\"transformer\", \"heads\": 3, \"d_ff\": 40", ATTNCL_F16},
    {"\"transformer\", \"heads\": 3, \"d_ff\": 40", ATTNCL_BF16},
    {"\"transformer\", \"heads\": 3, \"n_kv_heads\": 1, \"window\": 30, \"d_ff\": 40", ATTNCL_F32},
    {"\"transformer\", \"heads\": 3, \"n_kv_heads\": 1, \"window\": 30, \"d_ff\": 40", ATTNCL_Q8},
    {"\"feedback\", \"heads\": 3, \"d_ff\": 40", ATTNCL_F32},
    {"\"feedback_kv\", \"heads\": 3, \"d_ff\": 40", ATTNCL_F32},
    {"\"aft_local\", \"seq_len\": 90, \"local_window_size\": 9, \"d_ff\": 40", ATTNCL_F32},
    {"\"aft_full\", \"seq_len\": 90, \"d_ff\": 40", ATTNCL_F32},
    {"\"aft_simple\", \"d_ff\": 40", ATTNCL_F32},
    {"\"aft_conv\", \"heads\": 3, \"window_size\": 7, \"d_ff\": 40", ATTNCL_F32},
    {"\"gmlp\", \"seq_len\": 90, \"d_ffn\": 40", ATTNCL_F32},
};
enum { N_STATES = COUNT_OF(states) };

static void take(attncl_decoder *decoder, int64_t n, const int32_t *tokens, float *logits)
{
    if (n > 1)
        ck_ok(attncl_decoder_prefill(decoder, n, tokens, logits));
    else
        ck_ok(attncl_decoder_step(decoder, tokens, logits));
}

// A text begins with what is stored as it is, here NaN: steps, a prompt, one behind it and steps do not see it.
LOOP_TEST(a_reset_begins_anew, 0, N_STATES)
{
    enum { BATCH = 2, VOCABULARY = 13, LIMIT = 90, LARGEST = 8192 * BATCH * 24 * 4 };
    static const int64_t lengths[] = {1, 1, 1, 0, 21, 1, 33, 1, 0, 70, 1, 9};
    static uint8_t nan[LARGEST];
    attncl_model *model = NULL;
    attncl_shape shape;
    float got[BATCH * VOCABULARY], want[BATCH * VOCABULARY];
    int32_t tokens[70 * BATCH];
    char config[300];

    snprintf(config, sizeof config,
             "{\"layer\": %s, \"d_model\": 24, \"n_layers\": 1, \"n_vocab\": %d, \"max_len\": %d}",
             states[_i].layer, VOCABULARY, LIMIT);
    ck_ok(attncl_model_create(test_context(), "lm", config, 5, &model));
    attncl_decoder *const fresh = test_decoder(model, BATCH, states[_i].dtype);
    attncl_decoder *const used = test_decoder(model, BATCH, states[_i].dtype);
    memset(nan, 0xff, sizeof nan);
    for (int i = 0; i < 70 * BATCH; ++i)
        tokens[i] = (i * 7 + i * i / 5) % VOCABULARY;
    for (size_t k = 0; k < COUNT_OF(lengths); ++k) {
        attncl_graph *g = attncl_decoder_graph(used);
        for (size_t i = 0; (k == 0 || lengths[k] == 0) && i < attncl_graph_state_count(g); ++i) {
            const char *name = attncl_graph_state_name(g, i, &shape);
            size_t bytes = attncl_dtype_bytes(shape.dtype);
            for (int axis = 0; axis < shape.rank; ++axis)
                bytes *= (size_t)shape.dim[axis];
            ck_assert_uint_le(bytes, sizeof nan);
            ck_ok(attncl_graph_state_write(g, name, nan, bytes));
        }
        if (lengths[k] > 0) {
            take(used, lengths[k], tokens, got);
            take(fresh, lengths[k], tokens, want);
            ck_assert_msg(isfinite(want[0]) && memcmp(got, want, sizeof want) == 0, "%s, %d tokens",
                          config, (int)lengths[k]);
        } else {
            ck_ok(attncl_decoder_reset(used));
            ck_ok(attncl_decoder_reset(fresh));
        }
    }
    attncl_decoder_destroy(used);
    attncl_decoder_destroy(fresh);
    attncl_model_destroy(model);
}

LOOP_TEST(a_refused_prompt_changes_nothing, 0, N_NAMES)
{
    struct fixture f;
    open_decoder(&f, names[_i]);
    int32_t wrong[16 * 4];
    for (int64_t at = 0; at <= 3; at += 3) {
        memcpy(wrong, f.tokens, sizeof wrong);
        wrong[2 * f.batch] = 11;
        ck_fails(attncl_decoder_prefill(f.decoder, 3, wrong, f.logits), ATTNCL_ERR_ARGUMENT, "11");
        ck_fails(attncl_decoder_prefill(f.decoder, 0, wrong, f.logits), ATTNCL_ERR_ARGUMENT,
                 "0 tokens");
        ck_fails(attncl_decoder_prefill(f.decoder, 3, NULL, f.logits), ATTNCL_ERR_ARGUMENT, "NULL");
        ck_fails(attncl_decoder_prefill(f.decoder, 13, f.tokens, f.logits), ATTNCL_ERR_STATE,
                 "at most 12");
        ck_assert_int_eq(attncl_decoder_position(f.decoder), at);
        if (at == 0)
            ck_ok(attncl_decoder_prefill(f.decoder, 3, f.tokens, NULL));
    }
    feed_from(&f, 3);
    close_decoder(&f);
}
