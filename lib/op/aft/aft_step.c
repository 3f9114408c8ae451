// SPDX-License-Identifier: MIT
//
// One position t of causal AFT-local or AFT-conv, for decoding.
//
//   y = sigmoid(q) sum_j p_j v_j,   p_j = softmax over j <= t of (w(t, j) + k_j)
//
// State: (maximum, denominator, numerator) over the keys that have left the window, and the last
// `window` keys and values in two rings of type F32, F16 or BF16.  The position is read on the
// device, so one compiled step serves every position (cl/aft/aft_step.cl).

#include "op/aft/aft.h"
#include "op/row_launch.h"

enum { IN_Q, IN_K, IN_V, IN_BIAS, IN_POSITION, IN_SUMS, IN_KEYS, IN_VALUES };

static int64_t window_of(const struct op_sig *sig)
{
    const struct aft_step_fwd_params *p = sig->params;
    return p->per_head ? (sig->in[IN_BIAS].dim[1] + 1) / 2 : p->window;
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct aft_step_fwd_params *p = sig->params;

    REQUIRE(p->window >= 0 && p->window <= AFT_MAX_LENGTH, ATTNCL_ERR_ARGUMENT,
            "window is %d, expected 0 to %d", p->window, AFT_MAX_LENGTH);
    TRY(attncl__check_shape(sig, IN_K, p->per_head ? "B H" : "B C"));
    TRY(attncl__aft_check_bias(sig, IN_BIAS, p->per_head));
    return attncl__aft_check_state(sig, IN_KEYS, window_of(sig));
}

size_t attncl__aft_step_group_size(const struct device_caps *caps)
{
    const size_t wanted = caps->group_multiple > 32 ? caps->group_multiple : 32;
    return wanted < caps->max_group ? wanted : caps->max_group;
}

// *n_ret: the limit of positions.
static struct aft_variant variant_of(const struct op_sig *sig, int64_t *n_ret)
{
    const struct aft_step_fwd_params *p = sig->params;
    const struct tensor_desc *w = &sig->in[IN_BIAS];
    const bool biased = attncl__desc_present(w) && p->window > 0; // otherwise no ring is needed

    *n_ret = biased && !p->per_head ? w->dim[0] : INT32_MAX;
    if (p->per_head)
        return attncl__aft_filter_variant(w, sig->in[IN_K].dim[1]);
    return (struct aft_variant){.window = biased ? p->window : 0, .bias_row = *n_ret};
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    int64_t n;
    const struct aft_variant variant = variant_of(&call->sig, &n);
    const struct tensor_desc *in = call->sig.in, *q = &in[IN_Q], *k = &in[IN_K], *v = &in[IN_V];
    const bool cpu = l->caps->variant == VARIANT_CPU;
    const bool fold = variant.heads == 0 && attncl__desc_contiguous(q) &&
                      attncl__desc_contiguous(k) && attncl__desc_contiguous(v);
    const int64_t all = q->dim[0] * q->dim[1], heads = variant.heads > 0 ? variant.heads : 1;
    const int64_t row = fold ? all : q->dim[1], channels = row / heads;
    const unsigned vw = cpu ? l->caps->vector_width : 1;
    const size_t local = cpu ? 1 : attncl__aft_step_group_size(l->caps);
    struct kspec spec = kspec_begin("aft/aft_step.cl", "aft_step_fwd");
    kspec_set_vw_ls(&spec, vw, local);
    kspec_int(&spec, "PER_HEAD", variant.heads > 0);
    kspec_set_stored(&spec, "CACHE_TYPE", in[IN_KEYS].dtype);

    if (all == 0)
        return ATTNCL_OK;
    TRY(attncl__check_loops(l->caps, spec.kernel, 2 * variant.window + 8)); // over the ring's keys
    const int64_t lanes = ceil_div(channels, vw) * (all / row);
    return attncl__launch(
        l, &spec, grid_2d(ceil_div(lanes, (int64_t)local), heads, local, 1),
        ARGS(ROW_ARGS(call, IN_Q), ROW_ARGS(call, IN_K), ROW_ARGS(call, IN_V),
             arg_mem(call->out[0]), arg_mem(call->in[IN_BIAS]), arg_i64(variant.bias_start),
             arg_i64(variant.bias_row), arg_i64(variant.bias_head), arg_i32(n),
             arg_mem(call->in[IN_POSITION]), arg_mem(call->in[IN_SUMS]), arg_mem(call->in[IN_KEYS]),
             arg_mem(call->in[IN_VALUES]), arg_i32(channels), arg_i32(row), arg_i64(all),
             arg_i32(lanes), arg_i32(variant.window)));
}

// Per key in the window: its exponential, and the sums.
static void fwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double count = (double)attncl__desc_count(&sig->out[0]);
    const double window = (double)window_of(sig);

    *flop_ret = count * (40 + 20 * window);
    *bytes_ret = count * (4 * 12 + 3 * (double)attncl_dtype_bytes(sig->in[IN_KEYS].dtype) * window);
}

const struct op_class attncl__op_aft_step_fwd = {
    .name = OP_CLASS(aft_step_fwd),
    .in = OP_IN({"q", F32 | STRIDED, "B C"}, {"k", F32 | STRIDED, NULL},
                {"v", F32 | STRIDED, "B C"}, {"pos_bias", F32 | OPTIONAL, NULL},
                {"position", I32, "1"}, {"sums", F32 | STATE, "3 A"},
                {"keys", STORED | STATE, "W A"}, {"values", SAME_TYPE | STATE, "W A"}),
    .out = OP_OUT({"y", F32, "B C"}),
    .infer = fwd_infer,
    .launch = fwd_launch,
    .cost = fwd_cost,
};
