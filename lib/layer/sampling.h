// SPDX-License-Identifier: MIT
// Drawing tokens on the device, a step of decoding each.
#ifndef ATTNCL_LAYER_SAMPLING_H
#define ATTNCL_LAYER_SAMPLING_H

#include "attncl/graph.h"

enum { SAMPLING_WORDS = 4, SAMPLING_ROWS = 256 };

// The input "sampling" for weights exp(score / temperature) of the top_k best tokens; top_k 0: all;
// temperature 0: the best one.
void attncl__sampling_words(double temperature, int64_t top_k, uint64_t seed,
                            int32_t words[SAMPLING_WORDS]);

// What a step reads, I32 [1 + batch]: state "step", the position and the tokens.
attncl_value attncl__sampling_step(attncl_graph *g, int64_t batch);

// A token for each row of logits [B, V], by input "sampling" and the position in `step`: the step of the
// next position, and row (position mod SAMPLING_ROWS) of state "drawn" [SAMPLING_ROWS, B], -1 where scores
// are not finite.  `window`: state [W, B], the last tokens, which drops the first and takes the new one; or none.
void attncl__sample(attncl_graph *g, attncl_value logits, attncl_value step, attncl_value window);

#endif
