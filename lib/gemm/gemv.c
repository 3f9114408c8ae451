// SPDX-License-Identifier: MIT
//
// Skinny GEMM by cl/gemm/gemv_dot.cl and gemv_blocks.cl (GPU variant, B transposed) and gemv_axpy.cl (both variants, B
// plain).

#include "gemm/internal.h"

// gemv_dot: columns per work-group (COLS_PER_GROUP).  gemv_axpy: vectors per work-item on CPUs, work-items per
// work-group on GPUs.
enum { GEMV_COLS_PER_GROUP = 4, GEMV_CPU_VECTORS = 4, GEMV_GPU_GROUP = 64 };

// gemv_blocks: rows and columns per work-group.  A sum gets the work-items of a row of at most BLOCK_WIDTH elements, so
// that local memory suffices.
enum { BLOCK_ROWS = 8, BLOCK_COLS = 8, BLOCK_WIDTH = 512, MAX_BLOCKED_ROWS = 32 };

// Reading so many floats from a cache, by all work-groups together, takes about as long as another launch.
enum { MAX_READ = 1 << 23 };

// True when the repeated reads of A and B are cheap for `n_products` GEMMs.
static bool is_cheap_in_blocks(const struct gemm *g, int n_products)
{
    const int64_t a_reads = ceil_div(g->n, BLOCK_COLS) * g->m * g->k,
                  b_reads = ceil_div(g->m, BLOCK_ROWS) * g->n * g->k;
    return n_products * (a_reads + b_reads) <= MAX_READ;
}

// GPU variant, B transposed, more rows than one work-group of gemv_dot takes.
static bool uses_blocks(const struct device_caps *caps, const struct gemm *g)
{
    enum { MAX_EXTENT = 1 << 20 }; // products of three extents stay in range

    return caps->variant == VARIANT_GPU && g->trans_b && g->batch == 1 && g->m > GEMV_MAX_ROWS &&
           g->m <= MAX_BLOCKED_ROWS && g->n > 1 && g->n <= MAX_EXTENT && g->k > 0 &&
           g->k <= MAX_EXTENT && is_cheap_in_blocks(g, 1);
}

bool attncl__gemv_is_supported(const struct device_caps *caps, const struct gemm *g)
{
    return (g->m <= GEMV_MAX_ROWS || uses_blocks(caps, g)) && !g->trans_a && !g->causal &&
           attncl__loops_fit(caps, g->trans_b ? g->k : 2 * g->m * g->k);
}

// True for gemv_dot and gemv_blocks with one batch entry.
static bool uses_gpu_dots(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_GPU && !attncl__is_quantised(g->b_dtype) &&
           attncl__gemv_is_supported(caps, g) && g->trans_b && g->n > 1 && g->k > 0 &&
           g->batch == 1;
}

bool attncl__gemv_can_norm(const struct device_caps *caps, const struct gemm *g)
{
    enum { MAX_ELEMENTS = 4096 }; // of rows that stay in a multiprocessor's cache; of a block, half
    return uses_gpu_dots(caps, g) && (uses_blocks(caps, g) ? g->k <= 2 * MAX_ELEMENTS / BLOCK_ROWS
                                                           : g->m * g->k <= MAX_ELEMENTS);
}

bool attncl__gemm_can_take_others(const struct device_caps *caps, const struct gemm *g)
{
    if (attncl__is_quantised(g->b_dtype))
        return attncl__gemm_quantised_can_take_others(caps, g);
    return uses_gpu_dots(caps, g) &&
           (!uses_blocks(caps, g) || is_cheap_in_blocks(g, 1 + GEMM_MAX_OTHERS));
}

// CPU: wide vectors, one work-item.  GPU: neighbouring work-items read neighbouring elements, or four 16-bit ones at
// once unless that leaves columns over, for which B would be read again; blocks of rows lack registers for that.
static unsigned choose_vector_width(const struct device_caps *caps, const struct gemm *g)
{
    // With four at once a work-item holds 64 accumulators, too many for Intel's registers.
    const int64_t max_rows = caps->vendor == VENDOR_INTEL && g->trans_b ? 1 : GEMV_MAX_ROWS;
    const bool fours =
        attncl__is_16_bit(g->b_dtype) && g->m <= max_rows && (g->trans_b || g->n % 4 == 0);
    return caps->variant == VARIANT_CPU ? caps->vector_width : fours ? 4 : 1;
}

// gemv_axpy: vectors per work-item (NV).
static int gemv_vectors(const struct device_caps *caps)
{
    return caps->variant == VARIANT_CPU ? GEMV_CPU_VECTORS : 1;
}

static int64_t rows_per_group(const struct gemm *g)
{
    return g->m <= GEMV_MAX_ROWS ? g->m : BLOCK_ROWS;
}

// Local memory for merging.
static size_t merge_bytes(const struct gemm *g)
{
    enum { PART_FLOATS = 3 }; // as in attention_merge.clh
    return (size_t)(rows_per_group(g) * g->merge.n_heads * g->merge.n_parts) * PART_FLOATS *
           sizeof(float);
}

bool attncl__gemm_can_merge(const struct device_caps *caps, const struct gemm *g)
{
    enum { MAX_ELEMENTS = 4096 }; // of a work-group's rows; twice as many in blocks
    const bool blocks = g->m > GEMV_MAX_ROWS;
    const int64_t n_heads = g->merge.n_heads, elements = rows_per_group(g) * g->k;
    const int64_t columns = blocks ? BLOCK_COLS : GEMV_COLS_PER_GROUP;

    return uses_gpu_dots(caps, g) && elements <= (blocks ? 2 : 1) * MAX_ELEMENTS &&
           ceil_div(g->n, columns) * g->m * g->k * g->merge.n_parts <= MAX_READ && n_heads > 0 &&
           g->k % (n_heads * choose_vector_width(caps, g)) == 0 &&
           merge_bytes(g) <= caps->local_bytes / (blocks ? 4 : 2) && // blocks keep sums there
           attncl__loops_fit(caps, elements * g->merge.n_parts);
}

static struct kspec make_axpy_spec(const struct device_caps *caps, const struct gemm *g,
                                   size_t local)
{
    struct kspec spec = kspec_begin("gemm/gemv_axpy.cl", "gemv_axpy");

    kspec_set_vw_ls(&spec, choose_vector_width(caps, g), local);
    kspec_int(&spec, "NV", gemv_vectors(caps));
    kspec_int(&spec, "MAX_ROWS", g->m == 1 ? 1 : GEMV_MAX_ROWS);
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

static struct kspec make_dot_spec(const struct device_caps *caps, const struct gemm *g,
                                  size_t local)
{
    const bool blocks = g->m > GEMV_MAX_ROWS;
    struct kspec spec = blocks ? kspec_begin("gemm/gemv_blocks.cl", "gemv_blocks")
                               : kspec_begin("gemm/gemv_dot.cl", "gemv_dot");

    kspec_set_vw_ls(&spec, choose_vector_width(caps, g), local);
    if (!blocks)
        kspec_int(&spec, "MAX_ROWS", g->m == 1 ? 1 : GEMV_MAX_ROWS);
    attncl__gemm_add_norm_macro(&spec, g);
    kspec_int(&spec, "MERGE", g->merge.position.storage != NULL);
    kspec_int(&spec, "PRODUCTS", attncl__gemm_count_products(g));
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

static void add_merge(struct arg_list *args, const struct gemm *g)
{
    const struct gemm_merge *merge = &g->merge;
    arg_list_add(args,
                 ARGS(arg_mem(merge->position), arg_i32(merge->n_heads), arg_i32(merge->n_parts),
                      arg_i32(g->k / merge->n_heads), arg_i32(merge->limit),
                      arg_i32(merge->own_keys), arg_local(merge_bytes(g))));
}

attncl_status attncl__gemv(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES])
{
    const bool blocks = uses_blocks(l->caps, g);
    const int64_t width = !g->trans_b                    ? GEMV_GPU_GROUP
                          : blocks && g->k > BLOCK_WIDTH ? BLOCK_WIDTH
                                                         : g->k;
    struct kspec spec;
    struct arg_list args = {.n = 0};
    const size_t local =
        attncl__gemm_fit_group(l, g, width, g->trans_b ? make_dot_spec : make_axpy_spec, &spec);
    const int64_t columns = // per work-group
        !g->trans_b ? gemv_vectors(l->caps) * choose_vector_width(l->caps, g) * (int64_t)local
        : blocks    ? BLOCK_COLS
                    : GEMV_COLS_PER_GROUP;
    const int64_t groups_n = ceil_div(g->n, columns);
    const int64_t groups =
        attncl__gemm_count_columns(g, columns) * (blocks ? ceil_div(g->m, BLOCK_ROWS) : 1);

    TRY(attncl__gemm_check_groups(g, groups));
    arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_i32(g->k), arg_i32(groups_n)));
    attncl__gemm_add_operands(&args, g);
    if (g->norm.weight.storage)
        arg_list_add(&args,
                     ARGS(arg_mem(g->norm.weight), arg_mem(g->norm.bias), arg_f32(g->norm.eps)));
    if (g->merge.position.storage)
        add_merge(&args, g);
    attncl__gemm_add_others(&args, g);
    snprintf(how, GEMM_HOW_BYTES, "native %s, work-groups of %zu", spec.kernel, local);
    return attncl__launch(l, &spec, grid_1d(groups * g->batch, local), args.arg, args.n);
}
