// SPDX-License-Identifier: MIT
//
// Skinny GEMM: few rows of A, so that B, the weights, is read once and bounds the time.  Kernels:
// cl/gemm/gemm_cpu_skinny.cl and gemm_cpu_skinny_nn.cl (CPU variant, B transposed and not), gemv.cl.

#include "gemm/gemm_native.h"
#include "gemm/skinny_gemm.h"

// gemv.cl: maximum rows of A (MAX_ROWS), columns per work-group of gemv_dot (COLS_PER_GROUP),
// vectors per work-item of gemv_axpy on CPUs.
enum { GEMV_MAX_ROWS = 4, GEMV_COLS_PER_GROUP = 4, GEMV_CPU_VECTORS = 4, GEMV_GPU_GROUP = 64 };

// The same in blocks of rows, each of which reads B again; a sum has at most the work-items of one of BLOCK_WIDTH
// elements, for which local memory suffices.
enum { BLOCK_ROWS = 8, BLOCK_COLS = 8, BLOCK_WIDTH = 512, MAX_BLOCKED_ROWS = 32 };

// Floats that all work-groups of a launch read together, from a cache, in about the time of a launch more.
enum { MAX_READ = 1 << 23 };

// gemm_cpu_skinny.cl: columns per pass (COLS_PER_PASS) for more than two rows.  With layer norm,
// vectors of columns per work-item, which share the normalised rows.
enum { SKINNY_GEMM_COLS_PER_PASS = 4, NORM_VECTORS = 16 };

// gemm_cpu_skinny_nn.cl: rows of A whose sums are in registers (ROWS), columns per work-item in
// vectors.
enum { SKINNY_NN_ROWS = 8, SKINNY_NN_MAX_VECTORS = 16 };

// `iterations`: of the longest loop nest of one work-item.
static bool within_max_loop_iterations(const struct device_caps *caps, int64_t iterations)
{
    return caps->max_loop_iterations == 0 || (uint64_t)iterations < caps->max_loop_iterations;
}

// A transposed B in the CPU variant: gemm_cpu_skinny.cl, which takes more rows than gemv.cl.
static bool uses_row_dots(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && caps->vector_width >= 4 && g->trans_b;
}

// Another B in the CPU variant, with more rows than gemv.cl takes: gemm_cpu_skinny_nn.cl.
static bool uses_row_sums(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && caps->vector_width >= 4 && !g->trans_b &&
           g->m > GEMV_MAX_ROWS;
}

// Vectors of columns of a work-item: work for every core, in panels of NV.
static int64_t skinny_nn_vectors(const struct device_caps *caps, const struct gemm *g, int64_t nv)
{
    const int64_t vectors = ceil_div(g->n, caps->vector_width),
                  share = ceil_div(vectors, 2 * (int64_t)caps->compute_units);
    const int64_t whole = ceil_div(share, nv) * nv;
    return whole < SKINNY_NN_MAX_VECTORS ? whole : SKINNY_NN_MAX_VECTORS;
}

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

bool attncl__gemm_is_skinny(const struct device_caps *caps, const struct gemm *g)
{
    const bool blocks = uses_blocks(caps, g);
    const bool row_dots = uses_row_dots(caps, g), row_sums = uses_row_sums(caps, g);
    const int64_t iterations = row_dots     ? g->m * (g->k + 16)
                               : row_sums   ? SKINNY_GEMM_MAX_ROWS * g->k * 8
                               : g->trans_b ? g->k
                                            : 2 * g->m * g->k;

    return (blocks || g->m <= (row_dots || row_sums ? SKINNY_GEMM_MAX_ROWS : GEMV_MAX_ROWS)) &&
           !g->trans_a && !g->causal && within_max_loop_iterations(caps, iterations);
}

// Normalised rows, each padded to whole vectors.
static size_t norm_bytes(const struct device_caps *caps, const struct gemm *g)
{
    const size_t vw = caps->vector_width;
    return (size_t)g->m * (((size_t)g->k + vw - 1) / vw * vw) * sizeof(float);
}

bool attncl__gemm_norms(const struct device_caps *caps, const struct gemm *g)
{
    // Rows that stay in the second-level cache; on GPUs, all rows in a multiprocessor's, of a block half of them.
    enum { MAX_K = 4096, MAX_GPU_ELEMENTS = 4096 };

    if (!attncl__gemm_is_skinny(caps, g) || g->n <= 1 || g->k == 0 || g->batch != 1)
        return false;
    if (caps->variant == VARIANT_GPU)
        return g->trans_b && (uses_blocks(caps, g) ? g->k <= 2 * MAX_GPU_ELEMENTS / BLOCK_ROWS
                                                   : g->m * g->k <= MAX_GPU_ELEMENTS);
    return uses_row_dots(caps, g) && g->k <= MAX_K &&
           norm_bytes(caps, g) <= caps->local_bytes / 2 &&
           within_max_loop_iterations(caps, (NORM_VECTORS + 3) * g->m * (g->k + 16));
}

// By gemv_dot of one batch entry.
static bool uses_gpu_dots(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_GPU && attncl__gemm_is_skinny(caps, g) && g->trans_b &&
           g->n > 1 && g->k > 0 && g->batch == 1;
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
           within_max_loop_iterations(caps, elements * g->merge.n_parts);
}

static int product_count(const struct gemm *g)
{
    return g->other[0].b.span.storage ? 1 + GEMM_MAX_OTHERS : 1;
}

static struct kspec gemv_spec(const struct device_caps *caps, const struct gemm *g, size_t local)
{
    struct kspec spec = kspec_begin("gemm/gemv.cl", g->trans_b ? "gemv_dot" : "gemv_axpy");

    kspec_set_vw_ls(&spec, gemv_vector_width(caps, g), local);
    kspec_int(&spec, "NV", gemv_vectors(caps));
    kspec_int(&spec, "MAX_ROWS",
              g->m == 1               ? 1
              : g->m <= GEMV_MAX_ROWS ? GEMV_MAX_ROWS
                                      : BLOCK_ROWS);
    kspec_int(&spec, "NORM", g->norm.weight.storage != NULL);
    kspec_int(&spec, "MERGE", g->merge.position.storage != NULL);
    kspec_int(&spec, "PRODUCTS", product_count(g));
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

// Columns of C, which are rows of a transposed B, per pass.
static int64_t skinny_gemm_cols_per_pass(const struct device_caps *caps, int64_t m)
{
    return m <= 2 ? caps->vector_width / m : SKINNY_GEMM_COLS_PER_PASS;
}

void attncl__skinny_gemm_macros(const struct device_caps *caps, int64_t m, struct kspec *spec)
{
    kspec_set_vw_ls(spec, caps->vector_width, 1);
    kspec_int(spec, "COLS_PER_PASS", skinny_gemm_cols_per_pass(caps, m));
    kspec_int(spec, "MAX_ROWS", m <= 2 ? m : SKINNY_GEMM_MAX_ROWS);
    kspec_int(spec, "USE_PREFETCH", caps->builtin_prefetch);
}

// At least the next pass, and PREFETCH_BYTES.
int64_t attncl__skinny_gemm_prefetch_rows(const struct device_caps *caps, int64_t m, int64_t k,
                                          attncl_dtype dtype)
{
    enum { PREFETCH_BYTES = 8192 };
    const int64_t cols = skinny_gemm_cols_per_pass(caps, m),
                  bytes = cols * k * (attncl__is_16_bit(dtype) ? 2 : 4);
    return cols * ceil_div(PREFETCH_BYTES, bytes > 0 ? bytes : 1);
}

static struct kspec skinny_spec(const struct device_caps *caps, const struct gemm *g)
{
    const int64_t vw = caps->vector_width;
    struct kspec spec = kspec_begin("gemm/gemm_cpu_skinny.cl", "gemm_cpu_skinny");

    attncl__skinny_gemm_macros(caps, g->m, &spec);
    kspec_int(&spec, "HAS_K_TAIL", g->k % vw != 0);
    kspec_int(&spec, "NORM", g->norm.weight.storage != NULL);
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

// Wide vectors come with registers for the sums of two.
static int64_t skinny_nn_panel(const struct device_caps *caps)
{
    return caps->vector_width >= 16 ? 2 : 1;
}

static struct kspec skinny_nn_spec(const struct device_caps *caps, const struct gemm *g)
{
    const int64_t nv = skinny_nn_panel(caps);
    struct kspec spec = kspec_begin("gemm/gemm_cpu_skinny_nn.cl", "gemm_cpu_skinny_nn");

    kspec_set_vw_ls(&spec, caps->vector_width, 1);
    kspec_int(&spec, "NV", nv);
    kspec_int(&spec, "ROWS", SKINNY_NN_ROWS);
    kspec_int(&spec, "MAX_ROWS", ceil_div(g->m, SKINNY_NN_ROWS) * SKINNY_NN_ROWS);
    kspec_int(&spec, "MAX_PANELS", SKINNY_NN_MAX_VECTORS / nv);
    kspec_int(&spec, "USE_PREFETCH", caps->builtin_prefetch);
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

static void add_norm(struct arg_list *args, const struct device_caps *caps, const struct gemm *g)
{
    arg_list_add(args, ARGS(arg_mem(g->norm.weight), arg_mem(g->norm.bias), arg_f32(g->norm.eps)));
    if (caps->variant == VARIANT_CPU) // gemv.cl keeps no rows
        arg_list_add(args, ARGS(arg_local(norm_bytes(caps, g))));
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

attncl_status attncl__gemm_skinny(struct launcher *l, const struct gemm *g,
                                  char how[GEMM_HOW_BYTES])
{
    const int64_t vw = l->caps->vector_width;
    struct kspec spec;
    size_t local = 1;
    int64_t columns; // of a work-group
    struct arg_list args = {.n = 0};

    const bool row_dots = uses_row_dots(l->caps, g);
    const bool row_sums = uses_row_sums(l->caps, g);
    const bool blocks = uses_blocks(l->caps, g);
    const bool norms = g->norm.weight.storage != NULL;

    if (row_sums) {
        spec = skinny_nn_spec(l->caps, g);
        columns = skinny_nn_vectors(l->caps, g, skinny_nn_panel(l->caps)) * vw;
    } else if (row_dots) {
        spec = skinny_spec(l->caps, g);
        columns = norms ? NORM_VECTORS * vw : vw;
    } else if (blocks) {
        local =
            attncl__gemm_fit_group(l, g, g->k < BLOCK_WIDTH ? g->k : BLOCK_WIDTH, gemv_spec, &spec);
        columns = BLOCK_COLS;
    } else {
        local = attncl__gemm_fit_group(l, g, g->trans_b ? g->k : GEMV_GPU_GROUP, gemv_spec, &spec);
        columns = g->trans_b
                      ? GEMV_COLS_PER_GROUP
                      : gemv_vectors(l->caps) * gemv_vector_width(l->caps, g) * (int64_t)local;
    }
    const int64_t groups_n = ceil_div(g->n, columns), n_products = product_count(g),
                  n_blocks = blocks ? ceil_div(g->m, BLOCK_ROWS) : 1;

    REQUIRE(groups_n <= INT32_MAX / g->batch / n_products / n_blocks, ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of %" PRId64 " columns in a batch of %" PRId64 " is too large", g->n, g->batch);
    arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_i32(g->k), arg_i32(groups_n)));
    if (row_sums)
        arg_list_add(&args, ARGS(arg_i32(columns)));
    if (row_dots) {
        arg_list_add(&args, ARGS(arg_i32(columns), arg_i32(attncl__skinny_gemm_prefetch_rows(
                                                       l->caps, g->m, g->k, g->b_dtype))));
    }
    attncl__gemm_add_matrix(&args, &g->a);
    attncl__gemm_add_matrix(&args, &g->b);
    attncl__gemm_add_matrix(&args, &g->c);
    if (n_products > 1)
        add_biases(&args, g);
    else
        attncl__gemm_add_epilogue(&args, g);
    if (norms)
        add_norm(&args, l->caps, g);
    if (g->merge.position.storage)
        add_merge(&args, g);
    if (n_products > 1)
        add_others(&args, g);
    snprintf(how, GEMM_HOW_BYTES, "native %s, work-groups of %zu", spec.kernel, local);
    return attncl__launch(l, &spec, grid_1d(groups_n * n_blocks * g->batch * n_products, local),
                          args.arg, args.n);
}
