// SPDX-License-Identifier: MIT
//
// Work in slices that need nothing of each other, each giving an addend of the result.

#include "op/parts.h"
#include "launch/few_rows.h"

int64_t attncl__parts_width(const struct op_sig *sig)
{
    return sig->in[PARTS_NORM_W].dim[0];
}

int64_t attncl__parts_rows(const struct op_sig *sig)
{
    const int64_t d = attncl__parts_width(sig);
    return d > 0 ? attncl__desc_count(&sig->in[PARTS_X]) / d : 0;
}

static attncl_status check_stream(const struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[PARTS_X];

    TRY(attncl__check_input("x", x, ATTNCL_F32, -1));
    TRY(attncl__check_input("norm_weight", &sig->in[PARTS_NORM_W], ATTNCL_F32, 1));
    TRY(attncl__check_input("norm_bias", &sig->in[PARTS_NORM_B], ATTNCL_F32, 1));
    for (int i = PARTS_NORM_W; i <= PARTS_NORM_B; ++i)
        REQUIRE(x->rank >= 1 && sig->in[i].dim[0] == x->dim[x->rank - 1], ATTNCL_ERR_SHAPE,
                "%s is %s, x is %s", i == PARTS_NORM_W ? "norm_weight" : "norm_bias",
                SHAPE(&sig->in[i]), SHAPE(x));
    return ATTNCL_OK;
}

static attncl_status check_before(const struct op_sig *sig, int64_t m, int64_t d)
{
    const struct tensor_desc *before = &sig->in[PARTS_BEFORE], *bias = &sig->in[PARTS_BEFORE_BIAS];

    if (!attncl__desc_present(before))
        return ATTNCL_OK;
    TRY(attncl__check_input("parts", before, ATTNCL_F32, 3));
    REQUIRE(before->dim[1] == m && before->dim[2] == d, ATTNCL_ERR_SHAPE,
            "parts are %s, x has %" PRId64 " rows of %" PRId64, SHAPE(before), m, d);
    if (!attncl__desc_present(bias))
        return ATTNCL_OK;
    TRY(attncl__check_input("bias of the parts", bias, ATTNCL_F32, 1));
    REQUIRE(bias->dim[0] == d, ATTNCL_ERR_SHAPE, "bias of the parts is %s, x has rows of %" PRId64,
            SHAPE(bias), d);
    return ATTNCL_OK;
}

attncl_status attncl__parts_infer(struct op_sig *sig, int64_t n_slices, int64_t d_out)
{
    TRY(check_stream(sig));
    const int64_t m = attncl__parts_rows(sig), d = attncl__parts_width(sig);

    TRY(check_before(sig, m, d));
    REQUIRE(n_slices >= 1, ATTNCL_ERR_ARGUMENT, "%" PRId64 " slices, the least is 1", n_slices);
    if (attncl__desc_present(&sig->in[PARTS_BEFORE]))
        TRY(attncl__desc_make(ATTNCL_F32, sig->in[PARTS_X].rank, sig->in[PARTS_X].dim,
                              &sig->out[PARTS_WHOLE]));
    return attncl__desc_make(ATTNCL_F32, 3, (int64_t[]){n_slices, m, d_out},
                             &sig->out[PARTS_RESULT]);
}

bool attncl__parts_suit(const struct op_sig *sig, const int64_t *widths, int n_widths,
                        int64_t local)
{
    enum { MOST_WIDTH = 4096 }; // rows that stay in the second-level cache
    const struct device_caps *caps = sig->caps;
    const int64_t m = attncl__parts_rows(sig), d = attncl__parts_width(sig);

    if (caps->form != FORM_CPU || caps->vector_width < 4 || caps->loop_limit || m < 1 ||
        m > FEW_ROWS_MOST || d > MOST_WIDTH)
        return false;
    for (int i = 0; i < n_widths; ++i)
        if (widths[i] < 1 || widths[i] % caps->vector_width || widths[i] > INT32_MAX / 16)
            return false;
    for (int i = 0; i < sig->n_in; ++i)
        if (attncl__desc_present(&sig->in[i]) &&
            (sig->in[i].start != 0 || !attncl__desc_contiguous(&sig->in[i])))
            return false;
    return (size_t)(m * d + local) * sizeof(float) <= caps->local_bytes / 2;
}

// Two slices for each compute unit: whoever is ready takes the next one.  Waking another unit takes
// as long as some 100,000 multiply-adds.
int32_t attncl__parts_slices(const struct device_caps *caps, int64_t width, int64_t products)
{
    enum { MOST_SLICES = 16, VECTORS = 2, PRODUCTS = 1 << 17 }; // of a slice at least
    const int64_t units = 2 * (int64_t)caps->compute_units;
    const int64_t most = ceil_div(width, VECTORS * (int64_t)caps->vector_width);
    const int64_t worth = ceil_div(products, PRODUCTS);
    int64_t n = units < MOST_SLICES ? units : MOST_SLICES;

    n = n < most ? n : most;
    n = n < worth ? n : worth;
    return (int32_t)ceil_div(width, attncl__parts_slice(caps, width, n > 0 ? n : 1));
}

int64_t attncl__parts_slice(const struct device_caps *caps, int64_t width, int64_t n_slices)
{
    return ceil_div(ceil_div(width, n_slices), caps->vector_width) * (int64_t)caps->vector_width;
}

void attncl__parts_args(const struct op_call *call, float eps, struct arg args[PARTS_ARGS])
{
    const struct tensor_desc *before = &call->sig.in[PARTS_BEFORE];
    const bool joins = attncl__desc_present(before);
    const struct arg all[PARTS_ARGS] = {
        arg_i32(attncl__parts_rows(&call->sig)),
        arg_i32(attncl__parts_width(&call->sig)),
        arg_i32(joins ? before->dim[0] : 0),
        arg_i32(attncl__desc_present(&call->sig.in[PARTS_BEFORE_BIAS])),
        arg_mem(call->in[PARTS_X]),
        arg_mem(call->in[PARTS_BEFORE]),
        arg_mem(call->in[PARTS_BEFORE_BIAS]),
        arg_mem(call->in[PARTS_NORM_W]),
        arg_mem(call->in[PARTS_NORM_B]),
        arg_f32(eps),
        arg_mem(call->out[PARTS_WHOLE]),
    };
    memcpy(args, all, sizeof all);
}

static attncl_status check_maps(const struct op_sig *sig)
{
    static const char *const names[] = {"wq", "bq", "wk", "bk", "wv", "bv"};
    const int64_t channels = sig->in[PARTS_WQ].dim[0];

    for (int i = PARTS_WQ; i <= PARTS_BV; ++i) {
        const struct tensor_desc *x = &sig->in[i];
        const bool bias = (i - PARTS_WQ) % 2;
        if (bias && !attncl__desc_present(x))
            continue;
        TRY(attncl__check_input(names[i - PARTS_WQ], x, ATTNCL_F32, bias ? 1 : 2));
        REQUIRE(x->dim[0] == channels && (bias || x->dim[1] == attncl__parts_width(sig)),
                ATTNCL_ERR_SHAPE, "%s is %s, wq is %s, x has %" PRId64 " channels",
                names[i - PARTS_WQ], SHAPE(x), SHAPE(&sig->in[PARTS_WQ]), attncl__parts_width(sig));
    }
    REQUIRE(sig->in[PARTS_WO].dim[1] == channels, ATTNCL_ERR_SHAPE, "wo is %s, wq is %s",
            SHAPE(&sig->in[PARTS_WO]), SHAPE(&sig->in[PARTS_WQ]));
    return ATTNCL_OK;
}

static attncl_status check_step(const struct op_sig *sig, const struct op_class *cls,
                                const void *params)
{
    enum { N_MAPS = 3 };
    const int64_t dim[2] = {attncl__parts_rows(sig), sig->in[PARTS_WQ].dim[0]};
    struct op_sig step = {.params = params, .n_in = cls->n_in};

    for (int i = 0; i < N_MAPS; ++i)
        TRY(attncl__desc_make(ATTNCL_F32, 2, dim, &step.in[i]));
    for (int i = N_MAPS; i < cls->n_in; ++i)
        step.in[i] = sig->in[PARTS_MAPPED_INPUTS + i - N_MAPS];
    return cls->infer(&step);
}

attncl_status attncl__parts_infer_mapped(struct op_sig *sig, int64_t n_slices,
                                         const struct op_class *step, const void *step_params)
{
    TRY(attncl__check_input("wq", &sig->in[PARTS_WQ], ATTNCL_F32, 2));
    TRY(attncl__check_input("wo", &sig->in[PARTS_WO], ATTNCL_F32, 2));
    TRY(attncl__parts_infer(sig, n_slices, sig->in[PARTS_WO].dim[0]));
    TRY(check_maps(sig));
    return check_step(sig, step, step_params);
}

bool attncl__parts_suit_mapped(const struct op_sig *sig, int64_t slice, int64_t local)
{
    const int64_t widths[] = {sig->in[PARTS_WQ].dim[0], attncl__parts_width(sig),
                              sig->in[PARTS_WO].dim[0]};

    return attncl__parts_suit(sig, widths, 3, 3 * attncl__parts_rows(sig) * slice + local);
}

void attncl__parts_mapped_form(const struct device_caps *caps, const struct op_call *call,
                               struct kspec *spec)
{
    attncl__few_rows_form(caps, attncl__parts_rows(&call->sig), spec);
    kspec_int(spec, "TAIL", 0);
}

void attncl__parts_mapped_args(const struct device_caps *caps, const struct op_call *call,
                               float eps, int64_t slice, struct arg args[PARTS_MAPPED_ARGS])
{
    const struct tensor_desc *in = call->sig.in;
    const int64_t m = attncl__parts_rows(&call->sig), d = attncl__parts_width(&call->sig);
    const int has_bias = attncl__desc_present(&in[PARTS_BQ]) |
                         attncl__desc_present(&in[PARTS_BK]) << 1 |
                         attncl__desc_present(&in[PARTS_BV]) << 2;
    const size_t slice_bytes = (size_t)(m * slice) * sizeof(float);
    const struct arg own[PARTS_MAPPED_ARGS - PARTS_ARGS] = {
        arg_i32(in[PARTS_WQ].dim[0]),
        arg_i32(slice),
        arg_i32(in[PARTS_WO].dim[0]),
        arg_i32(attncl__few_rows_ahead(caps, m, d)),
        arg_i32(attncl__few_rows_ahead(caps, m, slice)),
        arg_i32(has_bias),
        arg_mem(call->in[PARTS_WQ]),
        arg_mem(call->in[PARTS_BQ]),
        arg_mem(call->in[PARTS_WK]),
        arg_mem(call->in[PARTS_BK]),
        arg_mem(call->in[PARTS_WV]),
        arg_mem(call->in[PARTS_BV]),
        arg_mem(call->in[PARTS_WO]),
        arg_mem(call->out[PARTS_RESULT]),
        arg_local((size_t)(m * d) * sizeof(float)),
        arg_local(slice_bytes),
        arg_local(slice_bytes),
        arg_local(slice_bytes),
    };

    attncl__parts_args(call, eps, args);
    memcpy(args + PARTS_ARGS, own, sizeof own);
}

static int64_t mapped_weights(const struct op_sig *sig)
{
    return sig->in[PARTS_WQ].dim[0] * (3 * attncl__parts_width(sig) + sig->in[PARTS_WO].dim[0]);
}

int64_t attncl__parts_mapped_products(const struct op_sig *sig)
{
    return attncl__parts_rows(sig) * mapped_weights(sig);
}

void attncl__parts_mapped_cost(const struct op_sig *sig, double *flop_ret, double *bytes_ret)
{
    *flop_ret = 2 * (double)attncl__parts_mapped_products(sig);
    *bytes_ret = 4 * (double)mapped_weights(sig);
}

bool attncl__parts_maps_plain(const void *const *part_params, float *eps_ret)
{
    const struct linear_fwd_params *outer = part_params[CHAIN_OUTER];

    if (outer->activation != GEMM_ACT_NONE)
        return false;
    for (int i = CHAIN_Q; i <= CHAIN_V; ++i) {
        const struct norm_linear_fwd_params *map = part_params[i];
        if (map->linear.activation != GEMM_ACT_NONE || (i > CHAIN_Q && map->norm.eps != *eps_ret))
            return false;
        *eps_ret = map->norm.eps;
    }
    return true;
}
