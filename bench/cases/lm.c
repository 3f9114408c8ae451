// SPDX-License-Identifier: MIT
//
// Language models through the model API: the whole text at once, token by token, and a step of
// training, of a translator too.  Checked on the last batch entry, at every position; decoding must
// give what the definition gives for the prefix, and losses must fall.

#include "cases/define.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/try.h"

enum { MAX_WEIGHTS = 128 };

// What the case gives the model: the indices that follow array "y".
enum { MAX_INPUTS = 4 };

static size_t list_inputs(const struct case_data *t, attncl_array inputs[MAX_INPUTS])
{
    size_t n = 0;

    for (const struct case_array *a = case_array_find(t, "y"); ++a < t->arrays + t->n_arrays; ++n) {
        inputs[n] = (attncl_array){.name = a->name, .dtype = ATTNCL_I32, .rank = a->rank};
        memcpy(inputs[n].dim, a->dim, sizeof a->dim);
    }
    return n;
}

static attncl_status write_inputs(struct case_data *t)
{
    for (const struct case_array *a = case_array_find(t, "y"); ++a < t->arrays + t->n_arrays;)
        TRY(attncl_graph_write(t->graph, a->name, a->data, case_array_bytes(a)));
    return ATTNCL_OK;
}

static double all_tokens(const struct sizes *s)
{
    return (double)(s->T * s->B);
}

static bool is_translator(const struct sizes *s)
{
    return strcmp(s->layer, "seq2seq") == 0;
}

attncl_status lm_open(struct case_data *t, int rank, const int64_t *dim)
{
    const struct sizes *s = &t->c->sizes;
    struct lm_state *state = attncl__alloc_zero(sizeof *state);
    char path[LM_PATH_BYTES];

    REQUIRE(state, ATTNCL_ERR_NO_MEMORY, "state of %s", t->c->name);
    t->state = state; // released by lm_close() from here on
    TRY(lm_parameters(t));
    TRY(lm_write(t, path));
    const attncl_status status = attncl_model_open(t->ctx, path, NULL, &state->model);
    unlink(path); // now: a process that is killed leaves nothing
    TRY(status);
    case_array_add(t, "y", 0, rank, dim);
    if (!is_translator(s)) {
        case_array_indices(t, "tokens", 0, s->V, DIMS(s->T, s->B));
        return t->status;
    }
    case_array_indices(t, "enc_X", 0, s->V, DIMS(s->B, s->S));
    case_array_indices(t, "dec_X", 0, s->V, DIMS(s->B, s->T));
    case_array_indices(t, "enc_valid_lens", 1, s->S + 1, DIMS(s->B));
    return t->status;
}

void lm_close_model(struct lm_state *state)
{
    attncl_decoder_destroy(state->decoder);
    attncl_model_destroy(state->model);
    attncl_context_destroy(state->ctx);
    state->decoder = NULL;
    state->model = NULL;
    state->ctx = NULL;
}

void lm_close(struct case_data *t)
{
    struct lm_state *state = t->state;

    if (!state)
        return;
    attncl_graph_destroy(t->graph);
    t->graph = NULL;
    lm_close_model(state);
    if (state->path[0])
        unlink(state->path);
    attncl__free(state);
    t->state = NULL;
}

static attncl_status open_lm(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;

    TRY(lm_open(t, DIMS(s->T, s->B, s->V)));
    struct lm_state *state = t->state;
    attncl_array inputs[MAX_INPUTS];
    const size_t n = list_inputs(t, inputs);
    const double start = clock_now();
    TRY(attncl_model_graph(state->model, inputs, n, &t->graph));
    t->compile_s = clock_now() - start;
    return write_inputs(t);
}

static void check_lm(const struct case_data *t, const struct sizes *s, struct check *c)
{
    check_compare(c, (double)(s->layers * (3 * s->C + s->F + s->T) + s->C),
                  PART(t, "y", ALL, LAST, ALL), lm_define(t, PART(t, "tokens", ALL, LAST)));
}

// A family of language models; beside the fields given it has what they share.
#define LM_FAMILY(NAME, ...)                                                                       \
    FAMILY(NAME, .suite = SUITE_MODEL, .close = lm_close, .tokens = all_tokens, __VA_ARGS__)

LM_FAMILY(lm, .output = "output", .open = open_lm, .check = check_lm)

static attncl_status open_decode(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;

    TRY(lm_open(t, DIMS(s->T, s->B, s->V)));
    struct lm_state *state = t->state;
    const double start = clock_now();
    TRY(attncl_decoder_create(state->model, s->B, NULL, &state->decoder));
    t->compile_s = clock_now() - start;
    return ATTNCL_OK;
}

// A text of T tokens; each step's scores are read back, as sampling needs them.
static attncl_status run_decode(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    const struct lm_state *state = t->state;
    const int32_t *tokens = case_array_find(t, "tokens")->data;
    float *logits = case_array_find(t, "y")->data;

    TRY(attncl_decoder_reset(state->decoder));
    for (int64_t p = 0; p < s->T; ++p) {
        const double start = clock_now();
        TRY(attncl_decoder_step(state->decoder, tokens + p * s->B, logits + p * s->B * s->V));
        REQUIRE(!t->latency || samples_add(t->latency, clock_now() - start), ATTNCL_ERR_NO_MEMORY,
                "%zu latencies", t->latency->n);
    }
    return ATTNCL_OK;
}

static attncl_status read_decode(struct case_data *t)
{
    (void)t; // run_decode() or open_train() has read every step
    return ATTNCL_OK;
}

LM_FAMILY(lm_decode, .open = open_decode, .run = run_decode, .read = read_decode, .check = check_lm)

static void add_updates(attncl_graph *g, const attncl_model *model, const attncl_value *weights,
                        const attncl_value *gradients)
{
    attncl_adam_desc adam = ATTNCL_ADAM_DESC_INIT;
    attncl_model_tensor weight = ATTNCL_MODEL_TENSOR_INIT;
    char name[160];

    adam.learning_rate = 1e-4;
    adam.optimized = 0;
    const attncl_value steps = attncl_graph_index_input(g, "steps", 0, NULL, 0, INT32_MAX);
    const attncl_value rates = attncl_adam_rates(g, &adam, ATTNCL_NONE_VALUE, steps);
    for (size_t i = 0; attncl_model_tensor_at(model, i, &weight) == ATTNCL_OK; ++i) {
        attncl_adam_values values = ATTNCL_ADAM_VALUES_INIT;
        values.param = weights[i];
        snprintf(name, sizeof name, "mean.%s", weight.name);
        values.exp_avg =
            attncl_graph_state(g, name, ATTNCL_F32, weight.shape.rank, weight.shape.dim);
        snprintf(name, sizeof name, "square.%s", weight.name);
        values.exp_avg_sq =
            attncl_graph_state(g, name, ATTNCL_F32, weight.shape.rank, weight.shape.dim);
        attncl_adam_update(g, &adam, rates, gradients[i], &values);
    }
}

static attncl_status add_step(struct case_data *t, attncl_model *model)
{
    attncl_array inputs[MAX_INPUTS];
    attncl_value loss, weights[MAX_WEIGHTS], gradients[MAX_WEIGHTS];
    const size_t n = attncl_model_tensor_count(model), n_inputs = list_inputs(t, inputs);

    REQUIRE(n <= MAX_WEIGHTS, ATTNCL_ERR_ARGUMENT, "%s has %zu weights", t->c->name, n);
    TRY(attncl_model_loss(model, t->graph, NULL, inputs, n_inputs, &loss));
    TRY(attncl_model_gradient(model, t->graph, loss, weights, gradients));
    attncl_graph_output(t->graph, "loss", loss);
    attncl_clip_grad_norm(t->graph, n, gradients, 1.0, ATTNCL_CLIP_EPSILON, gradients);
    add_updates(t->graph, model, weights, gradients);
    return attncl_graph_compile(t->graph, NULL);
}

static attncl_status run_step(struct case_data *t)
{
    struct lm_state *state = t->state;

    TRY(attncl_graph_write(t->graph, "steps", &state->steps, sizeof state->steps));
    ++state->steps;
    return attncl_graph_run(t->graph);
}

// The losses of the first steps become the result.
static attncl_status open_train(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;

    TRY(lm_open(t, DIMS(N_CHECKED_STEPS)));
    struct lm_state *state = t->state;
    case_array_indices(t, "targets", 0, s->V,
                       DIMS(is_translator(s) ? s->B : s->T, is_translator(s) ? s->T : s->B));
    TRY(t->status);
    float *losses = case_array_find(t, "y")->data;
    TRY(attncl_graph_create(t->ctx, &t->graph));
    const double start = clock_now();
    TRY(add_step(t, state->model));
    t->compile_s = clock_now() - start;
    TRY(write_inputs(t));
    for (int i = 0; i < N_CHECKED_STEPS; ++i) {
        TRY(run_step(t));
        TRY(attncl_graph_read(t->graph, "loss", &losses[i], sizeof losses[i]));
    }
    return ATTNCL_OK;
}

static attncl_status settle_train(struct case_data *t)
{
    float loss;
    return attncl_graph_read(t->graph, "loss", &loss, sizeof loss);
}

// The first loss is the definition's where that does not take too long, and is a language model's.
static void check_train(const struct case_data *t, const struct sizes *s, struct check *c)
{
    const struct host *losses = case_whole(t, "y");
    struct host *first = host_new(ATTNCL_F32, DIMS(1)), *got = host_like(first);
    double sum = 0;

    for (int64_t b = 0; b < s->B && !is_translator(s) && s->T * s->B * s->C <= 1 << 14; ++b) {
        const struct part entry = part_one(b);
        ref_cross_entropy_fwd(lm_define(t, PART(t, "tokens", ALL, entry)),
                              PART(t, "targets", ALL, entry), ATTNCL_REDUCE_MEAN, -1, 0, first);
        sum += first->data[0] / (double)s->B;
    }
    got->data[0] = losses->data[0];
    first->data[0] = sum > 0 ? sum : got->data[0];
    if (!(losses->data[N_CHECKED_STEPS - 1] < losses->data[0]))
        got->data[0] = INFINITY;
    check_compare(c, (double)(s->layers * (3 * s->C + s->F + s->T) + s->C), got, first);
}

LM_FAMILY(train_step, .open = open_train, .run = run_step, .read = read_decode,
          .settle = settle_train, .check = check_train)
