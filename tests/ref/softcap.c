// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

static double cap_of(const void *params)
{
    return (double)((const struct softcap_fwd_params *)params)->cap;
}

static void softcap(const void *params, struct host *const *in, struct host *const *out)
{
    const double cap = cap_of(params);

    for (int64_t i = 0; i < in[0]->count; ++i)
        out[0]->data[i] = cap * tanh(in[0]->data[i] / cap);
}

static void softcap_bwd(const void *params, struct host *const *in, struct host *const *dy,
                        struct host *const *dx)
{
    for (int64_t i = 0; i < in[0]->count; ++i) {
        const double t = tanh(in[0]->data[i] / cap_of(params));
        dx[0]->data[i] = (1 - t * t) * dy[0]->data[i];
    }
}

// The slope is a difference from 1 of what is known to a few roundings.
static void allow_grad(const struct spec_point *p, int k, const struct host *want,
                       struct host *allowed)
{
    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] = 1e-6 * fabs(spec_dy(p, 0)->data[i]) + 1e-37;
}

// rel: those of tanh, and two of its argument and its factor.
OP_SPEC(softcap_fwd, .in = "x f32 R*", .out = "y f32 R*", .ref = softcap, .grad = "x",
        .ref_bwd = softcap_bwd, .allow_grad = allow_grad, .rel = 8, .tiny = 2e-38,
        .smoke = "R=3x5,1,16,-,2x1031", .special = "R=3x21", .full = "R=70001",
        .gpu = "R=4096x1024", .data = SCALED,
        .cases = {{"30", SPEC_PARAMS(softcap_fwd, 30)}, {"0.5", SPEC_PARAMS(softcap_fwd, 0.5f)}},
        .refusals = {{ATTNCL_ERR_ARGUMENT, "cap is 0, must be finite and above 0",
                      SPEC_PARAMS(softcap_fwd, 0)}});
