// SPDX-License-Identifier: MIT
// Gradients of loops, for a loop that differentiates the iterations of another.
#ifndef ATTNCL_AUTODIFF_LOOPS_H
#define ATTNCL_AUTODIFF_LOOPS_H

#include "graph/graph.h"

// -- results of iterations, kept
//
// A backward loop adds an iteration's forward nodes again, to build gradients from them.  The forward loop has kept their
// results, so that consumers read the kept rows instead and nodes without a consumer are eliminated.  Without a backward
// loop the stacks have no consumer and are eliminated too.

// The first of a forward loop's nodes that are kept, and the stacks that keep their results.
struct loop_saves {
    int first_node, first_stack, n_stacks;
};

// The number of nodes so far: of the next one.
int attncl__loop_saves_next_node(const attncl_graph *g);

// Within the forward loop: keeps the results of the nodes from `first_node` on, one row of n_rows
// in each iteration.
struct loop_saves attncl__loop_saves_add(attncl_graph *g, int first_node, attncl_value position,
                                         int32_t n_rows);

struct loop_reads {
    struct loop_saves saves;
    int *rows; // by stack: the row of this iteration
};

// Within the backward loop, before the nodes are added again.
// Ended by attncl__loop_reads_free(), also after a failure.
attncl_status attncl__loop_reads_begin(attncl_graph *g, const struct loop_saves *saves,
                                       attncl_value position, struct loop_reads *r);
// The nodes from `first_again` on, which begin with those added again, read the kept rows.
attncl_status attncl__loop_reads_replace(attncl_graph *g, const struct loop_reads *r,
                                         int first_again);
void attncl__loop_reads_free(struct loop_reads *r);

// -- gradients of values that every iteration reads, summed over the iterations
//
// The gradient of a linear map's weight, d^T x, is one product after the loop rather than a sum in each iteration: the
// loop keeps the rows of d and x.

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
