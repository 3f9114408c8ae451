// SPDX-License-Identifier: MIT
// Fused decode steps (fused.h).

#include "base/quantised.h"
#include "op/attention/attention_split.h"
#include "op/fused/fused.h"

// The differences between the kinds of steps.
struct inner_step {
    const char *file, *kernel;
    const char *name;  // in messages
    int n_projections; // 1 or 3
    void (*macros)(const struct op_sig *sig, struct kspec *spec);
    // Appends the kernel's own arguments.
    void (*args)(const struct op_call *call, struct arg_list *args);
    // Adds operations and bytes of the inner step.
    void (*cost)(const struct op_sig *sig, double *flop, double *bytes);
};

// d, m and C of fused.h.
static int64_t width_of(const struct op_sig *sig)
{
    return sig->in[FUSED_NORM_W].dim[0];
}

static int64_t rows_of(const struct op_sig *sig)
{
    const int64_t d = width_of(sig);
    return d > 0 ? attncl__desc_count(&sig->in[FUSED_X]) / d : 0;
}

static int64_t channels_of(const struct op_sig *sig)
{
    return sig->in[FUSED_WQ].dim[0];
}

static const struct fused_step_fwd_params *params_of(const struct op_sig *sig)
{
    return sig->params;
}

// -- AFT without heads (aft_step.c)

static void set_aft_macros(const struct op_sig *sig, struct kspec *spec)
{
    kspec_set_stored(spec, "CACHE_TYPE", sig->in[FUSED_KEYS].dtype);
}

static void add_aft_args(const struct op_call *call, struct arg_list *to)
{
    const struct fused_step_fwd_params *params = call->sig.params;
    const struct tensor_desc *pos_bias = &call->sig.in[FUSED_POS_BIAS];
    const bool biased = attncl__desc_present(pos_bias) && params->aft.window > 0;

    arg_list_add(to, ARGS(arg_mem(call->in[FUSED_POS_BIAS]),
                          arg_i32(biased ? pos_bias->dim[0] : INT32_MAX),
                          arg_i32(biased ? params->aft.window : 0),
                          arg_mem(call->in[FUSED_POSITION]), arg_mem(call->in[FUSED_SUMS]),
                          arg_mem(call->in[FUSED_KEYS]), arg_mem(call->in[FUSED_VALUES])));
}

static void add_aft_cost(const struct op_sig *sig, double *flop, double *bytes)
{
    const double count = (double)(rows_of(sig) * channels_of(sig));

    *flop += count * (40 + 20 * (double)params_of(sig)->aft.window);
    *bytes += count * (4 * 12 + 3 * (double)attncl_dtype_bytes(sig->in[FUSED_KEYS].dtype) *
                                    (double)params_of(sig)->aft.window);
}

// -- attention (attention_step.c): a block has whole groups of heads that share their keys

static int64_t head_width(const struct op_sig *sig)
{
    return channels_of(sig) / params_of(sig)->attention.n_heads;
}

static int64_t group_width(const struct op_sig *sig)
{
    return head_width(sig) * attncl__fused_step_kv_group(sig);
}

// Local memory of a group of heads: running sums, and two floats of state per head.
static int64_t attention_floats(const struct op_sig *sig)
{
    return group_width(sig) + 2 * attncl__fused_step_kv_group(sig);
}

static void set_attention_macros(const struct op_sig *sig, struct kspec *spec)
{
    const struct fused_step_fwd_params *params = sig->params;

    kspec_set_stored(spec, "CACHE_TYPE", sig->in[FUSED_KEYS].dtype);
    kspec_int(spec, "SOFTCAP", params->attention.softcap > 0);
    kspec_int(spec, "SLOTS", sig->in[FUSED_POSITION].dim[0] > 1);
    kspec_int(spec, "RING", params->attention.ring);
    kspec_int(spec, "SLOPES", attncl__desc_present(&sig->in[FUSED_POS_BIAS]));
}

static int64_t attention_span(const struct op_sig *sig)
{
    return attncl__step_span(params_of(sig)->attention.window, sig->in[FUSED_KEYS].dim[0]);
}

static void add_attention_args(const struct op_call *call, struct arg_list *to)
{
    const struct op_sig *sig = &call->sig;
    const struct fused_step_fwd_params *params = sig->params;

    arg_list_add(to, ARGS(arg_i32(head_width(sig)), arg_i32(attncl__fused_step_kv_group(sig)),
                          arg_i32(sig->in[FUSED_KEYS].dim[0]), arg_i32(attention_span(sig)),
                          arg_f32(params->attention.scale), arg_f32(params->attention.softcap),
                          arg_mem(call->in[FUSED_POSITION]), arg_mem(call->in[FUSED_KEYS]),
                          arg_mem(call->in[FUSED_VALUES]),
                          arg_local((size_t)attention_floats(sig) * sizeof(float)),
                          arg_mem(call->in[FUSED_POS_BIAS])));
}

// The cost of the last position; only the device knows the actual one.
static void add_attention_cost(const struct op_sig *sig, double *flop, double *bytes)
{
    const double count = (double)attention_span(sig) * (double)(rows_of(sig) * channels_of(sig));

    *flop += 4 * count;
    *bytes += 2 * (double)attncl_dtype_bytes(sig->in[FUSED_KEYS].dtype) * count /
              (double)attncl__fused_step_kv_group(sig);
}

// -- a feed-forward network: a block has hidden units

static void set_ffn_macros(const struct op_sig *sig, struct kspec *spec)
{
    kspec_int(spec, "ACT", params_of(sig)->activation);
}

static const struct inner_step inner_steps[N_FUSED_STEPS] = {
    [FUSED_AFT] = {.file = "fused/fused_step_cpu_aft.cl",
                   .kernel = "fused_step_cpu_aft",
                   .name = "AFT",
                   .n_projections = 3,
                   .macros = set_aft_macros,
                   .args = add_aft_args,
                   .cost = add_aft_cost},
    [FUSED_ATTENTION] = {.file = "fused/fused_step_cpu_attention.cl",
                         .kernel = "fused_step_cpu_attention",
                         .name = "attention",
                         .n_projections = 3,
                         .macros = set_attention_macros,
                         .args = add_attention_args,
                         .cost = add_attention_cost},
    [FUSED_FFN] = {.file = "fused/fused_step_cpu_ffn.cl",
                   .kernel = "fused_step_cpu_ffn",
                   .name = "a feed-forward network",
                   .n_projections = 1,
                   .macros = set_ffn_macros},
};

static const struct inner_step *inner_of(const struct op_sig *sig)
{
    return &inner_steps[params_of(sig)->kind];
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

// A block's width is a multiple of this: the heads that share a key head, or a vector.
static int64_t block_multiple(const struct op_sig *sig)
{
    return params_of(sig)->kind == FUSED_ATTENTION ? group_width(sig) : sig->caps->vector_width;
}

static int64_t block_width(const struct op_sig *sig, int64_t n_blocks)
{
    const int64_t multiple = block_multiple(sig);
    return ceil_div(ceil_div(channels_of(sig), multiple), n_blocks) * multiple;
}

// Channels of all projections, for `channels` channels of q.
static int64_t count_projected(const struct op_sig *sig, int64_t channels)
{
    return channels +
           (inner_of(sig)->n_projections - 1) * (channels / attncl__fused_step_kv_group(sig));
}

static int64_t count_weights(const struct op_sig *sig)
{
    const int64_t channels = channels_of(sig);
    return count_projected(sig, channels) * width_of(sig) + channels * sig->in[FUSED_WO].dim[0];
}

// Two channel blocks per compute unit, for load balance; but a block has at least MIN_VECTORS vectors
// and MIN_FMAS FMAs, which take about as long as starting another compute unit.
int32_t attncl__fused_step_blocks(const struct op_sig *sig)
{
    enum { MAX_BLOCKS = 16, MIN_VECTORS = 2, MIN_FMAS = 1 << 17 };
    const struct device_caps *caps = sig->caps;
    const int64_t channels = channels_of(sig);
    const int64_t limits[] = {
        2 * (int64_t)caps->compute_units,
        ceil_div(channels, MIN_VECTORS * (int64_t)caps->vector_width),
        ceil_div(channels, block_multiple(sig)),
        ceil_div(rows_of(sig) * count_weights(sig), MIN_FMAS),
    };
    int64_t n = MAX_BLOCKS;

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; ++i)
        n = limits[i] < n ? limits[i] : n;
    return (int32_t)ceil_div(channels, block_width(sig, n > 0 ? n : 1));
}

static int64_t local_floats(const struct op_sig *sig)
{
    const int64_t m = rows_of(sig);

    return m * (width_of(sig) + count_projected(sig, block_width(sig, params_of(sig)->n_blocks))) +
           (params_of(sig)->kind == FUSED_ATTENTION ? attention_floats(sig) : 0);
}

bool attncl__fused_step_supported(const struct op_sig *sig)
{
    enum { MAX_WIDTH = 4096 }; // rows that stay in the second-level cache
    const struct device_caps *caps = sig->caps;
    const int64_t m = rows_of(sig), d = width_of(sig), vw = caps->vector_width;
    const int64_t widths[] = {channels_of(sig), d, sig->in[FUSED_WO].dim[0]};

    if (caps->variant != VARIANT_CPU || vw < 4 || caps->max_loop_iterations || m < 1 ||
        m > SKINNY_GEMM_MAX_ROWS || d > MAX_WIDTH ||
        block_multiple(sig) / attncl__fused_step_kv_group(sig) % vw ||
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

// Arguments shared by all kernels, in the order of QKV_PARAMS (cl/fused/channel_block.clh).
static void add_shared_args(const struct device_caps *caps, const struct op_call *call,
                            struct arg_list *to)
{
    const struct op_sig *sig = &call->sig;
    const struct fused_step_fwd_params *params = sig->params;
    const int n_projections = inner_of(sig)->n_projections;
    const int64_t m = rows_of(sig), d = width_of(sig);
    const int64_t width = block_width(sig, params->n_blocks);
    const int64_t kv_group = attncl__fused_step_kv_group(sig);
    int has_bias = 0;

    for (int i = 0; i < n_projections; ++i)
        has_bias |= attncl__desc_present(&sig->in[FUSED_BQ + 2 * i]) << i;
    arg_list_add(
        to,
        ARGS(arg_i32(m), arg_i32(d), arg_i32(sig->in[FUSED_PARTIALS].dim[0]),
             arg_i32(attncl__desc_present(&sig->in[FUSED_PARTIALS_BIAS])),
             arg_mem(call->in[FUSED_X]), arg_mem(call->in[FUSED_PARTIALS]),
             arg_mem(call->in[FUSED_PARTIALS_BIAS]), arg_mem(call->in[FUSED_NORM_W]),
             arg_mem(call->in[FUSED_NORM_B]), arg_f32(params->eps),
             arg_mem(call->out[FUSED_RESIDUAL_OUT]), arg_i32(channels_of(sig)), arg_i32(width),
             arg_i32(sig->in[FUSED_WO].dim[0]),
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
    const int64_t channels = channels_of(sig);
    struct kspec spec = kspec_begin(inner->file, inner->kernel);
    struct arg_list args = {.n = 0};

    REQUIRE(attncl__fused_step_supported(sig) &&
                ceil_div(channels, block_width(sig, params->n_blocks)) == params->n_blocks,
            ATTNCL_ERR_UNSUPPORTED,
            "a step of %s with %" PRId64 " rows and %" PRId64
            " channels in %d blocks cannot be one launch on this device",
            inner->name, rows_of(sig), channels, (int)params->n_blocks);
    attncl__skinny_gemm_add_macros(l->caps, rows_of(sig), width_of(sig), sig->in[FUSED_WO].dtype,
                                   &spec);
    kspec_set_wtype(&spec, sig->in[FUSED_WO].dtype);
    inner->macros(sig, &spec);
    add_shared_args(l->caps, call, &args);
    if (inner->args)
        inner->args(call, &args);
    return attncl__launch(l, &spec, grid_1d(params->n_blocks, 1), args.arg, args.n);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double m = (double)rows_of(sig), d = (double)width_of(sig),
                 weights = (double)count_weights(sig);

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
