// SPDX-License-Identifier: MIT
//
// Training: a causal gMLP block between an embedding and a linear map learns which character
// follows in a line of text.  One graph holds the loss, its gradients and Adam's update of the
// weights: each run of it is a step.
//
//     train [DEVICE]

#include <string.h>

#include "example.h"

// Positions, sequences, channels, hidden channels, characters.
enum { T = 24, B = 8, C = 16, F = 32, V = 27, STEPS = 60 };

static const char text[] = "in the beginning was the word and the word was read by a machine ";

enum {
    EMBEDDING,
    NORM_WEIGHT,
    NORM_BIAS,
    PROJ1_WEIGHT,
    PROJ1_BIAS,
    GATE_NORM_WEIGHT,
    GATE_NORM_BIAS,
    GATE_WEIGHT,
    GATE_BIAS,
    PROJ2_WEIGHT,
    PROJ2_BIAS,
    HEAD_WEIGHT,
    HEAD_BIAS,
    N_PARAMS
};

// Shape ([columns] when rows is 0), and where a parameter starts: uniform in middle +- spread.
static const struct start {
    int64_t rows, columns;
    float middle, spread;
} starts[N_PARAMS] = {
    {V, C, 0, 1},     {0, C, 1, 0},     {0, C, 0, 0},     {F, C, 0, 0.25f}, {0, F, 0, 0},
    {0, F / 2, 1, 0}, {0, F / 2, 0, 0}, {T, T, 0, 0.01f}, {0, T, 1, 0},     {C, F / 2, 0, 0.25f},
    {0, C, 0, 0},     {V, C, 0, 0.25f}, {0, V, 0, 0},
};

static attncl_status make_params(attncl_context *context, attncl_tensor **params)
{
    static float data[V * C + F * C + T * T];
    uint32_t seed = 1;

    for (int i = 0; i < N_PARAMS; i++) {
        const struct start *s = &starts[i];
        const int64_t dim[] = {s->rows, s->columns};
        const size_t n = (size_t)((s->rows ? s->rows : 1) * s->columns);
        example_fill(data, n, s->spread, &seed);
        for (size_t k = 0; k < n; k++)
            data[k] += s->middle;
        const attncl_status status =
            attncl_tensor_create(context, ATTNCL_F32, s->rows ? 2 : 1, s->rows ? dim : dim + 1,
                                 ATTNCL_F32, data, &params[i]);
        if (status != ATTNCL_OK)
            return status;
    }
    return ATTNCL_OK;
}

static attncl_value model_loss(attncl_graph *g, const attncl_value *w)
{
    const int64_t dim[] = {T, B};
    attncl_sgu_params gate = ATTNCL_SGU_PARAMS_INIT;
    attncl_gmlp_params block = ATTNCL_GMLP_PARAMS_INIT;

    gate.norm_weight = w[GATE_NORM_WEIGHT];
    gate.norm_bias = w[GATE_NORM_BIAS];
    gate.weight = w[GATE_WEIGHT];
    gate.bias = w[GATE_BIAS];
    block.norm_weight = w[NORM_WEIGHT];
    block.norm_bias = w[NORM_BIAS];
    block.proj1_weight = w[PROJ1_WEIGHT];
    block.proj1_bias = w[PROJ1_BIAS];
    block.sgu = &gate;
    block.proj2_weight = w[PROJ2_WEIGHT];
    block.proj2_bias = w[PROJ2_BIAS];
    const attncl_value tokens = attncl_graph_index_input(g, "tokens", 2, dim, 0, V);
    const attncl_value targets = attncl_graph_index_input(g, "targets", 2, dim, 0, V);
    const attncl_value x = attncl_embedding(g, tokens, w[EMBEDDING], 1.0f);
    const attncl_value y = attncl_gmlp_block(g, &block, x, 1, attncl_value_none());
    const attncl_value logits = attncl_linear(g, y, w[HEAD_WEIGHT], w[HEAD_BIAS]);
    return attncl_cross_entropy(g, logits, targets, ATTNCL_REDUCE_MEAN, -1);
}

// A mistake made here is reported by attncl_graph_compile().
static void build(attncl_graph *g, attncl_tensor **params)
{
    attncl_adam_desc adam = ATTNCL_ADAM_DESC_INIT;
    attncl_value w[N_PARAMS], gradients[N_PARAMS], clipped[N_PARAMS];

    for (int i = 0; i < N_PARAMS; i++)
        w[i] = attncl_graph_weight(g, params[i]);
    const attncl_value loss = model_loss(g, w);
    attncl_graph_gradient(g, 1, &loss, NULL, N_PARAMS, w, gradients);
    const attncl_value norm =
        attncl_clip_grad_norm(g, N_PARAMS, gradients, 1.0, ATTNCL_CLIP_EPSILON, clipped);
    attncl_graph_output(g, "loss", loss);
    attncl_graph_output(g, "norm", norm);

    adam.learning_rate = 0.02;
    const attncl_value taken = attncl_graph_index_input(g, "taken", 0, NULL, 0, STEPS);
    const attncl_value rates = attncl_adam_rates(g, &adam, NULL, taken);
    for (int i = 0; i < N_PARAMS; i++) {
        const attncl_shape shape = attncl_graph_shape(g, w[i]);
        attncl_adam_values values = ATTNCL_ADAM_VALUES_INIT;
        char name[32];
        values.param = w[i];
        snprintf(name, sizeof name, "mean.%d", i);
        values.exp_avg = attncl_graph_state(g, name, ATTNCL_F32, shape.rank, shape.dim);
        snprintf(name, sizeof name, "mean_square.%d", i);
        values.exp_avg_sq = attncl_graph_state(g, name, ATTNCL_F32, shape.rank, shape.dim);
        attncl_adam_update(g, &adam, rates, clipped[i], &values);
    }
}

// B windows of the text, which has no end, and the characters after theirs: [T, B].
static void draw(int32_t *tokens, int32_t *targets, uint32_t *seed)
{
    const size_t length = strlen(text);

    for (int b = 0; b < B; b++) {
        *seed = *seed * 1664525u + 1013904223u;
        for (size_t t = 0, at = *seed >> 8; t < T; t++, at++) {
            const char now = text[at % length], next = text[(at + 1) % length];
            tokens[t * B + (size_t)b] = now == ' ' ? 26 : now - 'a';
            targets[t * B + (size_t)b] = next == ' ' ? 26 : next - 'a';
        }
    }
}

static attncl_status take_step(attncl_graph *g, int32_t taken, uint32_t *seed, float *loss,
                               float *norm)
{
    static int32_t tokens[T * B], targets[T * B];
    attncl_status status;

    draw(tokens, targets, seed);
    status = attncl_graph_write(g, "tokens", tokens, sizeof tokens);
    if (status == ATTNCL_OK)
        status = attncl_graph_write(g, "targets", targets, sizeof targets);
    if (status == ATTNCL_OK)
        status = attncl_graph_write(g, "taken", &taken, sizeof taken);
    if (status == ATTNCL_OK)
        status = attncl_graph_run(g);
    if (status == ATTNCL_OK)
        status = attncl_graph_read(g, "loss", loss, sizeof *loss);
    if (status == ATTNCL_OK)
        status = attncl_graph_read(g, "norm", norm, sizeof *norm);
    return status;
}

// fall_ret: the last loss as a part of the first.
static attncl_status train(attncl_graph *g, attncl_tensor **params, float *fall_ret)
{
    uint32_t seed = 7;
    float loss = 0, norm = 0, first = 0;

    build(g, params);
    attncl_status status = attncl_graph_compile(g, NULL);
    for (int32_t i = 0; i < STEPS && status == ATTNCL_OK; i++) {
        status = take_step(g, i, &seed, &loss, &norm);
        if (i == 0)
            first = loss;
        if (status == ATTNCL_OK && (i % 10 == 0 || i == STEPS - 1))
            printf("step %d: loss %.4f, gradient %.3f\n", (int)i, loss, norm);
    }
    *fall_ret = loss / first;
    return status;
}

int main(int argc, char **argv)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *context = NULL;
    attncl_tensor *params[N_PARAMS] = {NULL};
    attncl_graph *g = NULL;
    float fall = 0;

    options.device = argc > 1 ? argv[1] : NULL;
    attncl_status status = attncl_context_create(&options, &context);
    if (status == ATTNCL_OK)
        status = make_params(context, params);
    if (status == ATTNCL_OK)
        status = attncl_graph_create(context, &g);
    if (status == ATTNCL_OK)
        status = train(g, params, &fall);
    if (status != ATTNCL_OK) {
        fprintf(stderr, "train: %s\n", attncl_last_error());
    } else if (!(fall < 0.25f)) {
        fprintf(stderr, "train: the loss fell to %.2f of the first only\n", fall);
        status = ATTNCL_ERR_STATE;
    }
    attncl_graph_destroy(g); // before the tensors it uses
    for (int i = 0; i < N_PARAMS; i++)
        attncl_tensor_destroy(params[i]);
    if (attncl_context_destroy(context) != ATTNCL_OK)
        status = ATTNCL_ERR_STATE;
    return status == ATTNCL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
