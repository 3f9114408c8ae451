// SPDX-License-Identifier: MIT
//
// A graph of one AFT-local layer with random weights: built, compiled once, run three times.
//
//     one_layer [DEVICE]

#include <attncl/attncl.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

// T positions, B sequences, C channels.
enum { T = 64, B = 2, C = 32, WINDOW = 8 };

// Query, key, value and output map with their biases, then the position bias [T, T].
enum { N_WEIGHTS = 9, LARGEST = T * T > C *C ? T *T : C *C };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != ATTNCL_OK) {                                                                 \
            fprintf(stderr, "one_layer: %s\n", attncl_last_error());                               \
            goto done;                                                                             \
        }                                                                                          \
    } while (0)

// Weights live on the device, apart from any graph.
static attncl_status make_weights(attncl_context *context, attncl_tensor **weights, uint32_t *seed)
{
    static const int64_t matrix[] = {C, C}, bias[] = {C}, positions[] = {T, T};
    static float data[LARGEST];

    for (int i = 0; i < N_WEIGHTS; i++) {
        const int rank = i % 2 == 0 ? 2 : 1;
        const int64_t *dim = i == N_WEIGHTS - 1 ? positions : rank == 2 ? matrix : bias;
        example_fill(data, LARGEST, 0.2f, seed);
        const attncl_status status =
            attncl_tensor_create(context, ATTNCL_F32, rank, dim, ATTNCL_F32, data, &weights[i]);
        if (status != ATTNCL_OK)
            return status;
    }
    return ATTNCL_OK;
}

// y = x + layer(x, x, x), causal.  A mistake made here is reported by attncl_graph_compile().
static void build(attncl_graph *g, attncl_tensor **weights)
{
    const int64_t dim[] = {T, B, C};
    const attncl_aft_desc desc = {sizeof desc, ATTNCL_AFT_LOCAL, WINDOW, 1};
    attncl_value w[N_WEIGHTS];

    for (int i = 0; i < N_WEIGHTS; i++)
        w[i] = attncl_graph_weight(g, weights[i]);
    const attncl_aft_params params = {w[0], w[1], w[2], w[3], w[4], w[5], w[8], w[6], w[7]};
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 3, dim);
    attncl_graph_output(g, "y", attncl_aft(g, &desc, &params, x, x, x, attncl_value_none(), x));
}

int main(int argc, char **argv)
{
    static float x[T * B * C], y[T * B * C];
    int result = EXIT_FAILURE;
    uint32_t seed = 1;
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

    for (int run = 0; run < 3; run++) {
        double sum = 0;
        example_fill(x, T * B * C, 1.0f, &seed);
        CHECK(attncl_graph_write(g, "x", x, sizeof x));
        CHECK(attncl_graph_run(g));
        CHECK(attncl_graph_read(g, "y", y, sizeof y));
        for (int i = 0; i < T * B * C; i++)
            sum += (double)y[i] * y[i];
        printf("run %d on %s: mean square of y %.6f\n", run, device.name, sum / (T * B * C));
    }
    result = EXIT_SUCCESS;

done:
    attncl_graph_destroy(g);
    for (int i = 0; i < N_WEIGHTS; i++)
        attncl_tensor_destroy(weights[i]);
    if (attncl_context_destroy(context) != ATTNCL_OK) {
        fprintf(stderr, "one_layer: %s\n", attncl_last_error());
        result = EXIT_FAILURE;
    }
    return result;
}
