// SPDX-License-Identifier: MIT
/**
 * @file attncl/dropout.h
 * Inverted dropout whose mask is a function of a counter: nothing is stored, the backward pass makes
 * the same mask again, and every device makes the same one.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_DROPOUT_H
#define ATTNCL_DROPOUT_H

#include "attncl/graph.h"

ATTNCL_BEGIN

/**
 * One place of a model where elements are dropped.
 *
 * The words are those of Philox 4x32-10 (Salmon et al. 2011), key = (low, high word of seed), counter =
 * (low, high word of the block's index, site, step).  A block is four consecutive elements of the
 * last axis, which counts as padded to a multiple of four; blocks are numbered row by row.  An element
 * is kept where its word is at least p 2^32, and then times 1 / (1 - p).
 */
typedef struct attncl_dropout_desc {
    size_t struct_size;
    double p;          /**< 0: nothing is dropped; 1: everything */
    uint64_t seed;     /**< of the whole training */
    uint32_t site;     /**< tells places of a model apart */
    attncl_value step; /**< I32 [] in device memory: tells steps apart; may be null where p is 0 */
    attncl_value position; /**< I32 [1], or null: the value is row `position` of a larger one */
    attncl_value residual; /**< like the value, or null: added to the result by the same kernel;
                              attncl_dropout() alone */
    int64_t batch_begin,
        batch_total; /**< the value holds the entries from batch_begin on of a batch of
                                         batch_total, whose mask it gets; 0, 0: all of it */
    int batch_axis; /**< where those entries lie; of attncl_dropout() and attncl_feed_forward(), other
                       layers know it.  Never the last axis */
} attncl_dropout_desc;

#define ATTNCL_DROPOUT_DESC_INIT                                                                   \
    {                                                                                              \
        sizeof(attncl_dropout_desc), 0, 0, 0, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,                \
            ATTNCL_VALUE_INIT, 0, 0, 0                                                             \
    }

/**
 * Drops elements of x [...]: x / (1 - p) where the element is kept, else 0, plus the residual.  In
 * training only: a graph that evaluates does without.  With p = 0 no node is added and the result is x
 * itself, or the sum with the residual.
 * @param desc  borrowed for the call; NULL: nothing is dropped
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_dropout(attncl_graph *g, attncl_value x,
                                       const attncl_dropout_desc *desc);

ATTNCL_END

#endif
