// SPDX-License-Identifier: MIT
//
// What AFT-local and AFT-conv share: checks, scratch, launches, cost.
//
// CPU variant: sources, scan, mix (cl/op/aft_local*.cl); GPU variant: aft_gpu.c.  Channels are
// split into blocks that run one after another in the same scratch.

#include "op/aft/aft_channel_block.h"

attncl_status attncl__aft_check_filter(const struct tensor_desc *w, int64_t channels, int64_t heads)
{
    REQUIRE(heads >= 1 && channels % heads == 0, ATTNCL_ERR_SHAPE,
            "H = %" PRId64 " does not divide C = %" PRId64, heads, channels);
    REQUIRE(w->dtype == ATTNCL_F32, ATTNCL_ERR_DTYPE, "w is %s, expected F32",
            attncl_dtype_name(w->dtype));
    REQUIRE(w->rank == 2 && w->dim[0] == heads, ATTNCL_ERR_SHAPE,
            "w is %s, expected [H = %" PRId64 ", s]", SHAPE(w), heads);
    REQUIRE(w->dim[1] % 2 == 1, ATTNCL_ERR_SHAPE, "w has s = %" PRId64 ", expected an odd number",
            w->dim[1]);
    REQUIRE(w->dim[1] <= AFT_MAX_LENGTH, ATTNCL_ERR_SHAPE, "w has s = %" PRId64 ", at most %d",
            w->dim[1], AFT_MAX_LENGTH);
    return ATTNCL_OK;
}

struct aft_variant attncl__aft_filter_variant(const struct tensor_desc *w, int64_t heads)
{
    const int64_t size = w->dim[1];
    return (struct aft_variant){
        .heads = heads,
        .window = (size + 1) / 2,
        .bias_start = size / 2,
        .bias_row = -1,
        .bias_head = size,
    };
}

static attncl_status check_mask(const struct op_sig *sig, bool causal)
{
    const struct tensor_desc *q = &sig->in[AFT_IN_Q], *m = &sig->in[AFT_IN_MASK];

    if (!attncl__desc_present(m))
        return ATTNCL_OK;
    REQUIRE(!causal, ATTNCL_ERR_ARGUMENT, "causal = 1 and a mask %s: one of them", SHAPE(m));
    REQUIRE(m->dtype == ATTNCL_U8, ATTNCL_ERR_DTYPE, "the mask is %s, expected U8",
            attncl_dtype_name(m->dtype));
    REQUIRE(m->rank == 3, ATTNCL_ERR_SHAPE, "the mask has %d axes, expected 3: [T or 1, T, B or 1]",
            m->rank);
    REQUIRE(m->dim[0] == 1 || m->dim[0] == q->dim[0], ATTNCL_ERR_SHAPE,
            "axis 0 of the mask is %" PRId64 ", expected 1 or T = %" PRId64, m->dim[0], q->dim[0]);
    REQUIRE(m->dim[1] == q->dim[0], ATTNCL_ERR_SHAPE,
            "axis 1 of the mask is %" PRId64 ", expected T = %" PRId64, m->dim[1], q->dim[0]);
    REQUIRE(m->dim[2] == 1 || m->dim[2] == q->dim[1], ATTNCL_ERR_SHAPE,
            "axis 2 of the mask is %" PRId64 ", expected 1 or B = %" PRId64, m->dim[2], q->dim[1]);
    return ATTNCL_OK;
}

attncl_status attncl__aft_check(const struct op_sig *sig, bool causal)
{
    static const char *const names[] = {"q", "k", "v"};
    const struct tensor_desc *q = &sig->in[AFT_IN_Q], *v = &sig->in[AFT_IN_V];

    REQUIRE(q->rank == 3, ATTNCL_ERR_SHAPE, "q has %d axes, expected 3: [T, B, C]", q->rank);
    for (int i = AFT_IN_Q; i <= AFT_IN_V; ++i)
        REQUIRE(sig->in[i].dtype == ATTNCL_F32, ATTNCL_ERR_DTYPE, "%s is %s, expected F32",
                names[i], attncl_dtype_name(sig->in[i].dtype));
    REQUIRE(attncl__desc_same_shape(v, q), ATTNCL_ERR_SHAPE, "v is %s, q is %s", SHAPE(v),
            SHAPE(q));
    REQUIRE(q->dim[0] <= AFT_MAX_LENGTH, ATTNCL_ERR_SHAPE, "T = %" PRId64 ", at most %d", q->dim[0],
            AFT_MAX_LENGTH);
    REQUIRE(q->dim[1] <= AFT_MAX_LENGTH && q->dim[2] <= AFT_MAX_LENGTH &&
                q->dim[1] * q->dim[2] <= AFT_MAX_LENGTH,
            ATTNCL_ERR_SHAPE, "B C = %" PRId64 " * %" PRId64 ", at most %d", q->dim[1], q->dim[2],
            AFT_MAX_LENGTH);
    return check_mask(sig, causal);
}

attncl_status attncl__aft_infer(struct op_sig *sig)
{
    TRY(attncl__infer_like_first(sig));
    if (sig->save_for_backward)
        sig->out[AFT_OUT_LOG] = sig->out[AFT_OUT_Y];
    return ATTNCL_OK;
}

attncl_status attncl__aft_scratch(const struct op_sig *sig, const struct aft_variant *variant,
                                  size_t *bytes_ret)
{
    *bytes_ret = 0;
    if (attncl__desc_count(&sig->in[AFT_IN_Q]) == 0)
        return ATTNCL_OK;
    *bytes_ret = (size_t)attncl__aft_tiling(sig, variant).block_floats * sizeof(float);
    return ATTNCL_OK;
}

struct kspec attncl__aft_spec(const struct aft_tiling *p, const char *file, const char *kernel)
{
    struct kspec spec = kspec_begin(file, kernel);
    kspec_set_vw_ls(&spec, p->vw, p->local);
    kspec_int(&spec, "PER_HEAD", p->per_head);
    return spec;
}

attncl_status attncl__aft_scan(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    struct kspec spec = attncl__aft_spec(p, "aft/aft_local_scan.cl", "aft_local_scan");
    const int64_t lane_stride = p->cpu ? p->lane_floats : 1,
                  step = p->cpu ? (int64_t)p->vw : s->lanes;
    const int64_t after = p->cpu ? p->after_at : p->blocks * 3 * s->lanes;

    kspec_int(&spec, "LOOKAHEAD_BLOCKS", p->cpu ? 1 : AFT_SCAN_LOOKAHEAD);
    return attncl__launch(l, &spec, grid_1d(ceil_div(s->lanes, (int64_t)p->local), p->local),
                          ARGS(arg_mem(s->scratch), arg_i64(lane_stride), arg_i64(p->before_at),
                               arg_i64(after), arg_i32(step), arg_i32(p->blocks), arg_i32(s->lanes),
                               arg_i32(s->causal <= 0)));
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

attncl_status attncl__aft_sources(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    struct kspec spec = attncl__aft_spec(p, "aft/aft_local_sources.cl", "aft_local_sources");
    struct aft_args args = {.n = 0};

    kspec_int(&spec, "ROWS", AFT_ROWS);
    kspec_int(&spec, "PANEL", AFT_PANEL);
    kspec_int(&spec, "GROUP", AFT_SOURCE_GROUP);
    kspec_int(&spec, "BACKWARD", s->backward);
    attncl__aft_put_sources(&args, s);
    attncl__aft_put(&args, ARGS(arg_mem(s->scratch), arg_i64(p->lane_floats), arg_i64(p->ranges_at),
                                arg_i64(p->before_at), AFT_RANGE(s)));
    return attncl__launch(l, &spec, grid_2d(p->panels, ceil_div(s->lanes, AFT_SOURCE_GROUP), 1, 1),
                          args.arg, args.n);
}

static attncl_status launch_cpu(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    struct kspec spec = attncl__aft_spec(p, "aft/aft_local.cl", "aft_local_mix");
    struct aft_args args = {.n = 0};

    TRY(attncl__aft_sources(l, s));
    if (!p->masked)
        TRY(attncl__aft_scan(l, s));
    kspec_int(&spec, "ROWS", AFT_ROWS);
    kspec_int(&spec, "PANEL", AFT_PANEL);
    kspec_int(&spec, "BACKWARD", s->backward);
    kspec_int(&spec, "MASKED", p->masked);
    kspec_int(&spec, "PATH", s->path);
    attncl__aft_put_targets(&args, s);
    attncl__aft_put_sources(&args, s);
    attncl__aft_put(&args, ARGS(arg_mem(s->scratch), arg_i64(p->lane_floats), arg_i64(p->ranges_at),
                                arg_i64(p->before_at), arg_i64(p->after_at), AFT_BIAS(s),
                                AFT_RANGE(s), arg_i32(p->window), arg_i32(s->causal),
                                arg_i32(p->group), arg_i32(p->segment), arg_local(p->weights_bytes),
                                arg_local(p->spill_bytes)));
    return attncl__launch(l, &spec, grid_2d(p->blocks, ceil_div(s->lanes, p->group), 1, 1),
                          args.arg, args.n);
}

attncl_status attncl__aft_launch_channel_block(struct launcher *l,
                                               const struct aft_channel_block *s)
{
    return s->p->cpu ? launch_cpu(l, s) : attncl__aft_gpu(l, s);
}

struct aft_matrix attncl__aft_matrix(const struct aft_tiling *p, const struct tensor_desc *x,
                                     struct span span, int64_t b, int64_t first)
{
    struct rows rows;
    const bool ok = attncl__desc_rows(x, &rows);
    assert(ok);
    (void)ok;
    const int64_t stride = p->folded ? p->channels : rows.stride;
    return (struct aft_matrix){span, x->start + b * rows.stride + first, stride};
}

static attncl_status launch_series(struct launcher *l, const struct op_call *call,
                                   const struct aft_variant *variant, const struct aft_tiling *p,
                                   int64_t head, int64_t b)
{
    const struct tensor_desc *in = call->sig.in, *mask = &in[AFT_IN_MASK];
    const int64_t first = head * p->channels, width = p->heads * p->channels;
    struct aft_channel_block s = {
        .p = p,
        .target = {attncl__aft_matrix(p, &in[AFT_IN_Q], call->in[AFT_IN_Q], b, first)},
        .source = {attncl__aft_matrix(p, &in[AFT_IN_K], call->in[AFT_IN_K], b,
                                      p->per_head ? head : first),
                   attncl__aft_matrix(p, &in[AFT_IN_V], call->in[AFT_IN_V], b, first)},
        .to = {call->out[0], b * width + first, width},
        .to_too = call->out[1],
        .keep = attncl__desc_present(&call->sig.out[1]),
        .scratch = call->scratch,
        .bias = call->in[AFT_IN_BIAS],
        .mask = call->in[AFT_IN_MASK],
        .bias_start = variant->bias_start + head * variant->bias_head,
        .bias_row = variant->bias_row,
        .causal = variant->causal,
        .path = variant->path,
    };
    if (p->masked) {
        s.mask_start = b;
        s.mask_column = mask->dim[2];
        s.mask_row = mask->dim[0] == 1 ? 0 : mask->dim[1] * mask->dim[2];
    }
    for (; s.lane0 < p->lanes; s.lane0 += p->block_lanes) {
        s.lanes = p->lanes - s.lane0 < p->block_lanes ? p->lanes - s.lane0 : p->block_lanes;
        TRY(attncl__aft_launch_channel_block(l, &s));
    }
    return ATTNCL_OK;
}

attncl_status attncl__aft_launch(struct launcher *l, const struct op_call *call,
                                 const struct aft_variant *variant)
{
    struct aft_tiling p = attncl__aft_tiling(&call->sig, variant);

    TRY(attncl__check_loops(l->caps, "attention-free mixing", p.iterations));
    attncl__aft_fit(l, &p, false, variant->path);
    for (int64_t head = 0; head < p.heads; ++head)
        for (int64_t b = 0; b < p.entries; ++b)
            TRY(launch_series(l, call, variant, &p, head, b));
    return ATTNCL_OK;
}

void attncl__aft_cost(const struct op_sig *sig, const struct aft_variant *variant, double *flop_ret,
                      double *bytes_ret)
{
    const double count = (double)attncl__desc_count(&sig->out[0]),
                 keys = (double)attncl__desc_count(&sig->in[AFT_IN_K]),
                 steps = (double)sig->out[0].dim[0];
    const bool biased = attncl__desc_present(&sig->in[AFT_IN_BIAS]),
               masked = attncl__desc_present(&sig->in[AFT_IN_MASK]);
    const double window = biased ? (double)variant->window : 0, sides = variant->causal ? 1 : 2;
    const double all = variant->causal ? steps / 2 : steps;
    const double reach = masked || sides * window > all ? all : sides * window;
    const double table =
        variant->heads > 0 ? (double)attncl__desc_count(&sig->in[AFT_IN_BIAS]) : steps * reach;

    *flop_ret = count * (4 * reach + 40);
    *bytes_ret = 12 * count + 4 * keys + 4 * (biased ? table : 0) +
                 (masked ? (double)attncl__desc_count(&sig->in[AFT_IN_MASK]) : 0);
}
