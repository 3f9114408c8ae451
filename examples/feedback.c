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

// What a layer's parameters point to.
struct layer {
    attncl_feedback_params attn;
    attncl_ffn_params ffn;
};

static attncl_feedback_layer_params make_layer(attncl_graph *g, struct layer *l, uint32_t *seed)
{
    const attncl_feedback_params attn = ATTNCL_FEEDBACK_PARAMS_INIT;
    const attncl_ffn_params ffn = ATTNCL_FFN_PARAMS_INIT;
    attncl_feedback_layer_params p = ATTNCL_FEEDBACK_LAYER_PARAMS_INIT;

    l->attn = attn;
    l->ffn = ffn;
    p.attn = &l->attn;
    p.ffn = &l->ffn;
    p.norm_attn_weight = example_ones(g, C);
    p.norm_attn_bias = example_weight(g, 0, C, 0.1f, seed);
    l->attn.query_weight = example_weight(g, C, C, 0.3f, seed);
    l->attn.key_weight = example_weight(g, C, C, 0.3f, seed);
    l->attn.value_weight = example_weight(g, C, C, 0.3f, seed);
    l->attn.value_bias = example_weight(g, 0, C, 0.1f, seed);
    l->attn.output_weight = example_weight(g, C, C, 0.3f, seed);
    l->attn.output_bias = example_weight(g, 0, C, 0.1f, seed);
    l->attn.key_pos_embeddings = weight3(g, P, H, C / H, seed);
    // no key_pos_bias: joint scores
    l->attn.query_pos_bias = example_weight(g, H, C / H, 0.1f, seed);
    p.norm_ffn_weight = example_ones(g, C);
    p.norm_ffn_bias = example_weight(g, 0, C, 0.1f, seed);
    l->ffn.layer1_weight = example_weight(g, F, C, 0.3f, seed);
    l->ffn.layer1_bias = example_weight(g, 0, F, 0.1f, seed);
    l->ffn.layer2_weight = example_weight(g, C, F, 0.3f, seed);
    l->ffn.layer2_bias = example_weight(g, 0, C, 0.1f, seed);
    p.activation = ATTNCL_RELU;
    return p;
}

static attncl_status work(attncl_graph *g)
{
    static float x[T * B * C], y[T * B * C];
    const int64_t dim[] = {T, B, C};
    uint32_t seed = 1;
    attncl_feedback_layer_params layers[LAYERS];
    struct layer parts[LAYERS];
    attncl_feedback_transformer_params p = ATTNCL_FEEDBACK_TRANSFORMER_PARAMS_INIT;

    for (int i = 0; i < LAYERS; i++)
        layers[i] = make_layer(g, &parts[i], &seed);
    p.layers = layers;
    p.n_layers = LAYERS;
    p.n_heads = H;
    p.weights = example_ones(g, LAYERS + 1); // the input and every layer count alike
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
