// SPDX-License-Identifier: MIT
//
// gru, rnn: stacked recurrent layers, of gated or of plain units.

#include "model/arch.h"
#include "model/block_layers.h"

struct gru_settings {
    struct rnn_settings rnn;
    bool batch_first;
};

static const struct key gru_keys[] = {
    {"input_size", KEY_INT, AT(gru_settings, rnn.input), .min = 1},
    {"hidden_size", KEY_INT, AT(gru_settings, rnn.hidden), .min = 1},
    {"num_layers", KEY_INT, AT(gru_settings, rnn.n_layers), .min = 1},
    {"batch_first", KEY_BOOL, AT(gru_settings, batch_first), OR(false)},
    {"bidirectional", KEY_BOOL, AT(gru_settings, rnn.bidirectional), OR(false)},
    {0},
};

static const struct choice nonlinearities[] = {{"tanh", ATTNCL_TANH}, {"relu", ATTNCL_RELU}, {0}};

static void declare_h0(struct build *b, const struct rnn_settings *s, struct rnn *rnn)
{
    const attncl_value h0 = attncl__input(b, "h0");
    for (size_t k = 0; k < rnn->n && h0.id; ++k) {
        const int64_t dim[2] = {attncl__input_axis(b, 'B'), s->hidden};
        const attncl_value one = attncl_slice(b->graph, h0, 0, (int64_t)k, (int64_t)k + 1);
        rnn->states[k] = attncl_reshape(b->graph, one, 2, dim);
    }
}

static attncl_value gru_build(struct build *b, const void *settings)
{
    const struct gru_settings *s = settings;
    const attncl_layout layout =
        s->batch_first ? ATTNCL_LAYOUT_BATCH_FIRST : ATTNCL_LAYOUT_TIME_FIRST;
    struct rnn rnn;
    const attncl_value x = attncl__input(b, "input");
    const attncl_value lens = s->rnn.plain ? ATTNCL_NONE_VALUE : attncl__input(b, "lens");
    attncl__check_steps(b, "input", 'T');

    if (!attncl__rnn_create(b, s->rnn.n_layers * (s->rnn.bidirectional ? 2 : 1), &rnn))
        return ATTNCL_NONE_VALUE;
    declare_h0(b, &s->rnn, &rnn);
    attncl__rnn_params(&b->params, &s->rnn, &rnn);
    for (size_t k = 0; k < rnn.n; ++k)
        rnn.layers[k].lens = lens;
    attncl_graph_output(b->graph, "output",
                        attncl_gru_layers(b->graph, rnn.layers, rnn.n, x, layout, rnn.states));
    attncl_graph_output(b->graph, "h_n", attncl__rnn_stack_states(b->graph, &rnn));
    attncl__rnn_free(&rnn);
    return ATTNCL_NONE_VALUE;
}

#define ONE_WAY   WHEN("bidirectional", "false")
#define BOTH_WAYS WHEN("bidirectional", "true")

#define INPUTS                                                                                     \
    PORT("input", F32, "T B input_size", .batch_first = true),                                     \
        PORT("h0", F32, "num_layers B hidden_size", .optional = true, ONE_WAY),                    \
        PORT("h0", F32, "2*num_layers B hidden_size", .optional = true, BOTH_WAYS)
static const struct port outputs[] = {
    PORT("output", F32, "T B hidden_size", .batch_first = true, ONE_WAY),
    PORT("output", F32, "T B 2*hidden_size", .batch_first = true, BOTH_WAYS),
    PORT("h_n", F32, "num_layers B hidden_size", ONE_WAY),
    PORT("h_n", F32, "2*num_layers B hidden_size", BOTH_WAYS),
    {0},
};

const struct arch_class attncl__arch_gru = {
    .example = "{\"input_size\": 20, \"hidden_size\": 32, \"num_layers\": 2}",
    .settings_bytes = sizeof(struct gru_settings),
    .keys = gru_keys,
    .inputs = PORTS(INPUTS, PORT("lens", INT, "B", .optional = true)),
    .outputs = outputs,
    .build = gru_build,
};

const struct arch_class attncl__arch_rnn = {
    .example = "{\"input_size\": 20, \"hidden_size\": 32, \"num_layers\": 2}",
    .settings_bytes = sizeof(struct gru_settings),
    .keys = KEYS(KEYS_OF(gru_keys, 0), {"nonlinearity", KEY_WORD, AT(gru_settings, rnn.plain),
                                        .choices = nonlinearities, OR_WORD("tanh")}),
    .inputs = PORTS(INPUTS),
    .outputs = outputs,
    .build = gru_build,
};
