// SPDX-License-Identifier: MIT
//
// Draws a token from each row of scores, and stores it for the next decode step (cl/norm/sample.cl).
//
//   sample         y[b] = a random token among the k best of x[b], with weights
//                  2^-((max - x[b, c]) factor); -1 if a score is not finite.  Of equal scores the
//                  first is better.  sampling: I32 [4] = k (1: the best; 0: all), the bits of the float
//                  factor = log2(e) / temperature, the seed's low and high word.  The random number
//                  is a function of seed, position and b
//   sample_store   step = [position + 1, tokens] and drawn[position mod R] = tokens.  A window, I32
//                  [W, B], moves up by one row and gets the tokens as its last.  Step and window get
//                  0 in place of a token -1

#include "op/row_launch.h"

enum { MAX_WIDTH = 1 << 24 }; // the sum of so many weights of 2^38 fits in 64 bits

static attncl_status fwd_infer(struct op_sig *sig)
{
    return attncl__check_axes(sig, "C", 1, MAX_WIDTH);
}

// Per work-item: 36 passes over its part of each row, and tree reductions over the work-group.
static int64_t count_iterations(const struct row_launch *p, int64_t width)
{
    enum { PASSES = 36, TREE = 24 };
    return p->rows_per_group * PASSES * (ceil_div(width, (int64_t)p->grid.local[0]) + TREE);
}

// On a device with an iteration cap, work-groups share rows that are too long for one work-item.
static struct row_launch choose_launch(const struct device_caps *caps, const struct rows *rows)
{
    const char *file = "norm/sample.cl", *kernel = "sample_rows_fwd";
    struct row_launch p = attncl__row_launch(caps, file, kernel, rows->count, rows->width);

    if (!attncl__loops_fit(caps, count_iterations(&p, rows->width))) {
        const size_t local = attncl__group_for_row(caps, rows->width);
        p = (struct row_launch){kspec_begin(file, kernel), grid_1d(rows->count, local), 1, 1};
        kspec_set_vw_ls(&p.spec, p.vw, local);
    }
    return p;
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *x = &call->sig.in[0];
    const struct rows rows = attncl__rows(x);
    const struct row_launch p = choose_launch(l->caps, &rows);

    TRY(attncl__check_loops(l->caps, p.spec.kernel, count_iterations(&p, rows.width)));
    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_mem(call->out[0]), arg_i64(x->start), arg_i64(rows.stride),
                               arg_i32(rows.width), arg_i64(rows.count),
                               arg_i32(p.rows_per_group)));
}

const struct op_class attncl__op_sample_fwd = {
    .name = OP_CLASS(sample_fwd),
    .in = OP_IN({"x", F32 | STRIDED, "B C"}, {"sampling", I32, "4"}, {"position", I32, "1"}),
    .out = OP_OUT({"y", I32, "B"}),
    .infer = fwd_infer,
    .launch = fwd_launch,
};

static int64_t window_rows(const struct tensor_desc *window)
{
    return attncl__desc_present(window) ? window->dim[0] : 0;
}

static attncl_status store_infer(struct op_sig *sig)
{
    const int64_t *of = sig->axes->of;

    REQUIRE(of['N'] == 1 + of['B'], ATTNCL_ERR_SHAPE,
            "step is %s, tokens is %s: must be a position and the tokens", SHAPE(&sig->in[1]),
            SHAPE(&sig->in[0]));
    return attncl__check_axes(sig, "RW", 1, INT32_MAX);
}

static attncl_status store_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t n = call->sig.in[0].dim[0], n_window = window_rows(&call->sig.in[3]);
    const struct group_launch p =
        attncl__group_launch(l->caps, "norm/sample.cl", "sample_store_fwd", n);

    TRY(attncl__check_loops(l->caps, p.spec.kernel,
                            ceil_div((1 + n_window) * n, (int64_t)p.local)));
    return attncl__launch(l, &p.spec, grid_1d(1, p.local),
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_mem(call->in[3]), arg_i32(n), arg_i32(call->sig.in[2].dim[0]),
                               arg_i32(n_window)));
}

const struct op_class attncl__op_sample_store_fwd = {
    .name = OP_CLASS(sample_store_fwd),
    .in = OP_IN({"tokens", I32, "B"}, {"step", I32 | STATE, "N"}, {"drawn", I32 | STATE, "R B"},
                {"window", I32 | STATE | OPTIONAL, "W B"}),
    .int_axes = "B",
    .infer = store_infer,
    .launch = store_launch,
    .moved = {[1] = "N", [2] = "B"}, // only written
};
