// SPDX-License-Identifier: MIT
//
// Checks of inputs, the shape and the cost that most ops share.

#include "attncl/kinds.h"
#include "op/op.h"

unsigned attncl__op_inputs(const struct op_class *cls, enum op_arg_flag flag)
{
    unsigned bits = 0;

    if (!cls->in)
        return flag == OPTIONAL   ? cls->optional
               : flag == STRIDED  ? cls->strided
               : flag == ANY_VIEW ? cls->any_view
               : flag == STATE    ? cls->state
                                  : cls->shape_only;
    for (int i = 0; i < cls->n_in; ++i)
        bits |= (unsigned)((cls->in[i].flags & flag) != 0) << i;
    return bits;
}

static attncl_status check_type(const struct op_sig *sig, const struct op_arg *arg, int i)
{
    static const attncl_dtype types[] = {ATTNCL_F32, ATTNCL_I32, ATTNCL_U8};
    const unsigned type = arg->flags & TYPE_MASK;
    const attncl_dtype got = sig->in[i].dtype;

    if (type == ANY_TYPE)
        return ATTNCL_OK;
    if (type == STORED) {
        REQUIRE(got == ATTNCL_F32 || attncl__is_16_bit(got), ATTNCL_ERR_DTYPE,
                "%s is %s, must be F32, F16 or BF16", arg->name, attncl_dtype_name(got));
        return ATTNCL_OK;
    }
    const attncl_dtype expected = type == SAME_TYPE ? sig->in[i - 1].dtype : types[type];
    REQUIRE(got == expected, ATTNCL_ERR_DTYPE, "%s is %s, must be %s%s%s", arg->name,
            attncl_dtype_name(got), attncl_dtype_name(expected), type == SAME_TYPE ? " as " : "",
            type == SAME_TYPE ? arg[-1].name : "");
    return ATTNCL_OK;
}

static attncl_status match_inputs(const struct op_class *cls, const struct op_sig *sig)
{
    for (int i = 0; i < cls->n_in; ++i) {
        const struct op_arg *const arg = &cls->in[i];
        if (!attncl__desc_present(&sig->in[i])) {
            REQUIRE(arg->flags & OPTIONAL, ATTNCL_ERR_ARGUMENT, "%s is missing", arg->name);
            continue;
        }
        TRY(check_type(sig, arg, i));
        if (arg->shape)
            TRY(attncl__axes_match(sig->axes, arg->shape, arg->name, &sig->in[i]));
    }
    return cls->int_axes ? attncl__check_axes(sig, cls->int_axes, 0, INT32_MAX) : ATTNCL_OK;
}

// The input that an output is like, "=x"; NULL: none.
static const struct tensor_desc *model_of(const struct op_class *cls, const struct op_sig *sig,
                                          const struct op_arg *out)
{
    if (*out->shape != '=')
        return NULL;
    for (int i = 0;; ++i) {
        assert(i < cls->n_in);
        if (strcmp(cls->in[i].name, out->shape + 1) == 0)
            return &sig->in[i];
    }
}

static attncl_dtype output_type(const struct op_class *cls, const struct op_sig *sig, int i)
{
    const struct op_arg *const out = &cls->out[i];
    const struct tensor_desc *const like = out->shape ? model_of(cls, sig, out) : NULL;

    if (!out->shape || out->flags & OPTIONAL ||
        (out->flags & FOR_BACKWARD && !sig->save_for_backward) ||
        (like && !attncl__desc_present(like)))
        return ATTNCL_DTYPE_NONE;
    return (out->flags & TYPE_MASK) == I32 ? ATTNCL_I32 : ATTNCL_F32;
}

static attncl_status infer(const struct op_class *cls, struct op_sig *sig)
{
    TRY(match_inputs(cls, sig));
    for (int i = 0; i < cls->n_out; ++i)
        sig->out[i] = (struct tensor_desc){.dtype = output_type(cls, sig, i)};
    if (cls->infer)
        TRY(cls->infer(sig));
    for (int i = 0; i < cls->n_out; ++i) {
        struct tensor_desc *const out = &sig->out[i];
        const char *const shape = cls->out[i].shape;
        const struct tensor_desc *const like = shape ? model_of(cls, sig, &cls->out[i]) : NULL;
        if (like && attncl__desc_present(out))
            TRY(attncl__desc_make(out->dtype, like->rank, like->dim, out));
        else if (shape && attncl__desc_present(out))
            TRY(attncl__axes_make(sig->axes, shape, out->dtype, out));
    }
    return ATTNCL_OK;
}

attncl_status attncl__op_infer(const struct op_class *cls, struct op_sig *sig)
{
    struct axes axes;

    if (!cls->in)
        return cls->infer(sig);
    attncl__axes_init(&axes);
    sig->axes = &axes;
    sig->cls = cls;
    const attncl_status status = infer(cls, sig);
    sig->axes = NULL;
    return status;
}

attncl_status attncl__make_output(struct op_sig *sig, int i, const char *shape)
{
    return attncl__axes_make(sig->axes, shape, ATTNCL_F32, &sig->out[i]);
}

attncl_status attncl__check_shape(const struct op_sig *sig, int i, const char *shape)
{
    return attncl__axes_match(sig->axes, shape, sig->cls->in[i].name, &sig->in[i]);
}

attncl_status attncl__check_last_axes(const struct op_sig *sig, int all, int part)
{
    const struct tensor_desc *const x = &sig->in[all], *const d = &sig->in[part];
    const char *const name = sig->cls->in[part].name, *const of = sig->cls->in[all].name;

    REQUIRE(d->rank >= 1 && d->rank <= x->rank &&
                memcmp(d->dim, &x->dim[x->rank - d->rank], (size_t)d->rank * sizeof d->dim[0]) == 0,
            ATTNCL_ERR_SHAPE, "%s is %s, %s is %s: must be its last axes", name, SHAPE(d), of,
            SHAPE(x));
    return attncl__check_width(name, attncl__desc_count(d));
}

attncl_status attncl__check_axes(const struct op_sig *sig, const char *letters, int64_t min,
                                 int64_t max)
{
    for (const char *letter = letters; *letter; ++letter) {
        const int64_t extent = sig->axes->of[(unsigned char)*letter];
        REQUIRE(extent < 0 || (extent >= min && extent <= max), ATTNCL_ERR_SHAPE,
                "%s has %c = %" PRId64 ", expected %" PRId64 " to %" PRId64,
                sig->axes->source[(unsigned char)*letter].name, *letter, extent, min, max);
    }
    return ATTNCL_OK;
}

attncl_status attncl__check_product(const struct op_sig *sig, const char *letters, int64_t max)
{
    int64_t product = 1;

    TRY(attncl__check_axes(sig, letters, 0, max));
    for (const char *letter = letters; *letter; ++letter)
        product *= sig->axes->of[(unsigned char)*letter];
    REQUIRE(product <= max, ATTNCL_ERR_SHAPE,
            "%s is %s: the product of %s is %" PRId64 ", at most %" PRId64,
            sig->axes->source[(unsigned char)*letters].name,
            SHAPE(sig->axes->source[(unsigned char)*letters].desc), letters, product, max);
    return ATTNCL_OK;
}

attncl_status attncl__check_at_most(const struct op_sig *sig, char a, char b)
{
    const int64_t x = sig->axes->of[(unsigned char)a], max = sig->axes->of[(unsigned char)b];
    const struct axis_source *const source = sig->axes->source;

    REQUIRE(max < 0 || x <= max, ATTNCL_ERR_SHAPE,
            "%s has %c = %" PRId64 ", %s has %c = %" PRId64 ": %c must not exceed %c",
            source[(unsigned char)a].name, a, x, source[(unsigned char)b].name, b, max, a, b);
    return ATTNCL_OK;
}

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
            *bytes_ret += (double)attncl__desc_bytes(&sig->in[i]) *
                          (attncl__op_inputs(cls, STATE) >> i & 1 ? 2 : 1);
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

attncl_status attncl__check_activation(int32_t kind)
{
    REQUIRE(kind >= ATTNCL_IDENTITY && kind <= ATTNCL_GELU_TANH, ATTNCL_ERR_ARGUMENT,
            "there is no activation %d, the last one is %d", (int)kind, ATTNCL_GELU_TANH);
    return ATTNCL_OK;
}
