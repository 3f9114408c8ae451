// SPDX-License-Identifier: MIT
// The gradients that arrive at a graph's values while it is walked backwards, and their sums.
#ifndef ATTNCL_GRAPH_ARRIVALS_H
#define ATTNCL_GRAPH_ARRIVALS_H

#include "graph/parts.h"

// What arrived at one value: a sum for all of it, and pieces for views of parts of it.
struct arrival {
    int whole;       // value id, 0: none
    int first_piece; // of the list, -1: none
};

// The gradient of what a view shows.
struct piece {
    struct tensor_desc view; // in elements of the base
    int64_t low, high;       // the stretch of memory it lies in
    int value;
    int next;
};

struct arrivals {
    attncl_graph *g;
    int n_values; // those there were when the walk began; later ones have no arrivals
    int *root;    // by value: whose gradient is meant: the base's, one for all uses of a tensor
    struct arrival *at; // by root
    struct piece *pieces;
    int n_pieces, pieces_room;
};

// ERR_NO_MEMORY.  Released by the second in either case; it takes what was never begun (zeros).
attncl_status attncl__arrivals_begin(struct arrivals *a, attncl_graph *g);
void attncl__arrivals_free(struct arrivals *a);

// `gradient`, of the shape of `value` or of as many elements, arrives there.  What arrives for the
// whole of a value is added at once, in the order of the calls.
void attncl__arrivals_add(struct arrivals *a, int value, attncl_value gradient);

// True when something has arrived.
bool attncl__arrivals_any(const struct arrivals *a, int value);

// All that has arrived at `value`'s base, in the base's shape; the null value when nothing has, or
// when the graph fails.
attncl_value attncl__arrivals_sum(struct arrivals *a, int value);

#endif
