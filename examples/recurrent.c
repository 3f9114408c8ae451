// SPDX-License-Identifier: MIT
//
// Two layers of gated recurrent units with random weights, over a sequence at once and over its
// halves: the states after the first half go into the second.
//
//     recurrent [DEVICE]

#include <attncl/attncl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

// T steps, B sequences, I channels in, H channels of a state, LAYERS layers.
enum { T = 32, B = 4, I = 24, H = 40, LAYERS = 2, N_WEIGHTS = 4 * LAYERS, LARGEST = 3 * H * H };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != ATTNCL_OK) {                                                                 \
            fprintf(stderr, "recurrent: %s\n", attncl_last_error());                               \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

// Weight and bias of the input, weight and bias of the state, layer by layer.
static attncl_status make_weights(attncl_context *context, attncl_tensor **weights, uint32_t *seed)
{
    static float data[LARGEST];

    for (int i = 0; i < N_WEIGHTS; i++) {
        const int64_t dim[] = {3 * H, i == 0 ? I : H};
        example_fill(data, LARGEST, 0.2f, seed);
        const attncl_status status = attncl_tensor_create(context, ATTNCL_F32, i % 2 == 0 ? 2 : 1,
                                                          dim, ATTNCL_F32, data, &weights[i]);
        if (status != ATTNCL_OK)
            return status;
    }
    return ATTNCL_OK;
}

// Steps [begin, end) of x; `states` are replaced by those after the last.
static attncl_value run_layers(attncl_graph *g, attncl_tensor **weights, attncl_value x, int begin,
                               int end, attncl_value *states)
{
    attncl_gru_params layers[LAYERS];

    for (int k = 0; k < LAYERS; k++) {
        layers[k].weight_ih = attncl_graph_weight(g, weights[4 * k]);
        layers[k].bias_ih = attncl_graph_weight(g, weights[4 * k + 1]);
        layers[k].weight_hh = attncl_graph_weight(g, weights[4 * k + 2]);
        layers[k].bias_hh = attncl_graph_weight(g, weights[4 * k + 3]);
    }
    return attncl_gru_layers(g, layers, LAYERS, attncl_slice(g, x, 0, begin, end),
                             ATTNCL_LAYOUT_TIME_FIRST, states);
}

// A mistake made here is reported by attncl_graph_compile().
static void build(attncl_graph *g, attncl_tensor **weights)
{
    const int64_t dim[] = {T, B, I};
    attncl_value whole[LAYERS] = {ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT}; // null: zeros
    attncl_value halves[LAYERS] = {ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT};
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 3, dim);

    attncl_graph_output(g, "at once", run_layers(g, weights, x, 0, T, whole));
    attncl_value y[2];
    y[0] = run_layers(g, weights, x, 0, T / 2, halves);
    y[1] = run_layers(g, weights, x, T / 2, T, halves);
    attncl_graph_output(g, "in halves", attncl_concat(g, 2, y, 0));
}

int main(int argc, char **argv)
{
    static float x[T * B * I], at_once[T * B * H], in_halves[T * B * H];
    int result = EXIT_FAILURE;
    uint32_t seed = 1;
    float apart = 0;
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *context = NULL;
    attncl_tensor *weights[N_WEIGHTS] = {NULL};
    attncl_graph *g = NULL;
    attncl_device_info device;

    options.device = argc > 1 ? argv[1] : NULL;
    CHECK(attncl_context_create(&options, &context));
    CHECK(attncl_context_device(context, &device));
    CHECK(make_weights(context, weights, &seed));
    CHECK(attncl_graph_create(context, &g));
    build(g, weights);
    CHECK(attncl_graph_compile(g, NULL));

    example_fill(x, T * B * I, 1.0f, &seed);
    CHECK(attncl_graph_write(g, "x", x, sizeof x));
    CHECK(attncl_graph_run(g));
    CHECK(attncl_graph_read(g, "at once", at_once, sizeof at_once));
    CHECK(attncl_graph_read(g, "in halves", in_halves, sizeof in_halves));
    for (int i = 0; i < T * B * H; i++)
        apart = fmaxf(apart, fabsf(at_once[i] - in_halves[i]));
    printf("%d steps on %s, at once and in halves: at most %g apart\n", T, device.name, apart);
    result = apart < 1e-5f ? EXIT_SUCCESS : EXIT_FAILURE;

done:
    attncl_graph_destroy(g);
    for (int i = 0; i < N_WEIGHTS; i++)
        attncl_tensor_destroy(weights[i]);
    if (attncl_context_destroy(context) != ATTNCL_OK) {
        fprintf(stderr, "recurrent: %s\n", attncl_last_error());
        result = EXIT_FAILURE;
    }
    return result;
}
