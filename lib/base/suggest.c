// SPDX-License-Identifier: MIT
//
// Lists of words, and the known word nearest to an unknown one.

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"

enum { MAX_LENGTH = 64 };

static bool equal_ignoring_case(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t min3(size_t a, size_t b, size_t c)
{
    const size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

// Restricted Damerau-Levenshtein distance; keeps rows i - 2, i - 1 and i of its table.
size_t attncl__edit_distance(const char *a, const char *b)
{
    size_t rows[3][MAX_LENGTH + 1];
    const size_t n_a = strlen(a), n_b = strlen(b);
    if (n_a > MAX_LENGTH || n_b > MAX_LENGTH)
        return SIZE_MAX;
    for (size_t j = 0; j <= n_b; ++j)
        rows[0][j] = j;
    for (size_t i = 1; i <= n_a; ++i) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n_b; ++j) {
            const size_t replaced = above[j - 1] + !equal_ignoring_case(a[i - 1], b[j - 1]);
            row[j] = min3(replaced, above[j] + 1, row[j - 1] + 1);
            if (i > 1 && j > 1 && equal_ignoring_case(a[i - 1], b[j - 2]) &&
                equal_ignoring_case(a[i - 2], b[j - 1]) && above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return rows[n_a % 3][n_b];
}

bool attncl__has_word(const char *list, const char *word)
{
    static const char separators[] = ", ";

    for (size_t n; *(list += strspn(list, separators)); list += n) {
        n = strcspn(list, separators);
        if (n == strlen(word) && memcmp(list, word, n) == 0)
            return true;
    }
    return false;
}

// True for "epsilon" and "eps", "num_heads" and "heads".
static bool is_part(const char *whole, const char *word)
{
    const size_t n = strlen(word), n_whole = strlen(whole);
    return n >= 3 && n < n_whole &&
           (strncasecmp(whole, word, n) == 0 ||
            (whole[n_whole - n - 1] == '_' && strcasecmp(whole + n_whole - n, word) == 0));
}

// True for "lr" and "learning_rate".
static bool is_initials(const char *word, const char *known)
{
    for (; *word && equal_ignoring_case(*word, *known); ++word) {
        known += strcspn(known, "_");
        known += strspn(known, "_");
    }
    return *word == '\0' && *known == '\0';
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && equal_ignoring_case(a[n], b[n]))
        ++n;
    return n;
}

static void add_to_list(struct suggestion *s, const char *known)
{
    static const char cut[] = ", ...";
    const size_t capacity = sizeof s->list - sizeof cut - s->used;
    const int n = snprintf(s->list + s->used, capacity, "%s%s", s->used ? ", " : "", known);
    if (n >= 0 && (size_t)n < capacity)
        s->used += (size_t)n;
    else
        memcpy(s->list + s->used, cut, sizeof cut);
}

void attncl__suggestion_add(struct suggestion *s, const char *known)
{
    // Words that differ in more than a third of their letters are unrelated.
    const size_t length = strlen(s->word), allowed = length < 6 ? 1 : length / 3;
    size_t distance = attncl__edit_distance(s->word, known);
    add_to_list(s, known);
    if (distance > allowed && (is_part(s->word, known) || is_part(known, s->word) ||
                               (strlen(s->word) > 1 && is_initials(s->word, known))))
        distance = allowed;
    if (distance > allowed)
        return;
    if (!s->nearest || distance < s->distance ||
        (distance == s->distance &&
         common_prefix(s->word, known) > common_prefix(s->word, s->nearest))) {
        s->nearest = known;
        s->distance = distance;
    }
}

const char *attncl__suggestion_text(struct suggestion *s, const char *kind)
{
    snprintf(s->text, sizeof s->text, "%s%.64s; %s: %s", s->nearest ? ", nearest: " : "",
             s->nearest ? s->nearest : "", kind, s->used ? s->list : "none");
    return s->text;
}
