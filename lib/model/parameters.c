// SPDX-License-Identifier: MIT
//
// A model's parameters under their file names: reading, writing, saving.

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/quantised.h"
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
    size_t bytes = sizeof(float); // no overflow: the tensor exists
    for (int i = 0; i < shape.rank; ++i)
        bytes *= (size_t)shape.dim[i];
    return bytes;
}

size_t attncl__param_offset(const struct param_piece *piece)
{
    return piece->n_rows ? shape_bytes(piece->shape) / (size_t)piece->n_rows * (size_t)piece->first
                         : 0;
}

// Finds the parameter, which must have `bytes` bytes of floats, and its tensor.
static attncl_status locate_param(attncl_model *model, const char *name, const void *data,
                                  size_t bytes, const struct param_piece **piece_ret,
                                  attncl_tensor **tensor_ret)
{
    REQUIRE(model && name && data, ATTNCL_ERR_ARGUMENT, "model, name or data is NULL");
    const struct param_piece *piece = attncl__param_table_find(&model->params, name);
    REQUIRE(piece, ATTNCL_ERR_ARGUMENT, "the model has no parameter %s", name);
    const size_t have = shape_bytes(piece->shape);
    REQUIRE(bytes == have, ATTNCL_ERR_ARGUMENT, "parameter %s has %zu bytes, %zu were given", name,
            have, bytes);
    assert(piece->shape.dtype == ATTNCL_F32 || piece->first == 0); // others are whole tensors
    *piece_ret = piece;
    *tensor_ret = model->params.list[piece->param].tensor;
    return ATTNCL_OK;
}

// Reads a tensor of another type as floats.
static attncl_status read_converted(attncl_tensor *tensor, float *data)
{
    const struct tensor_desc d = attncl__tensor_desc(tensor);
    const size_t bytes = attncl__desc_bytes(&d);
    void *stored = attncl__alloc(bytes);
    REQUIRE(stored, ATTNCL_ERR_NO_MEMORY, "%zu bytes to convert", bytes);
    attncl_status status = attncl_tensor_read(tensor, stored, bytes);
    if (status == ATTNCL_OK)
        status = attncl__is_quantised(d.dtype)
                     ? attncl_dequantise(d.dtype, d.dim[0], d.dim[1], stored, data)
                     : attncl__convert(d.dtype, stored, ATTNCL_F32, data,
                                       (size_t)attncl__desc_count(&d));
    attncl__free(stored);
    return status;
}

// Writes floats to a tensor with 16-bit elements.
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
    return piece->shape.dtype == ATTNCL_F32
               ? attncl__tensor_read_part(tensor, attncl__param_offset(piece), data, bytes)
               : read_converted(tensor, data);
}

attncl_status attncl_model_param_read(attncl_model *model, const char *name, void *data,
                                      size_t bytes)
{
    const struct param_piece *piece;
    attncl_tensor *tensor;
    TRY(locate_param(model, name, data, bytes, &piece, &tensor));
    return read_floats(tensor, piece, data, bytes);
}

attncl_status attncl_model_param_write(attncl_model *model, const char *name, const void *data,
                                       size_t bytes)
{
    const struct param_piece *piece;
    attncl_tensor *tensor;
    TRY(locate_param(model, name, data, bytes, &piece, &tensor));
    const attncl_dtype stored = piece->shape.dtype;
    REQUIRE(!attncl__is_quantised(stored), ATTNCL_ERR_UNSUPPORTED,
            "parameter %s is in %s, which is not written", name, attncl_dtype_name(stored));
    return stored == ATTNCL_F32
               ? attncl__tensor_write_part(tensor, attncl__param_offset(piece), data, bytes)
               : write_converted(tensor, stored, data, bytes / sizeof(float));
}

// -- saving

attncl_status attncl__results_add_param(attncl_results *results, const struct param_piece *piece,
                                        const char *prefix, attncl_tensor *tensor)
{
    const attncl_shape *shape = &piece->shape;
    char name[2 * PARAM_NAME_BYTES];
    void *data;
    snprintf(name, sizeof name, "%s%s", prefix, piece->name);
    TRY(attncl__results_add(results, name, ATTNCL_F32, shape->rank, shape->dim, &data));
    return read_floats(tensor, piece, data, shape_bytes(*shape));
}

static bool has_key(const char *const *metadata, const char *key)
{
    for (size_t i = 0; metadata && metadata[i]; i += 2)
        if (strcmp(metadata[i], key) == 0)
            return true;
    return false;
}

attncl_status attncl__results_save(const attncl_results *results, const attncl_model *model,
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
    const attncl_status status = attncl__st_write(path, results->list, results->n, all, durably);
    attncl__free(all);
    return status;
}

attncl_status attncl_model_save(attncl_model *model, const char *path, const char *const *metadata)
{
    attncl_status status = ATTNCL_OK;
    attncl_results saved = {0};

    REQUIRE(model && path, ATTNCL_ERR_ARGUMENT, "model or path is NULL");
    const struct param_table *t = &model->params;
    for (size_t i = 0; i < t->n_pieces; ++i)
        if (is_trained(model, &t->pieces[i]))
            TRY_DONE(attncl__results_add_param(&saved, &t->pieces[i], "",
                                               t->list[t->pieces[i].param].tensor));
    TRY_DONE(attncl__results_save(&saved, model, metadata, path, false));
done:
    attncl__results_clear(&saved);
    return status;
}
