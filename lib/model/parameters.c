// SPDX-License-Identifier: MIT
//
// A model's parameters as files name them, and its trained tensors.

#include <assert.h>
#include <string.h>

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "base/quantised.h"
#include "base/strbuf.h"
#include "base/struct.h"
#include "graph/graph.h"
#include "io/safetensors.h"
#include "model/model.h"

size_t attncl_model_param_count(const attncl_model *model)
{
    return model ? model->params.n_pieces : 0;
}

static bool is_trained(const attncl_model *model, const struct param_piece *piece)
{
    return !model->params.list[piece->param].fixed;
}

attncl_status attncl_model_param_at(const attncl_model *model, size_t i, attncl_param *param_ret)
{
    REQUIRE(model && param_ret, ATTNCL_ERR_ARGUMENT, "model or param_ret is NULL");
    REQUIRE(i < model->params.n_pieces, ATTNCL_ERR_ARGUMENT,
            "parameter %zu: the model has %zu, counted from 0", i, model->params.n_pieces);
    const struct param_piece *piece = &model->params.pieces[i];
    const attncl_param param = {.struct_size = sizeof param,
                                .name = piece->name,
                                .shape = piece->shape,
                                .trainable = is_trained(model, piece)};
    return STRUCT_WRITE(attncl_param, param_ret, &param);
}

static size_t shape_bytes(attncl_shape shape)
{
    size_t bytes = sizeof(float); // a shape that exists: no overflow
    for (int i = 0; i < shape.rank; ++i)
        bytes *= (size_t)shape.dim[i];
    return bytes;
}

size_t attncl__param_offset(const struct param_piece *piece)
{
    return piece->n_rows ? shape_bytes(piece->shape) / (size_t)piece->n_rows * (size_t)piece->first
                         : 0;
}

// The parameter, which must have so many bytes of floats, and the tensor that it is in.
static attncl_status locate(attncl_model *model, const char *name, const void *data, size_t bytes,
                            const struct param_piece **piece_ret, attncl_tensor **tensor_ret)
{
    REQUIRE(model && name && data, ATTNCL_ERR_ARGUMENT, "model, name or data is NULL");
    const struct param_piece *piece = attncl__param_table_find(&model->params, name);
    REQUIRE(piece, ATTNCL_ERR_ARGUMENT, "the model has no parameter %s", name);
    const size_t have = shape_bytes(piece->shape);
    REQUIRE(bytes == have, ATTNCL_ERR_ARGUMENT, "parameter %s has %zu bytes, %zu were given", name,
            have, bytes);
    assert(piece->shape.dtype == ATTNCL_F32 ||
           piece->first == 0); // those of 16 bits are whole tensors
    *piece_ret = piece;
    *tensor_ret = model->params.list[piece->param].tensor;
    return ATTNCL_OK;
}

static attncl_status read_quantised(attncl_tensor *tensor, float *data)
{
    const struct tensor_desc d = attncl__tensor_desc(tensor);
    const size_t bytes = attncl__desc_bytes(&d);
    void *blocks = attncl__alloc(bytes);
    REQUIRE(blocks, ATTNCL_ERR_NO_MEMORY, "%zu bytes to convert", bytes);
    attncl_status status = attncl_tensor_read(tensor, blocks, bytes);
    if (status == ATTNCL_OK)
        status = attncl_dequantise(d.dtype, d.dim[0], d.dim[1], blocks, data);
    attncl__free(blocks);
    return status;
}

// Between floats and a tensor of 16-bit elements.
static attncl_status read_converted(attncl_tensor *tensor, attncl_dtype stored, float *data,
                                    size_t count)
{
    void *narrow = attncl__alloc_array(count, sizeof(uint16_t));
    REQUIRE(narrow, ATTNCL_ERR_NO_MEMORY, "%zu elements to convert", count);
    attncl_status status = attncl_tensor_read(tensor, narrow, count * sizeof(uint16_t));
    if (status == ATTNCL_OK)
        status = attncl__convert(stored, narrow, ATTNCL_F32, data, count);
    attncl__free(narrow);
    return status;
}

static attncl_status write_converted(attncl_tensor *tensor, attncl_dtype stored, const float *data,
                                     size_t count)
{
    void *narrow = attncl__alloc_array(count, sizeof(uint16_t));
    REQUIRE(narrow, ATTNCL_ERR_NO_MEMORY, "%zu elements to convert", count);
    attncl_status status = attncl__convert(ATTNCL_F32, data, stored, narrow, count);
    if (status == ATTNCL_OK)
        status = attncl_tensor_write(tensor, narrow, count * sizeof(uint16_t));
    attncl__free(narrow);
    return status;
}

static attncl_status read_floats(attncl_tensor *tensor, const struct param_piece *piece, void *data,
                                 size_t bytes)
{
    const attncl_dtype stored = piece->shape.dtype;
    if (attncl__is_quantised(stored))
        return read_quantised(tensor, data);
    return stored == ATTNCL_F32
               ? attncl__tensor_read_part(tensor, attncl__param_offset(piece), data, bytes)
               : read_converted(tensor, stored, data, bytes / sizeof(float));
}

attncl_status attncl_model_param_read(attncl_model *model, const char *name, void *data,
                                      size_t bytes)
{
    const struct param_piece *piece;
    attncl_tensor *tensor;
    TRY(locate(model, name, data, bytes, &piece, &tensor));
    return read_floats(tensor, piece, data, bytes);
}

attncl_status attncl_model_param_write(attncl_model *model, const char *name, const void *data,
                                       size_t bytes)
{
    const struct param_piece *piece;
    attncl_tensor *tensor;
    TRY(locate(model, name, data, bytes, &piece, &tensor));
    const attncl_dtype stored = piece->shape.dtype;
    REQUIRE(!attncl__is_quantised(stored), ATTNCL_ERR_UNSUPPORTED,
            "parameter %s is in %s, which is not written", name, attncl_dtype_name(stored));
    return stored == ATTNCL_F32
               ? attncl__tensor_write_part(tensor, attncl__param_offset(piece), data, bytes)
               : write_converted(tensor, stored, data, bytes / sizeof(float));
}

// -- saving

void attncl__saved_free(struct saved_params *saved)
{
    for (size_t i = 0; i < saved->n; ++i) {
        attncl__free((char *)saved->arrays[i].name);
        attncl__free((void *)saved->arrays[i].data);
    }
    attncl__free(saved->arrays);
}

attncl_status attncl__saved_add(struct saved_params *saved, const struct param_piece *piece,
                                const char *prefix, attncl_tensor *tensor)
{
    const attncl_shape *shape = &piece->shape;
    const size_t bytes = shape_bytes(*shape);
    struct strbuf name = STRBUF_EMPTY;
    REQUIRE(GROW_LIST(saved->arrays, saved->n, saved->capacity), ATTNCL_ERR_NO_MEMORY,
            "%zu parameters", saved->n + 1);
    void *data = attncl__alloc(bytes);
    attncl__strbuf_add(&name, "%s%s", prefix, piece->name);
    attncl_array *array = &saved->arrays[saved->n++];
    *array = (attncl_array){
        .name = name.data, .dtype = ATTNCL_F32, .rank = shape->rank, .data = data, .bytes = bytes};
    memcpy(array->dim, shape->dim, sizeof array->dim);
    REQUIRE(data && name.data, ATTNCL_ERR_NO_MEMORY, "%zu bytes of parameter %s", bytes,
            piece->name);
    return read_floats(tensor, piece, data, bytes);
}

static bool has_key(const char *const *metadata, const char *key)
{
    for (size_t i = 0; metadata && metadata[i]; i += 2)
        if (strcmp(metadata[i], key) == 0)
            return true;
    return false;
}

attncl_status attncl__saved_write(const struct saved_params *saved, const attncl_model *model,
                                  const char *const *metadata, const char *path, bool durably)
{
    size_t n = 0, n_given = 0;
    while (metadata && metadata[n_given])
        n_given += 2;
    const char **all = attncl__alloc_array(n_given + model->n_metadata + 1, sizeof *all);
    REQUIRE(all, ATTNCL_ERR_NO_MEMORY, "%zu metadata values", n_given);
    for (size_t i = 0; i + 1 < model->n_metadata; i += 2) {
        if (has_key(metadata, model->metadata[i]))
            continue;
        all[n++] = model->metadata[i];
        all[n++] = model->metadata[i + 1];
    }
    for (size_t i = 0; i < n_given; ++i)
        all[n++] = metadata[i];
    const attncl_status status = durably
                                     ? attncl__st_write_durably(path, saved->arrays, saved->n, all)
                                     : attncl_safetensors_write(path, saved->arrays, saved->n, all);
    attncl__free(all);
    return status;
}

attncl_status attncl_model_save(attncl_model *model, const char *path, const char *const *metadata)
{
    attncl_status status = ATTNCL_OK;
    struct saved_params saved = {0};

    REQUIRE(model && path, ATTNCL_ERR_ARGUMENT, "model or path is NULL");
    const struct param_table *t = &model->params;
    for (size_t i = 0; i < t->n_pieces; ++i)
        if (is_trained(model, &t->pieces[i]))
            TRY_DONE(
                attncl__saved_add(&saved, &t->pieces[i], "", t->list[t->pieces[i].param].tensor));
    TRY_DONE(attncl__saved_write(&saved, model, metadata, path, false));
done:
    attncl__saved_free(&saved);
    return status;
}

// -- trained tensors.  A stack may have rows that no parameter of the file fills: they stay zero, because nothing trains
// them.

size_t attncl__trained_count(const struct param_table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; ++i)
        n += !t->list[i].fixed;
    return n;
}

const struct param *attncl__trained_at(const struct param_table *t, size_t i)
{
    for (size_t k = 0; k < t->n; ++k)
        if (!t->list[k].fixed && i-- == 0)
            return &t->list[k];
    return NULL;
}

attncl_status attncl__trained_check(const struct param_table *t)
{
    for (size_t i = 0; i < t->n; ++i)
        REQUIRE(!attncl__is_quantised(t->list[i].shape.dtype), ATTNCL_ERR_UNSUPPORTED,
                "parameter %s is in %s, which has no gradient; attncl convert --dtype f32 makes "
                "floats of it",
                t->list[i].name, attncl_dtype_name(t->list[i].shape.dtype));
    return ATTNCL_OK;
}

static attncl_value zero_rows(attncl_graph *g, attncl_shape like, int64_t n_rows)
{
    like.dim[0] = n_rows;
    return attncl__graph_zeros(g, like.rank, like.dim);
}

// Whether the pieces leave rows of the tensor to none.
static bool has_filler(attncl_shape shape, const struct param_piece *pieces, size_t n)
{
    int64_t n_rows = 0;
    for (size_t i = 0; i < n; ++i)
        n_rows += pieces[i].n_rows;
    return shape.rank > 0 && n_rows < shape.dim[0];
}

// The gradient with zeros in the rows that belong to none of the pieces, which are in order.
static attncl_status without_filler(attncl_graph *g, attncl_shape shape,
                                    const struct param_piece *pieces, size_t n_pieces,
                                    attncl_value *gradient)
{
    attncl_value *parts = attncl__alloc_array(2 * n_pieces + 1, sizeof *parts);
    int64_t next = 0;
    size_t n = 0;

    REQUIRE(parts, ATTNCL_ERR_NO_MEMORY, "gradients of %zu parameters", n_pieces);
    for (size_t i = 0; i < n_pieces; ++i) {
        const struct param_piece *piece = &pieces[i];
        assert(piece->first >= next);
        if (piece->first > next)
            parts[n++] = zero_rows(g, shape, piece->first - next);
        next = piece->first + piece->n_rows;
        parts[n++] = attncl_slice(g, *gradient, 0, piece->first, next);
    }
    if (next < shape.dim[0])
        parts[n++] = zero_rows(g, shape, shape.dim[0] - next);
    *gradient = attncl_concat(g, n, parts, 0);
    attncl__free(parts);
    return attncl_graph_status(g);
}

attncl_status attncl__trained_gradient(const struct param_table *t, attncl_graph *g,
                                       attncl_value loss, attncl_value *weights,
                                       attncl_value *gradients)
{
    size_t n = 0, piece = 0;

    TRY(attncl__trained_check(t));
    for (size_t i = 0; i < t->n; ++i)
        if (!t->list[i].fixed)
            weights[n++] = attncl_graph_tensor(g, t->list[i].tensor);
    attncl_graph_gradient(g, 1, &loss, NULL, n, weights, gradients);
    TRY(attncl_graph_status(g));
    n = 0;
    for (size_t i = 0; i < t->n; ++i) {
        const size_t first = piece;
        while (piece < t->n_pieces && t->pieces[piece].param == i)
            ++piece;
        const struct param_piece *pieces = t->pieces + first;
        if (!t->list[i].fixed && has_filler(t->list[i].shape, pieces, piece - first))
            TRY(without_filler(g, t->list[i].shape, pieces, piece - first, &gradients[n]));
        n += !t->list[i].fixed;
    }
    return ATTNCL_OK;
}

size_t attncl_model_tensor_count(const attncl_model *model)
{
    return model ? attncl__trained_count(&model->params) : 0;
}

attncl_status attncl_model_tensor_at(const attncl_model *model, size_t i,
                                     attncl_model_tensor *tensor_ret)
{
    REQUIRE(model && tensor_ret, ATTNCL_ERR_ARGUMENT, "model or tensor_ret is NULL");
    const struct param *param = attncl__trained_at(&model->params, i);
    REQUIRE(param, ATTNCL_ERR_ARGUMENT, "trained tensor %zu: the model has %zu, counted from 0", i,
            attncl__trained_count(&model->params));
    const attncl_model_tensor tensor = {.struct_size = sizeof tensor,
                                        .name = param->name,
                                        .tensor = param->tensor,
                                        .shape = param->shape};
    return STRUCT_WRITE(attncl_model_tensor, tensor_ret, &tensor);
}

attncl_status attncl_model_gradient(attncl_model *model, attncl_graph *g, attncl_value loss,
                                    attncl_value *values_ret, attncl_value *gradients_ret)
{
    REQUIRE(model && g && values_ret && gradients_ret, ATTNCL_ERR_ARGUMENT,
            "model, g, values_ret or gradients_ret is NULL");
    return attncl__trained_gradient(&model->params, g, loss, values_ret, gradients_ret);
}
