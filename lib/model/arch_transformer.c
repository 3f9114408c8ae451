// SPDX-License-Identifier: MIT
//
// feed_forward, transformer_layer, encoder.

#include "model/block_models.h"

static attncl_value ffn_build(struct build *b, const void *settings)
{
    const struct ffn_settings *s = settings;
    attncl_ffn_params params = ATTNCL_FFN_PARAMS_INIT;
    const attncl_value x = attncl__input(b, "x");
    attncl__ffn_params(&b->params, s, &params);
    return attncl_feed_forward(b->graph, &params, s->activation, x, ATTNCL_NONE_VALUE);
}

const struct arch_class attncl__arch_feed_forward = {
    .example = "{\"d_model\": 64, \"d_ff\": 256}",
    .settings_bytes = sizeof(struct ffn_settings),
    .keys = attncl__ffn_keys,
    .inputs = PORTS(PORT("x", F32, "... d_model")),
    .outputs = PORTS(PORT("output", F32, "... d_model")),
    .build = ffn_build,
};

// [T, B, C] <-> [B, T, C], a view.
static attncl_value swap_axes(attncl_graph *g, attncl_value x)
{
    static const int order[] = {1, 0, 2};
    return attncl_permute(g, x, order);
}

// -- class scores from an encoder's output, one row per sequence or per position
//
//     scores = classifier(mean of x over the valid positions, or its first, or each position)

enum pool { POOL_MEAN, POOL_FIRST, POOL_NONE };
struct classes_settings {
    int64_t n; // 0: no scores
    int64_t width;
    enum pool pool;
};

static const struct choice pools[] = {
    {"mean", POOL_MEAN}, {"first", POOL_FIRST}, {"none", POOL_NONE}, {0}};

static const struct key classes_keys[] = {
    {"d_model", KEY_INT, AT(classes_settings, width), .min = 1},
    {"n_classes", KEY_INT, AT(classes_settings, n), .min = 1, OR(0)},
    {"pool", KEY_WORD, AT(classes_settings, pool), .choices = pools, OR_WORD("mean"),
     UNLESS("n_classes", "0")},
    {0},
};

// A constant F32 [rows, 1, T] of 1 / T.
static attncl_value add_mean_weights(attncl_graph *g, int64_t n_rows, int64_t n_seq)
{
    const int64_t dim[3] = {n_rows, 1, n_seq};
    const size_t count = (size_t)n_rows * (size_t)n_seq; // no more than x has

    if (attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    float *parts = attncl__alloc_array(count, sizeof *parts);
    if (!parts)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "the mean of %zu elements", count);
    for (size_t i = 0; i < count; ++i)
        parts[i] = 1 / (float)n_seq;
    const attncl_value value = attncl_graph_constant(g, ATTNCL_F32, 3, dim, parts);
    attncl__free(parts);
    return value;
}

// The mean over the valid positions: a masked softmax of equal scores gives their weights.
static attncl_value add_valid_mean(attncl_graph *g, attncl_layout layout, attncl_value x,
                                   attncl_value valid_lens)
{
    if (layout == ATTNCL_LAYOUT_TIME_FIRST)
        x = swap_axes(g, x);
    const attncl_shape shape = attncl_graph_shape(g, x);
    const int64_t scores[3] = {shape.dim[0], 1, shape.dim[1]};
    const int64_t pooled[2] = {shape.dim[0], shape.dim[2]};
    const attncl_value parts =
        attncl_masked_softmax(g, attncl__graph_zeros(g, 3, scores), valid_lens);
    return attncl_reshape(g, attncl_bmm(g, parts, x), 2, pooled);
}

// A GEMM with weights 1 / T: over the first axis of [T, B C], or the middle one of [B, T, C].
static attncl_value add_mean(attncl_graph *g, attncl_layout layout, attncl_value x)
{
    const attncl_shape shape = attncl_graph_shape(g, x);
    const bool batch_first = layout == ATTNCL_LAYOUT_BATCH_FIRST;
    const int64_t width = shape.dim[2], n_batch = shape.dim[batch_first ? 0 : 1];
    const int64_t n_seq = shape.dim[batch_first ? 1 : 0];
    const int64_t flat[3] = {1, n_seq, n_batch * width}, pooled[2] = {n_batch, width};
    const attncl_value parts = add_mean_weights(g, batch_first ? n_batch : 1, n_seq);
    if (!batch_first)
        x = attncl_reshape(g, x, 3, flat);
    return attncl_reshape(g, attncl_bmm(g, parts, x), 2, pooled);
}

static attncl_value add_first_row(attncl_graph *g, attncl_layout layout, attncl_value x)
{
    const int axis = layout == ATTNCL_LAYOUT_BATCH_FIRST ? 1 : 0;
    const attncl_shape shape = attncl_graph_shape(g, x);
    const int64_t pooled[2] = {shape.dim[1 - axis], shape.dim[2]};
    return attncl_reshape(g, attncl_slice(g, x, axis, 0, 1), 2, pooled);
}

// x [T, B, C] or, by the layout, [B, T, C] -> [B, N], or without pooling [T, B, N], [B, T, N].
static attncl_value add_classes(struct build *b, const struct classes_settings *s,
                                attncl_layout layout, attncl_value x, attncl_value valid_lens)
{
    attncl_value weight, bias;
    if (s->pool == POOL_MEAN && valid_lens.id)
        x = add_valid_mean(b->graph, layout, x, valid_lens);
    else if (s->pool == POOL_MEAN)
        x = add_mean(b->graph, layout, x);
    if (s->pool == POOL_FIRST)
        x = add_first_row(b->graph, layout, x);
    attncl__param_linear(&b->params, "classifier", s->n, s->width, true, &weight, &bias);
    return attncl__layer_project(b->graph, "classifier", x, weight, bias, ATTNCL_NONE_VALUE);
}

// -- transformer_layer, encoder

struct layers_settings {
    struct encoder_settings encoder;
    struct embed_settings embed; // n_vocab 0: the input is x, not tokens
    struct classes_settings classes;
    bool batch_first;
};

// Layers other than transformers mix along the first axis only, so they need x time first.
static bool is_swapped(const struct layers_settings *s)
{
    return s->batch_first && s->encoder.block.layer != LAYER_TRANSFORMER;
}

// Declares x, or embeds the tokens, and the mask.  Returns x in the layers' layout.
static attncl_value declare_layer_inputs(struct build *b, const struct layers_settings *s,
                                         struct block_call *call)
{
    const struct block_settings *block = &s->encoder.block;
    const bool has_tokens = s->embed.n_vocab > 0;
    const char *name = has_tokens ? "tokens" : "x";
    attncl_value x = attncl__input(b, name);
    call->layout = s->batch_first ? ATTNCL_LAYOUT_BATCH_FIRST : ATTNCL_LAYOUT_TIME_FIRST;
    attncl__check_length(b, name, 'T', has_tokens ? s->embed.limit : attncl__block_limit(block));
    if (has_tokens)
        x = attncl__add_embedding(b, &s->embed, x, ATTNCL_NONE_VALUE, call->layout);
    call->mask = attncl__input(b, "mask");
    if (!is_swapped(s))
        return x;
    const int64_t swapped[3] = {attncl__input_axis(b, 'T'), attncl__input_axis(b, 'B'),
                                attncl__block_width(block)};
    return attncl_reshape(b->graph, swap_axes(b->graph, x), 3, swapped);
}

static attncl_value layer_build(struct build *b, const void *settings)
{
    const struct layers_settings *s = settings;
    struct block_call call = {0};
    const attncl_value x = declare_layer_inputs(b, s, &call);
    const attncl_value y = attncl__add_block(b, &s->encoder.block, &call, x);
    return is_swapped(s) ? swap_axes(b->graph, y) : y;
}

#define MASKS                                                                                      \
    PORT("mask", MASK, "T|1 T B|1", .optional = true, OFF("gmlp")),                                \
        PORT("mask", MASK, "T|1 T 1", .optional = true, ON("gmlp"))

const struct arch_class attncl__arch_transformer_layer = {
    .example = "{\"layer\": \"transformer\", \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256}",
    .settings_bytes = sizeof(struct layers_settings),
    .keys = KEYS(KEYS_OF(attncl__block_keys, AT(layers_settings, encoder.block)),
                 {"batch_first", KEY_BOOL, AT(layers_settings, batch_first), OR(false)}),
    .inputs = PORTS(PORT("x", F32, "T B d_model", .batch_first = true), MASKS),
    .outputs = PORTS(PORT("output", F32, "T B d_model", .batch_first = true)),
    .build = layer_build,
};

static attncl_status check_encoder(void *settings)
{
    struct layers_settings *s = settings;
    if (s->embed.n_vocab > 0)
        attncl__embed_set_limit(&s->embed, attncl__block_limit(&s->encoder.block));
    return ATTNCL_OK;
}

static attncl_value encoder_build(struct build *b, const void *settings)
{
    const struct layers_settings *s = settings;
    const bool has_classes = s->classes.n > 0;
    struct block_call call = {0};
    if (b->for_loss && !has_classes)
        return GRAPH_FAIL(b->graph, ATTNCL_ERR_UNSUPPORTED,
                          "the encoder has no classes to compare with targets: n_classes is 0");
    attncl_value x = declare_layer_inputs(b, s, &call);
    if (s->encoder.block.layer == LAYER_TRANSFORMER)
        call.valid_lens = attncl__input(b, "valid_lens");
    x = attncl__add_encoder(b, &s->encoder, &call, x);
    if (has_classes)
        x = add_classes(b, &s->classes, is_swapped(s) ? ATTNCL_LAYOUT_TIME_FIRST : call.layout, x,
                        call.valid_lens);
    const bool has_positions = !has_classes || s->classes.pool == POOL_NONE;
    return is_swapped(s) && has_positions ? swap_axes(b->graph, x) : x;
}

const struct arch_class attncl__arch_encoder = {
    .example = "{\"layer\": \"transformer\", \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256, \"n_layers\": 2}",
    .settings_bytes = sizeof(struct layers_settings),
    .keys = KEYS(KEYS_OF(attncl__encoder_keys, AT(layers_settings, encoder)),
                 {"batch_first", KEY_BOOL, AT(layers_settings, batch_first), OR(false)},
                 {"n_vocab", KEY_INT, AT(layers_settings, embed.n_vocab), .min = 1, OR(0)},
                 KEYS_OF(classes_keys, AT(layers_settings, classes)),
                 KEYS_OF(attncl__embed_keys, AT(layers_settings, embed), UNLESS("n_vocab", "0")),
                 CHECK(check_encoder)),
    .inputs = PORTS(PORT("x", F32, "T B d_model", .batch_first = true, WHEN("n_vocab", "0")),
                    PORT("tokens", INDEX, "T B", .batch_first = true, .below = "n_vocab",
                         UNLESS("n_vocab", "0")),
                    MASKS,
                    // Other layers take no lengths.
                    PORT("valid_lens", INT, "B", .optional = true, ON("transformer"))),
    .outputs =
        PORTS(PORT("output", F32, "T B d_model", .batch_first = true, WHEN("n_classes", "0")),
              PORT("output", F32, "B n_classes", WHEN("pool", "mean", "first")),
              PORT("output", F32, "T B n_classes", .batch_first = true, WHEN("pool", "none"))),
    .build = encoder_build,
    .target = TARGET_LABELS,
};
