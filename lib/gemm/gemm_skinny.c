// SPDX-License-Identifier: MIT
//
// Skinny GEMM: few rows of A, so that B, the weights, is read once and bounds the time.  In the CPU variant by
// cl/gemm/gemm_cpu_skinny.cl and gemm_cpu_skinny_nn.cl, B transposed and not; the rest by gemv.c.

#include "gemm/internal.h"

// gemm_cpu_skinny.cl: columns per pass (COLS_PER_PASS) for more than two rows.  With layer norm,
// vectors of columns per work-item, which share the normalised rows.
enum { SKINNY_GEMM_COLS_PER_PASS = 4, NORM_VECTORS = 16 };

// gemm_cpu_skinny_nn.cl: rows of A whose sums are in registers (ROWS), columns per work-item in
// vectors.
enum { SKINNY_NN_ROWS = 8, SKINNY_NN_MAX_VECTORS = 16 };

// A transposed B in the CPU variant: gemm_cpu_skinny.cl.
static bool uses_row_dots(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && g->trans_b;
}

// Another B in the CPU variant, with more rows than gemv_axpy takes: gemm_cpu_skinny_nn.cl.
static bool uses_row_sums(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && !g->trans_b && g->m > GEMV_MAX_ROWS;
}

// Vectors of columns of a work-item: work for every core, in panels of NV.
static int64_t skinny_nn_vectors(const struct device_caps *caps, const struct gemm *g, int64_t nv)
{
    const int64_t vectors = ceil_div(g->n, caps->vector_width),
                  share = ceil_div(vectors, 2 * (int64_t)caps->compute_units);
    const int64_t whole = ceil_div(share, nv) * nv;
    return whole < SKINNY_NN_MAX_VECTORS ? whole : SKINNY_NN_MAX_VECTORS;
}

bool attncl__gemm_is_skinny(const struct device_caps *caps, const struct gemm *g)
{
    const bool row_dots = uses_row_dots(caps, g);

    if (!row_dots && !uses_row_sums(caps, g))
        return attncl__gemv_takes(caps, g);
    return g->m <= SKINNY_GEMM_MAX_ROWS && !g->trans_a && !g->causal &&
           attncl__loops_fit(caps, row_dots ? g->m * (g->k + 16) : SKINNY_GEMM_MAX_ROWS * g->k * 8);
}

bool attncl__gemm_norms(const struct device_caps *caps, const struct gemm *g)
{
    enum { MAX_K = 4096 }; // rows that stay in the second-level cache

    if (attncl__is_quantised(g->b_dtype))
        return attncl__gemm_quantised_norms(caps, g);
    if (caps->variant == VARIANT_GPU)
        return attncl__gemv_norms(caps, g);
    return attncl__gemm_is_skinny(caps, g) && uses_row_dots(caps, g) && g->n > 1 && g->k > 0 &&
           g->batch == 1 && g->k <= MAX_K &&
           attncl__gemm_norm_bytes(caps, g) <= caps->local_bytes / 2 &&
           attncl__loops_fit(caps, (NORM_VECTORS + 3) * g->m * (g->k + 16));
}

// Columns of C, which are rows of a transposed B, per pass.
static int64_t skinny_gemm_cols_per_pass(const struct device_caps *caps, int64_t m)
{
    return m <= 2 ? caps->vector_width / m : SKINNY_GEMM_COLS_PER_PASS;
}

// Long rows of floats, many of which are read at once, the hardware fetches sooner by itself (decision 0009).
static bool is_prefetched(const struct device_caps *caps, int64_t m, int64_t k, attncl_dtype dtype)
{
    enum { LONG_ROW = 512 };

    return caps->builtin_prefetch && (m > 2 || k < LONG_ROW || attncl__is_16_bit(dtype));
}

void attncl__skinny_gemm_macros(const struct device_caps *caps, int64_t m, int64_t k,
                                attncl_dtype dtype, struct kspec *spec)
{
    kspec_set_vw_ls(spec, caps->vector_width, 1);
    kspec_int(spec, "COLS_PER_PASS", skinny_gemm_cols_per_pass(caps, m));
    kspec_int(spec, "MAX_ROWS", m <= 2 ? m : SKINNY_GEMM_MAX_ROWS);
    kspec_int(spec, "USE_PREFETCH", is_prefetched(caps, m, k, dtype));
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
    struct kspec spec = kspec_begin("gemm/gemm_cpu_skinny.cl", "gemm_cpu_skinny");

    attncl__skinny_gemm_macros(caps, g->m, g->k, g->b_dtype, &spec);
    attncl__gemm_add_norm_macro(&spec, g);
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
    const struct kspec spec = row_dots ? skinny_spec(l->caps, g) : skinny_nn_spec(l->caps, g);
    const int64_t columns = // of a work-group
        vw * (!row_dots ? skinny_nn_vectors(l->caps, g, skinny_nn_panel(l->caps))
              : norms   ? NORM_VECTORS
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
        arg_list_add(&args,
                     ARGS(arg_mem(g->norm.weight), arg_mem(g->norm.bias), arg_f32(g->norm.eps),
                          arg_local(attncl__gemm_norm_bytes(l->caps, g))));
    snprintf(how, GEMM_HOW_BYTES, "native %s, work-groups of 1", spec.kernel);
    return attncl__launch(l, &spec, grid_1d(groups_n * g->batch, 1), args.arg, args.n);
}
