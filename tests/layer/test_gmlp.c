// SPDX-License-Identifier: MIT
// What the gating unit of gMLP refuses.  Golden models have results of blocks (tests/model), with steps by decoders.

#include "attncl/gmlp.h"
#include "support/layer_test.h"

enum { N = 9, T = 7, B = 2, F = 6 }; // n of the spatial weight

LOOP_TEST(bad_blocks_are_refused, 0, 5)
{
    static const struct {
        attncl_status status;
        const char *words;
    } expected[] = {
        {ATTNCL_ERR_SHAPE, "F = 7 is odd"},
        {ATTNCL_ERR_SHAPE, "z has shape [7, 6], expected [T, B, F]"},
        {ATTNCL_ERR_ARGUMENT, "causal and a mask at once"},
        {ATTNCL_ERR_SHAPE, ""}, // a mask of each batch entry's own
        {ATTNCL_ERR_SHAPE, ""}, // T > n
    };
    struct host *z = _i == 0   ? host_random(50, DIMS(T, B, 7))
                     : _i == 1 ? host_random(50, DIMS(T, F))
                     : _i == 4 ? host_random(50, DIMS(N + 1, B, F))
                               : host_random(50, DIMS(T, B, F));
    struct host *mask = _i == 2   ? host_mask(51, 1, DIMS(1, T, 1))
                        : _i == 3 ? host_mask(51, 1, DIMS(T, T, B))
                                  : NULL;
    struct rig b;
    rig_open(&b);
    const attncl_sgu_params params = {
        .struct_size = sizeof params,
        .norm_weight = rig_in(&b, host_random(5, DIMS(F / 2))),
        .norm_bias = rig_in(&b, host_random(6, DIMS(F / 2))),
        .weight = rig_in(&b, host_random(7, DIMS(N, N))),
        .bias = rig_in(&b, host_random(8, DIMS(N))),
    };
    const attncl_value in = rig_in(&b, z), seen = rig_in(&b, mask);
    rig_out(&b, attncl_spatial_gating_unit(b.g, &params, in, _i == 2, seen), z);
    ck_rig_fails(&b, expected[_i].status, expected[_i].words);
}
