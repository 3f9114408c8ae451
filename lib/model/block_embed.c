// SPDX-License-Identifier: MIT
//
// Keys, parameters and nodes of an embedding with positions, and of the generator of token scores.

#include <inttypes.h>
#include <math.h>

#include "model/block_models.h"

static const struct choice positions[] = {
    {"fixed_pos", EMBED_FIXED},
    {"learned_pos", EMBED_LEARNED},
    {"no_pos", EMBED_NO_POSITIONS},
    {0},
};

static double default_scale(const void *settings)
{
    const struct embed_settings *s = settings;
    return s->positions == EMBED_NO_POSITIONS ? 1 : sqrt((double)s->width);
}

static const struct key sizes[] = {
    {"d_model", KEY_INT, AT(embed_settings, width), .min = 1},
    {"n_vocab", KEY_INT, AT(embed_settings, n_vocab), .min = 1},
    {0},
};

static const struct key common[] = {
    {"embed_scale", KEY_NUMBER, AT(embed_settings, scale), OR_FROM(default_scale)},
    {"padding_idx", KEY_INT, AT(embed_settings, padding), .min = -1, OR(-1)},
    {"embed_norm", KEY_BOOL, AT(embed_settings, norm), OR(false)},
    {"embed_dropout", KEY_BOOL, AT(embed_settings, dropped), OR(false)},
    NORM_EPS_KEY(AT(embed_settings, norm_eps)),
    {0},
};

static const struct key order[] = {
    {"pos", KEY_WORD, AT(embed_settings, positions), .choices = positions, OR_WORD("fixed_pos")},
    {"max_len", KEY_INT, AT(embed_settings, max_len), .min = 1, OR(5000)},
    {0},
};

static attncl_status check_padding(void *settings)
{
    const struct embed_settings *s = settings;
    REQUIRE(s->padding < s->n_vocab, ATTNCL_ERR_FORMAT,
            "padding_idx is %" PRId64 ", must be below n_vocab, %" PRId64, s->padding, s->n_vocab);
    return ATTNCL_OK;
}

const struct key attncl__embed_plain_keys[] = {
    SETTING(KEY_WORD, AT(embed_settings, positions), .otherwise = EMBED_NO_POSITIONS),
    KEYS_OF(sizes, 0),
    KEYS_OF(common, 0),
    CHECK(check_padding),
    {0},
};

const struct key attncl__embed_keys[] = {
    KEYS_OF(order, 0), KEYS_OF(sizes, 0), KEYS_OF(common, 0), CHECK(check_padding), {0},
};

const struct key attncl__embed_sized_keys[] = {
    KEYS_OF(order, 0),
    {"d_model", KEY_INT, AT(embed_settings, width), .min = 1},
    KEYS_OF(common, 0),
    {0},
};

void attncl__embed_set_limit(struct embed_settings *s, int64_t layers_limit)
{
    s->limit = layers_limit;
    if (s->positions != EMBED_NO_POSITIONS && (layers_limit == 0 || s->max_len < layers_limit))
        s->limit = s->max_len;
}

static const char *get_scope(const struct embed_settings *s)
{
    return s->name ? s->name : "src_embed";
}

static attncl_value declare_weight(struct params *p, const struct embed_settings *s)
{
    const char *name = s->positions == EMBED_NO_POSITIONS ? "weight" : "linear.weight";
    return attncl__param_matrix(p, name, INIT_NORMAL, s->n_vocab, s->width);
}

static attncl_value declare_table(struct params *p, const struct embed_settings *s)
{
    const char *name = "positional_encodings";
    if (s->positions == EMBED_LEARNED)
        return attncl__param_positions(p, name, s->max_len, s->width);
    return s->positions == EMBED_FIXED
               ? attncl__param_sinusoid(p, name, s->max_len, s->limit, s->width)
               : ATTNCL_NONE_VALUE;
}

attncl_value attncl__add_embedding(struct build *b, const struct embed_settings *s,
                                   attncl_value tokens, attncl_value position, attncl_layout layout)
{
    struct params *p = &b->params;
    attncl__params_enter(p, "%s", get_scope(s));
    const attncl_value weight = declare_weight(p, s);
    attncl_value table = declare_table(p, s);
    attncl_value x =
        attncl__embedding_padded(b->graph, tokens, weight, (float)s->scale, s->padding);
    if (table.id) {
        const int64_t dim[2] = {attncl_graph_shape(b->graph, table).dim[0], s->width};
        table = attncl_reshape(b->graph, table, 2, dim);
        x = position.id ? attncl_add_position_at(b->graph, x, table, position)
                        : attncl_add_positions(b->graph, x, table, layout);
    }
    if (s->norm)
        x = attncl__add_norm(b, attncl__norm_params(p, "norm", NORM_LAYER, s->width), s->norm_eps,
                             x);
    attncl__params_leave(p);
    const int batch_axis = layout == ATTNCL_LAYOUT_BATCH_FIRST ? 0 : 1;
    return s->dropped && b->dropout.p > 0
               ? attncl__add_dropout(b->graph, &b->dropout, batch_axis, x, ATTNCL_NONE_VALUE)
               : x;
}

attncl_value attncl__add_generator(struct build *b, const struct embed_settings *s,
                                   const char *name, bool tied, enum presence has_bias,
                                   attncl_value x)
{
    const struct param_init init = attncl__init_fan_in(s->width);
    struct params *p = &b->params;
    attncl_value weight = ATTNCL_NONE_VALUE;
    if (tied) {
        attncl__params_enter(p, "%s", get_scope(s));
        weight = declare_weight(p, s);
        attncl__params_leave(p);
    }
    attncl__params_enter(p, "%s", name);
    if (!tied)
        weight = attncl__param_matrix(p, "weight", init, s->n_vocab, s->width);
    const attncl_value bias =
        has_bias == PRESENT_IF_IN_FILE
            ? PARAM_OPTIONAL(p, "bias", s->n_vocab)
            : PARAM_IF(has_bias == PRESENT_ALWAYS, p, "bias", init, s->n_vocab);
    const attncl_value y = attncl_linear(b->graph, x, weight, bias);
    attncl__params_leave(p);
    return y;
}
