// SPDX-License-Identifier: MIT
// A decoder inside: the graph of a step, and graphs of prompts and of a step that draws the next token, which
// share its state.  Beyond a window a graph of the last tokens takes over.
#ifndef ATTNCL_MODEL_DECODER_H
#define ATTNCL_MODEL_DECODER_H

#include "attncl/slots.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "model/model.h"

// A prompt of up to `n_tokens` tokens, those after the last one padding, from position 0 on or behind tokens that were
// taken.
struct prefill {
    attncl_graph *graph; // NULL: none
    bool behind;
    int64_t n_tokens;
    int32_t *tokens; // [n_tokens, batch], of slots [n_tokens, 1]; behind them positions alike
};

enum { N_PREFILLS = 4 }; // lengths, of one kind, that a decoder keeps a graph of

struct attncl_decoder {
    attncl_model *model;
    attncl_graph *graph;
    int64_t batch, vocabulary;
    int64_t limit; // 0: none
    attncl_dtype state_dtype;
    int64_t position;        // of the fullest slot
    int32_t *slot_positions; // [batch], of each slot; NULL: all sequences have `position`
    // Host copy of a step's input while it is uploaded, the position and the tokens: a wait for it would
    // take longer than a small model's step.
    int32_t *step;        // [1 + batch], of slots [2 batch]
    bool uploads_pending; // no wait on the queue since the last step
    struct prefill prefills[N_PREFILLS];
    int oldest;                  // of them, to be replaced
    attncl_graph *sampling_step; // a step that draws the next token; NULL: not yet
    int32_t *drawn;              // [SAMPLING_ROWS, batch]
    int64_t window;              // of a longer text the last `window` tokens count; 0: none
    int32_t *text;               // [window, batch], the token of position p in row p mod window
    attncl_graph *cropped;       // of `window` tokens; NULL: not yet
    int32_t *cropped_text;       // [window, batch], what it is given
};

// -- decoder_graph.c

// Compiles a graph of n_tokens, which a step has none of.  Prompts and steps that draw share the step's state.
attncl_status attncl__decoder_open(const attncl_decoder *d, enum decoding kind, int64_t n_tokens,
                                   attncl_graph **graph_ret);

// The queue has read decoder->step.
attncl_status attncl__decoder_step_begin(attncl_decoder *decoder);
// A run of the step's graph on decoder->step.  The position stays.
attncl_status attncl__decoder_step_run(attncl_decoder *decoder, size_t bytes, float *logits);

// A prompt at once, from its position on; `slot`: whose, if there are slots.  The position stays.  *taken_ret false,
// without an error: it is too short, or the device has not the memory or loops for it, or the layers no way.
attncl_status attncl__decoder_prefill_take(attncl_decoder *decoder, int64_t slot, int64_t n,
                                           const int32_t *tokens, float *logits, bool *taken_ret);
// Sequences of a prompt's graph.
static inline int64_t attncl__decoder_prompt_batch(const attncl_decoder *d)
{
    return d->slot_positions ? 1 : d->batch;
}
void attncl__decoder_prefill_free(struct prefill *p);

// Steps that draw, as attncl_decoder_sample() after the checks of its tokens; all in the window.  The position stays.
attncl_status attncl__decoder_sample_take(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                          const attncl_sampling *sampling, int32_t *tokens_ret);
// What a graph that draws reads, from the decoder's position on.  Nothing that steps share changes.
attncl_status attncl__decoder_draw_begin(attncl_decoder *decoder, attncl_graph *graph,
                                         const int32_t *tokens, const attncl_sampling *sampling);
// Then its runs.  The position stays.
attncl_status attncl__decoder_draw(attncl_decoder *decoder, attncl_graph *graph, int64_t n,
                                   int32_t *tokens_ret);

// As attncl_decoder_step() of slots.
attncl_status attncl__decoder_slots_step(attncl_decoder *decoder, const int32_t *tokens,
                                         float *logits);
// Slots, all empty, of a decoder that has none yet.
attncl_status attncl__decoder_slots_init(attncl_decoder *decoder);

// The window, of a decoder that has none yet.
attncl_status attncl__decoder_crop_init(attncl_decoder *decoder, int64_t window);
// The decoder takes tokens [n, batch] at its position: they are kept.
void attncl__decoder_crop_taken(attncl_decoder *decoder, int64_t n, const int32_t *tokens);
// n steps have taken `tokens` [batch] and all but the last of `drawn` [n, batch]: the position after them.
void attncl__decoder_crop_drawn(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                const int32_t *drawn);
// Compiles the graph.
attncl_status attncl__decoder_crop_open(attncl_decoder *decoder);
// As attncl_decoder_prefill() and attncl_decoder_sample() after their checks, where the last of the tokens given is
// beyond the window; after drawing the position stays.
attncl_status attncl__decoder_crop_take(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                        float *logits);
attncl_status attncl__decoder_crop_sample(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                          const attncl_sampling *sampling, int32_t *tokens_ret);

#endif
