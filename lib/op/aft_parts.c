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

#include "launch/few_rows.h"
#include "launch/gemm.h"
#include "op/join.h"
#include "op/linear.h"
#include "op/parts.h"

enum { WQ = PARTS_INPUTS, BQ, WK, BK, WV, BV, BIAS, POSITION, SUMS, KEYS, VALUES, WO, N_INPUTS };

// Inputs of aft_step_fwd.
enum { STEP_Q, STEP_K, STEP_V, STEP_BIAS, STEP_POSITION, STEP_SUMS, STEP_KEYS, STEP_VALUES };

static attncl_status check_maps(const struct op_sig *sig)
{
    static const char *const names[] = {"wq", "bq", "wk", "bk", "wv", "bv"};
    const int64_t channels = sig->in[WQ].dim[0];

    for (int i = WQ; i <= BV; ++i) {
        const struct tensor_desc *x = &sig->in[i];
        const bool bias = (i - WQ) % 2;
        if (bias && !attncl__desc_present(x))
            continue;
        TRY(attncl__check_input(names[i - WQ], x, ATTNCL_F32, bias ? 1 : 2));
        REQUIRE(x->dim[0] == channels && (bias || x->dim[1] == attncl__parts_width(sig)),
                ATTNCL_ERR_SHAPE, "%s is %s, wq is %s, x has %" PRId64 " channels", names[i - WQ],
                SHAPE(x), SHAPE(&sig->in[WQ]), attncl__parts_width(sig));
    }
    TRY(attncl__check_input("wo", &sig->in[WO], ATTNCL_F32, 2));
    REQUIRE(sig->in[WO].dim[1] == channels, ATTNCL_ERR_SHAPE, "wo is %s, wq is %s",
            SHAPE(&sig->in[WO]), SHAPE(&sig->in[WQ]));
    return ATTNCL_OK;
}

// The same step by itself, which checks state, table and position.
static attncl_status check_step(const struct op_sig *sig)
{
    const struct aft_parts_fwd_params *params = sig->params;
    const struct aft_step_fwd_params step_params = {params->window};
    const int64_t dim[2] = {attncl__parts_rows(sig), sig->in[WQ].dim[0]};
    struct op_sig step = {.params = &step_params, .n_in = STEP_VALUES + 1};

    for (int i = STEP_Q; i <= STEP_V; ++i)
        TRY(attncl__desc_make(ATTNCL_F32, 2, dim, &step.in[i]));
    for (int i = STEP_BIAS; i <= STEP_VALUES; ++i)
        step.in[i] = sig->in[BIAS + i - STEP_BIAS];
    return attncl__op_aft_step_fwd.infer(&step);
}

static attncl_status infer(struct op_sig *sig)
{
    const struct aft_parts_fwd_params *params = sig->params;

    TRY(attncl__check_input("wq", &sig->in[WQ], ATTNCL_F32, 2));
    TRY(attncl__parts_infer(sig, params->n_slices, sig->in[WO].dim[0]));
    TRY(check_maps(sig));
    return check_step(sig);
}

static bool suits(const struct op_sig *sig, int64_t n_slices)
{
    const int64_t channels = sig->in[WQ].dim[0];
    const int64_t slice = attncl__parts_slice(sig->caps, channels, n_slices);

    return attncl__parts_suit(sig,
                              (int64_t[]){channels, attncl__parts_width(sig), sig->in[WO].dim[0]},
                              3, 3 * attncl__parts_rows(sig) * slice);
}

static attncl_status launch(struct launcher *l, const struct op_call *call)
{
    enum { OWN_ARGS = 25 };
    const struct aft_parts_fwd_params *params = call->sig.params;
    const struct tensor_desc *in = call->sig.in, *table = &in[BIAS];
    const int64_t m = attncl__parts_rows(&call->sig), d = attncl__parts_width(&call->sig);
    const int64_t channels = in[WQ].dim[0], d_out = in[WO].dim[0];
    const int64_t slice = attncl__parts_slice(l->caps, channels, params->n_slices);
    const bool biased = attncl__desc_present(table) && params->window > 0;
    const int has_bias = attncl__desc_present(&in[BQ]) | attncl__desc_present(&in[BK]) << 1 |
                         attncl__desc_present(&in[BV]) << 2;
    const size_t slice_bytes = (size_t)(m * slice) * sizeof(float);
    struct kspec spec = kspec_begin("op/aft_parts.cl", "aft_parts_fwd");
    struct arg args[PARTS_ARGS + OWN_ARGS];

    REQUIRE(suits(&call->sig, params->n_slices) && ceil_div(channels, slice) == params->n_slices,
            ATTNCL_ERR_UNSUPPORTED,
            "a step of %" PRId64 " rows and %" PRId64
            " channels in %d slices cannot be one launch on this device",
            m, channels, (int)params->n_slices);
    attncl__few_rows_form(l->caps, m, &spec);
    kspec_int(&spec, "TAIL", 0);
    kspec_int(&spec, "PER_HEAD", 0);
    attncl__parts_args(call, params->eps, args);
    const struct arg own[OWN_ARGS] = {
        arg_i32(channels),
        arg_i32(slice),
        arg_i32(d_out),
        arg_i32(attncl__few_rows_ahead(l->caps, m, d)),
        arg_i32(attncl__few_rows_ahead(l->caps, m, slice)),
        arg_i32(has_bias),
        arg_mem(call->in[WQ]),
        arg_mem(call->in[BQ]),
        arg_mem(call->in[WK]),
        arg_mem(call->in[BK]),
        arg_mem(call->in[WV]),
        arg_mem(call->in[BV]),
        arg_mem(call->in[BIAS]),
        arg_i32(biased ? table->dim[0] : INT32_MAX),
        arg_i32(biased ? params->window : 0),
        arg_mem(call->in[POSITION]),
        arg_mem(call->in[SUMS]),
        arg_mem(call->in[KEYS]),
        arg_mem(call->in[VALUES]),
        arg_mem(call->in[WO]),
        arg_mem(call->out[PARTS_RESULT]),
        arg_local((size_t)(m * d) * sizeof(float)),
        arg_local(slice_bytes),
        arg_local(slice_bytes),
        arg_local(slice_bytes),
    };
    memcpy(args + PARTS_ARGS, own, sizeof own);
    return attncl__launch(l, &spec, grid_1d(params->n_slices, 1), args, PARTS_ARGS + OWN_ARGS);
}

static void cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    const struct aft_parts_fwd_params *params = sig->params;
    const double m = (double)attncl__parts_rows(sig), channels = (double)sig->in[WQ].dim[0];
    const double weights = channels * (3 * (double)sig->in[WQ].dim[1] + (double)sig->in[WO].dim[0]);

    *flop_ret = m * (2 * weights + channels * (40 + 20 * (double)params->window));
    *bytes_ret = 4 * (weights + m * channels * (12 + 3 * (double)params->window));
}

const struct op_class attncl__op_aft_parts_fwd = {
    .name = "aft_parts_fwd",
    .params_bytes = sizeof(struct aft_parts_fwd_params),
    .n_in = N_INPUTS,
    .n_out = 2,
    .optional =
        1u << PARTS_BEFORE | 1u << PARTS_BEFORE_BIAS | 1u << BQ | 1u << BK | 1u << BV | 1u << BIAS,
    .state = 1u << SUMS | 1u << KEYS | 1u << VALUES,
    .infer = infer,
    .launch = launch,
    .cost = cost,
};

static bool prepare(const struct op_sig *sig, const void *const *part_params, void *params)
{
    enum { OUTER, STEP, MAP_Q, MAP_K, MAP_V };
    const struct linear_fwd_params *outer = part_params[OUTER];
    const struct norm_linear_fwd_params *maps[] = {part_params[MAP_Q], part_params[MAP_K],
                                                   part_params[MAP_V]};
    const struct aft_step_fwd_params *step = part_params[STEP];
    struct aft_parts_fwd_params *made = params;

    made->eps = maps[0]->norm.eps;
    made->window = step->window;
    made->n_slices = attncl__parts_slices(sig->caps, sig->in[WQ].dim[0]);
    for (int i = 0; i < 3; ++i)
        if (maps[i]->linear.activation != GEMM_ACT_NONE || maps[i]->norm.eps != made->eps)
            return false;
    return outer->activation == GEMM_ACT_NONE && suits(sig, made->n_slices);
}

// [join ->] three norm_linear -> aft_step -> linear, becomes aft_parts -> join.
enum { OUTER, STEP, MAP_Q, MAP_K, MAP_V, STREAM };
#define NORM_W                N_LINEAR_INPUTS
#define NORM_B                (N_LINEAR_INPUTS + 1)
#define MAP_INPUTS(w, b, map) [w] = IN_OF(map, LINEAR_WEIGHT), [b] = IN_OF(map, LINEAR_BIAS)
#define SAME_AS_Q(map)                                                                             \
    {IN_OF(MAP_Q, LINEAR_X), IN_OF(map, LINEAR_X)}, {IN_OF(MAP_Q, NORM_W), IN_OF(map, NORM_W)},    \
    {                                                                                              \
        IN_OF(MAP_Q, NORM_B), IN_OF(map, NORM_B)                                                   \
    }
#define CHAIN                                                                                      \
    [OUTER] = {&attncl__op_linear_fwd}, [STEP] = {&attncl__op_aft_step_fwd, OUTER, LINEAR_X},      \
    [MAP_Q] = {&attncl__op_norm_linear_fwd, STEP, STEP_Q},                                         \
    [MAP_K] = {&attncl__op_norm_linear_fwd, STEP, STEP_K},                                         \
    [MAP_V] = {&attncl__op_norm_linear_fwd, STEP, STEP_V}
#define SAME                                                                                       \
    {                                                                                              \
        SAME_AS_Q(MAP_K), SAME_AS_Q(MAP_V)                                                         \
    }
#define ABSENT                                                                                     \
    {                                                                                              \
        IN_OF(OUTER, LINEAR_GATE), IN_OF(MAP_Q, LINEAR_GATE), IN_OF(MAP_Q, LINEAR_RESIDUAL),       \
            IN_OF(MAP_K, LINEAR_GATE), IN_OF(MAP_K, LINEAR_RESIDUAL), IN_OF(MAP_V, LINEAR_GATE),   \
            IN_OF(MAP_V, LINEAR_RESIDUAL)                                                          \
    }
#define REST_OF_INPUTS                                                                             \
    [PARTS_NORM_W] = IN_OF(MAP_Q, NORM_W), [PARTS_NORM_B] = IN_OF(MAP_Q, NORM_B),                  \
    MAP_INPUTS(WQ, BQ, MAP_Q), MAP_INPUTS(WK, BK, MAP_K), MAP_INPUTS(WV, BV, MAP_V),               \
    [BIAS] = IN_OF(STEP, STEP_BIAS), [POSITION] = IN_OF(STEP, STEP_POSITION),                      \
    [SUMS] = IN_OF(STEP, STEP_SUMS), [KEYS] = IN_OF(STEP, STEP_KEYS),                              \
    [VALUES] = IN_OF(STEP, STEP_VALUES), [WO] = IN_OF(OUTER, LINEAR_WEIGHT)
#define JOINED                                                                                     \
    {                                                                                              \
        &attncl__op_join_fwd,                                                                      \
        {                                                                                          \
            [JOIN_PARTS] = OUT_OF(STEP, 0), [JOIN_BIAS] = IN_OF(OUTER, LINEAR_BIAS),               \
            [JOIN_RESIDUAL] = IN_OF(OUTER, LINEAR_RESIDUAL)                                        \
        }                                                                                          \
    }

const struct op_rewrite attncl__aft_parts_rewrite = {
    .n_parts = 6,
    .part = {CHAIN, [STREAM] = {&attncl__op_join_fwd, MAP_Q, LINEAR_X}},
    .same = SAME,
    .absent = ABSENT,
    .passed_on = STREAM,
    .made = {{&attncl__op_aft_parts_fwd,
              {[PARTS_X] = IN_OF(STREAM, JOIN_RESIDUAL),
               [PARTS_BEFORE] = IN_OF(STREAM, JOIN_PARTS),
               [PARTS_BEFORE_BIAS] = IN_OF(STREAM, JOIN_BIAS),
               REST_OF_INPUTS}},
             JOINED},
    .prepare = prepare,
};

const struct op_rewrite attncl__aft_parts_rewrite_first = {
    .n_parts = 5,
    .part = {CHAIN},
    .same = SAME,
    .absent = ABSENT,
    .made = {{&attncl__op_aft_parts_fwd, {[PARTS_X] = IN_OF(MAP_Q, LINEAR_X), REST_OF_INPUTS}},
             JOINED},
    .prepare = prepare,
};
