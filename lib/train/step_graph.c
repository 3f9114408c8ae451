// SPDX-License-Identifier: MIT
//
// The graphs of a training step, one per batch shape.
//
// One rank without accumulation takes a step in one graph, whose gradients share memory with the forward pass's
// results.  Otherwise gradients are summed into tensors, and a second graph updates from them.

#include <string.h>

#include "layer/layer.h"
#include "train/trainer.h"

void attncl__drop_step_graphs(attncl_trainer *t)
{
    for (size_t i = 0; i < t->n_graphs; ++i)
        attncl_graph_destroy(t->graphs[i].graph);
    attncl__free(t->graphs);
    t->graphs = NULL;
    t->n_graphs = t->graphs_capacity = 0;
}

// -- loss and gradients

static attncl_status add_loss(attncl_trainer *t, attncl_graph *g, const struct batch *batch,
                              bool trains, attncl_value *loss_ret)
{
    const struct train_settings *s = &t->config.settings;
    attncl_loss_desc desc = ATTNCL_LOSS_DESC_INIT;
    desc.pad = s->pad;
    if (trains) {
        desc.label_smoothing = s->label_smoothing;
        desc.dropout = s->dropout;
        desc.seed = (uint64_t)s->seed;
        desc.batch_begin = batch->begin;
        desc.batch_total = batch->total;
        if (s->dropout > 0)
            desc.step = attncl_graph_index_input(g, "batch_number", 0, NULL, 0, INT32_MAX);
    }
    attncl_value scores;
    TRY(attncl__model_scores_loss(t->model, g, &desc, batch->array, batch->n, loss_ret, &scores));
    attncl_graph_output(g, "loss", *loss_ret);
    if (!trains && attncl__has_labels(t))
        attncl_graph_output(g, "class", attncl_argmax(g, scores));
    return attncl_graph_status(g);
}

attncl_status attncl__add_gradients(attncl_trainer *t, attncl_graph *g, const struct batch *batch,
                                    attncl_value *loss_ret)
{
    TRY(add_loss(t, g, batch, true, loss_ret));
    attncl_value target = *loss_ret;
    if (attncl__sums_gradients(t)) // weight in the mean over batches and ranks
        target = attncl_mul(g, target, attncl_graph_input(g, "loss_weight", ATTNCL_F32, 0, NULL));
    return attncl_model_gradient(t->model, g, target, t->weights, t->gradients);
}

// -- update

// 0 if a value is finite, else NaN.
static attncl_value zero_if_finite(attncl_graph *g, attncl_value x)
{
    static const float zero = 0;
    return attncl_mul(g, x, attncl_graph_constant(g, ATTNCL_F32, 0, NULL, &zero));
}

static attncl_value add_fault(attncl_trainer *t, attncl_graph *g, attncl_value x)
{
    const attncl_value fault = attncl_graph_tensor(g, t->fault);
    attncl_accumulate(g, fault, zero_if_finite(g, x));
    return fault;
}

// The learning rate, or NaN if loss or norm, of this or an earlier step, are not finite.  A NaN rate makes optimisers
// and averages leave everything unchanged.
static attncl_value add_guarded_rate(attncl_trainer *t, attncl_graph *g, attncl_value loss,
                                     attncl_value norm)
{
    attncl_value rate = attncl_graph_input(g, "learning_rate", ATTNCL_F32, 0, NULL);
    rate = attncl_add(g, rate, zero_if_finite(g, norm));
    if (loss.id)
        rate = attncl_add(g, rate, zero_if_finite(g, loss));
    return t->fault ? attncl_add(g, rate, add_fault(t, g, rate)) : rate;
}

static attncl_value get_kept(attncl_graph *g, const struct trained *trained, enum kept kept)
{
    attncl_tensor *tensor = trained->tensor[kept];
    return tensor ? attncl_graph_tensor(g, tensor) : ATTNCL_NONE_VALUE;
}

static void add_optimizer(attncl_trainer *t, attncl_graph *g, attncl_value rate, attncl_value step)
{
    const struct optim_settings *s = &t->config.settings.optimizer;
    const attncl_value rates = attncl__optim_rates(g, s, rate, step);
    for (size_t i = 0; i < t->n_trained; ++i) {
        attncl_value states[OPTIM_MAX_STATES];
        for (int k = 0; k < OPTIM_MAX_STATES; ++k)
            states[k] = get_kept(g, &t->trained[i], (enum kept)(KEPT_STATES + k));
        attncl__optim_update(g, s, rates, t->clipped[i], t->weights[i], states);
    }
}

static void add_averages(attncl_trainer *t, attncl_graph *g, attncl_value rate)
{
    for (size_t i = 0; i < t->n_trained && t->config.settings.ema > 0; ++i)
        attncl__layer_average_update(g, get_kept(g, &t->trained[i], KEPT_AVERAGE), t->weights[i],
                                     rate, t->config.settings.ema);
}

// Clips the gradients, first by value, then by norm; returns the norm before clipping.
static attncl_value clip_gradients(attncl_trainer *t, attncl_graph *g)
{
    const struct train_settings *s = &t->config.settings;
    const size_t n = t->n_trained;
    const bool by_value = s->grad_value_clip > 0, by_norm = s->grad_norm_clip > 0;
    attncl_value norm = ATTNCL_NONE_VALUE;
    if (by_value || !by_norm) // only for the norm; its clipped values are overwritten
        norm = attncl_clip_grad_norm(g, n, t->gradients, 1, s->clip, t->clipped);
    memcpy(t->clipped, t->gradients, n * sizeof *t->clipped);
    if (by_value)
        attncl_clip_grad_value(g, n, t->gradients, s->grad_value_clip, t->clipped);
    if (!by_norm)
        return norm;
    const attncl_value between =
        attncl_clip_grad_norm(g, n, t->clipped, s->grad_norm_clip, s->clip, t->clipped);
    return by_value ? norm : between;
}

// Adds clipping, the optimizer's step and averages.  They change nothing if a loss or norm, of this or an earlier step,
// is not finite.  loss null: it is known to be finite, or covered by `fault`.
static attncl_status add_update(attncl_trainer *t, attncl_graph *g, attncl_value loss)
{
    attncl_graph_push_scope(g, "update");
    const attncl_value norm = clip_gradients(t, g);
    attncl_graph_output(g, "grad_norm", norm);
    const attncl_value rate = add_guarded_rate(t, g, loss, norm);
    const attncl_value step = attncl_graph_index_input(g, "step", 0, NULL, 0, INT32_MAX);
    add_optimizer(t, g, rate, step);
    add_averages(t, g, rate);
    attncl_graph_pop_scope(g);
    return attncl_graph_status(g);
}

// -- graphs

static attncl_status build_graph(attncl_trainer *t, enum graph_kind kind, const struct batch *batch,
                                 attncl_graph *g)
{
    attncl_value loss = ATTNCL_NONE_VALUE;
    switch (kind) {
    case GRAPH_LOSS:
        return add_loss(t, g, batch, false, &loss);
    case GRAPH_STEP:
        TRY(attncl__add_gradients(t, g, batch, &loss));
        return add_update(t, g, loss);
    case GRAPH_GRADIENT:
        TRY(attncl__add_gradients(t, g, batch, &loss));
        for (size_t i = 0; i < t->n_trained; ++i)
            if (attncl__outputs_gradients(t))
                attncl_graph_output(g, t->trained[i].output, t->gradients[i]);
            else
                attncl_accumulate(g, attncl_graph_tensor(g, t->trained[i].gradient),
                                  t->gradients[i]);
        if (t->fault)
            add_fault(t, g, loss);
        break;
    case GRAPH_UPDATE:
        for (size_t i = 0; i < t->n_trained; ++i) {
            t->weights[i] = get_kept(g, &t->trained[i], KEPT_WEIGHT);
            t->gradients[i] = attncl_graph_tensor(g, t->trained[i].gradient);
        }
        return add_update(t, g, loss);
    }
    return attncl_graph_status(g);
}

static attncl_status compile_graph(attncl_trainer *t, enum graph_kind kind,
                                   const struct batch *batch, attncl_graph **ret)
{
    attncl_graph *g = NULL;
    TRY(attncl_graph_create(t->context, &g));
    attncl_status status = build_graph(t, kind, batch, g);
    if (status == ATTNCL_OK)
        status = attncl_graph_compile(g, NULL);
    if (status == ATTNCL_OK)
        *ret = g;
    else
        attncl_graph_destroy(g);
    return status;
}

static bool has_shape(const struct shaped_graph *shaped, enum graph_kind kind,
                      const struct batch *batch)
{
    const struct batch *shape = &shaped->shape;
    if (shaped->kind != kind || shape->n != batch->n || shape->begin != batch->begin ||
        shape->total != batch->total) // the dropout masks would differ
        return false;
    for (size_t i = 0; i < batch->n; ++i) {
        const attncl_array *a = &shape->array[i], *b = &batch->array[i];
        if (a->rank != b->rank || strcmp(a->name, b->name) != 0 ||
            memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) != 0)
            return false;
    }
    return true;
}

attncl_status attncl__find_step_graph(attncl_trainer *t, enum graph_kind kind,
                                      const struct batch *batch, attncl_graph **ret)
{
    for (size_t i = 0; i < t->n_graphs; ++i) {
        if (has_shape(&t->graphs[i], kind, batch)) {
            *ret = t->graphs[i].graph;
            return ATTNCL_OK;
        }
    }
    REQUIRE(GROW_LIST(t->graphs, t->n_graphs, t->graphs_capacity), ATTNCL_ERR_NO_MEMORY,
            "%zu graphs", t->n_graphs + 1);
    TRY(compile_graph(t, kind, batch, ret));
    t->graphs[t->n_graphs++] = (struct shaped_graph){kind, *batch, *ret};
    return ATTNCL_OK;
}
