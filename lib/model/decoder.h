// SPDX-License-Identifier: MIT
// A decoder: the graph of a step; graphs of prompts and of sampling steps, which share its state; and,
// for texts longer than a window, a graph of the last tokens.
#ifndef ATTNCL_MODEL_DECODER_H
#define ATTNCL_MODEL_DECODER_H

#include "attncl/slots.h"
#include "exec/exec.h"
#include "graph/graph.h"
#include "model/model.h"

// The graph of a prompt of up to `n_tokens` tokens, padded.
struct prefill {
    attncl_graph *graph; // NULL: none
    bool behind;         // the prompt continues a sequence, else it begins at position 0
    int64_t n_tokens;
    int32_t *tokens; // [n_tokens, batch], with slots [n_tokens, 1]; then as many positions
};

enum { N_PREFILLS = 4 }; // graphs that a decoder keeps

struct attncl_decoder {
    attncl_model *model;
    attncl_graph *graph;
    int64_t batch, vocabulary;
    int64_t limit; // of positions; 0: none
    int64_t reach; // of texts; 0: none
    int64_t
        capacity; // positions that KV caches have room for, up to the limit; without caches the limit
    attncl_dtype state_dtype;
    int64_t position;        // of the fullest slot
    int32_t *slot_positions; // [batch], of each slot; NULL: all sequences have `position`
    int32_t *slot_ends;      // [batch], the furthest position of each slot since it was empty
    // Host copy of a step's input, position and tokens, kept until it is uploaded: waiting for the
    // upload would take longer than a small model's step.
    int32_t *step;        // [1 + batch], with slots [2 batch]
    bool uploads_pending; // no wait on the queue since the last step
    struct prefill prefills[N_PREFILLS];
    int oldest;                  // index of the prefill to replace next
    attncl_graph *sampling_step; // draws the next token; NULL: not yet compiled
    int32_t *drawn;              // [SAMPLING_ROWS, batch]
    int64_t window;        // a longer text is cropped to its last `window` tokens; 0: no limit
    int32_t *text;         // [window, batch], the token of position p in row p mod window
    attncl_graph *cropped; // of `window` tokens; NULL: not yet compiled
    int32_t *cropped_text; // [window, batch], its input
    // Longrope: a text beyond the window is not cropped but taken by another decoder, of this limit.
    int64_t long_limit;     // 0: none
    attncl_decoder *beyond; // NULL: not yet created
};

// -- decoder_graph.c

// Compiles a graph of n_tokens (0 for a step).  Prompts and sampling steps share the step's state.
attncl_status attncl__decoder_open(const attncl_decoder *d, enum decoding kind, int64_t n_tokens,
                                   attncl_graph **graph_ret);

void attncl__decoder_prefill_free(struct prefill *p);

// Lets KV caches grow for n more tokens, within the limit.  All graphs are new then.  A failure changes nothing.
attncl_status attncl__decoder_make_room(attncl_decoder *decoder, int64_t n);

// Waits until the queue has read decoder->step.
attncl_status attncl__decoder_step_begin(attncl_decoder *decoder);
// Runs the step's graph on decoder->step.  The position stays.
attncl_status attncl__decoder_step_run(attncl_decoder *decoder, size_t bytes, float *logits);

// Takes a prompt at once, at the current position, of `slot` if there are slots.  The position stays.
// *taken_ret false without an error: the prompt is too short, the device lacks memory or loops for it,
// or the layers do not support it.
attncl_status attncl__decoder_prefill_take(attncl_decoder *decoder, int64_t slot, int64_t n,
                                           const int32_t *tokens, float *logits, bool *taken_ret);
// The batch of a prompt's graph.
static inline int64_t attncl__decoder_prompt_batch(const attncl_decoder *d)
{
    return d->slot_positions ? 1 : d->batch;
}

// attncl_decoder_sample() after the checks of its tokens, within the window.  The position stays.
attncl_status attncl__decoder_sample_take(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                          const attncl_sampling *sampling, int32_t *tokens_ret);
// Writes the inputs of a sampling graph, at the decoder's position.  Changes no shared state.
attncl_status attncl__decoder_draw_begin(attncl_decoder *decoder, attncl_graph *graph,
                                         const int32_t *tokens, const attncl_sampling *sampling);
// Runs it n times.  The position stays.
attncl_status attncl__decoder_draw(attncl_decoder *decoder, attncl_graph *graph, int64_t n,
                                   int32_t *tokens_ret);

// attncl_decoder_step() with slots.
attncl_status attncl__decoder_slots_step(attncl_decoder *decoder, const int32_t *tokens,
                                         float *logits);
// Gives a new decoder slots, all empty.
attncl_status attncl__decoder_slots_init(attncl_decoder *decoder);

// Gives a new decoder a window.
attncl_status attncl__decoder_crop_init(attncl_decoder *decoder, int64_t window);
// Stores tokens [n, batch] in the text, at the decoder's position.
void attncl__decoder_crop_keep_tokens(attncl_decoder *decoder, int64_t n, const int32_t *tokens);
// Stores `tokens` [batch] and all but the last of `drawn` [n, batch], and advances the position by n.
void attncl__decoder_crop_keep_drawn(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                     const int32_t *drawn);
// Compiles the graph, if it is not yet.
attncl_status attncl__decoder_crop_open(attncl_decoder *decoder);
// attncl_decoder_prefill() and attncl_decoder_sample() after their checks, if the last of the given
// tokens is beyond the window.  After sampling the position stays.
attncl_status attncl__decoder_crop_take(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                        float *logits);
attncl_status attncl__decoder_crop_sample(attncl_decoder *decoder, int64_t n, const int32_t *tokens,
                                          const attncl_sampling *sampling, int32_t *tokens_ret);

#endif
