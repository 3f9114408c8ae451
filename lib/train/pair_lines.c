// SPDX-License-Identifier: MIT
//
// Reads lines of pairs: "source TAB target".  Ignores further columns and empty lines.  Tags and their
// words are separated only at spaces.

#define _XOPEN_SOURCE 700 // newlocale, towlower_l
#include <inttypes.h>
#include <locale.h>
#include <string.h>
#include <wctype.h>

#include "base/ckd.h"
#include "base/utf8.h"
#include "train/dataset.h"

// The state of reading lines into a dataset.
struct reader {
    struct pair_dataset *p;
    locale_t locale;    // for lower case
    struct strbuf word; // the current word so far
};

// -- rows

static const char *const side_name[N_SIDES] = {"source", "target"};

// A row of one side.
struct row {
    enum side side;
    int32_t *ids;    // [length]
    int64_t n_words; // may exceed the length; the row takes the first words
};

// Adds the row of pair n to a side, filled with padding.
static attncl_status add_row(struct pair_dataset *p, enum side side, struct row *ret)
{
    const size_t length = (size_t)p->length[side], n = (size_t)p->base.n;
    size_t row_bytes;

    REQUIRE(ckd_mul_size(length, sizeof(int32_t), &row_bytes), ATTNCL_ERR_NO_MEMORY, "a sentence");
    REQUIRE(attncl__grow_list(&p->ids[side], n, &p->capacity[side], row_bytes),
            ATTNCL_ERR_NO_MEMORY, "%zu pairs", n + 1);
    *ret = (struct row){.side = side, .ids = p->ids[side] + n * length};
    for (size_t i = 0; i < length; ++i)
        ret->ids[i] = -1;
    return ATTNCL_OK;
}

// Counts the current word, if any, and begins the next.
static attncl_status end_word(struct reader *r, struct row *row)
{
    int index;

    REQUIRE(!r->word.failed, ATTNCL_ERR_NO_MEMORY, "a word of the %s", side_name[row->side]);
    if (r->word.used == 0)
        return ATTNCL_OK;
    if (row->n_words < r->p->length[row->side]) {
        TRY(attncl__words_count(&r->p->words[row->side], r->word.data, &index));
        row->ids[row->n_words] = index;
    }
    row->n_words += 1;
    r->word.used = 0;
    return ATTNCL_OK;
}

// -- sentences as words

enum sentence_form {
    SENTENCE_TEXT,  // lower case; each ',', '.', '!' and '?' begins a word
    SENTENCE_WORDS, // lower case, separated only at spaces
    SENTENCE_NAMES, // unchanged, separated only at spaces
};
enum { NO_BREAK_SPACE = 0xa0, NARROW_NO_BREAK_SPACE = 0x202f };

// Adds the words of UTF-8 text; no-break spaces count as spaces.
static attncl_status add_words(struct reader *r, const char *sentence, size_t bytes,
                               enum sentence_form form, struct row *row)
{
    for (size_t at = 0; at < bytes;) {
        char encoded[UTF8_MAX_BYTES];
        uint32_t code;
        at += attncl__utf8_decode(sentence + at, bytes - at, &code);
        const bool space = code == ' ' || code == NO_BREAK_SPACE || code == NARROW_NO_BREAK_SPACE;
        const bool mark = form == SENTENCE_TEXT && code < 0x80 && strchr(",.!?", (int)code);
        if (space || mark)
            TRY(end_word(r, row));
        if (space)
            continue;
        if (form != SENTENCE_NAMES)
            code = (uint32_t)towlower_l((wint_t)code, r->locale);
        attncl__strbuf_add_bytes(&r->word, encoded, attncl__utf8_encode(code, encoded));
    }
    return end_word(r, row);
}

// -- lines

// Adds pair n's sentence of a side.
static attncl_status add_sentence(struct reader *r, enum side side, const char *sentence,
                                  size_t bytes, struct row *row)
{
    static const enum sentence_form forms[][N_SIDES] = {
        [PAIR_SENTENCES] = {SENTENCE_TEXT, SENTENCE_TEXT},
        [PAIR_CLASS] = {SENTENCE_TEXT, SENTENCE_NAMES},
        [PAIR_TAGS] = {SENTENCE_WORDS, SENTENCE_NAMES}};
    const enum pair_form form = r->p->base.options.pair_form;

    TRY(add_row(r->p, side, row));
    TRY(add_words(r, sentence, bytes, forms[form][side], row));
    REQUIRE(row->n_words > 0, ATTNCL_ERR_FORMAT, "no word in the %s", side_name[side]);
    if (form != PAIR_SENTENCES)
        return ATTNCL_OK;
    attncl__strbuf_add(&r->word, "<eos>");
    return end_word(r, row);
}

// Adds the whole text, without surrounding spaces, as one label.
static attncl_status add_class(struct reader *r, const char *text, size_t bytes)
{
    struct row row;

    while (bytes > 0 && text[0] == ' ')
        ++text, --bytes;
    while (bytes > 0 && text[bytes - 1] == ' ')
        --bytes;
    REQUIRE(bytes > 0, ATTNCL_ERR_FORMAT, "no label in the target");
    TRY(add_row(r->p, TARGET, &row));
    attncl__strbuf_add_bytes(&r->word, text, bytes);
    return end_word(r, &row);
}

static attncl_status add_target(struct reader *r, const char *text, size_t bytes, int64_t n_source)
{
    const enum pair_form form = r->p->base.options.pair_form;
    struct row row;

    if (form == PAIR_CLASS)
        return add_class(r, text, bytes);
    TRY(add_sentence(r, TARGET, text, bytes, &row));
    REQUIRE(form != PAIR_TAGS || row.n_words == n_source, ATTNCL_ERR_FORMAT,
            "%" PRId64 " words in the source, %" PRId64
            " labels in the target; each word needs a label",
            n_source, row.n_words);
    return ATTNCL_OK;
}

static attncl_status add_line(struct reader *r, const char *line, size_t bytes, int64_t number)
{
    struct pair_dataset *p = r->p;
    const size_t n = (size_t)p->base.n;
    const char *tab = memchr(line, '\t', bytes), *end = line + bytes;
    struct row source;

    REQUIRE(tab, ATTNCL_ERR_FORMAT, "no TAB between source and target");
    const char *after = memchr(tab + 1, '\t', (size_t)(end - tab - 1));
    REQUIRE(GROW_LIST(p->line, n, p->line_capacity), ATTNCL_ERR_NO_MEMORY, "%zu pairs", n + 1);
    p->line[n] = number;
    TRY(add_sentence(r, SOURCE, line, (size_t)(tab - line), &source));
    TRY(add_target(r, tab + 1, (size_t)((after ? after : end) - tab - 1), source.n_words));
    p->base.n++;
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

static attncl_status add_lines(struct reader *r, const char *text, size_t bytes)
{
    int64_t number = 1;

    for (size_t at = 0; at < bytes; ++number) {
        const char *line = text + at, *end = memchr(line, '\n', bytes - at);
        size_t length = end ? (size_t)(end - line) : bytes - at;
        at += length + 1;
        length -= length > 0 && line[length - 1] == '\r';
        if (length == 0)
            continue;
        TRY(attncl__prefix_failure(add_line(r, line, length, number), "%s: line %" PRId64,
                                   r->p->base.file.path, number));
    }
    return ATTNCL_OK;
}

attncl_status attncl__pairs_read(struct pair_dataset *p)
{
    attncl_status status = ATTNCL_OK;
    struct reader r = {p, newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), STRBUF_EMPTY};
    const size_t bytes = (size_t)p->base.file.bytes;
    char *text = NULL;

    REQUIRE(r.locale, ATTNCL_ERR_UNSUPPORTED,
            "the C library has no locale C.UTF-8, which says what lower case is");
    text = attncl__alloc(bytes);
    if (!text)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%s: %zu bytes", p->base.file.path, bytes));
    TRY_DONE(attncl__data_file_read(&p->base.file, 0, text, bytes));
    TRY_DONE(check_text(p, text, bytes));
    TRY_DONE(add_lines(&r, text, bytes));

done:
    attncl__strbuf_free(&r.word);
    attncl__free(text);
    freelocale(r.locale);
    return status;
}
