// SPDX-License-Identifier: MIT
//
// The tensors of an open model, and reading those of a file.

#include "model/params.h"

#include <assert.h>
#include <string.h>

#include "base/dtype.h"
#include "base/quantised.h"
#include "io/safetensors.h"

void attncl__param_table_free(struct param_table *table)
{
    for (size_t i = 0; i < table->n; ++i) {
        attncl_tensor_destroy(table->list[i].tensor);
        attncl__free(table->list[i].name);
    }
    for (size_t i = 0; i < table->n_pieces; ++i)
        attncl__free(table->pieces[i].name);
    attncl__tensor_block_drop(table->context, &table->block);
    attncl__name_table_free(&table->piece_names);
    attncl__free(table->pieces);
    attncl__free(table->list);
    *table = (struct param_table){0};
}

static attncl_shape make_shape(attncl_dtype dtype, int rank, const int64_t *dim)
{
    attncl_shape shape = {.dtype = dtype, .rank = rank};
    memcpy(shape.dim, dim, (size_t)rank * sizeof shape.dim[0]);
    return shape;
}

static attncl_status add_piece(struct param_table *t, struct param_piece piece)
{
    REQUIRE(GROW_LIST(t->pieces, t->n_pieces, t->pieces_capacity), ATTNCL_ERR_NO_MEMORY,
            "parameter table of %zu", t->n_pieces + 1);
    const char *name = piece.name;
    piece.name = attncl__copy_text(name);
    REQUIRE(piece.name, ATTNCL_ERR_NO_MEMORY, "name of parameter %s", name);
    const attncl_status status = attncl__name_add(&t->piece_names, piece.name, (int)t->n_pieces);
    if (status == ATTNCL_OK)
        t->pieces[t->n_pieces++] = piece;
    else
        attncl__free(piece.name);
    return status;
}

// Adds a tensor; if no rows were added for it, it is itself a parameter of the file.
static attncl_status add_tensor(struct param_table *t, const char *name, attncl_shape shape,
                                const struct tensor_source *source)
{
    REQUIRE(GROW_LIST(t->list, t->n, t->capacity), ATTNCL_ERR_NO_MEMORY, "parameter table of %zu",
            t->n + 1);
    struct param param = {.name = attncl__copy_text(name), .shape = shape};
    REQUIRE(param.name, ATTNCL_ERR_NO_MEMORY, "name of parameter %s", name);
    const attncl_status status = attncl__tensor_create_from(t->context, shape.dtype, shape.rank,
                                                            shape.dim, source, &param.tensor);
    if (status != ATTNCL_OK) {
        attncl__free(param.name);
        return attncl__prefix_failure(status, "parameter %s", name);
    }
    t->list[t->n++] = param;
    if (t->n_pieces > 0 && t->pieces[t->n_pieces - 1].param == t->n - 1)
        return ATTNCL_OK;
    const int64_t n_rows = shape.rank > 0 ? shape.dim[0] : 1;
    return add_piece(t, (struct param_piece){param.name, t->n - 1, 0, n_rows, shape});
}

attncl_status attncl__param_table_add(struct param_table *t, const char *name, attncl_dtype dtype,
                                      int rank, const int64_t *dim, const void *data)
{
    return add_tensor(t, name, make_shape(dtype, rank, dim),
                      &(struct tensor_source){dtype, NULL, data, &t->block});
}

struct in_file {
    const attncl_safetensors *file;
    const attncl_array *array;
};

static attncl_status read_elements(const void *from, uint64_t offset, size_t bytes, void *to)
{
    const struct in_file *f = from;
    return attncl__st_read(f->file, f->array, offset, bytes, to);
}

attncl_status attncl__param_table_load(struct param_table *t, const char *name, attncl_dtype dtype,
                                       int rank, const int64_t *dim, const attncl_safetensors *file,
                                       const attncl_array *array)
{
    const struct in_file from = {file, array};
    return add_tensor(t, name, make_shape(dtype, rank, dim),
                      &(struct tensor_source){array->dtype, read_elements, &from, &t->block});
}

attncl_status attncl__param_table_add_rows(struct param_table *t, const char *name, int64_t first,
                                           int rank, const int64_t *dim)
{
    return add_piece(t, (struct param_piece){(char *)name, t->n, first, dim[0],
                                             make_shape(ATTNCL_F32, rank, dim)});
}

bool attncl__param_is_whole(const struct param_table *t, const struct param_piece *piece)
{
    const attncl_shape *shape = &t->list[piece->param].shape;
    return piece->first == 0 && (shape->rank == 0 || piece->n_rows == shape->dim[0]);
}

const struct param_piece *attncl__param_table_find(const struct param_table *t, const char *name)
{
    const int i = attncl__name_find(&t->piece_names, name);
    return i < 0 ? NULL : &t->pieces[i];
}

// -- elements of a file's parameter; its size has been checked

attncl_status attncl__param_read(const attncl_safetensors *file, const attncl_array *a,
                                 attncl_dtype *dtype_ret, int64_t dim_ret[2], void **data_ret)
{
    attncl_status status = ATTNCL_OK;
    void *data = attncl__alloc(a->bytes);

    REQUIRE(data, ATTNCL_ERR_NO_MEMORY, "%zu bytes of parameter %s", a->bytes, a->name);
    *dtype_ret = a->dtype;
    TRY_DONE(attncl__st_read(file, a, 0, a->bytes, data));
    if (a->dtype == ATTNCL_U8) {
        TRY_DONE(attncl_safetensors_quantised(file, a->name, dtype_ret, dim_ret));
        assert(*dtype_ret != ATTNCL_DTYPE_NONE);
        TRY_DONE(attncl__prefix_failure(
            attncl__quantised_check(*dtype_ret, dim_ret[0], dim_ret[1], data), "parameter %s",
            a->name));
    }
    *data_ret = data;
    data = NULL;
done:
    attncl__free(data);
    return status;
}

attncl_status attncl__param_read_floats(const attncl_safetensors *file, const attncl_array *a,
                                        float *values)
{
    attncl_dtype dtype;
    int64_t dim[2];
    void *data = NULL;

    if (a->dtype == ATTNCL_F32)
        return attncl__st_read(file, a, 0, a->bytes, values);
    TRY(attncl__param_read(file, a, &dtype, dim, &data));
    const attncl_status status = attncl__is_quantised(dtype)
                                     ? attncl_dequantise(dtype, dim[0], dim[1], data, values)
                                     : attncl__convert(dtype, data, ATTNCL_F32, values,
                                                       a->bytes / attncl_dtype_bytes(dtype));
    attncl__free(data);
    return status;
}
