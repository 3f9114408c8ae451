// SPDX-License-Identifier: MIT
//
// A graph of one causal AFT-local layer with random weights: built, compiled once, run three times.
//
//     one_layer [DEVICE]

#include "example.h"

// T positions, B sequences, C channels.
enum { T = 64, B = 2, C = 32, WINDOW = 8 };

// y = x + layer(x, x, x).  A mistake made here is reported by attncl_graph_compile().
static void build(attncl_graph *g, uint32_t *seed)
{
    const int64_t dim[] = {T, B, C};
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    attncl_aft_params p = ATTNCL_AFT_PARAMS_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;

    desc.window = WINDOW;
    desc.causal = 1;
    p.query_weight = example_weight(g, C, C, 0.2f, seed);
    p.query_bias = example_weight(g, 0, C, 0.2f, seed);
    p.key_weight = example_weight(g, C, C, 0.2f, seed);
    p.key_bias = example_weight(g, 0, C, 0.2f, seed);
    p.value_weight = example_weight(g, C, C, 0.2f, seed);
    p.value_bias = example_weight(g, 0, C, 0.2f, seed);
    p.pos_bias = example_weight(g, T, T, 0.2f, seed);
    p.output_weight = example_weight(g, C, C, 0.2f, seed);
    p.output_bias = example_weight(g, 0, C, 0.2f, seed);
    in.query = in.key = in.value = in.residual = attncl_graph_input(g, "x", ATTNCL_F32, 3, dim);
    attncl_graph_output(g, "y", attncl_aft(g, &desc, &p, &in));
}

static attncl_status work(attncl_graph *g)
{
    static float x[T * B * C], y[T * B * C];
    uint32_t seed = 1;

    build(g, &seed);
    attncl_status status = attncl_graph_compile(g, NULL);
    for (int run = 0; run < 3 && status == ATTNCL_OK; run++)
        status = example_step(g, "one_layer", x, T * B * C, y, T * B * C, &seed);
    return status;
}

int main(int argc, char **argv)
{
    return example_main("one_layer", argc > 1 ? argv[1] : NULL, work);
}
