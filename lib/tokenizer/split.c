// SPDX-License-Identifier: MIT
//
// Pre-tokenizers split a text into pieces, step by step.  BPE handles ByteLevel's bytes (bpe.is_byte_level).

#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "tokenizer/tokenizer.h"

static const char kinds[] =
    "Split ByteLevel Metaspace Digits Punctuation WhitespaceSplit Whitespace "
    "Sequence";
enum { SPLIT, BYTE_LEVEL, METASPACE, DIGITS, PUNCTUATION, WHITE_SPACE, WORDS, SEQUENCE };
static const char behaviors[] =
    "Removed Isolated MergedWithPrevious MergedWithNext Contiguous"; // as enum split_behavior

static const char gpt2_words[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char words[] = "[\\w\\u200c\\u200d]+|[^\\w\\s\\u200c\\u200d]+";
static const char punctuation[] = "[!-/:-@\\[-`{-~\\p{P}]";

static attncl_status add_split(attncl_tokenizer *t, struct split **ret)
{
    REQUIRE(!t->bpe.is_byte_level, ATTNCL_ERR_UNSUPPORTED,
            "pre_tokenizer: a step after ByteLevel is not supported");
    REQUIRE(GROW_LIST(t->split, t->n_split, t->split_capacity), ATTNCL_ERR_NO_MEMORY, RULE_MEMORY);
    *ret = &t->split[t->n_split++];
    **ret = (struct split){.kind = PRE_SPLIT};
    return ATTNCL_OK;
}

static attncl_status add_regex(attncl_tokenizer *t, const char *regex, enum split_behavior behavior)
{
    struct split *split = NULL;

    TRY(add_split(t, &split));
    split->behavior = behavior;
    return attncl__pattern_regex(regex, &split->pattern);
}

static attncl_status read_behavior(const struct json *object, enum split_behavior default_behavior,
                                   enum split_behavior *ret)
{
    const char *name;
    bool present;
    int choice = (int)default_behavior;

    TRY(attncl__json_text(object, "behavior", &present, &name));
    if (present)
        TRY(attncl__choose("pre_tokenizer behavior", name, behaviors, &choice));
    *ret = (enum split_behavior)choice;
    return ATTNCL_OK;
}

static attncl_status read_split(attncl_tokenizer *t, const struct json *object)
{
    struct split *split = NULL;

    TRY(attncl__check_keys(object, "pre_tokenizer Split", "type pattern behavior invert"));
    TRY(add_split(t, &split));
    TRY(read_behavior(object, SPLIT_REMOVED, &split->behavior));
    TRY(attncl__read_bool(object, "invert", false, &split->invert));
    return attncl__read_pattern(object, &split->pattern);
}

static attncl_status read_byte_level(attncl_tokenizer *t, const struct json *object)
{
    bool prefix, regex;
    struct split *split = NULL;

    TRY(attncl__check_keys(object, "pre_tokenizer ByteLevel",
                           "type add_prefix_space trim_offsets use_regex"));
    TRY(attncl__read_bool(object, "add_prefix_space", true, &prefix));
    TRY(attncl__read_bool(object, "use_regex", true, &regex));
    if (prefix) {
        TRY(add_split(t, &split));
        split->kind = PRE_PREFIX;
    }
    if (regex)
        TRY(add_regex(t, gpt2_words, SPLIT_ISOLATED));
    REQUIRE(!t->bpe.is_byte_level, ATTNCL_ERR_UNSUPPORTED,
            "pre_tokenizer: a step after ByteLevel is not supported");
    t->bpe.is_byte_level = true;
    return ATTNCL_OK;
}

static attncl_status read_metaspace(attncl_tokenizer *t, const struct json *object)
{
    const char *scheme = "always";
    bool splits, present, prefix;
    struct split *split = NULL;
    int prepend;

    TRY(attncl__check_keys(object, "pre_tokenizer Metaspace",
                           "type replacement prepend_scheme split add_prefix_space str_rep"));
    TRY(add_split(t, &split));
    split->kind = PRE_METASPACE;
    TRY(attncl__read_span(t, object, "replacement", &split->content));
    TRY(attncl__json_text(object, "prepend_scheme", &present, &scheme));
    TRY(attncl__choose("Metaspace prepend_scheme", scheme, "never first always", &prepend));
    TRY(attncl__read_bool(object, "add_prefix_space", true, &prefix));
    split->prepend = prefix ? prepend : PREPEND_NEVER;
    TRY(attncl__read_bool(object, "split", true, &splits));
    TRY(attncl__pattern_string(" ", &split->pattern));
    if (!splits)
        return ATTNCL_OK;
    TRY(attncl__json_text(object, "replacement", NULL, &scheme));
    TRY(add_split(t, &split));
    split->behavior = SPLIT_WITH_NEXT;
    return attncl__pattern_string(scheme, &split->pattern);
}

static attncl_status read_digits(attncl_tokenizer *t, const struct json *object)
{
    bool individual;

    TRY(attncl__check_keys(object, "pre_tokenizer Digits", "type individual_digits"));
    TRY(attncl__read_bool(object, "individual_digits", false, &individual));
    return add_regex(t, "\\p{N}", individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS);
}

attncl_status attncl__split_read(attncl_tokenizer *t, const struct json *object)
{
    enum split_behavior behavior;
    const char *name;
    int kind;

    TRY(attncl__json_text(object, "type", NULL, &name));
    TRY(attncl__choose("pre_tokenizer", name, kinds, &kind));
    switch (kind) {
    case SPLIT:
        return read_split(t, object);
    case BYTE_LEVEL:
        return read_byte_level(t, object);
    case METASPACE:
        return read_metaspace(t, object);
    case DIGITS:
        return read_digits(t, object);
    case PUNCTUATION:
        TRY(attncl__check_keys(object, "pre_tokenizer Punctuation", "type behavior"));
        TRY(read_behavior(object, SPLIT_ISOLATED, &behavior));
        return add_regex(t, punctuation, behavior);
    case WHITE_SPACE:
        TRY(attncl__check_keys(object, "pre_tokenizer WhitespaceSplit", "type"));
        return add_regex(t, "\\s", SPLIT_REMOVED);
    case WORDS:
        TRY(attncl__check_keys(object, "pre_tokenizer Whitespace", "type"));
        TRY(add_regex(t, words, SPLIT_REMOVED));
        t->split[t->n_split - 1].invert = true;
        return ATTNCL_OK;
    default:
        return attncl__read_sequence(t, object, "pre_tokenizer Sequence", "pretokenizers",
                                     attncl__split_read);
    }
}

static attncl_status add_piece(struct pieces *p, size_t begin, size_t end)
{
    REQUIRE(GROW_LIST(p->list, p->n, p->capacity), ATTNCL_ERR_NO_MEMORY, "%zu pieces of text",
            p->n);
    p->list[p->n++] = (struct piece){begin, end};
    return ATTNCL_OK;
}

struct cutting {
    const struct split *split;
    struct pieces *out;
    size_t first;      // index in `out` of the current piece's first part
    bool before_match; // the previous part was a match
};

// Adds a match, or the text between two matches, as NormalizedString::split() of `tokenizers` does.
static attncl_status add_part(struct cutting *cutting, size_t begin, size_t end, bool is_match)
{
    const bool before_match = cutting->before_match, has_last = cutting->out->n > cutting->first;
    bool joins = false;

    is_match = is_match != cutting->split->invert;
    cutting->before_match = is_match;
    switch (cutting->split->behavior) {
    case SPLIT_REMOVED:
        if (is_match)
            return ATTNCL_OK;
        break;
    case SPLIT_ISOLATED:
        break;
    case SPLIT_WITH_PREVIOUS:
        joins = is_match && !before_match;
        break;
    case SPLIT_WITH_NEXT:
        joins = !is_match && before_match;
        break;
    case SPLIT_CONTIGUOUS:
        joins = is_match == before_match;
        break;
    }
    if (!joins || !has_last)
        return add_piece(cutting->out, begin, end);
    cutting->out->list[cutting->out->n - 1].end = end;
    return ATTNCL_OK;
}

static void drop_empty(struct pieces *p, size_t first)
{
    size_t n = first;

    for (size_t i = first; i < p->n; ++i)
        if (p->list[i].begin < p->list[i].end)
            p->list[n++] = p->list[i];
    p->n = n;
}

static attncl_status split_pieces(const struct split *split, const struct pieces *in,
                                  struct pieces *out)
{
    out->text = in->text;
    for (size_t i = 0; i < in->n; ++i) {
        const struct piece piece = in->list[i];
        struct pattern_search s =
            PATTERN_SEARCH(split->pattern, in->text + piece.begin, piece.end - piece.begin);
        struct cutting cutting = {split, out, out->n, false};
        size_t done = 0;
        for (bool found;; done = s.end) {
            TRY(attncl__pattern_next(&s, &found));
            const size_t begin = found ? s.begin : s.bytes;
            if (done < begin)
                TRY(add_part(&cutting, piece.begin + done, piece.begin + begin, false));
            if (!found)
                break;
            TRY(add_part(&cutting, piece.begin + s.begin, piece.begin + s.end, true));
        }
        drop_empty(out, cutting.first);
    }
    return ATTNCL_OK;
}

static bool begins_with(const char *text, size_t bytes, const char *with, size_t n)
{
    return bytes >= n && memcmp(text, with, n) == 0;
}

// Adds ByteLevel's space before each piece, or replaces spaces by Metaspace's symbol and prepends one.
static attncl_status rewrite_pieces(const attncl_tokenizer *t, const struct split *split,
                                    struct pieces *in, bool is_first, struct pieces *out)
{
    const bool is_prefix = split->kind == PRE_PREFIX;
    const char *content = is_prefix ? " " : attncl__span_text(t, split->content);
    const size_t n = is_prefix ? 1 : split->content.n;

    if (in->text == out->buffer.data) { // of a rewriting two steps before
        const struct strbuf read = out->buffer;
        out->buffer = in->buffer;
        in->buffer = read;
    }
    out->buffer.used = 0;
    for (size_t i = 0; i < in->n; ++i) {
        const size_t begin = out->buffer.used, bytes = in->list[i].end - in->list[i].begin;
        const char *text = in->text + in->list[i].begin;
        const bool prepends = is_prefix || split->prepend == PREPEND_ALWAYS ||
                              (split->prepend == PREPEND_FIRST && is_first && i == 0);
        if (prepends && *text != ' ' && !begins_with(text, bytes, content, n))
            attncl__strbuf_add_bytes(&out->buffer, content, n);
        if (is_prefix)
            attncl__strbuf_add_bytes(&out->buffer, text, bytes);
        else
            TRY(attncl__pattern_replace(split->pattern, text, bytes, content, n, &out->buffer));
        REQUIRE(!out->buffer.failed, ATTNCL_ERR_NO_MEMORY, "%zu bytes of text", bytes);
        TRY(add_piece(out, begin, out->buffer.used));
    }
    out->text = out->buffer.data;
    return ATTNCL_OK;
}

attncl_status attncl__split(attncl_tokenizer *t, const char *text, size_t bytes, bool is_first,
                            const struct pieces **ret)
{
    struct pieces *in = &t->pieces[0], *out = &t->pieces[1];

    in->text = text;
    in->n = 0;
    if (bytes > 0)
        TRY(add_piece(in, 0, bytes));
    for (size_t i = 0; i < t->n_split; ++i) {
        out->n = 0;
        if (t->split[i].kind == PRE_SPLIT)
            TRY(split_pieces(&t->split[i], in, out));
        else
            TRY(rewrite_pieces(t, &t->split[i], in, is_first, out));
        struct pieces *const other = in;
        in = out;
        out = other;
    }
    *ret = in;
    return ATTNCL_OK;
}
