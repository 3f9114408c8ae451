// SPDX-License-Identifier: MIT
//
// Weights that are stored in 16 bits.  Skinny GEMMs read them as they are, since reading bounds their time; for the others
// they become floats in scratch first (cl/gemm/gemm_weights.cl), which costs little beside the GEMM.

#include "gemm/gemm_native.h"

static bool becomes_float(const struct device_caps *caps, const struct gemm *g)
{
    return attncl__is_16_bit(g->b_dtype) && !attncl__gemm_is_skinny(caps, g);
}

size_t attncl__gemm_weights_scratch(const struct device_caps *caps, const struct gemm *g)
{
    return becomes_float(caps, g) ? (size_t)(g->k * g->n) * sizeof(float) : 0;
}

static struct kspec spec_of(const struct device_caps *caps, const struct gemm *g, size_t local)
{
    struct kspec spec = kspec_begin("gemm/gemm_weights.cl", "gemm_weights_to_float");

    kspec_set_vw_ls(&spec, caps->variant == VARIANT_CPU ? caps->vector_width : 1, local);
    kspec_set_wtype(&spec, g->b_dtype);
    return spec;
}

attncl_status attncl__gemm_weights_to_float(struct launcher *l, struct gemm *g)
{
    const int64_t rows = g->trans_b ? g->n : g->k, columns = g->trans_b ? g->k : g->n;
    const size_t bytes = attncl__gemm_weights_scratch(l->caps, g);
    struct gemm_matrix floats = {.span = g->scratch, .ld = columns};
    struct kspec spec;

    if (bytes == 0)
        return ATTNCL_OK;
    assert(g->batch == 1 && g->scratch.storage && bytes <= g->scratch_bytes);
    g->scratch_bytes -= bytes;
    floats.start = (int64_t)(g->scratch_bytes / sizeof(float));
    const size_t local = attncl__gemm_fit_group(l, g, columns, spec_of, &spec);
    TRY(attncl__launch(l, &spec, grid_1d(rows, local),
                       ARGS(arg_i32(columns), arg_mem(g->b.span), arg_i64(g->b.start),
                            arg_i64(g->b.ld), arg_mem(floats.span), arg_i64(floats.start))));
    g->b = floats;
    g->b_dtype = ATTNCL_F32;
    return ATTNCL_OK;
}
