// SPDX-License-Identifier: MIT
//
// The characters of a UTF-8 text.  The text stays in its file: one pass checks it, collects the
// vocabulary, and marks every MARK_CHARACTERS-th character, from which windows are read and decoded.

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "train/dataset.h"

enum { MARK_CHARACTERS = 1024, CHUNK_BYTES = 1 << 16 };

// A table of Unicode's 1.1 million codes, 4.4 MB, so that every character takes one lookup.
struct characters {
    int32_t n;
    int32_t *index; // [UTF8_CODES]; -1: not in the vocabulary
};

struct text_dataset {
    struct dataset base;
    struct characters characters;
    uint64_t *mark; // byte of character i * MARK_CHARACTERS
    size_t n_marks, marks_capacity;
};

// -- the vocabulary

// Creates an empty vocabulary.
static attncl_status create_characters(struct characters *c)
{
    c->index = attncl__alloc_array(UTF8_CODES, sizeof *c->index);
    REQUIRE(c->index, ATTNCL_ERR_NO_MEMORY, "a vocabulary of characters");
    memset(c->index, 0xff, UTF8_CODES * sizeof *c->index);
    return ATTNCL_OK;
}

// Reads the vocabulary of the characters of `text`, in order.
static attncl_status read_vocabulary(const char *text, struct characters *c)
{
    TRY(create_characters(c));
    for (size_t at = 0, bytes = strlen(text); at < bytes;) {
        uint32_t code;
        const size_t length = attncl__utf8_decode(text + at, bytes - at, &code);
        REQUIRE(length > 0, ATTNCL_ERR_FORMAT, "attncl.vocab is not UTF-8 at byte %zu", at);
        REQUIRE(c->index[code] < 0, ATTNCL_ERR_FORMAT,
                "attncl.vocab holds the character U+%04" PRIX32 " twice", code);
        c->index[code] = c->n++;
        at += length;
    }
    return ATTNCL_OK;
}

// Numbers the characters by code.  *text_ret: all of them, for the caller to free.
static attncl_status number_characters(struct characters *c, char **text_ret)
{
    struct strbuf text = STRBUF_EMPTY;

    for (uint32_t code = 0; code < UTF8_CODES; ++code) {
        if (c->index[code] < 0)
            continue;
        char bytes[UTF8_MAX_BYTES];
        c->index[code] = c->n++;
        attncl__strbuf_add_bytes(&text, bytes, attncl__utf8_encode(code, bytes));
    }
    if (text.failed) {
        attncl__strbuf_free(&text);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "a vocabulary of %" PRId32 " characters", c->n);
    }
    *text_ret = text.data;
    return ATTNCL_OK;
}

// -- the pass over the text

// Adds the next character, at byte `at`.
static attncl_status add_character(struct text_dataset *text, const char *bytes, size_t length,
                                   uint32_t code, uint64_t at)
{
    const char *path = text->base.file.path;

    REQUIRE(code != 0, ATTNCL_ERR_FORMAT, "%s: a zero byte at byte %" PRIu64 ": it is no text",
            path, at);
    if (!text->base.options.vocabulary)
        text->characters.index[code] = 0;
    REQUIRE(text->characters.index[code] >= 0, ATTNCL_ERR_FORMAT,
            "%s: character '%.*s' (U+%04" PRIX32 ") at byte %" PRIu64
            " is not in the model's vocabulary",
            path, code < ' ' ? 0 : (int)length, bytes, code, at);
    if (text->base.n++ % MARK_CHARACTERS != 0)
        return ATTNCL_OK;
    REQUIRE(GROW_LIST(text->mark, text->n_marks, text->marks_capacity), ATTNCL_ERR_NO_MEMORY,
            "%s: %zu places in the text", path, text->n_marks + 1);
    text->mark[text->n_marks++] = at;
    return ATTNCL_OK;
}

// Adds the characters in `bytes` bytes from byte `at` of the file on.  *used_ret: bytes used, without a
// truncated character at the end.
static attncl_status scan_chunk(struct text_dataset *text, const char *chunk, size_t bytes,
                                uint64_t at, size_t *used_ret)
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
        TRY(add_character(text, chunk + used, length, code, at + used));
        used += length;
    }
    *used_ret = used;
    return ATTNCL_OK;
}

static attncl_status scan_text(struct text_dataset *text)
{
    attncl_status status = ATTNCL_OK;
    const uint64_t total = text->base.file.bytes;
    char *chunk = attncl__alloc(CHUNK_BYTES);

    REQUIRE(chunk, ATTNCL_ERR_NO_MEMORY, "%d bytes", CHUNK_BYTES);
    for (uint64_t at = 0; at < total;) {
        size_t used = 0, n = total - at < CHUNK_BYTES ? (size_t)(total - at) : CHUNK_BYTES;
        TRY_DONE(attncl__data_file_read(&text->base.file, at, chunk, n));
        TRY_DONE(scan_chunk(text, chunk, n, at, &used));
        at += used;
    }

done:
    attncl__free(chunk);
    return status;
}

// -- windows

// Decodes characters at .. at + n - 1 from `left` bytes that begin at the last mark before `at`.
static attncl_status decode_characters(const struct text_dataset *text, const char *bytes,
                                       size_t left, int64_t at, int64_t n, int32_t *ret)
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
    TRY_DONE(decode_characters(text, bytes, (size_t)(end - begin), at, n, ret));

done:
    attncl__free(bytes);
    return status;
}

static void close_text(struct dataset *d)
{
    struct text_dataset *text = (struct text_dataset *)d;

    attncl__free(text->characters.index);
    attncl__free(text->mark);
}

static attncl_status read_text(struct dataset *d)
{
    struct text_dataset *text = (struct text_dataset *)d;
    const char *given = d->options.vocabulary;

    REQUIRE(d->file.bytes > 0, ATTNCL_ERR_FORMAT, "%s: is empty", d->file.path);
    if (given)
        TRY(read_vocabulary(given, &text->characters));
    else
        TRY(create_characters(&text->characters));
    TRY(scan_text(text));
    d->key[0] = "attncl.vocab";
    if (given)
        d->value[0] = attncl__copy_text(given);
    else
        TRY(number_characters(&text->characters, &d->value[0]));
    REQUIRE(d->value[0], ATTNCL_ERR_NO_MEMORY, "a vocabulary");
    d->n_vocab[0] = text->characters.n;
    return attncl__windows_split(d, "characters");
}

const struct dataset_class attncl__data_text = {
    .bytes = sizeof(struct text_dataset),
    .read = read_text,
    .close = close_text,
    .batch = attncl__windows_batch,
    .tokens = read_characters,
    .endless = true,
};
