// SPDX-License-Identifier: MIT
// What the backward pass of a feedback transformer's steps (feedback_backward.c) reads and differentiates.
#ifndef ATTNCL_LAYER_FEEDBACK_PASS_H
#define ATTNCL_LAYER_FEEDBACK_PASS_H

#include "autodiff/loop_sums.h"
#include "layer/feedback_internal.h"

// The region's context; the layers follow.
struct feedback_context {
    struct feedback_steps steps; // p is set when it is used
    struct feedback_model p;
    struct loop_saves saves;
    int64_t n_steps;
    struct feedback_layer layers[];
};

// Pointers to the parameter values that a step reads, at most as many as the second says with x.  Returns
// their number.
int attncl__feedback_list_values(struct feedback_context *c, attncl_value **list);
int attncl__feedback_max_values(int64_t n_layers);

// A backward pass under construction: a copy of the context, and lists of what the steps read.
struct feedback_pass {
    struct feedback_context *c;
    attncl_value **list; // in the copy
    int n;
    attncl_value *whole;           // the region's inputs, before tables were truncated
    attncl_value *inner, *inner_d; // inputs of a step that require a gradient; their gradients
    int *index;                    // of an inner value, in the list; -1: x
    struct loop_sum *sum;          // of an inner value's gradient
    int n_inner;
};

// attncl__feedback_pass_free() also where it fails.
attncl_status attncl__feedback_pass_init(const struct feedback_context *given,
                                         struct feedback_pass *b);
void attncl__feedback_pass_free(struct feedback_pass *b);

// Tables of positions become the rows that a sequence reads.
void attncl__feedback_pass_truncate(attncl_graph *g, struct feedback_context *c);

// Lists what requires a gradient: x, and values of the list.  One that several layers share is there once.
void attncl__feedback_pass_list(struct feedback_pass *b, attncl_value x, const bool *requires_grad);

#endif
