// SPDX-License-Identifier: MIT
//
// The epilogue of a GEMM: its arguments for every native kernel, and a launch of the epilogue alone
// (cl/gemm/gemm_epilogue.cl).

#include "gemm/internal.h"

// Bits of `flags` in cl/common/epilogue.clh.
enum { EPI_BIAS_COL = 1, EPI_BIAS_ROW = 2, EPI_GATE = 4, EPI_RESIDUAL = 8 };

static int epilogue_flags(const struct gemm *g)
{
    return (g->bias_kind == GEMM_BIAS_COLUMN ? EPI_BIAS_COL : 0) |
           (g->bias_kind == GEMM_BIAS_ROW ? EPI_BIAS_ROW : 0) |
           (g->gate.span.storage ? EPI_GATE : 0) | (g->residual.span.storage ? EPI_RESIDUAL : 0);
}

bool attncl__gemm_has_epilogue(const struct gemm *g)
{
    return g->activation != ATTNCL_IDENTITY || epilogue_flags(g) != 0;
}

void attncl__gemm_add_epilogue(struct arg_list *args, const struct gemm *g)
{
    arg_list_add(args, ARGS(arg_i32(epilogue_flags(g)), arg_mem(g->bias)));
    attncl__gemm_add_matrix(args, &g->gate);
    attncl__gemm_add_matrix(args, &g->residual);
}

static struct kspec epilogue_spec(const struct device_caps *caps, const struct gemm *g,
                                  size_t local)
{
    struct kspec spec = kspec_begin("gemm/gemm_epilogue.cl", "gemm_epilogue");

    kspec_set_vw_ls(&spec, caps->variant == VARIANT_CPU ? caps->vector_width : 1, local);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

attncl_status attncl__gemm_apply_epilogue(struct launcher *l, const struct gemm *g,
                                          int64_t n_splits)
{
    const int64_t entry_size = g->m * g->n;
    struct kspec spec;
    const size_t local = attncl__gemm_fit_group(l, g, g->n, epilogue_spec, &spec);
    struct arg_list args = {.n = 0};

    REQUIRE(g->m <= INT32_MAX / g->batch, ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of %" PRId64 " rows in a batch of %" PRId64 " is too large", g->m, g->batch);
    arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_mem(g->scratch), arg_i32(n_splits),
                             arg_i64(g->batch * entry_size)));
    attncl__gemm_add_matrix(&args, &g->c);
    attncl__gemm_add_epilogue(&args, g);
    return attncl__launch(l, &spec, grid_1d(g->m * g->batch, local), args.arg, args.n);
}
