// SPDX-License-Identifier: MIT
//
// Causal multi-head self-attention over [T, B, C], with the attention weights.
//
//     attention [DEVICE]

#include "example.h"

// T positions, B sequences, C channels in H heads.
enum { T = 48, B = 2, C = 32, H = 4 };

static attncl_status work(attncl_graph *g)
{
    static float x[T * B * C], y[T * B * C], weights[B * H * T * T];
    const int64_t dim[] = {T, B, C};
    uint32_t seed = 1;
    attncl_attention_desc desc = ATTNCL_ATTENTION_DESC_INIT;
    attncl_mha_params p = ATTNCL_MHA_PARAMS_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_value seen;

    desc.causal = 1;
    p.query_weight = example_weight(g, C, C, 0.3f, &seed);
    p.key_weight = example_weight(g, C, C, 0.3f, &seed);
    p.value_weight = example_weight(g, C, C, 0.3f, &seed);
    p.output_weight = example_weight(g, C, C, 0.3f, &seed);

    in.query = in.key = in.value = attncl_graph_input(g, "x", ATTNCL_F32, 3, dim);
    attncl_graph_output(g, "y", attncl_multi_head_attention(g, &desc, &p, H, &in, &seen));
    attncl_graph_output(g, "weights", seen);

    attncl_status status = example_run(g, "attention", x, T * B * C, y, T * B * C, &seed);
    if (status == ATTNCL_OK)
        status = attncl_graph_read(g, "weights", weights, sizeof weights);
    if (status == ATTNCL_OK)
        printf("attention: the first position attends to itself with weight %.1f, to the next with "
               "%.1f\n",
               (double)weights[0], (double)weights[1]);
    return status;
}

int main(int argc, char **argv)
{
    return example_main("attention", argc > 1 ? argv[1] : NULL, work);
}
