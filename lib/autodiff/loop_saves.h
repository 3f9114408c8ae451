// SPDX-License-Identifier: MIT
// What the iterations of a loop compute, kept for a loop that differentiates them.
//
// A backward loop adds the forward nodes of an iteration again, so that gradients can be built from
// them.  What they compute has been kept by the forward loop: consumers read the kept rows instead,
// and the nodes that have none left are eliminated.  Without a backward loop the stacks have no
// consumer, and are eliminated too.
#ifndef ATTNCL_AUTODIFF_LOOP_SAVES_H
#define ATTNCL_AUTODIFF_LOOP_SAVES_H

#include "graph/graph.h"

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

#endif
