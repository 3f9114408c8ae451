// SPDX-License-Identifier: MIT
// The parameters of an open model, on the device, and where each one of the file is among them.
#ifndef ATTNCL_MODEL_PARAM_TABLE_H
#define ATTNCL_MODEL_PARAM_TABLE_H

#include <stdbool.h>

#include "attncl/graph.h"
#include "attncl/safetensors.h"
#include "base/name_table.h"

// A tensor on the device, in the order of loading.
struct param {
    char *name;
    attncl_tensor *tensor;
    attncl_shape shape;
    bool fixed; // a buffer: nothing to train
};

// A parameter of the file: a tensor of the table, or rows of one.
struct param_piece {
    char *name;
    size_t param; // index of the tensor
    int64_t first, n_rows;
    attncl_shape shape;
};

attncl_shape attncl__param_shape(attncl_dtype dtype, int rank, const int64_t *dim);

struct param_table {
    attncl_context *context;
    struct param *list;
    size_t n, capacity;
    struct param_piece *pieces; // ordered by `param`
    size_t n_pieces, pieces_capacity;
    struct name_table piece_names;
};
void attncl__param_table_free(struct param_table *table);

// Uploads float elements, kept as those of shape.dtype, and appends them under a name.
attncl_status attncl__param_table_add(struct param_table *t, const char *name,
                                      const attncl_shape *shape, attncl_dtype dtype,
                                      const void *data);
// The same with a tensor of the file's.
attncl_status attncl__param_table_load(struct param_table *t, const char *name,
                                       const attncl_shape *shape, const attncl_safetensors *file,
                                       const attncl_array *array);
// Appends a parameter of the file: all of the last tensor, or rows of the one that comes next.
attncl_status attncl__param_table_add_whole(struct param_table *t);
attncl_status attncl__param_table_add_rows(struct param_table *t, const char *name, int64_t first,
                                           int rank, const int64_t *dim);

// Whether a parameter of the file is a whole tensor.
bool attncl__param_is_whole(const struct param_table *t, const struct param_piece *piece);
// The parameter of the file called `name`; NULL: none.
const struct param_piece *attncl__param_table_find(const struct param_table *t, const char *name);

#endif
