// SPDX-License-Identifier: MIT
// Vocabularies of words, and sentences as words.
#ifndef ATTNCL_TRAIN_WORDS_H
#define ATTNCL_TRAIN_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/status.h"
#include "base/name_table.h"
#include "base/strbuf.h"

// Words with a meaning: of unknown words, of what follows a sentence's end, before the first word of a
// target, after the last of each sentence.
enum reserved_word { WORD_UNK, WORD_PAD, WORD_BOS, WORD_EOS, N_RESERVED_WORDS };
// Which of them a vocabulary has: bits 1 << reserved_word.
enum {
    RESERVED_NONE = 0,
    RESERVED_PAD = 1 << WORD_PAD,
    RESERVED_ALL = (1 << N_RESERVED_WORDS) - 1
};

struct words { // starts zeroed
    struct word {
        char *text;
        int64_t count;
    } * list;
    int n;
    size_t capacity;
    struct name_table table;
    int reserved[N_RESERVED_WORDS]; // of a vocabulary: their indices, -1: it does not have it
};
void attncl__words_free(struct words *w);

// Counts a word.  *index_ret: its index among those that were counted.
attncl_status attncl__words_count(struct words *w, const char *word, int *index_ret);

// The vocabulary of counted words: the reserved ones, then by their bytes those that were counted
// `min_frequency` times.
attncl_status attncl__words_number(const struct words *counted, int64_t min_frequency, int reserved,
                                   struct words *ret);
// The vocabulary that metadata `key` holds: a word on each line, the reserved ones among them.
attncl_status attncl__words_of_text(const char *key, const char *text, int reserved,
                                    struct words *ret);
attncl_status attncl__words_text(const struct words *w, char **ret); // the caller's to free

// The index of a word, of <unk> for one that the vocabulary does not have; -1 where it lacks that too.
int attncl__words_find(const struct words *w, const char *word);

// A sentence of `bytes` bytes of UTF-8 as words with a space before each; no-break spaces are spaces.
enum sentence_form {
    SENTENCE_TEXT,  // lower case, and each ',', '.', '!' and '?' begins a word
    SENTENCE_WORDS, // lower case, divided at spaces alone
    SENTENCE_NAMES, // as it is, divided at spaces alone
};
attncl_status attncl__sentence_words(const char *sentence, size_t bytes, enum sentence_form form,
                                     struct strbuf *ret);

#endif
