// SPDX-License-Identifier: MIT
// Pairs of a source and a target inside.
#ifndef ATTNCL_TRAIN_PAIRS_H
#define ATTNCL_TRAIN_PAIRS_H

#include "train/dataset_internal.h"
#include "train/words.h"

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

// A batch of sentences: "enc_X", "dec_X", "enc_valid_lens", "targets"; or of labels: "tokens", "targets".
attncl_status attncl__pairs_batch(struct dataset *d, enum dataset_split split, int64_t index,
                                  struct batch *ret);

#endif
