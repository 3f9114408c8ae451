// SPDX-License-Identifier: MIT
// A tokenizer: what tokenizer.json says, and what its parts do.
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

// Bytes of attncl_tokenizer.arena.
struct span {
    uint32_t at, n;
};

// Tokens that grow.
struct id_list {
    int32_t *id;
    size_t n, capacity;
};
attncl_status attncl__ids_add(struct id_list *ids, int32_t id);

// -- BPE (bpe.c, bpe_merge.c)

struct merge_rule {
    uint64_t pair; // left << 32 | right; UINT64_MAX: free
    uint32_t rank;
    int32_t id;
};

// A word's tokens, kept.
enum { CACHE_SLOTS = 1 << 15, CACHE_WORD = 22, CACHE_TOKENS = 8 };
struct cached_word {
    uint64_t hash;
    uint8_t bytes, n_tokens; // bytes 0: free
    char word[CACHE_WORD];
    int32_t token[CACHE_TOKENS];
};

enum { CUT_OTHER = 128, CUT_SPACE }; // not ASCII; U+2581 itself

struct symbol {
    int32_t id, prev, next; // next -1: the last one
    bool is_gone;           // into the one before it
};

struct merge {
    uint64_t order; // rank << 32 | position: the smallest is next
    int32_t id;
};

struct vocab_entry {
    struct span key;
    int32_t id; // -1: free
};

// Two hash tables of open addressing, their capacities powers of two, and what encoding needs.
struct bpe {
    struct vocab_entry *vocab;
    struct merge_rule *rules;
    size_t vocab_capacity, rules_capacity;
    int32_t byte_id[256];  // of the tokens of one byte; with byte_fallback of <0xNN>; -1: none
    int32_t ascii_id[128]; // of the tokens of one character; -1: none
    int32_t unk;           // -1: none
    bool is_byte_level, byte_fallback, fuse_unk, ignore_merges;
    bool can_cut[CUT_SPACE + 1]; // before U+2581, by the character before it
    bool has_cuts;
    struct cached_word *cache;
    struct symbol *symbol;
    struct merge *heap;
    size_t symbol_capacity, heap_capacity, n_heap;
};

// -- what is searched for in a text: a string, or a regular expression of tokenizer.json (Oniguruma's syntax) by PCRE2
// (pattern.c, regex.c)

struct pattern;

// ERR_UNSUPPORTED names what PCRE2 lacks or means otherwise.
attncl_status attncl__pattern_string(const char *text, struct pattern **ret);
attncl_status attncl__pattern_regex(const char *regex, struct pattern **ret);
void attncl__pattern_free(struct pattern *p); // accepts NULL

// Matches one after another, as Oniguruma's iterator finds them: an empty one that ends where the last one did is none.
struct pattern_search {
    struct pattern *pattern;
    const char *text;
    size_t bytes, at, last_end;
    size_t begin, end; // of the match
};
#define PATTERN_SEARCH(p, t, n) ((struct pattern_search){(p), (t), (n), 0, SIZE_MAX, 0, 0})
// *found: false after the last one.
attncl_status attncl__pattern_next(struct pattern_search *s, bool *found);

// `text` with `content` for each match, added to `out`.
attncl_status attncl__pattern_replace(struct pattern *p, const char *text, size_t bytes,
                                      const char *content, size_t content_bytes,
                                      struct strbuf *out);

// The PCRE2 form of an expression in Oniguruma's Ruby syntax.
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

// A text, and the pieces of it that no step has removed, none empty.
struct pieces {
    const char *text; // the caller's, or of the buffer
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
    struct span content; // what Metaspace puts for a space
    enum { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS } prepend;
};

// -- added tokens (added.c)

struct added_token {
    struct span span;
    const char *text; // of the span, once all are added
    size_t order;     // among those that were added
    int32_t id;
    bool single_word, lstrip, rstrip;
};

struct added_set {
    struct added_token *list; // in order of text
    size_t n, capacity;
    bool first[256]; // bytes that one begins with
};

// An added token in a text, with the white space that it takes.  Starts zeroed.
struct added_match {
    size_t begin, end;
    int32_t id; // -1: there is no further one
    size_t at;  // where the next one is looked for
};

// -- decoder (decode.c)

struct decode_step {
    enum { DECODE_BYTE_LEVEL, DECODE_REPLACE, DECODE_METASPACE } kind;
    struct pattern *pattern;
    struct span content; // of Metaspace: what stands for a space
    bool drops_first;    // Metaspace: nothing for a space in the first token
};

struct token {
    struct span text, out; // as in the file; after the decoder's steps
    int16_t byte;          // of byte fallback, or -1
    bool is_known, is_special;
};

// Where a text is while tokens are decoded.
struct decoding {
    const attncl_tokenizer *t;
    bool skip_special, is_stream, is_started;
    int64_t strip;         // characters that may still be stripped
    struct strbuf pending; // bytes that are no text yet
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
    size_t n_normalizer;
    struct split *split;
    size_t n_split;
    struct decode_step *step;
    size_t n_step;
    bool joins_by_space, has_byte_fallback, is_fused; // of the decoder
    struct span strip_content;
    int64_t strip;
    struct added_set raw, normalized;
    struct pattern *word_begin, *word_end; // NULL: no added token is a single word
    struct id_list begin, ids;
    struct strbuf normal[2];
    struct pieces pieces[2];
    struct decoding decoding;
};

static inline const char *attncl__span(const attncl_tokenizer *t, struct span s)
{
    return t->arena.data + s.at;
}

// ERR_NO_MEMORY and ERR_UNSUPPORTED (4 GiB) otherwise.
attncl_status attncl__arena_add(attncl_tokenizer *t, const void *data, size_t bytes,
                                struct span *ret);

attncl_status attncl__tokenizer_read(attncl_tokenizer *t, const char *text, size_t bytes);
// A new token.  ERR_FORMAT: there is one of that number.
attncl_status attncl__token_set(attncl_tokenizer *t, int64_t id, struct span text);

size_t attncl__table_capacity(size_t n); // of a hash table of n entries
attncl_status attncl__vocab_reserve(struct bpe *bpe, size_t n);
// False: it is there.
bool attncl__vocab_add(attncl_tokenizer *t, struct span key, int32_t id);
int32_t attncl__vocab_find(const attncl_tokenizer *t, const char *text, size_t bytes);
attncl_status attncl__rules_reserve(struct bpe *bpe, size_t n);
void attncl__rule_set(struct bpe *bpe, int32_t left, int32_t right, struct merge_rule rule);
// Once vocabulary and rules are there.
attncl_status attncl__bpe_prepare(attncl_tokenizer *t);
attncl_status attncl__bpe_encode(attncl_tokenizer *t, const char *text, size_t bytes);
// A word's symbols in bpe.symbol, n of them, after all merges, to the tokens.
attncl_status attncl__bpe_merge(struct bpe *bpe, size_t n, struct id_list *ids);

// *text and *bytes: of the caller; then of a buffer of the tokenizer, where it changed.
attncl_status attncl__normalize(attncl_tokenizer *t, const char **text, size_t *bytes);
// The pieces of a text; is_first: it begins what was encoded.  *ret is borrowed.
attncl_status attncl__split(attncl_tokenizer *t, const char *text, size_t bytes, bool is_first,
                            const struct pieces **ret);

attncl_status attncl__added_add(attncl_tokenizer *t, struct added_set *set,
                                const struct added_token *token);
// Once all are added, and the arena does not grow any more.
void attncl__added_prepare(const attncl_tokenizer *t, struct added_set *set);
// The one after *m, which takes its place.
attncl_status attncl__added_find(const attncl_tokenizer *t, const struct added_set *set,
                                 const char *text, size_t bytes, struct added_match *m);

// The bytes that a token's text stands for; false: it has a character that stands for none.
bool attncl__bytes_of_token(const char *text, size_t bytes, struct strbuf *out);
// Fills token.out and token.byte.
attncl_status attncl__decode_prepare(attncl_tokenizer *t);
void attncl__decode_begin(struct decoding *d);
attncl_status attncl__decode_add(struct decoding *d, const int32_t *tokens, size_t n);
attncl_status attncl__decode_end(struct decoding *d);
void attncl__decode_free(struct decoding *d);

// -- what the files that read tokenizer.json share; `what` names an object in messages

// Refuses keys that are none of `known`, which are separated by spaces.
attncl_status attncl__check_keys(const struct json *object, const char *what, const char *known);
// Where the name is in a list separated by spaces; ERR_UNSUPPORTED where it is not.
attncl_status attncl__choose(const char *what, const char *name, const char *list, int *ret);
attncl_status attncl__read_bool(const struct json *object, const char *key, bool otherwise,
                                bool *ret);
attncl_status attncl__read_span(attncl_tokenizer *t, const struct json *object, const char *key,
                                struct span *ret);
// The value of "pattern": {"String": s} or {"Regex": s}.
attncl_status attncl__read_pattern(const struct json *object, struct pattern **ret);
// Reads one after another the objects of a list, which is all that `object` has beside its type.
typedef attncl_status (*attncl__object_reader)(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__read_sequence(attncl_tokenizer *t, const struct json *object,
                                    const char *what, const char *key, attncl__object_reader read);
// One more element, zeroed, of an array that grows one by one.
attncl_status attncl__add_element(void **list, size_t *n, size_t bytes_each, void **ret);

// A member that is too large for the limits of JSON; value.text NULL: it is absent.
struct large_member {
    const char *name;
    struct json_span value;
};
// Finds them; *rest_ret: the other members that are not null, the caller's.
attncl_status attncl__read_members(const struct json_span *object, struct large_member *large,
                                   size_t n, struct json **rest_ret);

attncl_status attncl__normalizer_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__split_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__decoder_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__template_read(attncl_tokenizer *t, const struct json *object);
attncl_status attncl__model_read(attncl_tokenizer *t, const struct json_span *model);
// The token of a text as the file has it; -1: none.
int32_t attncl__token_find(attncl_tokenizer *t, const char *text, size_t bytes);

#endif
