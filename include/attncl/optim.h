// SPDX-License-Identifier: MIT
/**
 * @file attncl/optim.h
 * Steps of an optimiser: Adam (Kingma and Ba 2014, arXiv 1412.6980) with AMSGrad and weight decay,
 * also as AdamW (arXiv 1711.05101); stochastic gradient descent with momentum; learning-rate
 * schedules; clipping of gradients by their norm.
 *
 *     t = steps taken + 1,   m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2
 *     p -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps)                     PyTorch's form
 *     p -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)                   optimized
 *
 * attncl_adam_step() returns new values; attncl_adam_update() overwrites the old ones, so that with weights and
 * attncl_graph_gradient() (attncl/gradient.h) each run of a graph is a training step.  The learning rate is a constant,
 * follows a schedule on the device, or is an input of the graph, which the host may write before each run:
 *
 *     attncl_value rate = attncl_graph_input(g, "learning_rate", ATTNCL_F32, 0, NULL);
 *     attncl_value rates = attncl_adam_rates(g, &adam, rate, step);
 *
 * As in PyTorch, NaN and infinity stay with their element and do not go away.  In Adam an infinite gradient makes its
 * parameter NaN; a gradient whose square overflows stops its parameter from changing.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_OPTIM_H
#define ATTNCL_OPTIM_H

#include "attncl/graph.h"
#include "attncl/kinds.h"

ATTNCL_BEGIN

/** Start from one of the three below and set the rate. */
typedef struct attncl_adam_desc {
    size_t struct_size;
    double learning_rate;
    double beta1, beta2; /**< in [0, 1) */
    double eps;
    double weight_decay;
    int decoupled; /**< 1: p *= 1 - learning_rate weight_decay first; 0: g += weight_decay p */
    int optimized; /**< 1: the form above in which eps is not corrected */
    int scheduled_decay; /**< 1: decoupled decay is by the rate of the step, not learning_rate */
} attncl_adam_desc;

/** As torch.optim.Adam. */
#define ATTNCL_ADAM_DESC_INIT                                                                      \
    {                                                                                              \
        sizeof(attncl_adam_desc), 0, 0.9, 0.999, 1e-8, 0, 0, 0, 0                                  \
    }

/** As labml's Adam: the optimized form, decoupled decay. */
#define ATTNCL_ADAM_LABML_DESC_INIT                                                                \
    {                                                                                              \
        sizeof(attncl_adam_desc), 0, 0.9, 0.999, 1e-8, 0, 1, 1, 0                                  \
    }

/** As torch.optim.AdamW. */
#define ATTNCL_ADAMW_DESC_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_adam_desc), 0, 0.9, 0.999, 1e-8, 0.01, 1, 0, 1                               \
    }

/** A learning-rate schedule: attncl/kinds.h has the kinds.  Start from ATTNCL_SCHEDULE_DESC_INIT. */
typedef struct attncl_schedule_desc {
    size_t struct_size;
    attncl_rate_schedule kind;
    double d_model;  /**< INVERSE_SQRT: the model's width, > 0 */
    double warmup;   /**< steps of rising rate; -1: 2000 for INVERSE_SQRT, 0 for the others */
    double n_steps;  /**< LINEAR, COSINE: the step from which the rate is min_rate, at least 1 */
    double min_rate; /**< LINEAR, COSINE: the last rate */
} attncl_schedule_desc;

#define ATTNCL_SCHEDULE_DESC_INIT                                                                  \
    {                                                                                              \
        sizeof(attncl_schedule_desc), ATTNCL_RATE_CONSTANT, 0, -1, 0, 0                            \
    }

/**
 * The rate of the step after `steps_taken` others, on the host, in double.
 * Errors: ERR_ARGUMENT.
 */
ATTNCL_API attncl_status attncl_schedule_rate(const attncl_schedule_desc *schedule,
                                              double learning_rate, int64_t steps_taken,
                                              double *rate_ret);

/**
 * The same on the device, F32 [].
 * @param step  I32 [], the steps taken before this one
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_learning_rate(attncl_graph *g, const attncl_schedule_desc *schedule,
                                             double learning_rate, attncl_value step);

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
 * What all parameters of a step share, [3].
 * @param learning_rate  F32 [], attncl_learning_rate() or an input that the caller writes before each run; null: that
 *                       of desc; with NaN the step changes nothing.  Decoupled decay uses desc's rate unless
 *                       scheduled_decay is set
 * @param step           I32 [], the steps taken before this one
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_adam_rates(attncl_graph *g, const attncl_adam_desc *desc,
                                          attncl_value learning_rate, attncl_value step);

/**
 * The values after a step.
 * @param rates      from attncl_adam_rates() with the same desc
 * @param after_ret  filled; null values in it when the graph has failed
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API void attncl_adam_step(attncl_graph *g, const attncl_adam_desc *desc, attncl_value rates,
                                 attncl_value grad, const attncl_adam_values *before,
                                 attncl_adam_values *after_ret);

/**
 * The same step in place, where it stands in the graph: ops built before it read the old values, ops built after it the
 * new ones.  All of `values` are state (attncl_graph_state()) or weights (attncl_graph_tensor()).  Every graph that has
 * such a weight's tensor sees the change; none of them may run concurrently.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API void attncl_adam_update(attncl_graph *g, const attncl_adam_desc *desc,
                                   attncl_value rates, attncl_value grad,
                                   const attncl_adam_values *values);

/** Gradient descent with momentum, as torch.optim.SGD.  With g the gradient + weight_decay p:
 *
 *     b = g at the first step, later momentum b + (1 - dampening) g
 *     p -= learning_rate b                  nesterov: p -= learning_rate (g + momentum b)
 *
 * Start from ATTNCL_SGD_DESC_INIT and set the rate. */
typedef struct attncl_sgd_desc {
    size_t struct_size;
    double learning_rate;
    double momentum;  /**< 0: there is no b */
    double dampening; /**< 0 with nesterov */
    double weight_decay;
    int nesterov; /**< 1: needs momentum > 0 */
} attncl_sgd_desc;

#define ATTNCL_SGD_DESC_INIT                                                                       \
    {                                                                                              \
        sizeof(attncl_sgd_desc), 0, 0, 0, 0, 0                                                     \
    }

/** A parameter and b, of one shape; without momentum b is null. */
typedef struct attncl_sgd_values {
    size_t struct_size;
    attncl_value param, momentum_buffer;
} attncl_sgd_values;

#define ATTNCL_SGD_VALUES_INIT                                                                     \
    {                                                                                              \
        sizeof(attncl_sgd_values), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT                            \
    }

/**
 * What all parameters of a step share, [3].
 * @param learning_rate  F32 []; null: that of desc; with NaN the step changes nothing
 * @param step           I32 [], the steps taken before this one; 0: b is not read
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_sgd_rates(attncl_graph *g, const attncl_sgd_desc *desc,
                                         attncl_value learning_rate, attncl_value step);

/**
 * The values after a step.
 * @param rates      from attncl_sgd_rates() with the same desc
 * @param before     a null momentum_buffer: this is the first step
 * @param after_ret  filled; null values in it when the graph has failed
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API void attncl_sgd_step(attncl_graph *g, const attncl_sgd_desc *desc, attncl_value rates,
                                attncl_value grad, const attncl_sgd_values *before,
                                attncl_sgd_values *after_ret);

/**
 * The same step in place, as attncl_adam_update().
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API void attncl_sgd_update(attncl_graph *g, const attncl_sgd_desc *desc, attncl_value rates,
                                  attncl_value grad, const attncl_sgd_values *values);

typedef enum attncl_clip_style {
    ATTNCL_CLIP_EPSILON = 0, /**< times min(1, max_norm / (norm + 1e-6)): never divides by 0 */
    ATTNCL_CLIP_EXACT = 1,   /**< times max_norm / norm where norm > max_norm */
} attncl_clip_style;

/**
 * Scales gradients so that their global norm is at most max_norm.  The norm is summed in a fixed order and does not
 * overflow for finite elements.  An infinite element becomes NaN and all others 0; NaN makes all NaN, except that with
 * ATTNCL_CLIP_EXACT nothing is scaled then.
 * @param n, grads     at least one, of any shapes
 * @param clipped_ret  receives n values
 * @return             the norm before, []
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_clip_grad_norm(attncl_graph *g, size_t n, const attncl_value *grads,
                                              double max_norm, attncl_clip_style style,
                                              attncl_value *clipped_ret);

/**
 * Clamps each element of each gradient to -max_value .. max_value; NaN stays.
 * @param n, grads     at least one, of any shapes
 * @param clipped_ret  receives n values
 * Errors: ERR_ARGUMENT, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API void attncl_clip_grad_value(attncl_graph *g, size_t n, const attncl_value *grads,
                                       double max_value, attncl_value *clipped_ret);

/**
 * into += value, in place, where it stands in the graph: ops built before it read the old values.  Sums gradients over
 * several runs, for example.
 * @param into   F32, a weight or state, as for attncl_adam_update()
 * @param value  F32, of its shape
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API void attncl_accumulate(attncl_graph *g, attncl_value into, attncl_value value);

/** into = 0, in place, as attncl_accumulate(); also where it held NaN.
 * Errors: ERR_ARGUMENT, ERR_DTYPE, kept by the graph. */
ATTNCL_API void attncl_zero(attncl_graph *g, attncl_value into);

/**
 * average = decay average + (1 - decay) value, in place, as attncl_accumulate(): the exponential
 * moving average of weights, where it is built after their update.
 * @param decay  0 to 1
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API void attncl_average_update(attncl_graph *g, attncl_value average, attncl_value value,
                                      double decay);

ATTNCL_END

#endif
