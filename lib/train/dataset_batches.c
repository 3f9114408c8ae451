// SPDX-License-Identifier: MIT
//
// Ready batches of a safetensors file: batch i is element i of the first axis of each array.

#include <inttypes.h>
#include <string.h>

#include "train/dataset.h"

struct ready {
    struct dataset base;
    size_t n;
    attncl_array array[BATCH_MAX_ARRAYS]; // of one batch
    int32_t *ids[BATCH_MAX_ARRAYS];       // of all batches
};

// The arrays of each kind of file, in the batch's order; the targets are last.
struct expected {
    const char *name;
    int rank;
    bool optional;
    int vocabulary; // of its ids; -1: its elements are not ids
};
enum kind { OF_TEXT, OF_PAIRS, OF_CLASSES, OF_TAGS };
static const struct expected kinds[][BATCH_MAX_ARRAYS + 1] = {
    [OF_TEXT] = {{"tokens", 3, false, 0}, {"targets", 3, false, 0}},
    [OF_PAIRS] = {{"enc_X", 3, false, 0},
                  {"dec_X", 3, false, 1},
                  {"enc_valid_lens", 2, true, -1},
                  {"targets", 3, false, 1}},
    [OF_CLASSES] = {{"tokens", 3, false, 0}, {"valid_lens", 2, true, -1}, {"targets", 2, false, 1}},
    [OF_TAGS] = {{"tokens", 3, false, 0}, {"valid_lens", 2, true, -1}, {"targets", 3, false, 1}},
};

static enum kind get_kind(const struct ready *r, const attncl_safetensors *file)
{
    if (r->base.options.pair_form == PAIR_SENTENCES) // also for a text
        return attncl_safetensors_find(file, "enc_X") ? OF_PAIRS : OF_TEXT;
    return r->base.options.pair_form == PAIR_CLASS ? OF_CLASSES : OF_TAGS;
}

static void close_ready(struct dataset *d)
{
    struct ready *r = (struct ready *)d;

    for (size_t i = 0; i < r->n; ++i)
        attncl__free(r->ids[i]);
}

static attncl_status ready_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                 struct batch *ret)
{
    struct ready *r = (struct ready *)d;

    (void)split; // always SPLIT_TRAIN
    TRY(attncl__batch_create(r->array, r->n, ret));
    for (size_t i = 0; i < r->n; ++i) {
        const size_t bytes = ret->array[i].bytes, n = bytes / sizeof(int32_t);
        memcpy(attncl__batch_data(ret, i), r->ids[i] + (size_t)index * n, bytes);
    }
    return ATTNCL_OK;
}

// All arrays have N batches.  Further axes equal those of targets (`like`): both of a text, [N, T, B]; B
// of pairs, [N, B, ...], and all of dec_X; none of labelled batches, whose layout the model decides.
static attncl_status check_shape(const struct ready *r, const attncl_array *array, int64_t N,
                                 const attncl_array *like)
{
    const char *path = r->base.file.path;
    const int n_axes = r->base.options.pair_form != PAIR_SENTENCES             ? 1
                       : strcmp(array->name, "enc_X") == 0 || array->rank == 2 ? 2
                                                                               : 3;

    for (int k = 0; k < array->rank; ++k)
        REQUIRE(array->dim[k] >= 1, ATTNCL_ERR_FORMAT, "%s: axis %d of %s is empty", path, k,
                array->name);
    REQUIRE(array->dim[0] == N, ATTNCL_ERR_SHAPE,
            "%s: %s has %" PRId64 " batches, targets has %" PRId64, path, array->name,
            array->dim[0], N);
    for (int k = 1; k < n_axes; ++k)
        REQUIRE(array->dim[k] == like->dim[k], ATTNCL_ERR_SHAPE,
                "%s: axis %d of %s is %" PRId64 ", of targets %" PRId64, path, k, array->name,
                array->dim[k], like->dim[k]);
    return ATTNCL_OK;
}

static attncl_status add_array(struct ready *r, const struct expected *e, const attncl_array *array,
                               const attncl_array *targets)
{
    const char *path = r->base.file.path;
    int64_t largest = -1;

    REQUIRE(array->rank == e->rank, ATTNCL_ERR_SHAPE, "%s: %s has %d axes, %d are expected", path,
            e->name, array->rank, e->rank);
    TRY(check_shape(r, array, targets->dim[0], targets));
    TRY(attncl__dataset_read_ids(&r->base, array, &largest, &r->ids[r->n]));
    attncl_array *one = &r->array[r->n++];
    *one = (attncl_array){.name = e->name, .rank = e->rank - 1};
    for (int k = 0; k < one->rank; ++k)
        one->dim[k] = array->dim[k + 1];
    if (e->vocabulary >= 0 && r->base.n_vocab[e->vocabulary] < largest + 1)
        r->base.n_vocab[e->vocabulary] = largest + 1;
    return ATTNCL_OK;
}

static bool is_one_of(const struct expected *e, const char *name)
{
    while (e->name && strcmp(e->name, name) != 0)
        ++e;
    return e->name;
}

static attncl_status read_batches(struct dataset *d, const attncl_safetensors *file)
{
    struct ready *r = (struct ready *)d;
    const char *path = d->file.path;
    const enum kind kind = get_kind(r, file);
    const int rank = kind == OF_CLASSES ? 2 : 3;
    const attncl_array *targets = attncl_safetensors_find(file, "targets");

    for (size_t i = 0; i < attncl_safetensors_count(file); ++i) {
        const char *name = attncl_safetensors_at(file, i)->name;
        REQUIRE(is_one_of(kinds[kind], name), ATTNCL_ERR_FORMAT,
                "%s: array \"%s\" is not of batches, which are %s", path, name,
                kind <= OF_PAIRS ? "tokens and targets, or enc_X, dec_X, enc_valid_lens and targets"
                                 : "tokens, valid_lens and targets");
    }
    REQUIRE(targets && targets->rank == rank, ATTNCL_ERR_FORMAT,
            "%s: holds no array \"targets\" of %d axes", path, rank);
    for (const struct expected *e = kinds[kind]; e->name; ++e) {
        const attncl_array *array = attncl_safetensors_find(file, e->name);
        REQUIRE(array || e->optional, ATTNCL_ERR_FORMAT, "%s: holds no array \"%s\"", path,
                e->name);
        if (array)
            TRY(add_array(r, e, array, targets));
    }
    d->count[SPLIT_TRAIN] = targets->dim[0];
    return ATTNCL_OK;
}

const struct dataset_class attncl__data_batches = {
    .bytes = sizeof(struct ready),
    .read_arrays = read_batches,
    .close = close_ready,
    .batch = ready_batch,
};

attncl_status attncl__dataset_use_batches(struct dataset *d, const char *path)
{
    struct dataset *ready = NULL;

    TRY(attncl__dataset_open(&attncl__data_batches, path, &d->options, &ready));
    attncl__dataset_close(d->ready);
    d->ready = ready;
    return ATTNCL_OK;
}
