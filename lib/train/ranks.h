// SPDX-License-Identifier: MIT
// Ranks from inside: ranks.c opens them, ranks_collective.c is what all do at once.
#ifndef ATTNCL_TRAIN_RANKS_H
#define ATTNCL_TRAIN_RANKS_H

#include <stdbool.h>

#include "attncl/ranks.h"
#include "base/try.h"
#include "train/ranks_plugin.h"

// Sums under way: more would hold more memory, and the first is the one to wait for anyway.
enum { MAX_SUMS = 8 };

enum sum_state { SUM_EXCHANGE, SUM_GATHER, SUM_DONE };

struct rank_sum {
    enum sum_state state;
    float *data;        // [n], the caller's
    float *pieces;      // [size, length of this rank's block]: the block's values on each rank
    size_t n, capacity; // elements of data, of pieces
    int *blocks;        // [4, size]: begin and bytes of the blocks of data, of the blocks of pieces
    struct ranks_request request;
};

struct attncl_ranks {
    const struct ranks_plugin *plugin; // NULL: one rank
    struct ranks_place place;
    bool has_failed;               // MPI did, or others hang: nothing is waited for any more
    int timeout_s;                 // ATTNCL_RANKS_TIMEOUT; 0: none
    struct rank_sum sum[MAX_SUMS]; // a ring
    size_t first_sum, n_sums;
};

// Whether there is more than one.
static inline bool attncl__ranks_are_many(const attncl_ranks *ranks)
{
    return ranks && ranks->place.size > 1;
}

// Waits some microseconds, for what is no other rank's.  A loop gives the microseconds of its last
// pause, at first 0, and waits up to 16 times as long after some turns: each pause takes a core
// from the device.
void attncl__ranks_pause(int *us);

#endif
