// SPDX-License-Identifier: MIT
// What recurrent layers refuse.  Golden models have their results and those of the decoder (tests/model).

#include "attncl/ops.h"
#include "attncl/recurrent.h"
#include "support/layer_test.h"

enum { T = 11, B = 3, I = 5, H = 6 };

TEST(refusals)
{
    struct host *x = host_random(1, DIMS(T, B, I)), *none = host_new(ATTNCL_F32, DIMS(0, B, I));
    struct host *h0 = host_random(2, DIMS(B, H + 1)), *flat = host_random(3, DIMS(B, I));
    attncl_value state = ATTNCL_NONE_VALUE;

    for (int i = 0; i < 5; ++i) {
        static const char *const words[] = {
            "x is [0, 3, 5], T must be at least 1",
            "x has shape [3, 5], expected [T, B, I]",
            "h0 is [3, 7], must be [B, H] with H = 6 as weight_hh",
            "0 recurrent layers, must be at least 1",
            "value 1 is [3, 5], value 0 is [11, 3, 5]: only axis 0 may differ",
        };
        struct rig b;
        rig_open(&b);
        const attncl_gru_params params = {
            .struct_size = sizeof params,
            .weight_ih = rig_in(&b, host_random(10, DIMS(3 * H, I))),
            .bias_ih = rig_in(&b, host_random(20, DIMS(3 * H))),
            .weight_hh = rig_in(&b, host_random(30, DIMS(3 * H, H))),
            .bias_hh = rig_in(&b, host_random(40, DIMS(3 * H))),
        };
        struct host *in = i == 0 ? none : i == 1 ? flat : x;
        const attncl_value v = rig_in(&b, in);
        if (i < 3)
            attncl_gru(b.g, &params, v, i == 2 ? rig_in(&b, h0) : ATTNCL_NONE_VALUE,
                       ATTNCL_LAYOUT_TIME_FIRST, NULL);
        else if (i == 3)
            attncl_gru_layers(b.g, &params, 0, v, ATTNCL_LAYOUT_TIME_FIRST, &state);
        else
            attncl_concat(b.g, 2, (const attncl_value[]){v, rig_in(&b, flat)}, 0);
        ck_rig_fails(&b, i == 3 ? ATTNCL_ERR_ARGUMENT : ATTNCL_ERR_SHAPE, words[i]);
    }
}
