// SPDX-License-Identifier: MIT
//
// Tiled GEMM, CPU variant (cl/gemm/gemm_cpu.cl): the table of tile configurations, the choice for a
// device and a shape, and the launches.
//
// On devices with an iteration cap (caps->max_loop_iterations) several launches share the sums over k.
// Each one continues from the sums in C.

#include "gemm/internal.h"

// MR, A_ROWS and the gap of A_PANEL in cl/gemm/gemm_pack.clh.
enum { CPU_MR = 6, CPU_A_ROWS = 96, CPU_A_GAP = 16 };
// NV by vector width: panels of 64, 16 or 8 columns.
static int cpu_vectors(unsigned vw)
{
    return vw == 16 ? 4 : 2;
}

// A tile's packed panels must stay in a core's second-level cache (512 KiB), beside the data streaming
// through it.  A causal GEMM's tiles differ in work, so balancing the cores takes more of them.
enum { CPU_PACK_BYTES = 288 * 1024, CPU_GROUPS_PER_CORE = 3, CPU_CAUSAL_GROUPS_PER_CORE = 16 };
// Shorter blocks of k spend too much time on reading and writing C in between.
enum { CPU_MIN_K = 64, CPU_SMALL_TILE = 24 * 64 };
// GEMMs of 128 cubed and less are bound by waking cores and packing B again: at least 8 us of work for a
// core of 250 GFLOP/s.
enum { CPU_GROUP_FMAS = 1 << 20 };
// With a transposed A: tiles per core, and the minimum length of a split of k.
enum { CPU_WIDE_PER_CORE = 2, CPU_MIN_SPLIT_K = 1024 };
// Without packing: maximum number of elements of C, and of a row of A or B.
enum { CPU_MAX_DIRECT = 65536, CPU_MAX_DIRECT_ROW = 512 };
enum { CPU_K_MULTIPLE = 16 }; // whole squares for the transposing copy
struct cpu_tile {
    int m, n, k;
};
// The tile configurations, largest first.  The first N_CPU_WIDE_TILES are for a transposed A only:
// its elements are copied, and a copied element should be used for many columns.
static const struct cpu_tile cpu_tile_configs[] = {
    {1536, 1024, 64}, {1536, 512, 96},  {768, 512, 96},   {384, 512, 96},
    {192, 512, 96},   {384, 256, 160},  {192, 256, 160}, // wide
    {6144, 64, 1024}, {3072, 64, 1024}, {1536, 64, 1024}, {768, 128, 512},
    {384, 128, 512},  {192, 128, 256},  {96, 128, 192},   {48, 64, 256},
    {24, 64, 256},    {12, 16, 256},    {6, 8, 256},
};
enum { N_CPU_WIDE_TILES = 7, N_CPU_TILES = sizeof cpu_tile_configs / sizeof cpu_tile_configs[0] };

// True when a transposed A and a plain B are read in place, because a small C does not reuse copied
// elements often enough.  Rows must be short, since blocks of long rows put too many lines into the same
// cache sets.  Blocks of k are long, so loops must not be limited.
static bool is_direct(const struct device_caps *caps, const struct gemm *g, int panel)
{
    return caps->max_loop_iterations == 0 && g->trans_a && !g->trans_b && g->n % panel == 0 &&
           !attncl__is_16_bit(g->b_dtype) && g->m * g->n <= CPU_MAX_DIRECT &&
           g->m <= CPU_MAX_DIRECT_ROW && g->n <= CPU_MAX_DIRECT_ROW;
}

static size_t b_pack_bytes(const struct cpu_tile *tile, int panel)
{
    return sizeof(float) * (size_t)(round_up(tile->n, panel) * tile->k);
}

static size_t a_pack_bytes(const struct gemm *g, const struct cpu_tile *tile)
{
    const int rows = tile->m < CPU_A_ROWS ? tile->m : CPU_A_ROWS;
    const int64_t panels = g->trans_a ? ceil_div(rows, CPU_MR) : 0;

    return sizeof(float) * (size_t)(panels * (CPU_MR * tile->k + CPU_A_GAP));
}

// Upper bounds of a work-item's loop iterations: per k of a launch, and additionally per block of k.
static int64_t iterations_per_k(const struct cpu_tile *tile, int panel)
{
    return 2 * (tile->n + panel) + tile->m + ceil_div(tile->m, CPU_MR) * ceil_div(tile->n, panel);
}

static int64_t iterations_per_block(const struct cpu_tile *tile, int panel)
{
    // Edge panels are copied element by element; then the epilogue.
    return 2 * round_up(tile->m, CPU_MR) * round_up(tile->n, panel);
}

// Fits a configuration to the GEMM: tiles of even height within the matrix, blocks of k within the
// local memory.
static struct cpu_tile fit_cpu_tile(const struct device_caps *caps, const struct gemm *g,
                                    struct cpu_tile tile, int panel)
{
    // The local-memory argument of an operand that is not packed has one element.
    const size_t local_bytes = caps->local_bytes - (g->trans_a ? 0 : sizeof(float));
    const size_t max_bytes = local_bytes < CPU_PACK_BYTES ? local_bytes : CPU_PACK_BYTES;

    tile.m = (int)round_up(ceil_div(g->m, ceil_div(g->m, tile.m)), CPU_MR);
    tile.n = (int)round_up(ceil_div(g->n, ceil_div(g->n, tile.n)), panel);
    tile.k = (int)round_up(ceil_div(g->k, ceil_div(g->k, tile.k)), CPU_K_MULTIPLE);
    while (tile.k > 1 && a_pack_bytes(g, &tile) + b_pack_bytes(&tile, panel) > max_bytes)
        tile.k = (tile.k + 1) / 2;
    if (is_direct(caps, g, panel)) {
        const int64_t fit = (int64_t)(CPU_PACK_BYTES / sizeof(float)) / (tile.m + tile.n);
        tile.k = (int)(fit < g->k ? fit / CPU_K_MULTIPLE * CPU_K_MULTIPLE : g->k);
    }
    return tile;
}

// True when the device can run the fitted tile and its blocks of k are not too short.
static bool cpu_tile_is_profitable(const struct device_caps *caps, const struct gemm *g,
                                   const struct cpu_tile *tile, int panel)
{
    const int64_t limit = (int64_t)caps->max_loop_iterations;

    if (limit &&
        iterations_per_k(tile, panel) * tile->k + iterations_per_block(tile, panel) > limit)
        return false;
    return tile->k >= CPU_MIN_K || tile->k >= g->k || tile->m * tile->n <= CPU_SMALL_TILE;
}

// *ret: the class's tuned tile.  False unless each core gets at least two tiles: it was measured on
// another shape of the class and must not leave cores idle on this one.
static bool find_tuned_cpu_tile(const struct device_caps *caps, const struct gemm *g, int panel,
                                struct cpu_tile *ret)
{
    const int *tuned = attncl__tuned(caps, TUNE_GEMM_CPU, attncl__gemm_get_tune_class(g));

    if (!tuned)
        return false;
    const struct cpu_tile tile = {tuned[GEMM_CPU_TM], tuned[GEMM_CPU_TN], tuned[GEMM_CPU_TK]};
    *ret = fit_cpu_tile(caps, g, tile, panel);
    const int64_t groups = attncl__gemm_tile_count(g, ret->m, ret->n) * g->batch;
    return cpu_tile_is_profitable(caps, g, ret, panel) &&
           (groups >= 2 * (int64_t)caps->compute_units || ret->m * ret->n <= CPU_SMALL_TILE);
}

static size_t partials_bytes(const struct gemm *g, int64_t n_splits)
{
    return sizeof(float) * (size_t)(n_splits * g->m * g->n);
}

// Returns the number of splits of k (split-K), which are computed in parallel; 1: no split-K.  When C is small and k is
// long, this keeps all cores busy with large tiles; small tiles would spend too much time on copying A and B.
static int64_t choose_n_splits(const struct device_caps *caps, const struct gemm *g,
                               const struct cpu_tile *tile)
{
    const int64_t wanted = CPU_WIDE_PER_CORE * caps->compute_units;
    const int64_t tiles = attncl__gemm_tile_count(g, tile->m, tile->n);

    if (!g->trans_a || g->batch != 1 || caps->max_loop_iterations || tiles >= wanted)
        return 1;
    for (int64_t n_splits = ceil_div(wanted, tiles); n_splits <= 2 * wanted; ++n_splits) {
        const bool small = 8 * n_splits * g->m * g->n <= (g->m + g->n) * g->k;
        const bool equal = g->k % (n_splits * CPU_K_MULTIPLE) == 0;
        if (small && equal && g->k / n_splits >= CPU_MIN_SPLIT_K &&
            partials_bytes(g, n_splits) <= g->scratch_bytes)
            return n_splits;
    }
    return 1;
}

// Returns how many work-groups keep all cores busy to the end without giving any less work than waking a core costs.
static int64_t choose_n_groups(const struct device_caps *caps, const struct gemm *g)
{
    const int64_t per_core = g->causal ? CPU_CAUSAL_GROUPS_PER_CORE : CPU_GROUPS_PER_CORE;
    const double profitable =
        (double)g->m * (double)g->n * (double)g->k * (double)g->batch / CPU_GROUP_FMAS;
    const int64_t max = per_core * caps->compute_units;

    return profitable < (double)max ? (int64_t)profitable : max;
}

static struct cpu_tile choose_cpu_tile(const struct device_caps *caps, const struct gemm *g,
                                       int panel, bool *tuned_ret)
{
    const int64_t wanted = choose_n_groups(caps, g);
    struct cpu_tile tile = {0};

    *tuned_ret = !g->causal && !g->trans_a && find_tuned_cpu_tile(caps, g, panel, &tile);
    if (*tuned_ret)
        return tile;
    for (int i = g->trans_a ? 0 : N_CPU_WIDE_TILES; i < N_CPU_TILES; ++i) {
        tile = fit_cpu_tile(caps, g, cpu_tile_configs[i], panel);
        const int64_t groups = attncl__gemm_tile_count(g, tile.m, tile.n) * g->batch;
        if (!cpu_tile_is_profitable(caps, g, &tile, panel))
            continue;
        // Tiles smaller than this cost more than idle cores.
        if (groups >= wanted || tile.m * tile.n <= CPU_SMALL_TILE)
            break;
        // Wide tiles do as well if all cores get equally many.
        if (choose_n_splits(caps, g, &tile) > 1 ||
            (g->trans_a && groups >= CPU_WIDE_PER_CORE * caps->compute_units &&
             groups % caps->compute_units == 0))
            break;
    }
    return tile;
}

// Returns how much of k one launch may sum: whole blocks within the device's iteration cap.
static int64_t choose_k_step(const struct device_caps *caps, const struct gemm *g,
                             const struct cpu_tile *tile, int panel)
{
    const int64_t limit = (int64_t)caps->max_loop_iterations;
    const int64_t per_block =
        iterations_per_k(tile, panel) * tile->k + iterations_per_block(tile, panel);

    if (limit == 0)
        return g->k;
    return limit / per_block > 1 ? limit / per_block * tile->k : tile->k;
}

static attncl_status launch_tiles(struct launcher *l, const struct gemm *g,
                                  const struct cpu_tile *tile, int panel)
{
    const unsigned vw = l->caps->vector_width;
    const int64_t tiles_m = ceil_div(g->m, tile->m), tiles_n = ceil_div(g->n, tile->n);
    const int64_t k_step = choose_k_step(l->caps, g, tile, panel);
    const bool direct = is_direct(l->caps, g, panel);
    struct kspec spec = kspec_begin("gemm/gemm_cpu.cl", "gemm_cpu_tile");

    TRY(attncl__gemm_check_groups(g, tiles_m * tiles_n));
    kspec_set_vw_ls(&spec, vw, 1);
    kspec_int(&spec, "NV", cpu_vectors(vw));
    kspec_int(&spec, "DIRECT", direct);
    kspec_int(&spec, "NARROW", (g->n - 1) % panel < (int)vw);
    kspec_int(&spec, "USE_PREFETCH", l->caps->builtin_prefetch);
    attncl__gemm_add_macros(&spec, g);
    for (int64_t k = 0; k < g->k; k += k_step) {
        struct arg_list args = {.n = 0};

        arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_i32(g->k), arg_i32(k),
                                 arg_i32(k + k_step < g->k ? k + k_step : g->k), arg_i32(tile->m),
                                 arg_i32(tile->n), arg_i32(tile->k), arg_i32(tiles_m),
                                 arg_i32(tiles_n), arg_i32(g->batch)));
        attncl__gemm_add_matrices(&args, g, &g->c);
        if (direct) // unused by the kernel, but a local-memory argument needs at least one element
            arg_list_add(&args, ARGS(arg_local(sizeof(float)), arg_local(sizeof(float))));
        else
            arg_list_add(&args, ARGS(arg_local(b_pack_bytes(tile, panel)),
                                     arg_local(a_pack_bytes(g, tile))));
        attncl__gemm_add_epilogue(&args, g);
        TRY(attncl__launch(l, &spec, grid_1d(tiles_m * tiles_n * g->batch, 1), args.arg, args.n));
    }
    return ATTNCL_OK;
}

// Split-K: the splits are entries of a batch; the epilogue kernel adds their results.
static attncl_status launch_split_k(struct launcher *l, const struct gemm *g,
                                    const struct cpu_tile *tile, int panel, int64_t n_splits)
{
    const int64_t k = g->k / n_splits;
    const struct gemm batch =
        GEMM_OF(n_splits, g->m, g->n, k,
                .a = {g->a.span, g->a.start, g->a.ld, g->trans_a ? k * g->a.ld : k},
                .b = {g->b.span, g->b.start, g->b.ld, g->trans_b ? k : k * g->b.ld},
                .c = {.span = g->scratch, .ld = g->n, .batch_stride = g->m * g->n},
                .b_dtype = g->b_dtype, .trans_a = g->trans_a, .trans_b = g->trans_b);

    TRY(launch_tiles(l, &batch, tile, panel));
    return attncl__gemm_apply_epilogue(l, g, n_splits);
}

attncl_status attncl__gemm_cpu(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES])
{
    const int panel = cpu_vectors(l->caps->vector_width) * (int)l->caps->vector_width;
    bool tuned = false;
    const struct cpu_tile tile = choose_cpu_tile(l->caps, g, panel, &tuned);
    const int64_t n_splits = choose_n_splits(l->caps, g, &tile);

    snprintf(how, GEMM_HOW_BYTES, "native CPU tiles %dx%dx%d%s, %" PRId64 " work-groups", tile.m,
             tile.n, tile.k, tuned ? " (tuned)" : "",
             attncl__gemm_tile_count(g, tile.m, tile.n) * g->batch * n_splits);
    return n_splits > 1 ? launch_split_k(l, g, &tile, panel, n_splits)
                        : launch_tiles(l, g, &tile, panel);
}

size_t attncl__gemm_cpu_scratch(const struct device_caps *caps, const struct gemm *problem)
{
    const int panel = cpu_vectors(caps->vector_width) * (int)caps->vector_width;
    struct gemm g = *problem;
    bool tuned = false;

    g.scratch_bytes = SIZE_MAX; // no limit
    const struct cpu_tile tile = choose_cpu_tile(caps, &g, panel, &tuned);
    const int64_t n_splits = choose_n_splits(caps, &g, &tile);
    return n_splits > 1 ? partials_bytes(&g, n_splits) : 0;
}
