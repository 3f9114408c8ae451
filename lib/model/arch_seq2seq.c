// SPDX-License-Identifier: MIT
//
// seq2seq_bahdanau, seq2seq_predict: an encoder of recurrent layers, and a decoder that attends to its
// outputs.  All sequences are batch first, so that attention reads the encoder's outputs in place.

#include <inttypes.h>

#include "layer/layer.h"
#include "model/arch.h"
#include "model/block_layers.h"

struct seq2seq_settings {
    int64_t n_source, n_target; // vocabularies
    int64_t embed, hidden, n_layers;
    int64_t bos, n_steps; // prediction only
};

const struct key attncl__seq2seq_keys[] = {
    {"src_vocab_size", KEY_INT, AT(seq2seq_settings, n_source), .min = 1},
    {"tgt_vocab_size", KEY_INT, AT(seq2seq_settings, n_target), .min = 1},
    {"embed_size", KEY_INT, AT(seq2seq_settings, embed), .min = 1},
    {"num_hiddens", KEY_INT, AT(seq2seq_settings, hidden), .min = 1},
    {"num_layers", KEY_INT, AT(seq2seq_settings, n_layers), .min = 1},
    {0},
};

static attncl_status check_prediction(void *settings)
{
    const struct seq2seq_settings *s = settings;
    REQUIRE(s->bos < s->n_target, ATTNCL_ERR_FORMAT,
            "bos is %" PRId64 ", tgt_vocab_size is %" PRId64, s->bos, s->n_target);
    return ATTNCL_OK;
}

struct decoder {
    attncl_bahdanau_params bahdanau;
    attncl_value embedding;                // [V target, E]
    attncl_value dense_weight, dense_bias; // [V target, H], [V target]
};

static struct decoder declare_decoder(struct params *p, const struct seq2seq_settings *s,
                                      struct rnn *rnn)
{
    const struct rnn_settings layers = {.input = s->embed + s->hidden,
                                        .hidden = s->hidden,
                                        .n_layers = s->n_layers,
                                        .xavier = true};
    const int64_t hidden = s->hidden;
    const struct param_init linear = attncl__init_fan_in(hidden);
    struct decoder decoder = {.bahdanau = ATTNCL_BAHDANAU_PARAMS_INIT};
    decoder.bahdanau.layers = rnn->layers;
    decoder.bahdanau.n_layers = rnn->n;
    attncl__params_enter(p, "decoder");
    attncl__params_enter(p, "attention");
    decoder.bahdanau.key_weight = PARAM(p, "W_k.weight", linear, hidden, hidden);
    decoder.bahdanau.query_weight = PARAM(p, "W_q.weight", linear, hidden, hidden);
    decoder.bahdanau.score_weight = PARAM(p, "w_v.weight", linear, 1, hidden);
    attncl__params_leave(p);
    decoder.embedding =
        attncl__param_matrix(p, "embedding.weight", INIT_NORMAL, s->n_target, s->embed);
    attncl__params_enter(p, "rnn");
    attncl__rnn_params(p, &layers, rnn);
    attncl__params_leave(p);
    decoder.dense_weight = attncl__param_matrix(p, "dense.weight", linear, s->n_target, hidden);
    decoder.dense_bias = PARAM(p, "dense.bias", linear, s->n_target);
    attncl__params_leave(p);
    return decoder;
}

// Declares the source's inputs and adds the encoder, which includes padding.  rnn->states become the
// decoder's initial states.
static attncl_value add_encoder(struct build *b, const struct seq2seq_settings *s, struct rnn *rnn,
                                attncl_value *lens_ret)
{
    const struct rnn_settings layers = {
        .input = s->embed, .hidden = s->hidden, .n_layers = s->n_layers, .xavier = true};
    struct params *p = &b->params;
    const attncl_value tokens = attncl__input(b, "enc_X");
    attncl__check_steps(b, "enc_X", 'S');
    *lens_ret = attncl__input(b, "enc_valid_lens");

    attncl__params_enter(p, "encoder");
    const attncl_value embedding =
        attncl__param_matrix(p, "embedding.weight", INIT_NORMAL, s->n_source, s->embed);
    attncl__params_enter(p, "rnn");
    attncl__rnn_params(p, &layers, rnn);
    attncl__params_leave(p);
    attncl__rnn_set_dropout(rnn, &b->dropout);
    const attncl_value x = attncl_embedding(b->graph, tokens, embedding, 1.0f);
    const attncl_value outputs =
        attncl_gru_layers(b->graph, rnn->layers, rnn->n, x, ATTNCL_LAYOUT_BATCH_FIRST, rnn->states);
    attncl__params_leave(p);
    return outputs;
}

static attncl_value add_projection(attncl_graph *g, const struct decoder *decoder, attncl_value y)
{
    return attncl__layer_project(g, "dense", y, decoder->dense_weight, decoder->dense_bias,
                                 ATTNCL_NONE_VALUE);
}

static attncl_value add_decoder(struct build *b, const struct seq2seq_settings *s, struct rnn *rnn,
                                attncl_value tokens, attncl_value outputs, attncl_value lens)
{
    attncl_graph *g = b->graph;
    struct decoder decoder = declare_decoder(&b->params, s, rnn);
    const attncl_dropout_desc dropped = attncl__next_dropout(&b->dropout, 0);
    attncl_value weights;
    decoder.bahdanau.dropout = &dropped;
    attncl__rnn_set_dropout(rnn, &b->dropout);

    attncl_graph_push_scope(g, "decoder");
    attncl_bahdanau_source source = ATTNCL_BAHDANAU_SOURCE_INIT;
    attncl_bahdanau_attend(g, &decoder.bahdanau, outputs, lens, &source);
    const attncl_value x = attncl_embedding(g, tokens, decoder.embedding, 1.0f);
    const attncl_value y =
        attncl_bahdanau_decoder(g, &decoder.bahdanau, &source, x, rnn->states, &weights);
    const attncl_value scores = add_projection(g, &decoder, y);
    attncl_graph_pop_scope(g);
    if (b->for_loss)
        return scores;
    attncl_graph_output(g, "output", scores);
    attncl_graph_output(g, "hidden_state", attncl__rnn_stack_states(g, rnn));
    attncl_graph_output(g, "enc_outputs", outputs);
    attncl_graph_output(g, "attention_weights", weights);
    return ATTNCL_NONE_VALUE;
}

static attncl_value seq2seq_build(struct build *b, const void *settings)
{
    const struct seq2seq_settings *s = settings;
    attncl_value lens;
    struct rnn rnn;

    if (!attncl__rnn_create(b, s->n_layers, &rnn))
        return ATTNCL_NONE_VALUE;
    const attncl_value outputs = add_encoder(b, s, &rnn, &lens);
    const attncl_value tokens = attncl__input(b, "dec_X");
    attncl__check_steps(b, "dec_X", 'T');
    const attncl_value scores = add_decoder(b, s, &rnn, tokens, outputs, lens);
    attncl__rnn_free(&rnn);
    return scores;
}

#define SOURCE                                                                                     \
    PORT("enc_X", INDEX, "B S", .below = "src_vocab_size"),                                        \
        PORT("enc_valid_lens", INT, "B", .optional = true)

const struct arch_class attncl__arch_seq2seq_bahdanau = {
    .example = "{\"src_vocab_size\": 90, \"tgt_vocab_size\": 110, "
               "\"embed_size\": 20, \"num_hiddens\": 32, \"num_layers\": 2}",
    .settings_bytes = sizeof(struct seq2seq_settings),
    .keys = attncl__seq2seq_keys,
    .inputs = PORTS(SOURCE, PORT("dec_X", INDEX, "B T", .below = "tgt_vocab_size")),
    .outputs =
        PORTS(PORT("output", F32, "B T tgt_vocab_size"),
              PORT("hidden_state", F32, "num_layers B num_hiddens"),
              PORT("enc_outputs", F32, "B S num_hiddens"), PORT("attention_weights", F32, "B T S")),
    .build = seq2seq_build,
    .target = TARGET_SENTENCES,
};

// -- prediction: the device chooses each step's token, so that all steps are one run

// A constant I32 [n, 1] of bos.
static attncl_value add_first_tokens(attncl_graph *g, int64_t bos, int64_t n)
{
    const int64_t dim[2] = {n, 1};

    if (attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    int32_t *tokens = attncl__alloc_array((size_t)n, sizeof *tokens);
    if (!tokens)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%" PRId64 " tokens", n);
    for (int64_t i = 0; i < n; ++i)
        tokens[i] = (int32_t)bos;
    const attncl_value value = attncl_graph_constant(g, ATTNCL_I32, 2, dim, tokens);
    attncl__free(tokens);
    return value;
}

// Returns the token [B, 1] after `token`; *weights_ret: the step's attention weights.
static attncl_value add_step(attncl_graph *g, const struct decoder *decoder,
                             const attncl_bahdanau_source *source, attncl_value token,
                             attncl_value *states, attncl_value *weights_ret)
{
    const attncl_value x = attncl_embedding(g, token, decoder->embedding, 1.0f);
    const attncl_value xi = attncl_bahdanau_input(g, &decoder->bahdanau, x);
    const attncl_value y =
        attncl_bahdanau_step(g, &decoder->bahdanau, source, xi, states, weights_ret);
    return attncl_argmax(g, add_projection(g, decoder, y));
}

static void add_steps(struct build *b, const struct seq2seq_settings *s, struct rnn *rnn,
                      attncl_value *tokens, attncl_value *weights)
{
    attncl_graph *g = b->graph;
    attncl_value lens;
    const attncl_value outputs = add_encoder(b, s, rnn, &lens);
    const attncl_value bos = add_first_tokens(g, s->bos, attncl__input_axis(b, 'B'));
    const struct decoder decoder = declare_decoder(&b->params, s, rnn);
    attncl_graph_push_scope(g, "decoder");
    attncl_bahdanau_source source = ATTNCL_BAHDANAU_SOURCE_INIT;
    attncl_bahdanau_attend(g, &decoder.bahdanau, outputs, lens, &source);
    for (int64_t t = 0; t < s->n_steps && !attncl__graph_failed(g); ++t)
        tokens[t] =
            add_step(g, &decoder, &source, t ? tokens[t - 1] : bos, rnn->states, &weights[t]);
    attncl_graph_pop_scope(g);
    attncl_graph_output(g, "tokens", attncl_concat(g, (size_t)s->n_steps, tokens, 1));
    attncl_graph_output(g, "attention_weights", attncl_concat(g, (size_t)s->n_steps, weights, 1));
}

static attncl_value predict_build(struct build *b, const void *settings)
{
    const struct seq2seq_settings *s = settings;
    const size_t n = (size_t)s->n_steps;
    attncl_value *tokens = attncl__alloc_array(n, 2 * sizeof *tokens);
    struct rnn rnn;

    if (!tokens)
        return attncl__build_fail(b, FAIL(ATTNCL_ERR_NO_MEMORY, "%zu steps", n));
    if (attncl__rnn_create(b, s->n_layers, &rnn)) {
        add_steps(b, s, &rnn, tokens, tokens + n);
        attncl__rnn_free(&rnn);
    }
    attncl__free(tokens);
    return ATTNCL_NONE_VALUE;
}

const struct arch_class attncl__arch_seq2seq_predict = {
    .example = "{\"src_vocab_size\": 90, \"tgt_vocab_size\": 110, "
               "\"embed_size\": 20, \"num_hiddens\": 32, \"num_layers\": 2, "
               "\"bos\": 1, \"num_steps\": 9}",
    .settings_bytes = sizeof(struct seq2seq_settings),
    .keys = KEYS(
        KEYS_OF(attncl__seq2seq_keys, 0),
        {"num_steps", KEY_INT, AT(seq2seq_settings, n_steps), .min = 1, .max = CONFIG_MAX_STEPS},
        {"bos", KEY_INT, AT(seq2seq_settings, bos), .min = 0}, CHECK(check_prediction)),
    .inputs = PORTS(SOURCE),
    .outputs =
        PORTS(PORT("tokens", I32, "B num_steps"), PORT("attention_weights", F32, "B num_steps S")),
    .build = predict_build,
    .no_gradients = true,
};
