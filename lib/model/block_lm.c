// SPDX-License-Identifier: MIT
//
// logits = projection(encoder(embed(tokens), causal))
// logits = projection(feedback transformer(embed(tokens)))

#include <inttypes.h>

#include "layer/decoding.h"
#include "model/block_models.h"

static attncl_status check(void *settings)
{
    struct lm_settings *s = settings;
    s->is_feedback = s->layer >= LAYER_FEEDBACK;
    REQUIRE(s->norm_first || !s->is_feedback, ATTNCL_ERR_FORMAT,
            "norm_first is false, layer %s has its norms first", attncl__layer_word(s->layer));
    attncl__embed_set_limit(&s->embed, s->is_feedback ? attncl__feedback_limit(&s->feedback)
                                                      : attncl__block_limit(&s->encoder.block));
    return ATTNCL_OK;
}

// "feedback" and "feedback_kv" are layers of no encoder, and tell positions apart by distance.
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
    CHECK(check),
    {0},
};

int64_t attncl__lm_vocabulary(const void *settings)
{
    return ((const struct lm_settings *)settings)->embed.n_vocab;
}

int64_t attncl__lm_limit(const void *settings)
{
    return ((const struct lm_settings *)settings)->embed.limit;
}

// Where nothing else bounds a cache of all positions, max_len does.
int64_t attncl__lm_step_limit(const void *settings)
{
    const struct lm_settings *s = settings;
    const int64_t limit = s->embed.limit;
    return limit == 0 && attncl__block_keeps_all(&s->encoder.block) ? s->embed.max_len : limit;
}

static attncl_value project(struct build *b, const struct lm_settings *s, attncl_value x)
{
    const char *name = s->is_feedback ? "generator" : "generator.projection";
    const attncl_value y = attncl__generator(b, &s->embed, name, s->tied, s->generator_bias, x);
    return s->logit_softcap > 0 ? attncl__softcap(b->graph, y, (float)s->logit_softcap) : y;
}

static attncl_status check_state(const struct build *b, const struct lm_settings *s,
                                 enum decoding kind)
{
    REQUIRE(kind != DECODE_SLOTS || (!s->is_feedback && attncl__block_keeps_all(&s->encoder.block)),
            ATTNCL_ERR_UNSUPPORTED, "layer %s has no slots, only layers with a KV cache do",
            attncl__layer_word(s->layer));
    REQUIRE(
        kind != DECODE_APPEND || (!s->is_feedback && attncl__block_keeps_all(&s->encoder.block)),
        ATTNCL_ERR_UNSUPPORTED, "layer %s goes on step by step, only layers with a KV cache do not",
        attncl__layer_word(s->layer));
    REQUIRE(b->state_dtype != ATTNCL_Q8 ||
                (!s->is_feedback && attncl__block_keeps_all(&s->encoder.block)),
            ATTNCL_ERR_UNSUPPORTED,
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

// [T, B, C] -> [T, B, C], or [B, C] at a position -> [B, C], or a prompt [T, B, C] -> [B, C] at `last`, with
// positions [T B] or from 0 on.
static attncl_value layers(struct build *b, const struct lm_settings *s, attncl_value position,
                            attncl_value last, attncl_value x)
{
    const struct block_call call = {.causal = true, .position = position, .last = last};
    const struct decode_at at = {position, last};
    attncl__params_enter(&b->params, s->is_feedback ? "transformer" : "encoder");
    x = s->is_feedback ? attncl__feedback(b, &s->feedback, x, at, NULL)
                       : attncl__encoder(b, &s->encoder, &call, x);
    attncl__params_leave(&b->params);
    return x;
}

attncl_value attncl__lm_build(struct build *b, const void *settings)
{
    const struct lm_settings *s = settings;
    const attncl_value tokens = attncl__input(b, "tokens");
    attncl__check_length(b, "tokens", 'T', attncl__lm_limit(s));
    const attncl_value targets = b->for_loss ? ATTNCL_NONE_VALUE : attncl__input(b, "targets");

    attncl_value x =
        attncl__embed(b, &s->embed, tokens, ATTNCL_NONE_VALUE, ATTNCL_LAYOUT_TIME_FIRST);
    x = layers(b, s, ATTNCL_NONE_VALUE, ATTNCL_NONE_VALUE, x);
    const attncl_value logits = project(b, s, x);
    if (!targets.id)
        return logits;
    attncl_graph_output(b->graph, "output", logits);
    attncl_graph_output(b->graph, "loss", attncl_cross_entropy(b->graph, logits, targets, NULL));
    return ATTNCL_NONE_VALUE;
}

attncl_status attncl__lm_build_decoding(struct build *b, const void *settings, enum decoding kind,
                                        int64_t n_tokens, int64_t batch)
{
    const struct lm_settings *s = settings;
    const bool draws = kind == DECODE_SAMPLING || kind == DECODE_CROPPED;
    const int64_t one = 1, n_positions = kind == DECODE_SLOTS ? batch : 1;
    const int64_t n_step = n_positions + batch, sequence[2] = {n_tokens, batch};
    const int64_t n_rows = n_tokens * batch;
    attncl_value step = ATTNCL_NONE_VALUE, position = step, last = step, window = step, tokens;
    attncl_graph *g = b->graph;
    TRY(check_state(b, s, kind));
    if (draws)
        step = attncl_graph_state(g, "step", ATTNCL_I32, 1, &n_step);
    else if (kind == DECODE_STEP || kind == DECODE_SLOTS)
        step = attncl_graph_input(g, "step", ATTNCL_I32, 1, &n_step);
    if (kind == DECODE_PREFILL || kind == DECODE_APPEND) {
        tokens = attncl_graph_index_input(g, "tokens", 2, sequence, 0, s->embed.n_vocab);
        last = attncl_graph_input(g, "last", ATTNCL_I32, 1, &one);
        if (kind == DECODE_APPEND) {
            position = attncl_graph_input(g, "positions", ATTNCL_I32, 1, &n_rows);
            tokens = attncl_reshape(g, tokens, 1, &n_rows);
        }
    } else if (kind == DECODE_CROPPED) {
        tokens = window = attncl_graph_state(g, "window", ATTNCL_I32, 2, sequence);
    } else {
        position = attncl_slice(g, step, 0, 0, n_positions);
        tokens = attncl_slice(g, step, 0, n_positions, n_step);
    }

    attncl_value x = attncl__embed(b, &s->embed, tokens, position, ATTNCL_LAYOUT_TIME_FIRST);
    if (kind == DECODE_APPEND)
        x = attncl_reshape(g, x, 3, (const int64_t[]){n_tokens, batch, s->embed.width});
    x = layers(b, s, position, last, x);
    if (kind == DECODE_CROPPED)
        x = attncl_reshape(g, attncl_slice(g, x, 0, n_tokens - 1, n_tokens), 2,
                           (const int64_t[]){batch, s->embed.width});
    const attncl_value logits = project(b, s, x);
    if (kind != DECODE_SAMPLING)
        attncl_graph_output(g, "logits", logits);
    if (draws)
        attncl__sample(g, logits, step, window);
    return attncl_graph_status(g);
}
