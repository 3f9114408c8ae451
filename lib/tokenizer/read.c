// SPDX-License-Identifier: MIT
//
// tokenizer.json as a whole: its objects, the added tokens, what its post-processor puts before a text.

#include <string.h>

#include "base/alloc.h"
#include "base/suggest.h"
#include "base/try.h"
#include "tokenizer/read.h"

enum { MAX_WORD = 64 };

// The next word of a list separated by spaces; NULL after the last.
static const char *next_word(const char *list, char word[MAX_WORD])
{
    list += strspn(list, " ");
    const size_t n = strcspn(list, " ");
    if (n == 0 || n >= MAX_WORD)
        return NULL;
    memcpy(word, list, n);
    word[n] = '\0';
    return list + n;
}

attncl_status attncl__choose(const char *what, const char *name, const char *list, int *ret)
{
    struct suggestion s = {.word = name};
    char word[MAX_WORD];
    int i = 0;

    for (const char *at = list; (at = next_word(at, word)) != NULL; ++i) {
        if (strcmp(word, name) == 0) {
            *ret = i;
            return ATTNCL_OK;
        }
        attncl__suggestion_add(&s, word);
    }
    return FAIL(ATTNCL_ERR_UNSUPPORTED, "%s %.100s is not supported; there are %s", what, name,
                s.list);
}

attncl_status attncl__check_keys(const struct json *object, const char *what, const char *known)
{
    char word[MAX_WORD];

    for (const char *key = NULL; (key = attncl__json_next(object, key)) != NULL;) {
        bool found = false;
        for (const char *at = known; !found && (at = next_word(at, word)) != NULL;)
            found = strcmp(word, key) == 0;
        REQUIRE(found, ATTNCL_ERR_UNSUPPORTED, "%s: key %.100s is not supported; there are %s",
                what, key, known);
    }
    return ATTNCL_OK;
}

attncl_status attncl__read_bool(const struct json *object, const char *key, bool otherwise,
                                bool *ret)
{
    bool present;

    *ret = otherwise;
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

attncl_status attncl__add_element(void **list, size_t *n, size_t bytes_each, void **ret)
{
    char *grown = attncl__grow_array(*list, *n + 1, bytes_each);

    REQUIRE(grown, ATTNCL_ERR_NO_MEMORY, "a tokenizer's rule");
    *list = grown;
    *ret = grown + *n * bytes_each;
    memset(*ret, 0, bytes_each);
    ++*n;
    return ATTNCL_OK;
}

static bool is_key(const struct json_span *key, const char *name)
{
    const size_t n = strlen(name);

    return key->bytes == n + 2 && memcmp(key->text + 1, name, n) == 0;
}

// Members of large ones apart; the others that are not null in a small object.
static attncl_status add_rest(const struct json_span *object, struct large_member *large, size_t n,
                              struct strbuf *rest)
{
    struct json_members members;
    struct json_span key, value;

    TRY(attncl__json_members(object->text, object->bytes, &members));
    attncl__strbuf_add(rest, "{");
    for (;;) {
        TRY(attncl__json_next_member(&members, &key, &value));
        if (!key.text)
            break;
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
    attncl__strbuf_add(rest, "}");
    REQUIRE(!rest->failed, ATTNCL_ERR_NO_MEMORY, "a tokenizer's rules");
    return ATTNCL_OK;
}

attncl_status attncl__read_members(const struct json_span *object, struct large_member *large,
                                   size_t n, struct json **rest_ret)
{
    struct strbuf rest = STRBUF_EMPTY;
    attncl_status status = ATTNCL_OK;

    TRY_DONE(add_rest(object, large, n, &rest));
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
            (long long)id, (int)token->text.n, attncl__span(t, token->text), (int)text.n,
            attncl__span(t, text));
    *token = (struct token){.text = text, .is_known = true, .byte = -1};
    return ATTNCL_OK;
}

// -- added tokens

static attncl_status name_added(attncl_tokenizer *t, int64_t id, const char *content,
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
    REQUIRE(text.n == span.n && memcmp(attncl__span(t, text), content, span.n) == 0,
            ATTNCL_ERR_FORMAT, "token number %lld is both %.*s and the added %.100s", (long long)id,
            (int)text.n, attncl__span(t, text), content);
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
    TRY(name_added(t, id, content, token.span));
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
        t->token[id].text = token.span; // which is also what `tokenizers` decodes it to
        if (bytes == 0)
            return ATTNCL_OK;
    }
    return attncl__added_add(t, normalized ? &t->normalized : &t->raw, &token);
}

static attncl_status read_all_added(attncl_tokenizer *t, const struct json_span *list)
{
    struct json_members elements;
    struct json_span none, value;
    struct json *object;

    TRY(attncl__json_elements(list->text, list->bytes, &elements));
    for (;;) {
        TRY(attncl__json_next_member(&elements, &none, &value));
        if (!none.text)
            return ATTNCL_OK;
        TRY(attncl__json_parse_value(&value, "added_tokens", JSON_CONFIG_LIMITS, &object));
        const attncl_status status = read_added(t, object);
        attncl__json_free(object);
        TRY(status);
    }
}

// -- the file

static attncl_status read_part(attncl_tokenizer *t, const struct json *rest, const char *key,
                               attncl_status (*read)(attncl_tokenizer *, const struct json *))
{
    const struct json *part;
    bool present;

    TRY(attncl__json_object(rest, key, &present, &part));
    return present ? read(t, part) : ATTNCL_OK;
}

// The model needs to know of ByteLevel, added tokens the normalizer and the vocabulary.
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

attncl_status attncl__tokenizer_read(attncl_tokenizer *t, const char *text, size_t bytes)
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
