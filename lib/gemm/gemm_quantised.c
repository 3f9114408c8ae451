// SPDX-License-Identifier: MIT
//
// GEMM of weights in 8 and 4 bits: few rows of A by cl/gemm/gemm_cpu_quantised.cl, in the GPU variant any by
// gemm_gpu_quantised.cl; more of them by the CPU's tiles, which widen B where they pack it.

#include "gemm/internal.h"

// With more rows of A packing B pays.
enum { CPU_MAX_ROWS = 32, CPU_ROWS = 8, GPU_ROWS = 8, GPU_GROUP = 64, MIN_GPU_GROUP = 16 };
// Work-items a core, to balance them; each sums the rows of A for itself.  With a norm, panels of each at least, and rows
// at most: the work-item normalises them.
enum { CPU_ITEMS_PER_CORE = 4, CPU_NORM_PANELS = 4, CPU_NORM_ROWS = 4 };

static int64_t rows_at_once(const struct gemm *g)
{
    return g->m == 1 ? 1 : g->m <= 4 ? 4 : CPU_ROWS;
}

static size_t sums_bytes(const struct gemm *g)
{
    const int64_t rows = ceil_div(g->m, rows_at_once(g)) * rows_at_once(g);
    return (size_t)(rows * (g->k / QUANTISED_BLOCK)) * sizeof(float);
}

static attncl_status launch_cpu(struct launcher *l, const struct gemm *g)
{
    const int64_t panels = ceil_div(g->n, QUANTISED_ROWS);
    const int64_t even = ceil_div(panels, CPU_ITEMS_PER_CORE * (int64_t)l->caps->compute_units);
    const bool norms = g->norm.weight.storage != NULL;
    const int64_t each = norms && even < CPU_NORM_PANELS ? CPU_NORM_PANELS : even;
    struct kspec spec = kspec_begin("gemm/gemm_cpu_quantised.cl", "gemm_cpu_quantised");
    struct arg_list args = {.n = 0};

    kspec_set_vw_ls(&spec, l->caps->vector_width, 1);
    kspec_int(&spec, "MAX_ROWS", rows_at_once(g));
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    attncl__gemm_add_norm_macro(&spec, g);
    arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_i32(g->k), arg_i32(each)));
    attncl__gemm_add_matrices(&args, g, &g->c);
    attncl__gemm_add_epilogue(&args, g);
    arg_list_add(&args, ARGS(arg_local(sums_bytes(g))));
    if (norms)
        arg_list_add(&args,
                     ARGS(arg_mem(g->norm.weight), arg_mem(g->norm.bias), arg_f32(g->norm.eps),
                          arg_local(attncl__gemm_norm_bytes(l->caps, g))));
    return attncl__launch(l, &spec, grid_1d(ceil_div(panels, each), 1), args.arg, args.n);
}

static struct kspec gpu_spec(const struct gemm *g, size_t local)
{
    struct kspec spec = kspec_begin("gemm/gemm_gpu_quantised.cl", "gemm_gpu_quantised");

    kspec_set_vw_ls(&spec, 1, local);
    kspec_int(&spec, "MAX_ROWS", g->m == 1 ? 1 : GPU_ROWS);
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

static attncl_status launch_gpu(struct launcher *l, const struct gemm *g)
{
    const int64_t panels = ceil_div(g->n, QUANTISED_ROWS);
    const int64_t row_groups = g->m == 1 ? 1 : ceil_div(g->m, GPU_ROWS);
    struct arg_list args = {.n = 0};
    size_t local = GPU_GROUP;
    struct kspec spec = gpu_spec(g, local);

    while (local > MIN_GPU_GROUP && !attncl__kernel_fits(l, &spec, local, false))
        spec = gpu_spec(g, local /= 2);
    TRY(attncl__gemm_check_groups(g, panels * row_groups));
    arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_i32(g->k), arg_i32(row_groups)));
    attncl__gemm_add_matrices(&args, g, &g->c);
    attncl__gemm_add_epilogue(&args, g);
    return attncl__launch(l, &spec, grid_1d(panels * row_groups, local), args.arg, args.n);
}

static bool is_skinny(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && g->m <= CPU_MAX_ROWS &&
           sums_bytes(g) <= caps->local_bytes / 2 &&
           attncl__loops_fit(caps, (g->m + CPU_ROWS) * g->k * 16);
}

bool attncl__gemm_quantised_norms(const struct device_caps *caps, const struct gemm *g)
{
    return is_skinny(caps, g) && g->m <= CPU_NORM_ROWS && g->n > 1 && g->k > 0 &&
           attncl__gemm_norm_bytes(caps, g) <= caps->local_bytes / 4;
}

attncl_status attncl__gemm_quantised(struct launcher *l, const struct gemm *g,
                                     char how[GEMM_HOW_BYTES])
{
    const bool is_cpu = l->caps->variant == VARIANT_CPU;

    assert(g->trans_b && !g->trans_a && !g->causal && g->batch == 1);
    if (is_cpu && !is_skinny(l->caps, g))
        return attncl__gemm_cpu(l, g, how);
    snprintf(how, GEMM_HOW_BYTES, "native gemm_%s_quantised", is_cpu ? "cpu" : "gpu");
    return is_cpu ? launch_cpu(l, g) : launch_gpu(l, g);
}
