// SPDX-License-Identifier: MIT
//
// What the native GEMM kernels share: arguments, macros, grid sizes.

#include "gemm/internal.h"

int attncl__gemm_class(const struct gemm *g)
{
    const double elements = (double)g->m * (double)g->n * (double)g->batch;

    return elements < 65536.0 ? TUNE_SMALL : elements < 524288.0 ? TUNE_MEDIUM : TUNE_LARGE;
}

void attncl__gemm_add_matrix(struct arg_list *args, const struct gemm_matrix *x)
{
    arg_list_add(
        args, ARGS(arg_mem(x->span), arg_i64(x->start), arg_i64(x->ld), arg_i64(x->batch_stride)));
}

void attncl__gemm_add_matrices(struct arg_list *args, const struct gemm *g,
                               const struct gemm_matrix *c)
{
    attncl__gemm_add_matrix(args, &g->a);
    attncl__gemm_add_matrix(args, &g->b);
    attncl__gemm_add_matrix(args, c);
}

void attncl__gemm_add_macros(struct kspec *spec, const struct gemm *g)
{
    kspec_int(spec, "TRANS_A", g->trans_a);
    kspec_int(spec, "TRANS_B", g->trans_b);
    kspec_int(spec, "CAUSAL", g->causal);
    kspec_set_wtype(spec, g->b_dtype);
    kspec_int(spec, "ACT", g->activation);
}

int64_t attncl__gemm_tile_count(const struct gemm *g, int64_t tile_m, int64_t tile_n)
{
    return ceil_div(g->m, tile_m) * ceil_div(g->n, tile_n);
}

attncl_status attncl__gemm_check_groups(const struct gemm *g, int64_t groups)
{
    REQUIRE(groups <= INT32_MAX / g->batch, ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of [%" PRId64 ", %" PRId64 "] in a batch of %" PRId64 " is too large", g->m,
            g->n, g->batch);
    return ATTNCL_OK;
}

size_t attncl__gemm_fit_group(struct launcher *l, const struct gemm *g, int64_t width,
                              gemm_spec_fn make, struct kspec *spec)
{
    size_t local = l->caps->variant == VARIANT_CPU ? 1 : attncl__group_for_row(l->caps, width);

    *spec = make(l->caps, g, local);
    while (local > 1 && !attncl__kernel_fits(l, spec, local, false)) {
        local /= 2;
        *spec = make(l->caps, g, local);
    }
    return local;
}
