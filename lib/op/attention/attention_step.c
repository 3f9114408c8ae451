// SPDX-License-Identifier: MIT
//
// One position t of causal multi-head attention, for decoding.
//
//   keys[t] = k, values[t] = v, in the caches' type: F32, F16, BF16 or U8 (8-bit rows, q8_row.h)
//   y_bh = sum over t - window < j <= t of p_j values[j]_bg,   p_j = softmax of s_j,  s_j = scale * (q_bh . keys[j]_bg)
//
// Window 0 is unlimited.  With a soft cap, scores are softcap tanh(s_j / softcap).  Slopes [H] add
// slope_h (j - t).  The heads of k are as wide as those of q: head g of G serves query heads
// g H / G .. (g + 1) H / G - 1.
//
// All batch entries share a position, or each has its own; an entry with a negative position is
// idle: it stores nothing and gets zeros.  The position is read on the device, so one compiled step
// serves every position (cl/attention/attention_step_cpu.cl, attention_split.c).
//
// A ring's caches have fewer rows, L, than there are positions: row t mod L is position t's, and y is over the last L positions,
// in the order of rows.  Such a step has no window and no slopes.
//
// Heads of q and k may first be normalised, y / sqrt(mean y^2 + eps) * norm, and rotated by row t of a table, as
// by rotate_fwd (view/rotate.c).
//
// If n_parts is not 0 (fusion sets it in the GPU variant), y holds the parts' unmerged results,
// [B, H, n_parts, 2 + D].

#include "op/attention/attention_split.h"
#include "op/attention/q8_row.h"
#include "op/row_launch.h"

enum { MAX_LENGTH = 1 << 30 }; // kernels count B C and positions with ints

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct attention_step_fwd_params *params = sig->params;
    int64_t *of = sig->axes->of;

    TRY(attncl__check_axes(sig, "LCK", 1, MAX_LENGTH));
    TRY(attncl__check_product(sig, "BC", MAX_LENGTH));
    REQUIRE(of['N'] == 1 || of['N'] == of['B'], ATTNCL_ERR_SHAPE,
            "position has N = %" PRId64 ", must be 1 or B = %" PRId64, of['N'], of['B']);
    REQUIRE(params->window >= 0, ATTNCL_ERR_ARGUMENT, "window is %d, at least 0", params->window);
    REQUIRE(!params->ring || params->window == 0, ATTNCL_ERR_ARGUMENT,
            "window is %d, must be 0 with a ring, whose rows are the window", params->window);
    REQUIRE(!params->ring || !attncl__desc_present(&sig->in[STEP_SLOPES]), ATTNCL_ERR_ARGUMENT,
            "slopes are given, a ring of L = %" PRId64 " rows has none", of['L']);
    TRY(attncl__check_softcap(params->softcap));
    REQUIRE(params->n_heads >= 1 && of['C'] % params->n_heads == 0, ATTNCL_ERR_SHAPE,
            "q has C = %" PRId64 ", which cannot be cut into H = %d heads", of['C'],
            params->n_heads);
    const int64_t width = of['C'] / params->n_heads;
    REQUIRE(of['K'] % width == 0 && of['C'] % of['K'] == 0, ATTNCL_ERR_SHAPE,
            "k has K = %" PRId64 ", which H = %d heads of width %" PRId64 " cannot share", of['K'],
            params->n_heads, width);
    const int64_t row = attncl__cache_row(sig->in[STEP_KEYS].dtype, of['K'], of['K'] / width);
    REQUIRE(of['R'] == row, ATTNCL_ERR_SHAPE, "keys has R = %" PRId64 ", must be %" PRId64, of['R'],
            row);
    of['H'] = params->n_heads;
    TRY(attncl__check_head_forms(sig, STEP_FORMS, width, params->eps));
    if (attncl__desc_present(&sig->in[STEP_SLOPES]))
        TRY(attncl__check_shape(sig, STEP_SLOPES, "H"));
    of['P'] = params->n_parts;
    of['W'] = 2 + width;
    return attncl__make_output(sig, 0, params->n_parts ? "B H P W" : "B C");
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const struct attention_step_fwd_params *params = sig->params;
    const struct tensor_desc *q = &sig->in[STEP_Q], *keys = &sig->in[STEP_KEYS];

    *bytes_ret = 0;
    return params->n_parts
               ? ATTNCL_OK
               : attncl__attention_split_scratch(sig->caps, q->dim[0] * params->n_heads,
                                                 attncl__step_span(params->window, keys->dim[0]),
                                                 q->dim[1] / params->n_heads, bytes_ret);
}

static bool has_slots(const struct op_sig *sig)
{
    return sig->in[STEP_POSITION].dim[0] > 1;
}

static struct step_rows step_rows(const struct op_call *call, int i)
{
    const struct tensor_desc *d = &call->sig.in[i];
    return (struct step_rows){call->in[i], d->start, attncl__rows(d).stride};
}

static attncl_status launch_split(struct launcher *l, const struct op_call *call)
{
    const struct attention_step_fwd_params *params = call->sig.params;
    const struct tensor_desc *q = &call->sig.in[STEP_Q], *keys = &call->sig.in[STEP_KEYS];
    const int64_t width = q->dim[1] / params->n_heads, row = keys->dim[2];
    const struct head_rows cache = {.memory = q->dim[0] * row, .batch = row, .head = width};
    struct attention_split p = {
        .q = step_rows(call, STEP_Q),
        .new_key = step_rows(call, STEP_K),
        .new_value = step_rows(call, STEP_V),
        .stores = true,
        .slots = has_slots(&call->sig),
        .ring = params->ring,
        .dtype = keys->dtype,
        .keys = cache,
        .values = cache,
        .position = call->in[STEP_POSITION],
        .y = call->out[0],
        .scratch = call->scratch,
        .batch = q->dim[0],
        .n_heads = params->n_heads,
        .kv_group = q->dim[1] / call->sig.in[STEP_K].dim[1],
        .width = width,
        .limit = keys->dim[0],
        .span = attncl__step_span(params->window, keys->dim[0]),
        .n_parts = params->n_parts,
        .scale = params->scale,
        .softcap = params->softcap,
        .slopes = call->in[STEP_SLOPES],
        .forms = attncl__head_forms(call, STEP_FORMS, params->half, params->eps),
    };
    p.keys.mem = call->in[STEP_KEYS];
    p.values.mem = call->in[STEP_VALUES];
    return attncl__attention_split_launch(l, &p);
}

// CPU variant: query heads per work-item, which read each key once for all of them.  All heads that
// share a key head, unless compute units would idle.
static int64_t choose_heads_per_item(const struct device_caps *caps, int64_t n_heads,
                                     int64_t kv_group, size_t head_bytes)
{
    int64_t n = kv_group;

    while (n > 1 && (kv_group % n != 0 || n_heads / n < (int64_t)caps->compute_units ||
                     (size_t)n * head_bytes > caps->local_bytes / 2))
        --n;
    return n;
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct attention_step_fwd_params *params = call->sig.params;
    const struct tensor_desc *q = &call->sig.in[STEP_Q], *keys = &call->sig.in[STEP_KEYS];
    const int64_t vw = l->caps->vector_width;
    struct kspec spec = kspec_begin("attention/attention_step_cpu.cl", "attention_step_cpu_fwd");
    const int64_t n_heads = params->n_heads, width = q->dim[1] / n_heads;

    if (attncl__desc_count(q) == 0)
        return ATTNCL_OK;
    if (l->caps->variant == VARIANT_GPU)
        return launch_split(l, call);
    assert(!params->n_parts);
    const int64_t kv_group = q->dim[1] / call->sig.in[STEP_K].dim[1];
    const int64_t span = attncl__step_span(params->window, keys->dim[0]);
    const size_t row_bytes = sizeof(float) * (size_t)(vw * ceil_div(width, vw));
    const size_t head_bytes = 2 * row_bytes + 2 * sizeof(float);
    const struct head_forms forms = attncl__head_forms(call, STEP_FORMS, params->half, params->eps);
    const int64_t at_once =
        choose_heads_per_item(l->caps, q->dim[0] * n_heads, kv_group, head_bytes);
    kspec_set_vw_ls(&spec, (unsigned)vw, 1);
    attncl__set_cache_type(&spec, keys->dtype);
    kspec_int(&spec, "SOFTCAP", params->softcap > 0);
    kspec_int(&spec, "SLOTS", has_slots(&call->sig));
    kspec_int(&spec, "RING", params->ring);
    kspec_int(&spec, "SLOPES", attncl__desc_present(&call->sig.in[STEP_SLOPES]));
    attncl__set_head_forms(&spec, &forms);
    // Per key: its score, and its part of the sums.
    TRY(attncl__check_loops(l->caps, spec.kernel,
                            at_once * (span + 1) * (2 * ceil_div(width, vw) + 8)));
    return attncl__launch(
        l, &spec, grid_1d(q->dim[0] * n_heads / at_once, 1),
        ARGS(ROW_ARGS(call, STEP_Q), ROW_ARGS(call, STEP_K), ROW_ARGS(call, STEP_V),
             arg_mem(call->in[STEP_POSITION]), arg_mem(call->in[STEP_KEYS]),
             arg_mem(call->in[STEP_VALUES]), arg_mem(call->out[0]), arg_i32(q->dim[0]),
             arg_i32(n_heads), arg_i32(kv_group), arg_i32(at_once), arg_i32(width),
             arg_i32(keys->dim[0]), arg_i32(span), arg_f32(params->scale), arg_f32(params->softcap),
             arg_local((size_t)at_once * head_bytes + row_bytes), arg_mem(call->in[STEP_SLOPES]),
             HEAD_FORM_ARGS(&forms)));
}

static double count_keys(const struct op_sig *sig)
{
    const struct attention_step_fwd_params *params = sig->params;
    return (double)attncl__step_span(params->window, sig->in[STEP_KEYS].dim[0]);
}

static void add_softmax(const struct op_sig *sig, double *flop, double *bytes)
{
    const struct attention_step_fwd_params *params = sig->params;
    (void)bytes;
    *flop += 5 * (double)sig->in[STEP_Q].dim[0] * params->n_heads * count_keys(sig);
}

const struct op_class attncl__op_attention_step_fwd = {
    .name = OP_CLASS(attention_step_fwd),
    .in = OP_IN({"q", F32 | STRIDED, "B C"}, {"k", F32 | STRIDED, "B K"},
                {"v", F32 | STRIDED, "B K"}, {"position", I32, "N"},
                {"keys", STORED | OR_U8 | STATE, "L B R"}, {"values", SAME_TYPE | STATE, "L B R"},
                {"slopes", F32 | OPTIONAL, NULL}, HEAD_FORM_INPUTS),
    .out = OP_OUT({"y", F32, NULL}),
    .infer = fwd_infer,
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .flop = "4BpC", // at the last position, which only the device knows
    .pairs = count_keys,
    .cost = add_softmax,
    .moved = {[STEP_KEYS] = "pBR + BR", [STEP_VALUES] = "pBR + BR"},
};
