// SPDX-License-Identifier: MIT
/** @file attncl/kinds.h  The choices that ops and layers offer: activations, layouts, losses. */
#ifndef ATTNCL_KINDS_H
#define ATTNCL_KINDS_H

#include "attncl/export.h"

ATTNCL_BEGIN

/** An elementwise function. */
typedef enum attncl_activation {
    ATTNCL_IDENTITY = 0,
    ATTNCL_GELU = 1, /**< exact: x Phi(x), by erfc */
    ATTNCL_RELU = 2,
    ATTNCL_SIGMOID = 3,
    ATTNCL_TANH = 4,
    ATTNCL_SILU = 5,      /**< x sigmoid(x) */
    ATTNCL_GELU_TANH = 6, /**< 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GPT-2's */
} attncl_activation;

/** Where the sequence axis is. */
typedef enum attncl_layout {
    ATTNCL_LAYOUT_TIME_FIRST = 0,  /**< [T, B, C] */
    ATTNCL_LAYOUT_BATCH_FIRST = 1, /**< [B, T, C] */
} attncl_layout;

/** What becomes of a loss per element. */
typedef enum attncl_reduction {
    ATTNCL_REDUCE_MEAN = 0,
    ATTNCL_REDUCE_SUM = 1,
    ATTNCL_REDUCE_NONE = 2,
} attncl_reduction;

/** How the learning rate changes with step t, counted from 1.  All but INVERSE_SQRT begin with
 * learning_rate t / warmup up to t = warmup. */
typedef enum attncl_rate_schedule {
    ATTNCL_RATE_CONSTANT = 0, /**< learning_rate */
    ATTNCL_RATE_INVERSE_SQRT =
        1, /**< Noam's: learning_rate d_model^-1/2 min(t^-1/2, t warmup^-3/2) (arXiv 1706.03762) */
    ATTNCL_RATE_LINEAR = 2, /**< from learning_rate at t = warmup to min_rate from n_steps on */
    ATTNCL_RATE_COSINE = 3, /**< the same along half a cosine (arXiv 1608.03983, no restarts) */
} attncl_rate_schedule;

/**
 * What matrix instructions may make of the factors of products, where the device has them and they
 * are faster.  Sums are float32; every other operation stays as it is, and so does a device without them.
 */
typedef enum attncl_precision {
    ATTNCL_PRECISION_DEFAULT = 0, /**< of a graph: its context's; of a context: FLOAT32 */
    ATTNCL_PRECISION_FLOAT32 = 1, /**< as exact as float32 throughout */
    ATTNCL_PRECISION_TF32 = 2,    /**< factors rounded to 11 bits: errors of 2^-10 of sum |a b| */
    ATTNCL_PRECISION_BF16 = 3,    /**< factors rounded to 8 bits: errors of 2^-7 of sum |a b| */
} attncl_precision;

ATTNCL_END

#endif
