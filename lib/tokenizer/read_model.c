// SPDX-License-Identifier: MIT
//
// Reads the model of tokenizer.json (vocabulary and merges, one member at a time) and the post-processor's template.

#include <string.h>

#include "base/try.h"
#include "tokenizer/tokenizer.h"

// Decodes a JSON string into `scratch`.
static attncl_status read_text(const struct json_span *value, struct strbuf *scratch)
{
    char *end;

    scratch->used = 0;
    attncl__strbuf_add_bytes(scratch, value->text, value->bytes); // reserves enough memory
    REQUIRE(!scratch->failed, ATTNCL_ERR_NO_MEMORY, "%zu bytes of text", value->bytes);
    TRY(attncl__json_parse_text(value, "a token", JSON_CONFIG_LIMITS, scratch->data, &end));
    scratch->used = (size_t)(end - scratch->data) - 1;
    return ATTNCL_OK;
}

static attncl_status read_number(const struct json_span *value, int64_t *ret)
{
    int64_t number = 0;
    bool is_number = value->bytes <= 9;

    for (size_t i = 0; i < value->bytes && is_number; ++i) {
        is_number = value->text[i] >= '0' && value->text[i] <= '9';
        number = 10 * number + (value->text[i] - '0');
    }
    REQUIRE(is_number, ATTNCL_ERR_FORMAT, "%.*s is not a token number",
            value->bytes < 40 ? (int)value->bytes : 40, value->text);
    *ret = number;
    return ATTNCL_OK;
}

static attncl_status count_members(struct json_members members, size_t *n_ret)
{
    while (attncl__json_next_member(&members))
        ;
    *n_ret = members.n;
    return members.status;
}

int32_t attncl__token_find(attncl_tokenizer *t, const char *text, size_t bytes)
{
    if (!t->bpe.is_byte_level)
        return attncl__vocab_find(t, text, bytes);
    t->key.used = 0;
    return attncl__token_to_bytes(text, bytes, &t->key) && bytes > 0
               ? attncl__vocab_find(t, t->key.data, t->key.used)
               : -1;
}

// Byte-level BPE's key is the token's bytes.  A token with a character that is no byte cannot result from merges and
// gets no key.
static attncl_status add_token(attncl_tokenizer *t, const struct strbuf *text, int64_t id)
{
    struct span span, key;

    TRY(attncl__arena_add(t, text->data, text->used, &span));
    TRY(attncl__token_set(t, id, span));
    key = span;
    if (t->bpe.is_byte_level) {
        t->key.used = 0;
        const bool is_bytes = attncl__token_to_bytes(text->data, text->used, &t->key);
        REQUIRE(!t->key.failed, ATTNCL_ERR_NO_MEMORY, "%zu bytes of text", text->used);
        if (!is_bytes || text->used == 0)
            return ATTNCL_OK;
        TRY(attncl__arena_add(t, t->key.data, t->key.used, &key));
    }
    REQUIRE(attncl__vocab_add(t, key, (int32_t)id), ATTNCL_ERR_FORMAT,
            "vocab: duplicate token %.*s", (int)text->used, text->data);
    return ATTNCL_OK;
}

static attncl_status read_vocab(attncl_tokenizer *t, const struct json_span *vocab,
                                struct strbuf *scratch)
{
    struct json_members members = attncl__json_members(*vocab);
    int64_t id = 0;
    size_t n;

    TRY(count_members(members, &n));
    REQUIRE(n <= TOKENIZER_MAX_TOKENS, ATTNCL_ERR_FORMAT, "vocab has %zu tokens, at most %d fit", n,
            TOKENIZER_MAX_TOKENS);
    TRY(attncl__vocab_reserve(&t->bpe, n));
    while (attncl__json_next_member(&members)) {
        TRY(read_text(&members.key, scratch));
        TRY(read_number(&members.value, &id));
        TRY(add_token(t, scratch, id));
    }
    return members.status;
}

// Writes ["a", "b"] or "a b" as "a\0b" to *pair.  *middle_ret: the offset of b.
static attncl_status read_pair(const struct json_span *value, struct strbuf *scratch,
                               struct strbuf *pair, size_t *middle_ret)
{
    struct json_members elements;

    pair->used = 0;
    if (value->text[0] == '"') {
        TRY(read_text(value, pair));
        char *space = memchr(pair->data, ' ', pair->used);
        REQUIRE(space && !memchr(space + 1, ' ', pair->used - (size_t)(space + 1 - pair->data)),
                ATTNCL_ERR_FORMAT, "%.*s is not two tokens with a space between", (int)pair->used,
                pair->data);
        *space = '\0';
        *middle_ret = (size_t)(space - pair->data) + 1;
        return ATTNCL_OK;
    }
    elements = attncl__json_elements(*value);
    while (attncl__json_next_member(&elements)) {
        TRY(read_text(&elements.value, scratch));
        if (elements.n == 2) {
            attncl__strbuf_add_bytes(pair, "", 1);
            *middle_ret = pair->used;
        }
        attncl__strbuf_add_bytes(pair, scratch->data, scratch->used);
    }
    TRY(elements.status);
    REQUIRE(!pair->failed, ATTNCL_ERR_NO_MEMORY, "a merge");
    REQUIRE(elements.n == 2, ATTNCL_ERR_FORMAT, "%zu tokens, expected 2", elements.n);
    return ATTNCL_OK;
}

static attncl_status find_in_vocab(attncl_tokenizer *t, const char *text, size_t bytes,
                                   int32_t *ret)
{
    *ret = attncl__token_find(t, text, bytes);
    REQUIRE(!t->key.failed, ATTNCL_ERR_NO_MEMORY, "%zu bytes of text", bytes);
    REQUIRE(*ret >= 0, ATTNCL_ERR_FORMAT, "%.*s is not in the vocabulary", (int)bytes, text);
    return ATTNCL_OK;
}

static attncl_status add_rule(attncl_tokenizer *t, struct strbuf *pair, size_t middle,
                              uint32_t rank)
{
    int32_t left, right, both;

    TRY(find_in_vocab(t, pair->data, middle - 1, &left));
    TRY(find_in_vocab(t, pair->data + middle, pair->used - middle, &right));
    memmove(pair->data + middle - 1, pair->data + middle, pair->used - middle);
    TRY(find_in_vocab(t, pair->data, pair->used - 1, &both));
    attncl__rule_set(&t->bpe, left, right, (struct merge_rule){.rank = rank, .id = both});
    return ATTNCL_OK;
}

static attncl_status read_merges(attncl_tokenizer *t, const struct json_span *merges,
                                 struct strbuf *scratch, struct strbuf *pair)
{
    struct json_members elements = attncl__json_elements(*merges);
    size_t n, middle = 0;

    TRY(count_members(elements, &n));
    REQUIRE(n <= UINT32_MAX / 4, ATTNCL_ERR_FORMAT, "%zu merges", n);
    TRY(attncl__rules_reserve(&t->bpe, n));
    while (attncl__json_next_member(&elements)) {
        const unsigned rank = (unsigned)elements.n - 1;
        attncl_status status = read_pair(&elements.value, scratch, pair, &middle);
        if (status == ATTNCL_OK)
            status = add_rule(t, pair, middle, rank);
        TRY(attncl__prefix_failure(status, "merges[%u]", rank));
    }
    return elements.status;
}

static attncl_status refuse_nonempty(const struct json *model, const char *key)
{
    const char *text = "";
    bool present;

    TRY(attncl__json_text(model, key, &present, &text));
    REQUIRE(!*text, ATTNCL_ERR_UNSUPPORTED, "model: %s %.50s is not supported", key, text);
    return ATTNCL_OK;
}

static attncl_status read_options(attncl_tokenizer *t, const struct json *model,
                                  const char **unk_ret)
{
    const char *type = "BPE";
    struct bpe *bpe = &t->bpe;
    double dropout = 0;
    bool present;
    int none;

    TRY(attncl__json_text(model, "type", &present, &type));
    TRY(attncl__choose("model", type, "BPE", &none));
    TRY(attncl__check_keys(model, "model",
                           "type dropout unk_token continuing_subword_prefix end_of_word_suffix "
                           "fuse_unk byte_fallback ignore_merges vocab merges"));
    TRY(attncl__json_double(model, "dropout", &present, &dropout));
    REQUIRE(dropout == 0, ATTNCL_ERR_UNSUPPORTED, "model: dropout is %g, only 0 is supported",
            dropout);
    TRY(refuse_nonempty(model, "continuing_subword_prefix"));
    TRY(refuse_nonempty(model, "end_of_word_suffix"));
    TRY(attncl__read_bool(model, "fuse_unk", false, &bpe->fuse_unk));
    TRY(attncl__read_bool(model, "byte_fallback", false, &bpe->byte_fallback));
    TRY(attncl__read_bool(model, "ignore_merges", false, &bpe->ignore_merges));
    REQUIRE(!bpe->byte_fallback || !bpe->is_byte_level, ATTNCL_ERR_UNSUPPORTED,
            "model: byte_fallback with pre_tokenizer ByteLevel is not supported");
    return attncl__json_text(model, "unk_token", &present, unk_ret);
}

attncl_status attncl__model_read(attncl_tokenizer *t, const struct json_span *model)
{
    struct large_member large[] = {{.name = "vocab"}, {.name = "merges"}};
    struct strbuf scratch = STRBUF_EMPTY, pair = STRBUF_EMPTY;
    attncl_status status = ATTNCL_OK;
    struct json *rest = NULL;
    const char *unk = NULL;

    t->bpe.unk = -1;
    TRY_DONE(attncl__read_members(model, large, 2, &rest));
    TRY_DONE(read_options(t, rest, &unk));
    for (int i = 0; i < 2; ++i)
        if (!large[i].value.text)
            TRY_DONE(FAIL(ATTNCL_ERR_FORMAT, "model: %s is missing", large[i].name));
    TRY_DONE(read_vocab(t, &large[0].value, &scratch));
    TRY_DONE(read_merges(t, &large[1].value, &scratch, &pair));
    if (unk)
        TRY_DONE(find_in_vocab(t, unk, strlen(unk), &t->bpe.unk));
    TRY_DONE(attncl__bpe_prepare(t));

done:
    attncl__json_free(rest);
    attncl__strbuf_free(&scratch);
    attncl__strbuf_free(&pair);
    return status;
}

// -- post-processor

static attncl_status add_special(attncl_tokenizer *t, const struct json *file,
                                 const struct json *special)
{
    enum { MAX_IDS = 16 };
    const struct json *all, *one;
    int64_t id[MAX_IDS];
    const char *name;
    size_t n;

    TRY(attncl__json_text(special, "id", NULL, &name));
    TRY(attncl__json_object(file, "special_tokens", NULL, &all));
    TRY(attncl__json_object(all, name, NULL, &one));
    TRY(attncl__json_ints(one, "ids", NULL, MAX_IDS, id, &n));
    for (size_t i = 0; i < n; ++i) {
        REQUIRE(id[i] >= 0 && id[i] < TOKENIZER_MAX_TOKENS, ATTNCL_ERR_FORMAT,
                "TemplateProcessing: %.100s has token number %lld", name, (long long)id[i]);
        TRY(attncl__ids_append(&t->begin, (int32_t)id[i]));
    }
    return ATTNCL_OK;
}

static attncl_status read_template(attncl_tokenizer *t, const struct json *object)
{
    const struct json *item, *special, *sequence = NULL;
    bool is_special, is_text, had_text = false;

    TRY(attncl__check_keys(object, "post_processor TemplateProcessing",
                           "type single pair special_tokens"));
    for (size_t i = 0;; ++i) {
        TRY(attncl__json_item(object, "single", i, &item));
        if (!item)
            return ATTNCL_OK;
        TRY(attncl__json_object(item, "SpecialToken", &is_special, &special));
        TRY(attncl__json_object(item, "Sequence", &is_text, &sequence));
        REQUIRE(is_special != is_text && !had_text, ATTNCL_ERR_UNSUPPORTED,
                "post_processor TemplateProcessing: tokens after the text are not supported");
        had_text = is_text;
        if (is_special)
            TRY(add_special(t, object, special));
    }
}

attncl_status attncl__template_read(attncl_tokenizer *t, const struct json *object)
{
    enum { TEMPLATE, BYTE_LEVEL, SEQUENCE };
    const char *name;
    int kind;

    TRY(attncl__json_text(object, "type", NULL, &name));
    TRY(attncl__choose("post_processor", name, "TemplateProcessing ByteLevel Sequence", &kind));
    if (kind == BYTE_LEVEL) // changes only offsets, which are not computed
        return ATTNCL_OK;
    if (kind == TEMPLATE)
        return read_template(t, object);
    return attncl__read_sequence(t, object, "post_processor Sequence", "processors",
                                 attncl__template_read);
}
