// SPDX-License-Identifier: MIT
//
// logits = projection(encoder(embedding(tokens) * sqrt(C) + positions, causal))
// logits = projection(feedback transformer(embedding(tokens)))
//
// Without positions the embedding is not scaled.

#include <inttypes.h>
#include <math.h>

#include "attncl/ops.h"
#include "base/try.h"
#include "model/block_lm.h"
#include "model/config.h"

// "feedback" and "feedback_kv" are layers of no encoder.
static attncl_status configure_layers(struct config *config, struct lm_settings *s)
{
    const bool shared = attncl__config_is(config, "layer", "feedback_kv");
    s->is_feedback = attncl__config_is(config, "layer", "feedback") || shared;
    if (s->is_feedback)
        return attncl__feedback_configure(config, shared, &s->feedback);
    return attncl__encoder_configure(config, &s->encoder);
}

attncl_status attncl__lm_configure(struct config *config, void *settings)
{
    static const struct choice positions[] = {
        {"fixed_pos", LM_FIXED},
        {"learned_pos", LM_LEARNED},
        {"no_pos", LM_NONE},
    };
    struct lm_settings *s = settings;
    int pos;
    TRY(configure_layers(config, s));
    TRY(attncl__config_int(config, "n_vocab", 1, &s->n_vocab));
    s->positions = LM_NONE;
    if (s->is_feedback) // memories are told apart by distance
        return ATTNCL_OK;
    TRY(attncl__config_choice(config, "pos", positions, N_CHOICES(positions), "fixed_pos", &pos));
    s->positions = (enum lm_positions)pos;
    return attncl__config_int_or(config, "max_len", 1, 5000, &s->max_len);
}

int64_t attncl__lm_vocabulary(const void *settings)
{
    return ((const struct lm_settings *)settings)->n_vocab;
}

int64_t attncl__lm_limit(const void *settings)
{
    const struct lm_settings *s = settings;
    if (s->is_feedback)
        return attncl__feedback_limit(&s->feedback);
    const int64_t layers = attncl__block_limit(&s->encoder.block);
    if (s->positions == LM_NONE)
        return layers;
    return layers > 0 && layers < s->max_len ? layers : s->max_len;
}

// Where nothing else bounds a cache of all positions, max_len does.
int64_t attncl__lm_step_limit(const void *settings)
{
    const struct lm_settings *s = settings;
    const int64_t limit = attncl__lm_limit(s);
    if (s->is_feedback)
        return limit;
    return limit == 0 && attncl__block_keeps_all(&s->encoder.block) ? s->max_len : limit;
}

static int64_t width_of(const struct lm_settings *s)
{
    return s->is_feedback ? s->feedback.d_model : attncl__block_width(&s->encoder.block);
}

static const char *layers_name(const struct lm_settings *s)
{
    return s->is_feedback ? "transformer" : "encoder";
}

static const char *projection_name(const struct lm_settings *s)
{
    return s->is_feedback ? "generator" : "generator.projection";
}

struct embed_params {
    attncl_value weight; // [V, C]
    attncl_value table;  // [max_len, 1, C], null without positions
};

static void embed_params(struct params *p, const struct lm_settings *s, struct embed_params *ret)
{
    const int64_t width = width_of(s);
    const char *table = "positional_encodings";

    ret->weight = PARAM(p, s->positions == LM_NONE ? "weight" : "linear.weight", s->n_vocab, width);
    ret->table = ATTNCL_NONE_VALUE;
    if (s->positions == LM_LEARNED)
        ret->table = PARAM(p, table, s->max_len, 1, width);
    if (s->positions == LM_FIXED)
        ret->table = attncl__param_sinusoid(p, table, s->max_len, attncl__lm_limit(s), width);
}

struct linear_params {
    attncl_value weight, bias; // [V, C], [V]
};

static struct linear_params projection_params(struct params *p, const struct lm_settings *s)
{
    struct linear_params projection;
    projection.weight = PARAM(p, "weight", s->n_vocab, width_of(s));
    projection.bias = PARAM(p, "bias", s->n_vocab);
    return projection;
}

void attncl__lm_load(struct params *p, const void *settings)
{
    const struct lm_settings *s = settings;
    struct embed_params ignored;
    attncl__params_enter(p, "src_embed");
    embed_params(p, s, &ignored);
    attncl__params_leave(p);
    attncl__params_enter(p, "%s", layers_name(s));
    if (s->is_feedback)
        attncl__feedback_load(p, &s->feedback);
    else
        attncl__encoder_load(p, &s->encoder);
    attncl__params_leave(p);
    attncl__params_enter(p, "%s", projection_name(s));
    projection_params(p, s);
    attncl__params_leave(p);
}

// tokens [T, B] -> [T, B, C], or [B] at a position -> [B, C].
static attncl_value embed(struct build *b, const struct lm_settings *s, attncl_value tokens,
                          attncl_value position)
{
    attncl_graph *g = b->graph;
    const int64_t width = width_of(s);
    const float scale = s->positions == LM_NONE ? 1.0f : (float)sqrt((double)width);
    struct embed_params params;

    attncl__params_enter(&b->params, "src_embed");
    embed_params(&b->params, s, &params);
    attncl_value x = attncl_embedding(g, tokens, params.weight, scale);
    if (s->positions != LM_NONE) {
        const int64_t n = attncl_graph_shape(g, params.table).dim[0];
        const int64_t dim[2] = {n, width};
        const attncl_value table = attncl_reshape(g, params.table, 2, dim);
        x = position.id ? attncl_add_position_at(g, x, table, position)
                        : attncl_add_positions(g, x, table, ATTNCL_LAYOUT_TIME_FIRST);
    }
    attncl__params_leave(&b->params);
    return x;
}

// [..., C] -> [..., V]
static attncl_value project(struct build *b, const struct lm_settings *s, attncl_value x)
{
    attncl__params_enter(&b->params, "%s", projection_name(s));
    const struct linear_params projection = projection_params(&b->params, s);
    const attncl_value y = attncl_linear(b->graph, x, projection.weight, projection.bias);
    attncl__params_leave(&b->params);
    return y;
}

// [T, B, C] -> [T, B, C], or [B, C] at a position -> [B, C].
static attncl_status layers(struct build *b, const struct lm_settings *s, attncl_value position,
                            attncl_value *x)
{
    attncl_status status = ATTNCL_OK;
    attncl__params_enter(&b->params, "%s", layers_name(s));
    if (s->is_feedback)
        status = position.id ? attncl__feedback_step(b, &s->feedback, *x, position, x)
                             : attncl__feedback(b, &s->feedback, *x, x, NULL);
    else if (position.id)
        *x = attncl__encoder_step(b, &s->encoder, *x, position);
    else
        *x = attncl__encoder(b, &s->encoder, *x, true, ATTNCL_NONE_VALUE);
    attncl__params_leave(&b->params);
    return status;
}

attncl_status attncl__lm_build(struct build *b, const void *settings)
{
    const struct lm_settings *s = settings;
    const int64_t sequence[2] = {AXIS('T'), AXIS('B')};
    attncl_value tokens, targets = ATTNCL_NONE_VALUE;
    TRY(attncl__input_index(b, "tokens", 2, sequence, s->n_vocab, &tokens));
    const int64_t *dim = attncl__input_find(b, "tokens")->dim;
    TRY(attncl__check_length("tokens", dim[0], attncl__lm_limit(s)));
    if (attncl__input_given(b, "targets"))
        TRY(attncl__input_index(b, "targets", 2, dim, s->n_vocab, &targets));

    attncl_value x = embed(b, s, tokens, ATTNCL_NONE_VALUE);
    TRY(layers(b, s, ATTNCL_NONE_VALUE, &x));
    const attncl_value logits = project(b, s, x);
    attncl_graph_output(b->graph, "output", logits);
    if (targets.id)
        attncl_graph_output(
            b->graph, "loss",
            attncl_cross_entropy(b->graph, logits, targets, ATTNCL_REDUCE_MEAN, -1));
    return ATTNCL_OK;
}

attncl_status attncl__lm_build_step(struct build *b, const void *settings, int64_t batch)
{
    const struct lm_settings *s = settings;
    attncl_graph *g = b->graph;
    const int64_t one = 1;
    const attncl_value tokens = attncl_graph_index_input(g, "tokens", 1, &batch, 0, s->n_vocab);
    const attncl_value position = attncl_graph_input(g, "position", ATTNCL_I32, 1, &one);

    attncl_value x = embed(b, s, tokens, position);
    TRY(layers(b, s, position, &x));
    attncl_graph_output(g, "logits", project(b, s, x));
    return attncl_graph_status(g);
}
