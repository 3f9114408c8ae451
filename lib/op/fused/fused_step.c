// SPDX-License-Identifier: MIT
//
// Fused decode steps (fused.h): what all inner steps share.

#include "base/quantised.h"
#include "op/fused/fused.h"

static const struct inner_step *const inner_steps[N_FUSED_STEPS] = {
    [FUSED_AFT] = &attncl__inner_aft,
    [FUSED_ATTENTION] = &attncl__inner_attention,
    [FUSED_FFN] = &attncl__inner_ffn,
};

static const struct fused_step_fwd_params *params_of(const struct op_sig *sig)
{
    return sig->params;
}

static const struct inner_step *inner_of(const struct op_sig *sig)
{
    return inner_steps[params_of(sig)->kind];
}

// -- shapes

// The inner step's own inputs were checked when it was an op by itself.
static attncl_status infer(struct op_sig *sig)
{
    const struct fused_step_fwd_params *params = sig->params;
    int64_t *of = sig->axes->of;

    assert(params->kind >= 0 && params->kind < N_FUSED_STEPS);
    assert(inner_of(sig)->n_projections == 1 ||
           (attncl__desc_present(&sig->in[FUSED_WK]) && attncl__desc_present(&sig->in[FUSED_WV])));
    assert(of['M'] < 0 || of['M'] == of['.']);
    assert(params->n_blocks >= 1);
    of['N'] = params->n_blocks;
    of['M'] = of['.'];
    if (attncl__desc_present(&sig->in[FUSED_PARTIALS]))
        sig->out[FUSED_RESIDUAL_OUT].dtype = ATTNCL_F32;
    return ATTNCL_OK;
}

// -- channel blocks

static int64_t block_width(const struct op_sig *sig, int64_t n_blocks)
{
    const int64_t granule = inner_of(sig)->granule(sig);
    const int64_t granules = ceil_div(attncl__fused_step_channels(sig), granule);
    return ceil_div(granules, n_blocks) * granule;
}

// Channels of all projections together, of as many of q.
static int64_t projected(const struct op_sig *sig, int64_t channels)
{
    return channels +
           (inner_of(sig)->n_projections - 1) * (channels / attncl__fused_step_kv_group(sig));
}

static int64_t weights_count(const struct op_sig *sig)
{
    const int64_t channels = attncl__fused_step_channels(sig);
    return projected(sig, channels) * attncl__fused_step_width(sig) +
           channels * sig->in[FUSED_WO].dim[0];
}

// Two channel blocks for each compute unit, for load balance.  Starting another unit takes as long
// as some 100,000 FMAs.
int32_t attncl__fused_step_blocks(const struct op_sig *sig)
{
    enum { MAX_BLOCKS = 16, MIN_VECTORS = 2, MIN_FMAS = 1 << 17 }; // the last two of a block
    const struct device_caps *caps = sig->caps;
    const int64_t channels = attncl__fused_step_channels(sig);
    const int64_t limits[] = {
        2 * (int64_t)caps->compute_units,
        ceil_div(channels, MIN_VECTORS * (int64_t)caps->vector_width),
        ceil_div(channels, inner_of(sig)->granule(sig)),
        ceil_div(attncl__fused_step_rows(sig) * weights_count(sig), MIN_FMAS),
    };
    int64_t n = MAX_BLOCKS;

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; ++i)
        n = limits[i] < n ? limits[i] : n;
    return (int32_t)ceil_div(channels, block_width(sig, n > 0 ? n : 1));
}

static int64_t local_floats(const struct op_sig *sig)
{
    const struct inner_step *inner = inner_of(sig);
    const int64_t m = attncl__fused_step_rows(sig);

    return m * attncl__fused_step_width(sig) +
           m * projected(sig, block_width(sig, params_of(sig)->n_blocks)) +
           (inner->local_floats ? inner->local_floats(sig) : 0);
}

bool attncl__fused_step_supported(const struct op_sig *sig)
{
    enum { MAX_WIDTH = 4096 }; // rows that stay in the second-level cache
    const struct device_caps *caps = sig->caps;
    const int64_t m = attncl__fused_step_rows(sig), d = attncl__fused_step_width(sig);
    const int64_t vw = caps->vector_width;
    const int64_t widths[] = {attncl__fused_step_channels(sig), d, sig->in[FUSED_WO].dim[0]};

    if (caps->variant != VARIANT_CPU || vw < 4 || caps->max_loop_iterations || m < 1 ||
        m > SKINNY_GEMM_MAX_ROWS || d > MAX_WIDTH ||
        inner_of(sig)->granule(sig) / attncl__fused_step_kv_group(sig) % vw ||
        !attncl__desc_present(&sig->in[FUSED_NORM_B]) ||
        attncl__is_quantised(sig->in[FUSED_WO].dtype) || sig->in[FUSED_KEYS].dtype == ATTNCL_U8)
        return false;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; ++i)
        if (widths[i] < 1 || widths[i] % vw || widths[i] > INT32_MAX / 16)
            return false;
    for (int i = 0; i < inner_of(sig)->n_projections; ++i)
        if (sig->in[FUSED_WQ + 2 * i].dtype != sig->in[FUSED_WO].dtype)
            return false;
    for (int i = 0; i < sig->n_in; ++i)
        if (attncl__desc_present(&sig->in[i]) &&
            (sig->in[i].start != 0 || !attncl__desc_contiguous(&sig->in[i])))
            return false;
    return (size_t)local_floats(sig) * sizeof(float) <= caps->local_bytes / 2;
}

// -- launch

// The arguments that all kernels share, in the order of QKV_PARAMS (cl/fused/channel_block.clh).
static void add_shared(const struct device_caps *caps, const struct op_call *call,
                       struct arg_list *to)
{
    const struct op_sig *sig = &call->sig;
    const struct fused_step_fwd_params *params = sig->params;
    const int n_projections = inner_of(sig)->n_projections;
    const int64_t m = attncl__fused_step_rows(sig), d = attncl__fused_step_width(sig);
    const int64_t width = block_width(sig, params->n_blocks);
    const int64_t kv_group = attncl__fused_step_kv_group(sig);
    const bool has_partials = attncl__desc_present(&sig->in[FUSED_PARTIALS]);
    int has_bias = 0;

    for (int i = 0; i < n_projections; ++i)
        has_bias |= attncl__desc_present(&sig->in[FUSED_BQ + 2 * i]) << i;
    arg_list_add(
        to,
        ARGS(arg_i32(m), arg_i32(d), arg_i32(has_partials ? sig->in[FUSED_PARTIALS].dim[0] : 0),
             arg_i32(attncl__desc_present(&sig->in[FUSED_PARTIALS_BIAS])),
             arg_mem(call->in[FUSED_X]), arg_mem(call->in[FUSED_PARTIALS]),
             arg_mem(call->in[FUSED_PARTIALS_BIAS]), arg_mem(call->in[FUSED_NORM_W]),
             arg_mem(call->in[FUSED_NORM_B]), arg_f32(params->eps),
             arg_mem(call->out[FUSED_RESIDUAL_OUT]), arg_i32(attncl__fused_step_channels(sig)),
             arg_i32(width), arg_i32(sig->in[FUSED_WO].dim[0]),
             arg_i32(attncl__skinny_gemm_prefetch_rows(caps, m, d, sig->in[FUSED_WO].dtype)),
             arg_i32(attncl__skinny_gemm_prefetch_rows(caps, m, width, sig->in[FUSED_WO].dtype)),
             arg_i32(has_bias)));
    for (int i = 0; i < 2 * n_projections; ++i)
        arg_list_add(to, ARGS(arg_mem(call->in[FUSED_WQ + i])));
    arg_list_add(to, ARGS(arg_mem(call->in[FUSED_WO]), arg_mem(call->out[FUSED_PARTIAL_SUMS]),
                          arg_local((size_t)(m * d) * sizeof(float))));
    for (int i = 0; i < n_projections; ++i)
        arg_list_add(to,
                     ARGS(arg_local((size_t)(m * (i ? width / kv_group : width)) * sizeof(float))));
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    const struct op_sig *sig = &call->sig;
    const struct fused_step_fwd_params *params = sig->params;
    const struct inner_step *inner = inner_of(sig);
    const int64_t channels = attncl__fused_step_channels(sig);
    struct kspec spec = kspec_begin(inner->file, inner->kernel);
    struct arg_list args = {.n = 0};

    REQUIRE(attncl__fused_step_supported(sig) &&
                ceil_div(channels, block_width(sig, params->n_blocks)) == params->n_blocks,
            ATTNCL_ERR_UNSUPPORTED,
            "a step of %s with %" PRId64 " rows and %" PRId64
            " channels in %d blocks cannot be one launch on this device",
            inner->name, attncl__fused_step_rows(sig), channels, (int)params->n_blocks);
    attncl__skinny_gemm_macros(l->caps, attncl__fused_step_rows(sig), attncl__fused_step_width(sig),
                               sig->in[FUSED_WO].dtype, &spec);
    kspec_set_wtype(&spec, sig->in[FUSED_WO].dtype);
    if (inner->macros)
        inner->macros(sig, &spec);
    add_shared(l->caps, call, &args);
    if (inner->args)
        inner->args(call, &args);
    return attncl__launch(l, &spec, grid_1d(params->n_blocks, 1), args.arg, args.n);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double m = (double)attncl__fused_step_rows(sig),
                 d = (double)attncl__fused_step_width(sig);
    const double weights = (double)weights_count(sig);

    *flop_ret = m * (2 * weights + 8 * d);
    *bytes_ret = (double)attncl_dtype_bytes(sig->in[FUSED_WO].dtype) * weights +
                 4 * (2 * m * d + (double)attncl__desc_count(&sig->out[FUSED_PARTIAL_SUMS]));
    if (inner_of(sig)->cost)
        inner_of(sig)->cost(sig, flop_ret, bytes_ret);
}

const struct op_class attncl__op_fused_step_fwd = {
    .name = OP_CLASS(fused_step_fwd),
    .in = OP_IN(
        {"x", F32, "... D"}, {"norm_weight", F32, "D"}, {"norm_bias", F32, "D"},
        {"partials", F32 | OPTIONAL, "S M D"}, {"partials_bias", F32 | OPTIONAL, "D"},
        {"wq", STORED, "C D"}, {"bq", F32 | OPTIONAL, "C"}, {"wk", STORED | OPTIONAL, "K D"},
        {"bk", F32 | OPTIONAL, "K"}, {"wv", STORED | OPTIONAL, "K D"}, {"bv", F32 | OPTIONAL, "K"},
        {"wo", STORED, "E C"}, {"pos_bias", F32 | OPTIONAL, NULL},
        {"position", I32 | OPTIONAL, NULL}, {"sums", F32 | STATE | OPTIONAL, NULL},
        {"keys", STORED | STATE | OPTIONAL, NULL}, {"values", STORED | STATE | OPTIONAL, NULL}),
    .out = OP_OUT({"partial_sums", F32, "N M E"}, {"residual", F32 | OPTIONAL, "... D"}),
    .infer = infer,
    .launch = launch,
    .cost = cost,
};
