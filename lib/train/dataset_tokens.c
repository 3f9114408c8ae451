// SPDX-License-Identifier: MIT
//
// Token ids: integers "tokens" [n] of a safetensors file, or a UTF-8 text encoded by a tokenizer.

#include <inttypes.h>
#include <string.h>

#include "attncl/tokenizer.h"
#include "train/dataset.h"

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
    TRY(attncl__dataset_read_ids(d, array, &largest, &((struct token_dataset *)d)->ids));
    d->n_vocab[0] = largest + 1;
    d->n = array->dim[0];
    return attncl__windows_split(d, "tokens");
}

// -- a text

static attncl_status read_all(const struct data_file *file, char **ret)
{
    REQUIRE(file->bytes < SIZE_MAX && (*ret = attncl__alloc((size_t)file->bytes + 1)) != NULL,
            ATTNCL_ERR_NO_MEMORY, "%s: %" PRIu64 " bytes of text", file->path, file->bytes);
    TRY(attncl__data_file_read(file, 0, *ret, (size_t)file->bytes));
    const char *zero = memchr(*ret, 0, (size_t)file->bytes);
    REQUIRE(!zero, ATTNCL_ERR_FORMAT, "%s: a zero byte at byte %zu: it is no text", file->path,
            (size_t)(zero - *ret));
    return ATTNCL_OK;
}

// Encodes the whole text at once, like `attncl eval`, since tokens depend on the surrounding text.
static attncl_status encode_text(struct dataset *d, attncl_tokenizer *tokenizer, const char *text)
{
    struct token_dataset *to = (struct token_dataset *)d;
    const int32_t *ids;
    int32_t largest = -1;
    size_t n;

    TRY(attncl__prefix_failure(
        attncl_tokenizer_encode(tokenizer, text, (size_t)d->file.bytes, 1, &ids, &n), "%s",
        d->file.path));
    to->ids = attncl__alloc_array(n + 1, sizeof *ids);
    REQUIRE(to->ids, ATTNCL_ERR_NO_MEMORY, "%s: %zu tokens", d->file.path, n);
    memcpy(to->ids, ids, n * sizeof *ids);
    d->n = (int64_t)n;
    for (size_t i = 0; i < n; ++i)
        if (ids[i] > largest)
            largest = ids[i];
    d->n_vocab[0] = d->options.has_model ? (int64_t)largest + 1 : attncl_tokenizer_count(tokenizer);
    return ATTNCL_OK;
}

static attncl_status read_text(struct dataset *d)
{
    attncl_status status = ATTNCL_OK;
    const char *rules = d->options.tokenizer;
    attncl_tokenizer *tokenizer = NULL;
    char *text = NULL;

    TRY_DONE(attncl__prefix_failure(attncl_tokenizer_create(rules, strlen(rules), &tokenizer), "%s",
                                    d->options.tokenizer_path));
    TRY_DONE(read_all(&d->file, &text));
    TRY_DONE(encode_text(d, tokenizer, text));
    d->tokenizer_hash = attncl__data_hash(0, rules, strlen(rules));
    d->key[0] = "attncl.tokenizer";
    d->value[0] = attncl__copy_text(rules);
    status = d->value[0] ? attncl__windows_split(d, "tokens")
                         : FAIL(ATTNCL_ERR_NO_MEMORY, "a tokenizer of %zu bytes", strlen(rules));

done:
    attncl__free(text);
    attncl_tokenizer_destroy(tokenizer);
    return status;
}

const struct dataset_class attncl__data_encoded = {
    .bytes = sizeof(struct token_dataset),
    .read = read_text,
    .close = close_tokens,
    .batch = attncl__windows_batch,
    .tokens = copy_tokens,
    .endless = true,
};

const struct dataset_class attncl__data_tokens = {
    .bytes = sizeof(struct token_dataset),
    .read_arrays = read_ids,
    .close = close_tokens,
    .batch = attncl__windows_batch,
    .tokens = copy_tokens,
    .endless = true,
};
