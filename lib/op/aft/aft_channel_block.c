// SPDX-License-Identifier: MIT
//
// What both variants need to launch a channel block: arguments, and the scan of block sums.

#include "op/aft/aft.h"

#include "op/row_launch.h"

struct kspec attncl__aft_spec(const struct aft_tiling *p, const char *file, const char *kernel)
{
    struct kspec spec = kspec_begin(file, kernel);
    kspec_set_vw_ls(&spec, p->vw, p->local);
    kspec_int(&spec, "PER_HEAD", p->per_head);
    return spec;
}

void attncl__aft_put(struct aft_args *to, const struct arg *args, size_t n)
{
    assert(to->n + n <= AFT_MAX_ARGS);
    memcpy(to->arg + to->n, args, n * sizeof *args);
    to->n += n;
}

void attncl__aft_put_sources(struct aft_args *to, const struct aft_channel_block *s)
{
    for (int i = 0; i < (s->backward ? 4 : 2); ++i)
        attncl__aft_put(to, ARGS(AFT_MATRIX(s->source[i])));
}

void attncl__aft_put_targets(struct aft_args *to, const struct aft_channel_block *s)
{
    for (int i = 0; i < (s->backward ? 2 : 1); ++i)
        attncl__aft_put(to, ARGS(AFT_MATRIX(s->target[i])));
    attncl__aft_put(to, ARGS(arg_mem(s->to.span)));
    if (s->backward)
        attncl__aft_put(to, ARGS(arg_i64(s->to_at), arg_mem(s->to_too)));
    else
        attncl__aft_put(to, ARGS(arg_mem(s->to_too), arg_i32(s->keep)));
    attncl__aft_put(to, ARGS(arg_i64(s->to.start), arg_i64(s->to.stride)));
}

struct aft_matrix attncl__aft_matrix(const struct aft_tiling *p, const struct tensor_desc *x,
                                     struct span span, int64_t b, int64_t first)
{
    const int64_t row = attncl__rows(x).stride;

    return (struct aft_matrix){span, x->start + b * row + first, p->folded ? p->channels : row};
}

struct aft_sums_layout attncl__aft_sums_layout(const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;

    return p->cpu ? (struct aft_sums_layout){p->lane_floats, p->vw, p->before_at, p->after_at}
                  : (struct aft_sums_layout){1, s->lanes, 0, p->blocks * 3 * s->lanes};
}

attncl_status attncl__aft_scan(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    const struct aft_sums_layout at = attncl__aft_sums_layout(s);
    struct kspec spec = attncl__aft_spec(p, "aft/aft_scan.cl", "aft_scan");

    kspec_int(&spec, "LOOKAHEAD_BLOCKS", p->cpu ? 1 : AFT_SCAN_LOOKAHEAD);
    return attncl__launch(l, &spec, grid_1d(ceil_div(s->lanes, (int64_t)p->local), p->local),
                          ARGS(arg_mem(s->scratch), arg_i64(at.lane_stride), arg_i64(at.before),
                               arg_i64(at.after), arg_i32(at.step), arg_i32(p->blocks),
                               arg_i32(s->lanes),
                               arg_i32(p->simple ? s->causal < 0 : s->causal <= 0)));
}
