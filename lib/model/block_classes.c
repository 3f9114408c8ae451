// SPDX-License-Identifier: MIT
//
// scores = classifier(mean of x over the valid positions, its first position, or each of them)

#include "model/block_models.h"

#include "layer/layer.h"

static const struct choice pools[] = {
    {"mean", POOL_MEAN}, {"first", POOL_FIRST}, {"none", POOL_NONE}, {0}};

const struct key attncl__classes_keys[] = {
    {"d_model", KEY_INT, AT(classes_settings, width), .min = 1},
    {"n_classes", KEY_INT, AT(classes_settings, n), .min = 1, OR(0)},
    {"pool", KEY_WORD, AT(classes_settings, pool), .choices = pools, OR_WORD("mean"),
     UNLESS("n_classes", "0")},
    {0},
};

// F32 [rows, 1, T], each element 1 / T.
static attncl_value add_parts(attncl_graph *g, int64_t n_rows, int64_t n_seq)
{
    const int64_t dim[3] = {n_rows, 1, n_seq};
    const size_t count = (size_t)n_rows * (size_t)n_seq; // of a value that exists
    float *parts = attncl__alloc_array(count, sizeof *parts);
    if (!parts)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "the mean of %zu elements", count);
    for (size_t i = 0; i < count; ++i)
        parts[i] = 1 / (float)n_seq;
    const attncl_value value = attncl_graph_constant(g, ATTNCL_F32, 3, dim, parts);
    attncl__free(parts);
    return value;
}

// Of the positions that are valid: softmax of equal scores gives each the same part of one.
static attncl_value valid_mean(attncl_graph *g, attncl_layout layout, attncl_value x,
                               attncl_value valid_lens)
{
    static const int to_batch_first[] = {1, 0, 2};
    if (layout == ATTNCL_LAYOUT_TIME_FIRST)
        x = attncl_permute(g, x, to_batch_first);
    const attncl_shape shape = attncl_graph_shape(g, x);
    const int64_t scores[3] = {shape.dim[0], 1, shape.dim[1]};
    const int64_t pooled[2] = {shape.dim[0], shape.dim[2]};
    const attncl_value parts =
        attncl_masked_softmax(g, attncl__graph_zeros(g, 3, scores), valid_lens);
    return attncl_reshape(g, attncl_bmm(g, parts, x), 2, pooled);
}

// A GEMM with the parts of one: over the first axis of [T, B C], or the middle one of [B, T, C].
static attncl_value mean(attncl_graph *g, attncl_layout layout, attncl_value x)
{
    const attncl_shape shape = attncl_graph_shape(g, x);
    const bool batch_first = layout == ATTNCL_LAYOUT_BATCH_FIRST;
    const int64_t width = shape.dim[2], n_batch = shape.dim[batch_first ? 0 : 1];
    const int64_t n_seq = shape.dim[batch_first ? 1 : 0];
    const int64_t flat[3] = {1, n_seq, n_batch * width}, pooled[2] = {n_batch, width};
    const attncl_value parts = add_parts(g, batch_first ? n_batch : 1, n_seq);
    if (!batch_first)
        x = attncl_reshape(g, x, 3, flat);
    return attncl_reshape(g, attncl_bmm(g, parts, x), 2, pooled);
}

static attncl_value first(attncl_graph *g, attncl_layout layout, attncl_value x)
{
    const int axis = layout == ATTNCL_LAYOUT_BATCH_FIRST ? 1 : 0;
    const attncl_shape shape = attncl_graph_shape(g, x);
    const int64_t pooled[2] = {shape.dim[1 - axis], shape.dim[2]};
    return attncl_reshape(g, attncl_slice(g, x, axis, 0, 1), 2, pooled);
}

attncl_value attncl__classes(struct build *b, const struct classes_settings *s,
                             attncl_layout layout, attncl_value x, attncl_value valid_lens)
{
    attncl_value weight, bias;
    if (s->pool == POOL_MEAN && valid_lens.id)
        x = valid_mean(b->graph, layout, x, valid_lens);
    else if (s->pool == POOL_MEAN)
        x = mean(b->graph, layout, x);
    if (s->pool == POOL_FIRST)
        x = first(b->graph, layout, x);
    attncl__param_linear(&b->params, "classifier", s->n, s->width, true, &weight, &bias);
    return attncl__layer_project(b->graph, "classifier", x, weight, bias, ATTNCL_NONE_VALUE);
}
