// SPDX-License-Identifier: MIT

#include "attncl/ops.h"
#include "support/op_spec.h"

static int count(struct host *const *in)
{
    int n = 0;
    while (n < 8 && in[n])
        ++n;
    return n;
}

// y[a, begin_i + m, c] = x_i[a, m, c]
static void concat(const void *params, struct host *const *x, struct host *const *out)
{
    struct host *y = out[0];
    int64_t begin = 0;

    (void)params;
    for (int i = 0; i < count(x); ++i) {
        for (int64_t j = 0; j < x[i]->count; ++j) {
            const int64_t c = j % y->dim[2], m = j / y->dim[2] % x[i]->dim[1];
            const int64_t a = j / (y->dim[2] * x[i]->dim[1]);
            y->data[(a * y->dim[1] + begin + m) * y->dim[2] + c] = x[i]->data[j];
        }
        begin += x[i]->dim[1];
    }
}

// Their parts of dy.
static void parts(const void *params, struct host *const *in, struct host *const *dy,
                  struct host *const *dx)
{
    const int64_t length = dy[0]->dim[1], width = dy[0]->dim[2];
    int64_t begin = 0;

    (void)params;
    for (int i = 0; i < count(in); begin += in[i++]->dim[1])
        for (int64_t j = 0; j < dx[i]->count; ++j) {
            const int64_t block = in[i]->dim[1] * width;
            dx[i]->data[j] = dy[0]->data[(j / block * length + begin) * width + j % block];
        }
}

#define THREE "value1 f32 A N C; value2 f32 A O C;"
static void build(attncl_graph *g, const void *params, const attncl_value *in, attncl_value *out)
{
    size_t n = 1;

    (void)params;
    while (n < 8 && in[n].id)
        ++n;
    out[0] = attncl_concat(g, n, in, 1);
}

OP_SPEC(concat_fwd,
        .in = "value0 f32 A M C; value1? f32 A N C; value2? f32 A O C; value3? f32 A P C; "
              "value4? f32 A Q C; value5? f32 A R C; value6? f32 A S C; value7? f32 A T C",
        .out = "y f32 A M C", .ref = concat, .build = build,
        .grad = "value0 value1 value2 value3 value4 value5 value6 value7", .ref_bwd = parts,
        .grad_tolerance = 1e-9, .gpu = "A=8 M=64 N=64 O=64 P=64 Q=64 R=64 S=64 T=64 C=512",
        .cases = {{"1", .with = "value0 f32+ A M C", .smoke = "A=3 M=5 C=2; A=1 M=1 C=1"},
                  {"2", .with = "value1 f32 A N C; y f32 A M+N C", .smoke = "A=3 M=1 N=700 C=2",
                   .full = "A=2 M=1 N=3 C=3000"},
                  {"3", .with = THREE "y f32 A M+N+O C",
                   .smoke = "A=5 M=3 N=1 O=3 C=33; A=2 M=4 N=0 O=1 C=3"},
                  {"integers",
                   .with = "value0 i32:-9:2000000000 A M C; value1 i32:-9:2000000000 A N C; "
                           "y i32 A M+N C",
                   .smoke = "A=3 M=5 N=2 C=3"},
                  {"8",
                   .with = THREE "value3 f32 A P C; value4 f32 A Q C; value5 f32 A R C; "
                                 "value6 f32 A S C; value7 f32 A T C; y f32 A M+N+O+P+Q+R+S+T C",
                   .smoke = "A=3 M=1 N=3 O=0 P=70 Q=1 R=2 S=1 T=5 C=2"}},
        .refusals = {{ATTNCL_ERR_DTYPE, "U8", .with = "value0 u8:0.5 A M C"}});
