// SPDX-License-Identifier: MIT
// Tokenizers against `tokenizers` (tests/data/generate_tokenizers.py), and what is refused.

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "attncl/tokenizer.h"
#include "base/alloc.h"
#include "base/utf8.h"
#include "support/test.h"

NO_DEVICE;

static const char *const files[] = {"gpt2", "llama3", "llama2", "metaspace", "splits", "words"};

static json_t *load(const char *name, attncl_tokenizer **ret)
{
    char path[500];

    snprintf(path, sizeof path, "%s/tokenizer_%s.json", ATTNCL_TEST_DATA, name);
    json_t *file = json_load_file(path, JSON_ALLOW_NUL, NULL);
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    char *text = json_dumps(json_object_get(file, "tokenizer"), JSON_COMPACT);
    ck_ok(attncl_tokenizer_create(text, strlen(text), ret));
    free(text);
    return file;
}

// The ids of a JSON array, the caller's.
static int32_t *ids_of(const json_t *array, size_t *n)
{
    *n = json_array_size(array);
    int32_t *ids = calloc(*n + 1, sizeof *ids);
    for (size_t i = 0; i < *n; ++i)
        ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return ids;
}

static void check_text(const json_t *want, const char *text, size_t bytes)
{
    ck_assert_msg(bytes == json_string_length(want) &&
                      memcmp(text, json_string_value(want), bytes) == 0,
                  "\"%s\", expected \"%s\"", text, json_string_value(want));
}

static void check_encoded(attncl_tokenizer *t, const char *text, const int32_t *want, size_t n_want)
{
    const int32_t *ids;
    size_t n;

    ck_ok(attncl_tokenizer_encode(t, text, strlen(text), 0, &ids, &n));
    ck_assert_msg(n == n_want && memcmp(ids, want, n * sizeof *ids) == 0, "%s", text);
}

// All at once, and token by token, where each part must be UTF-8.
static void check_decoded(attncl_tokenizer *t, const json_t *tokens, const json_t *want)
{
    attncl_tokenizer_stream *stream;
    char whole[4000];
    const char *text;
    size_t n, bytes, used = 0;
    int32_t *ids = ids_of(tokens, &n);

    ck_ok(attncl_tokenizer_decode(t, ids, n, 1, &text, &bytes));
    check_text(want, text, bytes);
    ck_ok(attncl_tokenizer_stream_create(t, 1, &stream));
    for (size_t i = 0; i <= n; ++i) {
        if (i < n)
            ck_ok(attncl_tokenizer_stream_add(stream, ids + i, 1, &text, &bytes));
        else
            ck_ok(attncl_tokenizer_stream_end(stream, &text, &bytes));
        uint32_t code;
        for (size_t at = 0, length; at < bytes; at += length) {
            length = attncl__utf8_decode(text + at, bytes - at, &code);
            ck_assert_msg(length > 0, "no UTF-8 after token %zu", i);
        }
        ck_assert(used + bytes < sizeof whole);
        memcpy(whole + used, text, bytes);
        used += bytes;
    }
    // Of bytes that are no character a stream has already shown what precedes them.
    if (!strstr(json_string_value(want), "\xef\xbf\xbd"))
        check_text(want, whole, used);
    attncl_tokenizer_stream_destroy(stream);
    free(ids);
}

TABLE_TEST(texts_are_those_of_tokenizers, files)
{
    attncl_tokenizer *t;
    json_t *file = load(files[_i], &t);
    const json_t *cases = json_object_get(file, "cases"), *drawn = json_object_get(file, "decoded");

    for (int twice = 0; twice < 2; ++twice) // from the cache the second time
        for (size_t i = 0; i < json_array_size(cases); ++i) {
            const json_t *row = json_array_get(cases, i), *text = json_array_get(row, 0);
            const int32_t *got;
            size_t n, n_want;
            int32_t *want = ids_of(json_array_get(row, 1), &n_want);
            ck_ok(attncl_tokenizer_encode(t, json_string_value(text), json_string_length(text), 1,
                                          &got, &n));
            for (size_t k = 0; k < n && k < n_want; ++k)
                ck_assert_msg(got[k] == want[k], "\"%s\": token %zu is %d, expected %d",
                              json_string_value(text), k, (int)got[k], (int)want[k]);
            ck_assert_msg(n == n_want, "\"%s\": %zu tokens, expected %zu", json_string_value(text),
                          n, n_want);
            check_decoded(t, json_array_get(row, 1), json_array_get(row, 2));
            free(want);
        }
    for (size_t i = 0; i < json_array_size(drawn); ++i) {
        const json_t *row = json_array_get(drawn, i);
        check_decoded(t, json_array_get(row, 0), json_array_get(row, 1));
    }
    attncl_tokenizer_destroy(t);
    json_decref(file);
}

TEST(tokens_before_a_text_are_asked_for)
{
    const int32_t none = 100000, *ids;
    attncl_tokenizer *t;
    const char *text;
    size_t n;
    json_t *file = load("llama2", &t);

    ck_ok(attncl_tokenizer_encode(t, "", 0, 1, &ids, &n));
    ck_assert(n == 1 && ids[0] == 1);
    ck_ok(attncl_tokenizer_decode(t, ids, 1, 1, &text, &n));
    ck_assert_str_eq(text, "");
    ck_ok(attncl_tokenizer_decode(t, ids, 1, 0, &text, &n));
    ck_assert_str_eq(text, "<s>");
    ck_ok(attncl_tokenizer_encode(t, "", 0, 0, &ids, &n));
    ck_assert(n == 0);
    ck_ok(attncl_tokenizer_decode(t, &none, 1, 0, &text, &n));
    ck_assert(n == 0);
    ck_assert_int_eq(attncl_tokenizer_count(t), 473);
    ck_fails(attncl_tokenizer_encode(t, "ab\xc3(", 4, 0, &ids, &n), ATTNCL_ERR_ARGUMENT,
             "not UTF-8 at byte 2");
    attncl_tokenizer_destroy(t);
    json_decref(file);
}

TEST(a_character_is_shown_with_its_last_byte)
{
    enum { FIRST_BYTE = 3 }; // the token of byte 0
    static const struct {
        int32_t byte;
        const char *text;
    } rows[] = {{0xc3, ""},
                {0xa9, "\xc3\xa9"},
                {0xe2, ""},
                {0x82, ""},
                {'a', "\xef\xbf\xbd\xef\xbf\xbd"
                      "a"},
                {0xff, "\xef\xbf\xbd"},
                {0xf0, ""}};
    attncl_tokenizer_stream *stream;
    attncl_tokenizer *t;
    const char *text;
    size_t bytes;
    json_t *file = load("llama2", &t);

    ck_ok(attncl_tokenizer_stream_create(t, 1, &stream));
    for (int twice = 0; twice < 2; ++twice) {
        for (size_t i = 0; i < COUNT_OF(rows); ++i) {
            const int32_t id = FIRST_BYTE + rows[i].byte;
            ck_ok(attncl_tokenizer_stream_add(stream, &id, 1, &text, &bytes));
            ck_assert_str_eq(text, rows[i].text);
        }
        ck_ok(attncl_tokenizer_stream_end(stream, &text, &bytes));
        ck_assert_str_eq(text, "\xef\xbf\xbd");
    }
    attncl_tokenizer_stream_destroy(stream);
    attncl_tokenizer_destroy(t);
    json_decref(file);
}

// A long word without a rule for how it can be cut, and a run of what an expression may give back.
TEST(long_texts_take_no_stack)
{
    enum { BYTES = 300000 };
    attncl_tokenizer *t;
    const int32_t *ids;
    size_t n;
    json_t *file = load("llama3", &t);
    char *text = malloc(BYTES);

    for (int i = 0; i < 2; ++i) {
        memset(text, i == 0 ? ' ' : 'e', BYTES);
        ck_ok(attncl_tokenizer_encode(t, text, BYTES, 0, &ids, &n));
        ck_assert(n > 0 && n <= BYTES);
    }
    free(text);
    attncl_tokenizer_destroy(t);
    json_decref(file);
}

#define MODEL(more, vocab, merges)                                                                 \
    "{\"model\": {\"type\": \"BPE\"" more ", \"vocab\": {" vocab "}, \"merges\": [" merges "]}"
#define AB         "\"a\": 0, \"b\": 1, \"ab\": 2"
#define GOOD       MODEL("", AB, "\"a b\"")
#define PART(text) GOOD ", " text "}"
#define ADDED(id, content, more)                                                                   \
    PART("\"added_tokens\": [{\"id\": " id ", \"content\": \"" content "\"" more "}]")
#define SPLIT(text) PART("\"pre_tokenizer\": {\"type\": \"Split\", " text "}")
#define REGEX(text) SPLIT("\"pattern\": {\"Regex\": \"" text "\"}")

static const struct {
    const char *text, *words;
    attncl_status status;
} bad[] = {
    {"", "object expected", ATTNCL_ERR_FORMAT},
    {"[]", "array, expected an object", ATTNCL_ERR_FORMAT},
    {"{}", "model is missing", ATTNCL_ERR_FORMAT},
    {GOOD, "comma or }", ATTNCL_ERR_FORMAT},
    {PART("\"novel\": 1"), "key novel is not supported", ATTNCL_ERR_UNSUPPORTED},
    {PART("\"truncation\": {}"), "key truncation", ATTNCL_ERR_UNSUPPORTED},
    {PART("\"version\": \"2.0\""), "version is 2.0", ATTNCL_ERR_UNSUPPORTED},
    {PART("\"model\": {}"), "duplicate key model", ATTNCL_ERR_FORMAT},
    {PART("\"normalizer\": {\"type\": \"Lowercase\"}"), "normalizer Lowercase is not supported",
     ATTNCL_ERR_UNSUPPORTED},
    {PART("\"normalizer\": {\"type\": \"NFC\", \"x\": 1}"), "normalizer: key x",
     ATTNCL_ERR_UNSUPPORTED},
    {PART("\"decoder\": {\"type\": \"WordPiece\"}"), "decoder WordPiece", ATTNCL_ERR_UNSUPPORTED},
    {PART("\"decoder\": {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}"),
     "Strip without Fuse", ATTNCL_ERR_UNSUPPORTED},
    {PART("\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, {\"type\": "
          "\"ByteLevel\"}]}"),
     "ByteLevel at this place", ATTNCL_ERR_UNSUPPORTED},
    {PART("\"post_processor\": {\"type\": \"RobertaProcessing\"}"), "RobertaProcessing",
     ATTNCL_ERR_UNSUPPORTED},
    {PART("\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {}}, "
          "{\"SpecialToken\": {\"id\": \"a\"}}]}"),
     "after the text", ATTNCL_ERR_UNSUPPORTED},
    {PART("\"pre_tokenizer\": {\"type\": \"Bert\"}"), "pre_tokenizer Bert is not supported",
     ATTNCL_ERR_UNSUPPORTED},
    {PART("\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
          "\"ByteLevel\"}, {\"type\": \"Digits\"}]}"),
     "after ByteLevel", ATTNCL_ERR_UNSUPPORTED},
    {SPLIT("\"pattern\": {\"String\": \"x\"}, \"behavior\": \"Odd\""), "behavior Odd",
     ATTNCL_ERR_UNSUPPORTED},
    {REGEX("a\\\\b"), "\\b is not supported", ATTNCL_ERR_UNSUPPORTED},
    {REGEX("[a[b]]"), "[ is not supported", ATTNCL_ERR_UNSUPPORTED},
    {REGEX("[a-z&&b]"), "&& is not supported", ATTNCL_ERR_UNSUPPORTED},
    {REGEX("x{2}+"), "{2}+ is not supported", ATTNCL_ERR_UNSUPPORTED},
    {REGEX("x(?i)y|z"), "(?i is not supported", ATTNCL_ERR_UNSUPPORTED},
    {REGEX("\\\\p{Novel}"), "p{Novel}: ", ATTNCL_ERR_UNSUPPORTED},
    {REGEX("(a"), "the regular expression (a: missing", ATTNCL_ERR_UNSUPPORTED},
    {ADDED("7", "a", ""), "added token a has number 7, in the vocabulary it has 0",
     ATTNCL_ERR_FORMAT},
    {ADDED("2", "c", ""), "token number 2 is both ab and the added c", ATTNCL_ERR_FORMAT},
    {ADDED("-1", "c", ""), "token number -1", ATTNCL_ERR_FORMAT},
    {ADDED("3", "c", ", \"odd\": true"), "added_tokens: key odd", ATTNCL_ERR_UNSUPPORTED},
    {MODEL("", "\"a\": 0, \"b\": 0", "") "}", "token number 0 is both a and b", ATTNCL_ERR_FORMAT},
    {MODEL("", "\"a\": 0, \"a\": 1", "") "}", "duplicate token a", ATTNCL_ERR_FORMAT},
    {MODEL("", "\"a\": 0.5", "") "}", "0.5 is not a token number", ATTNCL_ERR_FORMAT},
    {MODEL("", "\"a\": 99999999", "") "}", "token number 99999999, possible are",
     ATTNCL_ERR_FORMAT},
    {MODEL("", AB, "\"a b\", \"b a\"") "}", "merges[1]: ba is not in the vocabulary",
     ATTNCL_ERR_FORMAT},
    {MODEL("", AB, "\"ab\"") "}", "merges[0]: ab is not two tokens", ATTNCL_ERR_FORMAT},
    {MODEL("", AB, "[\"a\"]") "}", "merges[0]: 1 tokens, expected 2", ATTNCL_ERR_FORMAT},
    {MODEL(", \"dropout\": 0.1", AB, "") "}", "dropout is 0.1", ATTNCL_ERR_UNSUPPORTED},
    {MODEL(", \"end_of_word_suffix\": \"</w>\"", AB, "") "}", "end_of_word_suffix </w>",
     ATTNCL_ERR_UNSUPPORTED},
    {MODEL(", \"unk_token\": \"x\"", AB, "") "}", "x is not in the vocabulary", ATTNCL_ERR_FORMAT},
    {"{\"model\": {\"type\": \"Unigram\", \"vocab\": {}, \"merges\": []}}",
     "model Unigram is not supported", ATTNCL_ERR_UNSUPPORTED},
    {"{\"model\": {\"vocab\": {}}}", "merges is missing", ATTNCL_ERR_FORMAT},
};

TABLE_TEST(a_rule_that_is_not_known_is_named, bad)
{
    attncl_tokenizer *t = NULL;
    const size_t live = attncl__alloc_live();

    ck_fails(attncl_tokenizer_create(bad[_i].text, strlen(bad[_i].text), &t), bad[_i].status,
             bad[_i].words);
    ck_assert(t == NULL);
    ck_assert(strncmp(attncl_last_error(), "tokenizer.json: ", 16) == 0);
    ck_assert_uint_eq(attncl__alloc_live(), live);
}

// As many pieces as `tokenizers` makes; some expressions mean something else to PCRE2.
TEST(pieces_are_those_of_tokenizers)
{
    static const struct {
        const char *behavior, *invert, *regex, *text;
        size_t n; // pieces
    } rows[] = {
        {"Isolated", "false", "\\\\s",
         "a\xe1\xa0\x8e"
         "a",
         1},                                                         // U+180E is no white space
        {"Isolated", "false", "\\\\w+", "a\xcc\x81\xe2\x93\x90", 1}, // a mark, a circled letter
        {"Isolated", "false", "\\\\w+", "a\xc2\xbd", 1},             // a fraction
        {"Isolated", "false", "[\\\\w]+", "a\xc2\xbd", 2},           // but not in a class
        {"Isolated", "false", "\\\\v", "a\n\v", 2},
        {"Isolated", "false", "b{,2}$", "abb\nb", 4},
        {"Isolated", "false", "[\\\\s\\\\d]", "a1 b", 4},
        {"Isolated", "false", "\\\\u0062", "abc", 3},
        {"Isolated", "false", "\\\\p{Han}",
         "a\xe3\x80\x81"
         "b",
         1}, // U+3001 has several scripts
        {"Isolated", "false", "x*", "axxb", 3},
        {"MergedWithPrevious", "false", "o", "aoobao", 3},
        {"MergedWithPrevious", "true", "o", "aoobao", 4},
        {"MergedWithNext", "false", "o", "aoobao", 4},
        {"MergedWithNext", "true", "o", "aoobao", 3},
        {"Contiguous", "false", "o", "aoobao", 4},
        {"Contiguous", "true", "o", "aoobao", 4},
        {"Removed", "false", "o", "aoobao", 2},
        {"Removed", "true", "o", "aoobao", 3}};

    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        char text[500];
        attncl_tokenizer *t;
        const int32_t *ids;
        size_t n;
        // Nothing is in the vocabulary: each piece becomes one unknown token.
        snprintf(text, sizeof text,
                 "{\"model\": {\"unk_token\": \"?\", \"fuse_unk\": true, \"vocab\": {\"?\": 0}, "
                 "\"merges\": []}, \"pre_tokenizer\": {\"type\": \"Split\", \"behavior\": "
                 "\"%s\", \"invert\": %s, \"pattern\": {\"Regex\": \"%s\"}}}",
                 rows[i].behavior, rows[i].invert, rows[i].regex);
        ck_ok(attncl_tokenizer_create(text, strlen(text), &t));
        ck_ok(attncl_tokenizer_encode(t, rows[i].text, strlen(rows[i].text), 0, &ids, &n));
        ck_assert_msg(n == rows[i].n, "row %zu: %zu pieces, expected %zu", i, n, rows[i].n);
        attncl_tokenizer_destroy(t);
    }
}

// Texts are cut before U+2581 only where no merge goes over that place; unknown characters come in their place.
TEST(merges_over_spaces_and_unknown_characters)
{
    static const char model[] =
        "{\"model\": {\"unk_token\": \"?\", \"fuse_unk\": true, \"vocab\": {\"?\": 0, \"a\": 1, "
        "\"\xe2\x96\x81\": 2, \"b\": 3, \"a\xe2\x96\x81\": 4, \"a\xe2\x96\x81"
        "b\": 5, \"\xe2\x96\x81"
        "b\": 6}, \"merges\": "
        "[\"a \xe2\x96\x81\", \"a\xe2\x96\x81 b\", \"\xe2\x96\x81 b\"]}}";
    static const struct {
        const char *text;
        size_t n;
        int32_t ids[5];
    } rows[] = {{"a\xe2\x96\x81"
                 "b",
                 1,
                 {5}},
                {"b\xe2\x96\x81"
                 "b",
                 2,
                 {3, 6}},
                {"xy\xe2\x96\x81"
                 "b",
                 2,
                 {0, 6}},
                {"xaxxb", 4, {0, 1, 0, 3}},
                {"\xe2\x96\x81\xe2\x96\x81"
                 "bx",
                 3,
                 {2, 6, 0}}};
    attncl_tokenizer *t;

    ck_ok(attncl_tokenizer_create(model, strlen(model), &t));
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        check_encoded(t, rows[i].text, rows[i].ids, rows[i].n);
    }
    attncl_tokenizer_destroy(t);
}

// Without an unknown token a character is dropped, and its neighbours merge.
TEST(merges_over_dropped_characters)
{
    static const char model[] = "{\"model\": {\"vocab\": {\"\xe2\x96\x81\": 0, \"a\": 1, "
                                "\"a\xe2\x96\x81\": 2}, \"merges\": "
                                "[\"a \xe2\x96\x81\"]}}";
    static const int32_t want[] = {2};
    attncl_tokenizer *t;

    ck_ok(attncl_tokenizer_create(model, strlen(model), &t));
    check_encoded(t, "ax\xe2\x96\x81", want, COUNT_OF(want));
    attncl_tokenizer_destroy(t);
}

TEST(the_longest_added_token_is_taken)
{
    static const char model[] =
        "{\"model\": {\"unk_token\": \"?\", \"vocab\": {\"?\": 0}, \"merges\": []}, "
        "\"added_tokens\": [{\"id\": 4, \"content\": \"abcd\", \"special\": true}, {\"id\": 3, "
        "\"content\": \"abc\", \"special\": true}, {\"id\": 1, \"content\": \"a\", \"special\": "
        "true}, {\"id\": 5, \"content\": \"b\", \"special\": true}]}";
    static const int32_t want[] = {4, 3, 0, 1, 5, 1, 3};
    attncl_tokenizer *t;

    ck_ok(attncl_tokenizer_create(model, strlen(model), &t));
    check_encoded(t, "abcdabcxabaabc", want, COUNT_OF(want));
    attncl_tokenizer_destroy(t);
}

// White space that an added token absorbs holds further ones; one with nothing left of its own is dropped.
TEST(added_tokens_of_white_space_overlap)
{
    static const struct {
        const char *lstrip;
        size_t n;
    } rows[] = {{"false", 2}, {"true", 1}};

    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        char text[400];
        attncl_tokenizer *t;
        const int32_t *ids;
        size_t n;
        snprintf(text, sizeof text,
                 "{\"model\": {\"unk_token\": \"?\", \"vocab\": {\"?\": 0}, \"merges\": []}, "
                 "\"added_tokens\": [{\"id\": 4, \"content\": \"  \", \"special\": true, "
                 "\"lstrip\": %s, \"rstrip\": true}]}",
                 rows[i].lstrip);
        ck_ok(attncl_tokenizer_create(text, strlen(text), &t));
        ck_ok(attncl_tokenizer_encode(t, "     ", 5, 0, &ids, &n));
        ck_assert_uint_eq(n, rows[i].n);
        attncl_tokenizer_destroy(t);
    }
}

// Metaspace and ByteLevel both rewrite the text, with a step between that does not.
TEST(two_steps_rewrite_a_text)
{
    static const char model[] =
        "{\"model\": {\"vocab\": {\"\xc4\xa0\": 1, \"a\": 2, \"b\": 3, \"\xc3\xa2\": 4, "
        "\"\xc4\xb8\": 5, "
        "\"\xc4\xa3\": 6}, \"merges\": []}, \"pre_tokenizer\": {\"type\": \"Sequence\", "
        "\"pretokenizers\": [{\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", "
        "\"prepend_scheme\": \"never\", \"split\": false}, {\"type\": \"Split\", \"pattern\": "
        "{\"String\": \"a\"}, \"behavior\": \"Isolated\"}, {\"type\": \"ByteLevel\", "
        "\"add_prefix_space\": true, \"use_regex\": false}]}}";
    static const int32_t want[] = {1, 3, 4, 5, 6, 1, 2, 1, 3};
    attncl_tokenizer *t;

    ck_ok(attncl_tokenizer_create(model, strlen(model), &t));
    check_encoded(t, "b ab", want, COUNT_OF(want));
    attncl_tokenizer_destroy(t);
}

static attncl_status use(const char *text)
{
    attncl_tokenizer *t = NULL;
    attncl_tokenizer_stream *stream = NULL;
    const int32_t *ids;
    const char *decoded;
    size_t n;
    attncl_status status = attncl_tokenizer_create(text, strlen(text), &t);

    if (status == ATTNCL_OK)
        status = attncl_tokenizer_encode(t, "It's na\xc3\xafve  <r> 12", 18, 1, &ids, &n);
    if (status == ATTNCL_OK)
        status = attncl_tokenizer_stream_create(t, 0, &stream);
    if (status == ATTNCL_OK)
        status = attncl_tokenizer_stream_add(stream, ids, n, &decoded, &n);
    attncl_tokenizer_stream_destroy(stream);
    attncl_tokenizer_destroy(t);
    return status;
}

TABLE_TEST(short_memory_is_reported, files)
{
    attncl_tokenizer *t;
    json_t *file = load(files[_i], &t);
    char *text = json_dumps(json_object_get(file, "tokenizer"), JSON_COMPACT);
    const size_t live = (attncl_tokenizer_destroy(t), attncl__alloc_live());

    for (size_t n = 1;; ++n) {
        attncl__alloc_fail_at(n);
        const attncl_status status = use(text);
        const bool failed = attncl__alloc_has_failed();
        attncl__alloc_fail_at(0);
        ck_assert_uint_eq(attncl__alloc_live(), live);
        if (!failed)
            break;
        // Without machine code an expression is interpreted.
        ck_assert_msg(status == ATTNCL_ERR_NO_MEMORY || status == ATTNCL_OK, "request %zu: %s", n,
                      attncl_last_error());
    }
    free(text);
    json_decref(file);
}
