// SPDX-License-Identifier: MIT
//
// Skinny GEMM: A has few rows, so reading B, the weights, once determines the time.  The CPU variant uses
// cl/gemm/gemm_cpu_skinny.cl (B transposed) and gemm_cpu_skinny_nn.cl (B plain); gemv.c has the rest.

#include "gemm/internal.h"

// gemm_cpu_skinny.cl: COLS_PER_PASS for more than two rows, and with a norm the most vectors of
// columns per work-item, which share the normalised rows.
enum { SKINNY_GEMM_COLS_PER_PASS = 4, NORM_VECTORS = 16 };

// gemm_cpu_skinny_nn.cl: rows of A with sums in registers (ROWS), and vectors of columns per work-item.
enum { SKINNY_NN_ROWS = 8, SKINNY_NN_MAX_VECTORS = 16 };

// CPU variant, B transposed: gemm_cpu_skinny.cl.
static bool uses_row_dots(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && g->trans_b;
}

// CPU variant, B plain, more rows than gemv_axpy.cl takes: gemm_cpu_skinny_nn.cl.
static bool uses_row_sums(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && !g->trans_b && g->m > GEMV_MAX_ROWS;
}

// Returns the vectors of columns per work-item: multiples of nv, with work for every core.
static int64_t choose_nn_vectors(const struct device_caps *caps, const struct gemm *g, int64_t nv)
{
    const int64_t vectors = ceil_div(g->n, caps->vector_width),
                  share = ceil_div(vectors, 2 * (int64_t)caps->compute_units);
    const int64_t whole = ceil_div(share, nv) * nv;
    return whole < SKINNY_NN_MAX_VECTORS ? whole : SKINNY_NN_MAX_VECTORS;
}

// Returns the vectors of columns per work-item that normalises the rows first: as many for each core.
static int64_t choose_norm_vectors(const struct device_caps *caps, const struct gemm *g)
{
    const int64_t vectors = ceil_div(g->n, caps->vector_width), cores = caps->compute_units;
    const int64_t groups = ceil_div(ceil_div(vectors, NORM_VECTORS), cores) * cores;
    return ceil_div(vectors, groups);
}

bool attncl__gemm_is_skinny(const struct device_caps *caps, const struct gemm *g)
{
    const bool row_dots = uses_row_dots(caps, g);

    if (!row_dots && !uses_row_sums(caps, g))
        return attncl__gemv_is_supported(caps, g);
    return g->m <= SKINNY_GEMM_MAX_ROWS && !g->trans_a && !g->causal &&
           attncl__loops_fit(caps, row_dots ? g->m * (g->k + 16) : SKINNY_GEMM_MAX_ROWS * g->k * 8);
}

bool attncl__gemm_can_norm(const struct device_caps *caps, const struct gemm *g)
{
    enum { MAX_K = 4096 }; // longer rows do not stay in the second-level cache

    if (attncl__is_quantised(g->b_dtype))
        return attncl__gemm_quantised_can_norm(caps, g);
    if (caps->variant == VARIANT_GPU)
        return attncl__gemv_can_norm(caps, g);
    return attncl__gemm_is_skinny(caps, g) && uses_row_dots(caps, g) && g->n > 1 && g->k > 0 &&
           g->batch == 1 && g->k <= MAX_K &&
           attncl__gemm_norm_bytes(caps, g) <= caps->local_bytes / 2 &&
           attncl__loops_fit(caps, (NORM_VECTORS + 3) * g->m * (g->k + 16));
}

bool attncl__gemm_can_add_partials(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && !attncl__is_quantised(g->b_dtype) &&
           g->k % caps->vector_width == 0 && attncl__gemm_can_norm(caps, g);
}

static int64_t choose_cols_per_pass(const struct device_caps *caps, int64_t m)
{
    return m <= 2 ? caps->vector_width / m : SKINNY_GEMM_COLS_PER_PASS;
}

// The hardware itself prefetches long rows of floats when many are read at once (decision 0009).
static bool is_prefetched(const struct device_caps *caps, int64_t m, int64_t k, attncl_dtype dtype)
{
    enum { LONG_ROW = 512 };

    return caps->builtin_prefetch && (m > 2 || k < LONG_ROW || attncl__is_16_bit(dtype));
}

void attncl__skinny_gemm_add_macros(const struct device_caps *caps, int64_t m, int64_t k,
                                    attncl_dtype dtype, struct kspec *spec)
{
    kspec_set_vw_ls(spec, caps->vector_width, 1);
    kspec_int(spec, "COLS_PER_PASS", choose_cols_per_pass(caps, m));
    kspec_int(spec, "MAX_ROWS", m <= 2 ? m : SKINNY_GEMM_MAX_ROWS);
    kspec_int(spec, "USE_PREFETCH", is_prefetched(caps, m, k, dtype));
}

// The distance is at least one pass and at least PREFETCH_BYTES.
int64_t attncl__skinny_gemm_prefetch_rows(const struct device_caps *caps, int64_t m, int64_t k,
                                          attncl_dtype dtype)
{
    enum { PREFETCH_BYTES = 8192 };
    const int64_t cols = choose_cols_per_pass(caps, m),
                  bytes = cols * k * (attncl__is_16_bit(dtype) ? 2 : 4);
    return cols * ceil_div(PREFETCH_BYTES, bytes > 0 ? bytes : 1);
}

static struct kspec make_skinny_spec(const struct device_caps *caps, const struct gemm *g)
{
    struct kspec spec = kspec_begin("gemm/gemm_cpu_skinny.cl", "gemm_cpu_skinny");

    attncl__skinny_gemm_add_macros(caps, g->m, g->k, g->b_dtype, &spec);
    attncl__gemm_add_norm_macro(&spec, g);
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

// CPUs with wide vectors have registers for the sums of two.
static int64_t choose_nn_panel(const struct device_caps *caps)
{
    return caps->vector_width >= 16 ? 2 : 1;
}

static struct kspec make_nn_spec(const struct device_caps *caps, const struct gemm *g)
{
    const int64_t nv = choose_nn_panel(caps);
    struct kspec spec = kspec_begin("gemm/gemm_cpu_skinny_nn.cl", "gemm_cpu_skinny_nn");

    kspec_set_vw_ls(&spec, caps->vector_width, 1);
    kspec_int(&spec, "NV", nv);
    kspec_int(&spec, "MAX_ROWS", ceil_div(g->m, SKINNY_NN_ROWS) * SKINNY_NN_ROWS);
    kspec_int(&spec, "USE_PREFETCH", caps->builtin_prefetch);
    kspec_set_wtype(&spec, g->b_dtype);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

attncl_status attncl__gemm_skinny(struct launcher *l, const struct gemm *g,
                                  char how[GEMM_HOW_BYTES])
{
    const int64_t vw = l->caps->vector_width;
    const bool row_dots = uses_row_dots(l->caps, g), norms = g->norm.weight.storage != NULL;

    if (!row_dots && !uses_row_sums(l->caps, g))
        return attncl__gemv(l, g, how);
    const struct kspec spec = row_dots ? make_skinny_spec(l->caps, g) : make_nn_spec(l->caps, g);
    const int64_t columns = // per work-group
        vw * (!row_dots ? choose_nn_vectors(l->caps, g, choose_nn_panel(l->caps))
              : norms   ? choose_norm_vectors(l->caps, g)
                        : 1);
    const int64_t groups_n = ceil_div(g->n, columns);
    struct arg_list args = {.n = 0};

    TRY(attncl__gemm_check_groups(g, groups_n));
    arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_i32(g->k), arg_i32(groups_n),
                             arg_i32(columns)));
    if (row_dots)
        arg_list_add(&args, ARGS(arg_i32(attncl__skinny_gemm_prefetch_rows(l->caps, g->m, g->k,
                                                                           g->b_dtype))));
    attncl__gemm_add_matrices(&args, g, &g->c);
    attncl__gemm_add_epilogue(&args, g);
    if (norms)
        arg_list_add(&args, ARGS(arg_mem(g->norm.weight), arg_mem(g->norm.bias),
                                 arg_f32(g->norm.eps), arg_i32(g->norm.n_partials),
                                 arg_i32(g->norm.partials_bias.storage != NULL),
                                 arg_mem(g->norm.partials), arg_mem(g->norm.partials_bias),
                                 arg_local(attncl__gemm_norm_bytes(l->caps, g))));
    snprintf(how, GEMM_HOW_BYTES, "native %s, work-groups of 1", spec.kernel);
    return attncl__launch(l, &spec, grid_1d(groups_n * g->batch, 1), args.arg, args.n);
}
