// SPDX-License-Identifier: MIT

#include "attncl/kinds.h"
#include "attncl/ops.h"
#include "ref/ref.h"
#include "support/op_spec.h"

void ref_add_positions_fwd(const struct host *x, const struct host *table, int layout,
                           struct host *y)
{
    const int64_t n_channels = x->dim[2];

    for (int64_t i = 0; i < x->count; ++i) {
        const int64_t row = i / n_channels;
        const int64_t t = layout == ATTNCL_LAYOUT_TIME_FIRST ? row / x->dim[1] : row % x->dim[1];
        y->data[i] = x->data[i] + table->data[t * n_channels + i % n_channels];
    }
}

// -- the op

static int layout_of(const void *params)
{
    return ((const struct add_positions_fwd_params *)params)->layout;
}

static void positions(const void *params, struct host *const *in, struct host *const *out)
{
    ref_add_positions_fwd(in[0], in[1], layout_of(params), out[0]);
}

static void gradients(const void *params, struct host *const *in, struct host *const *dy,
                      struct host *const *dx)
{
    const bool time_first = layout_of(params) == ATTNCL_LAYOUT_TIME_FIRST;
    const int64_t width = in[1]->dim[1], second = in[0]->dim[1];

    host_set(dx[0], dy[0]->data);
    for (int64_t i = 0; i < dy[0]->count; ++i) {
        const int64_t row = i / width, t = time_first ? row / second : row % second;
        dx[1]->data[t * width + i % width] += dy[0]->data[i];
    }
}

// One rounding; a table longer than the sequence.
#define LAYOUT(layout) SPEC_PARAMS(add_positions_fwd, layout)
SPEC_BUILD(build, attncl_add_positions(g, in[0], in[1], (attncl_layout)layout_of(params)))

OP_SPEC(add_positions_fwd, .in = "x f32 T B C; table f32 P C", .out = "y f32 T B C",
        .ref = positions, .build = build, .grad = "x table", .ref_bwd = gradients,
        .grad_tolerance = 1e-6, .rel = 1.01, .nonzero = "P",
        .smoke = "T=5 B=4 C=37 P=9; T=5 B=5 C=3 P=5; T=1 B=1 C=1 P=1; T=3 B=2 C=20 P=3",
        .gpu = "T=1024 B=8 C=512 P=1024", .special = "T=3 B=2 C=21 P=4",
        .cases = {{"time first", LAYOUT(ATTNCL_LAYOUT_TIME_FIRST)},
                  {"batch first", LAYOUT(ATTNCL_LAYOUT_BATCH_FIRST), "x f32 B T C; y f32 B T C"}},
        .refusals = {{ATTNCL_ERR_SHAPE, "x has T = 6, table has P = 5", .sizes = "T=6 B=4 C=3 P=5"},
                     {ATTNCL_ERR_ARGUMENT, "layout 2", LAYOUT(2)}});

// One for all, or one for each row.  A position outside: the nearest.
static void position_at(const void *params, struct host *const *in, struct host *const *out)
{
    const double last = (double)in[1]->dim[0] - 1;
    const int64_t width = in[1]->dim[1];

    (void)params;
    for (int64_t i = 0; i < out[0]->count; ++i) {
        const double at = in[2]->data[in[2]->count > 1 ? i / width : 0];
        const int64_t row = (int64_t)(at < 0 ? 0 : at > last ? last : at);
        out[0]->data[i] = in[0]->data[i] + in[1]->data[row * width + i % width];
    }
}

SPEC_BUILD(build_at, attncl_add_position_at(g, in[0], in[1], in[2]))

OP_SPEC(add_position_at_fwd, .in = "x f32 B C; table f32 P C; position i32:0:P 1",
        .out = "y f32 B C", .ref = position_at, .build = build_at, .rel = 1.01, .nonzero = "P",
        .smoke = "B=3 C=37 P=5; B=2 C=20 P=1; B=1 C=5 P=3", .gpu = "B=8 C=512 P=1024",
        .special = "B=3 C=21 P=4",
        .cases = {{"within"},
                  {"first", .with = "position i32:0:1 1"},
                  {"last", .with = "position i32:P-1:P 1"},
                  {"before", .with = "position i32:-1:0 1"},
                  {"behind", .with = "position i32:P:P+9 1"},
                  {"slots", .with = "position i32:-2:P+2 B",
                   .smoke = "B=3 C=37 P=5; B=8 C=20 P=4"}},
        .refusals = {{ATTNCL_ERR_SHAPE, "position has N = 2, must be 1 or B = 3",
                      .with = "position i32 2", .sizes = "B=3 C=5 P=2"}});
