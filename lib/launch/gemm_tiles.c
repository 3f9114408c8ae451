// SPDX-License-Identifier: MIT
//
// The tile form of a matrix product on CPUs: which tile for which device and shape, as data, and
// the launches.  GPUs: launch/gemm_gpu.c.
//
// Where one work-item's loops are limited (caps->loop_limit) the sums over k are cut into several
// launches; the kernels then continue from what is in C.

#include "launch/gemm_own.h"

// MR, AR, A_ROWS and A_PANEL's gap of cl/op/gemm_cpu.cl, and NV by vector width: panels of 64, 16
// and 8 columns.
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
    {768, 512, 96},   {384, 512, 96},   {192, 512, 96},  {192, 256, 160}, // wide
    {3072, 64, 1024}, {1536, 64, 1024}, {768, 128, 512}, {384, 128, 512}, {192, 128, 256},
    {96, 128, 192},   {48, 64, 256},    {24, 64, 256},   {12, 16, 256},   {6, 8, 256},
};
enum { N_CPU_WIDE_TILES = 4, N_CPU_TILES = sizeof cpu_tiles / sizeof cpu_tiles[0] };

static int64_t round_up(int64_t x, int64_t to)
{
    return ceil_div(x, to) * to;
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
    const int *tuned = attncl__tuned(caps, TUNE_GEMM_CPU, attncl__gemm_class(g));

    if (!tuned)
        return false;
    const struct cpu_tile t = {tuned[GEMM_CPU_TM], tuned[GEMM_CPU_TN], tuned[GEMM_CPU_TK]};
    *ret = fit_cpu_tile(caps, g, t, panel);
    const int64_t groups = attncl__gemm_tile_count(g, ret->m, ret->n) * g->batch;
    return cpu_tile_suits(caps, g, ret, panel) &&
           (groups >= 2 * (int64_t)caps->compute_units || ret->m * ret->n <= CPU_SMALL_TILE);
}

static struct cpu_tile choose_cpu_tile(const struct device_caps *caps, const struct gemm *g,
                                       int panel, bool *tuned_ret)
{
    const int64_t per_core = g->causal ? CPU_CAUSAL_GROUPS_PER_CORE : CPU_GROUPS_PER_CORE;
    struct cpu_tile t = {0};

    *tuned_ret = !g->causal && !g->trans_a && tuned_cpu_tile(caps, g, panel, &t);
    if (*tuned_ret)
        return t;
    for (int i = g->trans_a ? 0 : N_CPU_WIDE_TILES; i < N_CPU_TILES; ++i) {
        t = fit_cpu_tile(caps, g, cpu_tiles[i], panel);
        const int64_t groups = attncl__gemm_tile_count(g, t.m, t.n) * g->batch;
        if (!cpu_tile_suits(caps, g, &t, panel))
            continue;
        // Small tiles cost more than idle cores once a panel of columns does not fill.
        if (groups >= per_core * caps->compute_units || t.m * t.n <= CPU_SMALL_TILE)
            break;
    }
    return t;
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

    TRY(attncl__gemm_check_groups(g, tiles_m * tiles_n));
    kspec_form(&spec, vw, 1);
    kspec_int(&spec, "NV", cpu_vectors(vw));
    kspec_int(&spec, "AHEAD", l->caps->builtin_prefetch);
    attncl__gemm_add_form(&spec, g);
    snprintf(how, GEMM_HOW_BYTES, "own CPU tiles %dx%dx%d%s, %" PRId64 " groups", t.m, t.n, t.k,
             tuned ? " (tuned)" : "", tiles_m * tiles_n * g->batch);

    for (int64_t k = 0; k < g->k; k += k_step) {
        struct gemm_args args = {.n = 0};

        attncl__gemm_add_sizes(&args, g, k, k + k_step < g->k ? k + k_step : g->k);
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

attncl_status attncl__gemm_tiles(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES])
{
    return l->caps->form == FORM_CPU ? attncl__gemm_cpu_tiles(l, g, how)
                                     : attncl__gemm_gpu_tiles(l, g, how);
}
