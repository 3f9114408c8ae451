// SPDX-License-Identifier: MIT
// Recurrent layers: their parameters, and a state of each.
#ifndef ATTNCL_MODEL_BLOCK_RNN_H
#define ATTNCL_MODEL_BLOCK_RNN_H

#include "attncl/recurrent.h"
#include "model/dropout_sites.h"
#include "model/params.h"

struct rnn_settings {
    int64_t input, hidden, n_layers;
    bool xavier; // the weights of a new model
};

// Parameters named weight_ih_l0 and so on; `ret` has space for n_layers, NULL: loading.
void attncl__rnn_params(struct params *p, const struct rnn_settings *s, attncl_gru_params *ret);

// Layers and a state of each, for a graph.
struct rnn {
    size_t n;
    attncl_gru_params *layers;
    attncl_value *states; // null values: zeros
    attncl_dropout_desc *dropped;
};
attncl_status attncl__rnn_create(int64_t n_layers, struct rnn *ret);
void attncl__rnn_free(struct rnn *rnn);

// Gives every layer but the first dropout of what it reads, at the next places.
void attncl__rnn_drop(struct rnn *rnn, struct dropout_sites *sites);

// The states as [L, B, H].
attncl_value attncl__rnn_stack_states(attncl_graph *g, const struct rnn *rnn);

// ERR_SHAPE for an input without a step.
attncl_status attncl__check_steps(const char *name, int64_t n_steps);

#endif
