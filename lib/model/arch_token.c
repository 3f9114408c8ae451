// SPDX-License-Identifier: MIT
//
// embedding, positional_encoding, relative_shift, cross_entropy.

#include <math.h>

#include "model/arch.h"
#include "model/block_layers.h"

// -- embedding

struct embedding_settings {
    int64_t count, width;
};

static attncl_value embedding_build(struct build *b, const void *settings)
{
    const struct embedding_settings *s = settings;
    const attncl_value tokens = attncl__input(b, "tokens");
    const attncl_value weight =
        attncl__param_matrix(&b->params, "weight", INIT_NORMAL, s->count, s->width);
    return attncl_embedding(b->graph, tokens, weight, 1.0f);
}

const struct arch_class attncl__arch_embedding = {
    .example = "{\"num_embeddings\": 100, \"embedding_dim\": 64}",
    .settings_bytes = sizeof(struct embedding_settings),
    .keys = KEYS({"num_embeddings", KEY_INT, AT(embedding_settings, count), .min = 1},
                 {"embedding_dim", KEY_INT, AT(embedding_settings, width), .min = 1}),
    .inputs = PORTS(PORT("tokens", INDEX, "...", .below = "num_embeddings")),
    .outputs = PORTS(PORT("output", F32, "... embedding_dim")),
    .build = embedding_build,
};

// -- positional_encoding

struct positional_settings {
    attncl_layout layout;
    int64_t width, max_len;
};

static const struct choice layouts[] = {
    {"labml", ATTNCL_LAYOUT_TIME_FIRST},
    {"d2l", ATTNCL_LAYOUT_BATCH_FIRST},
    {0},
};

static attncl_value positional_build(struct build *b, const void *settings)
{
    const struct positional_settings *s = settings;
    const attncl_value x = attncl__input(b, "x");
    const int64_t n_seq = attncl__input_axis(b, 'T');
    attncl__check_length(b, "x", 'T', s->max_len);
    const attncl_value table = attncl_sinusoid(b->graph, n_seq, s->width);
    attncl_graph_output(b->graph, "output", attncl_add_positions(b->graph, x, table, s->layout));
    attncl_graph_output(b->graph, "encoding", table);
    return ATTNCL_NONE_VALUE;
}

#define LABML WHEN("layout", "labml")
#define D2L   WHEN("layout", "d2l")

const struct arch_class attncl__arch_positional_encoding = {
    .example = "{\"layout\": \"labml\", \"num_hiddens\": 64}",
    .settings_bytes = sizeof(struct positional_settings),
    .keys = KEYS({"layout", KEY_WORD, AT(positional_settings, layout), .choices = layouts},
                 {"num_hiddens", KEY_INT, AT(positional_settings, width), .min = 1},
                 {"max_len", KEY_INT, AT(positional_settings, max_len), .min = 1, OR(1000),
                  WHEN("layout", "d2l")},
                 {"max_len", KEY_INT, AT(positional_settings, max_len), .min = 1, OR(5000),
                  WHEN("layout", "labml")}),
    .inputs =
        PORTS(PORT("x", F32, "T B num_hiddens", LABML), PORT("x", F32, "B T num_hiddens", D2L)),
    .outputs =
        PORTS(PORT("output", F32, "T B num_hiddens", LABML),
              PORT("output", F32, "B T num_hiddens", D2L), PORT("encoding", F32, "T num_hiddens")),
    .build = positional_build,
    .no_gradients = true,
};

// -- cross_entropy

static const struct choice reductions[] = {
    {"mean", ATTNCL_REDUCE_MEAN},
    {"sum", ATTNCL_REDUCE_SUM},
    {"none", ATTNCL_REDUCE_NONE},
    {0},
};

static attncl_value cross_entropy_build(struct build *b, const void *settings)
{
    attncl_cross_entropy_desc desc = *(const attncl_cross_entropy_desc *)settings;
    const attncl_value logits = attncl__input(b, "logits");
    const attncl_value targets = attncl__input(b, "targets");
    desc.struct_size = sizeof desc;
    return attncl_cross_entropy(b->graph, logits, targets, &desc);
}

const struct arch_class attncl__arch_cross_entropy = {
    .example = "{}",
    .settings_bytes = sizeof(attncl_cross_entropy_desc),
    .keys = KEYS({"reduction", KEY_WORD, offsetof(attncl_cross_entropy_desc, reduction),
                  .choices = reductions, OR_WORD("mean")},
                 {"pad", KEY_INT, offsetof(attncl_cross_entropy_desc, pad), .min = INT32_MIN,
                  OR(-1)}, // no target is -1
                 {"label_smoothing", KEY_NUMBER,
                  offsetof(attncl_cross_entropy_desc, label_smoothing), .max = 1, OR(0)}),
    .inputs = PORTS(PORT("logits", F32, "... V"), PORT("targets", INDEX, "...", .below = "V")),
    .outputs = PORTS(PORT("loss", F32, "...", WHEN("reduction", "none")),
                     PORT("loss", F32, "", UNLESS("reduction", "none"))),
    .build = cross_entropy_build,
};

// -- relative_shift

struct shift_settings {
    int64_t width;
    double delta;
};

static attncl_value shift_build(struct build *b, const void *settings)
{
    const struct shift_settings *s = settings;
    const attncl_value x = attncl__input(b, "x");
    return attncl_relative_shift(b->graph, x, s->delta);
}

const struct arch_class attncl__arch_relative_shift = {
    .example = "{\"num_hiddens\": 64, \"delta\": 1}",
    .settings_bytes = sizeof(struct shift_settings),
    .keys =
        KEYS({"num_hiddens", KEY_INT, AT(shift_settings, width), .min = 2, .parity = PARITY_EVEN},
             {"delta", KEY_NUMBER, AT(shift_settings, delta), .min = -INFINITY}),
    .inputs = PORTS(PORT("x", F32, "... num_hiddens")),
    .outputs = PORTS(PORT("output", F32, "... num_hiddens")),
    .build = shift_build,
};
