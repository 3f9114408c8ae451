// SPDX-License-Identifier: MIT
// What the files of the feedback transformer share: feedback.c (attention, a layer, the public
// builders), feedback_step.c (one step of a model), feedback_back.c (back through all steps).
#ifndef ATTNCL_LAYER_FEEDBACK_PARTS_H
#define ATTNCL_LAYER_FEEDBACK_PARTS_H

#include "attncl/feedback.h"
#include "layer/layer.h"

attncl_value attncl__feedback_normalise(attncl_graph *g, const char *scope, attncl_value x,
                                        attncl_value weight, attncl_value bias);

// What a query attends to.
struct feedback_memories {
    attncl_value keys, values; // [S, B, H, D]
    attncl_value position;     // I32 [1]: how many there are yet; null: all
    attncl_value gate;      // [B, C], multiplies the output before the residual is added; null: 1
    attncl_value gradients; // where a step back adds the gradients of keys and values: a cache
    int32_t slot;           // of which these are slots `slot` and slot + 1; null: nowhere
    bool adds;              // a step back finds them started by a layer behind this one
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
    attncl_value cache;     // state [2 n_sets, B, H, places, D]; null: no layer reads it
    attncl_value gradients; // of the cache, like it: while steps go back, else null
    attncl_value position, gate;
};

// Checks the parameters and makes the cache.  False: the graph has failed.
bool attncl__feedback_begin(attncl_graph *g, const attncl_feedback_transformer_params *p,
                            int64_t n_batch, int64_t width, int64_t limit,
                            struct feedback_steps *s);

// x [B, C] -> x^L [B, C], before the last norm; the step's memory [B, C].
attncl_value attncl__feedback_one_step(attncl_graph *g, struct feedback_steps *s, attncl_value x,
                                       attncl_value position, attncl_value *memory_ret);

// The products that make keys and values of a step's memory: how many, and the i-th, [B, n_slots
// C], which belongs into slots slot .. slot + n_slots - 1 of the cache.
struct feedback_product {
    attncl_value value;
    int32_t slot, n_slots;
};
int64_t attncl__feedback_product_count(const struct feedback_steps *s);
struct feedback_product attncl__feedback_product(attncl_graph *g, const struct feedback_steps *s,
                                                 attncl_value memory, int64_t i);
// All of them into the cache.
void attncl__feedback_keep(attncl_graph *g, const struct feedback_steps *s, attncl_value memory);

// A transformer's loop as a block with a way back.  begin: before its first node, x [T, B, C];
// end: behind its last, with what it made, memory null where nobody asked for it.
struct graph_block *attncl__feedback_back_begin(attncl_graph *g, const struct feedback_steps *s,
                                                attncl_value x);
void attncl__feedback_back_end(attncl_graph *g, struct graph_block *block, attncl_value y,
                               attncl_value memory);

#endif
