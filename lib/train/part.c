// SPDX-License-Identifier: MIT
//
// Splits a batch's sequences among the ranks, so that the result does not depend on their number.

#include <string.h>

#include "train/trainer.h"

int64_t attncl__count_targets(const attncl_trainer *t, const struct batch *batch)
{
    const attncl_array *targets = &batch->array[batch->n - 1];
    const size_t count = targets->bytes / sizeof(int32_t);
    const int32_t *list = targets->data;
    int64_t n = 0;
    for (size_t i = 0; i < count; ++i)
        n += list[i] != t->config.settings.pad;
    return n;
}

// Sequences are the columns of [T, B] or the first axis.
static int batch_axis(const attncl_trainer *t, const attncl_array *array)
{
    return t->config.settings.data.time_first && array->rank > 1;
}

// Reduces an axis to its elements [first, last), in place.
static void cut_axis(attncl_array *array, int axis, int64_t first, int64_t last)
{
    const int64_t extent = array->dim[axis];
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i)
        outer *= array->dim[i];
    for (int i = axis + 1; i < array->rank; ++i)
        inner *= array->dim[i];
    int32_t *data = (int32_t *)(uintptr_t)array->data; // the batch's own memory
    const size_t each = (size_t)((last - first) * inner);
    for (int64_t i = 0; i < outer; ++i)
        memmove(data + (size_t)i * each, data + (i * extent + first) * inner, each * sizeof *data);
    array->dim[axis] = last - first;
    array->bytes = (size_t)outer * each * sizeof *data;
}

attncl_status attncl__prepare_part(attncl_trainer *t, int64_t index, struct part *ret)
{
    const int64_t n_ranks = attncl_ranks_size(t->ranks), rank = attncl_ranks_rank(t->ranks);
    struct part part = {0};
    TRY(attncl__dataset_batch(t->data, SPLIT_TRAIN, index, &part.batch));
    part.n_all_targets = part.n_targets = attncl__count_targets(t, &part.batch);
    if (n_ranks > 1) {
        for (size_t i = 0; i < part.batch.n; ++i) {
            attncl_array *array = &part.batch.array[i];
            const int axis = batch_axis(t, array);
            const int64_t n = array->dim[axis];
            const int64_t begin = rank * n / n_ranks;
            if (t->config.settings.dropout > 0) {
                part.batch.begin = begin;
                part.batch.total = n;
            }
            cut_axis(array, axis, begin, (rank + 1) * n / n_ranks);
            part.is_empty |= array->bytes == 0;
        }
        part.n_targets = attncl__count_targets(t, &part.batch);
    }
    *ret = part;
    return ATTNCL_OK;
}

attncl_status attncl__write_arrays(attncl_graph *g, const struct batch *batch)
{
    for (size_t i = 0; i < batch->n; ++i)
        TRY(attncl__graph_write_queued(g, batch->array[i].name, batch->array[i].data,
                                       batch->array[i].bytes));
    return ATTNCL_OK;
}
