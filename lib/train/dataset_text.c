// SPDX-License-Identifier: MIT
//
// A UTF-8 text by characters.  The text stays in its file: one pass checks it and finds its vocabulary
// and the place of every MARK_CHARACTERS-th character, from where a window is read and decoded.

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "train/characters.h"
#include "train/dataset_internal.h"

enum { MARK_CHARACTERS = 1024, CHUNK_BYTES = 1 << 16 };

struct text_dataset {
    struct dataset base;
    struct windows windows;
    struct characters characters;
    uint64_t *mark; // byte of character i * MARK_CHARACTERS
    size_t n_marks, marks_capacity;
    int64_t n; // characters
};

// Character text->n, at byte `at`.
static attncl_status add_character(struct text_dataset *text, const char *bytes, size_t length,
                                   uint32_t code, uint64_t at, bool given)
{
    const char *path = text->base.file.path;

    REQUIRE(code != 0, ATTNCL_ERR_FORMAT, "%s: a zero byte at byte %" PRIu64 ": it is no text",
            path, at);
    if (!given)
        text->characters.index[code] = 0;
    REQUIRE(text->characters.index[code] >= 0, ATTNCL_ERR_FORMAT,
            "%s: character '%.*s' (U+%04" PRIX32 ") at byte %" PRIu64
            " is not in the model's vocabulary",
            path, code < ' ' ? 0 : (int)length, bytes, code, at);
    if (text->n++ % MARK_CHARACTERS != 0)
        return ATTNCL_OK;
    uint64_t *mark =
        attncl__grow_list(text->mark, text->n_marks, &text->marks_capacity, sizeof *mark);
    REQUIRE(mark, ATTNCL_ERR_NO_MEMORY, "%s: %zu places in the text", path, text->n_marks + 1);
    text->mark = mark;
    text->mark[text->n_marks++] = at;
    return ATTNCL_OK;
}

// All characters in `bytes` bytes from byte `at` of the file on; *used_ret: without one that is cut at
// the end.
static attncl_status scan_chunk(struct text_dataset *text, const char *chunk, size_t bytes,
                                uint64_t at, bool given, size_t *used_ret)
{
    const uint64_t total = text->base.file.bytes;
    size_t used = 0;

    while (used < bytes) {
        uint32_t code;
        const size_t length = attncl__utf8_decode(chunk + used, bytes - used, &code);
        if (length == 0 && bytes - used < UTF8_MAX_BYTES && at + bytes < total)
            break;
        REQUIRE(length > 0, ATTNCL_ERR_FORMAT, "%s: is not UTF-8 at byte %" PRIu64,
                text->base.file.path, at + used);
        TRY(add_character(text, chunk + used, length, code, at + used, given));
        used += length;
    }
    *used_ret = used;
    return ATTNCL_OK;
}

static attncl_status scan(struct text_dataset *text, bool given)
{
    attncl_status status = ATTNCL_OK;
    const uint64_t total = text->base.file.bytes;
    char *chunk = attncl__alloc(CHUNK_BYTES);

    REQUIRE(chunk, ATTNCL_ERR_NO_MEMORY, "%d bytes", CHUNK_BYTES);
    for (uint64_t at = 0; at < total;) {
        size_t used = 0, n = total - at < CHUNK_BYTES ? (size_t)(total - at) : CHUNK_BYTES;
        TRY_DONE(attncl__data_file_read(&text->base.file, at, chunk, n));
        TRY_DONE(scan_chunk(text, chunk, n, at, given, &used));
        at += used;
    }

done:
    attncl__free(chunk);
    return status;
}

// Decodes characters at .. at + n - 1 out of `bytes` bytes that begin at the mark before `at`.
static attncl_status decode(const struct text_dataset *text, const char *bytes, size_t left,
                            int64_t at, int64_t n, int32_t *ret)
{
    for (int64_t skip = at % MARK_CHARACTERS, i = -skip; i < n; ++i) {
        uint32_t code;
        const size_t length = attncl__utf8_decode(bytes, left, &code);
        REQUIRE(length > 0 && text->characters.index[code] >= 0, ATTNCL_ERR_IO,
                "%s: has another content now: changed while in use", text->base.file.path);
        if (i >= 0)
            ret[i] = text->characters.index[code];
        bytes += length;
        left -= length;
    }
    return ATTNCL_OK;
}

static attncl_status read_characters(struct dataset *d, int64_t at, int64_t n, int32_t *ret)
{
    attncl_status status = ATTNCL_OK;
    struct text_dataset *text = (struct text_dataset *)d;
    const size_t first = (size_t)(at / MARK_CHARACTERS);
    const size_t last = (size_t)((at + n - 1) / MARK_CHARACTERS) + 1;
    const uint64_t begin = text->mark[first];
    const uint64_t end = last < text->n_marks ? text->mark[last] : d->file.bytes;
    char *bytes = attncl__alloc((size_t)(end - begin));

    REQUIRE(bytes, ATTNCL_ERR_NO_MEMORY, "%" PRIu64 " bytes of text", end - begin);
    TRY_DONE(attncl__data_file_read(&d->file, begin, bytes, (size_t)(end - begin)));
    TRY_DONE(decode(text, bytes, (size_t)(end - begin), at, n, ret));

done:
    attncl__free(bytes);
    return status;
}

static void close_text(struct dataset *d)
{
    struct text_dataset *text = (struct text_dataset *)d;

    attncl__characters_free(&text->characters);
    attncl__free(text->mark);
}

static attncl_status text_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                struct batch *ret)
{
    return attncl__windows_batch(d, &((struct text_dataset *)d)->windows, split, index, ret);
}

static const struct dataset_class text_class = {close_text, text_batch, true};

static attncl_status open_characters(struct text_dataset *text, const char *given)
{
    struct dataset *d = &text->base;

    if (given)
        TRY(attncl__characters_of_text(given, &text->characters));
    else
        TRY(attncl__characters_create(&text->characters));
    TRY(scan(text, given != NULL));
    d->key[0] = "attncl.vocab";
    if (given)
        d->value[0] = attncl__copy_text(given);
    else
        TRY(attncl__characters_number(&text->characters, &d->value[0]));
    REQUIRE(d->value[0], ATTNCL_ERR_NO_MEMORY, "a vocabulary");
    d->n_vocab[0] = text->characters.n;
    return ATTNCL_OK;
}

attncl_status attncl__dataset_open_text(const char *path, const struct dataset_options *options,
                                        struct dataset **ret)
{
    attncl_status status = ATTNCL_OK;
    struct dataset *d = NULL;

    TRY(attncl__dataset_create(&text_class, sizeof(struct text_dataset), path, options, &d));
    struct text_dataset *text = (struct text_dataset *)d;
    text->windows = (struct windows){.unit = "characters", .read = read_characters};
    if (d->file.bytes == 0)
        TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "%s: is empty", path));
    TRY_DONE(open_characters(text, options->vocabulary));
    TRY_DONE(attncl__windows_split(d, &text->windows, text->n));
    TRY_DONE(attncl__data_file_check(&d->file)); // between the hash and the pass over the text
    *ret = d;
    d = NULL;

done:
    attncl__dataset_close(d);
    return status;
}
