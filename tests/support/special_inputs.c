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

int inputs_mixed(struct host **in, struct host **out)
{
    for (unsigned i = 0; i < 3; ++i)
        in[i] = host_random(i + 1, DIMS(5, 2, 19));
    in[3] = host_random(4, DIMS(5, 5));
    *out = host_like(in[0]);
    return 5;
}

int inputs_additive(struct host **in, struct host **out)
{
    in[0] = host_random(1, DIMS(2, 5, 7));
    in[1] = host_random(2, DIMS(2, 6, 7));
    in[2] = host_random(3, DIMS(2, 6, 9));
    in[3] = host_random(4, DIMS(7));
    *out = host_new(ATTNCL_F32, DIMS(2, 5, 9));
    return 5;
}

int inputs_pooled(struct host **in, struct host **out)
{
    in[0] = host_random(1, DIMS(7));
    in[1] = host_random(2, DIMS(7));
    in[2] = host_random(3, DIMS(5));
    *out = host_like(in[2]);
    return 3;
}

int inputs_recurrent(struct host **in, struct host **out)
{
    in[0] = host_random(1, DIMS(4, 2, 9));
    in[1] = host_random(2, DIMS(9, 3));
    in[2] = host_random(3, DIMS(9));
    in[3] = host_random(4, DIMS(2, 3));
    *out = host_new(ATTNCL_F32, DIMS(4, 2, 3));
    return 4;
}
