// SPDX-License-Identifier: MIT

#include <math.h>
#include <stdlib.h>

#include "ref/ref.h"
#include "support/op_spec.h"

void ref_feedback_mix_fwd(const struct host *weights, int64_t first, const struct host *sum,
                          struct host *const *x, int n_x, struct host *y)
{
    double row_max = -INFINITY, total = 0;
    for (int64_t i = 0; i < weights->count; ++i)
        row_max = fmax(row_max, weights->data[i]);
    for (int64_t i = 0; i < weights->count; ++i)
        total += exp(weights->data[i] - row_max);
    for (int64_t i = 0; i < y->count; ++i) {
        y->data[i] = sum ? sum->data[i] : 0;
        for (int k = 0; k < n_x; ++k)
            y->data[i] += exp(weights->data[first + k] - row_max) / total * x[k]->data[i];
    }
}

// y = sum_f p_f x_f, p = softmax(weights):  dx_f = p_f dy,  dweights_i = p_i (s_i - sum_f p_f s_f)
// with s_f = dy . x_f of the values that are mixed, 0 for the others
void ref_feedback_mix_bwd(const struct host *weights, int64_t first, struct host *const *x, int n_x,
                          const struct host *dy, struct host *dx, struct host *dweights)
{
    const int64_t n = weights->count;
    double *p = calloc((size_t)n, sizeof *p), *s = calloc((size_t)n, sizeof *s);
    double row_max = -INFINITY, total = 0, mean = 0;

    for (int64_t i = 0; i < n; ++i)
        row_max = fmax(row_max, weights->data[i]);
    for (int64_t i = 0; i < n; ++i)
        total += p[i] = exp(weights->data[i] - row_max);
    for (int64_t i = 0; i < n; ++i)
        p[i] /= total;
    for (int k = 0; k < n_x; ++k) {
        for (int64_t e = 0; e < dy->count; ++e) {
            dx->data[k * dy->count + e] = p[first + k] * dy->data[e];
            s[first + k] += dy->data[e] * x[k]->data[e];
        }
        mean += p[first + k] * s[first + k];
    }
    for (int64_t i = 0; i < n; ++i)
        dweights->data[i] = p[i] * (s[i] - mean);
    free(p);
    free(s);
}

// -- the op

enum { WEIGHTS, SUM, X, N_MIXED = 8 };

static int count_mixed(struct host *const *in)
{
    int n = 0;

    while (n < N_MIXED && in[X + n])
        ++n;
    return n;
}

static void mix(const void *params, struct host *const *in, struct host *const *out)
{
    const struct feedback_mix_fwd_params *p = params;
    ref_feedback_mix_fwd(in[WEIGHTS], p->first, in[SUM], in + X, count_mixed(in), out[0]);
}

static void mix_bwd(const void *params, struct host *const *in, struct host *const *dy,
                    struct host *const *dx)
{
    const struct feedback_mix_fwd_params *p = params;
    const int n = count_mixed(in);
    struct host *all = host_new(ATTNCL_F32, DIMS(n, dy[0]->count));

    ref_feedback_mix_bwd(in[WEIGHTS], p->first, in + X, n, dy[0], all, dx[WEIGHTS]);
    for (int i = 0; i < n; ++i)
        host_set(dx[X + i], all->data + i * dy[0]->count);
    if (in[SUM])
        host_set(dx[SUM], dy[0]->data);
}

#define MIX(first_) SPEC_PARAMS(feedback_mix_fwd, first_)
// At most nine terms below 6 in size, with shares that sum to one: some roundings each.
OP_SPEC(
    feedback_mix_fwd,
    .in = "weights f32 W; sum? f32 R*; x0 f32 R*; x1? f32 R*; x2? f32 R*; x3? f32 R*; x4? f32 R*; "
          "x5? f32 R*; x6? f32 R*; x7? f32 R*",
    .out = "y f32 R*", .ref = mix, .grad = "weights sum x0 x1 x2 x3 x4 x5 x6 x7",
    .ref_bwd = mix_bwd, .tiny = 54 * 0x1p-24, .leeway = MEETS, .nonzero = "W",
    .data = PEAK | MINUS_INF, .smoke = "W=9 R=3x7; W=9 R=1; W=10 R=700", .gpu = "W=9 R=8x512",
    .special = "W=9 R=2x21",
    .cases = {{"one", MIX(0)},
              {"one beside a sum", MIX(8), "sum f32 R*"},
              {"three beside a sum", MIX(2), "sum f32 R*; x1 f32 R*; x2 f32 R*"},
              {"eight", MIX(1),
               "x1 f32 R*; x2 f32 R*; x3 f32 R*; x4 f32 R*; x5 f32 R*; x6 f32 R*; x7 f32 R*"}},
    .refusals = {
        {ATTNCL_ERR_SHAPE, "weights has 9 elements, there are 10 values", MIX(8), "x1 f32 R*"}});

static void gate(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    for (int64_t i = 0; i < out[0]->count; ++i)
        out[0]->data[i] = in[1]->data[0] > 0;
}

OP_SPEC(feedback_gate_fwd, .in = "x f32 R*; position i32:-1:3 1", .out = "y f32 R*", .ref = gate,
        .smoke = "R=3x7; R=1; R=700", .gpu = "R=8x512", .special = "R=3x7", .data = INT_ENDS);

// [slots, B, H, limit, D] at slots `slot` + s, place t and [B, slots H D]: the place of element i of x, -1 for none.
int64_t ref_feedback_place(const struct host *x, const struct host *cache, int64_t slot, double t,
                           int64_t i)
{
    const int64_t *dim = cache->dim, width = dim[4], per_entry = x->dim[1], b = i / per_entry;
    const int64_t s = slot + i % per_entry / (dim[2] * width), h = i / width % dim[2];

    return t < 0 || t >= (double)dim[3]
               ? -1
               : (((s * dim[1] + b) * dim[2] + h) * dim[3] + (int64_t)t) * width + i % width;
}

static void store(const void *params, struct host *const *in, struct host *const *out)
{
    const struct feedback_store_fwd_params *p = params;
    struct host *const x =
        in[2]->dtype == ATTNCL_F32 ? in[0] : host_stored(host_copy(in[0]), in[2]->dtype);

    (void)out;
    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t place = ref_feedback_place(x, in[2], p->slot, in[1]->data[0], i);
        if (place >= 0)
            in[2]->data[place] = x->data[i];
    }
}

#define STORE(slot_) SPEC_PARAMS(feedback_store_fwd, slot_)
// A step is kept at its place and nowhere else.
OP_SPEC(feedback_store_fwd, .in = "x f32 B C; position i32:-1:P+2 1; cache f32 S B H P D",
        .out = "", .ref = store, .nonzero = "SHD", .data = INT_ENDS,
        .smoke = "S=5 B=2 C=30 H=3 P=4 D=5; S=3 B=2 C=6 H=3 P=4 D=1; S=5 B=1 C=66 H=2 P=3 D=33",
        .gpu = "S=4 B=8 C=1024 H=8 P=64 D=64", .special = "S=5 B=2 C=30 H=3 P=4 D=5",
        .cases = {{"from slot 1", STORE(1)},
                  {"F16", STORE(1), "cache f16 S B H P D", .special = ""},
                  {"BF16", STORE(0), "cache bf16 S B H P D", .special = ""}},
        .refusals = {{ATTNCL_ERR_SHAPE, "from slot 4 on", STORE(4)}});
