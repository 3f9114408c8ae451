// SPDX-License-Identifier: MIT
//
// Token ids of a safetensors file, "tokens" [n] of any integers: windows of them.

#include <inttypes.h>
#include <string.h>

#include "attncl/safetensors.h"
#include "base/alloc.h"
#include "base/try.h"
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

static attncl_status read_ids(struct token_dataset *t, const attncl_safetensors *file)
{
    const char *path = t->base.file.path;
    const attncl_array *array = attncl_safetensors_find(file, "tokens");
    int64_t largest = -1;

    REQUIRE(array, ATTNCL_ERR_FORMAT, "%s: holds no array \"tokens\"", path);
    REQUIRE(array->rank == 1, ATTNCL_ERR_FORMAT, "%s: tokens has %d axes, 1 is expected", path,
            array->rank);
    const attncl_status status = attncl__dataset_ids(array, &largest, &t->ids);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("%s", path);
        return status;
    }
    t->base.n_vocab[0] = largest + 1;
    return attncl__windows_split(&t->base, &t->windows, array->dim[0]);
}

attncl_status attncl__dataset_open_tokens(const char *path, const struct dataset_options *options,
                                          struct dataset **ret)
{
    attncl_status status = ATTNCL_OK;
    attncl_safetensors *file = NULL;
    struct dataset *d = NULL;

    TRY(attncl__dataset_create(&tokens_class, sizeof(struct token_dataset), path, options, &d));
    struct token_dataset *t = (struct token_dataset *)d;
    t->windows = (struct windows){.unit = "tokens", .read = read_tokens};
    TRY_DONE(attncl_safetensors_open(path, &file));
    TRY_DONE(read_ids(t, file));
    TRY_DONE(attncl__data_file_check(&d->file)); // between the hash and the reading
    *ret = d;
    d = NULL;

done:
    attncl_safetensors_close(file);
    attncl__dataset_close(d);
    return status;
}
