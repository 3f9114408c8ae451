// SPDX-License-Identifier: MIT
//
// Vocabularies of characters: a table of all of Unicode's 1.1 million codes, 4.4 MB, so that a character costs one
// look whatever the script.

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/try.h"
#include "train/characters.h"

attncl_status attncl__characters_create(struct characters *c)
{
    c->index = attncl__alloc_array(UTF8_CODES, sizeof *c->index);
    REQUIRE(c->index, ATTNCL_ERR_NO_MEMORY, "a vocabulary of characters");
    memset(c->index, 0xff, UTF8_CODES * sizeof *c->index);
    return ATTNCL_OK;
}

void attncl__characters_free(struct characters *c)
{
    attncl__free(c->index);
    *c = (struct characters){0};
}

attncl_status attncl__characters_of_text(const char *text, struct characters *c)
{
    TRY(attncl__characters_create(c));
    for (size_t at = 0, bytes = strlen(text); at < bytes;) {
        uint32_t code;
        const size_t length = attncl__utf8_decode(text + at, bytes - at, &code);
        REQUIRE(length > 0, ATTNCL_ERR_FORMAT, "attncl.vocab is not UTF-8 at byte %zu", at);
        REQUIRE(c->index[code] < 0, ATTNCL_ERR_FORMAT,
                "attncl.vocab holds the character U+%04" PRIX32 " twice", code);
        c->index[code] = c->n++;
        at += length;
    }
    return ATTNCL_OK;
}

attncl_status attncl__characters_number(struct characters *c, char **text_ret)
{
    struct strbuf text = STRBUF_EMPTY;

    for (uint32_t code = 0; code < UTF8_CODES; ++code) {
        if (c->index[code] < 0)
            continue;
        char bytes[UTF8_MAX_BYTES];
        c->index[code] = c->n++;
        attncl__strbuf_add_bytes(&text, bytes, attncl__utf8_encode(code, bytes));
    }
    if (text.failed) {
        attncl__strbuf_free(&text);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "a vocabulary of %" PRId32 " characters", c->n);
    }
    *text_ret = text.data;
    return ATTNCL_OK;
}
