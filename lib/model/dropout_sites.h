// SPDX-License-Identifier: MIT
// Where a model drops elements in training.  Places are numbered from 0 as the forward pass meets them:
// of a layer its attention weights, what its attention adds, its hidden channels, what its feed-forward
// network adds; a layer that is run step by step has one number for all steps.
#ifndef ATTNCL_MODEL_DROPOUT_SITES_H
#define ATTNCL_MODEL_DROPOUT_SITES_H

#include "attncl/dropout.h"

struct dropout_sites {
    double p; // 0: nothing is dropped
    uint64_t seed;
    attncl_value step;                // I32 []
    uint32_t n;                       // met so far
    int64_t batch_begin, batch_total; // of attncl_loss_desc
};

// Of the next place, where the batch is axis `batch_axis`; its number is taken where p is not 0.
attncl_dropout_desc attncl__dropout_next(struct dropout_sites *sites, int batch_axis);

// dropout(y) + residual at the next place.
attncl_value attncl__dropout_add(attncl_graph *g, struct dropout_sites *sites, int batch_axis,
                                 attncl_value y, attncl_value residual);

#endif
