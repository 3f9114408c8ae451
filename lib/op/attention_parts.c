// SPDX-License-Identifier: MIT
//
// One position of a layer of multi-head attention, from the layer norm to the output map, one
// launch:
//
//   x' = x + bias + sum_s before[s]           the residual stream, whose last addend is in parts
//   q, k, v = LN(x') Wq^T + bq, ...           then a step of attention (attention_step.c)
//   sum_s parts[s] = y Wo^T
//
// Heads are cut into slices, which need nothing of each other up to the sum at the end; who reads
// the result next adds the parts.  Made when a graph is planned (graph/rewrite.c); it has no
// gradient, as decoding steps have none.

#include "op/parts.h"

enum { POSITION = PARTS_MAPPED_INPUTS, KEYS, VALUES, N_INPUTS };

// Inputs of attention_step_fwd behind q, k and v, in the same order.
enum { STEP_POSITION = 3, STEP_KEYS, STEP_VALUES };

static attncl_status infer(struct op_sig *sig)
{
    const struct attention_parts_fwd_params *params = sig->params;

    return attncl__parts_infer_mapped(sig, params->n_slices, &attncl__op_attention_step_fwd,
                                      &params->step);
}

static int64_t head_width(const struct op_sig *sig)
{
    const struct attention_parts_fwd_params *params = sig->params;
    return sig->in[PARTS_WQ].dim[0] / params->step.n_heads;
}

// Channels of whole heads.
static int64_t slice_of(const struct op_sig *sig)
{
    const struct attention_parts_fwd_params *params = sig->params;
    return ceil_div(params->step.n_heads, params->n_slices) * head_width(sig);
}

static bool suits(const struct op_sig *sig)
{
    const int64_t head = head_width(sig);
    return head % sig->caps->vector_width == 0 &&
           attncl__parts_suit_mapped(sig, slice_of(sig), head);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    enum { OWN_ARGS = 7 };
    const struct attention_parts_fwd_params *params = call->sig.params;
    const struct op_sig *sig = &call->sig;
    const int64_t channels = sig->in[PARTS_WQ].dim[0], head = head_width(sig);
    const int64_t slice = slice_of(sig);
    struct kspec spec = kspec_begin("op/attention_parts.cl", "attention_parts_fwd");
    struct arg args[PARTS_MAPPED_ARGS + OWN_ARGS];

    REQUIRE(suits(sig) && ceil_div(channels, slice) == params->n_slices, ATTNCL_ERR_UNSUPPORTED,
            "a step of %" PRId64 " rows and %d heads of %" PRId64
            " channels in %d slices cannot be one launch on this device",
            attncl__parts_rows(sig), (int)params->step.n_heads, head, (int)params->n_slices);
    attncl__parts_mapped_form(l->caps, call, &spec);
    attncl__parts_mapped_args(l->caps, call, params->eps, slice, args);
    const struct arg own[OWN_ARGS] = {
        arg_i32(head),
        arg_i32(sig->in[KEYS].dim[0]),
        arg_f32(params->step.scale),
        arg_mem(call->in[POSITION]),
        arg_mem(call->in[KEYS]),
        arg_mem(call->in[VALUES]),
        arg_local((size_t)head * sizeof(float)),
    };
    memcpy(args + PARTS_MAPPED_ARGS, own, sizeof own);
    return attncl__launch(l, &spec, grid_1d(params->n_slices, 1), args,
                          PARTS_MAPPED_ARGS + OWN_ARGS);
}

// At the last position: earlier ones cost less, but which it is, only the device knows.
static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const double limit = (double)sig->in[KEYS].dim[0];
    const double count = (double)attncl__parts_rows(sig) * (double)sig->in[PARTS_WQ].dim[0];

    attncl__parts_mapped_cost(sig, flop_ret, bytes_ret);
    *flop_ret += 4 * limit * count;
    *bytes_ret += 8 * limit * count;
}

const struct op_class attncl__op_attention_parts_fwd = {
    .name = "attention_parts_fwd",
    .params_bytes = sizeof(struct attention_parts_fwd_params),
    .n_in = N_INPUTS,
    .n_out = 2,
    .optional = PARTS_MAPPED_OPTIONAL,
    .state = 1u << KEYS | 1u << VALUES,
    .infer = infer,
    .launch = launch,
    .cost = cost,
};

// As many slices as channels would have, where there are so many heads.
static bool prepare(const struct op_sig *sig, const void *const *part_params, void *params)
{
    const struct attention_step_fwd_params *step = part_params[CHAIN_STEP];
    struct attention_parts_fwd_params *made = params;

    made->step = *step;
    made->n_slices = attncl__parts_slices(sig->caps, sig->in[PARTS_WQ].dim[0],
                                          attncl__parts_mapped_products(sig));
    if (made->n_slices > step->n_heads)
        made->n_slices = step->n_heads;
    made->n_slices = (int32_t)ceil_div(step->n_heads, ceil_div(step->n_heads, made->n_slices));
    return attncl__parts_maps_plain(part_params, &made->eps) && suits(sig);
}

#define STEP_INPUTS                                                                                \
    [POSITION] = IN_OF(CHAIN_STEP, STEP_POSITION), [KEYS] = IN_OF(CHAIN_STEP, STEP_KEYS),          \
    [VALUES] = IN_OF(CHAIN_STEP, STEP_VALUES)

const struct op_rewrite attncl__attention_parts_rewrite = CHAIN_REWRITE(
    attncl__op_attention_step_fwd, attncl__op_attention_parts_fwd, prepare, STEP_INPUTS);
const struct op_rewrite attncl__attention_parts_rewrite_first = CHAIN_REWRITE_FIRST(
    attncl__op_attention_step_fwd, attncl__op_attention_parts_fwd, prepare, STEP_INPUTS);
