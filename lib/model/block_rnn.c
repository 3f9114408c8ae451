// SPDX-License-Identifier: MIT
//
// Recurrent layers: parameters with PyTorch's names, and states.

#include <inttypes.h>
#include <stdio.h>

#include "model/block_layers.h"

static attncl_gru_params declare_layer(struct params *p, const struct rnn_settings *s, int64_t k,
                                       bool reversed)
{
    const int64_t hidden = s->hidden, gates = s->plain ? hidden : 3 * hidden;
    const int64_t input = k == 0 ? s->input : s->bidirectional ? 2 * hidden : hidden;
    static const char *const kinds[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    char names[4][48];
    for (int i = 0; i < 4; ++i)
        snprintf(names[i], sizeof names[i], "%s_l%" PRId64 "%s", kinds[i], k,
                 reversed ? "_reverse" : "");

    attncl_gru_params layer = ATTNCL_GRU_PARAMS_INIT;
    const struct param_init standard = attncl__init_fan_in(hidden);
    const struct param_init ih = s->xavier ? attncl__init_xavier(input, gates) : standard;
    const struct param_init hh = s->xavier ? attncl__init_xavier(hidden, gates) : standard;
    layer.weight_ih = PARAM(p, names[0], ih, gates, input);
    layer.weight_hh = PARAM(p, names[1], hh, gates, hidden);
    layer.bias_ih = PARAM(p, names[2], standard, gates);
    layer.bias_hh = PARAM(p, names[3], standard, gates);
    layer.plain = s->plain;
    layer.reversed = reversed;
    return layer;
}

// A failure, such as a missing layer, ends the traversal, however large n_layers is.
void attncl__rnn_params(struct params *p, const struct rnn_settings *s, struct rnn *rnn)
{
    const int64_t n_directions = s->bidirectional ? 2 : 1;
    for (int64_t i = 0; i < s->n_layers * n_directions && p->status == ATTNCL_OK; ++i)
        rnn->layers[(size_t)i % rnn->n] =
            declare_layer(p, s, i / n_directions, i % n_directions == 1);
}

void attncl__rnn_free(struct rnn *rnn)
{
    attncl__free(rnn->layers);
    attncl__free(rnn->states);
    attncl__free(rnn->dropped);
}

bool attncl__rnn_create(struct build *b, int64_t n_layers, struct rnn *ret)
{
    const size_t n = b->graph ? (size_t)n_layers : 1;
    *ret = (struct rnn){.n = n,
                        .layers = attncl__alloc_array(n, sizeof *ret->layers),
                        .states = attncl__alloc_array(n, sizeof *ret->states),
                        .dropped = attncl__alloc_array(n, sizeof *ret->dropped)};
    if (ret->layers && ret->states && ret->dropped)
        return true;
    attncl__rnn_free(ret);
    attncl__build_fail(b, FAIL(ATTNCL_ERR_NO_MEMORY, "%zu layers", n));
    return false;
}

void attncl__rnn_set_dropout(struct rnn *rnn, attncl_dropout_desc *next)
{
    for (size_t k = 1; k < rnn->n; ++k) {
        rnn->dropped[k] = attncl__next_dropout(next, 0);
        rnn->layers[k].dropout = &rnn->dropped[k];
    }
}

attncl_value attncl__rnn_stack_states(attncl_graph *g, const struct rnn *rnn)
{
    const attncl_shape one = attncl_graph_shape(g, rnn->states[0]);
    const int64_t dim[3] = {(int64_t)rnn->n, one.dim[0], one.dim[1]};
    return attncl_reshape(g, attncl_concat(g, rnn->n, rnn->states, 0), 3, dim);
}
