// SPDX-License-Identifier: MIT
// Draws the next tokens of a text with a language model on its device.
#ifndef ATTNCL_TOOL_SAMPLER_H
#define ATTNCL_TOOL_SAMPLER_H

#include "tool.h"

struct sampler {
    // Set by the caller.
    attncl_model *model;
    attncl_decoder_options options;
    attncl_sampling sampling;
    bool ignores_end; // tokens of attncl.eos do not end the text

    attncl_decoder *decoder; // null: nothing has been read yet
    int64_t at_once;         // tokens that the device draws before the host waits
    bool failed;             // the last draw failed after some tokens
    bool ended;              // a token that ends the text was drawn
};

// Appends the next tokens to the session's: at most `max` >= 1, at least one unless the text ends.  The first call reads
// the prompt and draws one token.  Returns an exit status; reports a failure.
int sampler_next(struct sampler *sampler, struct session *session, int64_t max);

// Reads the prompt's beginning and draws a token, since some drivers compile when a kernel is first launched.
int sampler_warm_up(struct sampler *sampler, const int32_t *tokens, size_t n);

void sampler_close(struct sampler *sampler);

#endif
