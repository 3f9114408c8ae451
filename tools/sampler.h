// SPDX-License-Identifier: MIT
// The next token of a text: what a language model scores it, and a choice among the scores.
#ifndef ATTNCL_TOOL_SAMPLER_H
#define ATTNCL_TOOL_SAMPLER_H

#include "tool.h"

struct sampler {
    // Set by the caller.
    attncl_model *model;
    int32_t n_vocab;
    int64_t window;     // of a longer text the last `window` tokens are read; 0: all
    double temperature; // 0: the best
    int64_t top_k;      // 0: all
    uint64_t random;    // the seed

    size_t n_read; // by the decoder
    float *scores; // [n_vocab]
    struct candidate *candidates;
    attncl_decoder *decoder; // while the text fits
    attncl_graph *graph;     // from then on: tokens [window, 1]
    float *all_scores;       // [window, 1, n_vocab]
};

// The token after tokens [n], of which those of the call before are a prefix.  Returns an exit status; a failure
// is reported.
int sampler_next(struct sampler *sampler, const int32_t *tokens, size_t n, int32_t *token_ret);

// Releases what sampler_next() made.
void sampler_close(struct sampler *sampler);

#endif
