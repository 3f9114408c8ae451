// SPDX-License-Identifier: MIT

#include <math.h>

#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

// sign -1: back.  in: x, table [P, 2, F], position or NULL.
void ref_rotate(bool half, double sign, const struct host *x, const struct host *table,
                const struct host *position, struct host *y)
{
    const int64_t width = x->dim[x->rank - 1], pairs = table->dim[2], rows = x->count / width;
    const int64_t n_time = position || table->dim[0] > 1 ? x->dim[0] : 1;

    for (int64_t row = 0; row < rows; ++row) {
        const double *in = x->data + row * width;
        double *out = y->data + row * width;
        int64_t p = row / (rows / n_time);
        if (position) {
            const int64_t b = row % (rows / n_time) / (rows / n_time / x->dim[1]);
            const int64_t at =
                (position->dim[0] > 1 ? p * position->dim[1] : 0) + (position->dim[1] > 1 ? b : 0);
            p = (int64_t)position->data[at];
        }
        p = p < 0 ? 0 : p < table->dim[0] ? p : table->dim[0] - 1;
        for (int64_t c = 0; c < width; ++c)
            out[c] = in[c];
        for (int64_t i = 0; i < pairs; ++i) {
            const int64_t a = half ? i : 2 * i, b = half ? i + pairs : 2 * i + 1;
            const double cosine = table->data[2 * p * pairs + i],
                         sine = sign * table->data[(2 * p + 1) * pairs + i];
            out[a] = cosine * in[a] - sine * in[b];
            out[b] = cosine * in[b] + sine * in[a];
        }
    }
}

static void rotate(const void *params, struct host *const *in, struct host *const *out)
{
    ref_rotate(((const struct rotate_fwd_params *)params)->half, 1, in[0], in[1], in[2], out[0]);
}

static void gradient(const void *params, struct host *const *in, struct host *const *dy,
                     struct host *const *dx)
{
    ref_rotate(((const struct rotate_fwd_params *)params)->half, -1, dy[0], in[1], in[2], dx[0]);
}

#define HALVES     SPEC_PARAMS(rotate_fwd, true)
#define NEIGHBOURS SPEC_PARAMS(rotate_fwd, false)

// Three roundings of values of the size of the two products.  A pair, less than a vector, one, a ragged tail, several
// work-groups, channels that stay.
OP_SPEC(rotate_fwd, .in = "x f32 R* C; table f32 P 2 F; position? i32:-1:P+1 T B",
        .out = "y f32 R* C", .ref = rotate, .grad = "x", .nonzero = "PCTB", .ref_bwd = gradient,
        .grad_tolerance = 3e-7, .rel = 3, .abs = 2,
        .smoke = "R=3x2x3 T=3 B=2 C=2,9 P=4 F=1; R=5x1x2 T=5 B=1 C=38 P=5 F=19,16; R=0x1x1 T=0 B=1 "
                 "C=4 P=2 F=2",
        .gpu = "R=64x8x8 T=64 B=8 C=128 P=64 F=64", .full = "R=7x2x3 T=7 B=2 C=514 P=9 F=257",
        .special = "R=3x1x1 T=3 B=1 C=22 P=3 F=11",
        .cases = {{"halves", HALVES},
                  {"neighbours", NEIGHBOURS},
                  {"positions", HALVES, .with = "position i32:-1:P+1 T B", .special = "",
                   .smoke = "R=3x2x3 T=3 B=2 C=9 P=4 F=4"},
                  {"one position", HALVES, .with = "position i32:-1:P+1 1 1", .special = "",
                   .smoke = "R=1x3x2 T=1 B=3 C=8 P=7 F=4"},
                  {"a position each", NEIGHBOURS, .with = "position i32:-1:P+1 1 B", .special = "",
                   .smoke = "R=1x3x2 T=1 B=3 C=8 P=7 F=4"}},
        .refusals = {
            {ATTNCL_ERR_SHAPE, "of 3 pairs, x is [3, 1, 1, 5], of 5 channels",
             .sizes = "R=3x1x1 T=3 B=1 C=5 P=3 F=3"},
            {ATTNCL_ERR_SHAPE, "T may be 2 at most", .sizes = "R=3x1x1 T=3 B=1 C=6 P=2 F=3"}});

// By positions, as users call it.
static void shift(const void *params, struct host *const *in, struct host *const *out)
{
    const int64_t width = in[0]->dim[in[0]->rank - 1];
    struct host *table = host_new(ATTNCL_F32, DIMS(1, 2, width / 2));

    for (int64_t i = 0; i < width / 2; ++i) {
        const double angle = *(const double *)params * pow(10000, -(double)(2 * i) / (double)width);
        table->data[i] = cos(angle);
        table->data[width / 2 + i] = -sin(angle);
    }
    ref_rotate(false, 1, in[0], table, NULL, out[0]);
}

SPEC_BUILD(build, attncl_relative_shift(g, in[0], *(const double *)params))

OP_SPEC(relative_shift, .in = "x f32 R* C", .out = "y f32 R* C", .ref = shift, .build = build,
        .grad = "x", .rel = 3, .abs = 3, .smoke = "R=-,3x5 C=2,38",
        .cases = {{"ahead", &(const double){3}}, {"back", &(const double){-2}}});
