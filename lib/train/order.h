// SPDX-License-Identifier: MIT
// Which of n things comes at a position of an endless sequence: a function of seed and position.
#ifndef ATTNCL_TRAIN_ORDER_H
#define ATTNCL_TRAIN_ORDER_H

#include <stdint.h>

#include "train/dataset.h"

// The thing at `position`, in [0, n).  Sequential: 0, 1 ... n-1, 0, 1 ...; shuffled: another
// permutation each n positions; random: independent of all others.
int64_t attncl__order_item(enum dataset_order order, uint64_t seed, int64_t n, int64_t position);

// A number in [0, bound) for `position`, independent of attncl__order_item().
int64_t attncl__order_offset(uint64_t seed, int64_t bound, int64_t position);

#endif
