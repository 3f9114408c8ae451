// SPDX-License-Identifier: MIT
//
// The tile forms of a matrix product: which tile for which device and shape, as data, and the
// launches.
//
// Where one work-item's loops are limited (caps->loop_limit) the sums over k are cut into several
// launches; the kernels then continue from what is in C.

#include "launch/gemm_own.h"

// -- CPU form (cl/op/gemm_cpu.cl)

// MR, AR, A_ROWS and A_PANEL's gap of the kernel, and NV by vector width: panels of 64, 16 and 8
// columns.
enum { CPU_MR = 6, CPU_AR = 8, CPU_A_ROWS = 96, CPU_A_GAP = 16 };
static int cpu_vectors(unsigned vw)
{
    return vw == 16 ? 4 : 2;
}

// Largest first.  Packed panels of a tile must stay in a core's second-level cache beside C's tile:
// half of 512 KiB.
// A causal product's tiles differ in work, so it takes more of them to keep all cores busy to the
// end.
enum { CPU_PACK_BYTES = 256 * 1024, CPU_GROUPS_PER_CORE = 3, CPU_CAUSAL_GROUPS_PER_CORE = 16 };
// Blocks shorter than this spend too much on reading and writing C between them.
enum { CPU_LEAST_K = 96, CPU_SMALL_TILE = 24 * 64 };
enum { CPU_K_MULTIPLE = 16 }; // whole squares for the transposing copy
struct cpu_tile {
    int m, n, k;
};
// The first N_CPU_WIDE_TILES are for a transposed A: an element of it, once copied, should meet
// many columns.
static const struct cpu_tile cpu_tiles[] = {
    {768, 512, 96},  {384, 512, 96},  {192, 512, 96}, {192, 256, 160}, // wide
    {384, 128, 256}, {192, 128, 256}, {96, 128, 192}, {48, 64, 256},
    {24, 64, 256},   {12, 16, 256},   {6, 8, 256},
};
enum { N_CPU_WIDE_TILES = 4, N_CPU_TILES = sizeof cpu_tiles / sizeof cpu_tiles[0] };

static int64_t round_up(int64_t x, int64_t to)
{
    return ceil_div(x, to) * to;
}

static int64_t count_groups(const struct gemm *g, int64_t tile_m, int64_t tile_n)
{
    return ceil_div(g->m, tile_m) * ceil_div(g->n, tile_n);
}

static size_t b_pack_bytes(const struct cpu_tile *t, int panel)
{
    return sizeof(float) * (size_t)(round_up(t->n, panel) * t->k);
}

static size_t a_pack_bytes(const struct gemm *g, const struct cpu_tile *t)
{
    const int rows = t->m < CPU_A_ROWS ? t->m : CPU_A_ROWS;
    const int64_t panels = g->trans_a ? ceil_div(rows, CPU_MR) : 0;

    return sizeof(float) * (size_t)(panels * (CPU_AR * t->k + CPU_A_GAP));
}

// An upper bound of a work-item's loop iterations for each k of a launch, and besides.
static int64_t iterations_per_k(const struct cpu_tile *t, int panel)
{
    return 2 * (t->n + panel) + t->m + ceil_div(t->m, CPU_MR) * ceil_div(t->n, panel);
}

static int64_t iterations_besides(const struct cpu_tile *t, int panel)
{
    // Edge panels element by element, and the epilogue.
    return 2 * round_up(t->m, CPU_MR) * round_up(t->n, panel);
}

// The row of the table made to fit: tiles of even height, within the matrix, blocks of k within the
// local memory.
static struct cpu_tile fit_cpu_tile(const struct device_caps *caps, const struct gemm *g,
                                    struct cpu_tile t, int panel)
{
    const size_t most = caps->local_bytes < CPU_PACK_BYTES ? caps->local_bytes : CPU_PACK_BYTES;

    t.m = (int)round_up(ceil_div(g->m, ceil_div(g->m, t.m)), CPU_MR);
    t.n = (int)round_up(ceil_div(g->n, ceil_div(g->n, t.n)), panel);
    t.k = (int)round_up(ceil_div(g->k, ceil_div(g->k, t.k)), CPU_K_MULTIPLE);
    while (t.k > 1 && a_pack_bytes(g, &t) + b_pack_bytes(&t, panel) > most)
        t.k = (t.k + 1) / 2;
    return t;
}

// The tile made to fit, if the device can run it and it does not end in blocks of a few k.
static bool cpu_tile_suits(const struct device_caps *caps, const struct gemm *g,
                           const struct cpu_tile *t, int panel)
{
    const int64_t most = (int64_t)caps->loop_limit;

    if (most && iterations_per_k(t, panel) * t->k + iterations_besides(t, panel) > most)
        return false;
    return t->k >= CPU_LEAST_K || t->k >= g->k || t->m * t->n <= CPU_SMALL_TILE;
}

// The tuned tile of this class, where it still gives each core two: what was measured on other
// shapes of the class must not leave cores idle here.
static bool tuned_cpu_tile(const struct device_caps *caps, const struct gemm *g, int panel,
                           struct cpu_tile *ret)
{
    const int class = attncl__gemm_class(g) + (g->trans_a ? TUNE_TRANSPOSED : 0);
    const int *tuned = attncl__tuned(caps, TUNE_GEMM_CPU, class);

    if (!tuned)
        return false;
    const struct cpu_tile t = {tuned[GEMM_CPU_TM], tuned[GEMM_CPU_TN], tuned[GEMM_CPU_TK]};
    *ret = fit_cpu_tile(caps, g, t, panel);
    const int64_t groups = count_groups(g, ret->m, ret->n) * g->batch;
    return cpu_tile_suits(caps, g, ret, panel) &&
           (groups >= 2 * (int64_t)caps->compute_units || ret->m * ret->n <= CPU_SMALL_TILE);
}

static struct cpu_tile choose_cpu_tile(const struct device_caps *caps, const struct gemm *g,
                                       int panel, bool *tuned_ret)
{
    const int64_t per_core = g->causal ? CPU_CAUSAL_GROUPS_PER_CORE : CPU_GROUPS_PER_CORE;
    struct cpu_tile t = {0};

    *tuned_ret = !g->causal && tuned_cpu_tile(caps, g, panel, &t);
    if (*tuned_ret)
        return t;
    for (int i = g->trans_a ? 0 : N_CPU_WIDE_TILES; i < N_CPU_TILES; ++i) {
        t = fit_cpu_tile(caps, g, cpu_tiles[i], panel);
        const int64_t groups = count_groups(g, t.m, t.n) * g->batch;
        if (!cpu_tile_suits(caps, g, &t, panel))
            continue;
        // Small tiles cost more than idle cores once a panel of columns does not fill.
        if (groups >= per_core * caps->compute_units || t.m * t.n <= CPU_SMALL_TILE)
            break;
    }
    return t;
}

// What both forms' argument lists begin with.
static void add_sizes(struct gemm_args *args, const struct gemm *g, int64_t k_from, int64_t k_to)
{
    attncl__gemm_add_arg(args, arg_i32(g->m));
    attncl__gemm_add_arg(args, arg_i32(g->n));
    attncl__gemm_add_arg(args, arg_i32(g->k));
    attncl__gemm_add_arg(args, arg_i32(k_from));
    attncl__gemm_add_arg(args, arg_i32(k_to));
}

static void add_form(struct kspec *spec, const struct gemm *g)
{
    kspec_int(spec, "TRANS_A", g->trans_a);
    kspec_int(spec, "TRANS_B", g->trans_b);
    kspec_int(spec, "CAUSAL", g->causal);
    kspec_int(spec, "ACT", g->activation);
}

static attncl_status check_groups(const struct gemm *g, int64_t groups)
{
    REQUIRE(groups <= INT32_MAX / g->batch, ATTNCL_ERR_UNSUPPORTED,
            "a product of [%" PRId64 ", %" PRId64 "] in a batch of %" PRId64 " is too large", g->m,
            g->n, g->batch);
    return ATTNCL_OK;
}

// How much of the sums one launch may take: whole blocks of k within the device's loop limit.  Edge
// panels cost iterations_besides in every block.
static int64_t cpu_k_step(const struct device_caps *caps, const struct gemm *g,
                          const struct cpu_tile *t, int panel)
{
    const int64_t limit = (int64_t)caps->loop_limit;
    const int64_t per_block = iterations_per_k(t, panel) * t->k + iterations_besides(t, panel);

    if (limit == 0)
        return g->k;
    return limit / per_block > 1 ? limit / per_block * t->k : t->k;
}

attncl_status attncl__gemm_cpu_tiles(struct launcher *l, const struct gemm *g,
                                     char how[GEMM_HOW_BYTES])
{
    const unsigned vw = l->caps->vector_width;
    const int panel = cpu_vectors(vw) * (int)vw;
    bool tuned = false;
    const struct cpu_tile t = choose_cpu_tile(l->caps, g, panel, &tuned);
    const int64_t tiles_m = ceil_div(g->m, t.m), tiles_n = ceil_div(g->n, t.n);
    const int64_t k_step = cpu_k_step(l->caps, g, &t, panel);
    struct kspec spec = kspec_begin("op/gemm_cpu.cl", "gemm_cpu_tile");

    TRY(check_groups(g, tiles_m * tiles_n));
    kspec_form(&spec, vw, 1);
    kspec_int(&spec, "NV", cpu_vectors(vw));
    add_form(&spec, g);
    snprintf(how, GEMM_HOW_BYTES, "own CPU tiles %dx%dx%d%s, %" PRId64 " groups", t.m, t.n, t.k,
             tuned ? " (tuned)" : "", tiles_m * tiles_n * g->batch);

    for (int64_t k = 0; k < g->k; k += k_step) {
        struct gemm_args args = {.n = 0};

        add_sizes(&args, g, k, k + k_step < g->k ? k + k_step : g->k);
        attncl__gemm_add_arg(&args, arg_i32(t.m));
        attncl__gemm_add_arg(&args, arg_i32(t.n));
        attncl__gemm_add_arg(&args, arg_i32(t.k));
        attncl__gemm_add_arg(&args, arg_i32(tiles_m));
        attncl__gemm_add_arg(&args, arg_i32(tiles_n));
        attncl__gemm_add_arg(&args, arg_i32(g->batch));
        attncl__gemm_add_matrix(&args, &g->a);
        attncl__gemm_add_matrix(&args, &g->b);
        attncl__gemm_add_matrix(&args, &g->c);
        attncl__gemm_add_arg(&args, arg_local(b_pack_bytes(&t, panel)));
        attncl__gemm_add_arg(&args, arg_local(a_pack_bytes(g, &t)));
        attncl__gemm_add_epilogue(&args, g);
        TRY(attncl__launch(l, &spec, grid_1d(tiles_m * tiles_n * g->batch, 1), args.arg, args.n));
    }
    return ATTNCL_OK;
}

// -- GPU form (cl/op/gemm_gpu.cl)

struct gpu_tile {
    enum device_vendor vendor; // VENDOR_OTHER: any
    unsigned group_multiple;   // 0: any
    int bm, bn, bk, tx, ty;
};

// Per vendor the larger tile first; rows from the sources named in docs/kernels.md, not yet
// measured by this library. Local memory: (bm + bn + 8) bk floats, 16.5 KiB at most.
static const struct gpu_tile gpu_tiles[] = {
    {VENDOR_NVIDIA, 0, 128, 128, 16, 16, 16}, {VENDOR_NVIDIA, 0, 64, 128, 16, 16, 8},
    {VENDOR_AMD, 32, 128, 128, 8, 16, 8},                                           // RDNA
    {VENDOR_AMD, 64, 128, 128, 16, 16, 16},   {VENDOR_AMD, 64, 64, 64, 16, 16, 16}, // GCN, CDNA
    {VENDOR_OTHER, 0, 64, 64, 16, 16, 8},     {VENDOR_OTHER, 0, 32, 32, 32, 8, 8},
    {VENDOR_OTHER, 0, 16, 16, 16, 4, 4},
};
enum { N_GPU_TILES = sizeof gpu_tiles / sizeof gpu_tiles[0], GPU_TILES_PER_UNIT = 2 };

static bool whole_float4s(const struct gemm_matrix *x)
{
    return x->start % 4 == 0 && x->ld % 4 == 0 && x->batch_stride % 4 == 0;
}

static struct kspec gpu_spec(const struct gemm *g, const struct gpu_tile *t)
{
    struct kspec spec = kspec_begin("op/gemm_gpu.cl", "gemm_gpu_tile");

    kspec_form(&spec, 4, (size_t)(t->tx * t->ty));
    kspec_int(&spec, "BM", t->bm);
    kspec_int(&spec, "BN", t->bn);
    kspec_int(&spec, "BK", t->bk);
    kspec_int(&spec, "TX", t->tx);
    kspec_int(&spec, "TY", t->ty);
    kspec_int(&spec, "ALIGNED", whole_float4s(&g->a) && whole_float4s(&g->b));
    add_form(&spec, g);
    return spec;
}

// The kernel's own conditions, and registers for at most 128 sums.
static bool gpu_tile_is_possible(const struct gpu_tile *t)
{
    const int ls = t->tx * t->ty;

    return t->bm % (4 * t->ty) == 0 && t->bn % (4 * t->tx) == 0 && t->bk % 4 == 0 &&
           t->bm * t->bk % (4 * ls) == 0 && t->bn * t->bk % (4 * ls) == 0 &&
           t->bm * t->bn <= 128 * ls;
}

static bool gpu_tile_fits(struct launcher *l, const struct gemm *g, const struct gpu_tile *t)
{
    const size_t group = (size_t)(t->tx * t->ty);
    const struct kspec spec = gpu_spec(g, t);

    return group <= l->caps->max_group && attncl__launch_fits(l, &spec, group);
}

// The tuned tile of this class, where it gives every multiprocessor work.
static bool tuned_gpu_tile(struct launcher *l, const struct gemm *g, struct gpu_tile *ret)
{
    const int class = attncl__gemm_class(g);
    const int *tuned = attncl__tuned(l->caps, TUNE_GEMM_GPU, class);

    if (!tuned)
        return false;
    *ret = (struct gpu_tile){.bm = tuned[GEMM_GPU_BM],
                             .bn = tuned[GEMM_GPU_BN],
                             .bk = tuned[GEMM_GPU_BK],
                             .tx = tuned[GEMM_GPU_TX],
                             .ty = tuned[GEMM_GPU_TY]};
    if (!gpu_tile_is_possible(ret) || !gpu_tile_fits(l, g, ret)) {
        attncl__tuned_refuse(l->caps, TUNE_GEMM_GPU, class, "does not run on this device");
        return false;
    }
    return count_groups(g, ret->bm, ret->bn) * g->batch >= (int64_t)l->caps->compute_units;
}

// The first row that is for this device, gives every multiprocessor work and is not much larger
// than C; then whatever row builds and fits.
static const struct gpu_tile *choose_gpu_tile(struct launcher *l, const struct gemm *g)
{
    for (int suitable = 1; suitable >= 0; --suitable)
        for (int i = 0; i < N_GPU_TILES; ++i) {
            const struct gpu_tile *t = &gpu_tiles[i];
            const bool enough = count_groups(g, t->bm, t->bn) * g->batch >=
                                (int64_t)GPU_TILES_PER_UNIT * l->caps->compute_units;
            const bool small = t->bm <= 32 || (g->m > t->bm / 2 && g->n > t->bn / 2);
            if (t->vendor != VENDOR_OTHER && t->vendor != l->caps->vendor)
                continue;
            if (t->group_multiple && t->group_multiple != l->caps->group_multiple)
                continue;
            if (suitable && !((enough || t->bm <= 64) && small))
                continue;
            if (gpu_tile_fits(l, g, t))
                return t;
        }
    return NULL;
}

attncl_status attncl__gemm_gpu_tiles(struct launcher *l, const struct gemm *g,
                                     char how[GEMM_HOW_BYTES])
{
    struct gpu_tile row;
    const bool tuned = tuned_gpu_tile(l, g, &row);
    const struct gpu_tile *t = tuned ? &row : choose_gpu_tile(l, g);

    REQUIRE(t, ATTNCL_ERR_UNSUPPORTED, "no tile form of the matrix product runs on this device: %s",
            attncl_last_error());
    const int64_t groups = count_groups(g, t->bm, t->bn);
    // Half of the limit, since a block of k loops over its elements and again over its parts.
    const int64_t limit = (int64_t)l->caps->loop_limit / 2;
    const int64_t k_step = limit > t->bk ? limit / t->bk * t->bk : g->k;
    const struct kspec spec = gpu_spec(g, t);

    TRY(check_groups(g, groups));
    snprintf(how, GEMM_HOW_BYTES, "own GPU tiles %dx%dx%d%s, %" PRId64 " groups of %d", t->bm,
             t->bn, t->bk, tuned ? " (tuned)" : "", groups * g->batch, t->tx * t->ty);
    for (int64_t k = 0; k < g->k; k += k_step) {
        struct gemm_args args = {.n = 0};

        add_sizes(&args, g, k, k + k_step < g->k ? k + k_step : g->k);
        attncl__gemm_add_arg(&args, arg_i32(ceil_div(g->m, t->bm)));
        attncl__gemm_add_arg(&args, arg_i32(ceil_div(g->n, t->bn)));
        attncl__gemm_add_arg(&args, arg_i32(g->batch));
        attncl__gemm_add_matrix(&args, &g->a);
        attncl__gemm_add_matrix(&args, &g->b);
        attncl__gemm_add_matrix(&args, &g->c);
        attncl__gemm_add_epilogue(&args, g);
        TRY(attncl__launch(l, &spec, grid_1d(groups * g->batch, (size_t)(t->tx * t->ty)), args.arg,
                           args.n));
    }
    return ATTNCL_OK;
}

attncl_status attncl__gemm_tiles(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES])
{
    return l->caps->form == FORM_CPU ? attncl__gemm_cpu_tiles(l, g, how)
                                     : attncl__gemm_gpu_tiles(l, g, how);
}
