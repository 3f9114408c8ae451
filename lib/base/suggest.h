// SPDX-License-Identifier: MIT
// Messages about an unknown word: the nearest known word, and the list of all.
#ifndef ATTNCL_BASE_SUGGEST_H
#define ATTNCL_BASE_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

// Collects the known words one by one.  Starts as {.word = the unknown word}.
struct suggestion {
    const char *word;
    const char *nearest; // borrowed; NULL: none is near
    size_t distance;     // of the nearest
    size_t used;
    char list[1000]; // "a, b, c", or "a, b, ..." where there are too many
    char text[1100];
};

void attncl__suggestion_add(struct suggestion *s, const char *known);

// ", nearest: b; KIND: a, b, c", for the end of a message.  Valid as long as *s.
const char *attncl__suggestion_text(struct suggestion *s, const char *kind);

// True when the list ("a, b c") contains the word.
bool attncl__has_word(const char *list, const char *word);

// Damerau-Levenshtein distance, ignoring case.  SIZE_MAX when a word is longer than 64 bytes.
size_t attncl__edit_distance(const char *a, const char *b);

#endif
