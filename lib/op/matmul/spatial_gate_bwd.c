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

#include "gemm/gemm.h"
#include "op/op.h"
#include "op/row_launch.h"

static const char *const file = "matmul/spatial_gate_bwd.cl";

static attncl_status check_sequence(const char *name, const struct tensor_desc *d,
                                    const struct tensor_desc *like)
{
    TRY(attncl__check_input(name, d, ATTNCL_F32, 3));
    REQUIRE(attncl__desc_same_shape(d, like), ATTNCL_ERR_SHAPE, "%s is %s, expected %s", name,
            SHAPE(d), SHAPE(like));
    return ATTNCL_OK;
}

// s [B, T, C], z1, dy [T, B, C] -> dz1, ds
static attncl_status gate_infer(struct op_sig *sig)
{
    const struct tensor_desc *s = &sig->in[0], *z1 = &sig->in[1];

    TRY(attncl__check_input("s", s, ATTNCL_F32, 3));
    TRY(check_sequence("z1", z1, z1));
    TRY(check_sequence("dy", &sig->in[2], z1));
    REQUIRE(s->dim[0] == z1->dim[1] && s->dim[1] == z1->dim[0] && s->dim[2] == z1->dim[2],
            ATTNCL_ERR_SHAPE, "s is %s, z1 is %s", SHAPE(s), SHAPE(z1));
    TRY(attncl__check_width("the last axis of z1", z1->dim[2]));
    TRY(attncl__desc_make(ATTNCL_F32, 3, z1->dim, &sig->out[0]));
    sig->out[1] = sig->out[0];
    return ATTNCL_OK;
}

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

// The matrix [n, n] and ds [T, B, C] of the first two inputs.
static attncl_status check_matrix(const struct op_sig *sig)
{
    const struct tensor_desc *weight = &sig->in[0], *ds = &sig->in[1];

    TRY(attncl__check_input("weight", weight, ATTNCL_F32, 2));
    TRY(attncl__check_input("ds", ds, ATTNCL_F32, 3));
    REQUIRE(weight->dim[0] == weight->dim[1] && ds->dim[0] <= weight->dim[0], ATTNCL_ERR_SHAPE,
            "weight is %s, ds is %s: expected [n, n] and [T, B, C], T <= n", SHAPE(weight),
            SHAPE(ds));
    return attncl__check_width("the first axis of ds", ds->dim[0]);
}

// weight, ds, u, mask -> dW [n, n]
static attncl_status weight_infer(struct op_sig *sig)
{
    TRY(check_matrix(sig));
    TRY(check_sequence("u", &sig->in[2], &sig->in[1]));
    return attncl__desc_make(ATTNCL_F32, 2, sig->in[0].dim, &sig->out[0]);
}

// weight, ds, mask -> du
static attncl_status input_infer(struct op_sig *sig)
{
    TRY(check_matrix(sig));
    return attncl__desc_make(ATTNCL_F32, 3, sig->in[1].dim, &sig->out[0]);
}

// A matrix [T, T] beside the inputs: of sums, or W'.
static attncl_status matrix_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const size_t length = (size_t)sig->in[1].dim[0];
    *bytes_ret = length * length * sizeof(float);
    return ATTNCL_OK;
}

// to[i, j] = from[i, j] where the mask and causality show it, else 0; i, j < T in both, `to` has
// n rows of n.
static attncl_status show(struct launcher *l, const struct op_call *call, int mask,
                          struct span from, int64_t from_ld, struct span to, int64_t n)
{
    const struct spatial_gate_fwd_params *params = call->sig.params;
    const int64_t length = call->sig.in[1].dim[0];
    const struct tensor_desc *d = &call->sig.in[mask];
    const bool has_mask = attncl__desc_present(d);
    const struct row_launch p = attncl__row_launch(l->caps, file, "spatial_gate_bwd_show", n, n);

    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(from),
                               arg_mem(has_mask ? call->in[mask] : (struct span){NULL}),
                               arg_mem(to), arg_i64(from_ld), arg_i32(n), arg_i32(length),
                               arg_i64(has_mask && d->dim[0] > 1 ? length : 0), arg_i32(has_mask),
                               arg_i32(params->causal), arg_i32(p.rows_per_group)));
}

static struct gemm_matrix part(struct span span, int64_t start, int64_t ld)
{
    return (struct gemm_matrix){.span = span, .start = start, .ld = ld};
}

// Rows of a block: under a causal mask each has a GEMM of its own, of the columns that it sees.
static int64_t block_rows(const struct op_call *call, int64_t length)
{
    enum { N_BLOCKS = 4, MIN_ROWS = 48 };
    const struct spatial_gate_fwd_params *params = call->sig.params;
    const int64_t rows = ceil_div(length, N_BLOCKS);

    if (!params->causal)
        return length;
    return rows > MIN_ROWS ? rows : MIN_ROWS;
}

static attncl_status weight_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t *dim = call->sig.in[1].dim;
    const int64_t length = dim[0], columns = dim[1] * dim[2], rows = block_rows(call, length);
    const struct spatial_gate_fwd_params *params = call->sig.params;

    for (int64_t i = 0; i < length; i += rows) {
        const int64_t end = i + rows < length ? i + rows : length;
        const struct gemm g = GEMM_OF(
            1, end - i, params->causal ? end : length, columns,
            .a = part(call->in[1], i * columns, columns), .b = part(call->in[2], 0, columns),
            .c = part(call->scratch, i * length, length), .trans_b = true);
        TRY(attncl__gemm(l, &g));
    }
    return show(l, call, 3, call->scratch, length, call->out[0], call->sig.in[0].dim[0]);
}

static attncl_status input_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t *dim = call->sig.in[1].dim;
    const int64_t length = dim[0], columns = dim[1] * dim[2], n = call->sig.in[0].dim[1];
    const int64_t rows = block_rows(call, length);

    TRY(show(l, call, 2, call->in[0], n, call->scratch, length));
    for (int64_t j = 0; j < length; j += rows) {
        const int64_t end = j + rows < length ? j + rows : length;
        // W' has zeros above its diagonal: the first j rows have none of these columns.
        const int64_t first = rows < length ? j : 0;
        const struct gemm g =
            GEMM_OF(1, end - j, columns, length - first,
                    .a = part(call->scratch, first * length + j, length),
                    .b = part(call->in[1], first * columns, columns),
                    .c = part(call->out[0], j * columns, columns), .trans_a = true);
        TRY(attncl__gemm(l, &g));
    }
    return ATTNCL_OK;
}

// bias [n], ds -> dbias [n]
static attncl_status bias_infer(struct op_sig *sig)
{
    const struct tensor_desc *bias = &sig->in[0], *ds = &sig->in[1];

    TRY(attncl__check_input("bias", bias, ATTNCL_F32, 1));
    TRY(attncl__check_input("ds", ds, ATTNCL_F32, 3));
    REQUIRE(ds->dim[0] <= bias->dim[0], ATTNCL_ERR_SHAPE, "bias is %s, ds is %s", SHAPE(bias),
            SHAPE(ds));
    TRY(attncl__check_width("a row of ds", ds->dim[1] * ds->dim[2]));
    return attncl__infer_like_first(sig);
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

// Causal: the lower triangle only, as of the forward op.
static void gemm_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct spatial_gate_fwd_params *params = sig->params;
    const double length = (double)sig->in[1].dim[0];
    const double count = (double)attncl__desc_count(&sig->in[1]);
    const double pairs = params->causal ? length * (length + 1) / 2 : length * length;

    *flop_ret = length == 0 ? 0 : 2 * pairs * (count / length);
    *bytes_ret = 4 * (2 * count + 2 * pairs);
}

const struct op_class attncl__op_spatial_gate_bwd_gate = {
    .name = OP_CLASS_MASKS(spatial_gate_bwd_gate, 3, 2),
    .infer = gate_infer,
    .launch = gate_launch,
};

const struct op_class attncl__op_spatial_gate_bwd_weight = {
    .name = OP_CLASS_MASKS(spatial_gate_bwd_weight, 4, 1),
    .optional = 1u << 3,
    .infer = weight_infer,
    .scratch = matrix_scratch,
    .launch = weight_launch,
    .cost = gemm_cost,
};

const struct op_class attncl__op_spatial_gate_bwd_input = {
    .name = OP_CLASS_MASKS(spatial_gate_bwd_input, 3, 1),
    .optional = 1u << 2,
    .infer = input_infer,
    .scratch = matrix_scratch,
    .launch = input_launch,
    .cost = gemm_cost,
};

const struct op_class attncl__op_spatial_gate_bwd_bias = {
    .name = OP_CLASS_MASKS(spatial_gate_bwd_bias, 2, 1),
    .infer = bias_infer,
    .launch = bias_launch,
};
