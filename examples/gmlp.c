// SPDX-License-Identifier: MIT
//
// One causal gMLP block over [T, B, C]: x + proj2(gating(GELU(proj1(norm(x))))).
//
//     gmlp [DEVICE]

#include "example.h"

// T positions, B sequences, C channels, F hidden channels.
enum { T = 48, B = 2, C = 32, F = 64 };

static attncl_status work(attncl_graph *g)
{
    static float x[T * B * C], y[T * B * C];
    const int64_t dim[] = {T, B, C};
    uint32_t seed = 1;
    attncl_gmlp_params p = ATTNCL_GMLP_PARAMS_INIT;
    attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;

    p.norm_weight = example_ones(g, C);
    p.norm_bias = example_weight(g, 0, C, 0.1f, &seed);
    p.proj1_weight = example_weight(g, F, C, 0.3f, &seed);
    p.proj1_bias = example_weight(g, 0, F, 0.1f, &seed);
    p.sgu = &gate;
    gate.norm_weight = example_ones(g, F / 2);
    gate.norm_bias = example_weight(g, 0, F / 2, 0.1f, &seed);
    gate.weight = example_weight(g, T, T, 0.01f, &seed); // positions mix here
    gate.bias = example_ones(g, T);
    p.proj2_weight = example_weight(g, C, F / 2, 0.3f, &seed);
    p.proj2_bias = example_weight(g, 0, C, 0.1f, &seed);

    const attncl_value in = attncl_graph_input(g, "x", ATTNCL_F32, 3, dim);
    attncl_graph_output(g, "y", attncl_gmlp_block(g, &p, in, 1, ATTNCL_NONE_VALUE));
    return example_run(g, "gmlp", x, T * B * C, y, T * B * C, &seed);
}

int main(int argc, char **argv)
{
    return example_main("gmlp", argc > 1 ? argv[1] : NULL, work);
}
