// SPDX-License-Identifier: MIT
// The settings, parameters and nodes of a feedback transformer, its layers and its attention.
#ifndef ATTNCL_MODEL_BLOCK_FEEDBACK_H
#define ATTNCL_MODEL_BLOCK_FEEDBACK_H

#include "attncl/feedback.h"
#include "model/block_ffn.h"
#include "model/inputs.h"

struct feedback_settings {
    int64_t d_model, n_heads, n_layers;
    int64_t n_positions; // P
    int split;           // scores
    bool shared;         // one projection of keys and values for all layers
    struct ffn_settings ffn;
    double norm_eps;
};

// One projection of keys and values for all layers: _kv.
extern const struct key attncl__feedback_attention_keys[], attncl__feedback_layer_keys[],
    attncl__feedback_keys[], attncl__feedback_kv_keys[];
void attncl__feedback_load(struct params *p, const struct feedback_settings *s);
int64_t attncl__feedback_limit(const struct feedback_settings *s); // longest sequence
// x [T, B, C] -> [T, B, C] and, with memory_ret, the memories; [B, C] at a position -> [B, C].
attncl_status attncl__feedback(struct build *b, const struct feedback_settings *s, attncl_value x,
                               attncl_value *y_ret, attncl_value *memory_ret);
attncl_status attncl__feedback_step(struct build *b, const struct feedback_settings *s,
                                    attncl_value x, attncl_value position, attncl_value *y_ret);
// A prompt x [T, B, C] that fills the state of steps -> [B, C] at position `last` (layer/prefill.h).
attncl_status attncl__feedback_prefill(struct build *b, const struct feedback_settings *s,
                                       attncl_value x, attncl_value last, attncl_value *y_ret);

// What the attention of a layer has parameters for.
enum feedback_keys {
    KEYS_OWN,       // projects keys and values itself
    KEYS_PROJECTED, // is given projected ones
};
void attncl__feedback_attention_params(struct params *p, const struct feedback_settings *s,
                                       enum feedback_keys keys, attncl_feedback_params *ret);

// What a layer's parameters point to.
struct feedback_parts {
    attncl_feedback_params attn;
    attncl_ffn_params ffn;
};
// `ret` points into `parts`.
void attncl__feedback_layer_params(struct params *p, const struct feedback_settings *s,
                                   enum feedback_keys keys, struct feedback_parts *parts,
                                   attncl_feedback_layer_params *ret);

#endif
