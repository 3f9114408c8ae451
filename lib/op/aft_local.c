// SPDX-License-Identifier: MIT
//
// Attention-free mixing with a local position bias.
//
//   y_i = sigmoid(q_i) sum_j p_ij v_j,   p_ij = softmax over visible j of (w_ij + k_j), per batch
//   entry and channel
//
// w is the table where |i - j| < window, else 0.  Rows whose bias is 0 enter as sums of whole
// blocks, so that the cost is O(T window) per channel; a mask makes it O(T^2).
//
// CPU form: sources, scan, mix (cl/op/aft_local*.cl); GPU form: blocks, scan, rows
// (cl/op/aft_local_rows.cl).  Channels are cut into slices that run one after another in the same
// scratch.
//
// The parameter path is the CPU kernel's PATH: 0 but in tests.

#include "op/aft_plan.h"

enum { LENGTH_MOST = 1 << 30 }; // of T, and of B C: kernels count them with ints and double them

static attncl_status check_mask(const struct op_sig *sig)
{
    const struct tensor_desc *q = &sig->in[AFT_IN_Q], *m = &sig->in[AFT_IN_MASK];
    const struct aft_local_fwd_params *p = sig->params;

    if (!attncl__desc_present(m))
        return ATTNCL_OK;
    REQUIRE(!p->causal, ATTNCL_ERR_ARGUMENT, "causal = 1 and a mask %s: one of them", SHAPE(m));
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

static attncl_status check_bias(const struct op_sig *sig)
{
    const struct tensor_desc *w = &sig->in[AFT_IN_BIAS];

    if (!attncl__desc_present(w))
        return ATTNCL_OK;
    REQUIRE(w->dtype == ATTNCL_F32, ATTNCL_ERR_DTYPE, "pos_bias is %s, expected F32",
            attncl_dtype_name(w->dtype));
    REQUIRE(w->rank == 2 && w->dim[0] == w->dim[1], ATTNCL_ERR_SHAPE,
            "pos_bias is %s, expected [n, n]", SHAPE(w));
    REQUIRE(sig->in[AFT_IN_Q].dim[0] <= w->dim[0], ATTNCL_ERR_SHAPE,
            "T = %" PRId64 " exceeds the n = %" PRId64 " of pos_bias", sig->in[AFT_IN_Q].dim[0],
            w->dim[0]);
    REQUIRE(w->dim[0] <= LENGTH_MOST, ATTNCL_ERR_SHAPE, "pos_bias has n = %" PRId64 ", at most %d",
            w->dim[0], LENGTH_MOST);
    return ATTNCL_OK;
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    static const char *const names[] = {"q", "k", "v"};
    const struct tensor_desc *q = &sig->in[AFT_IN_Q];
    const struct aft_local_fwd_params *p = sig->params;

    REQUIRE(p->window >= 0, ATTNCL_ERR_ARGUMENT, "window is %d, at least 0", p->window);
    REQUIRE(p->path >= 0 && p->path <= 2, ATTNCL_ERR_ARGUMENT, "path is %d, expected 0, 1 or 2",
            p->path);
    REQUIRE(q->rank == 3, ATTNCL_ERR_SHAPE, "q has %d axes, expected 3: [T, B, C]", q->rank);
    for (int i = AFT_IN_Q; i <= AFT_IN_V; ++i) {
        const struct tensor_desc *x = &sig->in[i];
        REQUIRE(x->dtype == ATTNCL_F32, ATTNCL_ERR_DTYPE, "%s is %s, expected F32", names[i],
                attncl_dtype_name(x->dtype));
        REQUIRE(attncl__desc_same_shape(x, q), ATTNCL_ERR_SHAPE, "%s is %s, q is %s", names[i],
                SHAPE(x), SHAPE(q));
    }
    REQUIRE(q->dim[0] <= LENGTH_MOST, ATTNCL_ERR_SHAPE, "T = %" PRId64 ", at most %d", q->dim[0],
            LENGTH_MOST);
    REQUIRE(q->dim[1] <= LENGTH_MOST && q->dim[2] <= LENGTH_MOST &&
                q->dim[1] * q->dim[2] <= LENGTH_MOST,
            ATTNCL_ERR_SHAPE, "B C = %" PRId64 " * %" PRId64 ", at most %d", q->dim[1], q->dim[2],
            LENGTH_MOST);
    TRY(check_bias(sig));
    TRY(check_mask(sig));
    return attncl__infer_like_first(sig);
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = 0;
    if (attncl__desc_count(&sig->in[AFT_IN_Q]) == 0)
        return ATTNCL_OK;
    const struct aft_plan p = attncl__aft_plan(sig);
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
    int64_t n; // of pos_bias
    int64_t mask_start, mask_row, mask_column;
    int64_t lane0, lanes;
    int causal, path;
};

static struct kspec spec_of(const struct aft_plan *p, const char *file, const char *kernel)
{
    struct kspec spec = kspec_begin(file, kernel);
    kspec_form(&spec, p->vw, p->local);
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
    arg_mem((s)->bias), arg_i32((s)->n), arg_mem((s)->mask), arg_i64((s)->mask_start),             \
        arg_i64((s)->mask_row), arg_i32((s)->mask_column)

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

// Entry b of an input, or with batch entries folded all of it.
static struct matrix matrix_of(const struct op_call *call, const struct aft_plan *p, int input,
                               int64_t b)
{
    const struct tensor_desc *x = &call->sig.in[input];
    struct rows rows;
    const bool ok = attncl__desc_rows(x, &rows);
    assert(ok);
    (void)ok;
    const int64_t stride = p->folded ? p->channels : rows.stride;
    return (struct matrix){call->in[input], x->start + b * rows.stride, stride};
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct op_sig *sig = &call->sig;
    const struct aft_local_fwd_params *params = sig->params;
    const struct tensor_desc *mask = &sig->in[AFT_IN_MASK];
    struct aft_plan p = attncl__aft_plan(sig);

    if (!p.cpu)
        fit_group(l, &p);
    for (int64_t b = 0; b < p.series; ++b) {
        struct slice s = {
            .p = &p,
            .q = matrix_of(call, &p, AFT_IN_Q, b),
            .k = matrix_of(call, &p, AFT_IN_K, b),
            .v = matrix_of(call, &p, AFT_IN_V, b),
            .y = {call->out[0], b * p.channels, p.channels},
            .scratch = call->scratch,
            .bias = call->in[AFT_IN_BIAS],
            .mask = call->in[AFT_IN_MASK],
            .n = sig->in[AFT_IN_BIAS].dim[0],
            .causal = params->causal != 0,
            .path = params->path,
        };
        if (p.masked) {
            s.mask_start = b;
            s.mask_column = mask->dim[2];
            s.mask_row = mask->dim[0] == 1 ? 0 : mask->dim[1] * mask->dim[2];
        }
        for (; s.lane0 < p.lanes; s.lane0 += p.slice) {
            s.lanes = p.lanes - s.lane0 < p.slice ? p.lanes - s.lane0 : p.slice;
            TRY(p.cpu ? launch_cpu(l, &s) : launch_gpu(l, &s));
        }
    }
    return ATTNCL_OK;
}

// A pair of rows in reach: weight times (1, v), added; each element: two exponentials.
static void fwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct aft_local_fwd_params *p = sig->params;
    const double count = (double)attncl__desc_count(&sig->out[0]),
                 steps = (double)sig->out[0].dim[0];
    const bool biased = attncl__desc_present(&sig->in[AFT_IN_BIAS]),
               masked = attncl__desc_present(&sig->in[AFT_IN_MASK]);
    const double window = biased ? p->window : 0, sides = p->causal ? 1 : 2;
    const double all = p->causal ? steps / 2 : steps;
    const double reach = masked || sides * window > all ? all : sides * window;

    *flop_ret = count * (4 * reach + 40);
    *bytes_ret = 16 * count + 4 * (biased ? steps * reach : 0) +
                 (masked ? (double)attncl__desc_count(&sig->in[AFT_IN_MASK]) : 0);
}

const struct op_class attncl__op_aft_local_fwd = {
    .name = "aft_local_fwd",
    .params_bytes = sizeof(struct aft_local_fwd_params),
    .n_in = 5,
    .n_out = 1,
    .optional = 1u << AFT_IN_BIAS | 1u << AFT_IN_MASK,
    .strided = 1u << AFT_IN_Q | 1u << AFT_IN_K | 1u << AFT_IN_V,
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .cost = fwd_cost,
};
