// SPDX-License-Identifier: MIT

#include <math.h>

#include "ref/ref.h"
#include "support/op_spec.h"

// history[position] = u, rounded to its type
void ref_spatial_gate_step_fwd(const struct host *weight, const struct host *bias,
                               const struct host *u, const struct host *z1, int64_t position,
                               struct host *history, struct host *y)
{
    const struct host *row =
        attncl__is_16_bit(history->dtype) ? host_stored(host_copy(u), history->dtype) : u;
    const double *w = weight->data + position * weight->dim[1];

    for (int64_t i = 0; i < u->count; ++i) {
        double gate = bias->data[position];
        history->data[position * u->count + i] = row->data[i];
        for (int64_t j = 0; j <= position; ++j)
            gate += w[j] * history->data[j * u->count + i];
        y->data[i] = z1->data[i] * gate;
    }
}

// -- the op

enum { WEIGHT, BIAS, U, Z1, POSITION, HISTORY };

// A position outside counts as the nearest.
static int64_t position_of(const struct host *at, int64_t n)
{
    return at->data[0] < 0 ? 0 : at->data[0] >= (double)n ? n - 1 : (int64_t)at->data[0];
}

static void step(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    ref_spatial_gate_step_fwd(in[WEIGHT], in[BIAS], in[U], in[Z1],
                              position_of(in[POSITION], in[WEIGHT]->dim[0]), in[HISTORY], out[0]);
}

// Sums of t + 2 terms: t + 3 roundings at most, each of the size that the result would have if no sign cancelled.
// The history is exact.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct host *const w = spec_in(p, WEIGHT), *const history = spec_in(p, HISTORY);
    const int64_t n = w->dim[0], t = position_of(spec_in(p, POSITION), n);

    (void)want;
    for (int64_t i = 0; k == 0 && i < allowed->count; ++i) {
        const double u = spec_in(p, U)->data[i];
        double size = fabs(spec_in(p, BIAS)->data[t]) + 1.01 * fabs(w->data[t * n + t] * u);
        for (int64_t j = 0; j < t; ++j)
            size += fabs(w->data[t * n + j] * history->data[j * allowed->count + i]);
        allowed->data[i] = (double)(t + 4) * 0x1p-24 * size * fabs(spec_in(p, Z1)->data[i]) + 1e-37;
    }
}

// What is to come is not looked at.
static void spoil_later(struct host *const *in)
{
    const int64_t t = position_of(in[POSITION], in[WEIGHT]->dim[0]);

    for (int64_t i = (t + 1) * in[U]->count; i < in[HISTORY]->count; ++i)
        in[HISTORY]->data[i] = NAN;
}

// Parts of the positions that are full, cut short, and not there yet.
#define PARTS "N=500 B=1 C=70"
OP_SPEC(
    spatial_gate_step_fwd,
    .in =
        "weight f32 N N; bias f32 N; u f32 B C; z1 f32 B C; position i32:0:N 1; history f32+ N B C",
    .out = "y f32 B C", .ref = step, .allow = allow, .smoke = "N=9 B=2 C=21; N=67 B=1 C=64",
    .gpu = "N=1024 B=8 C=512", .special = "N=9 B=2 C=5", .full = "N=1 B=1 C=1; N=5 B=3 C=130",
    .nonzero = "N",
    .cases = {{"anywhere", .prepare = spoil_later},
              {"first", .with = "position i32:0:1 1", .prepare = spoil_later},
              {"before", .with = "position i32:-1:0 1", .prepare = spoil_later},
              {"last", .with = "position i32:8:9 1", .prepare = spoil_later},
              {"behind", .with = "position i32:2147483646:2147483647 1"},
              {"31", .with = "position i32:31:32 1", .smoke = PARTS, .prepare = spoil_later},
              {"32", .with = "position i32:32:33 1", .smoke = PARTS, .prepare = spoil_later},
              {"65", .with = "position i32:65:66 1", .smoke = PARTS, .prepare = spoil_later},
              {"490", .with = "position i32:490:491 1", .smoke = PARTS, .prepare = spoil_later},
              {"499", .with = "position i32:499:500 1", .smoke = PARTS},
              {"F16", .with = "history f16 N B C", .prepare = spoil_later},
              {"BF16", .with = "history bf16 N B C", .prepare = spoil_later}},
    .refusals = {{ATTNCL_ERR_DTYPE, "history is I32", .with = "history i32:0:3 N B C"}});
