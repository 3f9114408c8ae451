// SPDX-License-Identifier: MIT
// The next tokens of a text: what a language model scores them, and a choice among the scores, here or on the
// device.
#ifndef ATTNCL_TOOL_SAMPLER_H
#define ATTNCL_TOOL_SAMPLER_H

#include "tool.h"

struct sampler {
    // Set by the caller.
    attncl_model *model;
    int32_t n_vocab;
    int64_t window;           // of a longer text the last `window` tokens are read; 0: all
    double temperature;       // 0: the best
    int64_t top_k;            // 0: all
    uint64_t random;          // the seed
    attncl_dtype state_dtype; // the decoder's
    bool on_device;           // draws there; the best token is taken there in any case

    size_t n_read; // by the decoder
    float *scores; // [n_vocab]
    struct candidate *candidates;
    attncl_decoder *decoder;
    int64_t at_once;    // tokens that the device draws before the host waits; 0: not yet known
    bool stays_on_host; // the device has not the memory to draw
    bool failed;        // after the tokens that were given
};

enum { SAMPLER_AT_ONCE = 64 };

// The tokens after tokens [n], of which those of the call before are a prefix: at least one, and at most
// `max` >= 1 and SAMPLER_AT_ONCE.  Returns an exit status; a failure is reported.
int sampler_next(struct sampler *sampler, const int32_t *tokens, size_t n, int64_t max,
                 int32_t tokens_ret[SAMPLER_AT_ONCE], int64_t *n_ret);

// Releases what sampler_next() made.
void sampler_close(struct sampler *sampler);

#endif
