// SPDX-License-Identifier: MIT
// The batches in flight: a ring by batch index.  A slot owns everything that enqueued commands read and write on
// the host, so it stays where it is until its batch was waited for.
#ifndef ATTNCL_TRAIN_IN_FLIGHT_H
#define ATTNCL_TRAIN_IN_FLIGHT_H

#include "exec/exec.h"
#include "train/dataset.h"

// This rank's share of a batch.
struct part {
    struct batch batch;
    bool is_empty;
    int64_t n_targets, n_all_targets; // that count, here and on all ranks
};

enum batch_state {
    BATCH_FREE,
    BATCH_PREPARED, // on the host
    BATCH_WRITTEN,  // its inputs are enqueued
    BATCH_RUNNING,  // its passes are enqueued, and the update where one follows it
};

struct batch_in_flight {
    enum batch_state state;
    int64_t index;
    struct part part;
    double share;                       // of its loss in the step's
    attncl_graph *graph, *update_graph; // NULL: none, since its part is empty, or no update follows
    bool updates;                       // an update was enqueued, at least in part
    int32_t number, step;               // inputs
    float weight, rate;
    float loss, norm; // outputs
    struct early_read loss_read, norm_read;
};

// So many are enqueued at once; one more is prepared meanwhile.
enum { MAX_ENQUEUED = 2, MAX_STEPS_BEGUN = 2, N_SLOTS = MAX_ENQUEUED + 1 };
struct in_flight {
    struct batch_in_flight slot[N_SLOTS];
};

static inline struct batch_in_flight *in_flight_at(struct in_flight *f, int64_t index)
{
    return &f->slot[index % N_SLOTS];
}

#endif
