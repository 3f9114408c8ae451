// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

void ref_accumulate_fwd(struct host *into, const struct host *x, double keep, double gain)
{
    for (int64_t i = 0; i < into->count; ++i)
        into->data[i] = keep * into->data[i] + (x ? gain * x->data[i] : 0);
}

// -- the op

// With a guard that is not a number nothing changes; where keep is 0 what was there is not read.
static void accumulate(const void *params, struct host *const *in, struct host *const *out)
{
    const struct accumulate_fwd_params *p = params;
    struct host *into = in[0];

    (void)out;
    if (in[2] && isnan(in[2]->data[0]))
        return;
    for (int64_t i = 0; p->keep == 0 && i < into->count; ++i)
        into->data[i] = 0;
    ref_accumulate_fwd(into, in[1], p->keep, p->gain);
}

// Two factors that are rounded, two products and a sum, of the size that they have without cancelling signs.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct accumulate_fwd_params *params = spec_params(p);
    const struct host *const into = spec_in(p, 0), *const x = spec_in(p, 1);

    (void)k, (void)want;
    for (int64_t i = 0; i < into->count; ++i)
        allowed->data[i] = 3 * 0x1p-24 *
                           ((params->keep == 0 ? 0 : fabs(params->keep * into->data[i])) +
                            (x ? fabs(params->gain * x->data[i]) : 0));
}

static void not_a_number(struct host *const *in)
{
    in[2]->data[0] = NAN;
}

static void hide(struct host *const *in)
{
    for (int64_t i = 0; i < in[0]->count; ++i)
        in[0]->data[i] = i % 2 ? NAN : INFINITY;
}

#define KEEP(keep, gain) SPEC_PARAMS(accumulate_fwd, keep, gain)
OP_SPEC(accumulate_fwd, .in = "into f32 N*; value? f32 N*; guard? f32", .out = "",
        .ref = accumulate, .allow = allow, .smoke = "N=1,37,2100; N=3x5; N=-", .gpu = "N=512x512",
        .special = "N=37", .full = "N=70001",
        .cases = {{"sum", KEEP(1, 1), "value f32 N*"},
                  {"average", KEEP(0.999, 1 - 0.999), "value f32 N*; guard f32"},
                  {"guarded", KEEP(0.999, 1 - 0.999), "value f32 N*; guard f32",
                   .prepare = not_a_number},
                  {"first", KEEP(0, 1), "value f32 N*", .prepare = hide},
                  {"zeros", KEEP(0, 0), .prepare = hide}},
        .refusals = {{ATTNCL_ERR_SHAPE, "guard", KEEP(1, 1), "guard f32 4"}});
