// SPDX-License-Identifier: MIT
//
// Shared by the native GEMM kernels: arguments, macros, grid sizes, and a launch of the epilogue alone
// (cl/gemm/gemm_epilogue.cl).

#include "gemm/internal.h"

int attncl__gemm_get_tune_class(const struct gemm *g)
{
    const double elements = (double)g->m * (double)g->n * (double)g->batch;

    return elements < 65536.0 ? TUNE_SMALL : elements < 524288.0 ? TUNE_MEDIUM : TUNE_LARGE;
}

static void add_matrix(struct arg_list *args, const struct gemm_matrix *x)
{
    arg_list_add(
        args, ARGS(arg_mem(x->span), arg_i64(x->start), arg_i64(x->ld), arg_i64(x->batch_stride)));
}

void attncl__gemm_add_matrices(struct arg_list *args, const struct gemm *g,
                               const struct gemm_matrix *c)
{
    add_matrix(args, &g->a);
    add_matrix(args, &g->b);
    add_matrix(args, c);
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

// Bits of `flags` in cl/common/epilogue.clh.
enum { EPI_BIAS_COL = 1, EPI_BIAS_ROW = 2, EPI_GATE = 4, EPI_RESIDUAL = 8 };

static int compute_epilogue_flags(const struct gemm *g)
{
    return (g->bias_kind == GEMM_BIAS_COLUMN ? EPI_BIAS_COL : 0) |
           (g->bias_kind == GEMM_BIAS_ROW ? EPI_BIAS_ROW : 0) |
           (g->gate.span.storage ? EPI_GATE : 0) | (g->residual.span.storage ? EPI_RESIDUAL : 0);
}

bool attncl__gemm_has_epilogue(const struct gemm *g)
{
    return g->activation != ATTNCL_IDENTITY || compute_epilogue_flags(g) != 0;
}

void attncl__gemm_add_epilogue(struct arg_list *args, const struct gemm *g)
{
    arg_list_add(args, ARGS(arg_i32(compute_epilogue_flags(g)), arg_mem(g->bias)));
    add_matrix(args, &g->gate);
    add_matrix(args, &g->residual);
}

static struct kspec make_epilogue_spec(const struct device_caps *caps, const struct gemm *g,
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
    enum { GPU_WIDTH = 4 * 64 }; // gives work-groups of 64, with one column per work-item
    struct kspec spec;
    const size_t local = attncl__gemm_fit_group(l, g, GPU_WIDTH, make_epilogue_spec, &spec);
    const int64_t columns = l->caps->variant == VARIANT_CPU ? g->n : (int64_t)local;
    struct arg_list args = {.n = 0};

    REQUIRE(g->m <= INT32_MAX / g->batch, ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of %" PRId64 " rows in a batch of %" PRId64 " is too large", g->m, g->batch);
    arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_mem(g->scratch), arg_i32(n_splits),
                             arg_i64(g->batch * entry_size), arg_i32(columns)));
    add_matrix(&args, &g->c);
    attncl__gemm_add_epilogue(&args, g);
    return attncl__launch(l, &spec, grid_2d(g->m * g->batch, ceil_div(g->n, columns), local, 1),
                          args.arg, args.n);
}

int attncl__gemm_count_products(const struct gemm *g)
{
    return g->other[0].b.span.storage ? 1 + GEMM_MAX_OTHERS : 1;
}

int64_t attncl__gemm_count_columns(const struct gemm *g, int64_t columns)
{
    return ceil_div(g->n, columns) +
           (attncl__gemm_count_products(g) - 1) * ceil_div(g->n_other, columns);
}

void attncl__gemm_add_operands(struct arg_list *args, const struct gemm *g)
{
    int has_bias = g->bias.storage != NULL;

    attncl__gemm_add_matrices(args, g, &g->c);
    if (attncl__gemm_count_products(g) == 1) {
        attncl__gemm_add_epilogue(args, g);
        return;
    }
    for (int i = 0; i < GEMM_MAX_OTHERS; ++i)
        has_bias |= (g->other[i].bias.storage != NULL) << (1 + i);
    arg_list_add(args, ARGS(arg_i32(has_bias), arg_mem(g->bias)));
}

void attncl__gemm_add_others(struct arg_list *args, const struct gemm *g)
{
    if (attncl__gemm_count_products(g) == 1)
        return;
    arg_list_add(args, ARGS(arg_i32(g->n_other)));
    for (int i = 0; i < GEMM_MAX_OTHERS; ++i) {
        const struct gemm_other *o = &g->other[i];
        arg_list_add(args, ARGS(arg_mem(o->b.span), arg_i64(o->b.start), arg_i64(o->b.ld),
                                arg_mem(o->bias), arg_mem(o->c)));
    }
}
