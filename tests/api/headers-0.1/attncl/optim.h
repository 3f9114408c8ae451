// SPDX-License-Identifier: MIT
#ifndef ATTNCL_OPTIM_H
#define ATTNCL_OPTIM_H
#include "attncl/graph.h"
ATTNCL_BEGIN
typedef struct attncl_adam_desc {
    size_t struct_size;
    double learning_rate;
    double beta1, beta2;
    double eps;
    double weight_decay;
    int decoupled;
    int optimized;
} attncl_adam_desc;
#define ATTNCL_ADAM_DESC_INIT                                                                      \
    {                                                                                              \
        sizeof(attncl_adam_desc), 0, 0.9, 0.999, 1e-8, 0, 1, 1                                     \
    }
typedef enum attncl_rate_schedule {
    ATTNCL_RATE_CONSTANT = 0,
    ATTNCL_RATE_INVERSE_SQRT = 1,
} attncl_rate_schedule;
typedef struct attncl_schedule_desc {
    size_t struct_size;
    attncl_rate_schedule kind;
    double d_model;
    double warmup;
} attncl_schedule_desc;
#define ATTNCL_SCHEDULE_DESC_INIT                                                                  \
    {                                                                                              \
        sizeof(attncl_schedule_desc), ATTNCL_RATE_CONSTANT, 0, 2000                                \
    }
typedef struct attncl_adam_values {
    size_t struct_size;
    attncl_value param, exp_avg, exp_avg_sq, max_exp_avg_sq;
} attncl_adam_values;
#define ATTNCL_ADAM_VALUES_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_adam_values), ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT,       \
            ATTNCL_VALUE_INIT                                                                      \
    }
ATTNCL_API attncl_value attncl_adam_rates(attncl_graph *g, const attncl_adam_desc *desc,
                                          const attncl_schedule_desc *schedule, attncl_value step);
ATTNCL_API void attncl_adam_step(attncl_graph *g, const attncl_adam_desc *desc, attncl_value rates,
                                 attncl_value grad, const attncl_adam_values *before,
                                 attncl_adam_values *after_ret);
ATTNCL_API void attncl_adam_update(attncl_graph *g, const attncl_adam_desc *desc,
                                   attncl_value rates, attncl_value grad,
                                   const attncl_adam_values *values);
typedef enum attncl_clip_style {
    ATTNCL_CLIP_EPSILON = 0,
    ATTNCL_CLIP_EXACT = 1,
} attncl_clip_style;
ATTNCL_API attncl_value attncl_clip_grad_norm(attncl_graph *g, size_t n, const attncl_value *grads,
                                              double max_norm, attncl_clip_style style,
                                              attncl_value *clipped_ret);
ATTNCL_END
#endif
