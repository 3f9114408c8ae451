// SPDX-License-Identifier: MIT
//
// What the native GEMM kernels share, and the small ones: skinny GEMM, the epilogue alone.

#include "gemm/gemm_native.h"
#include "gemm/skinny_gemm.h"

// Bits of `flags` in cl/common/epilogue.clh.
enum { EPI_BIAS_COL = 1, EPI_BIAS_ROW = 2, EPI_GATE = 4, EPI_RESIDUAL = 8 };

// gemv: maximum rows of A (MAX_ROWS), outputs per work-group of gemv_dot (COLS_PER_GROUP), vectors
// per work-item of gemv_axpy (NV).
enum { GEMV_MAX_ROWS = 4, GEMV_COLS_PER_GROUP = 4, GEMV_VECTORS = 4, GEMV_GPU_GROUP = 64 };

// gemm_skinny: columns per pass (COLS_PER_PASS) where there are more than two rows.  Where rows are
// normalised, so many vectors of columns share that.
enum { SKINNY_GEMM_COLS_PER_PASS = 4, NORM_VECTORS = 16 };

static int epilogue_flags(const struct gemm *g)
{
    return (g->bias_kind == GEMM_BIAS_COLUMN ? EPI_BIAS_COL : 0) |
           (g->bias_kind == GEMM_BIAS_ROW ? EPI_BIAS_ROW : 0) |
           (g->gate.span.storage ? EPI_GATE : 0) | (g->residual.span.storage ? EPI_RESIDUAL : 0);
}

int attncl__gemm_class(const struct gemm *g)
{
    const double elements = (double)g->m * (double)g->n * (double)g->batch;

    return elements < 65536.0 ? TUNE_SMALL : elements < 524288.0 ? TUNE_MEDIUM : TUNE_LARGE;
}

bool attncl__gemm_has_epilogue(const struct gemm *g)
{
    return g->activation != GEMM_ACT_NONE || epilogue_flags(g) != 0;
}

void attncl__gemm_add_arg(struct gemm_args *args, struct arg arg)
{
    assert(args->n < GEMM_MAX_ARGS);
    args->arg[args->n++] = arg;
}

void attncl__gemm_add_matrix(struct gemm_args *args, const struct gemm_matrix *x)
{
    attncl__gemm_add_arg(args, arg_mem(x->span));
    attncl__gemm_add_arg(args, arg_i64(x->start));
    attncl__gemm_add_arg(args, arg_i64(x->ld));
    attncl__gemm_add_arg(args, arg_i64(x->batch_stride));
}

void attncl__gemm_add_epilogue(struct gemm_args *args, const struct gemm *g)
{
    attncl__gemm_add_arg(args, arg_i32(epilogue_flags(g)));
    attncl__gemm_add_arg(args, arg_mem(g->bias));
    attncl__gemm_add_matrix(args, &g->gate);
    attncl__gemm_add_matrix(args, &g->residual);
}

void attncl__gemm_add_sizes(struct gemm_args *args, const struct gemm *g, int64_t k_from,
                            int64_t k_to)
{
    attncl__gemm_add_arg(args, arg_i32(g->m));
    attncl__gemm_add_arg(args, arg_i32(g->n));
    attncl__gemm_add_arg(args, arg_i32(g->k));
    attncl__gemm_add_arg(args, arg_i32(k_from));
    attncl__gemm_add_arg(args, arg_i32(k_to));
}

void attncl__gemm_add_form(struct kspec *spec, const struct gemm *g)
{
    kspec_int(spec, "TRANS_A", g->trans_a);
    kspec_int(spec, "TRANS_B", g->trans_b);
    kspec_int(spec, "CAUSAL", g->causal);
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

// Iterations of the longest loop nest of one work-item, on devices with an iteration cap.
static bool within_max_loop_iterations(const struct device_caps *caps, int64_t iterations)
{
    return caps->max_loop_iterations == 0 || (uint64_t)iterations < caps->max_loop_iterations;
}

// In the CPU variant a transposed B has a kernel of its own, which takes more rows.
static bool uses_row_dots(const struct device_caps *caps, const struct gemm *g)
{
    return caps->variant == VARIANT_CPU && caps->vector_width >= 4 && g->trans_b;
}

bool attncl__gemm_is_skinny(const struct device_caps *caps, const struct gemm *g)
{
    const bool row_dots = uses_row_dots(caps, g);
    const int64_t iterations = row_dots ? g->m * (g->k + 16) : g->trans_b ? g->k : 2 * g->m * g->k;

    return g->m <= (row_dots ? SKINNY_GEMM_MAX_ROWS : GEMV_MAX_ROWS) && !g->trans_a && !g->causal &&
           within_max_loop_iterations(caps, iterations);
}

// Normalised rows, each padded to whole vectors.
static size_t norm_bytes(const struct device_caps *caps, const struct gemm *g)
{
    const size_t vw = caps->vector_width;
    return (size_t)g->m * (((size_t)g->k + vw - 1) / vw * vw) * sizeof(float);
}

bool attncl__gemm_norms(const struct device_caps *caps, const struct gemm *g)
{
    enum { MAX_K = 4096 }; // rows that stay in the second-level cache

    return uses_row_dots(caps, g) && attncl__gemm_is_skinny(caps, g) && g->n > 1 && g->k > 0 &&
           g->k <= MAX_K && g->batch == 1 && norm_bytes(caps, g) <= caps->local_bytes / 2 &&
           within_max_loop_iterations(caps, (NORM_VECTORS + 3) * g->m * (g->k + 16));
}

// CPU: wide vectors, no work-group.  GPU: scalar work-items read neighbouring elements.
static struct kspec gemv_spec(const struct device_caps *caps, const struct gemm *g, size_t local)
{
    const bool cpu = caps->variant == VARIANT_CPU;
    struct kspec spec = kspec_begin("gemm/gemv.cl", g->trans_b ? "gemv_dot" : "gemv_axpy");

    kspec_set_vw_ls(&spec, cpu ? caps->vector_width : 1, local);
    kspec_int(&spec, "NV", cpu ? GEMV_VECTORS : 1);
    kspec_int(&spec, "MAX_ROWS", g->m == 1 ? 1 : GEMV_MAX_ROWS);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

static struct kspec epilogue_spec(const struct device_caps *caps, const struct gemm *g,
                                  size_t local)
{
    struct kspec spec = kspec_begin("gemm/gemm_epilogue.cl", "gemm_epilogue");

    kspec_set_vw_ls(&spec, caps->variant == VARIANT_CPU ? caps->vector_width : 1, local);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

// The largest work-group for rows of `width` that the built kernel can run: halves from what the
// device can.
static size_t fitting_group(struct launcher *l, const struct gemm *g, int64_t width,
                            struct kspec (*make)(const struct device_caps *, const struct gemm *,
                                                 size_t),
                            struct kspec *spec)
{
    size_t local = l->caps->variant == VARIANT_CPU ? 1 : attncl__group_for_row(l->caps, width);

    *spec = make(l->caps, g, local);
    while (local > 1 && !attncl__kernel_is_launchable(l, spec, local)) {
        local /= 2;
        *spec = make(l->caps, g, local);
    }
    return local;
}

// Rows of weights per pass.
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
int64_t attncl__skinny_gemm_prefetch_rows(const struct device_caps *caps, int64_t m, int64_t k)
{
    enum { PREFETCH_BYTES = 8192 };
    const int64_t cols = skinny_gemm_cols_per_pass(caps, m),
                  bytes = cols * k * (int64_t)sizeof(float);
    return cols * ceil_div(PREFETCH_BYTES, bytes > 0 ? bytes : 1);
}

static struct kspec skinny_spec(const struct device_caps *caps, const struct gemm *g)
{
    const int64_t vw = caps->vector_width;
    struct kspec spec = kspec_begin("gemm/gemm_skinny.cl", "gemm_skinny");

    attncl__skinny_gemm_macros(caps, g->m, &spec);
    kspec_int(&spec, "HAS_K_TAIL", g->k % vw != 0);
    kspec_int(&spec, "NORM", g->norm.weight.storage != NULL);
    kspec_int(&spec, "ACT", g->activation);
    return spec;
}

static void add_norm(struct gemm_args *args, const struct device_caps *caps, const struct gemm *g)
{
    attncl__gemm_add_arg(args, arg_mem(g->norm.weight));
    attncl__gemm_add_arg(args, arg_mem(g->norm.bias));
    attncl__gemm_add_arg(args, arg_f32(g->norm.eps));
    attncl__gemm_add_arg(args, arg_local(norm_bytes(caps, g)));
}

attncl_status attncl__gemm_skinny(struct launcher *l, const struct gemm *g,
                                  char how[GEMM_HOW_BYTES])
{
    const bool cpu = l->caps->variant == VARIANT_CPU;
    const int64_t vw = l->caps->vector_width;
    struct kspec spec;
    size_t local = 1;
    int64_t columns; // of a work-group
    struct gemm_args args = {.n = 0};

    const bool row_dots = uses_row_dots(l->caps, g);
    const bool norms = g->norm.weight.storage != NULL;

    if (row_dots) {
        spec = skinny_spec(l->caps, g);
        columns = norms ? NORM_VECTORS * vw : vw;
    } else {
        local = fitting_group(l, g, g->trans_b ? g->k : GEMV_GPU_GROUP, gemv_spec, &spec);
        columns = g->trans_b ? GEMV_COLS_PER_GROUP : (cpu ? GEMV_VECTORS * vw : 1) * (int64_t)local;
    }
    const int64_t groups_n = ceil_div(g->n, columns);

    REQUIRE(groups_n <= INT32_MAX / g->batch, ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of %" PRId64 " columns in a batch of %" PRId64 " is too large", g->n, g->batch);
    attncl__gemm_add_arg(&args, arg_i32(g->m));
    attncl__gemm_add_arg(&args, arg_i32(g->n));
    attncl__gemm_add_arg(&args, arg_i32(g->k));
    attncl__gemm_add_arg(&args, arg_i32(groups_n));
    if (row_dots) {
        attncl__gemm_add_arg(&args, arg_i32(columns));
        attncl__gemm_add_arg(&args,
                             arg_i32(attncl__skinny_gemm_prefetch_rows(l->caps, g->m, g->k)));
    }
    attncl__gemm_add_matrix(&args, &g->a);
    attncl__gemm_add_matrix(&args, &g->b);
    attncl__gemm_add_matrix(&args, &g->c);
    attncl__gemm_add_epilogue(&args, g);
    if (norms)
        add_norm(&args, l->caps, g);
    snprintf(how, GEMM_HOW_BYTES, "native %s, work-groups of %zu", spec.kernel, local);
    return attncl__launch(l, &spec, grid_1d(groups_n * g->batch, local), args.arg, args.n);
}

attncl_status attncl__gemm_apply_epilogue(struct launcher *l, const struct gemm *g,
                                          enum gemm_sums sums, int64_t n_splits)
{
    const int64_t entry_size = g->m * g->n;
    struct kspec spec;
    const size_t local = fitting_group(l, g, g->n, epilogue_spec, &spec);
    struct gemm_args args = {.n = 0};

    REQUIRE(g->m <= INT32_MAX / g->batch, ATTNCL_ERR_UNSUPPORTED,
            "a GEMM of %" PRId64 " rows in a batch of %" PRId64 " is too large", g->m, g->batch);
    attncl__gemm_add_arg(&args, arg_i32(g->m));
    attncl__gemm_add_arg(&args, arg_i32(g->n));
    attncl__gemm_add_arg(&args, arg_i32(sums));
    attncl__gemm_add_arg(&args, arg_mem(g->scratch));
    attncl__gemm_add_arg(&args, arg_i32(n_splits));
    attncl__gemm_add_arg(&args, arg_i64(g->batch * entry_size));
    attncl__gemm_add_matrix(&args, &g->c);
    attncl__gemm_add_epilogue(&args, g);
    return attncl__launch(l, &spec, grid_1d(g->m * g->batch, local), args.arg, args.n);
}
