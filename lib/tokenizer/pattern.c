// SPDX-License-Identifier: MIT
//
// Searches for strings by memchr() and for regular expressions by PCRE2, as machine code where possible
// (docs/dev/decisions/0019-pcre2-utf8proc.md).

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

// Stack bytes of compiled expressions; backtracking over long runs of characters needs some.
enum { MIN_JIT_STACK = 1 << 15, MAX_JIT_STACK = 1 << 24 };
// Maximum steps of one match.  Hostile expressions take exponentially many, others a few per byte.
enum { STEPS = 10000000, STEPS_PER_BYTE = 8 };

struct pattern {
    struct strbuf text; // a string, or a regular expression for PCRE2
    pcre2_general_context *general;
    pcre2_code *code; // NULL: search for the string
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack; // NULL: interpreted
};

static void *alloc_for_pcre2(PCRE2_SIZE bytes, void *user)
{
    (void)user;
    return attncl__alloc(bytes);
}

static void free_for_pcre2(void *p, void *user)
{
    (void)user;
    attncl__free(p);
}

void attncl__pattern_free(struct pattern *p)
{
    if (!p)
        return;
    pcre2_jit_stack_free(p->stack);
    pcre2_match_context_free(p->context);
    pcre2_match_data_free(p->data);
    pcre2_code_free(p->code);
    pcre2_general_context_free(p->general);
    attncl__strbuf_free(&p->text);
    attncl__free(p);
}

attncl_status attncl__pattern_string(const char *text, struct pattern **ret)
{
    REQUIRE(*text, ATTNCL_ERR_UNSUPPORTED, "an empty pattern");
    struct pattern *p = attncl__alloc_zero(sizeof *p);
    if (p)
        attncl__strbuf_add_bytes(&p->text, text, strlen(text));
    if (!p || p->text.failed) {
        attncl__pattern_free(p);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "a pattern");
    }
    *ret = p;
    return ATTNCL_OK;
}

static pcre2_code *compile(pcre2_general_context *general, const char *text, size_t bytes,
                           int *error)
{
    PCRE2_SIZE offset;
    pcre2_compile_context *context = pcre2_compile_context_create(general);

    *error = PCRE2_ERROR_NOMEMORY;
    if (!context)
        return NULL;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_code *code = pcre2_compile(
        (PCRE2_SPTR)text, bytes, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, error, &offset, context);
    pcre2_compile_context_free(context);
    return code;
}

// Optional, since some systems forbid machine code.
static void compile_to_machine_code(struct pattern *p)
{
    if (pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE) != 0)
        return;
    p->stack = pcre2_jit_stack_create(MIN_JIT_STACK, MAX_JIT_STACK, p->general);
    if (p->stack)
        pcre2_jit_stack_assign(p->context, NULL, p->stack);
}

static attncl_status make_code(struct pattern *p, const char *regex)
{
    char message[200];
    int error = PCRE2_ERROR_NOMEMORY;

    TRY(attncl__regex_translate(regex, &p->text));
    p->general = pcre2_general_context_create(alloc_for_pcre2, free_for_pcre2, NULL);
    p->code = p->general ? compile(p->general, p->text.data, p->text.used, &error) : NULL;
    REQUIRE(p->code || error != PCRE2_ERROR_HEAP_FAILED, ATTNCL_ERR_NO_MEMORY,
            "a regular expression");
    if (!p->code && error > 0)
        pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
    REQUIRE(p->code || error < 0, ATTNCL_ERR_UNSUPPORTED, "the regular expression %.200s: %s",
            regex, message);
    if (p->code) {
        p->data = pcre2_match_data_create_from_pattern(p->code, p->general);
        p->context = pcre2_match_context_create(p->general);
    }
    REQUIRE(p->data && p->context, ATTNCL_ERR_NO_MEMORY, "a regular expression");
    compile_to_machine_code(p);
    return ATTNCL_OK;
}

attncl_status attncl__pattern_regex(const char *regex, struct pattern **ret)
{
    struct pattern *p = attncl__alloc_zero(sizeof *p);

    REQUIRE(p, ATTNCL_ERR_NO_MEMORY, "a regular expression");
    const attncl_status status = make_code(p, regex);
    if (status == ATTNCL_OK)
        *ret = p;
    else
        attncl__pattern_free(p);
    return status;
}

static const char *find_string(const char *text, const char *end, const struct strbuf *wanted)
{
    while ((size_t)(end - text) >= wanted->used) {
        text = memchr(text, wanted->data[0], (size_t)(end - text) - wanted->used + 1);
        if (!text || memcmp(text, wanted->data, wanted->used) == 0)
            return text;
        ++text;
    }
    return NULL;
}

static attncl_status find_regex(struct pattern_search *search, bool *found)
{
    const struct pattern *p = search->pattern;
    const PCRE2_SPTR text = (PCRE2_SPTR)search->text;
    int n = PCRE2_ERROR_JIT_STACKLIMIT;

    if (search->at == 0) {
        const size_t steps = STEPS + STEPS_PER_BYTE * search->bytes;
        pcre2_set_match_limit(p->context, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    }
    if (p->stack)
        n = pcre2_jit_match(p->code, text, search->bytes, search->at, 0, p->data, p->context);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(p->code, text, search->bytes, search->at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                        p->data, p->context);
    REQUIRE(n != PCRE2_ERROR_NOMEMORY, ATTNCL_ERR_NO_MEMORY, "a search in %zu bytes",
            search->bytes);
    REQUIRE(n >= 0 || n == PCRE2_ERROR_NOMATCH, ATTNCL_ERR_UNSUPPORTED,
            "the regular expression %.200s takes too many steps on this text (PCRE2's error %d)",
            p->text.data, n);
    *found = n >= 0;
    if (*found) {
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(p->data);
        search->begin = place[0];
        search->end = place[1];
    }
    return ATTNCL_OK;
}

attncl_status attncl__pattern_next(struct pattern_search *search, bool *found)
{
    uint32_t code;

    for (*found = false; search->at <= search->bytes;) {
        if (search->pattern->code) {
            TRY(find_regex(search, found));
        } else {
            const char *at = find_string(search->text + search->at, search->text + search->bytes,
                                         &search->pattern->text);
            *found = at != NULL;
            search->begin = at ? (size_t)(at - search->text) : 0;
            search->end = search->begin + search->pattern->text.used;
        }
        if (!*found || search->begin != search->end || search->end != search->last_end) {
            search->at = search->last_end = search->end;
            return ATTNCL_OK;
        }
        *found = false;
        const size_t length =
            attncl__utf8_decode(search->text + search->at, search->bytes - search->at, &code);
        search->at += length ? length : 1;
    }
    return ATTNCL_OK;
}

attncl_status attncl__pattern_replace(struct pattern *p, const char *text, size_t bytes,
                                      const char *content, size_t content_bytes, struct strbuf *out)
{
    struct pattern_search search = PATTERN_SEARCH(p, text, bytes);
    size_t done = 0;

    for (bool found;; done = search.end) {
        TRY(attncl__pattern_next(&search, &found));
        if (!found)
            break;
        attncl__strbuf_add_bytes(out, text + done, search.begin - done);
        attncl__strbuf_add_bytes(out, content, content_bytes);
    }
    attncl__strbuf_add_bytes(out, text + done, bytes - done);
    return ATTNCL_OK;
}
