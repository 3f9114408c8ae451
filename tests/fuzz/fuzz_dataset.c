// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as training data.  The first four say how they are read: text, tokens,
// pairs of sentences, labelled pairs or ready batches, and with which options.

#include <string.h>

#include "base/alloc.h"
#include "fuzz/fuzz.h"
#include "train/dataset.h"

enum { TEXT, TOKENS, PAIRS, BATCHES, N_FORMS, N_OPTIONS = 4 };

static attncl_status open_data(const uint8_t how[N_OPTIONS], const char *path, struct dataset **ret)
{
    const struct dataset_options options = {
        .batch_size = 1 + how[1] % 5,
        .seq_len = 1 + how[1] / 5 % 9,
        .pair_form = (enum pair_form)(how[0] / N_FORMS % 3),
        .time_first = how[2] & 1,
        .with_lens = how[2] >> 1 & 1,
        .valid_len = how[2] >> 2 & 3,
        .valid_fraction = how[2] >> 4 & 1 ? 0.3 : 0,
        .order = (enum dataset_order)(how[2] >> 5 & 7) % 3,
        .seed = how[3],
        .min_frequency = how[3] % 3,
        .vocabulary = how[3] & 64 ? "a\nb\nc" : NULL,
    };
    switch (how[0] % N_FORMS) {
    case TEXT:
        return attncl__dataset_open(&attncl__data_text, path, &options, ret);
    case TOKENS:
        return attncl__dataset_open(&attncl__data_tokens, path, &options, ret);
    case PAIRS:
        return attncl__dataset_open(&attncl__data_pairs, path, &options, ret);
    default:
        return attncl__dataset_open(&attncl__data_batches, path, &options, ret);
    }
}

// Every element is a number that the data can have.
static void check_batch(struct dataset *d, const struct batch *batch)
{
    int64_t source, target, sum = 0;
    attncl__dataset_vocabularies(d, &source, &target);
    MUST(batch->n > 0 && batch->n <= BATCH_MAX_ARRAYS);
    for (size_t i = 0; i < batch->n; ++i) {
        const int32_t *element = batch->array[i].data;
        for (size_t k = 0; k < batch->array[i].bytes / sizeof *element; ++k)
            sum += element[k];
    }
    MUST(sum != INT64_MIN);
}

static void read_batches(struct dataset *d)
{
    const char *value;
    for (size_t i = 0; attncl__dataset_metadata(d, i, &value); ++i)
        MUST(strlen(value) < SIZE_MAX);
    for (int split = SPLIT_TRAIN; split <= SPLIT_VALID; ++split) {
        const int64_t n = attncl__dataset_count(d, split), past = split == SPLIT_TRAIN ? 2 : 0;
        MUST(n >= 0);
        for (int64_t i = 0; i < n + past && i < 50; ++i) {
            struct batch batch = {.n = 0};
            if (fuzz_is_ok(attncl__dataset_batch(d, split, i, &batch)))
                check_batch(d, &batch);
            attncl__batch_free(&batch);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dataset *d = NULL;
    if (size < N_OPTIONS)
        return 0;
    const char *path = fuzz_path(data + N_OPTIONS, size - N_OPTIONS);
    if (fuzz_is_ok(open_data(data, path, &d)))
        read_batches(d);
    else
        MUST(!d);
    attncl__dataset_close(d);
    MUST(attncl__alloc_live() == 0);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    const int form = size < N_OPTIONS ? TEXT : data[0] % N_FORMS;
    if (form == TEXT || form == PAIRS || seed % 8 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return N_OPTIONS +
           fuzz_mutate_framed(data + N_OPTIONS, size - N_OPTIONS, max_size - N_OPTIONS, seed / 8);
}
