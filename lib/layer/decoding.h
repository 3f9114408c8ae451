// SPDX-License-Identifier: MIT
// Decoding: prompts at once, steps with states of a type, drawing tokens.
#ifndef ATTNCL_LAYER_DECODING_H
#define ATTNCL_LAYER_DECODING_H

#include "attncl/aft.h"
#include "attncl/feedback.h"
#include "attncl/gmlp.h"
#include "layer/layer.h"

// -- layers that decode: a step x [B, C] at a position, or a prompt x [T, B, C] at once, which leaves in the state of the
// layer's step what steps 0 .. T - 1 would.  The states are created in the same order and of the same shapes, so that both
// graphs can share them (attncl__graph_share_state).  residual may be null.

// One of them is null.
struct decode_at {
    attncl_value position; // of a step
    // I32 [1]: a prompt's last token has this position, at most T - 1.  Padding follows it, whose keys and values are
    // not kept, or are overwritten by steps before they are read.
    attncl_value last;
};

// With rings of a type: F32, F16, BF16.  Sums stay F32.
attncl_value attncl__aft_decode(attncl_graph *g, const attncl_aft_desc *desc,
                                const attncl_aft_params *params, attncl_dtype dtype, attncl_value x,
                                const struct decode_at *at, attncl_value residual);

// Of keys and values, [limit, B, C] each.  limit: positions, in a prefill at least T.  Prompts attend to what
// is stored, as steps do.
struct cache_desc {
    int64_t limit;
    attncl_dtype dtype; // F32, F16, BF16, of a step or prompt of multi-head attention Q8
    const attncl_attention_desc *desc; // without dropout; causal, time first
};
// position: of a step, or [T B] of each row of a prompt x [T, B, C] behind tokens that were taken.  Null: a prompt from 0 on.
attncl_value attncl__multi_head_attention_decode(attncl_graph *g, const attncl_mha_params *params,
                                                 int64_t n_heads, const struct cache_desc *cache,
                                                 attncl_value x, attncl_value position,
                                                 attncl_value residual);

// With a history of a type: F32, F16, BF16.  position null: a prompt.
attncl_value attncl__gmlp_decode(attncl_graph *g, const attncl_gmlp_params *params,
                                 attncl_dtype dtype, attncl_value x, attncl_value position);

// Stores rows [T, B, C] from position 0 of a state on, with Q8 in rows of 8 bits; gives them as they are stored.
attncl_value attncl__store_rows(attncl_graph *g, attncl_value x, attncl_dtype dtype,
                                attncl_value state);

// A prompt's steps run one after another, without the host between them.  cache: of the keys and values of memories,
// [limit - 1, B, C] each.
attncl_value attncl__feedback_transformer_decode(attncl_graph *g,
                                                 const attncl_feedback_transformer_params *params,
                                                 const struct cache_desc *cache, attncl_value x,
                                                 const struct decode_at *at,
                                                 attncl_value *memory_ret);

// -- sampling.c: drawing tokens on the device, a step of decoding each

enum { SAMPLING_WORDS = 4, SAMPLING_ROWS = 256 };

// The input "sampling" for weights exp(score / temperature) of the top_k best tokens; top_k 0: all;
// temperature 0: the best one.
void attncl__sampling_words(double temperature, int64_t top_k, uint64_t seed,
                            int32_t words[SAMPLING_WORDS]);

// A token for each row of logits [B, V], by input "sampling" and the position in state `step`, I32 [1 + B], the position
// and the tokens of a step: the step of the next position, and row (position mod SAMPLING_ROWS) of state "drawn" [SAMPLING_ROWS, B], -1 where scores
// are not finite.  `window`: state [W, B], the last tokens, which drops the first and takes the new one; or none.
void attncl__sample(attncl_graph *g, attncl_value logits, attncl_value step, attncl_value window);

#endif
