// SPDX-License-Identifier: MIT
//
// Reads tokenizer.json: its objects in order, and the added tokens.

#include <string.h>

#include "base/try.h"
#include "tokenizer/tokenizer.h"

// -- added tokens

static attncl_status add_to_tokens(attncl_tokenizer *t, int64_t id, const char *content,
                                   struct span span)
{
    const int32_t other = attncl__token_find(t, content, span.n);
    const bool is_there = id >= 0 && (size_t)id < t->n_tokens && t->token[id].is_known;

    REQUIRE(!t->key.failed, ATTNCL_ERR_NO_MEMORY, "%zu bytes of text", (size_t)span.n);
    REQUIRE(other < 0 || other == id, ATTNCL_ERR_FORMAT,
            "added token %.100s has number %lld, in the vocabulary it has %d", content,
            (long long)id, (int)other);
    if (!is_there)
        return attncl__token_set(t, id, span);
    const struct span text = t->token[id].text;
    REQUIRE(text.n == span.n && memcmp(attncl__span_text(t, text), content, span.n) == 0,
            ATTNCL_ERR_FORMAT, "token number %lld is both %.*s and the added %.100s", (long long)id,
            (int)text.n, attncl__span_text(t, text), content);
    return ATTNCL_OK;
}

static attncl_status read_added(attncl_tokenizer *t, const struct json *object)
{
    struct added_token token = {0};
    const char *content;
    bool normalized;
    int64_t id;

    TRY(attncl__check_keys(object, "added_tokens",
                           "id content single_word lstrip rstrip normalized special"));
    TRY(attncl__json_text(object, "content", NULL, &content));
    TRY(attncl__json_int(object, "id", NULL, &id));
    if (!*content)
        return ATTNCL_OK;
    TRY(attncl__read_span(t, object, "content", &token.span));
    TRY(add_to_tokens(t, id, content, token.span));
    TRY(attncl__read_bool(object, "special", false, &t->token[id].is_special));
    TRY(attncl__read_bool(object, "normalized", !t->token[id].is_special, &normalized));
    TRY(attncl__read_bool(object, "single_word", false, &token.single_word));
    TRY(attncl__read_bool(object, "lstrip", false, &token.lstrip));
    TRY(attncl__read_bool(object, "rstrip", false, &token.rstrip));
    token.id = (int32_t)id;
    if (normalized) {
        size_t bytes = token.span.n;
        TRY(attncl__normalize(t, &content, &bytes));
        TRY(attncl__arena_add(t, content, bytes, &token.span));
        t->token[id].text = token.span; // `tokenizers` decodes it to the normalized text too
        if (bytes == 0)
            return ATTNCL_OK;
    }
    return attncl__added_add(t, normalized ? &t->normalized : &t->raw, &token);
}

static attncl_status read_all_added(attncl_tokenizer *t, const struct json_span *list)
{
    struct json_members elements = attncl__json_elements(*list);
    struct json *object;

    while (attncl__json_next_member(&elements)) {
        TRY(attncl__json_parse_value(&elements.value, "added_tokens", JSON_CONFIG_LIMITS, &object));
        const attncl_status status = read_added(t, object);
        attncl__json_free(object);
        TRY(status);
    }
    return elements.status;
}

static attncl_status read_part(attncl_tokenizer *t, const struct json *rest, const char *key,
                               attncl_status (*read)(attncl_tokenizer *, const struct json *))
{
    const struct json *part;
    bool present;

    TRY(attncl__json_object(rest, key, &present, &part));
    return present ? read(t, part) : ATTNCL_OK;
}

// The order matters: the model depends on ByteLevel, added tokens on the normalizer and the vocabulary.
static attncl_status read_parts(attncl_tokenizer *t, const struct json *rest,
                                const struct large_member *large)
{
    const char *version = "1.0";
    bool present;

    TRY(attncl__check_keys(rest, "tokenizer",
                           "version normalizer pre_tokenizer post_processor decoder model "
                           "added_tokens"));
    TRY(attncl__json_text(rest, "version", &present, &version));
    REQUIRE(strcmp(version, "1.0") == 0, ATTNCL_ERR_UNSUPPORTED, "version is %.20s, expected 1.0",
            version);
    TRY(read_part(t, rest, "normalizer", attncl__normalizer_read));
    TRY(read_part(t, rest, "pre_tokenizer", attncl__split_read));
    TRY(read_part(t, rest, "decoder", attncl__decoder_read));
    t->joins_by_space = !attncl__json_has(rest, "decoder");
    REQUIRE(large[0].value.text, ATTNCL_ERR_FORMAT, "model is missing");
    TRY(attncl__model_read(t, &large[0].value));
    if (large[1].value.text)
        TRY(read_all_added(t, &large[1].value));
    return read_part(t, rest, "post_processor", attncl__template_read);
}

attncl_status attncl__read_tokenizer(attncl_tokenizer *t, const char *text, size_t bytes)
{
    struct large_member large[] = {{.name = "model"}, {.name = "added_tokens"}};
    const struct json_span file = {text, bytes};
    struct json *rest = NULL;

    TRY(attncl__read_members(&file, large, 2, &rest));
    const attncl_status status = read_parts(t, rest, large);
    attncl__json_free(rest);
    TRY(status);
    TRY(attncl__decode_prepare(t));
    attncl__added_prepare(t, &t->raw);
    attncl__added_prepare(t, &t->normalized);
    return ATTNCL_OK;
}
