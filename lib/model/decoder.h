// SPDX-License-Identifier: MIT
// A decoder inside: the graph of a step, and graphs of prompts and of a step that draws the next token, which
// share its state.
#ifndef ATTNCL_MODEL_DECODER_H
#define ATTNCL_MODEL_DECODER_H

#include "model/model.h"

// A prompt of up to `n_tokens` tokens, those after the last one padding.
struct prefill {
    attncl_graph *graph; // NULL: none
    int64_t n_tokens;
    int32_t *tokens; // [n_tokens, batch]
};

enum { N_PREFILLS = 4 }; // lengths that a decoder keeps a graph of

struct attncl_decoder {
    attncl_model *model;
    attncl_graph *graph;
    int64_t batch, vocabulary;
    int64_t limit; // 0: none
    attncl_dtype state_dtype;
    int64_t position;
    // Host copy of a step's input while it is uploaded, the position and the tokens: a wait for it would
    // take longer than a small model's step.
    int32_t *step;        // [1 + batch]
    bool uploads_pending; // no wait on the queue since the last step
    struct prefill prefills[N_PREFILLS];
    int oldest;                  // of them, to be replaced
    attncl_graph *sampling_step; // a step that draws the next token; NULL: not yet
    int32_t *drawn;              // [SAMPLING_ROWS, batch]
};

// A prompt at position 0.  Not taken, without an error: the device has not the memory or loops for it.
attncl_status attncl__decoder_prefill_take(attncl_decoder *decoder, int64_t n,
                                           const int32_t *tokens, float *logits, bool *taken_ret);
void attncl__decoder_prefill_free(attncl_decoder *decoder);
attncl_status attncl__decoder_prefill_reset(attncl_decoder *decoder);

// Steps that draw, as attncl_decoder_sample() after the checks of its tokens.
attncl_status attncl__decoder_sample_take(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                          const attncl_sampling *sampling, int32_t *tokens_ret);
void attncl__decoder_sample_free(attncl_decoder *decoder);
attncl_status attncl__decoder_sample_reset(attncl_decoder *decoder);

#endif
