// SPDX-License-Identifier: MIT
//
// Translates the regular expressions of tokenizer.json, Oniguruma's Ruby syntax, to PCRE2's syntax.  Rewrites or
// refuses what PCRE2 interprets differently.

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "tokenizer/tokenizer.h"

struct reader {
    const char *regex, *at;
    struct strbuf *out;
    bool in_class;
};

static attncl_status refuse(const struct reader *reader, const char *what, size_t bytes)
{
    return FAIL(ATTNCL_ERR_UNSUPPORTED, "the regular expression %.200s: %.*s is not supported",
                reader->regex, (int)bytes, what);
}

static void copy(struct reader *reader, size_t bytes)
{
    attncl__strbuf_add_bytes(reader->out, reader->at, bytes);
    reader->at += bytes;
}

static bool has_script(const char *name, size_t bytes)
{
    char text[64];
    PCRE2_SIZE offset;
    int error;

    if (bytes > 40)
        return false;
    snprintf(text, sizeof text, "\\p{sc:%.*s}", (int)bytes, name);
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)text, strlen(text), PCRE2_UTF, &error, &offset, NULL);
    const bool found = code != NULL;
    pcre2_code_free(code);
    return found;
}

// In Oniguruma \p{Han} is a character's script; PCRE2 would also match script extensions.
static attncl_status translate_property(struct reader *reader)
{
    const char *end = reader->at[2] == '{' ? strchr(reader->at, '}') : NULL;

    if (!end)
        return refuse(reader, reader->at, 2);
    const char *name = reader->at + 3 + (reader->at[3] == '^');
    const size_t bytes = (size_t)(end - name);
    const char *kind = bytes > 2 && has_script(name, bytes) ? "sc:" : "";
    attncl__strbuf_add(reader->out, "\\%c{%s%s%.*s}", reader->at[1],
                       name > reader->at + 3 ? "^" : "", kind, (int)bytes, name);
    reader->at = end + 1;
    return ATTNCL_OK;
}

// \uHHHH, and \xHH of ASCII.
static attncl_status translate_code(struct reader *reader)
{
    const size_t digits = reader->at[1] == 'u' ? 4 : 2;

    if (reader->at[1] == 'x' && reader->at[2] == '{') {
        copy(reader, 3);
        return ATTNCL_OK;
    }
    if (strspn(reader->at + 2, "0123456789abcdefABCDEF") < digits ||
        (digits == 2 && reader->at[2] > '7'))
        return refuse(reader, reader->at, 2);
    attncl__strbuf_add(reader->out, "\\x{%.*s}", (int)digits, reader->at + 2);
    reader->at += 2 + digits;
    return ATTNCL_OK;
}

// Outside classes Oniguruma's words have Latin-1's superscripts and fractions too.
#define WORD          "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define LATIN_NUMBERS "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"

static attncl_status translate_escape(struct reader *reader)
{
    static const struct {
        char letter;
        const char *outside, *inside; // NULL: refused
    } rows[] = {
        {'s', "\\p{White_Space}", "\\p{White_Space}"},
        {'S', "\\P{White_Space}", "\\P{White_Space}"},
        {'d', "\\p{Nd}", "\\p{Nd}"},
        {'D', "\\P{Nd}", "\\P{Nd}"},
        {'w', "[" WORD LATIN_NUMBERS "]", WORD},
        {'W', "[^" WORD LATIN_NUMBERS "]", NULL},
        {'v', "\\x{b}", "\\x{b}"},
        {'n', "\\n", "\\n"},
        {'r', "\\r", "\\r"},
        {'t', "\\t", "\\t"},
        {'f', "\\f", "\\f"},
        {'a', "\\a", "\\a"},
        {'e', "\\e", "\\e"},
        {'A', "\\A", NULL},
        {'z', "\\z", NULL},
    };
    const char letter = reader->at[1];

    if (letter == 'p' || letter == 'P')
        return translate_property(reader);
    if (letter == 'u' || letter == 'x')
        return translate_code(reader);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        const char *text = reader->in_class ? rows[i].inside : rows[i].outside;
        if (rows[i].letter == letter && text) {
            attncl__strbuf_add(reader->out, "%s", text);
            reader->at += 2;
            return ATTNCL_OK;
        }
    }
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                           (letter >= '0' && letter <= '9') || !letter;
    if (is_letter)
        return refuse(reader, reader->at, letter ? 2 : 1);
    copy(reader, 2);
    return ATTNCL_OK;
}

// In PCRE2 classes do not nest, and && is no operator.
static attncl_status translate_in_class(struct reader *reader)
{
    if (*reader->at == '[' || (reader->at[0] == '&' && reader->at[1] == '&'))
        return refuse(reader, reader->at, *reader->at == '[' ? 1 : 2);
    reader->in_class = *reader->at != ']';
    copy(reader, 1);
    return ATTNCL_OK;
}

static attncl_status translate_group(struct reader *reader)
{
    // (?i) only at the beginning: elsewhere, Ruby's would group the alternatives after it.
    static const char *const known[] = {"(?:", "(?=",  "(?!",   "(?<=", "(?<!",
                                        "(?>", "(?i:", "(?-i:", "(?i)"};
    const size_t n = sizeof known / sizeof *known - (reader->at > reader->regex);

    if (reader->at[1] != '?' && reader->at[1] != '*') {
        copy(reader, 1);
        return ATTNCL_OK;
    }
    for (size_t i = 0; i < n; ++i)
        if (strncmp(reader->at, known[i], strlen(known[i])) == 0) {
            copy(reader, strlen(known[i]));
            return ATTNCL_OK;
        }
    return refuse(reader, reader->at, 3);
}

// In Oniguruma {,n} means {0,n}, and {n}+ and {n}? are not possessive or lazy.
static attncl_status translate_repeat(struct reader *reader)
{
    const size_t bytes = 1 + strspn(reader->at + 1, "0123456789,");

    if (reader->at[bytes] == '}' && (reader->at[bytes + 1] == '+' || reader->at[bytes + 1] == '?'))
        return refuse(reader, reader->at, bytes + 2);
    copy(reader, 1);
    if (*reader->at == ',')
        attncl__strbuf_add(reader->out, "0");
    return ATTNCL_OK;
}

attncl_status attncl__regex_translate(const char *regex, struct strbuf *out)
{
    struct reader reader = {regex, regex, out, false};

    while (*reader.at) {
        if (*reader.at == '\\') {
            TRY(translate_escape(&reader));
        } else if (reader.in_class) {
            TRY(translate_in_class(&reader));
        } else if (*reader.at == '[') {
            reader.in_class = true;
            copy(&reader, reader.at[1] == '^' ? 2 : 1);
        } else if (*reader.at == '(') {
            TRY(translate_group(&reader));
        } else if (*reader.at == '{') {
            TRY(translate_repeat(&reader));
        } else {
            copy(&reader, 1);
        }
    }
    REQUIRE(!out->failed, ATTNCL_ERR_NO_MEMORY, "a regular expression");
    REQUIRE(out->used > 0, ATTNCL_ERR_UNSUPPORTED, "an empty regular expression");
    return ATTNCL_OK;
}
