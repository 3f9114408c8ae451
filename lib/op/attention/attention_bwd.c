// SPDX-License-Identifier: MIT
//
// Gradients of softmax attention.  p is recomputed from the rows' maxima and totals that the forward
// pass saved, p_ij = exp(s_ij - maximum) / total: no [T, S] buffer.
//
//   dv_j = sum_i m_ij p_ij g_i
//   ds_ij = scale slope_ij p_ij (m_ij g_i . v_j + c_ij - delta_i),   delta_i = g_i . y_i + sum_j p_ij c_ij
//   dq_i = sum_j ds_ij k_j      dk_j = sum_i ds_ij q_i
//
// y is the forward op's result, g its gradient, c the gradient of the weights if they are an output,
// m the recomputed dropout mask or 1, slope_ij = 1 - (s_ij / softcap)^2 with a soft cap or 1.  dk
// and dv are summed over the query heads that share a key head.
//
// CPU variant: one pass over blocks of queries computes all three gradients
// (cl/attention/attention_bwd_cpu.cl); each work-item has its own partial sums of dk and dv, which
// a last pass adds.  GPU variant: a pass for delta, then for some query heads at a time a pass for
// dk and dv, which keeps ds, and a pass for dq (attention_bwd_gpu.cl, or attention_bwd_gpu_mma.cl
// where matrix instructions fit).

#include "op/attention/attention.h"

enum { OUT_DQ, OUT_DK, OUT_DV };

attncl_status attncl__attention_bwd_infer(struct op_sig *sig)
{
    TRY(attncl__check_shape(sig, ATT_BWD_IN_Y, attncl__attention_result(sig)));
    TRY(attncl__check_shape(sig, ATT_BWD_IN_G, attncl__attention_result(sig)));
    REQUIRE(!attncl__desc_present(&sig->in[ATT_BWD_IN_C]) ||
                attncl__desc_present(&sig->in[ATT_BWD_IN_WEIGHTS]),
            ATTNCL_ERR_ARGUMENT, "the gradient of the weights is given, the weights are missing");
    return ATTNCL_OK;
}

static bool has_nonempty_output(const struct op_sig *sig)
{
    return attncl__desc_count(&sig->out[OUT_DQ]) > 0 || attncl__desc_count(&sig->out[OUT_DK]) > 0 ||
           attncl__desc_count(&sig->out[OUT_DV]) > 0;
}

static attncl_status bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    struct backward_tiling b;

    *bytes_ret = 0;
    if (!has_nonempty_output(sig))
        return ATTNCL_OK;
    TRY(attncl__attention_bwd_choose_tiling(sig, &b));
    *bytes_ret = sizeof(float) * (size_t)b.floats;
    return ATTNCL_OK;
}

static attncl_status launch_blocks(struct launcher *l, const struct op_call *call,
                                   const struct backward_tiling *b)
{
    const struct attention_tiling *p = &b->tiling;
    const struct kspec spec =
        attncl__attention_cpu_spec(p, "attention/attention_bwd_cpu.cl", "attention_bwd_cpu");

    return attncl__attention_launch(
        l, call, p, &spec, grid_3d(p->kv_group, p->kv_heads, b->n_splits, 1, 1),
        ARGS(ATTENTION_HEADS(call, ATT_IN_Q), arg_mem(call->in[ATT_BWD_IN_Y]),
             ATTENTION_BWD_STRIDES(call), arg_mem(call->in[ATT_BWD_IN_G]),
             WEIGHTS_AND_GRADIENT(call), arg_mem(call->in[ATT_BWD_IN_ROWS]), arg_mem(call->scratch),
             arg_i64(b->values_at), arg_i64(b->rows_at), arg_mem(call->out[OUT_DQ]),
             arg_mem(call->scratch), arg_i64(b->dk_at), arg_i64(b->dv_at), arg_i32(b->key_pitch),
             arg_i32(b->value_pitch), arg_i32(p->block),
             arg_local(sizeof(float) * (size_t)b->local)));
}

// Sums dk or dv from partial sums in the scratch, which have no padding in the GPU variant.
static attncl_status launch_sum(struct launcher *l, const struct op_call *call,
                                const struct backward_tiling *b, int out)
{
    const bool keys = out == OUT_DK;
    const int64_t width = keys ? b->tiling.width : b->tiling.value_width, rows = b->tiling.key_tile;
    const int64_t pitch = keys ? b->key_pitch : b->value_pitch;
    const size_t group = b->tiling.gpu ? ATT_BWD_GROUP : 1;
    struct kspec spec = kspec_begin("attention/attention_bwd_sum.cl", "attention_bwd_sum");

    kspec_set_vw_ls(&spec, b->tiling.gpu ? 1 : b->tiling.vw, group);
    return attncl__launch(l, &spec,
                          grid_2d(b->tiling.kv_heads, ceil_div(b->tiling.n_keys, rows), group, 1),
                          ARGS(arg_mem(call->scratch), arg_i64(keys ? b->dk_at : b->dv_at),
                               arg_i32((b->tiling.gpu ? 1 : b->n_splits) * b->tiling.kv_group),
                               arg_i32(b->tiling.gpu ? b->tiling.n_keys : b->tile_keys),
                               arg_i32(b->tiling.gpu ? width : pitch), arg_mem(call->out[out]),
                               arg_i32(b->tiling.n_keys), arg_i32(width), arg_i32(rows)));
}

static attncl_status launch_cpu(struct launcher *l, const struct op_call *call,
                                const struct backward_tiling *b)
{
    const struct attention_packing keys = {ATT_IN_K, ATT_IN_K, .rows_at = b->rows_at,
                                           .pitch = b->key_pitch};
    const struct attention_packing values = {ATT_IN_V, ATT_IN_V, .tiles_at = b->values_at};

    TRY(attncl__attention_launch_packing(l, call, &b->tiling, &keys));
    TRY(attncl__attention_launch_packing(l, call, &b->tiling, &values));
    TRY(launch_blocks(l, call, b));
    TRY(launch_sum(l, call, b, OUT_DK));
    return launch_sum(l, call, b, OUT_DV);
}

attncl_status attncl__attention_bwd_launch_delta(struct launcher *l, const struct op_call *call,
                                                 const struct attention_tiling *p)
{
    enum { LANES_PER_ROW = 16 };
    const int64_t rows = p->heads * p->n_queries;
    struct kspec spec =
        kspec_begin("attention/attention_bwd_gpu_delta.cl", "attention_bwd_gpu_delta");

    kspec_set_vw_ls(&spec, 1, ATT_BWD_GROUP);
    kspec_int(&spec, "LANES_PER_ROW", LANES_PER_ROW);
    kspec_int(&spec, "VECS_PER_LANE", 0);
    return attncl__launch(
        l, &spec, grid_1d(ceil_div(rows, ATT_BWD_GROUP / LANES_PER_ROW), ATT_BWD_GROUP),
        ARGS(arg_mem(call->in[ATT_BWD_IN_Y]), ATTENTION_BWD_STRIDES(call),
             arg_mem(call->in[ATT_BWD_IN_G]), WEIGHTS_AND_GRADIENT(call), arg_mem(call->scratch),
             arg_i64(rows), arg_i32(call->sig.in[ATT_IN_Q].dim[1]), arg_i32(p->n_queries),
             arg_i32(p->n_keys), arg_i32(p->value_width)));
}

enum gpu_output { GPU_DQ, GPU_DK_DV };

// A pass: its kernel, and the work-items, result rows and result columns of a work-group.
struct gpu_pass {
    enum gpu_output output;
    struct kspec spec;
    int64_t group, rows, columns, all_columns;
};

static void set_common_macros(struct gpu_pass *pass, const struct backward_tiling *b)
{
    attncl__attention_set_gpu_macros(&pass->spec, &b->tiling, (size_t)pass->group);
    kspec_int(&pass->spec, "OUTPUT", pass->output);
    kspec_int(&pass->spec, "KEEP", b->kept_heads > 0);
}

static void set_fma_kernel(struct gpu_pass *pass, const struct device_caps *caps,
                           const struct backward_tiling *b)
{
    const struct attention_tile_config *r =
        attncl__attention_bwd_tile_config(caps, pass->all_columns);

    pass->group = r->tx * r->ty;
    pass->rows = 4 * r->ty;
    pass->columns = 4 * r->tx * r->ne;
    pass->spec = kspec_begin("attention/attention_bwd_gpu.cl", "attention_bwd_gpu");
    set_common_macros(pass, b);
    attncl__attention_set_tile_macros(&pass->spec, r);
}

static void set_mma_kernel(struct gpu_pass *pass, const struct device_caps *caps,
                           const struct backward_tiling *b)
{
    const bool reads_ds = pass->output == GPU_DQ && b->kept_heads > 0;

    pass->group = (int64_t)attncl__attention_mma_group(b->tiling.mma);
    pass->rows = ATT_MMA_ROWS;
    pass->columns = attncl__attention_bwd_mma_columns(b->tiling.mma, pass->all_columns, reads_ds);
    pass->spec = kspec_begin("attention/attention_bwd_gpu_mma.cl", "attention_bwd_gpu_mma");
    set_common_macros(pass, b);
    attncl__attention_set_mma_macros(&pass->spec, caps, b->tiling.mma);
    kspec_int(&pass->spec, "COLUMNS", pass->columns);
}

// Uses matrix instructions if that kernel builds and fits without register spills.
static struct gpu_pass choose_pass(struct launcher *l, const struct backward_tiling *b,
                                   enum gpu_output output)
{
    const int64_t width = b->tiling.width, value_width = b->tiling.value_width;
    struct gpu_pass pass = {.output = output,
                            .all_columns =
                                output == GPU_DK_DV && value_width > width ? value_width : width};

    if (b->tiling.mma) {
        set_mma_kernel(&pass, l->caps, b);
        if (attncl__kernel_fits(l, &pass.spec, (size_t)pass.group, true))
            return pass;
    }
    set_fma_kernel(&pass, l->caps, b);
    return pass;
}

// Runs a pass for heads first .. first + n - 1.
static attncl_status launch_gpu(struct launcher *l, const struct op_call *call,
                                const struct backward_tiling *b, const struct gpu_pass *pass,
                                int64_t first, int64_t n)
{
    const struct attention_tiling *p = &b->tiling;
    const bool rows_are_keys = pass->output == GPU_DK_DV,
               in_parts = rows_are_keys && p->kv_group > 1;
    const int64_t rows = rows_are_keys ? p->n_keys : p->n_queries;

    return attncl__attention_launch(
        l, call, p, &pass->spec,
        grid_3d(n, ceil_div(rows, pass->rows), ceil_div(pass->all_columns, pass->columns),
                (size_t)pass->group, 1),
        ARGS(ATTENTION_HEADS(call, ATT_IN_Q), ATTENTION_HEADS(call, ATT_IN_K),
             ATTENTION_HEADS(call, ATT_IN_V), arg_mem(call->in[ATT_BWD_IN_G]),
             ATTENTION_BWD_STRIDES(call), GRADIENT_OF_WEIGHTS(call),
             arg_mem(call->in[ATT_BWD_IN_ROWS]), arg_mem(call->scratch), arg_i64(b->ds_at),
             arg_i32(b->ds_pitch),
             arg_mem(in_parts ? call->scratch : call->out[rows_are_keys ? OUT_DK : OUT_DQ]),
             arg_i64(in_parts ? b->dk_at : 0),
             arg_mem(in_parts        ? call->scratch
                     : rows_are_keys ? call->out[OUT_DV]
                                     : (struct span){NULL}),
             arg_i64(in_parts ? b->dv_at : 0), arg_i32(first), arg_i32(p->kv_group)));
}

static attncl_status bwd_launch(struct launcher *l, const struct op_call *call)
{
    struct backward_tiling b;

    TRY(attncl__attention_bwd_choose_tiling(&call->sig, &b));
    if (!b.tiling.gpu)
        return launch_cpu(l, call, &b);
    TRY(attncl__attention_bwd_launch_delta(l, call, &b.tiling));
    const struct gpu_pass dk_dv = choose_pass(l, &b, GPU_DK_DV), dq = choose_pass(l, &b, GPU_DQ);
    const int64_t quick = attncl__parts_at_once(l, b.tiling.heads, 1);
    const int64_t at_once = b.kept_heads > 0 && b.kept_heads < quick ? b.kept_heads : quick;
    for (int64_t first = 0; first < b.tiling.heads; first += at_once) {
        const int64_t left = b.tiling.heads - first, n = left < at_once ? left : at_once;
        TRY(launch_gpu(l, call, &b, &dk_dv, first, n));
        TRY(launch_gpu(l, call, &b, &dq, first, n));
    }
    if (b.tiling.kv_group == 1)
        return ATTNCL_OK;
    TRY(launch_sum(l, call, &b, OUT_DK));
    return launch_sum(l, call, &b, OUT_DV);
}

const struct op_class attncl__op_attention_bwd = {
    .name = OP_CLASS(attention_bwd),
    .in = ATTENTION_BWD_IN(F32 | OPTIONAL),
    .out = OP_OUT({"dq", F32, "B H T D"}, {"dk", F32, "B G S D"}, {"dv", F32, "B G S E"}),
    .infer = attncl__attention_bwd_infer,
    .scratch = bwd_scratch,
    .launch = bwd_launch,
    .flop = "6BHpD + 4BHpE + 8BHp", // five products
    .pairs = attncl__attention_pairs,
};
