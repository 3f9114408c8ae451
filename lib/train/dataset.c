// SPDX-License-Identifier: MIT
//
// Datasets of all kinds: opening, batches, token ids from safetensors files.

#include <inttypes.h>
#include <limits.h>
#include <math.h>

#include "base/ckd.h"
#include "base/dtype.h"
#include "train/dataset.h"

static attncl_status check_size(const struct dataset_options *o)
{
    int64_t elements;

    REQUIRE(ckd_mul_i64(o->batch_size, o->seq_len, &elements) && elements <= INT32_MAX,
            ATTNCL_ERR_ARGUMENT, "batch_size %" PRId64 " times seq_len %" PRId64 " passes %d",
            o->batch_size, o->seq_len, INT32_MAX);
    return ATTNCL_OK;
}

static attncl_status read_arrays(struct dataset *d)
{
    attncl_safetensors *file = NULL;

    TRY(attncl_safetensors_open(d->file.path, &file));
    const attncl_status status = d->class->read_arrays(d, file);
    attncl_safetensors_close(file);
    return status;
}

attncl_status attncl__dataset_open(const struct dataset_class *class, const char *path,
                                   const struct dataset_options *options, struct dataset **ret)
{
    attncl_status status = ATTNCL_OK;

    if (class->endless) // ready batches have their own sizes
        TRY(check_size(options));
    struct dataset *d = attncl__alloc_zero(class->bytes);
    REQUIRE(d, ATTNCL_ERR_NO_MEMORY, "a dataset");
    d->class = class;
    d->options = *options;
    d->file = DATA_FILE_EMPTY;
    d->pad = -1;
    TRY_DONE(attncl__data_file_open(path, &d->file));
    TRY_DONE(class->read ? class->read(d) : read_arrays(d));
    TRY_DONE(attncl__data_file_check(&d->file));                 // unchanged since it was hashed
    d->options.vocabulary = d->options.target_vocabulary = NULL; // owned by the caller
    d->options.tokenizer = d->options.tokenizer_path = NULL;
    *ret = d;
    d = NULL; // ownership has passed to the caller

done:
    attncl__dataset_close(d);
    return status;
}

void attncl__dataset_close(struct dataset *d)
{
    if (!d)
        return;
    attncl__dataset_close(d->ready);
    d->class->close(d);
    for (size_t i = 0; i < DATASET_MAX_METADATA; ++i)
        attncl__free(d->value[i]);
    attncl__data_file_close(&d->file);
    attncl__free(d);
}

void attncl__dataset_split(struct dataset *d)
{
    const double n = (double)d->n;

    d->n_train = (int64_t)floor(n - n * d->options.valid_fraction);
}

const char *attncl__dataset_metadata(const struct dataset *d, size_t i, const char **value_ret)
{
    if (i >= DATASET_MAX_METADATA || !d->key[i])
        return NULL;
    *value_ret = d->value[i];
    return d->key[i];
}

void attncl__dataset_vocabularies(const struct dataset *d, int64_t *source_ret, int64_t *target_ret)
{
    *source_ret = d->n_vocab[0];
    *target_ret = d->n_vocab[1];
    if (!d->ready)
        return;
    if (d->ready->n_vocab[0] > *source_ret)
        *source_ret = d->ready->n_vocab[0];
    if (d->ready->n_vocab[1] > *target_ret)
        *target_ret = d->ready->n_vocab[1];
}

uint64_t attncl__dataset_hash(const struct dataset *d)
{
    // Swapping the two files must change the hash.
    const uint64_t own = d->file.hash + d->tokenizer_hash * 31;
    return d->ready ? own * 31 + d->ready->file.hash : own;
}

int64_t attncl__dataset_count(const struct dataset *d, enum dataset_split split)
{
    return split == SPLIT_TRAIN && d->ready ? d->ready->count[split] : d->count[split];
}

attncl_status attncl__dataset_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                    struct batch *ret)
{
    attncl_status status = ATTNCL_OK;
    const bool endless = split == SPLIT_TRAIN && d->class->endless;
    struct batch batch = {0};

    if (split == SPLIT_TRAIN && d->ready)
        return attncl__dataset_batch(d->ready, split, index, ret);
    REQUIRE(index >= 0 && (endless || index < d->count[split]), ATTNCL_ERR_ARGUMENT,
            "%s: batch %" PRId64 " is asked for, there are %" PRId64, d->file.path, index,
            d->count[split]);
    TRY_DONE(d->class->batch(d, split, index, &batch));
    TRY_DONE(attncl__data_file_check(&d->file)); // unchanged while the batch was read
    *ret = batch;
    batch = (struct batch){0};

done:
    attncl__batch_free(&batch);
    return status;
}

// -- arrays

attncl_status attncl__dataset_read_ids(const struct dataset *d, const attncl_array *array,
                                       int64_t *largest_ret, int32_t **ret)
{
    attncl_status status = ATTNCL_OK;
    const char *path = d->file.path;

    REQUIRE(attncl__is_integer(array->dtype), ATTNCL_ERR_FORMAT, "%s: %s is not of integers", path,
            array->name);
    const size_t n = array->bytes * CHAR_BIT / attncl__dtype_bits(array->dtype);
    int32_t *ids = attncl__alloc_array(n, sizeof *ids);
    REQUIRE(ids, ATTNCL_ERR_NO_MEMORY, "%s: %s of %zu elements", path, array->name, n);
    TRY_DONE(attncl__prefix_failure(attncl__convert(array->dtype, array->data, ATTNCL_I32, ids, n),
                                    "%s: %s", path, array->name));
    for (size_t i = 0; i < n; ++i) {
        if (ids[i] < 0)
            TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "%s: %s: element %zu is %" PRId32 ", no token", path,
                          array->name, i, ids[i]));
        if (ids[i] > *largest_ret)
            *largest_ret = ids[i];
    }
    *ret = ids;
    ids = NULL;

done:
    attncl__free(ids);
    return status;
}

// -- batches

attncl_status attncl__batch_create(const attncl_array *arrays, size_t n, struct batch *batch)
{
    size_t elements = 0, at = 0;

    for (size_t i = 0; i < n; ++i) {
        size_t count = sizeof(int32_t);
        for (int k = 0; k < arrays[i].rank; ++k)
            REQUIRE(ckd_mul_size(count, (size_t)arrays[i].dim[k], &count), ATTNCL_ERR_NO_MEMORY,
                    "%s of a batch", arrays[i].name);
        batch->array[i] = arrays[i];
        batch->array[i].dtype = ATTNCL_I32;
        batch->array[i].bytes = count;
        REQUIRE(ckd_add_size(elements, count / sizeof(int32_t), &elements), ATTNCL_ERR_NO_MEMORY,
                "a batch");
    }
    batch->memory = attncl__alloc_array(elements, sizeof *batch->memory);
    REQUIRE(batch->memory, ATTNCL_ERR_NO_MEMORY, "a batch of %zu elements", elements);
    batch->n = n;
    for (size_t i = 0; i < n; at += batch->array[i++].bytes / sizeof(int32_t))
        batch->array[i].data = batch->memory + at;
    return ATTNCL_OK;
}

int32_t *attncl__batch_data(const struct batch *batch, size_t i)
{
    return batch->memory + ((const int32_t *)batch->array[i].data - batch->memory);
}

void attncl__batch_free(struct batch *batch)
{
    attncl__free(batch->memory);
    *batch = (struct batch){0};
}
