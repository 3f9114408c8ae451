// SPDX-License-Identifier: MIT
//
// The keys of an optimiser and of clipping.

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
