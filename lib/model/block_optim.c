// SPDX-License-Identifier: MIT
//
// The keys of an optimiser and of clipping; a step of an optimiser of any kind.

#include "model/block_optim.h"
#include "base/try.h"
#include "model/config.h"

static attncl_status read_betas(struct config *config, attncl_adam_desc *adam)
{
    double betas[2] = {adam->beta1, adam->beta2};
    TRY(attncl__config_numbers_or(config, "betas", 2, betas));
    for (int i = 0; i < 2; ++i)
        REQUIRE(betas[i] >= 0 && betas[i] < 1, ATTNCL_ERR_FORMAT,
                "betas[%d] is %g, expected 0 or more and less than 1", i, betas[i]);
    adam->beta1 = betas[0];
    adam->beta2 = betas[1];
    return ATTNCL_OK;
}

static attncl_status read_noam(struct config *config, attncl_schedule_desc *schedule)
{
    int64_t d_model;
    TRY(attncl__config_int(config, "d_model", 1, &d_model));
    schedule->kind = ATTNCL_RATE_INVERSE_SQRT;
    schedule->d_model = (double)d_model;
    return attncl__config_number_or(config, "warmup", 1, 2000, &schedule->warmup);
}

attncl_status attncl__adam_configure(struct config *config, struct adam_settings *s)
{
    enum { ADAM, NOAM };
    static const struct choice kinds[] = {{"adam", ADAM}, {"noam", NOAM}};
    attncl_adam_desc *adam = &s->adam;
    bool optimized, decoupled;
    int kind;

    *adam = (attncl_adam_desc)ATTNCL_ADAM_DESC_INIT;
    s->schedule = (attncl_schedule_desc)ATTNCL_SCHEDULE_DESC_INIT;
    TRY(attncl__config_choice(config, "kind", kinds, N_CHOICES(kinds), NULL, &kind));
    TRY(attncl__config_number(config, "learning_rate", 0, &adam->learning_rate));
    TRY(read_betas(config, adam));
    TRY(attncl__config_number_or(config, "eps", 0, 1e-8, &adam->eps));
    TRY(attncl__config_number_or(config, "weight_decay", 0, 0, &adam->weight_decay));
    TRY(attncl__config_bool_or(config, "optimized_update", true, &optimized));
    TRY(attncl__config_bool_or(config, "weight_decouple", true, &decoupled));
    TRY(attncl__config_bool_or(config, "amsgrad", false, &s->amsgrad));
    adam->optimized = optimized;
    adam->decoupled = decoupled;
    return kind == NOAM ? read_noam(config, &s->schedule) : ATTNCL_OK;
}

static attncl_status read_sgd(struct config *config, attncl_sgd_desc *sgd)
{
    bool nesterov;
    *sgd = (attncl_sgd_desc)ATTNCL_SGD_DESC_INIT;
    TRY(attncl__config_number(config, "learning_rate", 0, &sgd->learning_rate));
    TRY(attncl__config_number_or(config, "momentum", 0, 0, &sgd->momentum));
    TRY(attncl__config_number_or(config, "dampening", 0, 0, &sgd->dampening));
    TRY(attncl__config_number_or(config, "weight_decay", 0, 0, &sgd->weight_decay));
    TRY(attncl__config_bool_or(config, "nesterov", false, &nesterov));
    REQUIRE(!nesterov || !config->object || (sgd->momentum > 0 && sgd->dampening == 0),
            ATTNCL_ERR_FORMAT,
            "nesterov is true, momentum is %g and dampening %g: must be greater than 0, and 0",
            sgd->momentum, sgd->dampening);
    sgd->nesterov = nesterov;
    return ATTNCL_OK;
}

static attncl_status read_adamw(struct config *config, struct optim_settings *s)
{
    attncl_adam_desc *adam = &s->adam;
    *adam = (attncl_adam_desc)ATTNCL_ADAMW_DESC_INIT;
    TRY(attncl__config_number(config, "learning_rate", 0, &adam->learning_rate));
    TRY(read_betas(config, adam));
    TRY(attncl__config_number_or(config, "eps", 0, adam->eps, &adam->eps));
    TRY(attncl__config_number_or(config, "weight_decay", 0, 0, &adam->weight_decay));
    return attncl__config_bool_or(config, "amsgrad", false, &s->amsgrad);
}

static attncl_status read_adam(struct config *config, struct optim_settings *s)
{
    struct adam_settings adam;
    TRY(attncl__adam_configure(config, &adam));
    s->adam = adam.adam;
    s->amsgrad = adam.amsgrad;
    s->schedule = adam.schedule;
    return ATTNCL_OK;
}

attncl_status attncl__optim_configure(struct config *config, struct optim_settings *s)
{
    enum { ADAM, ADAMW, SGD, NOAM };
    static const struct choice kinds[] = {
        {"adam", ADAM}, {"adamw", ADAMW}, {"sgd", SGD}, {"noam", NOAM}};
    int kind;
    TRY(attncl__config_choice(config, "kind", kinds, N_CHOICES(kinds), NULL, &kind));
    *s = (struct optim_settings){
        .is_sgd = kind == SGD, .is_noam = kind == NOAM, .schedule = ATTNCL_SCHEDULE_DESC_INIT};
    if (kind == SGD)
        TRY(read_sgd(config, &s->sgd));
    else if (kind == ADAMW)
        TRY(read_adamw(config, s));
    else
        TRY(read_adam(config, s));
    s->learning_rate = s->is_sgd ? s->sgd.learning_rate : s->adam.learning_rate;
    return ATTNCL_OK;
}

size_t attncl__optim_states(const struct optim_settings *s, const char *names_ret[OPTIM_MAX_STATES])
{
    if (s->is_sgd) {
        names_ret[0] = "momentum_buffer";
        return s->sgd.momentum != 0;
    }
    names_ret[0] = "exp_avg";
    names_ret[1] = "exp_avg_sq";
    names_ret[2] = "max_exp_avg_sq";
    return s->amsgrad ? 3 : 2;
}

attncl_value attncl__optim_rates(attncl_graph *g, const struct optim_settings *s,
                                 attncl_value learning_rate, attncl_value step)
{
    if (s->is_sgd)
        return attncl_sgd_rates(g, &s->sgd, learning_rate, step);
    if (learning_rate.id)
        return attncl_adam_rates_at(g, &s->adam, learning_rate, step);
    return attncl_adam_rates(g, &s->adam, s->is_noam ? &s->schedule : NULL, step);
}

static attncl_adam_values adam_values(const struct optim_settings *s, attncl_value param,
                                      const attncl_value *states)
{
    return (attncl_adam_values){.struct_size = sizeof(attncl_adam_values),
                                .param = param,
                                .exp_avg = states[0],
                                .exp_avg_sq = states[1],
                                .max_exp_avg_sq = s->amsgrad ? states[2] : ATTNCL_NONE_VALUE};
}

static attncl_sgd_values sgd_values(const struct optim_settings *s, attncl_value param,
                                    const attncl_value *states)
{
    return (attncl_sgd_values){.struct_size = sizeof(attncl_sgd_values),
                               .param = param,
                               .momentum_buffer =
                                   s->sgd.momentum != 0 ? states[0] : ATTNCL_NONE_VALUE};
}

void attncl__optim_step(attncl_graph *g, const struct optim_settings *s, attncl_value rates,
                        attncl_value grad, attncl_value *param, attncl_value *states)
{
    if (s->is_sgd) {
        const attncl_sgd_values before = sgd_values(s, *param, states);
        attncl_sgd_values after = ATTNCL_SGD_VALUES_INIT;
        attncl_sgd_step(g, &s->sgd, rates, grad, &before, &after);
        *param = after.param;
        states[0] = after.momentum_buffer;
    } else {
        const attncl_adam_values before = adam_values(s, *param, states);
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
        const attncl_sgd_values values = sgd_values(s, param, states);
        attncl_sgd_update(g, &s->sgd, rates, grad, &values);
    } else {
        const attncl_adam_values values = adam_values(s, param, states);
        attncl_adam_update(g, &s->adam, rates, grad, &values);
    }
}

attncl_status attncl__clip_configure(struct config *config, const char *key,
                                     attncl_clip_style *style)
{
    static const struct choice styles[] = {{"torch", ATTNCL_CLIP_EPSILON},
                                           {"d2l", ATTNCL_CLIP_EXACT}};
    int chosen;
    TRY(attncl__config_choice(config, key, styles, N_CHOICES(styles), "torch", &chosen));
    *style = (attncl_clip_style)chosen;
    return ATTNCL_OK;
}
