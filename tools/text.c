// SPDX-License-Identifier: MIT
//
// Characters: UTF-8 to code points to a vocabulary's indices, and back.

#include <stdlib.h>
#include <string.h>

#include "tool.h"

// Reads one character of text[0 .. bytes); its length, or 0 when it is not UTF-8 (overlong forms,
// surrogates and code points past U+10FFFF are not).
static size_t utf8_decode(const unsigned char *text, size_t bytes, uint32_t *code_ret)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000}; // that needs 2, 3, 4 bytes
    uint32_t code;
    size_t n;

    if (bytes == 0)
        return 0;
    code = text[0];
    if (code < 0x80) {
        *code_ret = code;
        return 1;
    }
    n = code >= 0xf0 && code < 0xf8 ? 4 : code >= 0xe0 ? 3 : 2;
    if (code < 0xc0 || code >= 0xf8 || n > bytes)
        return 0;
    code &= 0x7fu >> n;
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    *code_ret = code;
    return n;
}

void utf8_encode(uint32_t code, char text[5])
{
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n - 1; i > 0; i--) {
        text[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    text[0] = (char)(lead[n] | code);
    text[n] = '\0';
}

void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

struct code_index {
    uint32_t code;
    int32_t index;
};

static int compare_codes(const void *a, const void *b)
{
    const struct code_index *x = a, *y = b;

    return x->code < y->code ? -1 : x->code > y->code;
}

// Decodes the characters and sorts them by code point; a character that stands twice has no one
// index.
static bool index_codes(const char *text, size_t bytes, struct vocabulary *v)
{
    struct code_index *sorted = calloc(bytes + 1, sizeof *sorted);
    bool ok = false;

    v->n = 0;
    v->code = calloc(bytes + 1, sizeof *v->code);
    v->by_code = calloc(bytes + 1, sizeof *v->by_code);
    if (!sorted || !v->code || !v->by_code) {
        tool_error("out of memory");
        goto done;
    }
    for (size_t at = 0, step; at < bytes; at += step) {
        step = utf8_decode((const unsigned char *)text + at, bytes - at, &v->code[v->n]);
        if (step == 0) {
            tool_error("attncl.vocab is not UTF-8 at byte %zu", at);
            goto done;
        }
        sorted[v->n] = (struct code_index){v->code[v->n], v->n};
        v->n++;
    }
    qsort(sorted, (size_t)v->n, sizeof *sorted, compare_codes);
    for (int32_t i = 0; i < v->n; i++) {
        if (i > 0 && sorted[i].code == sorted[i - 1].code) {
            tool_error("attncl.vocab holds the character U+%04X twice", sorted[i].code);
            goto done;
        }
        v->by_code[i] = sorted[i].index;
    }
    ok = true;

done:
    free(sorted);
    return ok;
}

bool vocabulary_open(const attncl_model *model, struct vocabulary *vocabulary)
{
    const char *text = attncl_model_metadata(model, "attncl.vocab");
    const int64_t n_vocab = attncl_model_config_int(model, "n_vocab", -1);

    memset(vocabulary, 0, sizeof *vocabulary);
    if (strcmp(attncl_model_arch(model), "lm") != 0) {
        tool_error("the model's architecture is %s, not lm", attncl_model_arch(model));
        return false;
    }
    if (!text) {
        tool_error("the model has no attncl.vocab in its metadata: its characters are not known");
        return false;
    }
    if (!index_codes(text, strlen(text), vocabulary)) {
        vocabulary_close(vocabulary);
        return false;
    }
    if (vocabulary->n != n_vocab) {
        tool_error("attncl.vocab has %d characters, the model's n_vocab is %lld",
                   (int)vocabulary->n, (long long)n_vocab);
        vocabulary_close(vocabulary);
        return false;
    }
    return true;
}

void vocabulary_close(struct vocabulary *vocabulary)
{
    free(vocabulary->code);
    free(vocabulary->by_code);
    memset(vocabulary, 0, sizeof *vocabulary);
}

// The character's index, -1 when there is none.
static int32_t find(const struct vocabulary *v, uint32_t code)
{
    int32_t low = 0, high = v->n;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (v->code[v->by_code[middle]] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->n && v->code[v->by_code[low]] == code ? v->by_code[low] : -1;
}

bool vocabulary_encode(const struct vocabulary *vocabulary, const char *text, size_t bytes,
                       int64_t offset, int32_t **tokens_ret, size_t *n_ret)
{
    int32_t *tokens = calloc(bytes + 1, sizeof *tokens);
    size_t n = 0;

    if (!tokens) {
        tool_error("out of memory");
        return false;
    }
    for (size_t at = 0, step; at < bytes; at += step) {
        uint32_t code = 0;
        step = utf8_decode((const unsigned char *)text + at, bytes - at, &code);
        if (step == 0) {
            tool_error("the text is not UTF-8 at byte %lld", (long long)offset + (long long)at);
            goto failed;
        }
        tokens[n] = find(vocabulary, code);
        if (tokens[n] < 0) {
            char name[5] = "";
            if (code >= 0x20 && code != 0x7f)
                utf8_encode(code, name);
            tool_error("character '%s' (U+%04X) at byte %lld is not in the model's vocabulary",
                       name, code, (long long)offset + (long long)at);
            goto failed;
        }
        n++;
    }
    *tokens_ret = tokens;
    *n_ret = n;
    return true;

failed:
    free(tokens);
    return false;
}
