// SPDX-License-Identifier: MIT
//
// Token ids of a safetensors file, "tokens" [n] of any integers: windows of them.

#include <inttypes.h>
#include <string.h>

#include "train/dataset_internal.h"

struct token_dataset {
    struct dataset base;
    struct windows windows;
    int32_t *ids;
};

static attncl_status read_tokens(struct dataset *d, int64_t at, int64_t n, int32_t *ret)
{
    memcpy(ret, ((struct token_dataset *)d)->ids + at, (size_t)n * sizeof *ret);
    return ATTNCL_OK;
}

static void close_tokens(struct dataset *d)
{
    attncl__free(((struct token_dataset *)d)->ids);
}

static attncl_status tokens_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                  struct batch *ret)
{
    return attncl__windows_batch(d, &((struct token_dataset *)d)->windows, split, index, ret);
}

static const struct dataset_class tokens_class = {close_tokens, tokens_batch, true};

static attncl_status read_ids(struct dataset *d, const attncl_safetensors *file)
{
    struct token_dataset *t = (struct token_dataset *)d;
    const char *path = d->file.path;
    const attncl_array *array = attncl_safetensors_find(file, "tokens");
    int64_t largest = -1;

    REQUIRE(array, ATTNCL_ERR_FORMAT, "%s: holds no array \"tokens\"", path);
    REQUIRE(array->rank == 1, ATTNCL_ERR_FORMAT, "%s: tokens has %d axes, 1 is expected", path,
            array->rank);
    TRY(attncl__dataset_ids(d, array, &largest, &t->ids));
    d->n_vocab[0] = largest + 1;
    t->windows = (struct windows){.unit = "tokens", .read = read_tokens};
    return attncl__windows_split(d, &t->windows, array->dim[0]);
}

attncl_status attncl__dataset_open_tokens(const char *path, const struct dataset_options *options,
                                          struct dataset **ret)
{
    return attncl__dataset_open_arrays(&tokens_class, sizeof(struct token_dataset), path, options,
                                       read_ids, ret);
}
