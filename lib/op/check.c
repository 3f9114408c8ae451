// SPDX-License-Identifier: MIT
//
// Checks of inputs, the shape and the cost that most ops share.

#include "op/op.h"

attncl_status attncl__infer_like_first(struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[0];
    return attncl__desc_make(x->dtype, x->rank, x->dim, &sig->out[0]);
}

void attncl__op_cost(const struct op_class *cls, const struct op_sig *sig, double *flop_ret,
                     double *bytes_ret)
{
    *flop_ret = cls->flop_per_element > 0
                    ? cls->flop_per_element * (double)attncl__desc_count(&sig->in[0])
                    : 0;
    *bytes_ret = 0;
    for (int i = 0; i < cls->n_in; ++i) // state is read and written
        if (attncl__desc_present(&sig->in[i]))
            *bytes_ret += (double)attncl__desc_bytes(&sig->in[i]) * (cls->state >> i & 1 ? 2 : 1);
    for (int i = 0; i < cls->n_out; ++i)
        if (attncl__desc_present(&sig->out[i]))
            *bytes_ret += (double)attncl__desc_bytes(&sig->out[i]);
    if (cls->cost)
        cls->cost(sig, flop_ret, bytes_ret);
}

attncl_status attncl__check_input(const char *name, const struct tensor_desc *d, attncl_dtype dtype,
                                  int rank)
{
    REQUIRE(d->dtype == dtype, ATTNCL_ERR_DTYPE, "%s is %s, must be %s", name,
            attncl_dtype_name(d->dtype), attncl_dtype_name(dtype));
    REQUIRE(rank < 0 || d->rank == rank, ATTNCL_ERR_SHAPE, "%s %s has %d axes, must have %d", name,
            SHAPE(d), d->rank, rank);
    return ATTNCL_OK;
}

attncl_status attncl__check_weights(const char *name, const struct tensor_desc *d, int rank)
{
    REQUIRE(d->dtype == ATTNCL_F32 || attncl__is_16_bit(d->dtype), ATTNCL_ERR_DTYPE,
            "%s is %s, must be F32, F16 or BF16", name, attncl_dtype_name(d->dtype));
    return attncl__check_input(name, d, d->dtype, rank);
}

attncl_status attncl__check_index(const char *name, const struct tensor_desc *d)
{
    TRY(attncl__check_input(name, d, ATTNCL_I32, 1));
    REQUIRE(d->dim[0] == 1, ATTNCL_ERR_SHAPE, "%s is %s, must be [1]", name, SHAPE(d));
    return ATTNCL_OK;
}

attncl_status attncl__check_rates_inputs(const struct op_sig *sig)
{
    TRY(attncl__check_input("step", &sig->in[0], ATTNCL_I32, 0));
    if (attncl__desc_present(&sig->in[1]))
        TRY(attncl__check_input("learning_rate", &sig->in[1], ATTNCL_F32, 0));
    return ATTNCL_OK;
}

attncl_status attncl__check_step_inputs(const struct op_sig *sig, const char *const *names,
                                        int n_names, int rates, int64_t n_rates)
{
    const struct tensor_desc *param = &sig->in[0], *r = &sig->in[rates];

    for (int i = 0; i < n_names; ++i) {
        const struct tensor_desc *x = &sig->in[i];
        if (!names[i] || (i == n_names - 1 && !attncl__desc_present(x)))
            continue;
        TRY(attncl__check_input(names[i], x, ATTNCL_F32, -1));
        REQUIRE(attncl__desc_same_shape(x, param), ATTNCL_ERR_SHAPE, "%s is %s, %s is %s", names[i],
                SHAPE(x), names[0], SHAPE(param));
    }
    TRY(attncl__check_input("rates", r, ATTNCL_F32, 1));
    REQUIRE(r->dim[0] == n_rates, ATTNCL_ERR_SHAPE, "rates is %s, expected [%" PRId64 "]", SHAPE(r),
            n_rates);
    return ATTNCL_OK;
}

attncl_status attncl__infer_step(struct op_sig *sig, int n)
{
    for (int i = 0; i < n; ++i)
        TRY(attncl__desc_make(ATTNCL_F32, sig->in[0].rank, sig->in[0].dim, &sig->out[i]));
    return ATTNCL_OK;
}

attncl_status attncl__check_mask(const struct tensor_desc *mask, int64_t t, int64_t s,
                                 const char *s_letter, int64_t b)
{
    const char *const letters[] = {"1 or T", s_letter, "1 or B"};
    const int64_t expected[] = {t, s, b};

    if (!attncl__desc_present(mask))
        return ATTNCL_OK;
    TRY(attncl__check_input("mask", mask, ATTNCL_U8, 3));
    for (int i = 0; i < 3; ++i)
        REQUIRE(mask->dim[i] == expected[i] || (i != 1 && mask->dim[i] == 1), ATTNCL_ERR_SHAPE,
                "axis %d of the mask is %" PRId64 ", expected %s = %" PRId64, i, mask->dim[i],
                letters[i], expected[i]);
    return ATTNCL_OK;
}

attncl_status attncl__check_lens(const struct tensor_desc *lens, int64_t b, int64_t t)
{
    static const char *const letters[] = {"B", "T"};
    const int64_t expected[] = {b, t};

    if (!attncl__desc_present(lens))
        return ATTNCL_OK;
    TRY(attncl__check_input("valid_lens", lens, ATTNCL_I32, -1));
    REQUIRE(lens->rank == 1 || lens->rank == 2, ATTNCL_ERR_SHAPE,
            "valid_lens %s has %d axes, must have 1 or 2", SHAPE(lens), lens->rank);
    for (int i = 0; i < lens->rank; ++i)
        REQUIRE(lens->dim[i] == expected[i], ATTNCL_ERR_SHAPE,
                "axis %d of valid_lens is %" PRId64 ", expected %s = %" PRId64, i, lens->dim[i],
                letters[i], expected[i]);
    return ATTNCL_OK;
}

attncl_status attncl__check_width(const char *name, int64_t width)
{
    REQUIRE(width <= INT32_MAX, ATTNCL_ERR_SHAPE, "%s has %" PRId64 ", at most %d are possible",
            name, width, INT32_MAX);
    return ATTNCL_OK;
}
