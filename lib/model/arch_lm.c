// SPDX-License-Identifier: MIT
//
// lm: a language model, for a sequence, a decode step or a prompt.
//
//     logits = projection(encoder(embed(tokens), causal))
//     logits = projection(feedback transformer(embed(tokens)))
//
// lm_sample: greedy decoding of `steps` tokens.

#include <inttypes.h>
#include <math.h>

#include "base/ckd.h"
#include "model/block_models.h"
#include "model/model.h"

static attncl_status check_lm(void *settings)
{
    struct lm_settings *s = settings;
    s->is_feedback = s->layer >= LAYER_FEEDBACK;
    REQUIRE(s->norm_first || !s->is_feedback, ATTNCL_ERR_FORMAT,
            "norm_first is false, layer %s has its norms first", attncl__layer_word(s->layer));
    attncl__embed_set_limit(&s->embed, s->is_feedback ? attncl__feedback_limit(&s->feedback)
                                                      : attncl__block_limit(&s->encoder.block));
    return ATTNCL_OK;
}

// "feedback" and "feedback_kv" have no encoder, and encode positions by distance.
const struct key attncl__lm_keys[] = {
    {"layer", KEY_WORD, AT(lm_settings, layer), .choices = attncl__lm_layers},
    {"norm_first", KEY_BOOL, AT(lm_settings, norm_first), OR(true)},
    KEYS_OF(attncl__encoder_keys, AT(lm_settings, encoder), OFF("feedback", "feedback_kv")),
    KEYS_OF(attncl__feedback_keys, AT(lm_settings, feedback), ON("feedback")),
    KEYS_OF(attncl__feedback_kv_keys, AT(lm_settings, feedback), ON("feedback_kv")),
    KEYS_OF(attncl__embed_keys, AT(lm_settings, embed), OFF("feedback", "feedback_kv")),
    KEYS_OF(attncl__embed_plain_keys, AT(lm_settings, embed), ON("feedback", "feedback_kv")),
    {"tie_generator", KEY_BOOL, AT(lm_settings, tied), OR(false)},
    {"generator_bias", KEY_PRESENCE, AT(lm_settings, generator_bias), OR(PRESENT_ALWAYS),
     WHEN("tie_generator", "false")},
    {"generator_bias", KEY_PRESENCE, AT(lm_settings, generator_bias), OR(PRESENT_IF_IN_FILE),
     WHEN("tie_generator", "true")},
    {"logit_softcap", KEY_NUMBER, AT(lm_settings, logit_softcap), .min = 0, OR(0)},
    CHECK(check_lm),
    {0},
};

static int64_t lm_vocabulary(const void *settings)
{
    return ((const struct lm_settings *)settings)->embed.n_vocab;
}

int64_t attncl__lm_limit(const void *settings)
{
    return ((const struct lm_settings *)settings)->embed.limit;
}

static bool has_kv_cache(const void *settings)
{
    const struct lm_settings *s = settings;
    return !s->is_feedback && attncl__block_has_kv_cache(&s->encoder.block);
}

// A decoder's limit.  max_len limits a KV cache that nothing else limits.
static int64_t lm_step_limit(const void *settings)
{
    const struct lm_settings *s = settings;
    const int64_t limit = s->embed.limit;
    return limit == 0 && attncl__block_has_kv_cache(&s->encoder.block) ? s->embed.max_len : limit;
}

static attncl_value add_projection(struct build *b, const struct lm_settings *s, attncl_value x)
{
    const char *name = s->is_feedback ? "generator" : "generator.projection";
    const attncl_value y = attncl__add_generator(b, &s->embed, name, s->tied, s->generator_bias, x);
    return s->logit_softcap > 0 ? attncl__softcap(b->graph, y, (float)s->logit_softcap) : y;
}

static attncl_status check_state(const struct build *b, const struct lm_settings *s,
                                 enum decoding kind)
{
    REQUIRE(kind != DECODE_SLOTS || has_kv_cache(s), ATTNCL_ERR_UNSUPPORTED,
            "layer %s has no slots, only layers with a KV cache do", attncl__layer_word(s->layer));
    REQUIRE(kind != DECODE_APPEND || has_kv_cache(s), ATTNCL_ERR_UNSUPPORTED,
            "layer %s goes on step by step, only layers with a KV cache do not",
            attncl__layer_word(s->layer));
    REQUIRE(b->state_dtype != ATTNCL_Q8 || has_kv_cache(s), ATTNCL_ERR_UNSUPPORTED,
            "state_dtype is Q8, only for layer transformer; layer %s keeps its state in %s",
            attncl__layer_word(s->layer),
            s->is_feedback || attncl__block_state_has_type(&s->encoder.block) ? "F32, F16 or BF16"
                                                                              : "F32");
    REQUIRE(!attncl__is_16_bit(b->state_dtype) || s->is_feedback ||
                attncl__block_state_has_type(&s->encoder.block),
            ATTNCL_ERR_UNSUPPORTED,
            "state_dtype is %s, layer %s keeps its state in F32: sums, and no position's keys and "
            "values",
            attncl_dtype_name(b->state_dtype), attncl__layer_word(s->layer));
    return ATTNCL_OK;
}

// A sequence [T, B, C] -> [T, B, C]; a step [B, C] at `position` -> [B, C]; a prompt [T, B, C], at
// `position` [T B] or from 0 on -> its row `last`, [B, C].
static attncl_value add_layers(struct build *b, const struct lm_settings *s,
                               const struct block_call *call, attncl_value x)
{
    const struct decode_at at = {.position = call->position, .last = call->last};
    attncl__params_enter(&b->params, s->is_feedback ? "transformer" : "encoder");
    x = s->is_feedback ? attncl__add_feedback(b, &s->feedback, x, at, NULL)
                       : attncl__add_encoder(b, &s->encoder, call, x);
    attncl__params_leave(&b->params);
    return x;
}

static attncl_value lm_build(struct build *b, const void *settings)
{
    const struct lm_settings *s = settings;
    const attncl_value tokens = attncl__input(b, "tokens");
    attncl__check_length(b, "tokens", 'T', attncl__lm_limit(s));
    const attncl_value targets = b->for_loss ? ATTNCL_NONE_VALUE : attncl__input(b, "targets");

    attncl_value x =
        attncl__add_embedding(b, &s->embed, tokens, ATTNCL_NONE_VALUE, ATTNCL_LAYOUT_TIME_FIRST);
    x = add_layers(b, s, &(struct block_call){.causal = true}, x);
    const attncl_value logits = add_projection(b, s, x);
    if (!targets.id)
        return logits;
    attncl_graph_output(b->graph, "output", logits);
    attncl_graph_output(b->graph, "loss", attncl_cross_entropy(b->graph, logits, targets, NULL));
    return ATTNCL_NONE_VALUE;
}

static attncl_status lm_build_decoding(struct build *b, const void *settings, enum decoding kind,
                                       int64_t n_tokens, int64_t batch)
{
    const struct lm_settings *s = settings;
    const bool draws = kind == DECODE_SAMPLING || kind == DECODE_CROPPED;
    const int64_t one = 1, n_positions = kind == DECODE_SLOTS ? batch : 1;
    const int64_t n_step = n_positions + batch, sequence[2] = {n_tokens, batch};
    const int64_t n_rows = n_tokens * batch;
    struct block_call call = {.causal = true};
    attncl_value step = ATTNCL_NONE_VALUE, window = step, tokens;
    attncl_graph *g = b->graph;
    TRY(check_state(b, s, kind));
    if (draws)
        step = attncl_graph_state(g, "step", ATTNCL_I32, 1, &n_step);
    else if (kind == DECODE_STEP || kind == DECODE_SLOTS)
        step = attncl_graph_input(g, "step", ATTNCL_I32, 1, &n_step);
    if (kind == DECODE_PREFILL || kind == DECODE_APPEND) {
        tokens = attncl_graph_index_input(g, "tokens", 2, sequence, 0, s->embed.n_vocab);
        call.last = call.last_position = attncl_graph_input(g, "last", ATTNCL_I32, 1, &one);
        if (kind == DECODE_APPEND) {
            call.position = attncl_graph_input(g, "positions", ATTNCL_I32, 1, &n_rows);
            call.last_position = attncl_graph_input(g, "last_position", ATTNCL_I32, 1, &one);
            tokens = attncl_reshape(g, tokens, 1, &n_rows);
        }
    } else if (kind == DECODE_CROPPED) {
        tokens = window = attncl_graph_state(g, "window", ATTNCL_I32, 2, sequence);
    } else {
        call.position = attncl_slice(g, step, 0, 0, n_positions);
        tokens = attncl_slice(g, step, 0, n_positions, n_step);
    }

    attncl_value x =
        attncl__add_embedding(b, &s->embed, tokens, call.position, ATTNCL_LAYOUT_TIME_FIRST);
    if (kind == DECODE_APPEND)
        x = attncl_reshape(g, x, 3, (const int64_t[]){n_tokens, batch, s->embed.width});
    x = add_layers(b, s, &call, x);
    if (kind == DECODE_CROPPED)
        x = attncl_reshape(g, attncl_slice(g, x, 0, n_tokens - 1, n_tokens), 2,
                           (const int64_t[]){batch, s->embed.width});
    const attncl_value logits = add_projection(b, s, x);
    if (kind != DECODE_SAMPLING)
        attncl_graph_output(g, "logits", logits);
    if (draws)
        attncl__sample(g, logits, step, window);
    return attncl_graph_status(g);
}

#define LM                                                                                         \
    .build = lm_build, .build_decoding = lm_build_decoding, .vocabulary = lm_vocabulary,           \
    .limit = lm_step_limit, .has_kv_cache = has_kv_cache

const struct arch_class attncl__arch_lm = {
    .example = "{\"layer\": \"transformer\", \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256, \"n_layers\": 2, \"n_vocab\": 100, \"max_len\": 40}",
    .settings_bytes = sizeof(struct lm_settings),
    .keys = attncl__lm_keys,
    .inputs = PORTS(PORT("tokens", INDEX, "T B", .below = "n_vocab"),
                    PORT("targets", INDEX, "T B", .optional = true, .below = "n_vocab")),
    .outputs = PORTS(PORT("output", F32, "T B n_vocab"), PORT("loss", F32, "", .optional = true)),
    .target = TARGET_NEXT_TOKENS,
    LM,
};

// -- lm_sample

struct sample_settings {
    struct lm_settings lm; // first: the lm's functions take these settings too
    int64_t steps;
};

// A prompt [n_prompt, B] and the n_steps tokens drawn after it.
struct sequences {
    int64_t n_prompt, n_steps, batch;
    int32_t *tokens; // [n_prompt + n_steps, B]
    int32_t *drawn;  // the last n_steps rows of tokens
    float *logits;   // [B, V]
};

static attncl_status check_prompt(const struct sample_settings *s, const attncl_array *a)
{
    REQUIRE(a->dtype == ATTNCL_I32 || a->dtype == ATTNCL_I64, ATTNCL_ERR_DTYPE,
            "input tokens has type %s, expected I64 or I32", attncl_dtype_name(a->dtype));
    REQUIRE(a->rank == 2, ATTNCL_ERR_SHAPE, "input tokens has %d axes, expected [T, B]", a->rank);
    REQUIRE(a->dim[0] >= 1, ATTNCL_ERR_SHAPE, "input tokens has length 0, must be at least 1");
    const int64_t limit = attncl__lm_limit(&s->lm);
    int64_t fed; // the last token drawn is not fed
    REQUIRE(ckd_add_i64(a->dim[0], s->steps - 1, &fed) && (limit == 0 || fed <= limit),
            ATTNCL_ERR_SHAPE,
            "a prompt of %" PRId64 " and %" PRId64 " steps: the model takes at most %" PRId64,
            a->dim[0], s->steps, limit);
    return ATTNCL_OK;
}

static attncl_status read_prompt(const struct sample_settings *s, const attncl_array *a,
                                 struct sequences *q)
{
    const int64_t n_vocab = s->lm.embed.n_vocab;
    size_t n_prompt, n_all, n_logits;
    *q = (struct sequences){.n_prompt = a->dim[0], .n_steps = s->steps, .batch = a->dim[1]};
    REQUIRE(ckd_mul_size((size_t)q->n_prompt, (size_t)q->batch, &n_prompt) &&
                ckd_mul_size((size_t)(q->n_prompt + q->n_steps), (size_t)q->batch, &n_all) &&
                ckd_mul_size((size_t)n_vocab, (size_t)q->batch, &n_logits),
            ATTNCL_ERR_SHAPE, "%" PRId64 " sequences are too many", q->batch);
    q->tokens = attncl__alloc_array(n_all, sizeof *q->tokens);
    q->logits = attncl__alloc_array(n_logits, sizeof *q->logits);
    REQUIRE(q->tokens && q->logits, ATTNCL_ERR_NO_MEMORY, "%zu tokens", n_all);
    q->drawn = q->tokens + n_prompt;

    TRY(attncl__prefix_failure(attncl__convert(a->dtype, a->data, ATTNCL_I32, q->tokens, n_prompt),
                               "input tokens"));
    return attncl__check_tokens(n_vocab, (int64_t)n_prompt, q->tokens);
}

// The likeliest class of each row, with the rules of attncl_argmax(): the first of equal ones, never
// NaN; an all-NaN row gives 0.
static void choose_likeliest(const float *logits, int64_t n_rows, int64_t n_classes,
                             int32_t *tokens)
{
    for (int64_t r = 0; r < n_rows; ++r) {
        const float *row = logits + r * n_classes;
        int64_t best = 0;
        for (int64_t c = 1; c < n_classes; ++c)
            if (row[c] > row[best] || (isnan(row[best]) && !isnan(row[c])))
                best = c;
        tokens[r] = (int32_t)best;
    }
}

// Feeds the prompt, at once if it is long enough to repay compiling a graph.
static attncl_status feed_prompt(attncl_decoder *decoder, const struct sequences *q)
{
    enum { AT_ONCE = 32 };
    if (q->n_prompt >= AT_ONCE)
        return attncl_decoder_prefill(decoder, q->n_prompt, q->tokens, q->logits);
    for (int64_t t = 0; t < q->n_prompt; ++t)
        TRY(attncl_decoder_step(decoder, q->tokens + t * q->batch,
                                t + 1 == q->n_prompt ? q->logits : NULL));
    return ATTNCL_OK;
}

// Draws the likeliest token of each step but the first, which q->drawn already holds.
static attncl_status draw_on_host(attncl_decoder *decoder, struct sequences *q)
{
    const int64_t n_vocab = attncl_decoder_vocabulary(decoder);

    for (int64_t t = 1; t < q->n_steps; ++t) {
        int32_t *next = q->drawn + t * q->batch;
        TRY(attncl_decoder_step(decoder, next - q->batch, q->logits));
        choose_likeliest(q->logits, q->batch, n_vocab, next);
    }
    return ATTNCL_OK;
}

// Draws the first token from the prompt's scores, the others on the device, which saves a wait per
// token.  The device stops at scores that are not finite; then decoding starts again on the host.
static attncl_status draw_tokens(attncl_decoder *decoder, struct sequences *q)
{
    enum { MIN_ON_DEVICE = 16 }; // compiling the sampling graph costs as much as 16 waits
    const attncl_sampling best = {sizeof best, 0, 0, 0};

    TRY(feed_prompt(decoder, q));
    choose_likeliest(q->logits, q->batch, attncl_decoder_vocabulary(decoder), q->drawn);
    if (q->n_steps < MIN_ON_DEVICE)
        return draw_on_host(decoder, q);
    const attncl_status status =
        attncl_decoder_sample(decoder, q->n_steps - 1, q->drawn, &best, q->drawn + q->batch);
    if (status == ATTNCL_ERR_DEVICE_MEMORY || status == ATTNCL_ERR_UNSUPPORTED)
        return draw_on_host(decoder, q); // nothing has run yet
    if (status != ATTNCL_ERR_STATE)
        return status;
    TRY(attncl_decoder_reset(decoder));
    TRY(feed_prompt(decoder, q));
    return draw_on_host(decoder, q);
}

static attncl_status run(attncl_model *model, const attncl_array *inputs, size_t n,
                         attncl_results *results)
{
    const struct sample_settings *s = model->settings;
    const attncl_array *prompt = attncl__input_find(inputs, n, "tokens");
    attncl_status status = ATTNCL_OK;
    struct sequences q = {0};
    const attncl_decoder_options options = {.state_dtype = ATTNCL_F32};
    attncl_decoder *decoder = NULL;
    void *all;

    TRY(check_prompt(s, prompt));
    TRY_DONE(read_prompt(s, prompt, &q));
    if (q.n_steps > 0 && q.batch > 0) {
        const int64_t n_fed = q.n_prompt + q.n_steps - 1; // the last token drawn is not fed
        TRY_DONE(attncl__decoder_create_for(model, q.batch, n_fed, n_fed, &options, &decoder));
        TRY_DONE(draw_tokens(decoder, &q));
    }
    const int64_t dim[2] = {q.n_prompt + q.n_steps, q.batch};
    TRY_DONE(attncl__results_add(results, "tokens", ATTNCL_I64, 2, dim, &all));
    for (int64_t i = 0; i < dim[0] * dim[1]; ++i)
        ((int64_t *)all)[i] = q.tokens[i];

done:
    attncl_decoder_destroy(decoder);
    attncl__free(q.tokens);
    attncl__free(q.logits);
    return status;
}

const struct arch_class attncl__arch_lm_sample = {
    .example = "{\"layer\": \"transformer\", \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256, \"n_layers\": 2, \"n_vocab\": 100, \"max_len\": 40, "
               "\"steps\": 9}",
    .settings_bytes = sizeof(struct sample_settings),
    .keys = KEYS(KEYS_OF(attncl__lm_keys, AT(sample_settings, lm)),
                 {"steps", KEY_INT, AT(sample_settings, steps), .max = CONFIG_MAX_TOKENS}),
    .inputs = PORTS(PORT("tokens", INDEX, "T B", .below = "n_vocab")),
    .outputs = PORTS(PORT("tokens", I64, "T+steps B")),
    .run = run,
    LM,
    .no_gradients = true,
};
