// SPDX-License-Identifier: MIT
//
// Graphs of training: one for each shape of batches.
//
// One rank without accumulation takes a step in one graph, whose gradients share memory with what the
// forward pass keeps.  Else gradients are summed into tensors, and another graph reads them.

#include <string.h>

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "attncl/optim.h"
#include "base/alloc.h"
#include "base/try.h"
#include "model/loss.h"
#include "train/trainer.h"

void attncl__trainer_drop_graphs(attncl_trainer *t)
{
    for (size_t i = 0; i < t->n_graphs; ++i)
        attncl_graph_destroy(t->graphs[i].graph);
    attncl__free(t->graphs);
    t->graphs = NULL;
    t->n_graphs = t->graphs_capacity = 0;
}

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
    if (!trains && attncl__trainer_has_labels(t))
        attncl_graph_output(g, "class", attncl_argmax(g, scores));
    return attncl_graph_status(g);
}

attncl_status attncl__trainer_add_gradients(attncl_trainer *t, attncl_graph *g,
                                            const struct batch *batch, attncl_value *loss_ret,
                                            attncl_value *weights_ret, attncl_value *gradients_ret)
{
    TRY(add_loss(t, g, batch, true, loss_ret));
    attncl_value target = *loss_ret;
    if (attncl__trainer_sums(t)) // its share in the mean over batches and ranks
        target = attncl_mul(g, target, attncl_graph_input(g, "loss_weight", ATTNCL_F32, 0, NULL));
    return attncl_model_gradient(t->model, g, target, weights_ret, gradients_ret);
}

// Lists of n_trained values.
struct lists {
    attncl_value *weights, *gradients;
};

static attncl_status build(attncl_trainer *t, enum graph_kind kind, const struct batch *batch,
                           const struct lists *l, attncl_graph *g)
{
    attncl_value loss = ATTNCL_NONE_VALUE;
    switch (kind) {
    case GRAPH_LOSS:
        return add_loss(t, g, batch, false, &loss);
    case GRAPH_STEP:
        TRY(attncl__trainer_add_gradients(t, g, batch, &loss, l->weights, l->gradients));
        return attncl__update_add(t, g, loss, l->weights, l->gradients);
    case GRAPH_GRADIENT:
        TRY(attncl__trainer_add_gradients(t, g, batch, &loss, l->weights, l->gradients));
        if (attncl__grad_sums_are_outputs(t))
            attncl__grad_sums_output(t, g, l->gradients);
        for (size_t i = 0; i < t->n_trained && !attncl__grad_sums_are_outputs(t); ++i)
            attncl_accumulate(g, attncl_graph_tensor(g, t->trained[i].gradient), l->gradients[i]);
        if (t->fault)
            attncl__update_note_fault(t, g, loss);
        break;
    case GRAPH_UPDATE:
        for (size_t i = 0; i < t->n_trained; ++i) {
            l->weights[i] = attncl_graph_tensor(g, t->trained[i].tensor[KEPT_WEIGHT]);
            l->gradients[i] = attncl_graph_tensor(g, t->trained[i].gradient);
        }
        return attncl__update_add(t, g, loss, l->weights, l->gradients);
    }
    return attncl_graph_status(g);
}

static attncl_status compile(attncl_trainer *t, enum graph_kind kind, const struct batch *batch,
                             attncl_graph **ret)
{
    attncl_status status = ATTNCL_OK;
    attncl_graph *g = NULL;
    const struct lists l = {
        .weights = attncl__alloc_array(t->n_trained, sizeof *l.weights),
        .gradients = attncl__alloc_array(t->n_trained, sizeof *l.gradients),
    };
    if (!l.weights || !l.gradients) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "%zu gradients", t->n_trained);
        goto done;
    }
    TRY_DONE(attncl_graph_create(t->context, &g));
    TRY_DONE(build(t, kind, batch, &l, g));
    TRY_DONE(attncl_graph_compile(g, NULL));
    *ret = g;
    g = NULL;
done:
    attncl_graph_destroy(g);
    attncl__free(l.weights);
    attncl__free(l.gradients);
    return status;
}

static bool fits(const struct shaped_graph *shaped, enum graph_kind kind, const struct batch *batch)
{
    const size_t n = batch ? batch->n : 0;
    if (shaped->kind != kind || shaped->n != n)
        return false;
    if (batch && (shaped->begin != batch->begin || shaped->total != batch->total))
        return false; // other masks of dropout
    for (size_t i = 0; i < n; ++i) {
        const attncl_array *a = &shaped->array[i], *b = &batch->array[i];
        if (a->rank != b->rank || strcmp(a->name, b->name) != 0 ||
            memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) != 0)
            return false;
    }
    return true;
}

attncl_status attncl__trainer_graph(attncl_trainer *t, enum graph_kind kind,
                                    const struct batch *batch, attncl_graph **ret)
{
    for (size_t i = 0; i < t->n_graphs; ++i) {
        if (fits(&t->graphs[i], kind, batch)) {
            *ret = t->graphs[i].graph;
            return ATTNCL_OK;
        }
    }
    struct shaped_graph *graphs =
        attncl__grow_list(t->graphs, t->n_graphs, &t->graphs_capacity, sizeof *graphs);
    REQUIRE(graphs, ATTNCL_ERR_NO_MEMORY, "%zu graphs", t->n_graphs + 1);
    t->graphs = graphs;
    struct shaped_graph shaped = {.kind = kind};
    if (batch) {
        shaped.n = batch->n;
        shaped.begin = batch->begin;
        shaped.total = batch->total;
    }
    for (size_t i = 0; i < shaped.n; ++i) {
        shaped.array[i] = batch->array[i];
        shaped.array[i].data = NULL;
    }
    TRY(compile(t, kind, batch, &shaped.graph));
    t->graphs[t->n_graphs++] = shaped;
    *ret = shaped.graph;
    return ATTNCL_OK;
}
