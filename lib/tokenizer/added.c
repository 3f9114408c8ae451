// SPDX-License-Identifier: MIT
//
// Finds added tokens in a text, before any other step: the leftmost, and the longest of those that begin there.

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

attncl_status attncl__added_add(attncl_tokenizer *t, struct added_set *set,
                                const struct added_token *token)
{
    REQUIRE(GROW_LIST(set->list, set->n, set->capacity), ATTNCL_ERR_NO_MEMORY, "%zu added tokens",
            set->n);
    set->list[set->n++] = *token;
    if (!token->single_word || t->word_begin)
        return ATTNCL_OK;
    TRY(attncl__pattern_regex("\\A[\\w\\u200c\\u200d]", &t->word_begin));
    return attncl__pattern_regex("[\\w\\u200c\\u200d]\\z", &t->word_end);
}

static int compare_tokens(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    const size_t n = x->span.n < y->span.n ? x->span.n : y->span.n;
    const int order = memcmp(x->text, y->text, n);

    if (order != 0)
        return order;
    if (x->span.n != y->span.n)
        return x->span.n < y->span.n ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

void attncl__added_prepare(const attncl_tokenizer *t, struct added_set *set)
{
    for (size_t i = 0; i < set->n; ++i) {
        struct added_token *token = &set->list[i];
        token->text = attncl__span_text(t, token->span);
        token->order = i;
        set->first[*(const unsigned char *)token->text] = true;
    }
    if (set->n > 0)
        qsort(set->list, set->n, sizeof *set->list, compare_tokens);
}

// Returns the first of the sorted tokens [low, high), all longer than `depth`, whose byte at `depth` is at least
// `byte`.
static size_t find_first_at_least(const struct added_set *set, size_t low, size_t high,
                                  size_t depth, int byte)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((unsigned char)set->list[middle].text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Returns the longest token that the text begins with; of equal ones the first that was added.
static const struct added_token *find_longest(const struct added_set *set, const char *text,
                                              size_t bytes)
{
    const struct added_token *found = NULL;
    size_t low = 0, high = set->n;

    for (size_t depth = 0; low < high; ++depth) {
        // Tokens [low, high) begin with the text's first `depth` bytes; those of exactly that length come first.
        for (bool is_first = true; low < high && set->list[low].span.n == depth; ++low) {
            if (is_first)
                found = &set->list[low];
            is_first = false;
        }
        if (depth == bytes)
            break;
        const int byte = (unsigned char)text[depth];
        low = find_first_at_least(set, low, high, depth, byte);
        high = find_first_at_least(set, low, high, depth, byte + 1);
    }
    return found;
}

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static size_t skip_spaces(const char *text, size_t at, size_t bytes)
{
    uint32_t code;

    for (size_t length; (length = attncl__utf8_decode(text + at, bytes - at, &code)) > 0;) {
        if (!is_space(code))
            break;
        at += length;
    }
    return at;
}

static size_t skip_spaces_back(const char *text, size_t at)
{
    uint32_t code;

    while (at > 0) {
        size_t begin = at - 1;
        while (begin > 0 && (text[begin] & 0xc0) == 0x80)
            --begin;
        if (attncl__utf8_decode(text + begin, at - begin, &code) == 0 || !is_space(code))
            break;
        at = begin;
    }
    return at;
}

// *ret: whether no word character is directly before or after the place.
static attncl_status is_single_word(const attncl_tokenizer *t, const char *text, size_t bytes,
                                    const struct piece *place, bool *ret)
{
    // The character before the place, from its first byte on, is in the last UTF8_MAX_BYTES.
    size_t from = place->begin > UTF8_MAX_BYTES ? place->begin - UTF8_MAX_BYTES : 0;
    bool before, after;

    while (from < place->begin && (text[from] & 0xc0) == 0x80)
        ++from;
    struct pattern_search s = PATTERN_SEARCH(t->word_end, text + from, place->begin - from);
    TRY(attncl__pattern_next(&s, &before));
    s = PATTERN_SEARCH(t->word_begin, text + place->end, bytes - place->end);
    TRY(attncl__pattern_next(&s, &after));
    *ret = !before && !after;
    return ATTNCL_OK;
}

attncl_status attncl__added_find(const attncl_tokenizer *t, const struct added_set *set,
                                 const char *text, size_t bytes, struct added_match *match)
{
    size_t at = match->at;

    match->id = -1;
    for (; set->n > 0 && at < bytes; ++at) {
        if (!set->first[(unsigned char)text[at]])
            continue;
        const struct added_token *token = find_longest(set, text + at, bytes - at);
        if (!token)
            continue;
        const struct piece place = {at, at + token->span.n};
        bool is_valid = true;
        if (token->single_word)
            TRY(is_single_word(t, text, bytes, &place, &is_valid));
        match->at = place.end;
        if (!is_valid) {
            at = place.end - 1;
            continue;
        }
        const size_t left = token->lstrip ? skip_spaces_back(text, at) : at;
        match->begin = left > match->end ? left : token->lstrip ? match->end : at;
        match->end = token->rstrip ? skip_spaces(text, place.end, bytes) : place.end;
        match->id = token->id;
        return ATTNCL_OK;
    }
    return ATTNCL_OK;
}
