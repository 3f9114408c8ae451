// SPDX-License-Identifier: MIT
// The loss of a golden file's model and its gradients, as a compiled graph.
#ifndef ATTNCL_TEST_LOSS_GRAPH_H
#define ATTNCL_TEST_LOSS_GRAPH_H

#include "attncl/attncl.h"
#include "support/golden.h"

struct loss_graph {
    struct golden golden;
    attncl_model *model;
    attncl_graph *g;
    size_t n_weights;
};

// Loads the golden file and its model; then builds the graph and writes its inputs.  `desc` without
// `step`, which becomes the input "step"; NULL: without dropout.
void loss_graph_open(struct loss_graph *p, const char *name);
void loss_graph_build(struct loss_graph *p, const attncl_loss_desc *desc, const attncl_array *in,
                      size_t n_in);
void loss_graph_close(struct loss_graph *p);

// Runs the graph, at a step where it has that input.  Returns the loss.
float loss_graph_run(struct loss_graph *p);
float loss_graph_run_at(struct loss_graph *p, int32_t step);

// Weight i and, after a run, its gradient, the caller's to free.  Returns the number of elements.
size_t loss_graph_gradient(struct loss_graph *p, size_t i, attncl_model_tensor *weight,
                           float **ret);

#endif
