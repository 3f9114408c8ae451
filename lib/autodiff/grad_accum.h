// SPDX-License-Identifier: MIT
// Accumulates the gradients of a graph's values during the backward pass.
#ifndef ATTNCL_AUTODIFF_GRAD_ACCUM_H
#define ATTNCL_AUTODIFF_GRAD_ACCUM_H

#include "autodiff/view_grads.h"

// The gradient of one value: a sum for all of it, and a list for views of parts of it.
struct grad_slot {
    int whole;           // value id, 0: none
    int first_view_grad; // of its list, -1: none
};

struct grad_accum {
    attncl_graph *g;
    int n_values; // when the backward pass began; later ones get no gradient
    int *root; // by value: the one that holds its gradient: the base, one for all uses of a tensor
    struct grad_slot *slots; // by root
    struct view_grads view_grads;
};

// ERR_NO_MEMORY.  Free it in either case; a zeroed struct may be freed too.
attncl_status attncl__grad_accum_begin(struct grad_accum *a, attncl_graph *g);
void attncl__grad_accum_free(struct grad_accum *a);

// Accumulates `gradient`, of the shape of `value` or of as many elements.  Gradients of whole
// values are added immediately, in the order of the calls.
void attncl__grad_accum_add(struct grad_accum *a, int value, attncl_value gradient);

// True when a gradient has been accumulated.
bool attncl__grad_accum_any(const struct grad_accum *a, int value);

// The accumulated gradient of `value`'s base, in the base's shape; the null value when there is
// none or when the graph fails.
attncl_value attncl__grad_accum_get(struct grad_accum *a, int value);

#endif
