// SPDX-License-Identifier: MIT
//
// train: training steps of a model, one batch each.
//
//   loss = cross entropy(output, targets);   g = dloss / dparameters, clipped by their norm
//   parameters and optimiser states: an optimiser step in place
//
// One compiled graph serves every step; the batch and the number of steps taken are its inputs.

#include <assert.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "model/block_models.h"
#include "model/model.h"

enum { INNER_BYTES = 8192 };

struct train_settings {
    alignas(max_align_t) char inner_settings[INNER_BYTES];
    int inner_arch;
    const struct arch_class *inner;
    struct optim_settings optimizer;
    double max_norm;
    attncl_clip_style style;
    int64_t pad; // -1: none
};

enum { LM, BAHDANAU, TRANSFORMER };
static const struct choice archs[] = {
    {"lm", LM}, {"seq2seq_bahdanau", BAHDANAU}, {"seq2seq_transformer", TRANSFORMER}, {0}};

static attncl_status check_model(void *settings)
{
    struct train_settings *s = settings;
    s->inner = s->inner_arch == LM         ? &attncl__arch_lm
               : s->inner_arch == BAHDANAU ? &attncl__arch_seq2seq_bahdanau
                                           : &attncl__arch_seq2seq_transformer;
    assert(s->inner->settings_bytes <= INNER_BYTES);
    return ATTNCL_OK;
}

static const struct key model_keys[] = {
    {"arch", KEY_WORD, AT(train_settings, inner_arch), .choices = archs},
    KEYS_OF(attncl__lm_keys, AT(train_settings, inner_settings), WHEN("arch", "lm")),
    KEYS_OF(attncl__seq2seq_keys, AT(train_settings, inner_settings),
            WHEN("arch", "seq2seq_bahdanau")),
    KEYS_OF(attncl__seq2seq_transformer_keys, AT(train_settings, inner_settings),
            WHEN("arch", "seq2seq_transformer")),
    CHECK(check_model),
    {0},
};

static attncl_value build(struct build *b, const void *settings)
{
    const struct train_settings *s = settings;
    b->params.all_floats = true;
    return s->inner->build(b, s->inner_settings);
}

// -- batches

enum { MAX_INPUTS = 4 };

// The inputs of one step: the given arrays without their first axis, which counts steps.
struct batches {
    int64_t n_steps;
    size_t n;
    attncl_array list[MAX_INPUTS]; // targets last
};

static attncl_status add_batch(const char *name, const attncl_array *a, struct batches *ret)
{
    REQUIRE(a->rank >= 1, ATTNCL_ERR_SHAPE, "input %s has no axis of steps", name);
    REQUIRE(a->dtype == ATTNCL_I32 || a->dtype == ATTNCL_I64, ATTNCL_ERR_DTYPE,
            "input %s has type %s, expected I64 or I32", name, attncl_dtype_name(a->dtype));
    if (ret->n == 0)
        ret->n_steps = a->dim[0];
    REQUIRE(a->dim[0] == ret->n_steps, ATTNCL_ERR_SHAPE,
            "input %s has N = %" PRId64 " steps, input %s has %" PRId64, name, a->dim[0],
            ret->list[0].name, ret->n_steps);

    attncl_array *one = &ret->list[ret->n++];
    *one = *a;
    one->rank = a->rank - 1;
    memmove(one->dim, a->dim + 1, (size_t)one->rank * sizeof one->dim[0]);
    one->bytes = a->dim[0] > 0 ? a->bytes / (size_t)a->dim[0] : 0;
    return ATTNCL_OK;
}

static attncl_status find_batches(const attncl_model *model, const attncl_array *inputs, size_t n,
                                  struct batches *ret)
{
    *ret = (struct batches){0};
    for (const struct port *port = model->arch->inputs; port->type; ++port) {
        const attncl_array *a = attncl__input_find(inputs, n, port->name);
        if (a && attncl__port_applies(port, attncl__model_values(model)))
            TRY(add_batch(port->name, a, ret));
    }
    return ATTNCL_OK;
}

static void advance_batches(struct batches *batches)
{
    for (size_t i = 0; i < batches->n; ++i)
        batches->list[i].data = (const char *)batches->list[i].data + batches->list[i].bytes;
}

// -- the graph of a step

// The trained tensors, their gradients, and the clipped gradients: one allocation, at `param`.
struct trained {
    size_t n;
    attncl_value *param, *grad, *clipped;
};

static attncl_status add_gradients(struct build *b, attncl_value loss, struct trained *t)
{
    const struct param_table *table = b->params.table;
    const size_t n = attncl__trained_count(table);
    attncl_value *values = attncl__alloc_array(n, 3 * sizeof *values);
    REQUIRE(values, ATTNCL_ERR_NO_MEMORY, "gradients of %zu parameters", n);
    *t = (struct trained){n, values, values + n, values + 2 * n};
    return attncl__trained_gradient(table, b->graph, loss, t->param, t->grad);
}

static attncl_value add_state(attncl_graph *g, const char *what, const char *name,
                              attncl_value value)
{
    char full[PARAM_NAME_BYTES + 32];
    const attncl_shape shape = attncl_graph_shape(g, value);
    snprintf(full, sizeof full, "%s.%s", what, name);
    return attncl_graph_state(g, full, ATTNCL_F32, shape.rank, shape.dim);
}

static void add_updates(const struct build *b, const struct train_settings *s,
                        const struct trained *t, attncl_value step)
{
    attncl_graph *g = b->graph;
    const struct optim_settings *optimizer = &s->optimizer;
    const attncl_value rates = attncl__optim_rates(g, optimizer, ATTNCL_NONE_VALUE, step);
    const char *names[OPTIM_MAX_STATES];
    const size_t n = attncl__optim_states(optimizer, names);
    for (size_t i = 0; i < t->n && attncl_graph_status(g) == ATTNCL_OK; ++i) {
        const char *name = attncl__trained_at(b->params.table, i)->name;
        attncl_value states[OPTIM_MAX_STATES] = {ATTNCL_NONE_VALUE};
        for (size_t k = 0; k < n; ++k)
            states[k] = add_state(g, names[k], name, t->param[i]);
        attncl__optim_update(g, optimizer, rates, t->clipped[i], t->param[i], states);
    }
}

static attncl_status add_step(struct build *b, const struct train_settings *s, struct trained *t)
{
    attncl_graph *g = b->graph;
    attncl_loss_desc desc = ATTNCL_LOSS_DESC_INIT;
    attncl_value loss, scores;

    desc.pad = s->pad;
    TRY(attncl__loss_build(b, s->inner, s->inner_settings, &desc, &loss, &scores));
    const attncl_value step = attncl_graph_index_input(g, "step", 0, NULL, 0, INT32_MAX);
    TRY(add_gradients(b, loss, t));
    const attncl_value norm =
        attncl_clip_grad_norm(g, t->n, t->grad, s->max_norm, s->style, t->clipped);
    attncl_graph_output(g, "loss", loss);
    attncl_graph_output(g, "grad_norm", norm);
    add_updates(b, s, t, step);
    return attncl_graph_compile(g, NULL);
}

// -- running it

static attncl_status run_steps(attncl_graph *g, struct batches *batches, float *losses,
                               float *norms)
{
    for (int64_t i = 0; i < batches->n_steps; ++i, advance_batches(batches)) {
        const int32_t taken = (int32_t)i;
        TRY(attncl__model_write_inputs(g, batches->list, batches->n));
        TRY(attncl_graph_write(g, "step", &taken, sizeof taken));
        TRY(attncl_graph_run(g));
        TRY(attncl_graph_read(g, "loss", &losses[i], sizeof losses[i]));
        TRY(attncl_graph_read(g, "grad_norm", &norms[i], sizeof norms[i]));
    }
    return ATTNCL_OK;
}

static attncl_status run(attncl_model *model, const attncl_array *inputs, size_t n,
                         attncl_results *results)
{
    attncl_status status = ATTNCL_OK;
    struct batches batches;
    struct build b = {0};
    struct trained trained = {0};
    void *losses, *norms;

    TRY(find_batches(model, inputs, n, &batches));
    TRY_DONE(attncl__model_begin(model, batches.list, batches.n, &b));
    TRY_DONE(add_step(&b, model->settings, &trained));
    TRY_DONE(attncl__results_add(results, "losses", ATTNCL_F32, 1, &batches.n_steps, &losses));
    TRY_DONE(attncl__results_add(results, "grad_norms", ATTNCL_F32, 1, &batches.n_steps, &norms));
    TRY_DONE(run_steps(b.graph, &batches, losses, norms));

done:
    attncl__free(trained.param);
    attncl_graph_destroy(b.graph);
    return status;
}

#define OF_LM      WHEN("model.arch", "lm")
#define OF_SEQ2SEQ WHEN("model.arch", "seq2seq_bahdanau", "seq2seq_transformer")

const struct arch_class attncl__arch_train = {
    .example = "{\"model\": {\"arch\": \"lm\", \"layer\": \"transformer\", "
               "\"d_model\": 64, \"heads\": 4, \"d_ff\": 256, \"n_layers\": 2, "
               "\"n_vocab\": 100, \"max_len\": 40}, \"optimizer\": {\"kind\": \"adam\", "
               "\"learning_rate\": 0.001}}",
    .settings_bytes = sizeof(struct train_settings),
    .keys =
        KEYS({"model", KEY_OBJECT, 0, .inner = model_keys},
             {"optimizer", KEY_OBJECT, AT(train_settings, optimizer), .inner = attncl__optim_keys},
             {"grad_norm_clip", KEY_NUMBER, AT(train_settings, max_norm), OR(1)},
             {"clip", KEY_WORD, AT(train_settings, style), .choices = attncl__clip_choices,
              OR_WORD("torch")},
             {"pad", KEY_INT, AT(train_settings, pad), .min = INT32_MIN,
              OR(-1)}), // no target is negative
    // The first axis counts steps.
    .inputs =
        PORTS(PORT("tokens", INT, "N T B", OF_LM), PORT("enc_X", INT, "N B S", OF_SEQ2SEQ),
              PORT("dec_X", INT, "N B T", OF_SEQ2SEQ),
              PORT("enc_valid_lens", INT, "N B", .optional = true, OF_SEQ2SEQ),
              PORT("targets", INT, "N T B", OF_LM), PORT("targets", INT, "N B T", OF_SEQ2SEQ)),
    .outputs = PORTS(PORT("losses", F32, "N"), PORT("grad_norms", F32, "N")),
    .build = build,
    .run = run,
    .no_gradients = true,
};
