// SPDX-License-Identifier: MIT
#ifndef ATTNCL_OP_VIEW_VIEW_SCATTER_ADD_H
#define ATTNCL_OP_VIEW_VIEW_SCATTER_ADD_H

#include "launch/launch.h"

// Zeros into the first `count` floats of y.
attncl_status attncl__zeros(struct launcher *l, struct span y, int64_t count);

#endif
