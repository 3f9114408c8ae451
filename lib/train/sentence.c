// SPDX-License-Identifier: MIT
//
// Sentences as words: as d2l prepares its pairs, or divided at spaces alone.

#define _XOPEN_SOURCE 700 // newlocale, towlower_l
#include <locale.h>
#include <string.h>
#include <wctype.h>

#include "base/try.h"
#include "base/utf8.h"
#include "train/words.h"

enum { NO_BREAK_SPACE = 0xa0, NARROW_NO_BREAK_SPACE = 0x202f };

static attncl_status add_words(const char *sentence, size_t bytes, enum sentence_form form,
                               locale_t locale, struct strbuf *ret)
{
    bool at_begin = true; // of a word

    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t code;
        length = attncl__utf8_decode(sentence + at, bytes - at, &code);
        REQUIRE(length > 0, ATTNCL_ERR_FORMAT, "is not UTF-8 at byte %zu", at);
        const bool space = code == ' ' || code == NO_BREAK_SPACE || code == NARROW_NO_BREAK_SPACE;
        const bool mark =
            form == SENTENCE_TEXT && code < 0x80 && code != 0 && strchr(",.!?", (int)code);
        if (!space && (at_begin || mark))
            attncl__strbuf_add_bytes(ret, " ", 1);
        at_begin = space;
        if (space)
            continue;
        if (form != SENTENCE_NAMES)
            code = (uint32_t)towlower_l((wint_t)code, locale);
        char encoded[UTF8_MAX_BYTES];
        attncl__strbuf_add_bytes(ret, encoded, attncl__utf8_encode(code, encoded));
    }
    return ATTNCL_OK;
}

attncl_status attncl__sentence_words(const char *sentence, size_t bytes, enum sentence_form form,
                                     struct strbuf *ret)
{
    const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

    REQUIRE(locale, ATTNCL_ERR_UNSUPPORTED,
            "the C library has no locale C.UTF-8, which says what lower case is");
    const attncl_status status = add_words(sentence, bytes, form, locale, ret);
    freelocale(locale);
    return status;
}
