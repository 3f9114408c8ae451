// SPDX-License-Identifier: MIT
//
// Fused decode steps, split along channels: independent channel blocks, each of which computes one
// split-K partial sum of the result.

#include "op/fused/fused_step.h"
#include "gemm/skinny_gemm.h"

int64_t attncl__fused_step_width(const struct op_sig *sig)
{
    return sig->in[FUSED_NORM_W].dim[0];
}

int64_t attncl__fused_step_rows(const struct op_sig *sig)
{
    const int64_t d = attncl__fused_step_width(sig);
    return d > 0 ? attncl__desc_count(&sig->in[FUSED_X]) / d : 0;
}

static attncl_status check_stream(const struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[FUSED_X];

    TRY(attncl__check_input("x", x, ATTNCL_F32, -1));
    TRY(attncl__check_input("norm_weight", &sig->in[FUSED_NORM_W], ATTNCL_F32, 1));
    TRY(attncl__check_input("norm_bias", &sig->in[FUSED_NORM_B], ATTNCL_F32, 1));
    for (int i = FUSED_NORM_W; i <= FUSED_NORM_B; ++i)
        REQUIRE(x->rank >= 1 && sig->in[i].dim[0] == x->dim[x->rank - 1], ATTNCL_ERR_SHAPE,
                "%s is %s, x is %s", i == FUSED_NORM_W ? "norm_weight" : "norm_bias",
                SHAPE(&sig->in[i]), SHAPE(x));
    return ATTNCL_OK;
}

static attncl_status check_partials(const struct op_sig *sig, int64_t m, int64_t d)
{
    const struct tensor_desc *partials = &sig->in[FUSED_PARTIALS],
                             *bias = &sig->in[FUSED_PARTIALS_BIAS];

    if (!attncl__desc_present(partials))
        return ATTNCL_OK;
    TRY(attncl__check_input("partials", partials, ATTNCL_F32, 3));
    REQUIRE(partials->dim[1] == m && partials->dim[2] == d, ATTNCL_ERR_SHAPE,
            "partials are %s, x has %" PRId64 " rows of %" PRId64, SHAPE(partials), m, d);
    if (!attncl__desc_present(bias))
        return ATTNCL_OK;
    TRY(attncl__check_input("bias of the partials", bias, ATTNCL_F32, 1));
    REQUIRE(bias->dim[0] == d, ATTNCL_ERR_SHAPE,
            "bias of the partials is %s, x has rows of %" PRId64, SHAPE(bias), d);
    return ATTNCL_OK;
}

attncl_status attncl__fused_step_infer(struct op_sig *sig, int64_t n_blocks, int64_t d_out)
{
    TRY(check_stream(sig));
    const int64_t m = attncl__fused_step_rows(sig), d = attncl__fused_step_width(sig);

    TRY(check_partials(sig, m, d));
    REQUIRE(n_blocks >= 1, ATTNCL_ERR_ARGUMENT, "%" PRId64 " channel blocks, must be at least 1",
            n_blocks);
    if (attncl__desc_present(&sig->in[FUSED_PARTIALS]))
        TRY(attncl__desc_make(ATTNCL_F32, sig->in[FUSED_X].rank, sig->in[FUSED_X].dim,
                              &sig->out[FUSED_RESIDUAL_OUT]));
    return attncl__desc_make(ATTNCL_F32, 3, (int64_t[]){n_blocks, m, d_out},
                             &sig->out[FUSED_PARTIAL_SUMS]);
}

bool attncl__fused_step_supported(const struct op_sig *sig, const int64_t *widths, int n_widths,
                                  int64_t local)
{
    enum { MAX_WIDTH = 4096 }; // rows that stay in the second-level cache
    const struct device_caps *caps = sig->caps;
    const int64_t m = attncl__fused_step_rows(sig), d = attncl__fused_step_width(sig);

    if (caps->variant != VARIANT_CPU || caps->vector_width < 4 || caps->max_loop_iterations ||
        m < 1 || m > SKINNY_GEMM_MAX_ROWS || d > MAX_WIDTH)
        return false;
    for (int i = 0; i < n_widths; ++i)
        if (widths[i] < 1 || widths[i] % caps->vector_width || widths[i] > INT32_MAX / 16)
            return false;
    for (int i = 0; i < sig->n_in; ++i)
        if (attncl__desc_present(&sig->in[i]) &&
            (sig->in[i].start != 0 || !attncl__desc_contiguous(&sig->in[i])))
            return false;
    return (size_t)(m * d + local) * sizeof(float) <= caps->local_bytes / 2;
}

// Two channel blocks for each compute unit, for load balance.  Starting another unit takes
// as long as some 100,000 FMAs.
int32_t attncl__fused_step_blocks(const struct device_caps *caps, int64_t width, int64_t fmas)
{
    enum { MAX_BLOCKS = 16, VECTORS = 2, MIN_FMAS = 1 << 17 }; // of a channel block at least
    const int64_t units = 2 * (int64_t)caps->compute_units;
    const int64_t max = ceil_div(width, VECTORS * (int64_t)caps->vector_width);
    const int64_t worth = ceil_div(fmas, MIN_FMAS);
    int64_t n = units < MAX_BLOCKS ? units : MAX_BLOCKS;

    n = n < max ? n : max;
    n = n < worth ? n : worth;
    return (int32_t)ceil_div(width, attncl__fused_step_block_width(caps, width, n > 0 ? n : 1));
}

int64_t attncl__fused_step_block_width(const struct device_caps *caps, int64_t width,
                                       int64_t n_blocks)
{
    return ceil_div(ceil_div(width, n_blocks), caps->vector_width) * (int64_t)caps->vector_width;
}

void attncl__fused_step_args(const struct op_call *call, float eps, struct arg args[FUSED_ARGS])
{
    const struct tensor_desc *partials = &call->sig.in[FUSED_PARTIALS];
    const bool has_partials = attncl__desc_present(partials);
    const struct arg all[FUSED_ARGS] = {
        arg_i32(attncl__fused_step_rows(&call->sig)),
        arg_i32(attncl__fused_step_width(&call->sig)),
        arg_i32(has_partials ? partials->dim[0] : 0),
        arg_i32(attncl__desc_present(&call->sig.in[FUSED_PARTIALS_BIAS])),
        arg_mem(call->in[FUSED_X]),
        arg_mem(call->in[FUSED_PARTIALS]),
        arg_mem(call->in[FUSED_PARTIALS_BIAS]),
        arg_mem(call->in[FUSED_NORM_W]),
        arg_mem(call->in[FUSED_NORM_B]),
        arg_f32(eps),
        arg_mem(call->out[FUSED_RESIDUAL_OUT]),
    };
    memcpy(args, all, sizeof all);
}

static attncl_status check_projections(const struct op_sig *sig)
{
    static const char *const names[] = {"wq", "bq", "wk", "bk", "wv", "bv"};
    const int64_t channels = sig->in[FUSED_WQ].dim[0];

    for (int i = FUSED_WQ; i <= FUSED_BV; ++i) {
        const struct tensor_desc *x = &sig->in[i];
        const bool bias = (i - FUSED_WQ) % 2;
        if (bias && !attncl__desc_present(x))
            continue;
        TRY(attncl__check_input(names[i - FUSED_WQ], x, ATTNCL_F32, bias ? 1 : 2));
        REQUIRE(x->dim[0] == channels && (bias || x->dim[1] == attncl__fused_step_width(sig)),
                ATTNCL_ERR_SHAPE, "%s is %s, wq is %s, x has %" PRId64 " channels",
                names[i - FUSED_WQ], SHAPE(x), SHAPE(&sig->in[FUSED_WQ]),
                attncl__fused_step_width(sig));
    }
    REQUIRE(sig->in[FUSED_WO].dim[1] == channels, ATTNCL_ERR_SHAPE, "wo is %s, wq is %s",
            SHAPE(&sig->in[FUSED_WO]), SHAPE(&sig->in[FUSED_WQ]));
    return ATTNCL_OK;
}

static attncl_status check_step(const struct op_sig *sig, const struct op_class *cls,
                                const void *params)
{
    enum { N_PROJECTIONS = 3 };
    const int64_t dim[2] = {attncl__fused_step_rows(sig), sig->in[FUSED_WQ].dim[0]};
    struct tensor_desc in[N_PROJECTIONS + FUSED_MAX_INPUTS - FUSED_QKV_INPUTS] = {{0}}, y = {0};
    struct op_sig step = {
        .params = params, .n_in = cls->n_in, .n_out = cls->n_out, .in = in, .out = &y};

    assert(cls->n_in <= (int)(sizeof in / sizeof in[0]) && cls->n_out == 1);

    for (int i = 0; i < N_PROJECTIONS; ++i)
        TRY(attncl__desc_make(ATTNCL_F32, 2, dim, &step.in[i]));
    for (int i = N_PROJECTIONS; i < cls->n_in; ++i)
        step.in[i] = sig->in[FUSED_QKV_INPUTS + i - N_PROJECTIONS];
    return cls->infer(&step);
}

attncl_status attncl__fused_step_infer_qkv(struct op_sig *sig, int64_t n_blocks,
                                           const struct op_class *step, const void *step_params)
{
    TRY(attncl__check_input("wq", &sig->in[FUSED_WQ], ATTNCL_F32, 2));
    TRY(attncl__check_input("wo", &sig->in[FUSED_WO], ATTNCL_F32, 2));
    TRY(attncl__fused_step_infer(sig, n_blocks, sig->in[FUSED_WO].dim[0]));
    TRY(check_projections(sig));
    return check_step(sig, step, step_params);
}

bool attncl__fused_step_supported_qkv(const struct op_sig *sig, int64_t block_width, int64_t local)
{
    const int64_t widths[] = {sig->in[FUSED_WQ].dim[0], attncl__fused_step_width(sig),
                              sig->in[FUSED_WO].dim[0]};

    return attncl__fused_step_supported(sig, widths, 3,
                                        3 * attncl__fused_step_rows(sig) * block_width + local);
}

void attncl__fused_step_qkv_macros(const struct device_caps *caps, const struct op_call *call,
                                   struct kspec *spec)
{
    attncl__skinny_gemm_macros(caps, attncl__fused_step_rows(&call->sig), spec);
    kspec_int(spec, "HAS_K_TAIL", 0);
}

void attncl__fused_step_qkv_args(const struct device_caps *caps, const struct op_call *call,
                                 float eps, int64_t block_width, struct arg args[FUSED_QKV_ARGS])
{
    const struct tensor_desc *in = call->sig.in;
    const int64_t m = attncl__fused_step_rows(&call->sig), d = attncl__fused_step_width(&call->sig);
    const int has_bias = attncl__desc_present(&in[FUSED_BQ]) |
                         attncl__desc_present(&in[FUSED_BK]) << 1 |
                         attncl__desc_present(&in[FUSED_BV]) << 2;
    const size_t block_bytes = (size_t)(m * block_width) * sizeof(float);
    const struct arg own[FUSED_QKV_ARGS - FUSED_ARGS] = {
        arg_i32(in[FUSED_WQ].dim[0]),
        arg_i32(block_width),
        arg_i32(in[FUSED_WO].dim[0]),
        arg_i32(attncl__skinny_gemm_prefetch_rows(caps, m, d)),
        arg_i32(attncl__skinny_gemm_prefetch_rows(caps, m, block_width)),
        arg_i32(has_bias),
        arg_mem(call->in[FUSED_WQ]),
        arg_mem(call->in[FUSED_BQ]),
        arg_mem(call->in[FUSED_WK]),
        arg_mem(call->in[FUSED_BK]),
        arg_mem(call->in[FUSED_WV]),
        arg_mem(call->in[FUSED_BV]),
        arg_mem(call->in[FUSED_WO]),
        arg_mem(call->out[FUSED_PARTIAL_SUMS]),
        arg_local((size_t)(m * d) * sizeof(float)),
        arg_local(block_bytes),
        arg_local(block_bytes),
        arg_local(block_bytes),
    };

    attncl__fused_step_args(call, eps, args);
    memcpy(args + FUSED_ARGS, own, sizeof own);
}

static int64_t projection_weights(const struct op_sig *sig)
{
    return sig->in[FUSED_WQ].dim[0] *
           (3 * attncl__fused_step_width(sig) + sig->in[FUSED_WO].dim[0]);
}

int64_t attncl__fused_step_qkv_fmas(const struct op_sig *sig)
{
    return attncl__fused_step_rows(sig) * projection_weights(sig);
}

void attncl__fused_step_qkv_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    *flop_ret = 2 * (double)attncl__fused_step_qkv_fmas(sig);
    *bytes_ret = 4 * (double)projection_weights(sig);
}
