// SPDX-License-Identifier: MIT
//
// Finds the first op of a step with a result that is not finite, by making all results outputs.

#include <math.h>
#include <stdio.h>

#include "base/struct.h"
#include "graph/nodes.h"
#include "train/trainer.h"

enum { NAME_BYTES = 24 };

static void write_result_name(int node, int output, char ret[NAME_BYTES])
{
    snprintf(ret, NAME_BYTES, "%d.%d", node, output);
}

// -- finding

static bool find_element(const float *values, size_t n, attncl_train_fault *fault)
{
    for (size_t i = 0; i < n; ++i) {
        if (isfinite(values[i]))
            continue;
        fault->element = (int64_t)i;
        fault->value = (double)values[i];
        return true;
    }
    return false;
}

static attncl_status find_parameter(attncl_trainer *t, float *values, attncl_train_fault *fault)
{
    for (size_t i = 0; i < t->n_trained && !fault->op; ++i) {
        const struct trained *trained = &t->trained[i];
        TRY(attncl_tensor_read(trained->tensor[KEPT_WEIGHT], values,
                               trained->count * sizeof *values));
        if (find_element(values, trained->count, fault)) {
            fault->op = "parameter";
            fault->scope = trained->name;
        }
    }
    return ATTNCL_OK;
}

static bool is_readable(const attncl_graph *g, int value)
{
    return value != 0 && g->values[value].desc.dtype == ATTNCL_F32;
}

static attncl_status find_result(attncl_trainer *t, attncl_graph *g, int n_nodes, float *values,
                                 attncl_train_fault *fault)
{
    for (int i = 0; i < n_nodes && !fault->op; ++i) {
        const struct node *node = &g->nodes[i];
        for (int k = 0; k < node->cls->n_out && !fault->op; ++k) {
            if (!is_readable(g, node->out[k]))
                continue;
            const struct tensor_desc *desc = &g->values[node->out[k]].desc;
            char name[NAME_BYTES];
            write_result_name(i, k, name);
            TRY(attncl_graph_read(g, name, values, attncl__desc_bytes(desc)));
            if (!find_element(values, (size_t)attncl__desc_count(desc), fault))
                continue;
            snprintf(t->fault_text, sizeof t->fault_text, "%s", node->scope ? node->scope : "");
            fault->op = node->cls->name;
            fault->scope = t->fault_text;
        }
    }
    return ATTNCL_OK;
}

// -- the graph

static size_t largest_bytes(const attncl_trainer *t, const attncl_graph *g)
{
    size_t largest = t->largest * sizeof(float);
    for (int i = 1; i < g->n_values; ++i)
        if (attncl__desc_bytes(&g->values[i].desc) > largest)
            largest = attncl__desc_bytes(&g->values[i].desc);
    return largest;
}

// *n_nodes_ret: the nodes of the step, without copies that outputs may add.
static attncl_status build_check(attncl_trainer *t, const struct batch *batch, attncl_graph *g,
                                 int *n_nodes_ret)
{
    attncl_value loss;
    TRY(attncl__add_gradients(t, g, batch, &loss));
    *n_nodes_ret = g->n_nodes;
    for (int i = 0; i < *n_nodes_ret; ++i) {
        for (int k = 0; k < g->nodes[i].cls->n_out; ++k) {
            char name[NAME_BYTES];
            write_result_name(i, k, name);
            if (is_readable(g, g->nodes[i].out[k]))
                attncl_graph_output(g, name, attncl__graph_handle(g, g->nodes[i].out[k]));
        }
    }
    return attncl_graph_compile(g, NULL);
}

static attncl_status check_batch(attncl_trainer *t, struct batch_in_flight *b,
                                 attncl_train_fault *fault)
{
    attncl_status status = ATTNCL_OK;
    attncl_graph *g = NULL;
    float *values = NULL;
    int n_nodes = 0;
    TRY_DONE(attncl_graph_create(t->context, &g));
    b->graph = g;
    TRY_DONE(build_check(t, &b->part.batch, g, &n_nodes));
    values = attncl__alloc(largest_bytes(t, g));
    if (!values)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "a result of %zu bytes", largest_bytes(t, g)));
    TRY_DONE(find_parameter(t, values, fault));
    TRY_DONE(attncl__write_inputs(t, b));
    TRY_DONE(attncl_graph_run(g));
    TRY_DONE(find_result(t, g, n_nodes, values, fault));
done:
    attncl__free(values);
    attncl_graph_destroy(g);
    return status;
}

attncl_status attncl_trainer_check(attncl_trainer *trainer, attncl_train_fault *fault_ret)
{
    REQUIRE(trainer && fault_ret, ATTNCL_ERR_ARGUMENT, "trainer or fault_ret is NULL");
    TRY(attncl__check_usable(trainer));
    attncl_train_fault fault = ATTNCL_TRAIN_FAULT_INIT;
    const int64_t n_batches = trainer->config.settings.accumulate;
    for (int64_t i = 0; i < n_batches && !fault.op; ++i) {
        struct batch_in_flight b = {.index = trainer->progress.step * n_batches + i, .share = 1};
        TRY(attncl__prepare_part(trainer, b.index, &b.part));
        const attncl_status status = b.part.is_empty ? ATTNCL_OK : check_batch(trainer, &b, &fault);
        attncl__batch_free(&b.part.batch);
        TRY(status);
    }
    return STRUCT_WRITE(attncl_train_fault, fault_ret, &fault);
}
