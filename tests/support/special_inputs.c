// SPDX-License-Identifier: MIT

#include "support/special_inputs.h"

// The middle target is padding.
int inputs_scored(struct host **in, struct host **out)
{
    in[0] = host_random(1, DIMS(3, 21));
    in[1] = host_with(ATTNCL_I32, (double[]){1, 20, 7}, DIMS(3));
    *out = host_new(ATTNCL_F32, DIMS(3));
    return 2;
}
