// SPDX-License-Identifier: MIT
// Beam search on the host: which continuations of sequences are kept.
#ifndef ATTNCL_MODEL_BEAM_H
#define ATTNCL_MODEL_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/try.h"

enum { BEAM_MAX = 256 }; // of a sequence

struct beam {
    double score;   // log probability
    int64_t length; // eos counts
    bool is_finished;
    int32_t from;    // the beam of the step before that it goes on from
    int32_t *tokens; // [n_steps], eos after the end
};

// K beams of each of B sequences, those of one after another.
struct beams {
    int64_t n_batch, n_each, n_steps, n_vocab;
    int64_t eos;           // -1: none, a sequence has n_steps tokens
    double length_penalty; // the best has the largest score / length^length_penalty
    int64_t n;             // B K
    struct beam *list, *next;
    int32_t *tokens;
};
// The first five are set; no beam has a token.  On failure too the caller frees them.
attncl_status attncl__beams_create(struct beams *b);
void attncl__beams_free(struct beams *b);

// Step t's scores, logits [N, V], extend the beams by a token; at step 0 each sequence's are all the same.  Returns
// whether any goes on.
bool attncl__beams_advance(struct beams *b, int64_t t, const float *logits);
const struct beam *attncl__beams_best(const struct beams *b, int64_t sequence);

#endif
