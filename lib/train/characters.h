// SPDX-License-Identifier: MIT
// A vocabulary of characters: their indices by code.
#ifndef ATTNCL_TRAIN_CHARACTERS_H
#define ATTNCL_TRAIN_CHARACTERS_H

#include <stdint.h>

#include "attncl/status.h"
#include "base/utf8.h"

struct characters { // starts zeroed
    int32_t n;
    int32_t *index; // [UTF8_CODES]; -1: not in the vocabulary
};

// The characters of UTF-8 text in their order; one that occurs twice is ERR_FORMAT.
attncl_status attncl__characters_of_text(const char *text, struct characters *c);
// Those whose index is not -1 already, numbered by code; with their text, the caller's to free.
attncl_status attncl__characters_number(struct characters *c, char **text_ret);
// None yet: every index -1.
attncl_status attncl__characters_create(struct characters *c);
void attncl__characters_free(struct characters *c);

#endif
