// SPDX-License-Identifier: MIT
//
// gru: stacked recurrent layers.

#include "attncl/ops.h"
#include "base/try.h"
#include "model/arch.h"
#include "model/block_rnn.h"
#include "model/config.h"

struct gru_settings {
    struct rnn_settings rnn;
    bool batch_first;
};

static const struct key keys[] = {
    {"input_size", KEY_INT, AT(gru_settings, rnn.input), .min = 1},
    {"hidden_size", KEY_INT, AT(gru_settings, rnn.hidden), .min = 1},
    {"num_layers", KEY_INT, AT(gru_settings, rnn.n_layers), .min = 1},
    {"batch_first", KEY_BOOL, AT(gru_settings, batch_first), OR(false)},
    {0},
};

static void gru_load(struct params *p, const void *settings)
{
    attncl__rnn_params(p, &((const struct gru_settings *)settings)->rnn, NULL);
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
    const struct gru_settings *s = settings;
    const attncl_layout layout =
        s->batch_first ? ATTNCL_LAYOUT_BATCH_FIRST : ATTNCL_LAYOUT_TIME_FIRST;
    attncl_status status = ATTNCL_OK;
    struct rnn rnn = {0};
    attncl_value x;
    TRY(attncl__input_sequence(b, layout, "input", s->rnn.input, 0, &x));
    const int64_t *dim = attncl__input_find(b, "input")->dim;
    TRY(attncl__check_steps("input", dim[s->batch_first ? 1 : 0]));

    TRY_DONE(attncl__rnn_create(s->rnn.n_layers, &rnn));
    TRY_DONE(take_h0(b, &s->rnn, dim[s->batch_first ? 0 : 1], &rnn));
    attncl__rnn_params(&b->params, &s->rnn, rnn.layers);
    attncl_graph_output(b->graph, "output",
                        attncl_gru_layers(b->graph, rnn.layers, rnn.n, x, layout, rnn.states));
    attncl_graph_output(b->graph, "h_n", attncl__rnn_stack_states(b->graph, &rnn));

done:
    attncl__rnn_free(&rnn);
    return status;
}

const struct arch_class attncl__arch_gru = {
    .name = "gru",
    .example = "{\"input_size\": 20, \"hidden_size\": 32, \"num_layers\": 2}",
    .settings_bytes = sizeof(struct gru_settings),
    .keys = keys,
    .load = gru_load,
    .build = gru_build,
};
