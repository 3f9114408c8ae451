// SPDX-License-Identifier: MIT
//
// Skinny GEMM by cl/gemm/gemv_dot.cl and gemv_blocks.cl, in the GPU variant with B transposed, and by gemv_axpy.cl, in
// both with B not transposed.

#include "gemm/internal.h"

// Columns per work-group of gemv_dot (COLS_PER_GROUP); vectors per work-item of gemv_axpy on CPUs, work-items on GPUs.
enum { GEMV_COLS_PER_GROUP = 4, GEMV_CPU_VECTORS = 4, GEMV_GPU_GROUP = 64 };

// gemv_blocks: rows and columns of a work-group; a sum has at most the work-items of one of BLOCK_WIDTH elements, for
// which local memory suffices.
enum { BLOCK_ROWS = 8, BLOCK_COLS = 8, BLOCK_WIDTH = 512, MAX_BLOCKED_ROWS = 32 };

// Floats that all work-groups of a launch read together, from a cache, in about the time of a launch more.
enum { MAX_READ = 1 << 23 };

// What `n_products` products read of A and B.
static bool is_cheap_in_blocks(const struct gemm *g, int n_products)
{
    const int64_t of_a = ceil_div(g->n, BLOCK_COLS) * g->m * g->k,
                  of_b = ceil_div(g->m, BLOCK_ROWS) * g->n * g->k;
    return n_products * (of_a + of_b) <= MAX_READ;
}

// A transposed B in the GPU variant, with more rows than one work-group of gemv_dot takes.
static bool uses_blocks(const struct device_caps *caps, const struct gemm *g)
{
    enum { MAX_EXTENT = 1 << 20 }; // of which products stay in range

    return caps->variant == VARIANT_GPU && g->trans_b && g->batch == 1 && g->m > GEMV_MAX_ROWS &&
           g->m <= MAX_BLOCKED_ROWS && g->n > 1 && g->n <= MAX_EXTENT && g->k > 0 &&
           g->k <= MAX_EXTENT && is_cheap_in_blocks(g, 1);
}

bool attncl__gemv_takes(const struct device_caps *caps, const struct gemm *g)
{
    return (g->m <= GEMV_MAX_ROWS || uses_blocks(caps, g)) && !g->trans_a && !g->causal &&
           attncl__loops_fit(caps, g->trans_b ? g->k : 2 * g->m * g->k);
}

// By gemv_dot or gemv_blocks, of one batch entry.
static bool uses_gpu_dots(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_GPU && !attncl__is_quantised(g->b_dtype) &&
           attncl__gemv_takes(caps, g) && g->trans_b && g->n > 1 && g->k > 0 && g->batch == 1;
}

bool attncl__gemv_norms(const struct device_caps *caps, const struct gemm *g)
{
    enum { MAX_ELEMENTS = 4096 }; // all rows in a multiprocessor's cache, of a block half of them
    return uses_gpu_dots(caps, g) && (uses_blocks(caps, g) ? g->k <= 2 * MAX_ELEMENTS / BLOCK_ROWS
                                                           : g->m * g->k <= MAX_ELEMENTS);
}

bool attncl__gemm_takes_others(const struct device_caps *caps, const struct gemm *g)
{
    return uses_gpu_dots(caps, g) &&
           (!uses_blocks(caps, g) || is_cheap_in_blocks(g, 1 + GEMM_MAX_OTHERS));
}

// CPU: wide vectors, one work-item.  GPU: neighbouring work-items read neighbouring elements, or four
// of 16 bits at once, as long as no work-item has columns left over for which it would read B again; blocks of
// rows have no registers for that.
static unsigned gemv_vector_width(const struct device_caps *caps, const struct gemm *g)
{
    // Of four at once 64 sums are in a work-item, too many for Intel's registers.
    const int64_t max_rows = caps->vendor == VENDOR_INTEL && g->trans_b ? 1 : GEMV_MAX_ROWS;
    const bool fours =
        attncl__is_16_bit(g->b_dtype) && g->m <= max_rows && (g->trans_b || g->n % 4 == 0);
    return caps->variant == VARIANT_CPU ? caps->vector_width : fours ? 4 : 1;
}

// Of a work-item of gemv_axpy (NV).
static int gemv_vectors(const struct device_caps *caps)
{
    return caps->variant == VARIANT_CPU ? GEMV_CPU_VECTORS : 1;
}

// Rows of a work-group.
static int64_t rows_per_group(const struct gemm *g)
{
    return g->m <= GEMV_MAX_ROWS ? g->m : BLOCK_ROWS;
}

// attention_merge.clh: PART_FLOATS.
static size_t merge_bytes(const struct gemm *g)
{
    enum { PART_FLOATS = 3 };
    return (size_t)(rows_per_group(g) * g->merge.n_heads * g->merge.n_parts) * PART_FLOATS *
           sizeof(float);
}

bool attncl__gemm_merges(const struct device_caps *caps, const struct gemm *g)
{
    enum { MAX_ELEMENTS = 4096 }; // of a work-group's rows, twice as many in blocks
    const bool blocks = g->m > GEMV_MAX_ROWS;
    const int64_t n_heads = g->merge.n_heads, elements = rows_per_group(g) * g->k;
    const int64_t columns = blocks ? BLOCK_COLS : GEMV_COLS_PER_GROUP;

    return uses_gpu_dots(caps, g) && elements <= (blocks ? 2 : 1) * MAX_ELEMENTS &&
           ceil_div(g->n, columns) * g->m * g->k * g->merge.n_parts <= MAX_READ && n_heads > 0 &&
           g->k % (n_heads * gemv_vector_width(caps, g)) == 0 &&
           merge_bytes(g) <= caps->local_bytes / (blocks ? 4 : 2) && // blocks have sums there
           attncl__loops_fit(caps, elements * g->merge.n_parts);
}

static int product_count(const struct gemm *g)
{
    return g->other[0].b.span.storage ? 1 + GEMM_MAX_OTHERS : 1;
}

static struct kspec axpy_spec(const struct device_caps *caps, const struct gemm *g, size_t local)
{
    struct kspec spec = kspec_begin("gemm/gemv_axpy.cl", "gemv_axpy");

    kspec_set_vw_ls(&spec, gemv_vector_width(caps, g), local);
    kspec_int(&spec, "NV", gemv_vectors(caps));
    kspec_int(&spec, "MAX_ROWS", g->m == 1 ? 1 : GEMV_MAX_ROWS);
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

static struct kspec dot_spec(const struct device_caps *caps, const struct gemm *g, size_t local)
{
    const bool blocks = g->m > GEMV_MAX_ROWS;
    struct kspec spec = blocks ? kspec_begin("gemm/gemv_blocks.cl", "gemv_blocks")
                               : kspec_begin("gemm/gemv_dot.cl", "gemv_dot");

    kspec_set_vw_ls(&spec, gemv_vector_width(caps, g), local);
    if (!blocks)
        kspec_int(&spec, "MAX_ROWS", g->m == 1 ? 1 : GEMV_MAX_ROWS);
    attncl__gemm_add_norm_macro(&spec, g);
    kspec_int(&spec, "MERGE", g->merge.position.storage != NULL);
    kspec_int(&spec, "PRODUCTS", product_count(g));
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

static void add_others(struct arg_list *args, const struct gemm *g)
{
    arg_list_add(args, ARGS(arg_i32(g->n_other)));
    for (int i = 0; i < GEMM_MAX_OTHERS; ++i) {
        const struct gemm_other *o = &g->other[i];
        arg_list_add(args, ARGS(arg_mem(o->b.span), arg_i64(o->b.start), arg_i64(o->b.ld),
                                arg_mem(o->bias), arg_mem(o->c)));
    }
}

// Of several products: which have a bias, and the first one's.
static void add_biases(struct arg_list *args, const struct gemm *g)
{
    int has_bias = g->bias.storage != NULL;

    for (int i = 0; i < GEMM_MAX_OTHERS; ++i)
        has_bias |= (g->other[i].bias.storage != NULL) << (1 + i);
    arg_list_add(args, ARGS(arg_i32(has_bias), arg_mem(g->bias)));
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
        attncl__gemm_fit_group(l, g, width, g->trans_b ? dot_spec : axpy_spec, &spec);
    const int64_t columns = // of a work-group
        !g->trans_b ? gemv_vectors(l->caps) * gemv_vector_width(l->caps, g) * (int64_t)local
        : blocks    ? BLOCK_COLS
                    : GEMV_COLS_PER_GROUP;
    const int64_t groups_n = ceil_div(g->n, columns);
    const int64_t groups = (groups_n + (product_count(g) - 1) * ceil_div(g->n_other, columns)) *
                           (blocks ? ceil_div(g->m, BLOCK_ROWS) : 1);

    TRY(attncl__gemm_check_groups(g, groups));
    arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_i32(g->k), arg_i32(groups_n)));
    attncl__gemm_add_matrices(&args, g, &g->c);
    if (product_count(g) > 1)
        add_biases(&args, g);
    else
        attncl__gemm_add_epilogue(&args, g);
    if (g->norm.weight.storage)
        arg_list_add(&args,
                     ARGS(arg_mem(g->norm.weight), arg_mem(g->norm.bias), arg_f32(g->norm.eps)));
    if (g->merge.position.storage)
        add_merge(&args, g);
    if (product_count(g) > 1)
        add_others(&args, g);
    snprintf(how, GEMM_HOW_BYTES, "native %s, work-groups of %zu", spec.kernel, local);
    return attncl__launch(l, &spec, grid_1d(groups * g->batch, local), args.arg, args.n);
}
