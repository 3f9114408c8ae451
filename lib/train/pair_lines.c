// SPDX-License-Identifier: MIT
//
// Lines of pairs: "source TAB target".  Columns after the second are not read; empty lines are passed
// over.  Tags and the words that they belong to are divided at spaces alone.

#define _XOPEN_SOURCE 700 // newlocale, towlower_l
#include <inttypes.h>
#include <locale.h>
#include <string.h>
#include <wctype.h>

#include "base/ckd.h"
#include "base/utf8.h"
#include "train/dataset_internal.h"

// -- sentences as words

enum sentence_form {
    SENTENCE_TEXT,  // lower case, and each ',', '.', '!' and '?' begins a word
    SENTENCE_WORDS, // lower case, divided at spaces alone
    SENTENCE_NAMES, // as it is, divided at spaces alone
};
enum { NO_BREAK_SPACE = 0xa0, NARROW_NO_BREAK_SPACE = 0x202f };

static attncl_status add_words(const char *sentence, size_t bytes, enum sentence_form form,
                               locale_t locale, struct strbuf *ret)
{
    bool at_begin = true; // of a word

    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t code;
        length = attncl__utf8_decode(sentence + at, bytes - at, &code);
        REQUIRE(length > 0, ATTNCL_ERR_FORMAT, "is not UTF-8 at byte %zu", at);
        const bool space = code == ' ' || code == NO_BREAK_SPACE || code == NARROW_NO_BREAK_SPACE;
        const bool mark =
            form == SENTENCE_TEXT && code < 0x80 && code != 0 && strchr(",.!?", (int)code);
        if (!space && (at_begin || mark))
            attncl__strbuf_add_bytes(ret, " ", 1);
        at_begin = space;
        if (space)
            continue;
        if (form != SENTENCE_NAMES)
            code = (uint32_t)towlower_l((wint_t)code, locale);
        char encoded[UTF8_MAX_BYTES];
        attncl__strbuf_add_bytes(ret, encoded, attncl__utf8_encode(code, encoded));
    }
    return ATTNCL_OK;
}

// A sentence of `bytes` bytes of UTF-8 as words with a space before each; no-break spaces are spaces.
static attncl_status divide_sentence(const char *sentence, size_t bytes, enum sentence_form form,
                                     struct strbuf *ret)
{
    const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

    REQUIRE(locale, ATTNCL_ERR_UNSUPPORTED,
            "the C library has no locale C.UTF-8, which says what lower case is");
    const attncl_status status = add_words(sentence, bytes, form, locale, ret);
    freelocale(locale);
    return status;
}

// -- rows

static const char *const side_name[N_SIDES] = {"source", "target"};

// The row of pair p->n of a side, filled with padding.
static attncl_status add_row(struct pair_dataset *p, enum side side, int32_t **ret)
{
    const size_t length = (size_t)p->length[side];
    size_t row_bytes;

    REQUIRE(ckd_mul_size(length, sizeof(int32_t), &row_bytes), ATTNCL_ERR_NO_MEMORY, "a sentence");
    int32_t *ids = attncl__grow_list(p->ids[side], (size_t)p->n, &p->capacity[side], row_bytes);
    REQUIRE(ids, ATTNCL_ERR_NO_MEMORY, "%" PRId64 " pairs", p->n + 1);
    p->ids[side] = ids;
    *ret = ids + (size_t)p->n * length;
    for (size_t i = 0; i < length; ++i)
        (*ret)[i] = -1;
    return ATTNCL_OK;
}

// Divides `text`, words with a space before each, and counts those that the row takes.
static attncl_status count_words(struct pair_dataset *p, enum side side, char *text, int32_t *row,
                                 int64_t *n_ret)
{
    *n_ret = 0;
    for (char *word = text; *word; ++*n_ret) {
        word += 1;
        char *end = word + strcspn(word, " ");
        const bool last = *end == '\0';
        *end = '\0';
        if (*n_ret < p->length[side]) {
            int index;
            TRY(attncl__words_count(&p->words[side], word, &index));
            row[*n_ret] = index;
        }
        word = end;
        if (!last)
            *end = ' ';
    }
    return ATTNCL_OK;
}

// Adds a sentence as pair p->n of its side.  *n_ret: its words.
static attncl_status add_sentence(struct pair_dataset *p, enum side side, const char *sentence,
                                  size_t bytes, int64_t *n_ret)
{
    static const enum sentence_form forms[][N_SIDES] = {
        [PAIR_SENTENCES] = {SENTENCE_TEXT, SENTENCE_TEXT},
        [PAIR_CLASS] = {SENTENCE_TEXT, SENTENCE_NAMES},
        [PAIR_TAGS] = {SENTENCE_WORDS, SENTENCE_NAMES}};
    const enum pair_form form = p->base.options.pair_form;
    attncl_status status = ATTNCL_OK;
    struct strbuf text = STRBUF_EMPTY;
    int32_t *row;

    TRY(add_row(p, side, &row));
    TRY_DONE(divide_sentence(sentence, bytes, forms[form][side], &text));
    if (text.used == 0 && !text.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "no word in the %s", side_name[side]));
    if (form == PAIR_SENTENCES)
        attncl__strbuf_add(&text, " <eos>");
    if (text.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "a sentence of %zu bytes", bytes));
    TRY_DONE(count_words(p, side, text.data, row, n_ret));

done:
    attncl__strbuf_free(&text);
    return status;
}

// The whole text is one label, but for spaces before and after.
static attncl_status add_class(struct pair_dataset *p, const char *text, size_t bytes)
{
    struct strbuf label = STRBUF_EMPTY;
    int32_t *row;
    int index;

    while (bytes > 0 && text[0] == ' ')
        ++text, --bytes;
    while (bytes > 0 && text[bytes - 1] == ' ')
        --bytes;
    REQUIRE(bytes > 0, ATTNCL_ERR_FORMAT, "no label in the target");
    TRY(add_row(p, TARGET, &row));
    attncl__strbuf_add_bytes(&label, text, bytes);
    const attncl_status status = label.failed
                                     ? FAIL(ATTNCL_ERR_NO_MEMORY, "a label of %zu bytes", bytes)
                                     : attncl__words_count(&p->words[TARGET], label.data, &index);
    attncl__strbuf_free(&label);
    if (status == ATTNCL_OK)
        row[0] = index;
    return status;
}

static attncl_status add_target(struct pair_dataset *p, const char *text, size_t bytes,
                                int64_t n_source)
{
    int64_t n;

    if (p->base.options.pair_form == PAIR_CLASS)
        return add_class(p, text, bytes);
    TRY(add_sentence(p, TARGET, text, bytes, &n));
    REQUIRE(p->base.options.pair_form != PAIR_TAGS || n == n_source, ATTNCL_ERR_FORMAT,
            "%" PRId64 " words in the source, %" PRId64
            " labels in the target; each word needs a label",
            n_source, n);
    return ATTNCL_OK;
}

static attncl_status add_line(struct pair_dataset *p, const char *line, size_t bytes,
                              int64_t number)
{
    const char *tab = memchr(line, '\t', bytes), *end = line + bytes;
    int64_t n_source;

    REQUIRE(tab, ATTNCL_ERR_FORMAT, "no TAB between source and target");
    const char *after = memchr(tab + 1, '\t', (size_t)(end - tab - 1));
    int64_t *lines = attncl__grow_list(p->line, (size_t)p->n, &p->line_capacity, sizeof *p->line);
    REQUIRE(lines, ATTNCL_ERR_NO_MEMORY, "%" PRId64 " pairs", p->n + 1);
    p->line = lines;
    p->line[p->n] = number;
    TRY(add_sentence(p, SOURCE, line, (size_t)(tab - line), &n_source));
    TRY(add_target(p, tab + 1, (size_t)((after ? after : end) - tab - 1), n_source));
    p->n++;
    return ATTNCL_OK;
}

static attncl_status check_text(const struct pair_dataset *p, const char *text, size_t bytes)
{
    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t code = 0;
        length = attncl__utf8_decode(text + at, bytes - at, &code);
        REQUIRE(length > 0, ATTNCL_ERR_FORMAT, "%s: is not UTF-8 at byte %zu", p->base.file.path,
                at);
        REQUIRE(code != 0, ATTNCL_ERR_FORMAT, "%s: a zero byte at byte %zu: it is no text",
                p->base.file.path, at);
    }
    return ATTNCL_OK;
}

static attncl_status add_lines(struct pair_dataset *p, const char *text, size_t bytes)
{
    int64_t number = 1;

    for (size_t at = 0; at < bytes; ++number) {
        const char *line = text + at, *end = memchr(line, '\n', bytes - at);
        size_t length = end ? (size_t)(end - line) : bytes - at;
        at += length + 1;
        length -= length > 0 && line[length - 1] == '\r';
        if (length == 0)
            continue;
        const attncl_status status = add_line(p, line, length, number);
        if (status != ATTNCL_OK) {
            attncl__error_prefix("%s: line %" PRId64, p->base.file.path, number);
            return status;
        }
    }
    return ATTNCL_OK;
}

attncl_status attncl__pairs_read(struct pair_dataset *p)
{
    attncl_status status = ATTNCL_OK;
    const size_t bytes = (size_t)p->base.file.bytes;
    char *text = attncl__alloc(bytes);

    REQUIRE(text, ATTNCL_ERR_NO_MEMORY, "%s: %zu bytes", p->base.file.path, bytes);
    TRY_DONE(attncl__data_file_read(&p->base.file, 0, text, bytes));
    TRY_DONE(check_text(p, text, bytes));
    TRY_DONE(add_lines(p, text, bytes));

done:
    attncl__free(text);
    return status;
}
