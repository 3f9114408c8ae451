// SPDX-License-Identifier: MIT
// The gradient of what every iteration of a loop reads: the sum of what the iterations compute.
//
// What a linear map adds to the gradient of its weight, d^T x, is not computed in each iteration:
// the rows of d and x are kept, and multiplied at once after the loop, as those of a layer that
// has all rows from the beginning.
#ifndef ATTNCL_AUTODIFF_LOOP_SUMS_H
#define ATTNCL_AUTODIFF_LOOP_SUMS_H

#include "graph/graph.h"

struct loop_sums {
    attncl_graph *g;
    attncl_value position; // the row of this iteration, I32 [1]
    int32_t n_rows, first; // rows; the first iteration's
    int *stack_of;         // by value id: the stack of its rows, 0: none yet
    int n_values;
};

// One sum: complete, or an op of stacks of rows.
enum { LOOP_SUM_MAX_IN = 2 };
struct loop_sum {
    attncl_value sum;
    const struct op_class *cls; // NULL: complete
    attncl_value in[LOOP_SUM_MAX_IN];
};

// Within a loop of n_rows iterations.  Ended by attncl__loop_sums_free(), also after a failure.
attncl_status attncl__loop_sums_begin(attncl_graph *g, attncl_value position, int32_t n_rows,
                                      int32_t first, struct loop_sums *s);
void attncl__loop_sums_free(struct loop_sums *s);

// Within the loop: the rows of x, [n_rows, ...]; complete after it.
attncl_value attncl__loop_sums_stack(struct loop_sums *s, attncl_value x);
// Within the loop: begins the sum of x.
struct loop_sum attncl__loop_sums_add(struct loop_sums *s, attncl_value x);
// After the loop.
attncl_value attncl__loop_sum_value(attncl_graph *g, const struct loop_sum *sum);

#endif
