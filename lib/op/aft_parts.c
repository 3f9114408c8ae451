// SPDX-License-Identifier: MIT
//
// One position of an AFT layer without heads, from the layer norm to the output map, one launch:
//
//   x' = x + bias + sum_s before[s]           the residual stream, whose last addend is in parts
//   q, k, v = LN(x') Wq^T + bq, ...           then a step of AFT (aft_step.c)
//   sum_s parts[s] = y Wo^T
//
// Channels are cut into slices, which need nothing of each other up to the sum at the end; who
// reads the result next adds the parts.  Made when a graph is planned (graph/rewrite.c); it has no
// gradient, as decoding steps have none.

#include "op/parts.h"

enum { BIAS = PARTS_MAPPED_INPUTS, POSITION, SUMS, KEYS, VALUES, N_INPUTS };

// Inputs of aft_step_fwd behind q, k and v, in the same order.
enum { STEP_BIAS = 3, STEP_POSITION, STEP_SUMS, STEP_KEYS, STEP_VALUES };

static attncl_status infer(struct op_sig *sig)
{
    const struct aft_parts_fwd_params *params = sig->params;
    const struct aft_step_fwd_params step = {params->window};

    return attncl__parts_infer_mapped(sig, params->n_slices, &attncl__op_aft_step_fwd, &step);
}

static bool suits(const struct op_sig *sig, int64_t n_slices)
{
    const int64_t channels = sig->in[PARTS_WQ].dim[0];
    return attncl__parts_suit_mapped(sig, attncl__parts_slice(sig->caps, channels, n_slices), 0);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    enum { OWN_ARGS = 7 };
    const struct aft_parts_fwd_params *params = call->sig.params;
    const struct tensor_desc *table = &call->sig.in[BIAS];
    const int64_t channels = call->sig.in[PARTS_WQ].dim[0];
    const int64_t slice = attncl__parts_slice(l->caps, channels, params->n_slices);
    const bool biased = attncl__desc_present(table) && params->window > 0;
    struct kspec spec = kspec_begin("op/aft_parts.cl", "aft_parts_fwd");
    struct arg args[PARTS_MAPPED_ARGS + OWN_ARGS];

    REQUIRE(suits(&call->sig, params->n_slices) && ceil_div(channels, slice) == params->n_slices,
            ATTNCL_ERR_UNSUPPORTED,
            "a step of %" PRId64 " rows and %" PRId64
            " channels in %d slices cannot be one launch on this device",
            attncl__parts_rows(&call->sig), channels, (int)params->n_slices);
    attncl__parts_mapped_form(l->caps, call, &spec);
    kspec_int(&spec, "PER_HEAD", 0);
    attncl__parts_mapped_args(l->caps, call, params->eps, slice, args);
    const struct arg own[OWN_ARGS] = {
        arg_mem(call->in[BIAS]),
        arg_i32(biased ? table->dim[0] : INT32_MAX),
        arg_i32(biased ? params->window : 0),
        arg_mem(call->in[POSITION]),
        arg_mem(call->in[SUMS]),
        arg_mem(call->in[KEYS]),
        arg_mem(call->in[VALUES]),
    };
    memcpy(args + PARTS_MAPPED_ARGS, own, sizeof own);
    return attncl__launch(l, &spec, grid_1d(params->n_slices, 1), args,
                          PARTS_MAPPED_ARGS + OWN_ARGS);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct aft_parts_fwd_params *params = sig->params;
    const double count = (double)attncl__parts_rows(sig) * (double)sig->in[PARTS_WQ].dim[0];

    attncl__parts_mapped_cost(sig, flop_ret, bytes_ret);
    *flop_ret += count * (40 + 20 * (double)params->window);
    *bytes_ret += 4 * count * (12 + 3 * (double)params->window);
}

const struct op_class attncl__op_aft_parts_fwd = {
    .name = "aft_parts_fwd",
    .params_bytes = sizeof(struct aft_parts_fwd_params),
    .n_in = N_INPUTS,
    .n_out = 2,
    .optional = PARTS_MAPPED_OPTIONAL | 1u << BIAS,
    .state = 1u << SUMS | 1u << KEYS | 1u << VALUES,
    .infer = infer,
    .launch = launch,
    .cost = cost,
};

static bool prepare(const struct op_sig *sig, const void *const *part_params, void *params)
{
    const struct aft_step_fwd_params *step = part_params[CHAIN_STEP];
    struct aft_parts_fwd_params *made = params;

    made->window = step->window;
    made->n_slices = attncl__parts_slices(sig->caps, sig->in[PARTS_WQ].dim[0],
                                          attncl__parts_mapped_products(sig));
    return attncl__parts_maps_plain(part_params, &made->eps) && suits(sig, made->n_slices);
}

#define STEP_INPUTS                                                                                \
    [BIAS] = IN_OF(CHAIN_STEP, STEP_BIAS), [POSITION] = IN_OF(CHAIN_STEP, STEP_POSITION),          \
    [SUMS] = IN_OF(CHAIN_STEP, STEP_SUMS), [KEYS] = IN_OF(CHAIN_STEP, STEP_KEYS),                  \
    [VALUES] = IN_OF(CHAIN_STEP, STEP_VALUES)

const struct op_rewrite attncl__aft_parts_rewrite =
    CHAIN_REWRITE(attncl__op_aft_step_fwd, attncl__op_aft_parts_fwd, prepare, STEP_INPUTS);
const struct op_rewrite attncl__aft_parts_rewrite_first =
    CHAIN_REWRITE_FIRST(attncl__op_aft_step_fwd, attncl__op_aft_parts_fwd, prepare, STEP_INPUTS);
