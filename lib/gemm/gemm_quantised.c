// SPDX-License-Identifier: MIT
//
// GEMM of weights in 8 and 4 bits by cl/gemm/gemm_cpu_quantised.cl and gemm_gpu_quantised.cl.

#include "gemm/internal.h"

enum { GPU_ROWS = 8, GPU_GROUP = 64, MIN_GPU_GROUP = 16 };
// Work-items a core.  More would balance the load better, but each rounds its rows of A for itself.
enum { CPU_ITEMS_PER_CORE = 2 };
// The row groups of a work-item, and the blocks of a row that it rounds at a time: together they fit in the second-level cache.
enum { CPU_ROW_GROUPS = 8, CPU_BLOCKS = 32 };
// Local memory of a rounded block: its numbers, and struct a_block.
enum { PAIRS_BYTES = 2 * QUANTISED_BLOCK, BLOCK_BYTES = PAIRS_BYTES + 8 };
// With a norm, rows at most, and panels of a work-item at least: it normalises the rows.
enum { CPU_NORM_ROWS = 4, CPU_NORM_PANELS = 4 };

struct cpu_tiles {
    int64_t rows_at_once;
    int64_t rows, panels; // of a work-item
    int64_t blocks;       // of a row that are rounded at a time
};

// With 16 registers half as many rows fit.
static int64_t rows_at_once(const struct device_caps *caps, const struct gemm *g)
{
    return g->m <= 2 ? g->m : g->m <= 4 || caps->vector_width < 16 ? 4 : 8;
}

static struct cpu_tiles divide(const struct device_caps *caps, const struct gemm *g)
{
    const int64_t blocks = g->k / QUANTISED_BLOCK, panels = ceil_div(g->n, QUANTISED_ROWS),
                  all_panels = attncl__gemm_count_columns(g, QUANTISED_ROWS);
    const int64_t at_once = rows_at_once(caps, g), groups = ceil_div(g->m, at_once);
    const int64_t room = (int64_t)caps->local_bytes / 2 / (at_once * BLOCK_BYTES);
    const int64_t items = CPU_ITEMS_PER_CORE * (int64_t)caps->compute_units;
    const bool norms = g->norm.weight.storage != NULL;
    struct cpu_tiles t = {.rows_at_once = at_once,
                          .blocks = norms || groups == 1 ? blocks : CPU_BLOCKS};

    if (!norms && t.blocks > room)
        t.blocks = room > 2 ? room / 2 * 2 : 2;
    const int64_t fitting = room > t.blocks ? room / t.blocks : 1;
    const int64_t row_items = ceil_div(groups, fitting < CPU_ROW_GROUPS ? fitting : CPU_ROW_GROUPS);

    t.rows = ceil_div(groups, row_items) * at_once;
    t.panels = ceil_div(panels, ceil_div(items * panels, row_items * all_panels));
    if (norms && t.panels < CPU_NORM_PANELS)
        t.panels = CPU_NORM_PANELS;
    while (t.panels > 1 && !attncl__loops_fit(caps, (t.panels + 1) * t.rows * blocks * 4))
        t.panels /= 2;
    return t;
}

static attncl_status launch_cpu(struct launcher *l, const struct gemm *g)
{
    const struct cpu_tiles t = divide(l->caps, g);
    const int64_t columns = t.panels * QUANTISED_ROWS;
    const int64_t items = attncl__gemm_count_columns(g, columns) * ceil_div(g->m, t.rows);
    const size_t rounded = (size_t)(round_up(t.rows, t.rows_at_once) * t.blocks);
    struct kspec spec = kspec_begin("gemm/gemm_cpu_quantised.cl", "gemm_cpu_quantised");
    struct arg_list args = {.n = 0};

    kspec_set_vw_ls(&spec, l->caps->vector_width, 1);
    kspec_int(&spec, "MAX_ROWS", t.rows_at_once);
    // One row's sums wait for each other, and its instruction takes longer than an addition.
    kspec_int(&spec, "VNNI", l->caps->vnni && t.rows_at_once > 1);
    kspec_int(&spec, "USE_PREFETCH", l->caps->builtin_prefetch);
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    attncl__gemm_add_norm_macro(&spec, g);
    kspec_int(&spec, "PRODUCTS", attncl__gemm_count_products(g));
    arg_list_add(&args,
                 ARGS(arg_i32(g->m), arg_i32(g->n), arg_i32(g->k), arg_i32(ceil_div(g->n, columns)),
                      arg_i32(t.rows), arg_i32(t.panels), arg_i32(t.blocks)));
    attncl__gemm_add_operands(&args, g);
    arg_list_add(&args, ARGS(arg_local(rounded * PAIRS_BYTES),
                             arg_local(rounded * (BLOCK_BYTES - PAIRS_BYTES))));
    if (g->norm.weight.storage)
        arg_list_add(&args,
                     ARGS(arg_mem(g->norm.weight), arg_mem(g->norm.bias), arg_f32(g->norm.eps),
                          arg_local(attncl__gemm_norm_bytes(l->caps, g))));
    attncl__gemm_add_others(&args, g);
    return attncl__launch(l, &spec, grid_1d(items, 1), args.arg, args.n);
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

bool attncl__gemm_quantised_can_norm(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && g->m <= CPU_NORM_ROWS && g->n > 1 && g->k > 0 &&
           attncl__gemm_norm_bytes(caps, g) <= caps->local_bytes / 4 &&
           attncl__loops_fit(caps, 2 * g->m * g->k);
}

// A launch takes as long as a few MiB of weights, which matters while there are few rows.
bool attncl__gemm_quantised_can_take_others(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && g->m <= SKINNY_GEMM_MAX_ROWS && g->n > 1 && g->k > 0 &&
           g->batch == 1;
}

attncl_status attncl__gemm_quantised(struct launcher *l, const struct gemm *g,
                                     char how[GEMM_HOW_BYTES])
{
    const bool is_cpu = l->caps->variant == VARIANT_CPU;

    assert(g->trans_b && !g->trans_a && !g->causal && g->batch == 1);
    snprintf(how, GEMM_HOW_BYTES, "native gemm_%s_quantised", is_cpu ? "cpu" : "gpu");
    return is_cpu ? launch_cpu(l, g) : launch_gpu(l, g);
}
