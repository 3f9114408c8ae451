// SPDX-License-Identifier: MIT
// Shared by the files of the feedback transformer, each of which calls those above it only:
// feedback_attention.c (attention, a layer), feedback_step.c (one step of a model),
// feedback_backward.c (the backward pass of all steps), feedback_transformer.c (the public builders
// of a step and of a sequence).
#ifndef ATTNCL_LAYER_FEEDBACK_INTERNAL_H
#define ATTNCL_LAYER_FEEDBACK_INTERNAL_H

#include "autodiff/loops.h"
#include "layer/layer.h"

// A layer's and a model's parameters: copies of the caller's structs; attn.dropout and ffn.dropout are
// NULL, copied too.
struct feedback_layer {
    attncl_feedback_layer_params params; // its pointers are the caller's
    attncl_feedback_params attn;
    attncl_ffn_params ffn;
    attncl_dropout_desc drop_weights, drop_attn, drop_hidden, drop_ffn;
};
struct feedback_model {
    struct feedback_layer *layers;
    int64_t n_layers, n_heads;
    attncl_value weights, key_value_weight, key_value_bias, norm_weight, norm_bias;
    double norm_eps;
};

// False: the graph has failed.
bool attncl__feedback_layer_read(attncl_graph *g, const attncl_feedback_layer_params *params,
                                 struct feedback_layer *ret);

// What a query attends to.
struct feedback_memories {
    attncl_value keys,
        values; // [S, B, H, D]; with n_heads and maps of the layer's [S, B, C], which they project
    int64_t n_heads;
    attncl_value position;  // I32 [1]: how many there are yet; null: all
    attncl_value gate;      // [B, C], multiplies the output before the residual is added; null: 1
    attncl_value gradients; // where a backward step adds the gradients of keys and values: a cache
    int32_t slot;           // of which these are slots `slot` and slot + 1; null: nowhere
    bool adds;              // a backward step finds them started by a layer after this one
};

// A layer's result for x [B, C]; NULL: there is no memory.
attncl_value attncl__feedback_layer(attncl_graph *g, const struct feedback_layer *p, attncl_value x,
                                    const struct feedback_memories *memories);

// A model's steps: what they share.
struct feedback_steps {
    const struct feedback_model *p;
    int64_t n_sets;         // of keys and values: one for each layer, or one for all
    attncl_value cache;     // state [2 n_sets, B, H, positions, D]; null: no layer reads it
    attncl_value gradients; // of the cache, like it: during the backward pass, else null
    attncl_value position, gate;
    int first_kept; // the first node of the last step whose results its gradient may read
};

// Checks the parameters and creates the cache, of `limit` steps.  False: the graph has failed.
bool attncl__feedback_begin(attncl_graph *g, const struct feedback_model *p, int64_t n_batch,
                            int64_t width, const struct cache_desc *cache,
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
// end: after its last, with its outputs, memory null where it was not requested, and what its steps
// have kept.
struct grad_region *attncl__feedback_backward_begin(attncl_graph *g, const struct feedback_steps *s,
                                                    attncl_value x);
void attncl__feedback_backward_end(attncl_graph *g, struct grad_region *region, attncl_value y,
                                   attncl_value memory, const struct loop_saves *saves);

#endif
