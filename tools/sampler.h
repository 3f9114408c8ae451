// SPDX-License-Identifier: MIT
// The next tokens of a text, drawn by a language model on its device.
#ifndef ATTNCL_TOOL_SAMPLER_H
#define ATTNCL_TOOL_SAMPLER_H

#include "tool.h"

struct sampler {
    // Set by the caller.
    attncl_model *model;
    attncl_decoder_options options;
    attncl_sampling sampling;
    bool ignores_end; // of the text, attncl.eos

    attncl_decoder *decoder; // null: nothing has been read yet
    int64_t at_once;         // tokens that the device draws before the host waits
    bool failed;             // after the tokens that were appended
    bool ended;              // there is no next token: one that ends the text was drawn
};

// Appends to the session's tokens those that follow: at least one, unless the text ends, and at most `max` >= 1.  The
// first call reads the prompt and draws one.  Returns an exit status; a failure is reported.
int sampler_next(struct sampler *sampler, struct session *session, int64_t max);

// Takes the prompt's beginning and draws a token in advance: some drivers compile when a kernel is first launched.
int sampler_warm_up(struct sampler *sampler, const int32_t *tokens, size_t n);

// Releases what sampler_next() made.
void sampler_close(struct sampler *sampler);

#endif
