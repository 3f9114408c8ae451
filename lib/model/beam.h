// SPDX-License-Identifier: MIT
// Beam search on the host: chooses the continuations to keep.
#ifndef ATTNCL_MODEL_BEAM_H
#define ATTNCL_MODEL_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/try.h"

enum { BEAM_MAX = 256 }; // per sequence

struct beam {
    double score;   // log probability
    int64_t length; // eos counts
    bool is_finished;
    int32_t from;    // the previous step's beam that it continues
    int32_t *tokens; // [n_steps], eos after the end
};

// n_each beams of each of n_batch sequences, grouped by sequence.
struct beams {
    int64_t n_batch, n_each, n_steps, n_vocab;
    int64_t eos;           // -1: none, a sequence has n_steps tokens
    double length_penalty; // the best has the largest score / length^length_penalty
    int64_t n;             // n_batch * n_each
    struct beam *list, *next;
    int32_t *tokens;
};
// The caller has set all fields before `n`.  Release with attncl__beams_free() even on failure.
attncl_status attncl__beams_create(struct beams *b);
void attncl__beams_free(struct beams *b);

// Extends the beams by a token with step t's logits [n, V]; at step 0 a sequence's beams are all alike.
// Returns whether any beam is unfinished.
bool attncl__beams_advance(struct beams *b, int64_t t, const float *logits);
const struct beam *attncl__beams_best(const struct beams *b, int64_t sequence);

#endif
