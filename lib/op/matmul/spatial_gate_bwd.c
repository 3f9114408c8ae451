// SPDX-License-Identifier: MIT
//
// The gradients of the spatial gate  y = z1 s,  s[i, b, c] = sum_j W'[i, j] u[j, b, c] + bias[i].
//
//   gate     dz1 = dy s              ds = dy z1
//   weight   dW[i, j] = sum_{b,c} ds[i, b, c] u[j, b, c]   where W' is visible, else 0
//   bias     dbias[i] = sum_{b,c} ds[i, b, c]
//   input    du[j, b, c] = sum_i W'[i, j] ds[i, b, c]
//
// A [T, B, C] value is one [T, B C] matrix here, so that each sum is one GEMM.  s is saved by the
// forward op, as [B, T, C] (spatial_gate.c).  Kernels: cl/matmul/spatial_gate_bwd.cl.

#include "op/matmul/matmul.h"
#include "op/row_launch.h"

static const char *const file = "matmul/spatial_gate_bwd.cl";

static attncl_status gate_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t *dim = call->sig.in[1].dim;
    const struct row_launch p =
        attncl__row_launch(l->caps, file, "spatial_gate_bwd_gate", dim[0] * dim[1], dim[2]);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_mem(call->out[0]), arg_mem(call->out[1]), arg_i64(dim[0]),
                               arg_i64(dim[1]), arg_i32(dim[2]), arg_i32(p.rows_per_group)));
}

static attncl_status matrix_infer(struct op_sig *sig)
{
    return attncl__check_at_most(sig, 'T', 'N');
}

attncl_status attncl__spatial_gate_launch_mask(struct launcher *l, const struct op_call *call,
                                               int mask, int64_t length, struct gemm_matrix from,
                                               struct span to, int64_t n)
{
    const struct spatial_gate_fwd_params *params = call->sig.params;
    const struct tensor_desc *d = &call->sig.in[mask];
    const bool has_mask = attncl__desc_present(d);
    const struct row_launch p = attncl__row_launch(l->caps, file, "spatial_gate_bwd_mask", n, n);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(from.span), arg_mem(call->in[mask]), arg_mem(to),
                               arg_i64(from.ld), arg_i32(n), arg_i32(length),
                               arg_i64(has_mask && d->dim[0] > 1 ? length : 0), arg_i32(has_mask),
                               arg_i32(params->causal), arg_i32(p.rows_per_group)));
}

double attncl__spatial_gate_pairs(const struct op_sig *sig)
{
    const struct spatial_gate_fwd_params *params = sig->params;
    const double length = (double)sig->axes->of['T'];
    return params->causal ? length * (length + 1) / 2 : length * length;
}

static struct gemm_matrix matrix_at(struct span span, int64_t start, int64_t ld)
{
    return (struct gemm_matrix){.span = span, .start = start, .ld = ld};
}

// Under a causal mask each block of rows has its own GEMM over the columns that it sees.  With fewer
// than the minimum rows, another launch costs more than the half of the work that it saves.
static int64_t choose_block_rows(const struct op_sig *sig, int64_t length)
{
    enum { N_BLOCKS = 4, MIN_ROWS = 48, GPU_MIN_ROWS = 256 };
    const struct spatial_gate_fwd_params *params = sig->params;
    const int64_t rows = ceil_div(length, N_BLOCKS),
                  min = sig->caps->variant == VARIANT_GPU ? GPU_MIN_ROWS : MIN_ROWS;

    if (!params->causal)
        return length;
    return rows > min ? rows : min;
}

// Computes up to `rows` rows of dW from row i on.
static struct gemm weight_gemm(const struct op_call *call, int64_t i, int64_t rows)
{
    const struct spatial_gate_fwd_params *params = call->sig.params;
    const int64_t *dim = call->sig.in[1].dim, n = call->sig.in[0].dim[0];
    const int64_t length = dim[0], columns = dim[1] * dim[2];
    const int64_t end = i + rows < length ? i + rows : length;

    return GEMM_OF(1, end - i, params->causal ? end : length, columns,
                   .a = matrix_at(call->in[1], i * columns, columns),
                   .b = matrix_at(call->in[2], 0, columns), .c = matrix_at(call->out[0], i * n, n),
                   .trans_b = true);
}

// GPUs split the sums, which are long and few.
static attncl_status weight_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct span none[8] = {{NULL}};
    const struct op_call call = {.sig = *sig, .in = none, .out = none};
    const int64_t length = sig->in[1].dim[0], rows = choose_block_rows(sig, length);

    *bytes_ret = 0;
    for (int64_t i = 0; i < length; i += rows) {
        const struct gemm g = weight_gemm(&call, i, rows);
        const size_t bytes = attncl__gemm_scratch(sig->caps, &g);
        *bytes_ret = bytes > *bytes_ret ? bytes : *bytes_ret;
    }
    return ATTNCL_OK;
}

static attncl_status weight_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t length = call->sig.in[1].dim[0], n = call->sig.in[0].dim[0],
                  rows = choose_block_rows(&call->sig, length);

    for (int64_t i = 0; i < length; i += rows) {
        struct gemm g = weight_gemm(call, i, rows);
        g.scratch = call->scratch;
        g.scratch_bytes = attncl__gemm_scratch(l->caps, &g);
        TRY(attncl__gemm(l, &g));
    }
    return attncl__spatial_gate_launch_mask(l, call, 3, length, matrix_at(call->out[0], 0, n),
                                            call->out[0], n);
}

// W', [T, T].
static attncl_status input_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const size_t length = (size_t)sig->in[1].dim[0];
    *bytes_ret = length * length * sizeof(float);
    return ATTNCL_OK;
}

static attncl_status input_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t *dim = call->sig.in[1].dim;
    const int64_t length = dim[0], columns = dim[1] * dim[2], n = call->sig.in[0].dim[1];
    const int64_t rows = choose_block_rows(&call->sig, length);

    TRY(attncl__spatial_gate_launch_mask(l, call, 2, length, matrix_at(call->in[0], 0, n),
                                         call->scratch, length));
    for (int64_t j = 0; j < length; j += rows) {
        const int64_t end = j + rows < length ? j + rows : length;
        // W' is lower triangular: rows before j are zero in columns j and later.
        const int64_t first = rows < length ? j : 0;
        const struct gemm g =
            GEMM_OF(1, end - j, columns, length - first,
                    .a = matrix_at(call->scratch, first * length + j, length),
                    .b = matrix_at(call->in[1], first * columns, columns),
                    .c = matrix_at(call->out[0], j * columns, columns), .trans_a = true);
        TRY(attncl__gemm(l, &g));
    }
    return ATTNCL_OK;
}

static attncl_status bias_infer(struct op_sig *sig)
{
    TRY(attncl__check_at_most(sig, 'T', 'N'));
    return attncl__check_product(sig, "BC", INT32_MAX);
}

static attncl_status bias_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t *dim = call->sig.in[1].dim, n = call->sig.in[0].dim[0];
    const struct row_launch p =
        attncl__row_launch(l->caps, file, "spatial_gate_bwd_bias", n, dim[1] * dim[2]);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[1]), arg_mem(call->out[0]), arg_i64(n),
                               arg_i64(dim[0]), arg_i32(dim[1] * dim[2]),
                               arg_i32(p.rows_per_group)));
}

const struct op_class attncl__op_spatial_gate_bwd_gate = {
    .name = OP_CLASS(spatial_gate_bwd_gate),
    .in = OP_IN({"s", F32, "B T C"}, {"z1", F32, "T B C"}, {"dy", F32, "T B C"}),
    .out = OP_OUT({"dz1", F32, "T B C"}, {"ds", F32, "T B C"}),
    .int_axes = "C",
    .launch = gate_launch,
};

const struct op_class attncl__op_spatial_gate_bwd_weight = {
    .name = OP_CLASS(spatial_gate_bwd_weight),
    .in = OP_IN({"weight", F32 | SHAPE_ONLY, "N N"}, {"ds", F32, "T B C"}, {"u", F32, "T B C"},
                {"mask", U8 | OPTIONAL, "T|1 T 1"}),
    .out = OP_OUT({"dweight", F32, "N N"}),
    .int_axes = "T",
    .infer = matrix_infer,
    .scratch = weight_scratch,
    .launch = weight_launch,
    .flop = "2pBC",
    .pairs = attncl__spatial_gate_pairs,
    .moved = {[4] = "2p"}, // including scratch
};

const struct op_class attncl__op_spatial_gate_bwd_input = {
    .name = OP_CLASS(spatial_gate_bwd_input),
    .in = OP_IN({"weight", F32, "N N"}, {"ds", F32, "T B C"}, {"mask", U8 | OPTIONAL, "T|1 T 1"}),
    .out = OP_OUT({"du", F32, "T B C"}),
    .int_axes = "T",
    .infer = matrix_infer,
    .scratch = input_scratch,
    .launch = input_launch,
    .flop = "2pBC",
    .pairs = attncl__spatial_gate_pairs,
    .moved = {[0] = "2p"}, // including scratch
};

const struct op_class attncl__op_spatial_gate_bwd_bias = {
    .name = OP_CLASS(spatial_gate_bwd_bias),
    .in = OP_IN({"bias", F32, "N"}, {"ds", F32, "T B C"}),
    .out = OP_OUT({"dbias", F32, "N"}),
    .infer = bias_infer,
    .launch = bias_launch,
};
