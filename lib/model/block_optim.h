// SPDX-License-Identifier: MIT
// The settings of an optimiser and of clipping.
#ifndef ATTNCL_MODEL_BLOCK_OPTIM_H
#define ATTNCL_MODEL_BLOCK_OPTIM_H

#include "attncl/optim.h"
#include "model/config.h"

struct adam_settings {
    attncl_adam_desc adam;
    attncl_schedule_desc schedule;
    bool amsgrad;
};
attncl_status attncl__adam_configure(struct config *config, struct adam_settings *s);

// "torch" or "d2l" under `key`.
attncl_status attncl__clip_configure(struct config *config, const char *key,
                                     attncl_clip_style *style);

#endif
