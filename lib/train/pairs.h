// SPDX-License-Identifier: MIT
// Pairs of a source and a target inside.
#ifndef ATTNCL_TRAIN_PAIRS_H
#define ATTNCL_TRAIN_PAIRS_H

#include "base/name_table.h"
#include "base/strbuf.h"
#include "train/dataset_internal.h"

// -- words.c: vocabularies of words

// Reserved words: for unknown words, behind a sentence's end, before a target's first word, after each sentence's last.
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
    int reserved[N_RESERVED_WORDS]; // their indices in a vocabulary; -1: it lacks the word
};
void attncl__words_free(struct words *w);

// Counts a word.  *index_ret: its index among those that were counted.
attncl_status attncl__words_count(struct words *w, const char *word, int *index_ret);

// The vocabulary of counted words: the reserved ones, then in the order of their bytes the words that were counted at
// least `min_frequency` times.
attncl_status attncl__words_number(const struct words *counted, int64_t min_frequency, int reserved,
                                   struct words *ret);
// The vocabulary that metadata `key` holds: a word on each line, the reserved ones among them.
attncl_status attncl__words_of_text(const char *key, const char *text, int reserved,
                                    struct words *ret);
attncl_status attncl__words_text(const struct words *w, char **ret); // the caller's to free

// The index of a word, of <unk> for one that the vocabulary does not have; -1 where it lacks that too.
int attncl__words_find(const struct words *w, const char *word);

// -- pairs

enum side { SOURCE, TARGET, N_SIDES };

struct pair_dataset {
    struct dataset base;
    int64_t n, n_train;
    // [n][length] of each side.  While lines are read: indices of counted words, -1 is padding.
    int32_t *ids[N_SIDES];
    int64_t length[N_SIDES];  // T, or 1 of a class
    size_t capacity[N_SIDES]; // pairs
    int64_t *line;            // [n], from 1 on
    size_t line_capacity;
    struct words words[N_SIDES];
};

// Reads the file: counts the words of both sides and fills the rows with their indices.
attncl_status attncl__pairs_read(struct pair_dataset *p);

#endif
