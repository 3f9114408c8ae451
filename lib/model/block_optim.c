// SPDX-License-Identifier: MIT
//
// Keys of optimisers and of clipping; optimiser steps.

#include "model/block_layers.h"

static const struct choice kinds[] = {
    {"adam", OPTIM_ADAM}, {"adamw", OPTIM_ADAMW}, {"sgd", OPTIM_SGD}, {"noam", OPTIM_NOAM}, {0}};

const struct choice attncl__clip_choices[] = {
    {"torch", ATTNCL_CLIP_EPSILON}, {"d2l", ATTNCL_CLIP_EXACT}, {0}};

#define SGD      WHEN("kind", "sgd")
#define ADAMS    UNLESS("kind", "sgd")
#define OWN_ADAM WHEN("kind", "adam", "noam")
#define NOAM     WHEN("kind", "noam")

static attncl_status set_sgd(const struct optim_values *read, attncl_sgd_desc *sgd)
{
    REQUIRE(!read->nesterov || (read->momentum > 0 && read->dampening == 0), ATTNCL_ERR_FORMAT,
            "nesterov is true, momentum is %g and dampening %g: must be greater than 0, and 0",
            read->momentum, read->dampening);
    *sgd = (attncl_sgd_desc)ATTNCL_SGD_DESC_INIT;
    sgd->learning_rate = read->learning_rate;
    sgd->momentum = read->momentum;
    sgd->dampening = read->dampening;
    sgd->weight_decay = read->weight_decay;
    sgd->nesterov = read->nesterov;
    return ATTNCL_OK;
}

static attncl_status set_adam(const struct optim_values *read, attncl_adam_desc *adam)
{
    for (int i = 0; i < 2; ++i)
        REQUIRE(read->betas[i] >= 0 && read->betas[i] < 1, ATTNCL_ERR_FORMAT,
                "betas[%d] is %g, expected 0 or more and less than 1", i, read->betas[i]);
    if (read->kind == OPTIM_ADAMW) {
        *adam = (attncl_adam_desc)ATTNCL_ADAMW_DESC_INIT;
    } else {
        *adam = (attncl_adam_desc)ATTNCL_ADAM_DESC_INIT;
        adam->optimized = read->optimized;
        adam->decoupled = read->decoupled;
    }
    adam->learning_rate = read->learning_rate;
    adam->beta1 = read->betas[0];
    adam->beta2 = read->betas[1];
    adam->eps = read->eps;
    adam->weight_decay = read->weight_decay;
    return ATTNCL_OK;
}

static attncl_status check(void *settings)
{
    struct optim_settings *s = settings;
    const struct optim_values *read = &s->read;
    s->is_sgd = read->kind == OPTIM_SGD;
    s->is_noam = read->kind == OPTIM_NOAM;
    s->schedule = (attncl_schedule_desc)ATTNCL_SCHEDULE_DESC_INIT;
    if (s->is_noam) {
        s->schedule.kind = ATTNCL_RATE_INVERSE_SQRT;
        s->schedule.d_model = (double)read->d_model;
        s->schedule.warmup = read->warmup;
    }
    return s->is_sgd ? set_sgd(read, &s->sgd) : set_adam(read, &s->adam);
}

const struct key attncl__optim_keys[] = {
    {"kind", KEY_WORD, AT(optim_settings, read.kind), .choices = kinds},
    {"learning_rate", KEY_NUMBER, AT(optim_settings, read.learning_rate), .min = 0},
    {"betas", KEY_NUMBERS, AT(optim_settings, read.betas), OR_NUMBERS(0.9, 0.999), ADAMS},
    {"eps", KEY_NUMBER, AT(optim_settings, read.eps), OR(1e-8), ADAMS},
    {"momentum", KEY_NUMBER, AT(optim_settings, read.momentum), OR(0), SGD},
    {"dampening", KEY_NUMBER, AT(optim_settings, read.dampening), OR(0), SGD},
    {"weight_decay", KEY_NUMBER, AT(optim_settings, read.weight_decay), OR(0)},
    {"optimized_update", KEY_BOOL, AT(optim_settings, read.optimized), OR(true), OWN_ADAM},
    {"weight_decouple", KEY_BOOL, AT(optim_settings, read.decoupled), OR(true), OWN_ADAM},
    {"amsgrad", KEY_BOOL, AT(optim_settings, read.amsgrad), OR(false), ADAMS},
    {"nesterov", KEY_BOOL, AT(optim_settings, read.nesterov), OR(false), SGD},
    {"d_model", KEY_INT, AT(optim_settings, read.d_model), .min = 1, NOAM},
    {"warmup", KEY_NUMBER, AT(optim_settings, read.warmup), .min = 1, OR(2000), NOAM},
    CHECK(check),
    {0},
};

size_t attncl__optim_states(const struct optim_settings *s, const char *names_ret[OPTIM_MAX_STATES])
{
    if (s->is_sgd) {
        names_ret[0] = "momentum_buffer";
        return s->sgd.momentum != 0;
    }
    names_ret[0] = "exp_avg";
    names_ret[1] = "exp_avg_sq";
    names_ret[2] = "max_exp_avg_sq";
    return s->read.amsgrad ? 3 : 2;
}

attncl_value attncl__optim_rates(attncl_graph *g, const struct optim_settings *s,
                                 attncl_value learning_rate, attncl_value step)
{
    if (s->is_sgd)
        return attncl_sgd_rates(g, &s->sgd, learning_rate, step);
    if (s->is_noam && !learning_rate.id)
        learning_rate = attncl_learning_rate(g, &s->schedule, s->read.learning_rate, step);
    return attncl_adam_rates(g, &s->adam, learning_rate, step);
}

static attncl_adam_values adam_values(attncl_value param, const attncl_value *states)
{
    return (attncl_adam_values){.struct_size = sizeof(attncl_adam_values),
                                .param = param,
                                .exp_avg = states[0],
                                .exp_avg_sq = states[1],
                                .max_exp_avg_sq = states[2]};
}

static attncl_sgd_values sgd_values(attncl_value param, const attncl_value *states)
{
    return (attncl_sgd_values){
        .struct_size = sizeof(attncl_sgd_values), .param = param, .momentum_buffer = states[0]};
}

void attncl__optim_step(attncl_graph *g, const struct optim_settings *s, attncl_value rates,
                        attncl_value grad, attncl_value *param, attncl_value *states)
{
    if (s->is_sgd) {
        const attncl_sgd_values before = sgd_values(*param, states);
        attncl_sgd_values after = ATTNCL_SGD_VALUES_INIT;
        attncl_sgd_step(g, &s->sgd, rates, grad, &before, &after);
        *param = after.param;
        states[0] = after.momentum_buffer;
    } else {
        const attncl_adam_values before = adam_values(*param, states);
        attncl_adam_values after = ATTNCL_ADAM_VALUES_INIT;
        attncl_adam_step(g, &s->adam, rates, grad, &before, &after);
        *param = after.param;
        states[0] = after.exp_avg;
        states[1] = after.exp_avg_sq;
        states[2] = after.max_exp_avg_sq;
    }
}

void attncl__optim_update(attncl_graph *g, const struct optim_settings *s, attncl_value rates,
                          attncl_value grad, attncl_value param, const attncl_value *states)
{
    if (s->is_sgd) {
        const attncl_sgd_values values = sgd_values(param, states);
        attncl_sgd_update(g, &s->sgd, rates, grad, &values);
    } else {
        const attncl_adam_values values = adam_values(param, states);
        attncl_adam_update(g, &s->adam, rates, grad, &values);
    }
}
