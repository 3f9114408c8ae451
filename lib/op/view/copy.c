// SPDX-License-Identifier: MIT
//
// A contiguous copy of any view (cl/view/copy.cl).
//
//   copy         y[i0, i1, ...] = x[start + i0 s0 + i1 s1 + ...]
//   store_rows   state[t, ...] = x[t, ...], t = 0 .. T - 1; later rows stay.  A 16-bit state rounds x,
//                and y is the rounded x; else y is absent
//   round        y = x rounded to a 16-bit type, by way of the scratch

#include "op/row_launch.h"
#include "op/view/view.h"

static attncl_status fwd_infer(struct op_sig *sig)
{
    const attncl_dtype type = sig->in[0].dtype;
    const size_t bytes = attncl_dtype_bytes(type);

    REQUIRE(bytes == 4 || bytes == 1, ATTNCL_ERR_DTYPE, "a copy of %s is not possible",
            attncl_dtype_name(type));
    sig->out[0].dtype = type;
    return ATTNCL_OK;
}

// Iteration over a view: rows along its last axis, and the other axes, outermost first.
struct nd_iter {
    int n_outer;
    int64_t dim[ATTNCL_MAX_RANK], stride[ATTNCL_MAX_RANK];
    int64_t width, inner_stride; // of the last axis; the last row may be shorter
    int64_t rows;
};

static struct nd_iter collapse_axes(const struct tensor_desc *x)
{
    struct nd_iter w = {.width = 1, .inner_stride = 1, .rows = 1};
    int64_t dim[ATTNCL_MAX_RANK], stride[ATTNCL_MAX_RANK];
    int n = 0; // innermost first

    for (int i = x->rank - 1; i >= 0; --i) {
        if (x->dim[i] == 1)
            continue;
        if (n > 0 && x->stride[i] == stride[n - 1] * dim[n - 1]) {
            dim[n - 1] *= x->dim[i];
        } else {
            dim[n] = x->dim[i];
            stride[n++] = x->stride[i];
        }
    }
    if (n > 0) {
        w.width = dim[0];
        w.inner_stride = stride[0];
    }
    for (int i = n - 1; i >= 1; --i) {
        w.dim[w.n_outer] = dim[i];
        w.stride[w.n_outer++] = stride[i];
        w.rows *= dim[i];
    }
    return w;
}

// Collapses adjacent axes, which turns most views into a few long rows.  Splits a single long row, to
// occupy all cores and because kernels count columns with int.
static struct nd_iter choose_iteration(const struct tensor_desc *view)
{
    enum { MAX_WIDTH = 4096 };
    struct nd_iter w = collapse_axes(view);

    if (w.n_outer > 0 || w.width <= MAX_WIDTH)
        return w;
    w.dim[0] = ceil_div(w.width, MAX_WIDTH);
    w.stride[0] = w.inner_stride * MAX_WIDTH;
    w.n_outer = 1;
    w.rows = w.dim[0];
    w.width = MAX_WIDTH;
    return w;
}

// Kernel arguments of the outer axes: seven pairs (dim, stride).
enum { N_ND_ITER_ARGS = 2 * (ATTNCL_MAX_RANK - 1) };
static void set_outer_axes(const struct nd_iter *w, struct arg args[N_ND_ITER_ARGS])
{
    for (int i = 0; i < ATTNCL_MAX_RANK - 1; ++i) {
        const int axis = i - (ATTNCL_MAX_RANK - 1 - w->n_outer);
        args[2 * i] = arg_i64(axis >= 0 ? w->dim[axis] : 1);
        args[2 * i + 1] = arg_i64(axis >= 0 ? w->stride[axis] : 0);
    }
}

attncl_status attncl__copy_view(struct launcher *l, const struct view_copy *copy)
{
    const struct tensor_desc *view = copy->view;
    const struct nd_iter w = choose_iteration(view);

    TRY(attncl__check_width(copy->scatter ? "a row to scatter" : "a row to copy", w.width));
    struct row_launch p =
        attncl__row_launch(l->caps, "view/copy.cl", "copy_rows_fwd", w.rows, w.width);
    enum { N_PLAIN = 8 };
    struct arg args[N_PLAIN + N_ND_ITER_ARGS] = {
        arg_mem(copy->from),
        arg_mem(copy->to),
        arg_i64(view->start),
        arg_i32(w.width),
        arg_i64(w.inner_stride),
        arg_i64(w.rows),
        arg_i64(attncl__desc_count(view)),
        arg_i32(p.rows_per_group),
    };
    set_outer_axes(&w, args + N_PLAIN);
    const bool converts = attncl__is_16_bit(copy->from_dtype) || attncl__is_16_bit(copy->to_dtype);
    kspec_word(&p.spec, "ELEMENT",
               copy->add || converts                  ? "float"
               : attncl_dtype_bytes(view->dtype) == 1 ? "uchar"
                                                      : "uint");
    kspec_set_stored(&p.spec, "X_TYPE", copy->from_dtype);
    kspec_set_stored(&p.spec, "Y_TYPE", copy->to_dtype);
    kspec_int(&p.spec, "SCATTER", copy->scatter);
    kspec_int(&p.spec, "ADD", copy->add);
    return attncl__launch(l, &p.spec, p.grid, args, sizeof args / sizeof args[0]);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    return attncl__copy_view(
        l, &(struct view_copy){.from = call->in[0], .to = call->out[0], .view = &call->sig.in[0]});
}

static const struct grad_rule fwd_grad[] = {{.in = {REF_DY(0)}, .out = {REF_DX(0)}}};

const struct op_class attncl__op_copy_fwd = {
    .name = OP_CLASS(copy_fwd),
    .in = OP_IN({"x", ANY_TYPE | ANY_VIEW, "..."}),
    .out = OP_OUT({"y", ANY_TYPE, "..."}),
    .infer = fwd_infer,
    .launch = fwd_launch,
    .grad = GRAD_RULES(fwd_grad),
};

static attncl_status store_infer(struct op_sig *sig)
{
    if (attncl__is_16_bit(sig->in[1].dtype))
        sig->out[0].dtype = ATTNCL_F32;
    return attncl__check_at_most(sig, 'T', 'S');
}

// Copies x to `stored` and, if that has a 16-bit type, back to y.
static attncl_status store_and_read(struct launcher *l, const struct op_call *call,
                                    struct span stored, attncl_dtype dtype)
{
    const struct tensor_desc *x = &call->sig.in[0], *y = &call->sig.out[0];

    if (attncl__desc_count(x) == 0)
        return ATTNCL_OK;
    TRY(attncl__copy_view(
        l, &(struct view_copy){.from = call->in[0], .to = stored, .view = x, .to_dtype = dtype}));
    if (!attncl__is_16_bit(dtype))
        return ATTNCL_OK;
    return attncl__copy_view(
        l, &(struct view_copy){.from = stored, .to = call->out[0], .view = y, .from_dtype = dtype});
}

static attncl_status store_launch(struct launcher *l, const struct op_call *call)
{
    return store_and_read(l, call, call->in[1], call->sig.in[1].dtype);
}

const struct op_class attncl__op_store_rows_fwd = {
    .name = OP_CLASS(store_rows_fwd),
    .in = OP_IN({"x", F32 | ANY_VIEW, "T ..."}, {"state", STORED | STATE, "S ..."}),
    .out = OP_OUT({"y", F32 | OPTIONAL, "T ..."}),
    .infer = store_infer,
    .launch = store_launch,
    .moved = {[1] = "x + y"}, // 16 bits are read back
};

static attncl_status round_infer(struct op_sig *sig)
{
    const struct round_fwd_params *params = sig->params;

    REQUIRE(attncl__is_16_bit((attncl_dtype)params->dtype), ATTNCL_ERR_DTYPE,
            "rounding to %s, must be F16 or BF16", attncl_dtype_name((attncl_dtype)params->dtype));
    return ATTNCL_OK;
}

static attncl_status round_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = sizeof(uint16_t) * (size_t)attncl__desc_count(&sig->in[0]);
    return ATTNCL_OK;
}

static attncl_status round_launch(struct launcher *l, const struct op_call *call)
{
    const struct round_fwd_params *params = call->sig.params;
    return store_and_read(l, call, call->scratch, (attncl_dtype)params->dtype);
}

const struct op_class attncl__op_round_fwd = {
    .name = OP_CLASS(round_fwd),
    .in = OP_IN({"x", F32 | ANY_VIEW, "..."}),
    .out = OP_OUT({"y", F32, "..."}),
    .infer = round_infer,
    .scratch = round_scratch,
    .launch = round_launch,
    .moved = {[0] = "2x"}, // and 16-bit values written and read back
};
