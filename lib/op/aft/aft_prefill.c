// SPDX-License-Identifier: MIT
//
// Decoding state of a prompt for AFT-local and AFT-conv: the state that steps 0 .. t of aft_step.c
// would leave, from all keys and values at once (cl/aft/aft_prefill.cl).  With 16-bit rings the
// caller rounds keys and values first, as those that have left the window were rounded.

#include "op/aft/aft.h"
#include "op/row_launch.h"

enum { IN_K, IN_V, IN_LAST, IN_SUMS, IN_KEYS, IN_VALUES };

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct aft_prefill_fwd_params *p = sig->params;

    TRY(attncl__check_shape(sig, IN_K, p->per_head ? "T B H" : "T B C"));
    if (p->per_head)
        TRY(attncl__aft_check_heads(sig));
    TRY(attncl__check_axes(sig, "T", 1, AFT_MAX_LENGTH));
    REQUIRE(p->window >= 0 && p->window <= AFT_MAX_LENGTH, ATTNCL_ERR_ARGUMENT,
            "window is %d, expected 0 to %d", p->window, AFT_MAX_LENGTH);
    return attncl__aft_check_state(sig, IN_KEYS, p->window);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct aft_prefill_fwd_params *p = call->sig.params;
    const struct tensor_desc *in = call->sig.in, *k = &in[IN_K], *v = &in[IN_V];
    const bool cpu = l->caps->variant == VARIANT_CPU;
    const bool fold = !p->per_head && attncl__desc_contiguous(k) && attncl__desc_contiguous(v);
    const int64_t n = v->dim[0], all = v->dim[1] * v->dim[2];
    const int64_t heads = p->per_head ? k->dim[2] : 1;
    const int64_t row = fold ? all : v->dim[2], channels = row / heads;
    const int64_t batch = fold ? 1 : v->dim[1];
    const unsigned vw = cpu ? l->caps->vector_width : 1;
    const size_t local = cpu ? 1 : attncl__aft_step_group_size(l->caps);
    struct kspec spec = kspec_begin("aft/aft_prefill.cl", "aft_prefill_fwd");

    kspec_set_vw_ls(&spec, vw, local);
    kspec_int(&spec, "PER_HEAD", p->per_head != 0);
    kspec_set_stored(&spec, "CACHE_TYPE", in[IN_KEYS].dtype);
    if (all == 0)
        return ATTNCL_OK;
    TRY(attncl__check_loops(l->caps, spec.kernel, 3 * n + 8));
    const int64_t lanes = ceil_div(channels, vw) * batch;
    const int64_t k_row = fold ? all : attncl__rows(k).stride;
    const int64_t v_row = fold ? all : attncl__rows(v).stride;
    return attncl__launch(l, &spec, grid_2d(ceil_div(lanes, (int64_t)local), heads, local, 1),
                          ARGS(arg_mem(call->in[IN_K]), arg_i64(k->start), arg_i64(k_row),
                               arg_mem(call->in[IN_V]), arg_i64(v->start), arg_i64(v_row),
                               arg_mem(call->in[IN_LAST]), arg_mem(call->in[IN_SUMS]),
                               arg_mem(call->in[IN_KEYS]), arg_mem(call->in[IN_VALUES]), arg_i32(n),
                               arg_i32(batch), arg_i32(channels), arg_i32(row), arg_i64(all),
                               arg_i32(lanes), arg_i32(p->window)));
}

const struct op_class attncl__op_aft_prefill_fwd = {
    .name = OP_CLASS(aft_prefill_fwd),
    .in = OP_IN({"k", F32 | STRIDED, NULL}, {"v", F32 | STRIDED, "T B C"}, {"last", I32, "1"},
                {"sums", F32 | STATE, "3 A"}, {"keys", STORED | STATE, "W A"},
                {"values", SAME_TYPE | STATE, "W A"}),
    .infer = fwd_infer,
    .launch = fwd_launch,
    .flop = "20TBC", // per key: its exponential, and the sums
    .moved =
        {[IN_K] = "2TBC", [IN_LAST] = "0", [IN_SUMS] = "0", [IN_KEYS] = "0", [IN_VALUES] = "0"},
};
