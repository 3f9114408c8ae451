// SPDX-License-Identifier: MIT
//
// Reads files, and encodes UTF-8 text as tokens, by a tokenizer or as indices of a vocabulary's characters.

#include <errno.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "tool.h"

struct character {
    wchar_t code;
    int32_t index;
};

static size_t character_bytes(const char *text)
{
    size_t n = 1;

    while ((text[n] & 0xc0) == 0x80)
        n++;
    return n;
}

// Decodes a text into code points, code: [bytes].  Returns the number of bytes before the first that is not UTF-8.
static size_t decode_utf8(const char *text, size_t bytes, wchar_t *code, size_t *n_ret)
{
    const iconv_t converter = iconv_open("WCHAR_T", "UTF-8");
    char *in = (char *)text, *out = (char *)code;
    size_t in_left = bytes, out_left = bytes * sizeof *code;

    if (converter != (iconv_t)-1) {
        iconv(converter, &in, &in_left, &out, &out_left);
        iconv_close(converter);
    }
    *n_ret = bytes - out_left / sizeof *code;
    return bytes - in_left;
}

char *read_range(const char *path, const int64_t range[2], size_t *bytes_ret)
{
    FILE *file;
    char *data = NULL;
    long long size = -1;

    errno = 0;
    file = fopen(path, "rb");
    const bool reads =
        file && (fgetc(file) != EOF || !ferror(file)); // a directory opens, but does not read
    if (reads && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size >= 0 && (range[0] > size || range[1] > size)) {
        const bool begins = range[0] > size;
        tool_error("%s: the range %s at byte %lld, the file ends at %lld", path,
                   begins ? "begins" : "ends", (long long)range[!begins], size);
    } else {
        *bytes_ret = size < 0 ? 0 : (size_t)((range[1] < 0 ? size : range[1]) - range[0]);
        data = size < 0 ? NULL : calloc(*bytes_ret + 1, 1);
        if (!data || fseek(file, (long)range[0], SEEK_SET) != 0 ||
            fread(data, 1, *bytes_ret, file) != *bytes_ret) {
            tool_error("%s: %s", path, errno ? strerror(errno) : "cannot be read");
            free(data);
            data = NULL;
        }
    }
    if (file)
        fclose(file);
    return data;
}

static int compare_codes(const void *a, const void *b)
{
    const struct character *x = a, *y = b;

    return x->code < y->code ? -1 : x->code > y->code;
}

// Decodes the vocabulary's characters and sorts them by code point.  Refuses duplicates, whose index would be
// ambiguous.
static int index_codes(struct vocabulary *v)
{
    const size_t bytes = strlen(v->text);
    wchar_t *code = calloc(bytes + 1, sizeof *code);
    int status = TOOL_OK;
    size_t n = 0;

    v->start = calloc(bytes + 1, sizeof *v->start);
    v->character = calloc(bytes + 1, sizeof *v->character);
    if (!code || !v->start || !v->character) {
        free(code);
        return tool_error("out of memory");
    }
    decode_utf8(v->text, bytes, code, &n); // the library checked that it is UTF-8
    for (; (size_t)v->n < n; v->n++) {
        v->character[v->n] = (struct character){code[v->n], v->n};
        v->start[v->n + 1] = v->start[v->n] + character_bytes(v->text + v->start[v->n]);
    }
    free(code);
    qsort(v->character, n, sizeof *v->character, compare_codes);
    for (size_t i = 1; i < n && status == TOOL_OK; i++)
        if (v->character[i].code == v->character[i - 1].code)
            status = tool_error("attncl.vocab holds the character U+%04X twice",
                                (unsigned)v->character[i].code);
    return status;
}

static const char between_numbers[] = " ,\t\r\n";

// Bytes of a wrong token number to show in a message.
static int token_bytes(const char *at)
{
    enum { SHOWN = 20 };
    const size_t n = strcspn(at, between_numbers);

    return n < SHOWN ? (int)n : SHOWN;
}

static int report_unknown_character(const char *name, const char *at, wchar_t code, int64_t offset)
{
    if (code < ' ')
        return tool_error("%s: character U+%04X at byte %lld is not in the model's vocabulary",
                          name, (unsigned)code, (long long)offset);
    return tool_error("%s: character '%.*s' (U+%04X) at byte %lld is not in the model's vocabulary",
                      name, (int)character_bytes(at), at, (unsigned)code, (long long)offset);
}

static int check_is_lm(const attncl_model *model)
{
    const char *arch = attncl_model_arch(model);

    return strcmp(arch, "lm") == 0 ? TOOL_OK
                                   : tool_error("the model's architecture is %s, not lm", arch);
}

static int open_tokenizer(struct vocabulary *v, const char *text)
{
    TOOL_TRY(tool_status(attncl_tokenizer_create(text, strlen(text), &v->tokenizer)));
    return tool_status(attncl_tokenizer_stream_create(v->tokenizer, 1, &v->stream));
}

int vocabulary_open(struct session *s)
{
    const int64_t n_vocab = attncl_model_config_int(s->model, "n_vocab", -1);
    const char *tokenizer = attncl_model_metadata(s->model, "attncl.tokenizer");
    struct vocabulary *v = &s->vocabulary;

    v->text = attncl_model_metadata(s->model, "attncl.vocab");
    TOOL_TRY(check_is_lm(s->model));
    if (tokenizer)
        return open_tokenizer(v, tokenizer);
    if (!v->text)
        return tool_error("the model has no attncl.tokenizer and no attncl.vocab in its metadata; "
                          "--tokens reads token numbers instead");
    TOOL_TRY(index_codes(v));
    if (v->n != n_vocab)
        return tool_error("attncl.vocab has %d characters, the model's n_vocab is %lld", (int)v->n,
                          (long long)n_vocab);
    return TOOL_OK;
}

static int add_token(struct session *s, const char *name, long long token)
{
    const int64_t n_vocab = attncl_model_config_int(s->model, "n_vocab", -1);

    if (token < 0 || token >= n_vocab)
        return tool_error("%s: %lld is not a token of the model, which has 0 to %lld", name, token,
                          (long long)n_vocab - 1);
    s->tokens[s->n_tokens++] = (int32_t)token;
    return TOOL_OK;
}

int tokens_take(struct session *s, const char *name)
{
    const attncl_array *a = attncl_safetensors_find(s->input, "tokens");

    TOOL_TRY(check_is_lm(s->model));
    if (!a || a->rank != 1 || (a->dtype != ATTNCL_I32 && a->dtype != ATTNCL_I64))
        return tool_error("%s: no array \"tokens\" [n] of type I32 or I64", name);
    s->tokens = calloc((size_t)a->dim[0] + 1, sizeof *s->tokens);
    if (!s->tokens)
        return tool_error("out of memory");
    for (int64_t i = 0; i < a->dim[0]; i++)
        TOOL_TRY(add_token(s, name,
                           a->dtype == ATTNCL_I32 ? ((const int32_t *)a->data)[i]
                                                  : ((const int64_t *)a->data)[i]));
    return TOOL_OK;
}

int tokens_read(struct session *s, const char *name, const char *text)
{
    const char *at = text + strspn(text, between_numbers);

    TOOL_TRY(check_is_lm(s->model));
    s->tokens = calloc(strlen(text) + 1, sizeof *s->tokens);
    if (!s->tokens)
        return tool_error("out of memory");
    while (*at) {
        char *end = NULL;
        const long long token = strtoll(at, &end, 10);
        if (end == at || (*end && !strchr(between_numbers, *end)))
            return tool_error("%s: '%.*s' is not a token number", name, token_bytes(at), at);
        TOOL_TRY(add_token(s, name, token));
        at = end + strspn(end, between_numbers);
    }
    return s->n_tokens > 0 ? TOOL_OK : tool_error("%s: holds no token number", name);
}

void tokens_print_end(const struct session *s, FILE *out)
{
    const char *text;
    size_t bytes;

    if (s->vocabulary.stream &&
        attncl_tokenizer_stream_end(s->vocabulary.stream, &text, &bytes) == ATTNCL_OK)
        fwrite(text, 1, bytes, out);
}

void tokens_print(const struct session *s, size_t from, bool as_numbers, FILE *out)
{
    const struct vocabulary *v = &s->vocabulary;
    const char *text;
    size_t bytes;

    if (v->stream && !as_numbers) {
        if (attncl_tokenizer_stream_add(v->stream, s->tokens + from, s->n_tokens - from, &text,
                                        &bytes) == ATTNCL_OK)
            fwrite(text, 1, bytes, out);
        return;
    }
    for (size_t i = from; i < s->n_tokens; i++) {
        const int32_t token = s->tokens[i];
        if (as_numbers)
            fprintf(out, i > 0 ? " %d" : "%d", (int)token);
        else
            fwrite(v->text + v->start[token], 1, v->start[token + 1] - v->start[token], out);
    }
}

void vocabulary_close(struct vocabulary *vocabulary)
{
    attncl_tokenizer_stream_destroy(vocabulary->stream);
    attncl_tokenizer_destroy(vocabulary->tokenizer);
    free(vocabulary->start);
    free(vocabulary->character);
}

const char *token_unit(const struct session *s, bool as_numbers)
{
    return as_numbers || s->vocabulary.tokenizer ? "tokens" : "characters";
}

// Encodes with the tokenizer, including the tokens it puts before a text.
static int tokenize(struct session *s, const char *name, const char *text, size_t bytes)
{
    const int32_t *tokens;
    size_t n;

    if (attncl_tokenizer_encode(s->vocabulary.tokenizer, text, bytes, 1, &tokens, &n) != ATTNCL_OK)
        return tool_error("%s: %s", name, attncl_last_error());
    s->tokens = calloc(n + 1, sizeof *s->tokens);
    if (!s->tokens)
        return tool_error("out of memory");
    for (size_t i = 0; i < n; i++)
        TOOL_TRY(add_token(s, name, tokens[i]));
    return n > 0 ? TOOL_OK : tool_error("%s: has no token", name);
}

static int report_not_utf8(const char *name, int64_t offset)
{
    return tool_error("%s: is not UTF-8 at byte %lld", name, (long long)offset);
}

int vocabulary_encode(struct session *s, const char *name, const char *text, size_t bytes,
                      int64_t offset)
{
    wchar_t *code = calloc(bytes + 1, sizeof *code);
    const char *at = text;
    int status = TOOL_OK;
    size_t n = 0, valid;

    if (!code)
        return tool_error("out of memory");
    valid = decode_utf8(text, bytes, code, &n);
    if (s->vocabulary.tokenizer) {
        free(code);
        return valid < bytes ? report_not_utf8(name, offset + (int64_t)valid)
                             : tokenize(s, name, text, bytes);
    }
    s->tokens = calloc(bytes + 1, sizeof *s->tokens);
    if (!s->tokens) {
        free(code);
        return tool_error("out of memory");
    }
    for (size_t i = 0; i < n && status == TOOL_OK; i++, at += character_bytes(at)) {
        const struct character key = {.code = code[i]};
        const struct character *found = bsearch(&key, s->vocabulary.character,
                                                (size_t)s->vocabulary.n, sizeof key, compare_codes);
        if (found)
            s->tokens[s->n_tokens++] = found->index;
        else
            status = report_unknown_character(name, at, code[i], offset + (at - text));
    }
    if (status == TOOL_OK && valid < bytes)
        status = report_not_utf8(name, offset + (int64_t)valid);
    free(code);
    return status;
}

bool name_ends_with(const char *name, const char *last)
{
    const size_t n = strlen(name), m = strlen(last);

    return n >= m && strcmp(name + n - m, last) == 0 && (n == m || name[n - m - 1] == '.');
}
