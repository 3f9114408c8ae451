// SPDX-License-Identifier: MIT
//
// The public functions: encode a text, decode tokens.

#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

struct attncl_tokenizer_stream {
    struct decoding decoding;
};

attncl_status attncl_tokenizer_create(const char *text, size_t bytes,
                                      attncl_tokenizer **tokenizer_ret)
{
    REQUIRE(text && tokenizer_ret, ATTNCL_ERR_ARGUMENT, "text or tokenizer_ret is NULL");
    attncl_tokenizer *t = attncl__alloc_zero(sizeof *t);
    REQUIRE(t, ATTNCL_ERR_NO_MEMORY, "a tokenizer");
    t->decoding.t = t;
    const attncl_status status = attncl__read_tokenizer(t, text, bytes);
    if (status == ATTNCL_OK)
        *tokenizer_ret = t;
    else
        attncl_tokenizer_destroy(t);
    return attncl__prefix_failure(status, "tokenizer.json");
}

static void free_steps(attncl_tokenizer *t)
{
    for (size_t i = 0; i < t->n_normalizer; ++i)
        attncl__pattern_free(t->normalizer[i].pattern);
    for (size_t i = 0; i < t->n_split; ++i)
        attncl__pattern_free(t->split[i].pattern);
    for (size_t i = 0; i < t->n_step; ++i)
        attncl__pattern_free(t->step[i].pattern);
    attncl__pattern_free(t->word_begin);
    attncl__pattern_free(t->word_end);
    attncl__free(t->normalizer);
    attncl__free(t->split);
    attncl__free(t->step);
}

void attncl_tokenizer_destroy(attncl_tokenizer *t)
{
    if (!t)
        return;
    free_steps(t);
    for (int i = 0; i < 2; ++i) {
        attncl__strbuf_free(&t->normal[i]);
        attncl__strbuf_free(&t->pieces[i].buffer);
        attncl__free(t->pieces[i].list);
    }
    attncl__free(t->bpe.vocab);
    attncl__free(t->bpe.rules);
    attncl__free(t->bpe.cache);
    attncl__free(t->bpe.symbol);
    attncl__free(t->bpe.heap);
    attncl__free(t->raw.list);
    attncl__free(t->normalized.list);
    attncl__free(t->begin.id);
    attncl__free(t->ids.id);
    attncl__decode_free(&t->decoding);
    attncl__strbuf_free(&t->key);
    attncl__strbuf_free(&t->arena);
    attncl__free(t->token);
    attncl__free(t);
}

int64_t attncl_tokenizer_count(const attncl_tokenizer *tokenizer)
{
    return tokenizer ? (int64_t)tokenizer->n_tokens : 0;
}

// Encodes a text without added tokens.
static attncl_status encode_plain(attncl_tokenizer *t, const char *text, size_t bytes,
                                  bool is_first)
{
    const struct pieces *pieces;

    TRY(attncl__split(t, text, bytes, is_first, &pieces));
    for (size_t i = 0; i < pieces->n; ++i) {
        const struct piece piece = pieces->list[i];
        TRY(attncl__bpe_encode(t, pieces->text + piece.begin, piece.end - piece.begin));
    }
    return ATTNCL_OK;
}

// Encodes the set's added tokens and the text between them: first with the raw text, then with each normalized part.
static attncl_status encode_sections(attncl_tokenizer *t, const struct added_set *set,
                                     const char *text, size_t bytes, bool is_first)
{
    struct added_match m = {0};

    // White space that one token absorbs may hold further tokens; one that absorbs nothing else is dropped.
    for (size_t done = 0; bytes > 0; done = m.end) {
        TRY(attncl__added_find(t, set, text, bytes, &m));
        const size_t end = m.id >= 0 ? m.begin : bytes;
        const bool begins = is_first && done == 0;
        const char *part = text + done;
        size_t n = end > done ? end - done : 0;
        if (set == &t->raw && n > 0) {
            TRY(attncl__normalize(t, &part, &n));
            TRY(encode_sections(t, &t->normalized, part, n, begins));
        } else if (n > 0) {
            TRY(encode_plain(t, part, n, begins));
        }
        if (m.id < 0)
            break;
        if (m.begin < m.end)
            TRY(attncl__ids_append(&t->ids, m.id));
    }
    return ATTNCL_OK;
}

static attncl_status check_utf8(const char *text, size_t bytes)
{
    uint64_t eight;
    uint32_t code;

    for (size_t at = 0; at < bytes;) {
        if (bytes - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        const size_t length = attncl__utf8_decode(text + at, bytes - at, &code);
        REQUIRE(length > 0, ATTNCL_ERR_ARGUMENT, "the text is not UTF-8 at byte %zu", at);
        at += length;
    }
    return ATTNCL_OK;
}

attncl_status attncl_tokenizer_encode(attncl_tokenizer *t, const char *text, size_t bytes,
                                      int add_begin, const int32_t **tokens_ret, size_t *n_ret)
{
    REQUIRE(t && (text || bytes == 0) && tokens_ret && n_ret, ATTNCL_ERR_ARGUMENT,
            "tokenizer, text, tokens_ret or n_ret is NULL");
    TRY(check_utf8(text, bytes));
    t->ids.n = 0;
    for (size_t i = 0; add_begin && i < t->begin.n; ++i)
        TRY(attncl__ids_append(&t->ids, t->begin.id[i]));
    TRY(encode_sections(t, &t->raw, text, bytes, true));
    *tokens_ret = t->ids.id;
    *n_ret = t->ids.n;
    return ATTNCL_OK;
}

static attncl_status get_text(const struct decoding *d, const char **text_ret, size_t *bytes_ret)
{
    *text_ret = d->out.data;
    *bytes_ret = d->out.used;
    return ATTNCL_OK;
}

attncl_status attncl_tokenizer_decode(attncl_tokenizer *t, const int32_t *tokens, size_t n,
                                      int skip_special, const char **text_ret, size_t *bytes_ret)
{
    REQUIRE(t && (tokens || n == 0) && text_ret && bytes_ret, ATTNCL_ERR_ARGUMENT,
            "tokenizer, tokens, text_ret or bytes_ret is NULL");
    struct decoding *d = &t->decoding;
    d->skip_special = skip_special != 0;
    attncl__decode_begin(d);
    TRY(attncl__decode_add(d, tokens, n));
    TRY(attncl__decode_end(d));
    return get_text(d, text_ret, bytes_ret);
}

attncl_status attncl_tokenizer_stream_create(const attncl_tokenizer *tokenizer, int skip_special,
                                             attncl_tokenizer_stream **stream_ret)
{
    REQUIRE(tokenizer && stream_ret, ATTNCL_ERR_ARGUMENT, "tokenizer or stream_ret is NULL");
    attncl_tokenizer_stream *stream = attncl__alloc_zero(sizeof *stream);
    REQUIRE(stream, ATTNCL_ERR_NO_MEMORY, "a stream");
    stream->decoding.t = tokenizer;
    stream->decoding.skip_special = skip_special != 0;
    stream->decoding.is_stream = true;
    attncl__decode_begin(&stream->decoding);
    *stream_ret = stream;
    return ATTNCL_OK;
}

void attncl_tokenizer_stream_destroy(attncl_tokenizer_stream *stream)
{
    if (stream)
        attncl__decode_free(&stream->decoding);
    attncl__free(stream);
}

attncl_status attncl_tokenizer_stream_add(attncl_tokenizer_stream *stream, const int32_t *tokens,
                                          size_t n, const char **text_ret, size_t *bytes_ret)
{
    REQUIRE(stream && (tokens || n == 0) && text_ret && bytes_ret, ATTNCL_ERR_ARGUMENT,
            "stream, tokens, text_ret or bytes_ret is NULL");
    TRY(attncl__decode_add(&stream->decoding, tokens, n));
    return get_text(&stream->decoding, text_ret, bytes_ret);
}

attncl_status attncl_tokenizer_stream_end(attncl_tokenizer_stream *stream, const char **text_ret,
                                          size_t *bytes_ret)
{
    REQUIRE(stream && text_ret && bytes_ret, ATTNCL_ERR_ARGUMENT,
            "stream, text_ret or bytes_ret is NULL");
    stream->decoding.out.used = 0;
    TRY(attncl__decode_end(&stream->decoding));
    attncl__decode_begin(&stream->decoding);
    return get_text(&stream->decoding, text_ret, bytes_ret);
}
