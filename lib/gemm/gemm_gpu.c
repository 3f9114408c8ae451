// SPDX-License-Identifier: MIT
//
// GEMM in tiles, GPU variant (cl/gemm/gemm_gpu.cl, and by matrix instructions gemm_gpu_mma.cl): the table of tile
// configurations, the choice of one for a device and a shape, and the launches.
//
// A GEMM with long sums whose tiles do not fill the device is split along k (split-K): partial sums
// go to scratch, and the epilogue kernel adds them in order.

#include "gemm/internal.h"

// A tile of bm x bn elements of C, in blocks of bk along k, by tx x ty work-items.  Each work-item
// sums bm bn / (tx ty) elements.  Local memory: (bm + bn + 8) bk floats, 16.5 KiB at most.
// By a matrix instruction: a sub-group has bm / ty rows, and with its neighbours along n all bn columns;
// (bm + bn + 32) bk floats.
struct gpu_tile {
    enum device_vendor vendor; // VENDOR_OTHER: any
    unsigned group_multiple;   // warp or wave; 0: any
    int bm, bn, bk, tx, ty;
    enum matrix_instruction mma; // MMA_NONE: FMAs
};

// The tile configurations, per vendor the larger first; but for NVIDIA's from the sources that docs/dev/kernels.md
// names, not yet measured by this library.
static const struct gpu_tile gpu_tile_configs[] = {
    {VENDOR_OTHER, 0, 64, 64, 16, 64, 2, MMA_PTX},     // 32 x 32 for each of 4 warps
    {VENDOR_OTHER, 0, 128, 128, 16, 128, 2, MMA_MFMA}, // 64 x 64 for each of 4 waves
    {VENDOR_OTHER, 0, 64, 64, 16, 128, 2, MMA_MFMA},   // 32 x 32
    {VENDOR_OTHER, 0, 128, 64, 16, 64, 2, MMA_WMMA},   // 64 x 32
    {VENDOR_OTHER, 0, 64, 64, 16, 64, 2, MMA_WMMA},    // 32 x 32
    {VENDOR_OTHER, 0, 128, 64, 16, 64, 2, MMA_WMMA_GFX12},
    {VENDOR_OTHER, 0, 64, 64, 16, 64, 2, MMA_WMMA_GFX12},
    {VENDOR_OTHER, 0, 64, 64, 16, 32, 8, MMA_DPAS_8},  // 8 x 16 for each of 32 sub-groups
    {VENDOR_OTHER, 0, 64, 64, 16, 64, 4, MMA_DPAS_16}, // 16 x 16 for each of 16
    // For few rows: 4 x 4, and most of a block is B's.
    {VENDOR_OTHER, 0, 8, 64, 16, 16, 2, MMA_NONE},
    {VENDOR_OTHER, 0, 16, 64, 16, 16, 4, MMA_NONE},
    // Blocks of 8: 128 registers at most, so that two work-groups share a multiprocessor.  Of 13 tiles these two are the
    // fastest on an H200.
    {VENDOR_NVIDIA, 0, 128, 128, 8, 16, 16, MMA_NONE}, // 8 x 8 sums for each work-item
    {VENDOR_NVIDIA, 0, 64, 64, 16, 16, 16, MMA_NONE},  // 4 x 4
    {VENDOR_AMD, 32, 128, 128, 8, 16, 8, MMA_NONE},    // RDNA: 16 x 8
    {VENDOR_AMD, 32, 128, 64, 16, 16, 8, MMA_NONE},    // 16 x 4
    {VENDOR_AMD, 32, 64, 64, 16, 8, 8, MMA_NONE},      // 8 x 8
    {VENDOR_AMD, 64, 128, 128, 16, 16, 16, MMA_NONE},  // GCN, CDNA: 8 x 8
    {VENDOR_AMD, 64, 64, 64, 16, 16, 16, MMA_NONE},    // 4 x 4
    {VENDOR_OTHER, 0, 64, 64, 16, 16, 8, MMA_NONE},    // and Intel: 8 x 4
    {VENDOR_OTHER, 0, 32, 32, 32, 8, 8, MMA_NONE},     // 4 x 4
    {VENDOR_OTHER, 0, 16, 16, 16, 4, 4, MMA_NONE},     // 4 x 4
};
enum { N_GPU_TILES = sizeof gpu_tile_configs / sizeof gpu_tile_configs[0] };

enum {
    TILES_PER_UNIT = 2,                        // that keep a compute unit busy
    SMALL_TILE = 64,                           // tiles up to this size are taken with fewer
    MIN_SPLIT_BLOCKS = 4,                      // blocks of k in a split
    SPLIT_K_MIN_BLOCKS = 8 * MIN_SPLIT_BLOCKS, // blocks of k in a GEMM that uses split-K
    SKINNY_SPLIT = 64,                         // terms in a split of few rows
    SKINNY_SPLIT_K_MIN = 4 * SKINNY_SPLIT      // terms in a GEMM of few rows that uses split-K
};

static bool whole_float4s(const struct gemm_matrix *x)
{
    return x->start % 4 == 0 && x->ld % 4 == 0 && x->batch_stride % 4 == 0;
}

// MMA_LANES of cl/common/mma.clh.
static int mma_lanes(enum matrix_instruction mma)
{
    return mma == MMA_MFMA ? 64 : mma == MMA_DPAS_8 ? 8 : mma == MMA_DPAS_16 ? 16 : 32;
}

static struct kspec tile_spec(const struct launcher *l, const struct gemm *g,
                              const struct gpu_tile *t)
{
    struct kspec spec = t->mma ? kspec_begin("gemm/gemm_gpu_mma.cl", "gemm_gpu_mma_tile")
                               : kspec_begin("gemm/gemm_gpu.cl", "gemm_gpu_tile");

    kspec_set_vw_ls(&spec, 4, (size_t)(t->tx * t->ty));
    kspec_int(&spec, "BM", t->bm);
    kspec_int(&spec, "BN", t->bn);
    kspec_int(&spec, "BK", t->bk);
    if (t->mma) {
        kspec_int(&spec, "WAVES_N", t->tx / mma_lanes(t->mma));
        kspec_int(&spec, "MMA", t->mma);
        kspec_int(&spec, "PRECISION", t->mma == MMA_MFMA ? GEMM_F32 : l->caps->precision);
    } else {
        kspec_int(&spec, "TX", t->tx);
        kspec_int(&spec, "TY", t->ty);
    }
    kspec_int(&spec, "ALIGNED", whole_float4s(&g->a) && whole_float4s(&g->b));
    attncl__gemm_add_macros(&spec, g);
    return spec;
}

// In all batch entries.
static int64_t tile_count(const struct gemm *g, const struct gpu_tile *t)
{
    return attncl__gemm_tile_count(g, t->bm, t->bn) * g->batch;
}

// For GEMMs of bm rows at most, which read B once by it.
static bool is_for_skinny(const struct gpu_tile *t)
{
    return 4 * t->bm <= t->bn;
}

static bool is_whole_warps(const struct device_caps *caps, const struct gpu_tile *t)
{
    return caps->group_multiple <= 1 || (unsigned)(t->tx * t->ty) % caps->group_multiple == 0;
}

// Intel's compiler gives a work-item 128 registers at the most.  What the next block's loads take with 32 work-items, and
// what the diagonal takes besides 32 sums, went to memory.
static bool fits_intel(const struct gemm *g, const struct gpu_tile *t)
{
    enum { MIN_ITEMS = 64, MAX_INTEL_CAUSAL_SUMS = 16 };
    const int items = t->tx * t->ty;

    return !(is_for_skinny(t) && items < MIN_ITEMS) &&
           !(g->causal && t->bm * t->bn > MAX_INTEL_CAUSAL_SUMS * items);
}

static bool is_for_device(const struct device_caps *caps, const struct gemm *g,
                          const struct gpu_tile *t)
{
    enum { MAX_CAUSAL_SUMS = 64 };

    // An instruction cannot leave out what lies above the diagonal; of few terms, FMAs are more exact.
    if (t->mma && (t->mma != caps->mma || g->causal || g->k < t->bk))
        return false;
    if (is_for_skinny(t) && (g->m > t->bm || !is_whole_warps(caps, t)))
        return false;
    // With 128 sums there are no registers for which of a work-item's 16 rows take part.
    if (g->causal && t->bm * t->bn > MAX_CAUSAL_SUMS * t->tx * t->ty)
        return false;
    if (caps->vendor == VENDOR_INTEL && !t->mma && !fits_intel(g, t))
        return false;
    return (t->vendor == VENDOR_OTHER || t->vendor == caps->vendor) &&
           (t->group_multiple == 0 || t->group_multiple == caps->group_multiple) &&
           (size_t)(t->tx * t->ty) <= caps->max_group;
}

// The class of tuned values; of few rows one of its own.
static int tile_class(const struct gemm *g)
{
    enum { MAX_SKINNY_ROWS = 32 };
    return g->m <= MAX_SKINNY_ROWS ? TUNE_SKINNY : attncl__gemm_get_tune_class(g);
}

// Splits of k, each but the last of *step_ret terms; 1: no split-K.
static int64_t split_k_count(const struct device_caps *caps, const struct gemm *g,
                             const struct gpu_tile *t, int64_t *step_ret)
{
    const int64_t tiles = tile_count(g, t), units = caps->compute_units;
    const bool few = tile_class(g) == TUNE_SKINNY;
    const int min_step = few ? SKINNY_SPLIT : MIN_SPLIT_BLOCKS * t->bk;
    const int min_k = few ? SKINNY_SPLIT_K_MIN : SPLIT_K_MIN_BLOCKS * t->bk;

    *step_ret = g->k;
    if (g->causal || caps->max_loop_iterations || tiles >= units || g->k < min_k)
        return 1;
    const int64_t max_splits = g->k / min_step;
    const int64_t wanted = ceil_div(TILES_PER_UNIT * units, tiles);
    const int64_t n_splits = wanted < max_splits ? wanted : max_splits;
    *step_ret = ceil_div(ceil_div(g->k, n_splits), t->bk) * t->bk;
    return ceil_div(g->k, *step_ret);
}

// True when the tile is not much larger than C, and is small or gives every compute unit work.
// A tile for few rows reads its columns of B once, so that any number of them is right.  Tiles of 32 are
// for narrow matrices, and for those where tiles of 64 leave compute units idle even with split-K.
static bool is_profitable(const struct device_caps *caps, const struct gemm *g,
                          const struct gpu_tile *t)
{
    const bool wide = g->m > t->bm / 2 && g->n > t->bn / 2;
    // Measured on an H200: 128 tiles of 128 x 128 on 132 units take 0.86 of the time of four times as many of 64 x 64.
    const int64_t wanted = caps->vendor == VENDOR_NVIDIA
                               ? (int64_t)caps->compute_units * 15 / 16
                               : (int64_t)TILES_PER_UNIT * caps->compute_units;
    const bool enough = tile_count(g, t) >= wanted;
    int64_t step = 0;

    if (is_for_skinny(t))
        return g->n > t->bn / 2;
    if (t->bm < SMALL_TILE)
        return t->bm > 16;
    if (t->bm > SMALL_TILE || t->bn > SMALL_TILE)
        return wide && enough;
    return wide &&
           (tile_count(g, t) >= caps->compute_units || split_k_count(caps, g, t, &step) > 1);
}

// The kernel's conditions on its macros, and registers for at most 128 sums.
static bool gpu_tile_is_valid(const struct gpu_tile *t)
{
    const int ls = t->tx * t->ty;

    return t->bm % (4 * t->ty) == 0 && t->bn % (4 * t->tx) == 0 && t->bk % 4 == 0 &&
           t->bm * t->bk % (4 * ls) == 0 && t->bn * t->bk % (4 * ls) == 0 &&
           t->bm * t->bn <= 128 * ls;
}

static bool gpu_tile_fits(struct launcher *l, const struct gemm *g, const struct gpu_tile *t,
                          bool no_spills)
{
    const size_t group = (size_t)(t->tx * t->ty);
    const struct kspec spec = tile_spec(l, g, t);

    return attncl__kernel_fits(l, &spec, group, no_spills);
}

// The tuned tile of this class, if it gives every compute unit work; few rows are split for that.
static bool tuned_gpu_tile(struct launcher *l, const struct gemm *g, struct gpu_tile *ret)
{
    const int class = tile_class(g);
    const int *tuned = attncl__tuned(l->caps, TUNE_GEMM_GPU, class);

    if (!tuned)
        return false;
    *ret = (struct gpu_tile){.bm = tuned[GEMM_GPU_BM],
                             .bn = tuned[GEMM_GPU_BN],
                             .bk = tuned[GEMM_GPU_BK],
                             .tx = tuned[GEMM_GPU_TX],
                             .ty = tuned[GEMM_GPU_TY]};
    if (!gpu_tile_is_valid(ret) || (size_t)(ret->tx * ret->ty) > l->caps->max_group ||
        !gpu_tile_fits(l, g, ret, true)) {
        attncl__tuned_reject(l->caps, TUNE_GEMM_GPU, class);
        return false;
    }
    return class == TUNE_SKINNY || tile_count(g, ret) >= (int64_t)l->caps->compute_units;
}

// The tuned tile of the GEMM's class, else the first of the table that is profitable, else any, preferably
// without spills.  False: none runs on the device.
static bool choose_tile(struct launcher *l, const struct gemm *g, struct gpu_tile *ret,
                        bool *tuned_ret)
{
    enum { PROFITABLE, NO_SPILLS, ANY, N_PASSES };

    *tuned_ret = (!l->caps->mma || g->causal) && tuned_gpu_tile(l, g, ret);
    if (*tuned_ret)
        return true;
    for (int pass = PROFITABLE; pass < N_PASSES; ++pass)
        for (int i = 0; i < N_GPU_TILES; ++i) {
            const struct gpu_tile *t = &gpu_tile_configs[i];
            if (!is_for_device(l->caps, g, t) || (pass > PROFITABLE && t->mma) ||
                (pass == PROFITABLE && !is_profitable(l->caps, g, t)) ||
                !gpu_tile_fits(l, g, t, pass < ANY))
                continue;
            *ret = *t;
            return true;
        }
    return false;
}

// Terms [k_from, k_to) in `n_splits` splits of `step` each.
struct k_split {
    int64_t k_from, k_to, step, n_splits;
};

static attncl_status launch_tiles(struct launcher *l, const struct gemm *g,
                                  const struct gpu_tile *t, struct k_split split)
{
    const struct kspec spec = tile_spec(l, g, t);
    const size_t local = (size_t)(t->tx * t->ty);
    const struct gemm_matrix partials = {
        .span = g->scratch, .ld = g->n, .batch_stride = g->m * g->n};
    const bool apply_epilogue = split.n_splits == 1 && split.k_to == g->k;
    struct arg_list args = {.n = 0};

    arg_list_add(&args, ARGS(arg_i32(g->m), arg_i32(g->n), arg_i32(split.k_from),
                             arg_i32(split.k_to), arg_i32(split.step), arg_i32(apply_epilogue),
                             arg_i64(split.n_splits > 1 ? g->batch * g->m * g->n : 0),
                             arg_i32(ceil_div(g->m, t->bm)), arg_i32(ceil_div(g->n, t->bn)),
                             arg_i32(g->batch)));
    attncl__gemm_add_matrices(&args, g, split.n_splits > 1 ? &partials : &g->c);
    attncl__gemm_add_epilogue(&args, g);
    return attncl__launch(l, &spec, grid_2d(tile_count(g, t), split.n_splits, local, 1), args.arg,
                          args.n);
}

// Terms of a launch: no more than the device's loops may have, of which half are for a block's elements
// and half for its float4s, and no more than a watchdog allows.
static int64_t k_of_a_launch(const struct launcher *l, const struct gemm *g, int bk)
{
    enum { MIN_BLOCKS = 64 };
    int64_t blocks = attncl__parts_at_once(l, ceil_div(g->k, bk), MIN_BLOCKS);
    const int64_t loops = (int64_t)l->caps->max_loop_iterations / 2 / bk;

    if (loops > 1 && loops < blocks)
        blocks = loops;
    return blocks * bk;
}

attncl_status attncl__gemm_gpu(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES])
{
    struct gpu_tile tile;
    const struct gpu_tile *t = &tile;
    bool tuned;

    REQUIRE(choose_tile(l, g, &tile, &tuned), ATTNCL_ERR_UNSUPPORTED,
            "no tile variant of the GEMM runs in the device's %zu work-items and %zu bytes of "
            "local memory",
            l->caps->max_group, l->caps->local_bytes);
    const int64_t k_step = k_of_a_launch(l, g, t->bk);
    struct k_split split = {.k_to = g->k};

    TRY(attncl__gemm_check_groups(g, attncl__gemm_tile_count(g, t->bm, t->bn)));
    split.n_splits = split_k_count(l->caps, g, t, &split.step);
    const size_t needed = sizeof(float) * (size_t)(split.n_splits * g->batch * g->m * g->n);
    const bool use_split_k = split.n_splits > 1 && needed <= g->scratch_bytes;
    snprintf(how, GEMM_HOW_BYTES, "native GPU tiles %dx%dx%d%s, %" PRId64 " work-groups of %d",
             t->bm, t->bn, t->bk,
             tuned    ? " (tuned)"
             : t->mma ? " by matrix instructions"
                      : "",
             tile_count(g, t) * (use_split_k ? split.n_splits : 1), t->tx * t->ty);
    if (use_split_k) {
        TRY(launch_tiles(l, g, t, split));
        return attncl__gemm_apply_epilogue(l, g, split.n_splits);
    }
    for (int64_t k = 0; k < g->k; k += k_step) {
        const int64_t k_to = k + k_step < g->k ? k + k_step : g->k;
        TRY(launch_tiles(l, g, t, (struct k_split){k, k_to, k_to - k, 1}));
    }
    return ATTNCL_OK;
}

size_t attncl__gemm_gpu_scratch(const struct device_caps *caps, const struct gemm *g)
{
    int64_t step = 0;

    for (int i = 0; i < N_GPU_TILES; ++i)
        if (is_for_device(caps, g, &gpu_tile_configs[i]) &&
            is_profitable(caps, g, &gpu_tile_configs[i])) {
            const int64_t n_splits = split_k_count(caps, g, &gpu_tile_configs[i], &step);
            return n_splits > 1 ? sizeof(float) * (size_t)(n_splits * g->batch * g->m * g->n) : 0;
        }
    return 0;
}
