// SPDX-License-Identifier: MIT
//
// Helpers for reading JSON objects, of which every key and word must be known, and the tokenizer's texts and tokens.

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/suggest.h"
#include "base/try.h"
#include "tokenizer/tokenizer.h"

enum { MAX_WORD = 64 };

attncl_status attncl__choose(const char *what, const char *name, const char *list, int *ret)
{
    *ret = 0;
    for (const char *word = list; *word; ++*ret) {
        const size_t n = strcspn(word, " ");
        if (n == strlen(name) && strncmp(word, name, n) == 0)
            return ATTNCL_OK;
        word += n;
        word += strspn(word, " ");
    }
    return FAIL(ATTNCL_ERR_UNSUPPORTED, "%s %.100s is not supported; there are %s", what, name,
                list);
}

attncl_status attncl__check_keys(const struct json *object, const char *what, const char *known)
{
    for (const char *key = NULL; (key = attncl__json_next(object, key)) != NULL;)
        REQUIRE(attncl__has_word(known, key), ATTNCL_ERR_UNSUPPORTED,
                "%s: key %.100s is not supported; there are %s", what, key, known);
    return ATTNCL_OK;
}

attncl_status attncl__read_sequence(attncl_tokenizer *t, const struct json *object,
                                    const char *what, const char *key, attncl__object_reader read)
{
    const struct json *item;
    char known[MAX_WORD];

    snprintf(known, sizeof known, "type %s", key);
    TRY(attncl__check_keys(object, what, known));
    for (size_t i = 0;; ++i) {
        TRY(attncl__json_item(object, key, i, &item));
        if (!item)
            return ATTNCL_OK;
        TRY(read(t, item));
    }
}

attncl_status attncl__read_bool(const struct json *object, const char *key, bool default_value,
                                bool *ret)
{
    bool present;

    *ret = default_value;
    return attncl__json_bool(object, key, &present, ret);
}

attncl_status attncl__arena_add(attncl_tokenizer *t, const void *data, size_t bytes,
                                struct span *ret)
{
    struct strbuf *arena = &t->arena;
    const size_t at = arena->used;

    REQUIRE(at + bytes < UINT32_MAX, ATTNCL_ERR_UNSUPPORTED, "texts of more than 4 GiB");
    attncl__strbuf_add_bytes(arena, data, bytes);
    REQUIRE(!arena->failed, ATTNCL_ERR_NO_MEMORY, "%zu bytes of text", at + bytes);
    *ret = (struct span){(uint32_t)at, (uint32_t)bytes};
    return ATTNCL_OK;
}

attncl_status attncl__read_span(attncl_tokenizer *t, const struct json *object, const char *key,
                                struct span *ret)
{
    const char *text;

    TRY(attncl__json_text(object, key, NULL, &text));
    return attncl__arena_add(t, text, strlen(text), ret);
}

attncl_status attncl__read_pattern(const struct json *object, struct pattern **ret)
{
    const struct json *pattern;
    const char *text;
    bool is_regex;

    TRY(attncl__json_object(object, "pattern", NULL, &pattern));
    TRY(attncl__check_keys(pattern, "pattern", "String Regex"));
    TRY(attncl__json_text(pattern, "Regex", &is_regex, &text));
    if (is_regex)
        return attncl__pattern_regex(text, ret);
    TRY(attncl__json_text(pattern, "String", NULL, &text));
    return attncl__pattern_string(text, ret);
}

static bool is_key(const struct json_span *key, const char *name)
{
    const size_t n = strlen(name);

    return key->bytes == n + 2 && memcmp(key->text + 1, name, n) == 0;
}

// Finds the large members, and writes the others that are not null to `rest` as an object.
static attncl_status separate_members(const struct json_span *object, struct large_member *large,
                                      size_t n, struct strbuf *rest)
{
    struct json_members members = attncl__json_members(*object);

    attncl__strbuf_add(rest, "{");
    while (attncl__json_next_member(&members)) {
        const struct json_span key = members.key, value = members.value;
        struct large_member *found = NULL;
        for (size_t i = 0; i < n; ++i)
            if (is_key(&key, large[i].name))
                found = &large[i];
        REQUIRE(!found || !found->value.text, ATTNCL_ERR_FORMAT, "duplicate key %s", found->name);
        if (found) {
            found->value = value;
            continue;
        }
        if (value.bytes == 4 && memcmp(value.text, "null", 4) == 0)
            continue;
        attncl__strbuf_add(rest, rest->used > 1 ? "," : "");
        attncl__strbuf_add_bytes(rest, key.text, key.bytes);
        attncl__strbuf_add(rest, ":");
        attncl__strbuf_add_bytes(rest, value.text, value.bytes);
    }
    TRY(members.status);
    attncl__strbuf_add(rest, "}");
    REQUIRE(!rest->failed, ATTNCL_ERR_NO_MEMORY, "a tokenizer's rules");
    return ATTNCL_OK;
}

attncl_status attncl__read_members(const struct json_span *object, struct large_member *large,
                                   size_t n, struct json **rest_ret)
{
    struct strbuf rest = STRBUF_EMPTY;
    attncl_status status = ATTNCL_OK;

    TRY_DONE(separate_members(object, large, n, &rest));
    TRY_DONE(attncl__json_parse(rest.data, rest.used, JSON_CONFIG_LIMITS, rest_ret));

done:
    attncl__strbuf_free(&rest);
    return status;
}

attncl_status attncl__token_set(attncl_tokenizer *t, int64_t id, struct span text)
{
    REQUIRE(id >= 0 && id < TOKENIZER_MAX_TOKENS, ATTNCL_ERR_FORMAT,
            "token number %lld, possible are 0 to %d", (long long)id, TOKENIZER_MAX_TOKENS - 1);
    if ((size_t)id >= t->token_capacity) {
        size_t capacity = t->token_capacity ? 2 * t->token_capacity : 1024;
        while (capacity <= (size_t)id)
            capacity *= 2;
        struct token *grown = attncl__grow_array(t->token, capacity, sizeof *grown);
        REQUIRE(grown, ATTNCL_ERR_NO_MEMORY, "%zu tokens", capacity);
        memset(grown + t->token_capacity, 0, (capacity - t->token_capacity) * sizeof *grown);
        t->token = grown;
        t->token_capacity = capacity;
    }
    if ((size_t)id >= t->n_tokens)
        t->n_tokens = (size_t)id + 1;
    struct token *token = &t->token[id];
    REQUIRE(!token->is_known, ATTNCL_ERR_FORMAT, "token number %lld is both %.*s and %.*s",
            (long long)id, (int)token->text.n, attncl__span_text(t, token->text), (int)text.n,
            attncl__span_text(t, text));
    *token = (struct token){.text = text, .is_known = true, .byte = -1};
    return ATTNCL_OK;
}
