// SPDX-License-Identifier: MIT
// How an optimiser's configuration reads, shared by optimizer_step, clip_grad_norm and train
// (arch_optim.c).
#ifndef ATTNCL_MODEL_OPTIM_H
#define ATTNCL_MODEL_OPTIM_H

#include "attncl/optim.h"
#include "io/json.h"

struct adam_settings {
    attncl_adam_desc adam;
    attncl_schedule_desc schedule;
    bool amsgrad;
};
attncl_status attncl__adam_configure(const struct json *config, struct adam_settings *s);

// "torch" or "d2l" under `key`.
attncl_status attncl__clip_configure(const struct json *config, const char *key,
                                     attncl_clip_style *style);

#endif
