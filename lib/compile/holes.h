// SPDX-License-Identifier: MIT
// The free ranges of an address space, found by size and by offset in logarithmic time.
#ifndef ATTNCL_COMPILE_HOLES_H
#define ATTNCL_COMPILE_HOLES_H

#include <stdbool.h>
#include <stddef.h>

#include "attncl/status.h"

struct hole;
struct holes {
    struct hole *nodes; // [0] is the empty tree
    int root, unused;
    unsigned random;
};

// At first all of [0, end) is free.  n: of ranges that are taken at the same time, at most.
attncl_status attncl__holes_begin(struct holes *h, size_t n, size_t end);
void attncl__holes_free(struct holes *h);

// Takes the lowest range of `bytes`, more than 0; false: there is none.
bool attncl__holes_take(struct holes *h, size_t bytes, size_t *offset_ret);
void attncl__holes_give(struct holes *h, size_t offset, size_t bytes);

#endif
