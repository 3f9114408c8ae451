// SPDX-License-Identifier: MIT
// The settings of an optimiser and of clipping.
#ifndef ATTNCL_MODEL_BLOCK_OPTIM_H
#define ATTNCL_MODEL_BLOCK_OPTIM_H

#include "attncl/optim.h"
#include "model/config.h"

// An optimiser of any kind: adam, noam, adamw, sgd.
enum optim_kind { OPTIM_ADAM, OPTIM_ADAMW, OPTIM_SGD, OPTIM_NOAM };
struct optim_settings {
    struct optim_values { // as they are read
        enum optim_kind kind;
        double learning_rate, betas[2], eps, weight_decay, momentum, dampening, warmup;
        bool optimized, decoupled, amsgrad, nesterov;
        int64_t d_model;
    } read;
    bool is_sgd, is_noam; // else Adam
    attncl_adam_desc adam;
    attncl_sgd_desc sgd;
    attncl_schedule_desc schedule; // Noam's, or a constant rate
};
extern const struct key attncl__optim_keys[];

// What a step keeps of each parameter, by the names that PyTorch gives it, "exp_avg" and so on;
// returns how many.
enum { OPTIM_MAX_STATES = 3 };
size_t attncl__optim_states(const struct optim_settings *s,
                            const char *names_ret[OPTIM_MAX_STATES]);

// What all parameters of a step share.  learning_rate: F32 []; null: as configured.
attncl_value attncl__optim_rates(attncl_graph *g, const struct optim_settings *s,
                                 attncl_value learning_rate, attncl_value step);

// The values of a parameter after a step; `states` in the order of attncl__optim_states(), null behind
// the last.  SGD's may be null before the first step.
void attncl__optim_step(attncl_graph *g, const struct optim_settings *s, attncl_value rates,
                        attncl_value grad, attncl_value *param, attncl_value *states);
// The same step in place.
void attncl__optim_update(attncl_graph *g, const struct optim_settings *s, attncl_value rates,
                          attncl_value grad, attncl_value param, const attncl_value *states);

// "torch" and "d2l".
extern const struct choice attncl__clip_choices[];

#endif
