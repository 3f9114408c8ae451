// SPDX-License-Identifier: MIT
//
// Normalizers: Unicode's forms by utf8proc, prepended text, replaced patterns.

#include <stdint.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "base/try.h"
#include "tokenizer/tokenizer.h"

static const char kinds[] = "NFC NFD NFKC NFKD Prepend Replace Sequence";
enum { PREPEND = 4, REPLACE, SEQUENCE };

static attncl_status read_one(attncl_tokenizer *t, const struct json *object, int kind)
{
    static const int options[] = {UTF8PROC_STABLE | UTF8PROC_COMPOSE,
                                  UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
                                  UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
                                  UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
    static const char *const keys[] = {"type", "type",         "type",
                                       "type", "type prepend", "type pattern content"};

    TRY(attncl__check_keys(object, "normalizer", keys[kind]));
    REQUIRE(GROW_LIST(t->normalizer, t->n_normalizer, t->normalizer_capacity), ATTNCL_ERR_NO_MEMORY,
            RULE_MEMORY);
    struct normalizer *n = &t->normalizer[t->n_normalizer++];
    *n = (struct normalizer){.kind = NORM_UNICODE};
    switch (kind) {
    case PREPEND:
        n->kind = NORM_PREPEND;
        return attncl__read_span(t, object, "prepend", &n->content);
    case REPLACE:
        n->kind = NORM_REPLACE;
        TRY(attncl__read_span(t, object, "content", &n->content));
        return attncl__read_pattern(object, &n->pattern);
    default:
        n->options = options[kind];
        return ATTNCL_OK;
    }
}

// Recursion is limited, since the depth of the JSON text is.
attncl_status attncl__normalizer_read(attncl_tokenizer *t, const struct json *object)
{
    const char *name;
    int kind;

    TRY(attncl__json_text(object, "type", NULL, &name));
    TRY(attncl__choose("normalizer", name, kinds, &kind));
    if (kind != SEQUENCE)
        return read_one(t, object, kind);
    return attncl__read_sequence(t, object, "normalizer", "normalizers", attncl__normalizer_read);
}

static attncl_status add_form(const char *text, size_t bytes, int options, struct strbuf *out)
{
    const utf8proc_uint8_t *from = (const utf8proc_uint8_t *)text;
    attncl_status status = ATTNCL_OK;
    utf8proc_int32_t *codes = NULL;
    utf8proc_ssize_t n =
        utf8proc_decompose(from, (utf8proc_ssize_t)bytes, NULL, 0, (utf8proc_option_t)options);

    if (n >= 0) // utf8proc encodes in place and appends a zero
        codes = attncl__alloc_array((size_t)n + 1, sizeof *codes);
    if (n < 0 || !codes)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%zu bytes of text", bytes));
    n = utf8proc_decompose(from, (utf8proc_ssize_t)bytes, codes, n, (utf8proc_option_t)options);
    n = utf8proc_reencode(codes, n, (utf8proc_option_t)options);
    if (n < 0)
        TRY_DONE(FAIL(ATTNCL_ERR_ARGUMENT, "%s", utf8proc_errmsg(n)));
    attncl__strbuf_add_bytes(out, codes, (size_t)n);

done:
    attncl__free(codes);
    return status;
}

// ASCII characters are their own normal form and separate parts that can be normalized alone.  The last one before
// other characters may combine with them.
static attncl_status add_unicode(const char *text, size_t bytes, int options, struct strbuf *out)
{
    for (size_t at = 0, end; at < bytes; at = end) {
        for (end = at; end < bytes && (unsigned char)text[end] < 0x80;)
            ++end;
        const size_t plain = end < bytes && end > at ? end - 1 - at : end - at;
        attncl__strbuf_add_bytes(out, text + at, plain);
        for (; end < bytes && (unsigned char)text[end] >= 0x80;)
            ++end;
        if (end > at + plain)
            TRY(add_form(text + at + plain, end - at - plain, options, out));
    }
    return ATTNCL_OK;
}

attncl_status attncl__normalize(attncl_tokenizer *t, const char **text, size_t *bytes)
{
    for (size_t i = 0; i < t->n_normalizer; ++i) {
        const struct normalizer *n = &t->normalizer[i];
        const char *content = attncl__span_text(t, n->content);
        struct strbuf *out = &t->normal[i % 2];
        out->used = 0;
        if (n->kind == NORM_UNICODE) {
            TRY(add_unicode(*text, *bytes, n->options, out));
        } else if (n->kind == NORM_REPLACE) {
            TRY(attncl__pattern_replace(n->pattern, *text, *bytes, content, n->content.n, out));
        } else if (*bytes > 0) {
            attncl__strbuf_add_bytes(out, content, n->content.n);
            attncl__strbuf_add_bytes(out, *text, *bytes);
        }
        REQUIRE(!out->failed, ATTNCL_ERR_NO_MEMORY, "%zu bytes of text", *bytes);
        *text = out->data ? out->data : "";
        *bytes = out->used;
    }
    return ATTNCL_OK;
}
