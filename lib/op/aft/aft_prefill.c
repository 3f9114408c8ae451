// SPDX-License-Identifier: MIT
//
// What decoding with AFT-local or AFT-conv keeps of a prompt: the state that steps 0 .. t of
// aft_step.c would leave, from all keys and values at once (cl/aft/aft_prefill.cl).  Rings of 16 bits: keys and
// values are given rounded, since those that have left the window were.

#include "op/aft/aft_tiling.h"
#include "op/op.h"
#include "op/row_launch.h"

enum { IN_K, IN_V, IN_LAST, IN_SUMS, IN_KEYS, IN_VALUES };

enum { MAX_LENGTH = 1 << 30 }; // of T, of B C and of the window: kernels count them with ints

static attncl_status check_state(const struct op_sig *sig, int64_t all)
{
    static const char *const names[] = {
        [IN_SUMS] = "sums", [IN_KEYS] = "keys", [IN_VALUES] = "values"};
    const struct aft_prefill_fwd_params *p = sig->params;
    const int64_t slots = p->window > 0 ? p->window : 1;

    for (int i = IN_SUMS; i <= IN_VALUES; ++i) {
        const struct tensor_desc *x = &sig->in[i];
        const int64_t rows = i == IN_SUMS ? 3 : slots;
        TRY(i == IN_KEYS ? attncl__check_weights(names[i], x, 2)
                         : attncl__check_input(
                               names[i], x, i == IN_SUMS ? ATTNCL_F32 : sig->in[IN_KEYS].dtype, 2));
        REQUIRE(x->dim[0] == rows && x->dim[1] == all, ATTNCL_ERR_SHAPE,
                "state %s is %s, expected [%" PRId64 ", %" PRId64 "]", names[i], SHAPE(x), rows,
                all);
    }
    return ATTNCL_OK;
}

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct aft_prefill_fwd_params *p = sig->params;
    const struct tensor_desc *k = &sig->in[IN_K], *v = &sig->in[IN_V];

    TRY(attncl__check_input("k", k, ATTNCL_F32, 3));
    TRY(attncl__check_input("v", v, ATTNCL_F32, 3));
    REQUIRE(
        k->dim[0] == v->dim[0] && k->dim[1] == v->dim[1] &&
            (p->per_head ? k->dim[2] > 0 && v->dim[2] % k->dim[2] == 0 : k->dim[2] == v->dim[2]),
        ATTNCL_ERR_SHAPE, "k is %s, v is %s", SHAPE(k), SHAPE(v));
    REQUIRE(v->dim[0] >= 1 && v->dim[0] <= MAX_LENGTH && v->dim[1] <= MAX_LENGTH &&
                v->dim[2] <= MAX_LENGTH && v->dim[1] * v->dim[2] <= MAX_LENGTH,
            ATTNCL_ERR_SHAPE, "v is %s: T must be 1 to %d, B C at most as much", SHAPE(v),
            MAX_LENGTH);
    REQUIRE(p->window >= 0 && p->window <= MAX_LENGTH, ATTNCL_ERR_ARGUMENT,
            "window is %d, expected 0 to %d", p->window, MAX_LENGTH);
    TRY(attncl__check_index("last", &sig->in[IN_LAST]));
    return check_state(sig, v->dim[1] * v->dim[2]);
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
    const size_t local = cpu ? 1 : attncl__aft_step_group(l->caps);
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

// Each key: its exponential, and the sums.
static void fwd_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double count = (double)attncl__desc_count(&sig->in[IN_V]);

    *flop_ret = 20 * count;
    *bytes_ret = 4 * 3 * count;
}

const struct op_class attncl__op_aft_prefill_fwd = {
    .name = OP_CLASS_MASKS(aft_prefill_fwd, 6, 0),
    .strided = 1u << IN_K | 1u << IN_V,
    .state = 1u << IN_SUMS | 1u << IN_KEYS | 1u << IN_VALUES,
    .infer = fwd_infer,
    .launch = fwd_launch,
    .cost = fwd_cost,
};
