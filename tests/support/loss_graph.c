// SPDX-License-Identifier: MIT

#include "support/loss_graph.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_WEIGHTS = 96, LABEL_BYTES = 32 };

void loss_graph_open(struct loss_graph *p, const char *name)
{
    p->model = golden_open(&p->golden, name);
    ck_ok(attncl_graph_create(test_context(), &p->g));
    p->n_weights = attncl_model_tensor_count(p->model);
    ck_assert_uint_le(p->n_weights, MAX_WEIGHTS);
}

void loss_graph_build(struct loss_graph *p, const attncl_loss_desc *desc, const attncl_array *in,
                      size_t n_in)
{
    attncl_value loss, weights[MAX_WEIGHTS], gradients[MAX_WEIGHTS];
    attncl_loss_desc stepped = ATTNCL_LOSS_DESC_INIT;
    char label[LABEL_BYTES];

    if (desc) {
        stepped = *desc;
        stepped.step = attncl_graph_input(p->g, "step", ATTNCL_I32, 0, NULL);
    }
    ck_ok(attncl_model_loss(p->model, p->g, desc ? &stepped : NULL, in, n_in, &loss));
    ck_ok(attncl_model_gradient(p->model, p->g, loss, weights, gradients));
    attncl_graph_output(p->g, "loss", loss);
    for (size_t i = 0; i < p->n_weights; ++i) {
        snprintf(label, sizeof label, "%zu", i);
        attncl_graph_output(p->g, label, gradients[i]);
    }
    ck_ok(attncl_graph_compile(p->g, NULL));
    for (size_t i = 0; i < n_in; ++i)
        ck_ok(attncl_graph_write(p->g, in[i].name, in[i].data, in[i].bytes));
}

void loss_graph_close(struct loss_graph *p)
{
    attncl_graph_destroy(p->g);
    golden_close(&p->golden, p->model);
}

float loss_graph_run(struct loss_graph *p)
{
    float loss;
    ck_ok(attncl_graph_run(p->g));
    ck_ok(attncl_graph_read(p->g, "loss", &loss, sizeof loss));
    return loss;
}

float loss_graph_run_at(struct loss_graph *p, int32_t step)
{
    ck_ok(attncl_graph_write(p->g, "step", &step, sizeof step));
    return loss_graph_run(p);
}

size_t loss_graph_gradient(struct loss_graph *p, size_t i, attncl_model_tensor *weight, float **ret)
{
    char label[LABEL_BYTES];
    size_t count = 1;

    *weight = (attncl_model_tensor)ATTNCL_MODEL_TENSOR_INIT;
    ck_ok(attncl_model_tensor_at(p->model, i, weight));
    for (int k = 0; k < weight->shape.rank; ++k)
        count *= (size_t)weight->shape.dim[k];
    *ret = malloc(count * sizeof **ret);
    ck_assert_ptr_nonnull(*ret);
    snprintf(label, sizeof label, "%zu", i);
    ck_ok(attncl_graph_read(p->g, label, *ret, count * sizeof **ret));
    return count;
}
