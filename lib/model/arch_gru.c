// SPDX-License-Identifier: MIT
//
// gru: stacked recurrent layers.

#include "attncl/ops.h"
#include "base/try.h"
#include "model/arch.h"
#include "model/block_rnn.h"
#include "model/config.h"

static attncl_status gru_configure(struct config *config, void *settings)
{
    struct rnn_settings *s = settings;
    TRY(attncl__config_int(config, "input_size", 1, &s->input));
    TRY(attncl__config_int(config, "hidden_size", 1, &s->hidden));
    return attncl__config_int(config, "num_layers", 1, &s->n_layers);
}

static void gru_load(struct params *p, const void *settings)
{
    attncl__rnn_params(p, settings, NULL);
}

static attncl_status take_h0(struct build *b, const struct rnn_settings *s, int64_t n_batch,
                             struct rnn *rnn)
{
    const int64_t dim[3] = {s->n_layers, n_batch, s->hidden};
    attncl_value h0;
    if (!attncl__input_given(b, "h0"))
        return ATTNCL_OK;
    TRY(attncl__input_real(b, "h0", 3, dim, &h0));
    for (int64_t k = 0; k < s->n_layers; ++k) {
        const attncl_value one = attncl_slice(b->graph, h0, 0, k, k + 1);
        rnn->states[k] = attncl_reshape(b->graph, one, 2, dim + 1);
    }
    return ATTNCL_OK;
}

static attncl_status gru_build(struct build *b, const void *settings)
{
    const struct rnn_settings *s = settings;
    attncl_status status = ATTNCL_OK;
    struct rnn rnn = {0};
    attncl_value x;
    TRY(attncl__input_sequence(b, "input", s->input, 0, &x));
    const int64_t *dim = attncl__input_find(b, "input")->dim;
    TRY(attncl__check_steps("input", dim[0]));

    TRY_DONE(attncl__rnn_create(s->n_layers, &rnn));
    TRY_DONE(take_h0(b, s, dim[1], &rnn));
    attncl__rnn_params(&b->params, s, rnn.layers);
    attncl_graph_output(
        b->graph, "output",
        attncl_gru_layers(b->graph, rnn.layers, rnn.n, x, ATTNCL_LAYOUT_TIME_FIRST, rnn.states));
    attncl_graph_output(b->graph, "h_n", attncl__rnn_stack_states(b->graph, &rnn));

done:
    attncl__rnn_free(&rnn);
    return status;
}

const struct arch_class attncl__arch_gru = {
    .name = "gru",
    .settings_bytes = sizeof(struct rnn_settings),
    .configure = gru_configure,
    .load = gru_load,
    .build = gru_build,
};
