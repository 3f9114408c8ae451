// SPDX-License-Identifier: MIT
// Decoding token by token against the whole sequence at once, at every position.

#include <math.h>
#include <string.h>

#include "support/golden.h"

static const char *const names[] = {
    "lm_aft_local",          "lm_aft_window_0", "lm_aft_window_over", "lm_aft_full",
    "lm_aft_simple",         "lm_gmlp",         "lm_transformer",     "lm_transformer_learned",
    "lm_transformer_no_pos", "lm_feedback",     "lm_feedback_kv",     "lm_gpt2",
    "lm_post_norm",          "lm_no_bias",      "lm_aft_post_norm",   "lm_feedback_tied",
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
    ck_ok(attncl_model_open(test_context(), f->golden.path, &f->model));
    ck_ok(attncl_decoder_create(f->model, f->batch, &f->decoder));
    f->n_vocab = attncl_decoder_vocabulary(f->decoder);
    ck_assert_int_eq(f->n_vocab, 11);
}

static void close_decoder(struct fixture *f)
{
    attncl_decoder_destroy(f->decoder);
    attncl_model_close(f->model);
    golden_free(&f->golden);
}

// Feeds all tokens, comparing the scores of every position.
static void feed_and_compare(struct fixture *f)
{
    const attncl_array *want = golden_expected(&f->golden, "output"); // [T, B, V]
    const int64_t row = f->batch * f->n_vocab;
    double largest = 0;
    for (int64_t i = 0; i < f->n_seq * row; ++i) {
        float x;
        memcpy(&x, (const char *)want->data + i * (int64_t)sizeof x, sizeof x);
        largest = fmax(largest, fabs(x));
    }
    for (int64_t t = 0; t < f->n_seq; ++t) {
        ck_assert_int_eq(attncl_decoder_position(f->decoder), t);
        ck_ok(attncl_decoder_step(f->decoder, f->tokens + t * f->batch, f->logits));
        for (int64_t i = 0; i < row; ++i) {
            float x;
            memcpy(&x, (const char *)want->data + (t * row + i) * (int64_t)sizeof x, sizeof x);
            ck_assert_msg(fabs(f->logits[i] - x) <= tolerance * largest,
                          "%s: position %d, score %d is %.9g, expected %.9g", f->golden.path,
                          (int)t, (int)i, f->logits[i], x);
        }
    }
}

LOOP_TEST(every_position_agrees, 0, N_NAMES)
{
    struct fixture f;
    open_decoder(&f, names[_i]);
    feed_and_compare(&f);
    close_decoder(&f);
}

LOOP_TEST(a_reset_forgets, 0, N_NAMES)
{
    struct fixture f;
    open_decoder(&f, names[_i]);
    for (int i = 0; i < 7; ++i)
        ck_ok(attncl_decoder_step(f.decoder, f.tokens + f.batch, NULL));
    ck_ok(attncl_decoder_reset(f.decoder));
    feed_and_compare(&f);
    close_decoder(&f);
}

LOOP_TEST(a_refused_step_changes_nothing, 0, N_NAMES)
{
    struct fixture f;
    const int32_t low[4] = {0, -1, 0, 0}, high[4] = {0, 0, 11, 0};
    open_decoder(&f, names[_i]);
    ck_fails(attncl_decoder_step(f.decoder, low, f.logits), ATTNCL_ERR_ARGUMENT, "-1");
    ck_fails(attncl_decoder_step(f.decoder, high, f.logits), ATTNCL_ERR_ARGUMENT, "11");
    ck_fails(attncl_decoder_step(f.decoder, NULL, f.logits), ATTNCL_ERR_ARGUMENT, "NULL");
    feed_and_compare(&f);
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
    ck_fails(attncl_decoder_create(model, 1, &decoder), ATTNCL_ERR_UNSUPPORTED, "gmlp_block");
    golden_close(&golden, model);

    model = golden_open(&golden, "lm_gmlp");
    ck_fails(attncl_decoder_create(model, 0, &decoder), ATTNCL_ERR_ARGUMENT, "batch is 0");
    ck_assert_ptr_null(decoder);
    golden_close(&golden, model);
}
