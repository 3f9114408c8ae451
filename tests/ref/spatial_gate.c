// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/gmlp.h"
#include "ref/layers.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_spatial_gate_fwd(const struct host *weight, const struct host *bias, const struct host *u,
                          const struct host *z1, const struct host *mask, bool causal,
                          struct host *y)
{
    const int64_t length = u->dim[0], columns = u->dim[1] * u->dim[2];

    for (int64_t i = 0; i < length; ++i) {
        for (int64_t bc = 0; bc < columns; ++bc) {
            double gate = bias->data[i];
            for (int64_t j = 0; j < (causal ? i + 1 : length); ++j) {
                const int64_t mask_row = mask && mask->dim[0] > 1 ? i : 0;
                if (!mask || mask->data[mask_row * length + j] != 0)
                    gate += weight->data[i * weight->dim[1] + j] * u->data[j * columns + bc];
            }
            y->data[i * columns + bc] = z1->data[i * columns + bc] * gate;
        }
    }
}

// -- the op

// W', zero where it is not seen: what it is multiplied by, NaN too, reaches the sum.
static struct host *seen_weight(struct host *const *in, bool causal)
{
    const struct host *const mask = in[4];
    struct host *seen = host_copy(in[0]);
    const int64_t n = in[0]->dim[1], length = in[2]->dim[0];

    for (int64_t i = 0; i < length; ++i)
        for (int64_t j = 0; j < length; ++j)
            if ((causal && j > i) ||
                (mask && mask->data[(mask->dim[0] > 1 ? i : 0) * length + j] == 0))
                seen->data[i * n + j] = 0;
    return seen;
}

static void gate(const void *params, struct host *const *in, struct host *const *out)
{
    const struct spatial_gate_fwd_params *p = params;
    ref_spatial_gate_fwd(seen_weight(in, false), in[1], in[2], in[3], NULL, p->causal, out[0]);
}

static void gate_bwd(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    const struct spatial_gate_fwd_params *p = params;
    const struct host *const seen = seen_weight(in, p->causal);
    const int64_t n = in[0]->dim[1], length = in[2]->dim[0];
    const int64_t columns = length ? dy[0]->count / length : 0;
    struct host *visible = host_copy(in[0]), *ones = host_like(dy[0]), *factor = host_like(dy[0]);

    for (int64_t i = 0; i < visible->count; ++i)
        visible->data[i] = 1;
    for (int64_t i = 0; i < ones->count; ++i)
        ones->data[i] = 1;
    visible = seen_weight((struct host *const[]){visible, in[1], in[2], in[3], in[4]}, p->causal);
    gate(p, (struct host *const[]){in[0], in[1], in[2], ones, in[4]}, &factor);
    for (int64_t i = 0; i < dy[0]->count; ++i) {
        const double d = dy[0]->data[i] * in[3]->data[i];
        const int64_t t = i / columns, column = i % columns;
        dx[3]->data[i] = dy[0]->data[i] * factor->data[i];
        dx[1]->data[t] += d;
        for (int64_t j = 0; j < length; ++j) {
            if (visible->data[t * n + j] != 0)
                dx[0]->data[t * n + j] += d * in[2]->data[j * columns + column];
            dx[2]->data[j * columns + column] += d * seen->data[t * n + j];
        }
    }
}

static struct host *sizes_of(const struct host *h)
{
    struct host *sizes = host_like(h);

    for (int64_t i = 0; i < h->count; ++i)
        sizes->data[i] = fabs(h->data[i]);
    return sizes;
}

// A product of T terms, a bias and a factor: T + 3 roundings at most, each of the size that the result would have if no
// sign cancelled.
static void allow(const struct spec_point *p, int k, const struct host *want, struct host *allowed)
{
    const struct spatial_gate_fwd_params *params = spec_params(p);

    (void)k, (void)want;
    ref_spatial_gate_fwd(sizes_of(spec_in(p, 0)), sizes_of(spec_in(p, 1)), sizes_of(spec_in(p, 2)),
                         sizes_of(spec_in(p, 3)), spec_in(p, 4), params->causal, allowed);
    host_scale(allowed, (spec_extent(p, 'T') + 3) * 0x1p-24);
    for (int64_t i = 0; i < allowed->count; ++i)
        allowed->data[i] += 1e-37;
}

// What is above the diagonal does not leak.
static void spoil_later(struct host *const *in)
{
    const int64_t n = in[0]->dim[0];

    for (int64_t i = 0; i < n * n; ++i)
        if (i % n > i / n)
            in[0]->data[i] = NAN;
}

// Position i sees itself alone.
static void show_diagonal(struct host *const *in)
{
    const int64_t length = in[4]->dim[1];

    for (int64_t i = 0; i < in[4]->count; ++i)
        in[4]->data[i] = i % length == i / length;
}

#define GATE(causal) SPEC_PARAMS(spatial_gate_fwd, causal)

// Under a causal mask gradients multiply rows in blocks of 48 or more.
OP_SPEC(spatial_gate_fwd,
        .in = "weight f32 N N; bias f32 N; u f32 T B C; z1 f32 T B C; mask? u8:0.5 T T 1",
        .out = "y f32 T B C", .ref = gate, .grad = "weight bias u z1", .ref_bwd = gate_bwd,
        .allow = allow, .grad_tolerance = 1e-6, .smoke = "N=9 T=7 B=2 C=5; N=52 T=50 B=1 C=70",
        .gpu = "N=1024 T=1024 B=8 C=512", .special = "N=7 T=7 B=2 C=9", .nonzero = "N",
        .full = "N=1 T=1 B=1 C=1; N=9 T=9 B=1 C=64; N=40 T=37 B=3 C=19; N=130 T=130 B=1 C=70; "
                "N=103 T=101 B=1 C=2",
        .data = MASK_SPARSE | MASK_NONE,
        .cases = {{"plain", GATE(0)},
                  {"causal", GATE(1)},
                  {"causal, later ones are NaN", GATE(1), .grad = "", .special = "",
                   .prepare = spoil_later},
                  {"masked", GATE(0), "mask u8:0.5 T T 1"},
                  {"masked causal", GATE(1), "mask u8:0.5 T T 1"},
                  {"one mask", GATE(0), "mask u8:0.5 1 T 1", .smoke = "N=9 T=7 B=2 C=5"},
                  {"diagonal", GATE(0), "mask u8:0.5 T T 1", .smoke = "N=9 T=7 B=2 C=5",
                   .prepare = show_diagonal}},
        .refusals = {{ATTNCL_ERR_SHAPE, "u has T = 5, weight has N = 4", GATE(0),
                      .sizes = "N=4 T=5 B=2 C=6"},
                     {ATTNCL_ERR_SHAPE, "mask is [7, 7, 2], must be [T or 1, T, 1]",
                      .with = "mask u8:0.5 T T 2"},
                     {ATTNCL_ERR_SHAPE, "mask is [2, 7, 1], must be [T or 1, T, 1] with T = 7",
                      .with = "mask u8:0.5 2 T 1"}});

// With the norm before it, as users call it.
enum { Z, NORM_WEIGHT, NORM_BIAS, UNIT_WEIGHT, UNIT_BIAS, UNIT_MASK };

static void unit(const void *params, struct host *const *in, struct host *const *out)
{
    const struct ref_sgu p = {in[NORM_WEIGHT], in[NORM_BIAS], in[UNIT_WEIGHT], in[UNIT_BIAS]};

    ref_spatial_gating_unit(&p, ((const struct spatial_gate_fwd_params *)params)->causal, in[Z],
                            in[UNIT_MASK], out[0]);
}

static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    attncl_sgu_params p = ATTNCL_SGU_PARAMS_INIT;

    p.norm_weight = in[NORM_WEIGHT];
    p.norm_bias = in[NORM_BIAS];
    p.weight = in[UNIT_WEIGHT];
    p.bias = in[UNIT_BIAS];
    out[0] = attncl_spatial_gating_unit(
        g, &p, in[Z], ((const struct spatial_gate_fwd_params *)params)->causal, in[UNIT_MASK]);
}

OP_SPEC(spatial_gating_unit,
        .in = "z f32 T B C+C; norm_weight f32 C; norm_bias f32 C; weight f32 N N; bias f32 N; "
              "mask? u8:0.5 T T 1",
        .out = "y f32 T B C", .ref = unit, .build = build,
        .grad = "z norm_weight norm_bias weight bias", .rel = 20, .abs = 20, .grad_tolerance = 3e-5,
        .smoke = "T=5 N=6 B=2 C=7",
        .cases = {
            {"plain", GATE(0)}, {"causal", GATE(1)}, {"masked", GATE(0), "mask u8:0.5 T T 1"}});
