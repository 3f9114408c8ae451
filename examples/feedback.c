// SPDX-License-Identifier: MIT
//
// A Feedback Transformer over a sequence [T, B, C]: every layer of a step attends to one memory of
// the steps before.
//
//     feedback [DEVICE]

#include "example.h"

// T positions, B sequences, C channels in H heads, F hidden channels, at most P memories.
enum { T = 24, B = 2, C = 16, H = 2, F = 32, P = 32, LAYERS = 2 };

static attncl_value weight3(attncl_graph *g, int64_t a, int64_t b, int64_t c, uint32_t *seed)
{
    const int64_t dim[] = {a, b, c};
    return attncl_reshape(g, example_weight(g, a, b * c, 0.1f, seed), 3, dim);
}

static attncl_feedback_layer_params make_layer(attncl_graph *g, uint32_t *seed)
{
    const attncl_value none = attncl_value_none();
    attncl_feedback_layer_params p;

    p.norm_attn_weight = example_ones(g, C);
    p.norm_attn_bias = example_weight(g, 0, C, 0.1f, seed);
    p.attn.query_weight = example_weight(g, C, C, 0.3f, seed);
    p.attn.key_weight = example_weight(g, C, C, 0.3f, seed);
    p.attn.value_weight = example_weight(g, C, C, 0.3f, seed);
    p.attn.value_bias = example_weight(g, 0, C, 0.1f, seed);
    p.attn.output_weight = example_weight(g, C, C, 0.3f, seed);
    p.attn.output_bias = example_weight(g, 0, C, 0.1f, seed);
    p.attn.key_pos_embeddings = weight3(g, P, H, C / H, seed);
    p.attn.query_pos_bias = example_weight(g, H, C / H, 0.1f, seed);
    p.attn.key_pos_bias = none; // joint scores
    p.norm_ffn_weight = example_ones(g, C);
    p.norm_ffn_bias = example_weight(g, 0, C, 0.1f, seed);
    p.ffn.layer1_weight = example_weight(g, F, C, 0.3f, seed);
    p.ffn.layer1_bias = example_weight(g, 0, F, 0.1f, seed);
    p.ffn.gate_weight = p.ffn.gate_bias = none;
    p.ffn.layer2_weight = example_weight(g, C, F, 0.3f, seed);
    p.ffn.layer2_bias = example_weight(g, 0, C, 0.1f, seed);
    p.activation = ATTNCL_RELU;
    return p;
}

static attncl_status work(attncl_graph *g)
{
    static float x[T * B * C], y[T * B * C];
    const int64_t dim[] = {T, B, C};
    uint32_t seed = 1;
    attncl_feedback_layer_params layers[LAYERS];
    attncl_feedback_transformer_params p;

    for (int i = 0; i < LAYERS; i++)
        layers[i] = make_layer(g, &seed);
    p.layers = layers;
    p.n_layers = LAYERS;
    p.n_heads = H;
    p.weights = example_ones(g, LAYERS + 1); // the input and every layer count alike
    p.key_value_weight = p.key_value_bias = attncl_value_none();
    p.norm_weight = example_ones(g, C);
    p.norm_bias = example_weight(g, 0, C, 0.1f, &seed);

    const attncl_value in = attncl_graph_input(g, "x", ATTNCL_F32, 3, dim);
    attncl_graph_output(g, "y", attncl_feedback_transformer(g, &p, in, NULL));
    return example_run(g, "feedback", x, T * B * C, y, T * B * C, &seed);
}

int main(int argc, char **argv)
{
    return example_main("feedback", argc > 1 ? argv[1] : NULL, work);
}
