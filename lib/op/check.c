// SPDX-License-Identifier: MIT
//
// Infers an op's outputs from its class's declared shapes; checks shared by infer functions; costs.

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "attncl/kinds.h"
#include "base/quantised.h"
#include "op/op.h"

unsigned attncl__op_inputs(const struct op_class *cls, enum op_arg_flag flag)
{
    unsigned bits = 0;

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
    if (arg->flags & OR_QUANTISED && attncl__is_quantised(got))
        return ATTNCL_OK;
    if (arg->flags & OR_U8 && got == ATTNCL_U8)
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
    if (cls->int_axes)
        TRY(attncl__check_axes(sig, cls->int_axes, 0, INT32_MAX));
    return cls->filled_axes ? attncl__check_axes(sig, cls->filled_axes, 1, INT32_MAX) : ATTNCL_OK;
}

// The input named by an output's shape "=x".
static const struct tensor_desc *find_input(const struct op_class *cls, const struct op_sig *sig,
                                            const char *name)
{
    int i = 0;

    while (strcmp(cls->in[i].name, name) != 0) {
        ++i;
        assert(i < cls->n_in);
    }
    return &sig->in[i];
}

// Before infer: describes an output "=x"; of others sets the type, since infer may set their letters.
static attncl_status prepare_output(const struct op_class *cls, struct op_sig *sig, int i)
{
    const struct op_arg *const arg = &cls->out[i];
    struct tensor_desc *const out = &sig->out[i];

    *out = (struct tensor_desc){.dtype = ATTNCL_DTYPE_NONE};
    if (!arg->shape || arg->flags & OPTIONAL ||
        (arg->flags & FOR_BACKWARD && !sig->save_for_backward))
        return ATTNCL_OK;
    if (*arg->shape == '=') {
        const struct tensor_desc *const in = find_input(cls, sig, arg->shape + 1);
        return attncl__desc_present(in) ? attncl__desc_make(ATTNCL_F32, in->rank, in->dim, out)
                                        : ATTNCL_OK;
    }
    out->dtype = (arg->flags & TYPE_MASK) == I32 ? ATTNCL_I32 : ATTNCL_F32;
    return ATTNCL_OK;
}

static attncl_status infer(const struct op_class *cls, struct op_sig *sig)
{
    TRY(match_inputs(cls, sig));
    for (int i = 0; i < cls->n_out; ++i)
        TRY(prepare_output(cls, sig, i));
    if (cls->infer)
        TRY(cls->infer(sig));
    for (int i = 0; i < cls->n_out; ++i) {
        const char *const shape = cls->out[i].shape;
        if (attncl__desc_present(&sig->out[i]) && shape && *shape != '=')
            TRY(attncl__axes_make(sig->axes, shape, sig->out[i].dtype, &sig->out[i]));
    }
    return ATTNCL_OK;
}

attncl_status attncl__op_infer(const struct op_class *cls, struct op_sig *sig)
{
    struct axes axes;

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
        const int64_t extent = sig->axes->of[(int)*letter];
        REQUIRE(extent < 0 || (extent >= min && extent <= max), ATTNCL_ERR_SHAPE,
                "%s has %c = %" PRId64 ", expected %" PRId64 " to %" PRId64,
                sig->axes->source[(int)*letter].name, *letter, extent, min, max);
    }
    return ATTNCL_OK;
}

attncl_status attncl__check_product(const struct op_sig *sig, const char *letters, int64_t max)
{
    int64_t product = 1;

    TRY(attncl__check_axes(sig, letters, 0, max));
    for (const char *letter = letters; *letter; ++letter)
        product *= sig->axes->of[(int)*letter];
    REQUIRE(product <= max, ATTNCL_ERR_SHAPE,
            "%s is %s: the product of %s is %" PRId64 ", at most %" PRId64,
            sig->axes->source[(int)*letters].name, SHAPE(sig->axes->source[(int)*letters].desc),
            letters, product, max);
    return ATTNCL_OK;
}

attncl_status attncl__check_at_most(const struct op_sig *sig, char a, char b)
{
    const int64_t x = sig->axes->of[(int)a], max = sig->axes->of[(int)b];
    const struct axis_source *const source = sig->axes->source;

    REQUIRE(max < 0 || x <= max, ATTNCL_ERR_SHAPE,
            "%s has %c = %" PRId64 ", %s has %c = %" PRId64 ": %c must not exceed %c",
            source[(int)a].name, a, x, source[(int)b].name, b, max, a, b);
    return ATTNCL_OK;
}

attncl_status attncl__check_width(const char *name, int64_t width)
{
    REQUIRE(width <= INT32_MAX, ATTNCL_ERR_SHAPE, "%s has %" PRId64 ", at most %d are possible",
            name, width, INT32_MAX);
    return ATTNCL_OK;
}

attncl_status attncl__check_activation(struct op_sig *sig)
{
    const int32_t *const kind = sig->params;

    REQUIRE(*kind >= ATTNCL_IDENTITY && *kind <= ATTNCL_GELU_TANH, ATTNCL_ERR_ARGUMENT,
            "there is no activation %d, the last one is %d", (int)*kind, ATTNCL_GELU_TANH);
    return ATTNCL_OK;
}

attncl_status attncl__check_softcap(float softcap)
{
    REQUIRE(isfinite(softcap) && softcap >= 0, ATTNCL_ERR_ARGUMENT,
            "softcap is %g, must be finite and at least 0", (double)softcap);
    return ATTNCL_OK;
}

attncl_status attncl__check_dropout(const struct dropout_fwd_params *mask,
                                    const struct tensor_desc *step, int64_t n)
{
    REQUIRE(mask->p >= 0 && mask->p <= 1, ATTNCL_ERR_ARGUMENT, "dropout p is %g, expected 0 to 1",
            mask->p);
    REQUIRE(mask->site >= 0 && mask->site <= UINT32_MAX, ATTNCL_ERR_ARGUMENT,
            "dropout site is %" PRId64 ", expected 0 to %" PRIu32, mask->site, UINT32_MAX);
    REQUIRE(mask->p == 0 || attncl__desc_present(step), ATTNCL_ERR_ARGUMENT,
            "dropout p is %g, step is missing", mask->p);
    if (mask->batch_total == 0 && mask->batch_begin == 0)
        return ATTNCL_OK;
    REQUIRE(mask->batch_begin >= 0 && mask->batch_begin <= mask->batch_total &&
                n <= mask->batch_total - mask->batch_begin,
            ATTNCL_ERR_ARGUMENT,
            "dropout of %" PRId64 " entries from %" PRId64 " on of a batch of %" PRId64, n,
            mask->batch_begin, mask->batch_total);
    return ATTNCL_OK;
}

static double count_present(const struct tensor_desc *d)
{
    return attncl__desc_present(d) ? (double)attncl__desc_count(d) : 0;
}

static double evaluate_sum(const char *sum, const struct op_sig *sig)
{
    double total = 0, product = 1;

    for (const char *c = sum; *c; ++c)
        if (isdigit((unsigned char)*c)) {
            char *end;
            product *= (double)strtol(c, &end, 10);
            c = end - 1;
        } else if (*c == '+') {
            total += product;
            product = 1;
        } else if (*c != ' ') {
            product *= *c == 'p'   ? sig->cls->pairs(sig)
                       : *c == 'x' ? count_present(&sig->in[0])
                       : *c > 'x'  ? count_present(&sig->out[*c - 'y'])
                                   : (double)sig->axes->of[(int)*c];
        }
    return total + product;
}

// Bytes moved of argument i, counting inputs first.
static double count_bytes(const struct op_sig *sig, int i)
{
    const struct op_class *const cls = sig->cls;
    const bool is_input = i < cls->n_in;
    const struct tensor_desc *const d = is_input ? &sig->in[i] : &sig->out[i - cls->n_in];
    const unsigned flags = is_input ? cls->in[i].flags : 0;

    if (!attncl__desc_present(d) || flags & SHAPE_ONLY)
        return 0;
    if (i < MAX_MOVED && cls->moved[i])
        return (double)attncl_dtype_bytes(d->dtype) * evaluate_sum(cls->moved[i], sig);
    return (double)attncl__desc_bytes(d) * (flags & STATE ? 2 : 1);
}

void attncl__op_cost(const struct op_class *cls, const struct op_sig *sig, double *flop_ret,
                     double *bytes_ret)
{
    struct axes axes;
    struct op_sig with_axes = *sig;

    attncl__axes_init(&axes);
    with_axes.cls = cls;
    with_axes.axes = &axes;
    (void)match_inputs(cls, &with_axes); // as infer did
    *flop_ret = cls->flop ? evaluate_sum(cls->flop, &with_axes) : 0;
    *bytes_ret = 0;
    for (int i = 0; i < cls->n_in + cls->n_out; ++i)
        *bytes_ret += count_bytes(&with_axes, i);
    if (cls->cost)
        cls->cost(sig, flop_ret, bytes_ret);
}
