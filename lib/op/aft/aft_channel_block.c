// SPDX-License-Identifier: MIT
//
// Launching a channel block, for both variants: arguments, and the scan of block sums.

#include "op/aft/aft.h"

#include "op/row_launch.h"

struct kspec attncl__aft_spec(const struct aft_tiling *p, const char *file, const char *kernel)
{
    struct kspec spec = kspec_begin(file, kernel);
    kspec_set_vw_ls(&spec, p->vw, p->local);
    kspec_int(&spec, "PER_HEAD", p->per_head);
    return spec;
}

void attncl__aft_add_source_args(struct arg_list *to, const struct aft_channel_block *s)
{
    for (int i = 0; i < (s->backward ? 4 : 2); ++i)
        arg_list_add(to, ARGS(AFT_MATRIX(s->source[i])));
}

void attncl__aft_add_target_args(struct arg_list *to, const struct aft_channel_block *s)
{
    for (int i = 0; i < (s->backward ? 2 : 1); ++i)
        arg_list_add(to, ARGS(AFT_MATRIX(s->target[i])));
    arg_list_add(to, ARGS(arg_mem(s->result.span)));
    if (s->backward)
        arg_list_add(to, ARGS(arg_i64(s->result_offset), arg_mem(s->second_result)));
    else
        arg_list_add(to, ARGS(arg_mem(s->second_result), arg_i32(s->save_log)));
    arg_list_add(to, ARGS(arg_i64(s->result.start), arg_i64(s->result.stride)));
}

struct aft_matrix attncl__aft_input(const struct op_call *call, const struct aft_tiling *p, int i,
                                    int64_t head, int64_t b)
{
    const struct tensor_desc *x = &call->sig.in[i];
    const int64_t row = attncl__rows(x).stride;
    const int64_t first = i == AFT_IN_K && p->per_head ? head : head * p->channels;

    return (struct aft_matrix){call->in[i], x->start + b * row + first,
                               p->folded ? p->channels : row};
}

struct aft_channel_block attncl__aft_forward_block(const struct op_call *call,
                                                   const struct aft_tiling *p, int64_t head,
                                                   int64_t b)
{
    const struct tensor_desc *mask = &call->sig.in[AFT_IN_MASK];
    struct aft_channel_block s = {
        .p = p,
        .source = {attncl__aft_input(call, p, AFT_IN_K, head, b),
                   attncl__aft_input(call, p, AFT_IN_V, head, b)},
        .scratch = call->scratch,
        .bias = call->in[AFT_IN_BIAS],
        .bias_start = p->variant.bias_start + head * p->variant.bias_head,
        .bias_row = p->variant.bias_row,
        .mask = call->in[AFT_IN_MASK],
        .causal = p->variant.causal,
    };

    if (p->masked) {
        s.mask_start = b;
        s.mask_column = mask->dim[2];
        s.mask_row = mask->dim[0] == 1 ? 0 : mask->dim[1] * mask->dim[2];
    }
    return s;
}

struct aft_sums_layout attncl__aft_sums_layout(const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;

    return p->cpu ? (struct aft_sums_layout){p->lane_floats, p->vw, p->before_at, p->after_at}
                  : (struct aft_sums_layout){1, s->lanes, 0, p->blocks * 3 * s->lanes};
}

attncl_status attncl__aft_launch_scan(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    const struct aft_sums_layout at = attncl__aft_sums_layout(s);
    const struct kspec spec = attncl__aft_spec(p, "aft/aft_scan.cl", "aft_scan");

    return attncl__launch(l, &spec, grid_1d(ceil_div(s->lanes, (int64_t)p->local), p->local),
                          ARGS(arg_mem(s->scratch), arg_i64(at.lane_stride), arg_i64(at.before),
                               arg_i64(at.after), arg_i32(at.step), arg_i32(p->blocks),
                               arg_i32(s->lanes),
                               arg_i32(p->simple ? s->causal < 0 : s->causal <= 0)));
}
