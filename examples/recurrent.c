// SPDX-License-Identifier: MIT
//
// Two layers of gated recurrent units with random weights, over a sequence at once and over its
// halves: the states after the first half go into the second.
//
//     recurrent [DEVICE]

#include <math.h>

#include "example.h"

// T steps, B sequences, I channels in, H channels of a state, LAYERS layers.
enum { T = 32, B = 4, I = 24, H = 40, LAYERS = 2 };

// Steps [begin, end) of x; `states` are replaced by those after the last.
static attncl_value run_layers(attncl_graph *g, const attncl_gru_params *layers, attncl_value x,
                               int begin, int end, attncl_value *states)
{
    return attncl_gru_layers(g, layers, LAYERS, attncl_slice(g, x, 0, begin, end),
                             ATTNCL_LAYOUT_TIME_FIRST, states);
}

// A mistake made here is reported by attncl_graph_compile().
static void build(attncl_graph *g, uint32_t *seed)
{
    const int64_t dim[] = {T, B, I};
    const attncl_gru_params empty = ATTNCL_GRU_PARAMS_INIT;
    attncl_gru_params layers[LAYERS];
    attncl_value whole[LAYERS] = {ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT}; // null: zeros
    attncl_value halves[LAYERS] = {ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT}, y[2];
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 3, dim);

    for (int k = 0; k < LAYERS; k++) {
        layers[k] = empty;
        layers[k].weight_ih = example_weight(g, 3 * H, k == 0 ? I : H, 0.2f, seed);
        layers[k].bias_ih = example_weight(g, 0, 3 * H, 0.2f, seed);
        layers[k].weight_hh = example_weight(g, 3 * H, H, 0.2f, seed);
        layers[k].bias_hh = example_weight(g, 0, 3 * H, 0.2f, seed);
    }
    attncl_graph_output(g, "y", run_layers(g, layers, x, 0, T, whole));
    y[0] = run_layers(g, layers, x, 0, T / 2, halves);
    y[1] = run_layers(g, layers, x, T / 2, T, halves);
    attncl_graph_output(g, "in halves", attncl_concat(g, 2, y, 0));
}

static attncl_status work(attncl_graph *g)
{
    static float x[T * B * I], y[T * B * H], in_halves[T * B * H];
    uint32_t seed = 1;
    float apart = 0;

    build(g, &seed);
    attncl_status status = example_run(g, "recurrent", x, T * B * I, y, T * B * H, &seed);
    if (status == ATTNCL_OK)
        status = attncl_graph_read(g, "in halves", in_halves, sizeof in_halves);
    for (int i = 0; i < T * B * H; i++)
        if (!(fabsf(y[i] - in_halves[i]) <= apart) && !isnan(apart))
            apart = fabsf(y[i] - in_halves[i]); // NaN stays
    if (status == ATTNCL_OK)
        printf("recurrent: %d steps at once and in halves: at most %g apart\n", T, (double)apart);
    return status;
}

int main(int argc, char **argv)
{
    return example_main("recurrent", argc > 1 ? argv[1] : NULL, work);
}
