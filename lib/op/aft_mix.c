// SPDX-License-Identifier: MIT
//
// What AFT-local and AFT-conv share: checks, scratch, launches, cost.
//
// CPU form: sources, scan, mix (cl/op/aft_local*.cl); GPU form: blocks, scan, rows
// (cl/op/aft_local_rows.cl).  Channels are cut into slices that run one after another in the same
// scratch.

#include "op/aft_plan.h"

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
    REQUIRE(w->dim[1] <= AFT_LENGTH_MOST, ATTNCL_ERR_SHAPE, "w has s = %" PRId64 ", at most %d",
            w->dim[1], AFT_LENGTH_MOST);
    return ATTNCL_OK;
}

struct aft_form attncl__aft_filter_form(const struct tensor_desc *w, int64_t heads)
{
    const int64_t size = w->dim[1];
    return (struct aft_form){
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
    REQUIRE(q->dim[0] <= AFT_LENGTH_MOST, ATTNCL_ERR_SHAPE, "T = %" PRId64 ", at most %d",
            q->dim[0], AFT_LENGTH_MOST);
    REQUIRE(q->dim[1] <= AFT_LENGTH_MOST && q->dim[2] <= AFT_LENGTH_MOST &&
                q->dim[1] * q->dim[2] <= AFT_LENGTH_MOST,
            ATTNCL_ERR_SHAPE, "B C = %" PRId64 " * %" PRId64 ", at most %d", q->dim[1], q->dim[2],
            AFT_LENGTH_MOST);
    return check_mask(sig, causal);
}

attncl_status attncl__aft_scratch(const struct op_sig *sig, const struct aft_form *form,
                                  size_t *bytes_ret)
{
    *bytes_ret = 0;
    if (attncl__desc_count(&sig->in[AFT_IN_Q]) == 0)
        return ATTNCL_OK;
    const struct aft_plan p = attncl__aft_plan(sig, form);
    const int64_t gpu_floats = p.masked ? 0 : p.blocks * 2 * 3;

    *bytes_ret = (size_t)(p.slice * (p.cpu ? p.lane_floats : gpu_floats)) * sizeof(float);
    return ATTNCL_OK;
}

// q, k, v or y of a series.
struct matrix {
    struct span span;
    int64_t start, stride;
};

// One slice of one series.
struct slice {
    const struct aft_plan *p;
    struct matrix q, k, v, y;
    struct span scratch, bias, mask;
    int64_t bias_start, bias_row;
    int64_t mask_start, mask_row, mask_column;
    int64_t lane0, lanes;
    int causal, path;
};

static struct kspec spec_of(const struct aft_plan *p, const char *file, const char *kernel)
{
    struct kspec spec = kspec_begin(file, kernel);
    kspec_form(&spec, p->vw, p->local);
    kspec_int(&spec, "PER_HEAD", p->per_head);
    return spec;
}

static attncl_status launch_scan(struct launcher *l, const struct slice *s)
{
    const struct aft_plan *p = s->p;
    const struct kspec spec = spec_of(p, "op/aft_local_scan.cl", "aft_local_scan_fwd");
    const int64_t lane_stride = p->cpu ? p->lane_floats : 1,
                  step = p->cpu ? (int64_t)p->vw : s->lanes;
    const int64_t after = p->cpu ? p->after_at : p->blocks * 3 * s->lanes;

    return attncl__launch(l, &spec, grid_1d(ceil_div(s->lanes, (int64_t)p->local), p->local),
                          ARGS(arg_mem(s->scratch), arg_i64(lane_stride), arg_i64(p->before_at),
                               arg_i64(after), arg_i32(step), arg_i32(p->blocks), arg_i32(s->lanes),
                               arg_i32(!s->causal)));
}

#define MATRIX(m) arg_mem((m).span), arg_i64((m).start), arg_i64((m).stride)
#define RANGE(s)                                                                                   \
    arg_i32((s)->p->steps), arg_i32((s)->p->batch), arg_i32((s)->p->channels),                     \
        arg_i32((s)->lane0), arg_i32((s)->lanes)
#define BIAS(s)                                                                                    \
    arg_mem((s)->bias), arg_i64((s)->bias_start), arg_i32((s)->bias_row), arg_mem((s)->mask),      \
        arg_i64((s)->mask_start), arg_i64((s)->mask_row), arg_i32((s)->mask_column)

static attncl_status launch_cpu(struct launcher *l, const struct slice *s)
{
    const struct aft_plan *p = s->p;
    struct kspec sources = spec_of(p, "op/aft_local_sources.cl", "aft_local_sources_fwd");
    struct kspec mix = spec_of(p, "op/aft_local.cl", "aft_local_mix_fwd");
    kspec_int(&sources, "ROWS", AFT_ROWS);
    kspec_int(&sources, "PANEL", AFT_PANEL);
    kspec_int(&sources, "GROUP", AFT_SOURCE_GROUP);
    kspec_int(&mix, "ROWS", AFT_ROWS);
    kspec_int(&mix, "PANEL", AFT_PANEL);
    kspec_int(&mix, "MASKED", p->masked);
    kspec_int(&mix, "PATH", s->path);

    TRY(attncl__launch(l, &sources, grid_2d(p->panels, ceil_div(s->lanes, AFT_SOURCE_GROUP), 1, 1),
                       ARGS(MATRIX(s->k), MATRIX(s->v), arg_mem(s->scratch),
                            arg_i64(p->lane_floats), arg_i64(p->ranges_at), arg_i64(p->before_at),
                            RANGE(s))));
    if (!p->masked)
        TRY(launch_scan(l, s));
    return attncl__launch(l, &mix, grid_2d(p->blocks, ceil_div(s->lanes, p->group), 1, 1),
                          ARGS(MATRIX(s->q), MATRIX(s->k), MATRIX(s->v), MATRIX(s->y),
                               arg_mem(s->scratch), arg_i64(p->lane_floats), arg_i64(p->ranges_at),
                               arg_i64(p->before_at), arg_i64(p->after_at), BIAS(s), RANGE(s),
                               arg_i32(p->window), arg_i32(s->causal), arg_i32(p->group),
                               arg_i32(p->segment), arg_local(p->weights_bytes),
                               arg_local(p->parked_bytes)));
}

static struct kspec rows_spec(const struct aft_plan *p)
{
    struct kspec spec = spec_of(p, "op/aft_local_rows.cl", "aft_local_rows_fwd");
    kspec_int(&spec, "BLOCK", AFT_BLOCK);
    kspec_int(&spec, "TARGETS", AFT_TARGETS);
    kspec_int(&spec, "CHUNK", AFT_CHUNK);
    kspec_int(&spec, "MASKED", p->masked);
    return spec;
}

// Smaller groups until one fits the kernel's registers.
static void fit_group(struct launcher *l, struct aft_plan *p)
{
    struct kspec spec = rows_spec(p);

    while (p->local > AFT_CHUNK && !attncl__launch_fits(l, &spec, p->local)) {
        p->local /= 2;
        spec = rows_spec(p);
    }
}

static attncl_status launch_gpu(struct launcher *l, const struct slice *s)
{
    const struct aft_plan *p = s->p;
    const int64_t groups = ceil_div(s->lanes, (int64_t)p->local);
    const struct kspec rows = rows_spec(p);
    struct kspec blocks = spec_of(p, "op/aft_local_blocks.cl", "aft_local_blocks_fwd");
    kspec_int(&blocks, "BLOCK", AFT_BLOCK);

    if (!p->masked) {
        TRY(attncl__launch(l, &blocks, grid_2d(groups, p->blocks, p->local, 1),
                           ARGS(MATRIX(s->k), MATRIX(s->v), arg_mem(s->scratch), RANGE(s))));
        TRY(launch_scan(l, s));
    }
    return attncl__launch(l, &rows, grid_2d(groups, ceil_div(p->steps, AFT_TARGETS), p->local, 1),
                          ARGS(MATRIX(s->q), MATRIX(s->k), MATRIX(s->v), MATRIX(s->y),
                               arg_mem(s->scratch), BIAS(s), RANGE(s), arg_i32(p->window),
                               arg_i32(s->causal)));
}

// One series: entry `b` of an input, or with batch entries folded all of it, from `first` in each
// row.
static struct matrix matrix_of(const struct op_call *call, const struct aft_plan *p, int input,
                               int64_t b, int64_t first)
{
    const struct tensor_desc *x = &call->sig.in[input];
    struct rows rows;
    const bool ok = attncl__desc_rows(x, &rows);
    assert(ok);
    (void)ok;
    const int64_t stride = p->folded ? p->channels : rows.stride;
    return (struct matrix){call->in[input], x->start + b * rows.stride + first, stride};
}

static attncl_status launch_series(struct launcher *l, const struct op_call *call,
                                   const struct aft_form *form, const struct aft_plan *p,
                                   int64_t head, int64_t b)
{
    const struct tensor_desc *mask = &call->sig.in[AFT_IN_MASK];
    const int64_t first = head * p->channels, width = p->heads * p->channels;
    struct slice s = {
        .p = p,
        .q = matrix_of(call, p, AFT_IN_Q, b, first),
        .k = matrix_of(call, p, AFT_IN_K, b, p->per_head ? head : first),
        .v = matrix_of(call, p, AFT_IN_V, b, first),
        .y = {call->out[0], b * width + first, width},
        .scratch = call->scratch,
        .bias = call->in[AFT_IN_BIAS],
        .mask = call->in[AFT_IN_MASK],
        .bias_start = form->bias_start + head * form->bias_head,
        .bias_row = form->bias_row,
        .causal = form->causal,
        .path = form->path,
    };
    if (p->masked) {
        s.mask_start = b;
        s.mask_column = mask->dim[2];
        s.mask_row = mask->dim[0] == 1 ? 0 : mask->dim[1] * mask->dim[2];
    }
    for (; s.lane0 < p->lanes; s.lane0 += p->slice) {
        s.lanes = p->lanes - s.lane0 < p->slice ? p->lanes - s.lane0 : p->slice;
        TRY(p->cpu ? launch_cpu(l, &s) : launch_gpu(l, &s));
    }
    return ATTNCL_OK;
}

attncl_status attncl__aft_launch(struct launcher *l, const struct op_call *call,
                                 const struct aft_form *form)
{
    struct aft_plan p = attncl__aft_plan(&call->sig, form);

    TRY(attncl__check_loops(l->caps, "attention-free mixing", p.iterations));
    if (!p.cpu)
        fit_group(l, &p);
    for (int64_t head = 0; head < p.heads; ++head)
        for (int64_t b = 0; b < p.entries; ++b)
            TRY(launch_series(l, call, form, &p, head, b));
    return ATTNCL_OK;
}

void attncl__aft_cost(const struct op_sig *sig, const struct aft_form *form, double *flop_ret,
                      double *bytes_ret)
{
    const double count = (double)attncl__desc_count(&sig->out[0]),
                 keys = (double)attncl__desc_count(&sig->in[AFT_IN_K]),
                 steps = (double)sig->out[0].dim[0];
    const bool biased = attncl__desc_present(&sig->in[AFT_IN_BIAS]),
               masked = attncl__desc_present(&sig->in[AFT_IN_MASK]);
    const double window = biased ? (double)form->window : 0, sides = form->causal ? 1 : 2;
    const double all = form->causal ? steps / 2 : steps;
    const double reach = masked || sides * window > all ? all : sides * window;
    const double table =
        form->heads > 0 ? (double)attncl__desc_count(&sig->in[AFT_IN_BIAS]) : steps * reach;

    *flop_ret = count * (4 * reach + 40);
    *bytes_ret = 12 * count + 4 * keys + 4 * (biased ? table : 0) +
                 (masked ? (double)attncl__desc_count(&sig->in[AFT_IN_MASK]) : 0);
}
