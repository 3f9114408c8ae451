// SPDX-License-Identifier: MIT
/**
 * @file attncl/optim.h
 * Steps of an optimiser: Adam (Kingma and Ba 2014, arXiv 1412.6980) with AMSGrad and weight decay,
 * learning-rate schedules, and clipping of gradients by their norm.
 *
 *     t = steps taken + 1,   m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2
 *     p -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps)                     PyTorch's form
 *     p -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)                   optimized
 *
 * attncl_adam_step() gives new values, attncl_adam_update() writes over the old ones: with weights
 * and attncl_graph_gradient() (attncl/gradient.h), each run of a graph is a step of training.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_OPTIM_H
#define ATTNCL_OPTIM_H

#include "attncl/graph.h"

ATTNCL_BEGIN

/** Start from ATTNCL_ADAM_DESC_INIT and set the rate. */
typedef struct attncl_adam_desc {
    size_t struct_size;
    double learning_rate;
    double beta1, beta2; /**< in [0, 1) */
    double eps;
    double weight_decay;
    int decoupled; /**< 1: p *= 1 - learning_rate weight_decay first; 0: g += weight_decay p */
    int optimized; /**< 1: the form above in which eps is not corrected */
} attncl_adam_desc;

#define ATTNCL_ADAM_DESC_INIT                                                                      \
    {                                                                                              \
        sizeof(attncl_adam_desc), 0, 0.9, 0.999, 1e-8, 0, 1, 1                                     \
    }

/** How the learning rate of step t changes. */
typedef enum attncl_rate_schedule {
    ATTNCL_RATE_CONSTANT = 0, /**< learning_rate */
    ATTNCL_RATE_INVERSE_SQRT =
        1, /**< Noam's: learning_rate d_model^-1/2 min(t^-1/2, t warmup^-3/2) */
} attncl_rate_schedule;

/** A learning-rate schedule (Vaswani et al. 2017, 5.3).  Start from ATTNCL_SCHEDULE_DESC_INIT. */
typedef struct attncl_schedule_desc {
    size_t struct_size;
    attncl_rate_schedule kind;
    double d_model; /**< INVERSE_SQRT: the model's width, > 0 */
    double warmup;  /**< INVERSE_SQRT: steps of rising rate, > 0 */
} attncl_schedule_desc;

#define ATTNCL_SCHEDULE_DESC_INIT                                                                  \
    {                                                                                              \
        sizeof(attncl_schedule_desc), ATTNCL_RATE_CONSTANT, 0, 2000                                \
    }

/** A parameter and its running means, all of one shape.  max_exp_avg_sq: AMSGrad's largest mean
 * square so far; null: plain Adam. */
typedef struct attncl_adam_values {
    size_t struct_size;
    attncl_value param, exp_avg, exp_avg_sq, max_exp_avg_sq;
} attncl_adam_values;

#define ATTNCL_ADAM_VALUES_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_adam_values), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,       \
            ATTNCL_VALUE_INIT                                                                      \
    }

/**
 * What all parameters of a step share, [2].
 * @param schedule  NULL: a constant rate
 * @param step      I32 [], the steps taken before this one
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.  Since: 0.1.
 */
ATTNCL_API attncl_value attncl_adam_rates(attncl_graph *g, const attncl_adam_desc *desc,
                                          const attncl_schedule_desc *schedule, attncl_value step);

/**
 * The values after a step.
 * @param rates      from attncl_adam_rates() with the same desc
 * @param after_ret  filled; null values in it when the graph has failed
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.  Since: 0.1.
 */
ATTNCL_API void attncl_adam_step(attncl_graph *g, const attncl_adam_desc *desc, attncl_value rates,
                                 attncl_value grad, const attncl_adam_values *before,
                                 attncl_adam_values *after_ret);

/**
 * The same step in place, when a run gets to this place of the graph: what was built before reads
 * the old values, what is built after it the new ones.  All of `values` are weights
 * (attncl_graph_weight(); every graph that has the tensor sees the change, and no other graph using
 * it may run concurrently) or state (attncl_graph_state()).  No result.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.  Since: 0.1.
 */
ATTNCL_API void attncl_adam_update(attncl_graph *g, const attncl_adam_desc *desc,
                                   attncl_value rates, attncl_value grad,
                                   const attncl_adam_values *values);

typedef enum attncl_clip_style {
    ATTNCL_CLIP_EPSILON = 0, /**< times min(1, max_norm / (norm + 1e-6)): never divides by 0 */
    ATTNCL_CLIP_EXACT = 1,   /**< times max_norm / norm where norm > max_norm */
} attncl_clip_style;

/**
 * Scales gradients so that the norm of all together is at most max_norm.  The norm is a sum in a
 * fixed order, right for any finite elements.
 * @param n, grads     at least one, of any shapes
 * @param clipped_ret  receives n values
 * @return             the norm before, []
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.  Since: 0.1.
 */
ATTNCL_API attncl_value attncl_clip_grad_norm(attncl_graph *g, size_t n, const attncl_value *grads,
                                              double max_norm, attncl_clip_style style,
                                              attncl_value *clipped_ret);

ATTNCL_END

#endif
