// SPDX-License-Identifier: MIT
//
// Token ids of a safetensors file, "tokens" [n] of any integers: windows of them.

#include <inttypes.h>
#include <string.h>

#include "train/dataset_internal.h"

struct token_dataset {
    struct dataset base;
    int32_t *ids;
};

static attncl_status copy_tokens(struct dataset *d, int64_t at, int64_t n, int32_t *ret)
{
    memcpy(ret, ((struct token_dataset *)d)->ids + at, (size_t)n * sizeof *ret);
    return ATTNCL_OK;
}

static void close_tokens(struct dataset *d)
{
    attncl__free(((struct token_dataset *)d)->ids);
}

static attncl_status read_ids(struct dataset *d, const attncl_safetensors *file)
{
    const char *path = d->file.path;
    const attncl_array *array = attncl_safetensors_find(file, "tokens");
    int64_t largest = -1;

    REQUIRE(array, ATTNCL_ERR_FORMAT, "%s: holds no array \"tokens\"", path);
    REQUIRE(array->rank == 1, ATTNCL_ERR_FORMAT, "%s: tokens has %d axes, 1 is expected", path,
            array->rank);
    TRY(attncl__dataset_ids(d, array, &largest, &((struct token_dataset *)d)->ids));
    d->n_vocab[0] = largest + 1;
    d->n = array->dim[0];
    return attncl__windows_split(d, "tokens");
}

const struct dataset_class attncl__data_tokens = {
    .bytes = sizeof(struct token_dataset),
    .read_arrays = read_ids,
    .close = close_tokens,
    .batch = attncl__windows_batch,
    .tokens = copy_tokens,
    .endless = true,
};
