// SPDX-License-Identifier: MIT
//
// Drawing tokens on the device.  A decode step reads its tokens from state, which its last op updates.

#include "layer/layer.h"

#include <math.h>
#include <string.h>

void attncl__sampling_words(double temperature, int64_t top_k, uint64_t seed,
                            int32_t words[SAMPLING_WORDS])
{
    const double log2_e = 1.4426950408889634;
    // Within these bounds the factor is a finite float; at either bound more would change nothing.
    const double bounded = fmin(fmax(temperature, 1e-30), 1e30);
    const float factor = (float)(log2_e / bounded);

    words[0] = temperature == 0 ? 1 : (int32_t)(top_k < INT32_MAX ? top_k : INT32_MAX);
    memcpy(&words[1], &factor, sizeof factor);
    words[2] = (int32_t)(uint32_t)seed;
    words[3] = (int32_t)(uint32_t)(seed >> 32);
}

void attncl__sample(attncl_graph *g, attncl_value logits, attncl_value step, attncl_value window)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, step, "step", &d))
        return;
    const int64_t words = SAMPLING_WORDS, rows[2] = {SAMPLING_ROWS, d.dim[0] - 1};
    const attncl_value sampling = attncl_graph_input(g, "sampling", ATTNCL_I32, 1, &words);
    const attncl_value drawn = attncl_graph_state(g, "drawn", ATTNCL_I32, 2, rows);
    const attncl_value tokens = attncl__graph_add(
        g, &attncl__op_sample_fwd, NULL, IN(logits, sampling, attncl_slice(g, step, 0, 0, 1)));

    attncl__graph_add(g, &attncl__op_sample_store_fwd, NULL, IN(tokens, step, drawn, window));
}
