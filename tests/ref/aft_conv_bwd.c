// SPDX-License-Identifier: MIT
//
// Gradients of AFT-conv: each head is AFT-local of its channels, whose keys are one and whose
// biases are a table of the head's by distance; what keys and biases share is summed.

#include "ref/ref.h"

// Channels of one head, [T, B, C / H]; k has one for all.
static struct host *head_of(const struct host *x, int64_t head, int64_t heads, int64_t channels)
{
    const int64_t own = x->dim[2] / heads;
    struct host *to = host_new(ATTNCL_F32, DIMS(x->dim[0], x->dim[1], channels));

    for (int64_t i = 0; i < to->count; ++i)
        to->data[i] = x->data[i / channels * x->dim[2] + head * own + i % channels % own];
    return to;
}

static void add_head(const struct host *x, int64_t head, int64_t heads, struct host *to)
{
    const int64_t channels = x->dim[2], own = to->dim[2] / heads;

    for (int64_t i = 0; i < x->count; ++i)
        to->data[i / channels * to->dim[2] + head * own + i % channels % own] += x->data[i];
}

// x.k [T, B, H], x.pos_bias: w [H, s]
void ref_aft_conv_bwd(const struct ref_aft_data *x, bool sizes, struct host *log_ret,
                      struct host *dq, struct host *dk, struct host *dv, struct host *dw)
{
    const int64_t steps = x->q->dim[0], heads = x->k->dim[2], size = x->pos_bias->dim[1];
    const int64_t channels = x->q->dim[2] / heads;
    struct host *outs[] = {log_ret, dq, dk, dv, dw};

    for (int n = 0; n < 5; ++n)
        for (int64_t i = 0; i < outs[n]->count; ++i)
            outs[n]->data[i] = 0;
    for (int64_t head = 0; head < heads; ++head) {
        struct host *table = host_new(ATTNCL_F32, DIMS(steps, steps));
        struct ref_aft_data own = *x;
        for (int64_t i = 0; i < table->count; ++i) {
            const int64_t place = i % steps - i / steps + size / 2;
            if (place >= 0 && place < size)
                table->data[i] = x->pos_bias->data[head * size + place];
        }
        own.q = head_of(x->q, head, heads, channels);
        own.k = head_of(x->k, head, heads, channels);
        own.v = head_of(x->v, head, heads, channels);
        own.g = head_of(x->g, head, heads, channels);
        own.pos_bias = table;
        own.window = (int)(size + 1) / 2;
        struct host *of[4], *own_dw = host_like(table);
        for (int n = 0; n < 4; ++n)
            of[n] = host_like(own.q);
        ref_aft_local_bwd(&own, sizes, of[0], of[1], of[2], of[3], own_dw);
        for (int n = 0; n < 4; ++n)
            add_head(of[n], head, heads, outs[n]);
        for (int64_t i = 0; i < table->count; ++i) {
            const int64_t place = i % steps - i / steps + size / 2;
            if (place >= 0 && place < size)
                dw->data[head * size + place] += own_dw->data[i];
        }
    }
}
