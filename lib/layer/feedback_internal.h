// SPDX-License-Identifier: MIT
// Shared by the files of the feedback transformer: feedback.c (attention, a layer, the public
// builders), feedback_step.c (one step of a model), feedback_backward.c (the backward pass of all
// steps).
#ifndef ATTNCL_LAYER_FEEDBACK_INTERNAL_H
#define ATTNCL_LAYER_FEEDBACK_INTERNAL_H

#include "attncl/feedback.h"
#include "layer/layer.h"

attncl_value attncl__feedback_normalise(attncl_graph *g, const char *scope, attncl_value x,
                                        attncl_value weight, attncl_value bias);

// What a query attends to.
struct feedback_memories {
    attncl_value keys, values; // [S, B, H, D]
    attncl_value position;     // I32 [1]: how many there are yet; null: all
    attncl_value gate;      // [B, C], multiplies the output before the residual is added; null: 1
    attncl_value gradients; // where a backward step adds the gradients of keys and values: a cache
    int32_t slot;           // of which these are slots `slot` and slot + 1; null: nowhere
    bool adds;              // a backward step finds them started by a layer after this one
};

// Attention of query [B, C] to memories, and the output map.  weights_ret may be NULL.
attncl_value attncl__feedback_attend(attncl_graph *g, const attncl_feedback_params *p,
                                     attncl_value query, const struct feedback_memories *m,
                                     attncl_value residual, attncl_value *weights_ret);

// x + FF(LN(x))
attncl_value attncl__feedback_ffn(attncl_graph *g, const attncl_feedback_layer_params *p,
                                  attncl_value x);

// Fails the graph unless n_heads cut width into equal parts.
bool attncl__feedback_check_heads(attncl_graph *g, int64_t n_heads, int64_t width);

// A model's steps: what they share.
struct feedback_steps {
    const attncl_feedback_transformer_params *p;
    int64_t n_sets;         // of keys and values: one for each layer, or one for all
    attncl_value cache;     // state [2 n_sets, B, H, positions, D]; null: no layer reads it
    attncl_value gradients; // of the cache, like it: during the backward pass, else null
    attncl_value position, gate;
};

// Checks the parameters and creates the cache.  False: the graph has failed.
bool attncl__feedback_begin(attncl_graph *g, const attncl_feedback_transformer_params *p,
                            int64_t n_batch, int64_t width, int64_t limit,
                            struct feedback_steps *s);

// x [B, C] -> x^L [B, C], before the last norm; the step's memory [B, C].
attncl_value attncl__feedback_one_step(attncl_graph *g, struct feedback_steps *s, attncl_value x,
                                       attncl_value position, attncl_value *memory_ret);

// The projections of a step's memory to keys and values: how many, and the i-th, [B, n_slots C],
// which is stored in slots slot .. slot + n_slots - 1 of the cache.
struct kv_projection {
    attncl_value value;
    int32_t slot, n_slots;
};
int64_t attncl__feedback_projection_count(const struct feedback_steps *s);
struct kv_projection attncl__feedback_projection(attncl_graph *g, const struct feedback_steps *s,
                                                 attncl_value memory, int64_t i);
// All of them into the cache.
void attncl__feedback_keep(attncl_graph *g, const struct feedback_steps *s, attncl_value memory);

// A transformer's loop as a custom-gradient region.  begin: before its first node, x [T, B, C];
// end: after its last, with its outputs, memory null where it was not requested.
struct grad_region *attncl__feedback_backward_begin(attncl_graph *g, const struct feedback_steps *s,
                                                    attncl_value x);
void attncl__feedback_backward_end(attncl_graph *g, struct grad_region *region, attncl_value y,
                                   attncl_value memory);

#endif
