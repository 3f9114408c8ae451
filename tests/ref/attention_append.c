// SPDX-License-Identifier: MIT

#include <string.h>

#include "op/attention/q8_row.h"
#include "ref/ref.h"
#include "support/op_spec.h"

enum { NEW, POSITION, CACHE };

static int64_t position_of(struct host *const *in)
{
    return (int64_t)in[POSITION]->data[0];
}

// Rows from the position on, as many as there is place for; the result is all rows up to them as the state has them.
static void append(const void *params, struct host *const *in, struct host *const *out)
{
    const int64_t k = in[NEW]->dim[2], batch = in[NEW]->dim[1], row = in[CACHE]->dim[2];
    const bool is_q8 = in[CACHE]->dtype == ATTNCL_U8;
    const int64_t heads = is_q8 ? (row - attncl__q8_scales(k)) / 4 : 1;
    const struct host *x = is_q8 ? in[NEW] : host_stored(host_copy(in[NEW]), in[CACHE]->dtype);

    (void)params;
    for (int64_t i = 0; i < in[CACHE]->dim[0] * batch; ++i) {
        const int64_t from = i - position_of(in) * batch;
        double *to = in[CACHE]->data + i * row;
        if (from >= x->dim[0] * batch)
            return;
        if (from >= 0 && is_q8)
            ref_q8_encode(x->data + from * k, heads, k / heads, to);
        else if (from >= 0)
            memcpy(to, x->data + from * k, (size_t)k * sizeof *to);
        if (is_q8)
            ref_q8_decode(to, heads, k / heads, out[0]->data + i * k);
        else if (out[0])
            memcpy(out[0]->data + i * k, to, (size_t)k * sizeof *to);
    }
}

// All rows of a result are defined.
#define TO_THE_END(...) __VA_ARGS__ "; position i32:S-3:S 1; y f32 S B K"
OP_SPEC(attention_append_fwd, .in = "x f32 T B K; position i32:0:S 1; state f32 S B K",
        .out = "y? f32 S B K", .ref = append, .nonzero = "TSKR", .rel = 2, .tiny = 2e-38,
        .data = SCALED, .smoke = "T=3 S=9 B=2 K=21; T=1,9 S=9 B=1 K=64; T=5 S=70 B=3 K=7",
        .gpu = "T=256 S=1024 B=1 K=512",
        .cases = {{"floats"},
                  {"ends", .data = INT_ENDS},
                  {"F16", .with = TO_THE_END("state f16 S B K"), .smoke = "T=3 S=9 B=2 K=21"},
                  {"BF16", .with = TO_THE_END("state bf16 S B K"), .smoke = "T=4 S=9 B=2 K=64"},
                  {"Q8", .with = TO_THE_END("state u8:0.5 S B R"),
                   .smoke = "T=3 S=9 B=2 K=21 R=36; T=7 S=12 B=1 K=64 R=72",
                   .gpu = "T=256 S=1024 B=1 K=512 R=544"}},
        .refusals = {
            {ATTNCL_ERR_SHAPE, "state has R = 20, which is no row of K = 21 channels",
             .with = "state f32 S B R", .sizes = "T=1 S=5 B=2 K=21 R=20"},
            {ATTNCL_ERR_SHAPE, "state has R = 32, which is no row of K = 21 channels in 8 bits",
             .with = "state u8:0.5 S B R; y f32 S B K", .sizes = "T=1 S=5 B=2 K=21 R=32"}});
