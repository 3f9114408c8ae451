// SPDX-License-Identifier: MIT
//
// Memory ops of a feedback transformer's step (Fan et al. 2020, eq. 1).
//
//   mix     y = [sum +] softmax(weights)_f x_0 + softmax(weights)_(f+1) x_1 ...
//   store   cache[slot + s, b, h, position, :] = x[b, s, h, :]: this step's keys and values, in the
//           cache's type (F32, F16 or BF16)
//   gate    y = position > 0 ? 1 : 0: the first step has no memory to attend to
//
// Backward:
//
//   mix     dx_f = p_f dy as one array [n, ...], and the weights' gradient through their softmax
//   load    y[b, s, h, :] = cache[slot + s, b, h, position, :]: the gradients of the keys and values
//           that a step stored; zeros for the last of n_steps steps
//
// Kernels: cl/feedback/feedback_memory.cl.

#include "op/row_launch.h"

static const char file[] = "feedback/feedback_memory.cl";

enum { MAX_X = 8 };
enum { WEIGHTS, SUM, X };
enum { BWD_X = 1, BWD_DY = BWD_X + MAX_X };

// Counts the present x from input `first` on.
static int count_x(const struct op_sig *sig, int first)
{
    int n = 0;
    while (n < MAX_X && attncl__desc_present(&sig->in[first + n]))
        ++n;
    return n;
}

static void set_macros(struct kspec *spec, int n_x, attncl_dtype cache)
{
    kspec_int(spec, "N_X", n_x);
    kspec_set_stored(spec, "CACHE_TYPE", cache);
}

#define X_ARGS(x)                                                                                  \
    arg_mem((x)[0]), arg_mem((x)[1]), arg_mem((x)[2]), arg_mem((x)[3]), arg_mem((x)[4]),           \
        arg_mem((x)[5]), arg_mem((x)[6]), arg_mem((x)[7])

static attncl_status mix_infer(struct op_sig *sig)
{
    const struct feedback_mix_fwd_params *params = sig->params;
    const int end = params->first + count_x(sig, X);

    REQUIRE(params->first >= 0 && end <= sig->axes->of['W'], ATTNCL_ERR_SHAPE,
            "weights has %" PRId64 " elements, there are %d values and more", sig->axes->of['W'],
            end);
    return ATTNCL_OK;
}

static attncl_status store_infer(struct op_sig *sig)
{
    const struct feedback_store_fwd_params *params = sig->params;
    const struct tensor_desc *x = &sig->in[0], *cache = &sig->in[2];
    const int64_t *of = sig->axes->of, each = of['H'] * of['D'];

    REQUIRE(each > 0 && of['X'] % each == 0, ATTNCL_ERR_SHAPE,
            "x is %s, cache is %s: must be [B, slots H D]", SHAPE(x), SHAPE(cache));
    REQUIRE(params->slot >= 0 && params->slot + of['X'] / each <= of['L'], ATTNCL_ERR_SHAPE,
            "x is %s from slot %d on, cache is %s", SHAPE(x), params->slot, SHAPE(cache));
    return ATTNCL_OK;
}

static attncl_status mix_launch(struct launcher *l, const struct op_call *call)
{
    const struct feedback_mix_fwd_params *params = call->sig.params;
    const int64_t count = attncl__desc_count(&call->sig.out[0]);
    struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, file, "feedback_memory_mix_fwd", count);
    const struct span *in = call->in;

    set_macros(&p.spec, count_x(&call->sig, X), ATTNCL_F32);
    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(in[WEIGHTS]), arg_mem(in[SUM]), X_ARGS(in + X),
                               arg_mem(call->out[0]), arg_i32(call->sig.in[WEIGHTS].dim[0]),
                               arg_i32(params->first),
                               arg_i32(attncl__desc_present(&call->sig.in[SUM])), arg_i64(count),
                               arg_i32(p.per_group)));
}

static attncl_status store_launch(struct launcher *l, const struct op_call *call)
{
    const struct feedback_store_fwd_params *params = call->sig.params;
    const struct tensor_desc *x = &call->sig.in[0], *cache = &call->sig.in[2];
    const int64_t n_heads = cache->dim[2], limit = cache->dim[3], width = cache->dim[4];
    const int64_t rows = attncl__desc_count(x) / width;
    struct row_launch p =
        attncl__row_launch(l->caps, file, "feedback_memory_store_fwd", rows, width);

    set_macros(&p.spec, 0, cache->dtype);
    return attncl__launch(l, &p.spec, p.grid,
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_i32(params->slot), arg_i32(x->dim[1] / (n_heads * width)),
                               arg_i32(n_heads), arg_i32(limit), arg_i32(width), arg_i64(rows),
                               arg_i32(p.rows_per_group)));
}

static attncl_status gate_launch(struct launcher *l, const struct op_call *call)
{
    const int64_t count = attncl__desc_count(&call->sig.out[0]);
    struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, file, "feedback_memory_gate_fwd", count);

    set_macros(&p.spec, 0, ATTNCL_F32);
    return attncl__launch(
        l, &p.spec, p.grid,
        ARGS(arg_mem(call->in[1]), arg_mem(call->out[0]), arg_i64(count), arg_i32(p.per_group)));
}

// The part of the array of all gradients that belongs to `input`.
static void describe_part(const struct op_sig *sig, int input, struct tensor_desc *view)
{
    const struct tensor_desc *x = &sig->in[X];

    (void)attncl__desc_make(ATTNCL_F32, x->rank, x->dim, view); // cannot fail: x has the shape
    view->start = (input - X) * attncl__desc_count(view);
}

#define PART(i)                                                                                    \
    {                                                                                              \
        .in = {REF_TEMP(0)}, .out = {REF_DX(X + (i))}, .part = describe_part                       \
    }

// REF_TEMP(0): the gradients of all mixed values.
static const struct grad_rule mix_grad[] = {
    {.op = OP_feedback_mix_bwd,
     .same_params = true,
     .in = {REF_X(WEIGHTS), REF_X(X), REF_X(X + 1), REF_X(X + 2), REF_X(X + 3), REF_X(X + 4),
            REF_X(X + 5), REF_X(X + 6), REF_X(X + 7), REF_DY(0)},
     .out = {REF_TEMP(0), REF_DX(WEIGHTS)}},
    {.in = {REF_DY(0)}, .out = {REF_DX(SUM)}},
    PART(0),
    PART(1),
    PART(2),
    PART(3),
    PART(4),
    PART(5),
    PART(6),
    PART(7),
};

#define MAYBE F32 | OPTIONAL, "..."
const struct op_class attncl__op_feedback_mix_fwd = {
    .name = OP_CLASS(feedback_mix_fwd),
    .in = OP_IN({"weights", F32, "W"}, {"sum", MAYBE}, {"x0", F32, "..."}, {"x1", MAYBE},
                {"x2", MAYBE}, {"x3", MAYBE}, {"x4", MAYBE}, {"x5", MAYBE}, {"x6", MAYBE},
                {"x7", MAYBE}),
    .out = OP_OUT({"y", F32, "..."}),
    .int_axes = "W",
    .infer = mix_infer,
    .launch = mix_launch,
    .grad = GRAD_RULES(mix_grad),
};

const struct op_class attncl__op_feedback_store_fwd = {
    .name = OP_CLASS(feedback_store_fwd),
    .in = OP_IN({"x", F32, "B X"}, {"position", I32, "1"}, {"cache", STORED | STATE, "L B H P D"}),
    .int_axes = "LBHPD",
    .infer = store_infer,
    .launch = store_launch,
    .moved = {[2] = "x"},
};

const struct op_class attncl__op_feedback_gate_fwd = {
    .name = OP_CLASS(feedback_gate_fwd),
    .in = OP_IN({"x", F32 | SHAPE_ONLY, "..."}, {"position", I32, "1"}),
    .out = OP_OUT({"y", F32, "..."}),
    .launch = gate_launch,
};

// -- backward

static attncl_status mix_bwd_infer(struct op_sig *sig)
{
    sig->axes->of['N'] = count_x(sig, BWD_X);
    return ATTNCL_OK;
}

// The dot products dy . x_f.
static attncl_status mix_bwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    *bytes_ret = sizeof(float) * (size_t)count_x(sig, BWD_X);
    return ATTNCL_OK;
}

static attncl_status launch_weight_gradient(struct launcher *l, const struct op_call *call,
                                            int64_t count)
{
    const struct feedback_mix_bwd_params *params = call->sig.params;
    const struct span *in = call->in;
    const int n = count_x(&call->sig, BWD_X);
    struct group_launch dots =
        attncl__group_launch(l->caps, file, "feedback_memory_bwd_dots", count);
    struct kspec weights = kspec_begin(file, "feedback_memory_bwd_weights");

    set_macros(&dots.spec, n, ATTNCL_F32);
    kspec_set_vw_ls(&weights, 1, 1);
    set_macros(&weights, n, ATTNCL_F32);
    TRY(attncl__launch(
        l, &dots.spec, grid_1d(n, dots.local),
        ARGS(arg_mem(in[BWD_DY]), X_ARGS(in + BWD_X), arg_mem(call->scratch), arg_i64(count))));
    return attncl__launch(l, &weights, grid_1d(1, 1),
                          ARGS(arg_mem(in[WEIGHTS]), arg_mem(call->scratch), arg_mem(call->out[1]),
                               arg_i32(call->sig.in[WEIGHTS].dim[0]), arg_i32(params->first)));
}

static attncl_status mix_bwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct feedback_mix_bwd_params *params = call->sig.params;
    const int64_t count = attncl__desc_count(&call->sig.in[BWD_DY]);
    struct elementwise_launch p =
        attncl__elementwise_launch(l->caps, file, "feedback_memory_bwd_parts", count);

    set_macros(&p.spec, count_x(&call->sig, BWD_X), ATTNCL_F32);
    TRY(attncl__launch(l, &p.spec, p.grid,
                       ARGS(arg_mem(call->in[WEIGHTS]), arg_mem(call->in[BWD_DY]),
                            arg_mem(call->out[0]), arg_i32(call->sig.in[WEIGHTS].dim[0]),
                            arg_i32(params->first), arg_i64(count), arg_i32(p.per_group))));
    return launch_weight_gradient(l, call, count);
}

enum { L_CACHE, L_POSITION };

static attncl_status load_infer(struct op_sig *sig)
{
    const struct feedback_load_fwd_params *params = sig->params;
    int64_t *of = sig->axes->of;

    REQUIRE(params->slot >= 0 && params->n_slots > 0 && params->slot + params->n_slots <= of['L'],
            ATTNCL_ERR_SHAPE, "%d slots from slot %d on, cache is %s", params->n_slots,
            params->slot, SHAPE(&sig->in[L_CACHE]));
    of['X'] = params->n_slots * of['H'] * of['D'];
    return ATTNCL_OK;
}

static attncl_status load_launch(struct launcher *l, const struct op_call *call)
{
    const struct feedback_load_fwd_params *params = call->sig.params;
    const struct tensor_desc *cache = &call->sig.in[L_CACHE];
    const int64_t n_heads = cache->dim[2], limit = cache->dim[3], width = cache->dim[4];
    const int64_t rows = attncl__desc_count(&call->sig.out[0]) / width;
    struct row_launch p =
        attncl__row_launch(l->caps, file, "feedback_memory_bwd_load", rows, width);

    set_macros(&p.spec, 0, ATTNCL_F32);
    return attncl__launch(
        l, &p.spec, p.grid,
        ARGS(arg_mem(call->in[L_CACHE]), arg_mem(call->in[L_POSITION]), arg_mem(call->out[0]),
             arg_i32(params->slot), arg_i32(params->n_slots), arg_i32(n_heads), arg_i32(limit),
             arg_i32(params->n_steps), arg_i32(width), arg_i64(rows), arg_i32(p.rows_per_group)));
}

const struct op_class attncl__op_feedback_mix_bwd = {
    .name = OP_CLASS(feedback_mix_bwd),
    .in = OP_IN({"weights", F32, "W"}, {"x0", F32, "..."}, {"x1", MAYBE}, {"x2", MAYBE},
                {"x3", MAYBE}, {"x4", MAYBE}, {"x5", MAYBE}, {"x6", MAYBE}, {"x7", MAYBE},
                {"dy", F32, "..."}),
    .out = OP_OUT({"dx", F32, "N ..."}, {"dweights", F32, "W"}),
    .infer = mix_bwd_infer,
    .scratch = mix_bwd_scratch,
    .launch = mix_bwd_launch,
    .flop = "3y", // one multiplication for dx, two operations for the dot product
};

const struct op_class attncl__op_feedback_load_fwd = {
    .name = OP_CLASS(feedback_load_fwd),
    .in = OP_IN({"cache", F32, "L B H P D"}, {"position", I32, "1"}),
    .out = OP_OUT({"y", F32, "B X"}),
    .int_axes = "LBHPD",
    .infer = load_infer,
    .launch = load_launch,
    .moved = {[L_CACHE] = "y"},
};
