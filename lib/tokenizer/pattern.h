// SPDX-License-Identifier: MIT
// What is searched for in a text: a string, or a regular expression of tokenizer.json (Oniguruma's syntax) by PCRE2.
#ifndef ATTNCL_TOKENIZER_PATTERN_H
#define ATTNCL_TOKENIZER_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "attncl/status.h"
#include "base/strbuf.h"

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

#endif
