// SPDX-License-Identifier: MIT
//
// Decodes tokens to text.  Each token's own text is computed in advance; bytes are collected to characters.

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

static const char replacement[] = "\xef\xbf\xbd"; // U+FFFD
enum { REPLACEMENT_BYTES = 3 };

static const char kinds[] = "ByteLevel Replace Metaspace ByteFallback Fuse Strip Sequence";
enum { BYTE_LEVEL, REPLACE, METASPACE, BYTE_FALLBACK, FUSE, STRIP, SEQUENCE };

static attncl_status read_strip(attncl_tokenizer *t, const struct json *object)
{
    int64_t stop;

    TRY(attncl__check_keys(object, "decoder Strip", "type content start stop"));
    REQUIRE(t->is_fused, ATTNCL_ERR_UNSUPPORTED, "decoder: Strip without Fuse is not supported");
    TRY(attncl__read_span(t, object, "content", &t->strip_content));
    TRY(attncl__json_int(object, "start", NULL, &t->strip));
    TRY(attncl__json_int(object, "stop", NULL, &stop));
    REQUIRE(stop == 0 && t->strip >= 0, ATTNCL_ERR_UNSUPPORTED,
            "decoder Strip: stop is %lld, only 0 is supported", (long long)stop);
    return ATTNCL_OK;
}

static attncl_status read_step(attncl_tokenizer *t, const struct json *object, int kind)
{
    static const char *const keys[] = {"type add_prefix_space trim_offsets use_regex",
                                       "type pattern content",
                                       "type replacement prepend_scheme split add_prefix_space"};
    const char *scheme = "always";
    struct decode_step *step;
    bool present, prefix;

    TRY(attncl__check_keys(object, "decoder", keys[kind]));
    REQUIRE(GROW_LIST(t->step, t->n_step, t->step_capacity), ATTNCL_ERR_NO_MEMORY, RULE_MEMORY);
    step = &t->step[t->n_step++];
    *step = (struct decode_step){.kind = DECODE_BYTE_LEVEL};
    if (kind == BYTE_LEVEL)
        return ATTNCL_OK;
    if (kind == REPLACE) {
        step->kind = DECODE_REPLACE;
        TRY(attncl__read_span(t, object, "content", &step->content));
        return attncl__read_pattern(object, &step->pattern);
    }
    step->kind = DECODE_METASPACE;
    TRY(attncl__json_text(object, "prepend_scheme", &present, &scheme));
    TRY(attncl__read_bool(object, "add_prefix_space", true, &prefix));
    step->drops_first = prefix && strcmp(scheme, "never") != 0;
    TRY(attncl__json_text(object, "replacement", NULL, &scheme));
    TRY(attncl__read_span(t, object, "replacement", &step->content));
    return attncl__pattern_string(scheme, &step->pattern);
}

// Only the converters' order is supported: steps of one token, then bytes, then steps of the whole text.
attncl_status attncl__decoder_read(attncl_tokenizer *t, const struct json *object)
{
    const char *name;
    int kind;

    TRY(attncl__json_text(object, "type", NULL, &name));
    TRY(attncl__choose("decoder", name, kinds, &kind));
    const bool is_late = t->has_byte_fallback || t->is_fused;
    const bool is_alone = t->n_step > 0 && t->step[0].kind == DECODE_BYTE_LEVEL;
    REQUIRE(kind == FUSE || kind == STRIP || kind == SEQUENCE ||
                !(is_late || is_alone || (kind == BYTE_LEVEL && t->n_step > 0)),
            ATTNCL_ERR_UNSUPPORTED, "decoder: %s at this place of a Sequence is not supported",
            name);
    if (kind == STRIP)
        return read_strip(t, object);
    if (kind <= METASPACE)
        return read_step(t, object, kind);
    t->has_byte_fallback = t->has_byte_fallback || kind == BYTE_FALLBACK;
    t->is_fused = t->is_fused || kind == FUSE;
    return kind == SEQUENCE
               ? attncl__read_sequence(t, object, "decoder", "decoders", attncl__decoder_read)
               : attncl__check_keys(object, "decoder", "type");
}

// -- a token's text

// Returns the byte that byte-level BPE writes as this character; -1 if there is none.  Printable bytes are written as
// themselves, the others, in order, as U+0100 and up.
static int parse_byte_character(uint32_t code)
{
    if ((code >= '!' && code <= '~') || (code >= 0xa1 && code <= 0xff && code != 0xad))
        return (int)code;
    if (code < 0x100 || code > 0x143)
        return -1;
    const int n = (int)code - 0x100;
    return n < 33 ? n : n < 67 ? n + 94 : 0xad;
}

bool attncl__token_to_bytes(const char *text, size_t bytes, struct strbuf *out)
{
    uint32_t code;

    for (size_t at = 0, length; at < bytes; at += length) {
        length = attncl__utf8_decode(text + at, bytes - at, &code);
        const int byte = length ? parse_byte_character(code) : -1;
        const char character = (char)byte;
        if (byte < 0)
            return false;
        attncl__strbuf_add_bytes(out, &character, 1);
    }
    return true;
}

static attncl_status apply_steps(const attncl_tokenizer *t, struct span span, bool is_first,
                                 struct strbuf scratch[2], struct strbuf *out)
{
    const char *text = attncl__span_text(t, span);
    size_t bytes = span.n;

    for (size_t i = 0; i < t->n_step; ++i) {
        const struct decode_step *step = &t->step[i];
        struct strbuf *to = &scratch[i % 2];
        to->used = 0;
        if (step->kind == DECODE_BYTE_LEVEL) {
            if (!attncl__token_to_bytes(text, bytes, to)) {
                to->used = 0;
                attncl__strbuf_add_bytes(to, text, bytes);
            }
        } else {
            const bool is_space = step->kind == DECODE_METASPACE;
            const char *content = is_space ? " " : attncl__span_text(t, step->content);
            size_t n = is_space ? 1 : step->content.n;
            if (is_space && is_first && step->drops_first)
                n = 0;
            TRY(attncl__pattern_replace(step->pattern, text, bytes, content, n, to));
        }
        text = to->data;
        bytes = to->used;
    }
    attncl__strbuf_add_bytes(out, text, bytes);
    REQUIRE(!out->failed && !scratch[0].failed && !scratch[1].failed, ATTNCL_ERR_NO_MEMORY,
            "a token's text");
    return ATTNCL_OK;
}

// Returns the byte that "<0xNN>" represents; -1 for another text.
static int16_t parse_byte_token(const char *text, size_t bytes)
{
    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    const char digits[] = {text[3], text[4], '\0'};
    return strspn(digits, "0123456789ABCDEFabcdef") == 2 ? (int16_t)strtol(digits, NULL, 16) : -1;
}

attncl_status attncl__decode_prepare(attncl_tokenizer *t)
{
    struct strbuf scratch[2] = {STRBUF_EMPTY, STRBUF_EMPTY}, out = STRBUF_EMPTY;
    attncl_status status = ATTNCL_OK;

    for (size_t id = 0; id < t->n_tokens; ++id) {
        struct token *token = &t->token[id];
        if (!token->is_known)
            continue;
        out.used = 0;
        TRY_DONE(apply_steps(t, token->text, false, scratch, &out));
        token->byte = t->has_byte_fallback ? parse_byte_token(out.data, out.used) : -1;
        if (out.used == token->text.n &&
            memcmp(out.data, attncl__span_text(t, token->text), out.used) == 0)
            token->out = token->text;
        else
            TRY_DONE(attncl__arena_add(t, out.data, out.used, &token->out));
    }

done:
    attncl__strbuf_free(&out);
    attncl__strbuf_free(&scratch[0]);
    attncl__strbuf_free(&scratch[1]);
    return status;
}

// Appends a text, less what Strip removes at the beginning.
static void emit(struct decoding *decoding, const char *text, size_t bytes)
{
    const struct span strip = decoding->t->strip_content;

    for (; decoding->strip > 0 && bytes > 0; --decoding->strip) {
        if (bytes < strip.n || memcmp(text, attncl__span_text(decoding->t, strip), strip.n) != 0) {
            decoding->strip = 0;
            break;
        }
        text += strip.n;
        bytes -= strip.n;
    }
    attncl__strbuf_add_bytes(&decoding->out, text, bytes);
}

// Emits the complete characters of the pending bytes, and U+FFFD for invalid ones; if `ends`, also for an incomplete
// one.  Byte-level BPE emits one U+FFFD per incomplete character, byte fallback one per byte.
static void emit_characters(struct decoding *decoding, bool ends)
{
    struct strbuf *pending = &decoding->pending;
    uint32_t code;
    size_t at = 0, length;
    bool is_cut = false;

    for (; at < pending->used; at += length) {
        length = attncl__utf8_decode(pending->data + at, pending->used - at, &code);
        if (length > 0) {
            emit(decoding, pending->data + at, length);
            continue;
        }
        length = attncl__utf8_measure_invalid(pending->data + at, pending->used - at, &is_cut);
        if (is_cut && !ends)
            break;
        if (decoding->t->has_byte_fallback)
            length = 1;
        emit(decoding, replacement, REPLACEMENT_BYTES);
    }
    if (at > 0)
        memmove(pending->data, pending->data + at, pending->used - at);
    pending->used -= at;
}

// Ends a run of bytes.  As in `tokenizers`, byte fallback decodes a run as a whole or not at all, except in a stream.
static void end_bytes(struct decoding *decoding)
{
    uint32_t code;
    size_t at = 0, length;
    struct strbuf *pending = &decoding->pending;

    if (!decoding->is_stream && decoding->t->has_byte_fallback) {
        while (at < pending->used &&
               (length = attncl__utf8_decode(pending->data + at, pending->used - at, &code)))
            at += length;
        for (size_t i = 0; i < pending->used && at < pending->used; ++i)
            emit(decoding, replacement, REPLACEMENT_BYTES);
        pending->used = at < pending->used ? 0 : pending->used;
    }
    emit_characters(decoding, true);
}

static attncl_status add_token(struct decoding *decoding, const struct token *token)
{
    const attncl_tokenizer *t = decoding->t;
    const bool is_byte = token->byte >= 0;
    const char byte = (char)token->byte;
    const bool is_byte_level = t->n_step > 0 && t->step[0].kind == DECODE_BYTE_LEVEL;
    struct span out = token->out;

    if (!is_byte && !is_byte_level)
        end_bytes(decoding);
    if (t->joins_by_space && decoding->is_started)
        emit(decoding, " ", 1);
    if (is_byte) {
        attncl__strbuf_add_bytes(&decoding->pending, &byte, 1);
    } else if (is_byte_level) {
        attncl__strbuf_add_bytes(&decoding->pending, attncl__span_text(t, out), out.n);
    } else if (!decoding->is_started &&
               t->n_step > 0) { // Metaspace has another text for the first token
        struct strbuf first = STRBUF_EMPTY;
        const attncl_status status = apply_steps(t, token->text, true, decoding->scratch, &first);
        if (status == ATTNCL_OK)
            emit(decoding, first.data, first.used);
        attncl__strbuf_free(&first);
        TRY(status);
    } else {
        emit(decoding, attncl__span_text(t, out), out.n);
    }
    if (is_byte_level || (is_byte && decoding->is_stream))
        emit_characters(decoding, false);
    decoding->is_started = true;
    return ATTNCL_OK;
}

static attncl_status finish(struct decoding *decoding)
{
    attncl__strbuf_add_bytes(&decoding->out, "", 0);
    REQUIRE(!decoding->out.failed && !decoding->pending.failed, ATTNCL_ERR_NO_MEMORY, "a text");
    return ATTNCL_OK;
}

void attncl__decode_begin(struct decoding *decoding)
{
    decoding->is_started = false;
    decoding->strip = decoding->t->strip;
    decoding->pending.used = 0;
}

attncl_status attncl__decode_add(struct decoding *decoding, const int32_t *tokens, size_t n)
{
    decoding->out.used = 0;
    for (size_t i = 0; i < n; ++i) {
        const size_t id = (size_t)(uint32_t)tokens[i];
        const struct token *token = id < decoding->t->n_tokens ? &decoding->t->token[id] : NULL;
        if (token && token->is_known && !(decoding->skip_special && token->is_special))
            TRY(add_token(decoding, token));
    }
    return finish(decoding);
}

attncl_status attncl__decode_end(struct decoding *decoding)
{
    end_bytes(decoding);
    return finish(decoding);
}

void attncl__decode_free(struct decoding *decoding)
{
    attncl__strbuf_free(&decoding->pending);
    attncl__strbuf_free(&decoding->out);
    attncl__strbuf_free(&decoding->scratch[0]);
    attncl__strbuf_free(&decoding->scratch[1]);
}
