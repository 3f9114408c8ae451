// SPDX-License-Identifier: MIT
// Scores of classes from what an encoder gives: one row of them for a sequence, or for each position.
#ifndef ATTNCL_MODEL_BLOCK_CLASSES_H
#define ATTNCL_MODEL_BLOCK_CLASSES_H

#include "attncl/kinds.h"
#include "model/config.h"
#include "model/inputs.h"

enum pool { POOL_MEAN, POOL_FIRST, POOL_NONE };
struct classes_settings {
    int64_t n; // 0: no scores
    int64_t width;
    enum pool pool;
};
extern const struct key attncl__classes_keys[];
void attncl__classes_load(struct params *p, const struct classes_settings *s);
// x [T, B, C] or, by the layout, [B, T, C] -> [B, N], or without pooling [T, B, N], [B, T, N].
attncl_status attncl__classes(struct build *b, const struct classes_settings *s,
                              attncl_layout layout, attncl_value x, attncl_value valid_lens,
                              attncl_value *y_ret);

#endif
