// SPDX-License-Identifier: MIT
// Gated recurrent units and their gradients against their references (tests/ref/gru.c, gru_bwd.c).

#include <math.h>

#include "attncl/kinds.h"
#include "ref/ref.h"
#include "support/op_spec.h"

enum { XI, WEIGHT, BIAS, H0 };

static bool time_first(const void *params)
{
    return ((const struct gru_fwd_params *)params)->layout == ATTNCL_LAYOUT_TIME_FIRST;
}

static void gru(const void *params, struct host *const *in, struct host *const *out)
{
    ref_gru_fwd(in[XI], in[WEIGHT], in[BIAS], in[H0], time_first(params), out[0]);
}

static void gru_bwd(const void *params, struct host *const *in, struct host *const *dy,
                    struct host *const *dx)
{
    struct host *y = host_like(dy[0]), *before = host_like(y), *dhh = host_like(in[XI]);

    gru(params, in, &y);
    ref_gru_bwd(in[XI], in[WEIGHT], in[BIAS], in[H0], time_first(params), y, dy[0], dx[XI], dhh,
                before, dx[H0]);
    ref_linear_bwd_weight(dhh, before, dx[WEIGHT]);
    ref_linear_bwd_bias(dhh, dx[BIAS]);
}

// A gate's argument: H products of a state within [-1, 1] (that of h0 aside) by weights of about 1 / sqrt(H), H + 2 roundings
// of at most its size; sigmoid and tanh have slopes of at most 1.  The error of a step passes to the next with weights whose
// rows sum to at most sqrt(H) or so: with updates that halve it, some 4 steps' worth remains.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    (void)k;
    for (int64_t i = 0; i < want->count; ++i)
        allowed->data[i] =
            16 * (spec_extent(p, 'H') + 20) * 0x1p-24 + 16 * 0x1p-24 * fabs(want->data[i]);
}

static void scale_weight(struct host *const *in)
{
    host_scale(in[WEIGHT], 0.5 / (1 + (double)in[WEIGHT]->dim[1] / 16));
}

// Gates are 0 or 1: the state stays, or is +-1.
static void set_extremes(struct host *const *in)
{
    scale_weight(in);
    host_scale(in[XI], 1e4);
    host_scale(in[H0], 1e4);
}

static void set_limits(struct host *const *in)
{
    scale_weight(in);
    for (int64_t i = 0; i < in[XI]->count; ++i)
        in[XI]->data[i] = i % 3 ? 3e38f : -3e38f;
}

#define TIME        SPEC_PARAMS(gru_fwd, ATTNCL_LAYOUT_TIME_FIRST)
#define FROM_STATE  "h0 f32 B H"
#define BATCH_FIRST "xi f32 B T X; y f32 B T H;"
#define CASE(name_, ...)                                                                           \
    {                                                                                              \
        name_, __VA_ARGS__, .prepare = scale_weight                                                \
    }
static const char some[] = "T=3 B=2 X=60 H=20";
OP_SPEC(
    gru_fwd, .in = "xi f32 T B X; weight_hh f32 X H; bias_hh f32 X; h0? f32 B H",
    .out = "y f32 T B H; gates? f32 T B X", .ref = gru, .grad = "xi weight_hh bias_hh h0",
    .ref_bwd = gru_bwd, .allow = allow, .leeway = MEETS, .nonzero = "XH",
    .smoke =
        "T=4 B=3 X=9 H=3; T=1 B=1 X=3 H=1; T=5 B=3 X=21 H=7; T=3 B=2 X=48 H=16; T=4 B=5 X=99 H=33",
    .full = "T=2 B=9 X=192 H=64; T=2 B=1 X=900 H=300", .special = "T=4 B=2 X=9 H=3",
    .cases = {CASE("time first", TIME),
              CASE("from a state", TIME, FROM_STATE),
              CASE("batch first", SPEC_PARAMS(gru_fwd, ATTNCL_LAYOUT_BATCH_FIRST), BATCH_FIRST),
              CASE("batch first, from a state", SPEC_PARAMS(gru_fwd, ATTNCL_LAYOUT_BATCH_FIRST),
                   BATCH_FIRST FROM_STATE),
              {"extremes", TIME, FROM_STATE, .grad = "", .smoke = some, .special = "",
               .prepare = set_extremes},
              {"limits", TIME, .grad = "", .smoke = some, .special = "", .prepare = set_limits}},
    .refusals = {{ATTNCL_ERR_ARGUMENT, "layout 7", SPEC_PARAMS(gru_fwd, 7)}});
