// SPDX-License-Identifier: MIT
// The gMLP block position by position against the whole reference, and what its gating unit refuses.

#include "attncl/gmlp.h"
#include "ref/layers.h"
#include "support/layer_test.h"

enum { N = 9, T = 7, B = 2, C = 5, F = 6 }; // n of the spatial weight, T, B, C, F

// Two linear maps, a norm and a sum over at most 9 positions, each rounding at 2^-24 of values up
// to about 8.
static const double absolute = 8e-6, relative = 8e-6;

static struct ref_gmlp random_params(void)
{
    return (struct ref_gmlp){
        .norm_weight = host_random(1, DIMS(C)),
        .norm_bias = host_random(2, DIMS(C)),
        .proj1_weight = host_random(3, DIMS(F, C)),
        .proj1_bias = host_random(4, DIMS(F)),
        .sgu =
            {
                .norm_weight = host_random(5, DIMS(F / 2)),
                .norm_bias = host_random(6, DIMS(F / 2)),
                .weight = host_random(7, DIMS(N, N)),
                .bias = host_random(8, DIMS(N)),
            },
        .proj2_weight = host_random(9, DIMS(C, F / 2)),
        .proj2_bias = host_random(10, DIMS(C)),
    };
}

static attncl_sgu_params feed_sgu(struct rig *b, const struct ref_sgu *p)
{
    return (attncl_sgu_params){
        .struct_size = sizeof(attncl_sgu_params),
        .norm_weight = rig_in(b, p->norm_weight),
        .norm_bias = rig_in(b, p->norm_bias),
        .weight = rig_in(b, p->weight),
        .bias = rig_in(b, p->bias),
    };
}

static attncl_gmlp_params feed(struct rig *b, const struct ref_gmlp *p, attncl_sgu_params *gate)
{
    *gate = feed_sgu(b, &p->sgu);
    return (attncl_gmlp_params){
        .struct_size = sizeof(attncl_gmlp_params),
        .norm_weight = rig_in(b, p->norm_weight),
        .norm_bias = rig_in(b, p->norm_bias),
        .proj1_weight = rig_in(b, p->proj1_weight),
        .proj1_bias = rig_in(b, p->proj1_bias),
        .sgu = gate,
        .proj2_weight = rig_in(b, p->proj2_weight),
        .proj2_bias = rig_in(b, p->proj2_bias),
    };
}

TEST(steps_are_the_causal_block)
{
    const struct ref_gmlp ref = random_params();
    struct host *x = host_random(40, DIMS(T, B, C)), *want = host_like(x);
    struct host *row = host_new(ATTNCL_F32, DIMS(B, C)), *position = host_new(ATTNCL_I32, DIMS(1));
    struct rig b;

    ref_gmlp_block(&ref, 1, x, NULL, want);
    rig_open(&b);
    attncl_sgu_params gate;
    const attncl_gmlp_params params = feed(&b, &ref, &gate);
    const attncl_value in = rig_in(&b, row), at = rig_in(&b, position);
    rig_out(&b, attncl_gmlp_step(b.g, &params, in, at), host_like(row));
    ck_rig_steps(&b, x, want, relative, absolute);
}

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
    const struct ref_gmlp ref = random_params();
    struct host *z = _i == 0   ? host_random(50, DIMS(T, B, 7))
                     : _i == 1 ? host_random(50, DIMS(T, F))
                     : _i == 4 ? host_random(50, DIMS(N + 1, B, F))
                               : host_random(50, DIMS(T, B, F));
    struct host *mask = _i == 2   ? host_mask(51, 1, DIMS(1, T, 1))
                        : _i == 3 ? host_mask(51, 1, DIMS(T, T, B))
                                  : NULL;
    struct rig b;
    rig_open(&b);
    const attncl_sgu_params params = feed_sgu(&b, &ref.sgu);
    const attncl_value in = rig_in(&b, z), seen = rig_in(&b, mask);
    rig_out(&b, attncl_spatial_gating_unit(b.g, &params, in, _i == 2, seen), z);
    ck_rig_fails(&b, expected[_i].status, expected[_i].words);
}
