// SPDX-License-Identifier: MIT
//
// seq2seq_transformer_predict: translation by beam search, greedy with one beam.
//
// One graph encodes the sources.  A second one takes a token of each beam; its keys and values, and the
// memory's, are state.  Between two steps a third graph reorders the beams' rows of that state.

#include <inttypes.h>
#include <string.h>

#include "base/ckd.h"
#include "graph/graph.h"
#include "model/beam.h"
#include "model/block_models.h"
#include "model/model.h"

struct predict_settings {
    struct seq2seq_transformer_settings model;
    int64_t bos, eos; // eos -1: none, sequences have n_steps tokens
    int64_t n_steps, n_beams;
    double length_penalty;
};

static attncl_status check(void *settings)
{
    const struct predict_settings *s = settings;
    const int64_t n_vocab = s->model.target.n_vocab, limit = s->model.target.limit;
    REQUIRE(s->model.source.n_vocab > 0, ATTNCL_ERR_FORMAT,
            "src_vocab_size is 0, predictions are tokens");
    REQUIRE(s->bos < n_vocab, ATTNCL_ERR_FORMAT, "bos is %" PRId64 ", tgt_vocab_size is %" PRId64,
            s->bos, n_vocab);
    REQUIRE(s->eos < n_vocab, ATTNCL_ERR_FORMAT, "eos is %" PRId64 ", tgt_vocab_size is %" PRId64,
            s->eos, n_vocab);
    REQUIRE(s->n_beams <= n_vocab, ATTNCL_ERR_FORMAT,
            "beams is %" PRId64 ", tgt_vocab_size is %" PRId64, s->n_beams, n_vocab);
    REQUIRE(limit == 0 || s->n_steps <= limit, ATTNCL_ERR_FORMAT,
            "num_steps is %" PRId64 ", max_len is %" PRId64, s->n_steps, limit);
    return ATTNCL_OK;
}

static const struct key keys[] = {
    KEYS_OF(attncl__seq2seq_transformer_keys, AT(predict_settings, model)),
    {"num_steps", KEY_INT, AT(predict_settings, n_steps), .min = 1, .max = CONFIG_MAX_TOKENS},
    {"bos", KEY_INT, AT(predict_settings, bos), .min = 0},
    {"eos", KEY_INT, AT(predict_settings, eos), .min = -1, OR(-1)},
    {"beams", KEY_INT, AT(predict_settings, n_beams), .min = 1, .max = BEAM_MAX, OR(1)},
    {"length_penalty", KEY_NUMBER, AT(predict_settings, length_penalty), OR(0.75),
     UNLESS("beams", "1")},
    CHECK(check),
    {0},
};

struct search {
    const struct predict_settings *s;
    attncl_graph *encoder, *step, *reorder;
    struct beams beams; // N in all
    int64_t n_source;
    int32_t *step_input; // [1 + N], position and tokens
    int32_t *rows;       // [steps, N], the state row that each beam continues
    float *logits;       // [N, V]
};

static void free_search(struct search *q)
{
    attncl_graph_destroy(q->reorder);
    attncl_graph_destroy(q->step);
    attncl_graph_destroy(q->encoder);
    attncl__beams_free(&q->beams);
    attncl__free(q->step_input);
    attncl__free(q->rows);
    attncl__free(q->logits);
}

// -- graphs

static void begin_build(struct build *b, const attncl_model *model, int64_t n_positions)
{
    attncl__inputs_begin(b, model->arch->inputs, attncl__model_values(model));
    b->n_positions = n_positions;
    b->state_dtype = ATTNCL_F32;
}

static void build_encoder(struct build *b, attncl_model *model, struct search *q)
{
    attncl_value lens;
    begin_build(b, model, 0);
    const attncl_value memory =
        attncl__seq2seq_encode(b, &q->s->model, ATTNCL_LAYOUT_BATCH_FIRST, &lens);
    attncl__params_enter(&b->params, "decoder");
    attncl__memory_store(b, &q->s->model.decoder, memory);
    attncl__params_leave(&b->params);
    q->beams.n_batch = attncl__input_axis(b, 'B');
    q->n_source = attncl__input_axis(b, 'S');
}

static void build_step(struct build *b, attncl_model *model, struct search *q)
{
    const int64_t n_step = 1 + q->beams.n;
    struct block_call call = {
        .causal = true, .n_beams = q->beams.n_each, .memory_dim = {q->beams.n_batch, q->n_source}};
    attncl_graph *g = b->graph;
    begin_build(b, model, q->s->n_steps);
    call.memory_lens = attncl__input(b, "enc_valid_lens");
    const attncl_value step = attncl_graph_input(g, "step", ATTNCL_I32, 1, &n_step);
    call.position = attncl_slice(g, step, 0, 0, 1);
    const attncl_value x =
        attncl__add_embedding(b, &q->s->model.target, attncl_slice(g, step, 0, 1, n_step),
                              call.position, ATTNCL_LAYOUT_BATCH_FIRST);
    attncl_graph_output(g, "logits", attncl__seq2seq_decode(b, &q->s->model, &call, x));
    attncl__graph_share_state(g, q->encoder);
}

static void move_rows(attncl_graph *g, const char *name, const int64_t dim[3], attncl_value rows)
{
    const int64_t flat[2] = {dim[0] * dim[1], dim[2]};
    const attncl_value state = attncl_graph_state(g, name, ATTNCL_F32, 3, dim);
    const attncl_value moved = attncl_embedding(g, rows, attncl_reshape(g, state, 2, flat), 1.0f);
    attncl__store_rows(g, attncl_reshape(g, moved, 3, dim), ATTNCL_F32, state);
}

static void build_reorder(struct build *b, attncl_model *model, struct search *q)
{
    const struct encoder_settings *decoder = &q->s->model.decoder;
    const int64_t dim[3] = {q->s->n_steps, q->beams.n, decoder->block.mha.d_model};
    const int64_t count = dim[0] * dim[1];
    (void)model;
    const attncl_value rows = attncl_graph_input(b->graph, "rows", ATTNCL_I32, 1, &count);
    for (int64_t i = 0; i < decoder->n_layers; ++i) {
        move_rows(b->graph, "keys", dim, rows);
        move_rows(b->graph, "values", dim, rows);
    }
    attncl__graph_share_state(b->graph, q->step);
}

typedef void build_graph(struct build *b, attncl_model *model, struct search *q);

static attncl_status open_graph(attncl_model *model, const struct build *given, struct search *q,
                                build_graph *build, attncl_graph **ret)
{
    struct build b;
    TRY(attncl__model_begin(model, given->inputs, given->n_inputs, &b));
    b.show_attention = false;
    build(&b, model, q);
    return attncl__model_end(&b, ATTNCL_OK, ret);
}

static attncl_status open_search(attncl_model *model, const struct build *given, struct search *q)
{
    size_t n_logits;
    TRY(open_graph(model, given, q, build_encoder, &q->encoder));
    TRY(attncl__beams_create(&q->beams));
    const size_t n = (size_t)q->beams.n;
    REQUIRE(ckd_mul_size(n, (size_t)q->beams.n_vocab, &n_logits), ATTNCL_ERR_SHAPE,
            "scores of %zu beams are too many", n);
    q->step_input = attncl__alloc_array(1 + n, sizeof *q->step_input);
    q->rows = attncl__alloc_array(n * (size_t)q->beams.n_steps, sizeof *q->rows);
    q->logits = attncl__alloc_array(n_logits, sizeof *q->logits);
    REQUIRE(q->step_input && q->rows && q->logits, ATTNCL_ERR_NO_MEMORY, "%zu beams", n);
    if (n == 0)
        return ATTNCL_OK;
    TRY(open_graph(model, given, q, build_step, &q->step));
    return q->beams.n_each > 1 ? open_graph(model, given, q, build_reorder, &q->reorder)
                               : ATTNCL_OK;
}

// -- steps

// Reorders the state of steps 0 .. t.
static attncl_status reorder_state(struct search *q, int64_t t)
{
    const int64_t n = q->beams.n, n_steps = q->beams.n_steps;
    for (int64_t i = 0; i < n_steps; ++i)
        for (int64_t k = 0; k < n; ++k)
            q->rows[i * n + k] = (int32_t)(i * n + (i <= t ? q->beams.list[k].from : k));
    const size_t bytes = (size_t)(n_steps * n) * sizeof *q->rows;
    TRY(attncl_graph_write(q->reorder, "rows", q->rows, bytes));
    return attncl_graph_run(q->reorder);
}

static attncl_status run_step(struct search *q, int64_t t)
{
    const size_t n = (size_t)q->beams.n, n_logits = n * (size_t)q->beams.n_vocab;
    q->step_input[0] = (int32_t)t;
    for (size_t i = 0; i < n; ++i)
        q->step_input[1 + i] = t ? q->beams.list[i].tokens[t - 1] : (int32_t)q->s->bos;
    TRY(attncl_graph_write(q->step, "step", q->step_input, (1 + n) * sizeof *q->step_input));
    TRY(attncl_graph_run(q->step));
    return attncl_graph_read(q->step, "logits", q->logits, n_logits * sizeof *q->logits);
}

static attncl_status run_search(struct search *q, const struct build *given)
{
    bool goes_on = true;
    if (q->beams.n == 0)
        return ATTNCL_OK;
    TRY(attncl__model_write_inputs(q->encoder, given->inputs, given->n_inputs));
    TRY(attncl_graph_run(q->encoder));
    TRY(attncl__model_write_inputs(q->step, given->inputs, given->n_inputs));
    for (int64_t t = 0; t < q->beams.n_steps && goes_on; ++t) {
        if (t > 0 && q->reorder)
            TRY(reorder_state(q, t - 1));
        TRY(run_step(q, t));
        goes_on = attncl__beams_advance(&q->beams, t, q->logits);
    }
    return ATTNCL_OK;
}

// -- results

static attncl_status add_results(const struct beams *beams, attncl_results *results)
{
    const int64_t n_steps = beams->n_steps, dim[2] = {beams->n_batch, n_steps};
    void *tokens, *scores;
    TRY(attncl__results_add(results, "tokens", ATTNCL_I32, 2, dim, &tokens));
    TRY(attncl__results_add(results, "scores", ATTNCL_F32, 1, dim, &scores));
    for (int64_t i = 0; i < beams->n_batch; ++i) {
        const struct beam *best = attncl__beams_best(beams, i);
        memcpy((int32_t *)tokens + i * n_steps, best->tokens, (size_t)n_steps * sizeof(int32_t));
        ((float *)scores)[i] = (float)best->score;
    }
    return ATTNCL_OK;
}

static attncl_status run(attncl_model *model, const attncl_array *inputs, size_t n,
                         attncl_results *results)
{
    const struct build given = {.inputs = inputs, .n_inputs = n};
    const struct predict_settings *s = model->settings;
    struct search q = {.s = s,
                       .beams = {.n_each = s->n_beams,
                                 .n_steps = s->n_steps,
                                 .n_vocab = s->model.target.n_vocab,
                                 .eos = s->eos,
                                 .length_penalty = s->length_penalty}};
    attncl_status status = ATTNCL_OK;

    TRY_DONE(open_search(model, &given, &q));
    TRY_DONE(run_search(&q, &given));
    TRY_DONE(add_results(&q.beams, results));

done:
    free_search(&q);
    return status;
}

// Only visits the parameters.
static attncl_value build(struct build *b, const void *settings)
{
    return attncl__arch_seq2seq_transformer.build(b, settings);
}

const struct arch_class attncl__arch_seq2seq_transformer_predict = {
    .example = "{\"src_vocab_size\": 90, \"tgt_vocab_size\": 110, \"d_model\": 64, \"heads\": 4, "
               "\"d_ff\": 256, \"n_layers\": 2, \"max_len\": 40, \"bos\": 1, \"num_steps\": 9}",
    .settings_bytes = sizeof(struct predict_settings),
    .keys = keys,
    .inputs = PORTS(PORT("enc_X", INDEX, "B S", .below = "src_vocab_size"),
                    PORT("enc_valid_lens", INT, "B", .optional = true)),
    .outputs = PORTS(PORT("tokens", I32, "B num_steps"), PORT("scores", F32, "B")),
    .build = build,
    .run = run,
    .no_gradients = true,
};
