// SPDX-License-Identifier: MIT
// Internals of the tokenizer:
//
//   text -> sections between added tokens -> normalizer -> pre-tokenizer: pieces -> BPE: tokens -> decoder: text
#ifndef ATTNCL_TOKENIZER_TOKENIZER_H
#define ATTNCL_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attncl/tokenizer.h"
#include "base/strbuf.h"
#include "io/json.h"

enum { TOKENIZER_MAX_TOKENS = 1 << 22 };

// A text in attncl_tokenizer.arena.
struct span {
    uint32_t at, n; // offset and length in bytes
};

struct id_list {
    int32_t *id;
    size_t n, capacity;
};
attncl_status attncl__ids_append(struct id_list *ids, int32_t id);

// -- BPE (bpe.c, bpe_merge.c)

struct merge_rule {
    uint64_t pair; // left << 32 | right; UINT64_MAX: free
    uint32_t rank;
    int32_t id;
};

// A slot of the cache of words' tokens.
enum { CACHE_SLOTS = 1 << 15, CACHE_WORD = 22, CACHE_TOKENS = 8 };
struct cached_word {
    uint64_t hash;
    uint8_t bytes, n_tokens; // bytes 0: free
    char word[CACHE_WORD];
    int32_t token[CACHE_TOKENS];
};

enum { CUT_OTHER = 128, CUT_SPACE }; // indices of can_cut: other than ASCII; U+2581

struct symbol {
    int32_t id, prev, next; // -1: no neighbour
    bool is_gone;           // merged into the previous one
};

struct merge {
    uint64_t order; // rank << 32 | position: the smallest is next
    int32_t id;
};

struct vocab_entry {
    struct span key;
    int32_t id; // -1: free
};

struct bpe {
    // Two hash tables with open addressing; capacities are powers of two.
    struct vocab_entry *vocab;
    struct merge_rule *rules;
    size_t vocab_capacity, rules_capacity;
    int32_t byte_id[256];  // the token of each byte; with byte_fallback "<0xNN>"; -1: none
    int32_t ascii_id[128]; // the token of each ASCII character; -1: none
    int32_t unk;           // the unknown token; -1: none
    bool is_byte_level, byte_fallback, fuse_unk, ignore_merges;
    bool can_cut[CUT_SPACE + 1]; // a text can be cut before U+2581, by the character before it
    bool has_cuts;
    struct cached_word *cache;
    struct symbol *symbol; // of the current word
    struct merge *heap;    // merges to do
    size_t symbol_capacity, heap_capacity, n_heap;
};

// -- patterns: a string, or a regular expression in Oniguruma's syntax (pattern.c, regex.c)

struct pattern;

// ERR_UNSUPPORTED names what PCRE2 lacks or interprets differently.
attncl_status attncl__pattern_string(const char *text, struct pattern **ret);
attncl_status attncl__pattern_regex(const char *regex, struct pattern **ret);
void attncl__pattern_free(struct pattern *p); // accepts NULL

// Iterates over matches as Oniguruma's iterator does: skips an empty match at the end of the previous one.
struct pattern_search {
    struct pattern *pattern;
    const char *text;
    size_t bytes, at, last_end;
    size_t begin, end; // of the match
};
#define PATTERN_SEARCH(p, t, n) ((struct pattern_search){(p), (t), (n), 0, SIZE_MAX, 0, 0})
// *found: false after the last one.
attncl_status attncl__pattern_next(struct pattern_search *s, bool *found);

// Appends `text` to `out`, with each match replaced by `content`.
attncl_status attncl__pattern_replace(struct pattern *p, const char *text, size_t bytes,
                                      const char *content, size_t content_bytes,
                                      struct strbuf *out);

// Translates Oniguruma's Ruby syntax to PCRE2's.
attncl_status attncl__regex_translate(const char *regex, struct strbuf *out);

// -- normalizer (normalize.c)

struct normalizer {
    enum { NORM_UNICODE, NORM_PREPEND, NORM_REPLACE } kind;
    int options; // of utf8proc
    struct pattern *pattern;
    struct span content;
};

// -- pre-tokenizer (split.c)

struct piece {
    size_t begin, end;
};

// A text and its pieces, none of them empty.
struct pieces {
    const char *text; // borrowed, or in `buffer`
    struct strbuf buffer;
    struct piece *list;
    size_t n, capacity;
};

enum split_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
    SPLIT_CONTIGUOUS
};

struct split {
    enum { PRE_SPLIT, PRE_PREFIX, PRE_METASPACE } kind;
    struct pattern *pattern;
    enum split_behavior behavior;
    bool invert;
    struct span content; // Metaspace: replaces a space
    enum { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS } prepend;
};

// -- added tokens (added.c)

struct added_token {
    struct span span;
    const char *text; // of the span; set once all tokens are added
    size_t order;     // of addition
    int32_t id;
    bool single_word, lstrip, rstrip;
};

struct added_set {
    struct added_token *list; // sorted by text
    size_t n, capacity;
    bool first[256]; // true for the first byte of any token
};

// An added token in a text, including the white space that it absorbs.  Starts zeroed.
struct added_match {
    size_t begin, end;
    int32_t id; // -1: no further match
    size_t at;  // where the next search begins
};

// -- decoder (decode.c)

struct decode_step {
    enum { DECODE_BYTE_LEVEL, DECODE_REPLACE, DECODE_METASPACE } kind;
    struct pattern *pattern;
    struct span content; // the replacement; Metaspace: the symbol that represents a space
    bool drops_first;    // Metaspace: drop the symbol in the first token
};

struct token {
    struct span text, out; // as in the file; after the decoder's steps
    int16_t byte;          // of "<0xNN>" with byte fallback, else -1
    bool is_known, is_special;
};

// The state while tokens are decoded.
struct decoding {
    const attncl_tokenizer *t;
    bool skip_special, is_stream, is_started;
    int64_t strip;         // characters that may still be stripped
    struct strbuf pending; // bytes of incomplete characters
    struct strbuf out;
    struct strbuf scratch[2];
};

struct attncl_tokenizer {
    struct strbuf arena;
    struct token *token; // by id
    size_t n_tokens, token_capacity;
    struct strbuf key; // scratch of attncl__token_find()
    struct bpe bpe;
    struct normalizer *normalizer;
    size_t n_normalizer, normalizer_capacity;
    struct split *split;
    size_t n_split, split_capacity;
    struct decode_step *step;
    size_t n_step, step_capacity;
    bool joins_by_space, has_byte_fallback, is_fused; // the decoder's
    struct span strip_content;
    int64_t strip;
    struct added_set raw, normalized;
    struct pattern *word_begin, *word_end; // NULL: no added token is a single word
    struct id_list begin, ids;
    struct strbuf normal[2];
    struct pieces pieces[2];
    struct decoding decoding;
};

static inline const char *attncl__span_text(const attncl_tokenizer *t, struct span s)
{
    return t->arena.data + s.at;
}

// Appends a text.  ERR_UNSUPPORTED beyond 4 GiB.
attncl_status attncl__arena_add(attncl_tokenizer *t, const void *data, size_t bytes,
                                struct span *ret);

attncl_status attncl__read_tokenizer(attncl_tokenizer *t, const char *text, size_t bytes);
// Adds a token.  ERR_FORMAT if its number is in use.
attncl_status attncl__token_set(attncl_tokenizer *t, int64_t id, struct span text);

size_t attncl__choose_table_capacity(size_t n); // of a hash table for n entries
attncl_status attncl__vocab_reserve(struct bpe *bpe, size_t n);
// False if the key exists.
bool attncl__vocab_add(attncl_tokenizer *t, struct span key, int32_t id);
int32_t attncl__vocab_find(const attncl_tokenizer *t, const char *text, size_t bytes);
attncl_status attncl__rules_reserve(struct bpe *bpe, size_t n);
void attncl__rule_set(struct bpe *bpe, int32_t left, int32_t right, struct merge_rule rule);
// Call once vocabulary and rules are complete.
attncl_status attncl__bpe_prepare(attncl_tokenizer *t);
attncl_status attncl__bpe_encode(attncl_tokenizer *t, const char *text, size_t bytes);
// Merges the n symbols in bpe->symbol and appends the resulting tokens to `ids`.
attncl_status attncl__bpe_merge(struct bpe *bpe, size_t n, struct id_list *ids);

// Normalizes *text of *bytes; the result may be in a buffer of the tokenizer.
attncl_status attncl__normalize(attncl_tokenizer *t, const char **text, size_t *bytes);
// Splits a text into pieces, borrowed in *ret.  is_first: the text is at the beginning of what is encoded.
attncl_status attncl__split(attncl_tokenizer *t, const char *text, size_t bytes, bool is_first,
                            const struct pieces **ret);

attncl_status attncl__added_add(attncl_tokenizer *t, struct added_set *set,
                                const struct added_token *token);
// Call once all tokens are added and the arena no longer grows.
void attncl__added_prepare(const attncl_tokenizer *t, struct added_set *set);
// Finds the next match after *match and stores it there.
attncl_status attncl__added_find(const attncl_tokenizer *t, const struct added_set *set,
                                 const char *text, size_t bytes, struct added_match *match);

// Appends the bytes that a byte-level token represents; false when a character represents none.
bool attncl__token_to_bytes(const char *text, size_t bytes, struct strbuf *out);
// Computes the `out` and `byte` of all tokens.
attncl_status attncl__decode_prepare(attncl_tokenizer *t);
void attncl__decode_begin(struct decoding *decoding);
attncl_status attncl__decode_add(struct decoding *decoding, const int32_t *tokens, size_t n);
attncl_status attncl__decode_end(struct decoding *decoding);
void attncl__decode_free(struct decoding *decoding);

// -- helpers for reading tokenizer.json; `what` names an object in messages

// Refuses keys that are not in `known`, a list separated by spaces.
attncl_status attncl__check_keys(const struct json *object, const char *what, const char *known);
// *ret: the index of `name` in a list separated by spaces.  ERR_UNSUPPORTED if it is absent.
attncl_status attncl__choose(const char *what, const char *name, const char *list, int *ret);
attncl_status attncl__read_bool(const struct json *object, const char *key, bool default_value,
                                bool *ret);
attncl_status attncl__read_span(attncl_tokenizer *t, const struct json *object, const char *key,
                                struct span *ret);
// Reads "pattern": {"String": s} or {"Regex": s}.
attncl_status attncl__read_pattern(const struct json *object, struct pattern **ret);
// Calls `read` for each object of the list `key`, the only key of `object` besides its type.
typedef attncl_status (*attncl__object_reader)(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__read_sequence(attncl_tokenizer *t, const struct json *object,
                                    const char *what, const char *key, attncl__object_reader read);
#define RULE_MEMORY "a tokenizer's rule" // the message when there is no memory for one

// A member that exceeds the limits of JSON_CONFIG_LIMITS; value.text NULL: absent.
struct large_member {
    const char *name;
    struct json_span value;
};
// Finds the large members.  *rest_ret: an object with the other members that are not null; the caller frees it.
attncl_status attncl__read_members(const struct json_span *object, struct large_member *large,
                                   size_t n, struct json **rest_ret);

attncl_status attncl__normalizer_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__split_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__decoder_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__template_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__model_read(attncl_tokenizer *t, const struct json_span *model);
// Returns the token whose text in the file this is; -1 if there is none.
int32_t attncl__token_find(attncl_tokenizer *t, const char *text, size_t bytes);

#endif
