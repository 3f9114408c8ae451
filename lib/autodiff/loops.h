// SPDX-License-Identifier: MIT
// Gradients of loops, for a loop that differentiates the iterations of another.
#ifndef ATTNCL_AUTODIFF_LOOPS_H
#define ATTNCL_AUTODIFF_LOOPS_H

#include "graph/graph.h"

// -- saved results of a forward loop
//
// A backward loop adds an iteration's forward nodes again and builds gradients from them.  The forward loop stacks the
// results of each iteration as rows, so that consumers read these rows and the repeated nodes are eliminated.  Without
// a backward loop the stacks have no consumer and are eliminated instead.

// The first forward node whose results are saved, and the nodes that stack them.
struct loop_saves {
    int first_node, first_stack, n_stacks;
};

// Returns the index that the next node gets: `first_node` of attncl__loop_saves_add().
int attncl__loop_saves_first_node(const attncl_graph *g);

// In the forward loop: saves the results of the nodes from `first_node` on, one of n_rows rows per iteration.
struct loop_saves attncl__loop_saves_add(attncl_graph *g, int first_node, attncl_value position,
                                         int32_t n_rows);

struct loop_reads {
    struct loop_saves saves;
    int *rows; // by stack: the row of this iteration
};

// In the backward loop, before the nodes are added again.  Call attncl__loop_reads_free() after a failure too.
attncl_status attncl__loop_reads_begin(attncl_graph *g, const struct loop_saves *saves,
                                       attncl_value position, struct loop_reads *reads);
// Makes the nodes from `first_again` on read the saved rows; they begin with the repeated forward nodes.
attncl_status attncl__loop_reads_replace(attncl_graph *g, const struct loop_reads *reads,
                                         int first_again);
void attncl__loop_reads_free(struct loop_reads *reads);

// -- gradients of values that every iteration reads, summed over the iterations
//
// The gradient of a linear map's weight, d^T x, is one GEMM after the loop instead of a sum in each iteration: the loop
// stacks the rows of d and x.

struct loop_sums {
    attncl_graph *g;
    attncl_value position; // the row of this iteration, I32 [1]
    int32_t n_rows, first; // number of rows; the first iteration's row
    int *stack_of;         // by value id: the stack of its rows; 0: none yet
    int n_values;          // length of stack_of
};

// One sum: already complete, or an op that reads stacks of rows.
enum { LOOP_SUM_MAX_IN = 2 };
struct loop_sum {
    attncl_value sum;
    const struct op_class *cls; // NULL: complete
    attncl_value in[LOOP_SUM_MAX_IN];
};

// In a loop of n_rows iterations.  Call attncl__loop_sums_free() after a failure too.
attncl_status attncl__loop_sums_begin(attncl_graph *g, attncl_value position, int32_t n_rows,
                                      int32_t first, struct loop_sums *sums);
void attncl__loop_sums_free(struct loop_sums *sums);

// In the loop: stacks the rows of x, [n_rows, ...]; complete after the loop.
attncl_value attncl__loop_sums_stack(struct loop_sums *sums, attncl_value x);
// In the loop: begins the sum of x.
struct loop_sum attncl__loop_sums_add(struct loop_sums *sums, attncl_value x);
// After the loop: returns the complete sum.
attncl_value attncl__loop_sum_finish(attncl_graph *g, const struct loop_sum *sum);

#endif
