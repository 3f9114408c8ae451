// SPDX-License-Identifier: MIT
//
// GEMMs and the networks that consist of little else.  A row of the result depends on one row of
// the input, so full-size runs are checked on a few rows spread over all, the last one included.

#include <string.h>

#include "cases/define.h"

enum { N_CHECKED_ROWS = 12 };

static struct part rows_of(const struct sizes *s)
{
    return part_spread(N_CHECKED_ROWS, s->M);
}

// A plain GEMM has no builder of its own: A B is a batch of one, A B^T a linear map.
static attncl_value build_gemm(struct case_data *t, const struct sizes *s)
{
    if (s->transposed) {
        const attncl_value a = case_input(t, "a", 1, DIMS(s->M, s->K));
        return attncl_linear(t->graph, a, MAP("b", s->N, s->K), ATTNCL_NONE_VALUE);
    }
    const attncl_value a = case_input(t, "a", 1, DIMS(1, s->M, s->K));
    return attncl_bmm(t->graph, a, ARRAY("b", 1, 1, s->K, s->N));
}

static attncl_value build_bmm(struct case_data *t, const struct sizes *s)
{
    const attncl_value a = case_input(t, "a", 1, DIMS(s->B, s->M, s->K));
    const attncl_value b = case_input(t, "b", 1, DIMS(s->B, s->K, s->N));

    return attncl_bmm(t->graph, a, b);
}

static void check_gemm(const struct case_data *t, const struct sizes *s, struct check *c)
{
    const struct host *b = case_whole(t, "b");

    if (s->transposed)
        check_compare(c, (double)s->K, PART(t, "y", rows_of(s), ALL),
                      define_linear(PART(t, "a", rows_of(s), ALL), b, NULL));
    else
        check_compare(c, (double)s->K, PART(t, "y", ALL, rows_of(s), ALL),
                      define_bmm(PART(t, "a", ALL, rows_of(s), ALL), b));
}

PLAIN_FAMILY(gemm, SUITE_OP)
FAMILY(bmm, .build = build_bmm, .check = check_gemm)

// By a provider, whatever the library would choose.
static attncl_value build_device_gemm(struct case_data *t, const struct sizes *s)
{
    return s->B > 0 ? build_bmm(t, s) : build_gemm(t, s);
}

FAMILY(device_gemm, .suite = SUITE_DEVICE, .quantity = QUANTITY_GEMM, .build = build_device_gemm,
       .check = check_gemm)

static attncl_value build_linear(struct case_data *t, const struct sizes *s)
{
    const attncl_value x = case_input(t, "x", 1, DIMS(s->M, s->K));

    return attncl_linear(t->graph, x, MAP("weight", s->N, s->K), ARRAY("bias", 1, s->N));
}

CHECKED(linear, SUITE_OP, s->K, PART(t, "y", rows_of(s), ALL),
        want = define_linear(PART(t, "x", rows_of(s), ALL), WHOLE("weight"), WHOLE("bias")))

static attncl_value build_feed_forward(struct case_data *t, const struct sizes *s)
{
    const attncl_value x = case_input(t, "x", 1, DIMS(s->M, s->C));
    const attncl_ffn_params params = {.struct_size = sizeof params, FFN_FIELDS("", MAP, ARRAY)};

    return attncl_feed_forward(t->graph, &params, ATTNCL_GELU, x, ATTNCL_NONE_VALUE);
}

CHECKED(feed_forward, SUITE_LAYER, s->C + s->F, PART(t, "y", rows_of(s), ALL),
        ref_feed_forward(&(const struct ref_ffn){FFN_FIELDS("", WHOLE, WHOLE)}, ATTNCL_GELU,
                         PART(t, "x", rows_of(s), ALL), want))
