// SPDX-License-Identifier: MIT
// Shared by the files of the feedback transformer.  Each calls only earlier ones of this list:
// feedback_attention.c (attention, a layer), feedback_step.c (one step of a model),
// feedback_backward.c (the backward pass of all steps), feedback_transformer.c (the public builders).
#ifndef ATTNCL_LAYER_FEEDBACK_INTERNAL_H
#define ATTNCL_LAYER_FEEDBACK_INTERNAL_H

#include "autodiff/loops.h"
#include "layer/layer.h"

// A layer's and a model's parameters, copied from the caller's structs.
struct feedback_layer {
    attncl_feedback_layer_params params; // its pointers are the caller's
    attncl_feedback_params attn;         // .dropout is NULL, see drop_weights
    attncl_ffn_params ffn;               // .dropout is NULL, see drop_hidden
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

struct feedback_memories {
    attncl_value keys,
        values; // [S, B, H, D]; or [S, B, C], if the layer projects them to n_heads heads
    int64_t n_heads;
    attncl_value position;  // I32 [1]: how many exist yet; null: all
    attncl_value gate;      // [B, C], multiplies the output before the residual is added; null: 1
    attncl_value gradients; // the cache to which a backward step adds gradients; null: none
    int32_t slot;           // slot of the keys in that cache; values are in slot + 1
    bool adds;              // a later layer's backward step has already started the sum
};

// A layer's result for x [B, C]; memories NULL: none yet.
attncl_value attncl__feedback_add_layer(attncl_graph *g, const struct feedback_layer *p,
                                        attncl_value x, const struct feedback_memories *memories);

// State shared by a model's steps.
struct feedback_steps {
    const struct feedback_model *p;
    int64_t n_sets;         // sets of keys and values: one per layer, or one for all
    attncl_value cache;     // state [2 n_sets, B, H, positions, D]; null: no layer reads it
    attncl_value gradients; // of the cache, with its shape; null except in the backward pass
    attncl_value position, gate;
    int first_kept; // first node of the last step whose results its gradient may read
};

// Checks the parameters and creates the cache, of `limit` steps.  False: the graph has failed.
bool attncl__feedback_begin_steps(attncl_graph *g, const struct feedback_model *p, int64_t n_batch,
                                  int64_t width, const struct cache_desc *cache,
                                  struct feedback_steps *s);

// x [B, C] -> x^L [B, C], before the last norm; the step's memory [B, C].
attncl_value attncl__feedback_add_step(attncl_graph *g, struct feedback_steps *s, attncl_value x,
                                       attncl_value position, attncl_value *memory_ret);

// A projection of a step's memory to keys and values.
struct kv_projection {
    attncl_value value;    // [B, n_slots C]
    int32_t slot, n_slots; // the slots of the cache that store it
};
int64_t attncl__feedback_count_projections(const struct feedback_steps *s);
struct kv_projection attncl__feedback_project_memory(attncl_graph *g,
                                                     const struct feedback_steps *s,
                                                     attncl_value memory, int64_t i);
// Stores all projections in the cache.
void attncl__feedback_store_memory(attncl_graph *g, const struct feedback_steps *s,
                                   attncl_value memory);

// Makes a transformer's loop a custom-gradient region: begin before its first node, with x [T, B, C];
// end after its last, with its outputs (memory may be null) and the steps' saved results.
struct grad_region *attncl__feedback_backward_begin(attncl_graph *g, const struct feedback_steps *s,
                                                    attncl_value x);
void attncl__feedback_backward_end(attncl_graph *g, struct grad_region *region, attncl_value y,
                                   attncl_value memory, const struct loop_saves *saves);

#endif
