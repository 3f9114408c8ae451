// SPDX-License-Identifier: MIT
//
// A contiguous copy of any view.
//
//   y[i0, i1, ...] = x[start + i0 s0 + i1 s1 + ...]
//
// Axes that lie one inside the other are merged first, so that most views become a few long rows
// (cl/op/copy.cl).

#include "op/op.h"

// The view's last axis apart from the others, outermost first; unused outer axes have extent 1.
struct walk {
    int n_outer;
    int64_t dim[ATTNCL_MAX_RANK], stride[ATTNCL_MAX_RANK];
    int64_t width, step; // of the last axis
    int64_t rows;
};

static struct walk merge_axes(const struct tensor_desc *x)
{
    struct walk w = {.width = 1, .step = 1, .rows = 1};
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
        w.step = stride[0];
    }
    for (int i = n - 1; i >= 1; --i) {
        w.dim[w.n_outer] = dim[i];
        w.stride[w.n_outer++] = stride[i];
        w.rows *= dim[i];
    }
    return w;
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[0];
    const size_t bytes = attncl_dtype_bytes(x->dtype);

    REQUIRE(bytes == 4 || bytes == 1, ATTNCL_ERR_DTYPE, "a copy of %s is not possible",
            attncl_dtype_name(x->dtype));
    return attncl__infer_like_first(sig);
}

// A long merged row is cut, for the sake of cores and of the kernel's int columns.
static void cut_row(struct walk *w)
{
    enum { LONGEST = 4096 };

    if (w->n_outer > 0 || w->width <= LONGEST)
        return;
    w->dim[0] = ceil_div(w->width, LONGEST);
    w->stride[0] = w->step * LONGEST;
    w->n_outer = 1;
    w->rows = w->dim[0];
    w->width = LONGEST;
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *x = &call->sig.in[0];
    const int64_t count = attncl__desc_count(x);
    struct walk w = merge_axes(x);

    cut_row(&w);
    TRY(attncl__check_width("a row to copy", w.width));
    struct row_pass p = attncl__row_pass(l->caps, "op/copy.cl", "copy_rows_fwd", w.rows, w.width);
    struct arg args[9 + 2 * (ATTNCL_MAX_RANK - 1)] = {
        arg_mem(call->in[0]), arg_mem(call->out[0]), arg_i64(x->start), arg_i32(w.width),
        arg_i64(w.step),      arg_i64(w.rows),       arg_i64(count),    arg_i32(p.rows_per_group),
    };
    size_t n_args = 8;
    for (int i = 0; i < ATTNCL_MAX_RANK - 1; ++i) {
        const int axis = i - (ATTNCL_MAX_RANK - 1 - w.n_outer);
        args[n_args++] = arg_i64(axis >= 0 ? w.dim[axis] : 1);
        args[n_args++] = arg_i64(axis >= 0 ? w.stride[axis] : 0);
    }
    kspec_word(&p.spec, "ELEMENT", attncl_dtype_bytes(x->dtype) == 4 ? "uint" : "uchar");
    return attncl__launch(l, &p.spec, p.grid, args, n_args);
}

const struct op_class attncl__op_copy_fwd = {
    .name = "copy_fwd",
    .params_bytes = sizeof(struct copy_fwd_params),
    .n_in = 1,
    .n_out = 1,
    .any_view = 1u << 0,
    .infer = fwd_infer,
    .launch = fwd_launch,
};
