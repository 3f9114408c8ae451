// SPDX-License-Identifier: MIT
#ifndef ATTNCL_KINDS_H
#define ATTNCL_KINDS_H
#include "attncl/export.h"
ATTNCL_BEGIN
typedef enum attncl_activation {
    ATTNCL_IDENTITY = 0,
    ATTNCL_GELU = 1,
    ATTNCL_RELU = 2,
    ATTNCL_SIGMOID = 3,
    ATTNCL_TANH = 4,
    ATTNCL_SILU = 5,
} attncl_activation;
typedef enum attncl_layout {
    ATTNCL_LAYOUT_TIME_FIRST = 0,
    ATTNCL_LAYOUT_BATCH_FIRST = 1,
} attncl_layout;
typedef enum attncl_reduction {
    ATTNCL_REDUCE_MEAN = 0,
    ATTNCL_REDUCE_SUM = 1,
    ATTNCL_REDUCE_NONE = 2,
} attncl_reduction;
ATTNCL_END
#endif
