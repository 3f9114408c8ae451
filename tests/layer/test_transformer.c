// SPDX-License-Identifier: MIT
// Feed-forward networks against their reference; tables of positions; option structs.

#include <math.h>
#include <string.h>

#include "attncl/transformer.h"
#include "ref/layers.h"
#include "support/layer_test.h"

enum { C = 5, F = 11 };

// Two linear maps of 5 and 11 terms, rounding at 2^-24 of values up to about 16.
static const double absolute = 8e-6, relative = 4e-6;

static attncl_ffn_params feed(struct rig *b, const struct ref_ffn *p)
{
    return (attncl_ffn_params){
        .struct_size = sizeof(attncl_ffn_params),
        .layer1_weight = rig_in(b, p->layer1_weight),
        .layer1_bias = rig_in(b, p->layer1_bias),
        .gate_weight = rig_in(b, p->gate_weight),
        .gate_bias = rig_in(b, p->gate_bias),
        .layer2_weight = rig_in(b, p->layer2_weight),
        .layer2_bias = rig_in(b, p->layer2_bias),
    };
}

enum { N_ACTIVATIONS = 6, PLAIN = 0, GATED = 1, GATED_BARE = 2, N_FORMS = 3 };

LOOP_TEST(networks_match_the_reference, 0, N_FORMS *N_ACTIVATIONS)
{
    const int activation = _i % N_ACTIVATIONS, form = _i / N_ACTIVATIONS;
    const bool biases = form != GATED_BARE;
    const struct ref_ffn ref = {
        .layer1_weight = host_random(1, DIMS(F, C)),
        .layer1_bias = biases ? host_random(2, DIMS(F)) : NULL,
        .gate_weight = form != PLAIN ? host_random(3, DIMS(F, C)) : NULL,
        .gate_bias = form == GATED ? host_random(4, DIMS(F)) : NULL,
        .layer2_weight = host_random(5, DIMS(C, F)),
        .layer2_bias = biases ? host_random(6, DIMS(C)) : NULL,
    };
    struct host *x = host_random(10, DIMS(3, 4, C)), *y = host_like(x), *want = host_like(x);
    struct rig b;

    rig_open(&b);
    const attncl_ffn_params params = feed(&b, &ref);
    const attncl_value in = rig_in(&b, x);
    const attncl_value residual = biases ? in : ATTNCL_NONE_VALUE;
    rig_out(&b, attncl_feed_forward(b.g, &params, (attncl_activation)activation, in, residual), y);
    rig_run_once(&b);
    ref_feed_forward(&ref, activation, x, want);
    if (biases)
        ref_add_fwd(want, x, want);
    ck_near(y, want, relative, absolute);
}

LOOP_TEST(sinusoids_are_sines_and_cosines, 0, 4)
{
    static const int64_t widths[] = {1, 2, 7, 16};
    const int64_t width = widths[_i], n = 300;
    const int64_t dim[2] = {n, width};
    struct host *y = host_new(ATTNCL_F32, 2, dim), *want = host_like(y);
    struct rig b;
    for (int64_t p = 0; p < n; ++p) {
        for (int64_t c = 0; c < width; ++c) {
            const double angle = (double)p / pow(10000.0, (double)(c - c % 2) / (double)width);
            want->data[p * width + c] = c % 2 ? cos(angle) : sin(angle);
        }
    }
    rig_open(&b);
    rig_out(&b, attncl_sinusoid(b.g, n, width), y);
    rig_run_once(&b);
    ck_near(y, want, 0, 6e-8); // one rounding to float
}

TEST(an_unset_option_struct_is_refused)
{
    const attncl_linear_desc desc = {.struct_size = 4};
    struct host *x = host_random(20, DIMS(2, 3)), *w = host_random(21, DIMS(4, 3));
    struct rig b;
    rig_open(&b);
    const attncl_value in = rig_in(&b, x), weight = rig_in(&b, w);
    rig_out(&b, attncl_linear_fused(b.g, &desc, in, weight, ATTNCL_NONE_VALUE), x);
    ck_rig_fails(&b, ATTNCL_ERR_ARGUMENT, "attncl_linear_desc has struct_size 4");
}

TEST(a_table_too_large_is_refused)
{
    struct host *x = host_new(ATTNCL_F32, DIMS(1));
    struct rig b;
    rig_open(&b);
    rig_out(&b, attncl_sinusoid(b.g, INT64_C(1) << 40, INT64_C(1) << 40), x);
    ck_rig_fails(&b, ATTNCL_ERR_SHAPE, "2^48");
}
