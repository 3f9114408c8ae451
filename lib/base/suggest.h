// SPDX-License-Identifier: MIT
// Messages about a word that is not known: the nearest known word, and all of them.
#ifndef ATTNCL_BASE_SUGGEST_H
#define ATTNCL_BASE_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

// The known words, offered one by one.  Starts as {.word = what was given}.
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

// Whether the list "a, b c" has this word.
bool attncl__has_word(const char *list, const char *word);

// Insertions, deletions, replacements and exchanges of neighbours that turn one word into the
// other, letters in either case being equal.  A word of more than 64 bytes is far from everything.
size_t attncl__edit_distance(const char *a, const char *b);

#endif
