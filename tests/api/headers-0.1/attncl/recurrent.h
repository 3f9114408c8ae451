// SPDX-License-Identifier: MIT
#ifndef ATTNCL_RECURRENT_H
#define ATTNCL_RECURRENT_H
#include "attncl/graph.h"
#include "attncl/kinds.h"
ATTNCL_BEGIN
typedef struct attncl_gru_params {
    size_t struct_size;
    attncl_value weight_ih, bias_ih;
    attncl_value weight_hh, bias_hh;
} attncl_gru_params;
#define ATTNCL_GRU_PARAMS_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_gru_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,        \
            ATTNCL_VALUE_INIT                                                                      \
    }
ATTNCL_API attncl_value attncl_gru_cell(attncl_graph *g, const attncl_gru_params *params,
                                        attncl_value xi, attncl_value h);
ATTNCL_API attncl_value attncl_gru(attncl_graph *g, const attncl_gru_params *params, attncl_value x,
                                   attncl_value h0, attncl_layout layout, attncl_value *last_ret);
ATTNCL_API attncl_value attncl_gru_layers(attncl_graph *g, const attncl_gru_params *layers,
                                          size_t n_layers, attncl_value x, attncl_layout layout,
                                          attncl_value *states);
typedef struct attncl_bahdanau_params {
    size_t struct_size;
    attncl_value query_weight;
    attncl_value key_weight;
    attncl_value score_weight;
    const attncl_gru_params *layers;
    size_t n_layers;
} attncl_bahdanau_params;
#define ATTNCL_BAHDANAU_PARAMS_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_bahdanau_params), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,   \
            NULL, 0                                                                                \
    }
typedef struct attncl_bahdanau_source {
    size_t struct_size;
    attncl_value keys;
    attncl_value values;
    attncl_value valid_lens;
} attncl_bahdanau_source;
#define ATTNCL_BAHDANAU_SOURCE_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_bahdanau_source), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT    \
    }
ATTNCL_API void attncl_bahdanau_attend(attncl_graph *g, const attncl_bahdanau_params *params,
                                       attncl_value outputs, attncl_value valid_lens,
                                       attncl_bahdanau_source *source_ret);
ATTNCL_API attncl_value attncl_bahdanau_input(attncl_graph *g, const attncl_bahdanau_params *params,
                                              attncl_value embedded);
ATTNCL_API attncl_value attncl_bahdanau_step(attncl_graph *g, const attncl_bahdanau_params *params,
                                             const attncl_bahdanau_source *source,
                                             attncl_value input, attncl_value *states,
                                             attncl_value *weights_ret);
ATTNCL_API attncl_value attncl_bahdanau_decoder(attncl_graph *g,
                                                const attncl_bahdanau_params *params,
                                                const attncl_bahdanau_source *source,
                                                attncl_value embedded, attncl_value *states,
                                                attncl_value *weights_ret);
ATTNCL_END
#endif
