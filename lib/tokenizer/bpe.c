// SPDX-License-Identifier: MIT
//
// The vocabulary, and the conversion of a text to symbols: characters, bytes of byte-level BPE, or bytes by byte
// fallback.  A cache keeps the tokens of words.

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

static const char space_symbol[] = "\xe2\x96\x81"; // U+2581
enum { SPACE_SYMBOL_BYTES = 3 };

static const uint64_t multiplier = UINT64_C(0x9e3779b97f4a7c15); // golden ratio (Fibonacci hashing)

static uint64_t compute_hash(const char *text, size_t bytes)
{
    uint64_t hash = bytes * multiplier, part;

    for (; bytes >= sizeof part; text += sizeof part, bytes -= sizeof part) {
        memcpy(&part, text, sizeof part);
        hash = (hash ^ part) * multiplier;
        hash ^= hash >> 32;
    }
    if (bytes > 0) {
        part = 0;
        memcpy(&part, text, bytes);
        hash = (hash ^ part) * multiplier;
    }
    return hash ^ hash >> 29;
}

attncl_status attncl__vocab_reserve(struct bpe *bpe, size_t n)
{
    const size_t capacity = attncl__choose_table_capacity(n);

    bpe->vocab = attncl__alloc_array(capacity, sizeof *bpe->vocab);
    REQUIRE(bpe->vocab, ATTNCL_ERR_NO_MEMORY, "a vocabulary of %zu tokens", n);
    for (size_t i = 0; i < capacity; ++i)
        bpe->vocab[i].id = -1;
    bpe->vocab_capacity = capacity;
    return ATTNCL_OK;
}

static struct vocab_entry *find_entry(const attncl_tokenizer *t, const char *text, size_t bytes,
                                      uint64_t hash)
{
    const struct bpe *bpe = &t->bpe;

    for (size_t i = (size_t)hash;; ++i) {
        struct vocab_entry *entry = &bpe->vocab[i & (bpe->vocab_capacity - 1)];
        if (entry->id < 0 ||
            (entry->key.n == bytes && memcmp(attncl__span_text(t, entry->key), text, bytes) == 0))
            return entry;
    }
}

bool attncl__vocab_add(attncl_tokenizer *t, struct span key, int32_t id)
{
    const char *text = attncl__span_text(t, key);
    struct vocab_entry *entry = find_entry(t, text, key.n, compute_hash(text, key.n));

    if (entry->id >= 0)
        return false;
    *entry = (struct vocab_entry){key, id};
    return true;
}

int32_t attncl__vocab_find(const attncl_tokenizer *t, const char *text, size_t bytes)
{
    return find_entry(t, text, bytes, compute_hash(text, bytes))->id;
}

// Returns the index into can_cut of the character that ends at `end`, before U+2581.
static size_t cut_index(const char *end)
{
    const unsigned char last = (unsigned char)end[-1];

    if (last < CUT_OTHER)
        return last;
    return last == 0x81 && memcmp(end - SPACE_SYMBOL_BYTES, space_symbol, SPACE_SYMBOL_BYTES) == 0
               ? CUT_SPACE
               : CUT_OTHER;
}

// True for tokens whose text in the file is not the text they represent.
static bool is_nameless(const struct bpe *bpe, int32_t id)
{
    bool found = id == bpe->unk;

    for (int i = 0; i < 256 && !found; ++i)
        found = id == bpe->byte_id[i];
    return found;
}

// Finds where a text can be cut into words, which the cache can keep: before each U+2581 that no merge rule crosses.
// Without an unknown token a dropped character may hide the one that a merge joins to U+2581.
static void find_cuts(attncl_tokenizer *t)
{
    struct bpe *bpe = &t->bpe;
    bool is_possible = !bpe->is_byte_level && !bpe->ignore_merges && bpe->unk >= 0 &&
                       attncl__vocab_find(t, space_symbol, SPACE_SYMBOL_BYTES) >= 0;

    memset(bpe->can_cut, true, sizeof bpe->can_cut);
    for (size_t i = 0; i < bpe->rules_capacity && is_possible; ++i) {
        if (bpe->rules[i].pair == UINT64_MAX)
            continue;
        const struct span span = t->token[bpe->rules[i].id].text;
        const char *text = attncl__span_text(t, span);
        for (size_t at = 1; at + SPACE_SYMBOL_BYTES <= span.n; ++at)
            if (memcmp(text + at, space_symbol, SPACE_SYMBOL_BYTES) == 0)
                bpe->can_cut[cut_index(text + at)] = false;
        is_possible = !is_nameless(bpe, (int32_t)(bpe->rules[i].pair >> 32)) &&
                      !is_nameless(bpe, (int32_t)(bpe->rules[i].pair & UINT32_MAX));
    }
    if (!is_possible)
        memset(bpe->can_cut, false, sizeof bpe->can_cut);
    bpe->has_cuts = is_possible;
}

attncl_status attncl__bpe_prepare(attncl_tokenizer *t)
{
    struct bpe *bpe = &t->bpe;
    char name[8];

    bpe->cache = attncl__alloc_array(CACHE_SLOTS, sizeof *bpe->cache);
    REQUIRE(bpe->cache, ATTNCL_ERR_NO_MEMORY, "a tokenizer's cache");
    for (int i = 0; i < 256; ++i) {
        const char byte = (char)i;
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        bpe->byte_id[i] = bpe->is_byte_level ? attncl__vocab_find(t, &byte, 1)
                                             : attncl__vocab_find(t, name, strlen(name));
        if (i < CUT_OTHER)
            bpe->ascii_id[i] = attncl__vocab_find(t, &byte, 1);
    }
    find_cuts(t);
    return ATTNCL_OK;
}

static attncl_status reserve_symbols(struct bpe *bpe, size_t n)
{
    REQUIRE(n < INT32_MAX, ATTNCL_ERR_UNSUPPORTED,
            "a word of %zu bytes, at most 2^31 - 1 are possible", n);
    if (n <= bpe->symbol_capacity)
        return ATTNCL_OK;
    void *grown = attncl__grow_array(bpe->symbol, 2 * n, sizeof *bpe->symbol);
    REQUIRE(grown, ATTNCL_ERR_NO_MEMORY, "a word of %zu bytes", n);
    bpe->symbol = grown;
    bpe->symbol_capacity = 2 * n;
    return ATTNCL_OK;
}

// Returns the token of a character, or of a byte; -1 if there is none.
static int32_t find_symbol(const attncl_tokenizer *t, const char *text, size_t length)
{
    const unsigned char byte = (unsigned char)*text;

    if (t->bpe.is_byte_level)
        return t->bpe.byte_id[byte];
    return length == 1 ? t->bpe.ascii_id[byte] : attncl__vocab_find(t, text, length);
}

static bool has_byte_tokens(const struct bpe *bpe, const char *text, size_t length)
{
    bool has = bpe->byte_fallback;

    for (size_t i = 0; i < length && has; ++i)
        has = bpe->byte_id[(unsigned char)text[i]] >= 0;
    return has;
}

// Converts a text to symbols and returns their number.  As in `tokenizers`, the unknown token is emitted only before
// the next known character, and byte tokens do not count as known.  Without an unknown token, unknown characters are
// dropped.
static size_t add_symbols(const attncl_tokenizer *t, const char *text, size_t bytes)
{
    const struct bpe *bpe = &t->bpe;
    struct symbol *symbol = bpe->symbol;
    size_t n = 0, length;
    bool has_unknown = false;
    uint32_t code;

    for (size_t at = 0; at < bytes; at += length) {
        length = bpe->is_byte_level ? 1 : attncl__utf8_decode(text + at, bytes - at, &code);
        const int32_t id = find_symbol(t, text + at, length);
        if (id >= 0) {
            if (has_unknown)
                symbol[n++].id = bpe->unk;
            has_unknown = false;
            symbol[n++].id = id;
        } else if (has_byte_tokens(bpe, text + at, length)) {
            for (size_t i = 0; i < length; ++i)
                symbol[n++].id = bpe->byte_id[(unsigned char)text[at + i]];
        } else if (bpe->unk >= 0) {
            if (has_unknown && !bpe->fuse_unk)
                symbol[n++].id = bpe->unk;
            has_unknown = true;
        }
    }
    if (has_unknown)
        symbol[n++].id = bpe->unk;
    return n;
}

static attncl_status merge_word(attncl_tokenizer *t, const char *text, size_t bytes)
{
    TRY(reserve_symbols(&t->bpe, bytes));
    return attncl__bpe_merge(&t->bpe, add_symbols(t, text, bytes), &t->ids);
}

static attncl_status encode_word(attncl_tokenizer *t, const char *text, size_t bytes)
{
    if (bytes > CACHE_WORD)
        return merge_word(t, text, bytes);
    const uint64_t hash = compute_hash(text, bytes);
    struct cached_word *word = &t->bpe.cache[hash >> 20 & (CACHE_SLOTS - 1)];
    struct id_list *ids = &t->ids;

    if (word->hash == hash && word->bytes == bytes && memcmp(word->word, text, bytes) == 0) {
        for (size_t i = 0; i < word->n_tokens; ++i)
            TRY(attncl__ids_append(ids, word->token[i]));
        return ATTNCL_OK;
    }
    const size_t before = ids->n;
    TRY(merge_word(t, text, bytes));
    const size_t n = ids->n - before;
    if (n <= CACHE_TOKENS) {
        *word = (struct cached_word){.hash = hash, .bytes = (uint8_t)bytes, .n_tokens = (uint8_t)n};
        memcpy(word->word, text, bytes);
        memcpy(word->token, ids->id + before, n * sizeof *word->token);
    }
    return ATTNCL_OK;
}

static size_t find_word_end(const struct bpe *bpe, const char *text, size_t begin, size_t bytes)
{
    if (!bpe->has_cuts)
        return bytes;
    for (size_t at = begin + 1; at + SPACE_SYMBOL_BYTES <= bytes; ++at) {
        const char *found = memchr(text + at, space_symbol[0], bytes - at - 2);
        if (!found)
            break;
        at = (size_t)(found - text);
        if (memcmp(found, space_symbol, SPACE_SYMBOL_BYTES) == 0 && bpe->can_cut[cut_index(found)])
            return at;
    }
    return bytes;
}

attncl_status attncl__bpe_encode(attncl_tokenizer *t, const char *text, size_t bytes)
{
    if (t->bpe.ignore_merges) {
        const int32_t id = attncl__vocab_find(t, text, bytes);
        if (id >= 0)
            return attncl__ids_append(&t->ids, id);
    }
    for (size_t begin = 0, end; begin < bytes; begin = end) {
        end = find_word_end(&t->bpe, text, begin, bytes);
        TRY(encode_word(t, text + begin, end - begin));
    }
    return ATTNCL_OK;
}
