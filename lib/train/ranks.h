// SPDX-License-Identifier: MIT
// Ranks: ranks.c opens them, ranks_collective.c has the collective operations.
#ifndef ATTNCL_TRAIN_RANKS_H
#define ATTNCL_TRAIN_RANKS_H

#include <stdbool.h>

#include "attncl/ranks.h"
#include "base/try.h"
#include "train/ranks_plugin.h"

// Sums in flight; more would take more memory, and the oldest must complete first anyway.
enum { MAX_SUMS = 8 };

enum sum_state { SUM_EXCHANGE, SUM_GATHER, SUM_DONE };

struct rank_sum {
    enum sum_state state;
    float *data;        // [n], the caller's
    float *pieces;      // [size, length of this rank's block]: each rank's values of the block
    size_t n, capacity; // elements of data, of pieces
    int *blocks;        // [4, size]: begin and bytes of data's blocks, then of pieces' blocks
    struct ranks_request request;
};

struct attncl_ranks {
    const struct ranks_plugin *plugin; // NULL: one rank
    struct ranks_place place;
    bool has_failed;               // MPI failed, or ranks hang: no more waiting
    int timeout_s;                 // ATTNCL_RANKS_TIMEOUT; 0: none
    struct rank_sum sum[MAX_SUMS]; // a ring
    size_t first_sum, n_sums;
};

// Whether there is more than one rank.
static inline bool attncl__ranks_are_many(const attncl_ranks *ranks)
{
    return ranks && ranks->place.size > 1;
}

// Sleeps while polling the device.  *us: the last pause, 0 at first; pauses grow up to 16 times, since
// each wake-up takes a core from the device.
void attncl__ranks_pause(int *us);

#endif
