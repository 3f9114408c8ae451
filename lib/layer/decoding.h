// SPDX-License-Identifier: MIT
// Decoding: prompts at once, steps with states of a type, drawing tokens.
#ifndef ATTNCL_LAYER_DECODING_H
#define ATTNCL_LAYER_DECODING_H

#include "attncl/aft.h"
#include "attncl/feedback.h"
#include "attncl/gmlp.h"
#include "layer/layer.h"

// -- a prompt at once, for decoding: a layer's result for x [T, B, C], causal, which leaves in the state of the layer's
// step what steps 0 .. T - 1 would.  The states are created in the same order and of the same shapes, so that both
// graphs can share them (attncl__graph_share_state).
//
// `last`: I32 [1], the position of the prompt's last token, at most T - 1.  Padding follows it: its keys and values
// are not kept, or steps overwrite them before they read them.  residual may be null.

// With rings of a type: F32, F16, BF16.  Sums stay F32.
attncl_value attncl__aft_prefill(attncl_graph *g, const attncl_aft_desc *desc,
                                 const attncl_aft_params *params, attncl_dtype dtype,
                                 attncl_value x, attncl_value last, attncl_value residual);
// attncl_aft_step() with such rings.
attncl_value attncl__aft_step(attncl_graph *g, const attncl_aft_desc *desc,
                              const attncl_aft_params *params, attncl_dtype dtype, attncl_value x,
                              attncl_value position, attncl_value residual);

// Of keys and values, [limit, B, C] each.  limit: positions, in a prefill at least T.  Prompts attend to what
// is stored, as steps do.
struct cache_desc {
    int64_t limit;
    attncl_dtype dtype; // F32, F16, BF16
};
attncl_value attncl__multi_head_attention_prefill(attncl_graph *g, const attncl_mha_params *params,
                                                  int64_t n_heads, const struct cache_desc *cache,
                                                  attncl_value x, attncl_value residual);
// attncl_multi_head_attention_step() with such caches.
attncl_value attncl__multi_head_attention_step(attncl_graph *g, const attncl_mha_params *params,
                                               int64_t n_heads, const struct cache_desc *cache,
                                               attncl_value x, attncl_value position,
                                               attncl_value residual);

// With a history of a type: F32, F16, BF16.
attncl_value attncl__gmlp_prefill(attncl_graph *g, const attncl_gmlp_params *params,
                                  attncl_dtype dtype, attncl_value x);
// attncl_gmlp_step() with such a history.
attncl_value attncl__gmlp_step(attncl_graph *g, const attncl_gmlp_params *params,
                               attncl_dtype dtype, attncl_value x, attncl_value position);

// Stores rows [T, B, C] from position 0 of a state on; gives them as they are stored.
attncl_value attncl__store_rows(attncl_graph *g, attncl_value x, attncl_dtype dtype,
                                attncl_value state);

// The steps one after another, without the host between them.  cache: of the keys and values of memories,
// [limit - 1, B, C] each.
attncl_value attncl__feedback_transformer_prefill(attncl_graph *g,
                                                  const attncl_feedback_transformer_params *params,
                                                  const struct cache_desc *cache, attncl_value x,
                                                  attncl_value last);
// attncl_feedback_transformer_step() with such a cache.
attncl_value attncl__feedback_transformer_step(attncl_graph *g,
                                               const attncl_feedback_transformer_params *params,
                                               const struct cache_desc *cache, attncl_value x,
                                               attncl_value position, attncl_value *memory_ret);

// Row `last` of x [T, ...].
attncl_value attncl__prefill_last_row(attncl_graph *g, attncl_value x, attncl_value last);

// -- sampling.c: drawing tokens on the device, a step of decoding each

enum { SAMPLING_WORDS = 4, SAMPLING_ROWS = 256 };

// The input "sampling" for weights exp(score / temperature) of the top_k best tokens; top_k 0: all;
// temperature 0: the best one.
void attncl__sampling_words(double temperature, int64_t top_k, uint64_t seed,
                            int32_t words[SAMPLING_WORDS]);

// State "step", I32 [1 + batch]: the position and the tokens of a step.
attncl_value attncl__sampling_step(attncl_graph *g, int64_t batch);

// A token for each row of logits [B, V], by input "sampling" and the position in `step`: the step of the
// next position, and row (position mod SAMPLING_ROWS) of state "drawn" [SAMPLING_ROWS, B], -1 where scores
// are not finite.  `window`: state [W, B], the last tokens, which drops the first and takes the new one; or none.
void attncl__sample(attncl_graph *g, attncl_value logits, attncl_value step, attncl_value window);

#endif
