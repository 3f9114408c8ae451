// SPDX-License-Identifier: MIT
//
// The keys, parameters and nodes of an embedding with positions.

#include <math.h>

#include "attncl/ops.h"
#include "base/try.h"
#include "model/block_embed.h"
#include "model/block_norm.h"
#include "model/config.h"

static attncl_status configure(struct config *config, struct embed_settings *s)
{
    const bool scaled = s->positions != EMBED_NO_POSITIONS;
    double scale;
    TRY(attncl__config_int(config, "n_vocab", 1, &s->n_vocab));
    TRY(attncl__config_number_or(config, "embed_scale", 0, scaled ? sqrt((double)s->width) : 1,
                                 &scale));
    s->scale = (float)scale;
    TRY(attncl__config_bool_or(config, "embed_norm", false, &s->norm));
    return attncl__norm_eps_configure(config, &s->norm_eps);
}

attncl_status attncl__embed_configure_plain(struct config *config, int64_t width,
                                            int64_t layers_limit, struct embed_settings *ret)
{
    *ret = (struct embed_settings){
        .positions = EMBED_NO_POSITIONS, .width = width, .limit = layers_limit};
    return configure(config, ret);
}

attncl_status attncl__embed_configure(struct config *config, int64_t width, int64_t layers_limit,
                                      struct embed_settings *ret)
{
    static const struct choice positions[] = {
        {"fixed_pos", EMBED_FIXED},
        {"learned_pos", EMBED_LEARNED},
        {"no_pos", EMBED_NO_POSITIONS},
    };
    int pos;
    TRY(attncl__config_choice(config, "pos", positions, N_CHOICES(positions), "fixed_pos", &pos));
    *ret = (struct embed_settings){
        .positions = (enum embed_positions)pos, .width = width, .limit = layers_limit};
    TRY(attncl__config_int_or(config, "max_len", 1, 5000, &ret->max_len));
    if (pos != EMBED_NO_POSITIONS && (layers_limit == 0 || ret->max_len < layers_limit))
        ret->limit = ret->max_len;
    return configure(config, ret);
}

static attncl_value weight_param(struct params *p, const struct embed_settings *s)
{
    const char *name = s->positions == EMBED_NO_POSITIONS ? "weight" : "linear.weight";
    return attncl__param_kept(p, name, INIT_NORMAL, s->n_vocab, s->width);
}

static void embed_params(struct params *p, const struct embed_settings *s, attncl_value *weight_ret,
                         attncl_value *table_ret)
{
    const char *table = "positional_encodings";

    *weight_ret = weight_param(p, s);
    *table_ret = ATTNCL_NONE_VALUE;
    if (s->positions == EMBED_LEARNED)
        *table_ret = attncl__param_positions(p, table, s->max_len, s->width);
    if (s->positions == EMBED_FIXED)
        *table_ret = attncl__param_sinusoid(p, table, s->max_len, s->limit, s->width);
}

void attncl__embed_load(struct params *p, const struct embed_settings *s)
{
    attncl_value weight, table;
    attncl__params_enter(p, "src_embed");
    embed_params(p, s, &weight, &table);
    if (s->norm)
        attncl__norm_params(p, "norm", s->width);
    attncl__params_leave(p);
}

attncl_value attncl__embed(struct build *b, const struct embed_settings *s, attncl_value tokens,
                           attncl_value position, attncl_layout layout)
{
    attncl_value weight, table;
    attncl__params_enter(&b->params, "src_embed");
    embed_params(&b->params, s, &weight, &table);
    attncl_value x = attncl_embedding(b->graph, tokens, weight, s->scale);
    if (table.id) {
        const int64_t dim[2] = {attncl_graph_shape(b->graph, table).dim[0], s->width};
        table = attncl_reshape(b->graph, table, 2, dim);
        x = position.id ? attncl_add_position_at(b->graph, x, table, position)
                        : attncl_add_positions(b->graph, x, table, layout);
    }
    if (s->norm)
        x = attncl__norm(b, "norm", s->width, (float)s->norm_eps, x);
    attncl__params_leave(&b->params);
    return x;
}

attncl_value attncl__embed_weight(struct build *b, const struct embed_settings *s)
{
    attncl__params_enter(&b->params, "src_embed");
    const attncl_value weight = weight_param(&b->params, s);
    attncl__params_leave(&b->params);
    return weight;
}
