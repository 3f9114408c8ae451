// SPDX-License-Identifier: MIT
// What AFT layers refuse.  Golden models have their results (tests/model), with steps by decoders.

#include "attncl/aft.h"
#include "support/layer_test.h"

enum { T = 7, B = 2, C = 6 };

LOOP_TEST(bad_layers_are_refused, 0, 7)
{
    static const struct {
        attncl_status status;
        const char *words;
    } expected[] = {
        {ATTNCL_ERR_ARGUMENT, "causal and a mask at once"},
        {ATTNCL_ERR_ARGUMENT, "window is -1, must be at least 0"},
        {ATTNCL_ERR_ARGUMENT, "aft kind 7 is unknown"},
        {ATTNCL_ERR_ARGUMENT, "attncl_aft_desc has struct_size 0"},
        {ATTNCL_ERR_ARGUMENT, "pos_bias is missing"},
        {ATTNCL_ERR_SHAPE, "pos_bias has shape [9, 8], expected [n, n]"},
        {ATTNCL_ERR_SHAPE, "T = 7"},
    };
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    struct host *x = host_random(50, DIMS(T, B, C)), *y = host_like(x);
    struct host *table = _i == 5 ? host_random(51, DIMS(9, 8)) : host_random(51, DIMS(6, 6));
    struct host *mask = _i == 0 ? host_mask(52, 1, DIMS(1, T, 1)) : NULL;
    struct rig b;
    desc.causal = _i == 0;
    desc.window = _i == 1 ? desc.window : 3; // the initializer sets none
    desc.kind = _i == 2 ? (attncl_aft_kind)7 : ATTNCL_AFT_LOCAL;
    desc.struct_size = _i == 3 ? 0 : desc.struct_size;

    rig_open(&b);
    const attncl_value in = rig_in(&b, x), seen = rig_in(&b, mask);
    const attncl_value bias = rig_in(&b, _i == 4 ? NULL : table);
    rig_out(&b, attncl_aft_mix(b.g, &desc, in, in, in, bias, seen), y);
    ck_rig_fails(&b, expected[_i].status, expected[_i].words);
}
