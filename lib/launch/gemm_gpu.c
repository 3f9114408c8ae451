// SPDX-License-Identifier: MIT
//
// The tile form of a matrix product on GPUs (cl/op/gemm_gpu.cl): which tile for which vendor and
// shape, as data, and the launches.
//
// A product whose tiles do not fill the device, with long sums, is cut along k: each part is made
// in scratch, and the epilogue's kernel adds the parts in their order.

#include "launch/gemm_own.h"

struct gpu_tile {
    enum device_vendor vendor; // VENDOR_OTHER: any
    unsigned group_multiple;   // 0: any
    int bm, bn, bk, tx, ty;
};

// Per vendor the larger tile first; rows from the sources named in docs/kernels.md, not yet
// measured by this library.  Local memory: (bm + bn + 8) bk floats, 16.5 KiB at most.
static const struct gpu_tile gpu_tiles[] = {
    {VENDOR_NVIDIA, 0, 128, 128, 16, 16, 16}, // 8 x 8 sums for each work-item
    {VENDOR_NVIDIA, 0, 64, 128, 16, 16, 8},   // 8 x 8
    {VENDOR_AMD, 32, 128, 128, 8, 16, 8},     // RDNA: 16 x 8
    {VENDOR_AMD, 32, 128, 64, 16, 16, 8},     // 16 x 4
    {VENDOR_AMD, 32, 64, 64, 16, 8, 8},       // 8 x 8
    {VENDOR_AMD, 64, 128, 128, 16, 16, 16},   // GCN, CDNA: 8 x 8
    {VENDOR_AMD, 64, 64, 64, 16, 16, 16},     // 4 x 4
    {VENDOR_OTHER, 0, 64, 64, 16, 16, 8},     // and Intel: 8 x 4
    {VENDOR_OTHER, 0, 32, 32, 32, 8, 8},      // 4 x 4
    {VENDOR_OTHER, 0, 16, 16, 16, 4, 4},      // 4 x 4
};
enum { N_GPU_TILES = sizeof gpu_tiles / sizeof gpu_tiles[0] };

// Tiles for each multiprocessor that keep it busy; a tile that is taken with fewer; blocks of k in
// a part at the least, and in a product that is cut.
enum { TILES_PER_UNIT = 2, SMALL_TILE = 64, PART_BLOCKS = 4, CUT_BLOCKS = 8 * PART_BLOCKS };

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
    attncl__gemm_add_form(&spec, g);
    return spec;
}

static int64_t tiles_of(const struct gemm *g, const struct gpu_tile *t)
{
    return attncl__gemm_tile_count(g, t->bm, t->bn) * g->batch;
}

static bool is_for_device(const struct device_caps *caps, const struct gpu_tile *t)
{
    return (t->vendor == VENDOR_OTHER || t->vendor == caps->vendor) &&
           (t->group_multiple == 0 || t->group_multiple == caps->group_multiple) &&
           (size_t)(t->tx * t->ty) <= caps->max_group;
}

// Parts that the sums are cut into, all but the last of *step_ret terms; 1: they are not.
static int64_t parts_of(const struct device_caps *caps, const struct gemm *g,
                        const struct gpu_tile *t, int64_t *step_ret)
{
    const int64_t tiles = tiles_of(g, t), units = caps->compute_units;

    *step_ret = g->k;
    if (g->causal || caps->loop_limit || tiles >= units || g->k < (int64_t)CUT_BLOCKS * t->bk)
        return 1;
    const int64_t most = g->k / (PART_BLOCKS * t->bk);
    const int64_t wanted = ceil_div(TILES_PER_UNIT * units, tiles);
    const int64_t parts = wanted < most ? wanted : most;
    *step_ret = ceil_div(ceil_div(g->k, parts), t->bk) * t->bk;
    return ceil_div(g->k, *step_ret);
}

// Gives every multiprocessor work, or is small; and not much larger than C.  Tiles of 32 are for
// matrices as narrow, and where those of 64 leave multiprocessors idle that no cut of k helps.
static bool suits(const struct device_caps *caps, const struct gemm *g, const struct gpu_tile *t)
{
    const bool wide = g->m > t->bm / 2 && g->n > t->bn / 2;
    const bool enough = tiles_of(g, t) >= (int64_t)TILES_PER_UNIT * caps->compute_units;
    int64_t step = 0;

    if (t->bm < SMALL_TILE)
        return t->bm > 16;
    if (t->bm > SMALL_TILE || t->bn > SMALL_TILE)
        return wide && enough;
    return wide && (tiles_of(g, t) >= caps->compute_units || parts_of(caps, g, t, &step) > 1);
}

// The kernel's own conditions, and registers for at most 128 sums.
static bool gpu_tile_is_possible(const struct gpu_tile *t)
{
    const int ls = t->tx * t->ty;

    return t->bm % (4 * t->ty) == 0 && t->bn % (4 * t->tx) == 0 && t->bk % 4 == 0 &&
           t->bm * t->bk % (4 * ls) == 0 && t->bn * t->bk % (4 * ls) == 0 &&
           t->bm * t->bn <= 128 * ls;
}

static bool gpu_tile_fits(struct launcher *l, const struct gemm *g, const struct gpu_tile *t,
                          bool registers)
{
    const size_t group = (size_t)(t->tx * t->ty);
    const struct kspec spec = gpu_spec(g, t);

    return registers ? attncl__launch_fits_registers(l, &spec, group)
                     : attncl__launch_fits(l, &spec, group);
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
    if (!gpu_tile_is_possible(ret) || (size_t)(ret->tx * ret->ty) > l->caps->max_group ||
        !gpu_tile_fits(l, g, ret, true)) {
        attncl__tuned_refuse(l->caps, TUNE_GEMM_GPU, class,
                             "does not run on this device; not used");
        return false;
    }
    return tiles_of(g, ret) >= (int64_t)l->caps->compute_units;
}

// The first row that suits; else any; with all its values in registers if there is one.
static const struct gpu_tile *choose_gpu_tile(struct launcher *l, const struct gemm *g)
{
    enum { SUITS, IN_REGISTERS, ANY, N_ROUNDS };

    for (int round = SUITS; round < N_ROUNDS; ++round)
        for (int i = 0; i < N_GPU_TILES; ++i) {
            const struct gpu_tile *t = &gpu_tiles[i];
            if (!is_for_device(l->caps, t) || (round == SUITS && !suits(l->caps, g, t)))
                continue;
            if (gpu_tile_fits(l, g, t, round < ANY))
                return t;
        }
    return NULL;
}

size_t attncl__gemm_gpu_scratch(const struct device_caps *caps, const struct gemm *g)
{
    int64_t step = 0;

    for (int i = 0; i < N_GPU_TILES; ++i)
        if (is_for_device(caps, &gpu_tiles[i]) && suits(caps, g, &gpu_tiles[i])) {
            const int64_t parts = parts_of(caps, g, &gpu_tiles[i], &step);
            return parts > 1 ? sizeof(float) * (size_t)(parts * g->batch * g->m * g->n) : 0;
        }
    return 0;
}

// Terms [k_from, k_to), `parts` times `step` of them.
struct gpu_cut {
    int64_t k_from, k_to, step, parts;
};

static attncl_status launch_tiles(struct launcher *l, const struct gemm *g,
                                  const struct gpu_tile *t, struct gpu_cut cut)
{
    const struct kspec spec = gpu_spec(g, t);
    const size_t local = (size_t)(t->tx * t->ty);
    const struct gemm_matrix parts = {.span = g->scratch, .ld = g->n, .batch_stride = g->m * g->n};
    const bool finish = cut.parts == 1 && cut.k_to == g->k;
    struct gemm_args args = {.n = 0};

    attncl__gemm_add_arg(&args, arg_i32(g->m));
    attncl__gemm_add_arg(&args, arg_i32(g->n));
    attncl__gemm_add_arg(&args, arg_i32(cut.k_from));
    attncl__gemm_add_arg(&args, arg_i32(cut.k_to));
    attncl__gemm_add_arg(&args, arg_i32(cut.step));
    attncl__gemm_add_arg(&args, arg_i32(finish));
    attncl__gemm_add_arg(&args, arg_i64(cut.parts > 1 ? g->batch * g->m * g->n : 0));
    attncl__gemm_add_arg(&args, arg_i32(ceil_div(g->m, t->bm)));
    attncl__gemm_add_arg(&args, arg_i32(ceil_div(g->n, t->bn)));
    attncl__gemm_add_arg(&args, arg_i32(g->batch));
    attncl__gemm_add_matrix(&args, &g->a);
    attncl__gemm_add_matrix(&args, &g->b);
    attncl__gemm_add_matrix(&args, cut.parts > 1 ? &parts : &g->c);
    attncl__gemm_add_epilogue(&args, g);
    return attncl__launch(l, &spec, grid_2d(tiles_of(g, t), cut.parts, local, 1), args.arg, args.n);
}

attncl_status attncl__gemm_gpu_tiles(struct launcher *l, const struct gemm *g,
                                     char how[GEMM_HOW_BYTES])
{
    struct gpu_tile row;
    const bool tuned = tuned_gpu_tile(l, g, &row);
    const struct gpu_tile *t = tuned ? &row : choose_gpu_tile(l, g);

    REQUIRE(t, ATTNCL_ERR_UNSUPPORTED, "no tile form of the matrix product runs on this device: %s",
            attncl_last_error());
    // Half of the limit, since a block of k loops over its elements and again over its parts.
    const int64_t limit = (int64_t)l->caps->loop_limit / 2;
    const int64_t k_step = limit > t->bk ? limit / t->bk * t->bk : g->k;
    struct gpu_cut cut = {.k_to = g->k};

    TRY(attncl__gemm_check_groups(g, attncl__gemm_tile_count(g, t->bm, t->bn)));
    cut.parts = parts_of(l->caps, g, t, &cut.step);
    const size_t needed = sizeof(float) * (size_t)(cut.parts * g->batch * g->m * g->n);
    const bool in_parts = cut.parts > 1 && needed <= g->scratch_bytes;
    snprintf(how, GEMM_HOW_BYTES, "own GPU tiles %dx%dx%d%s, %" PRId64 " groups of %d", t->bm,
             t->bn, t->bk, tuned ? " (tuned)" : "", tiles_of(g, t) * (in_parts ? cut.parts : 1),
             t->tx * t->ty);
    if (in_parts) {
        TRY(launch_tiles(l, g, t, cut));
        return attncl__gemm_finish(l, g, GEMM_SUMS_IN_PARTS, cut.parts);
    }
    for (int64_t k = 0; k < g->k; k += k_step) {
        const int64_t k_to = k + k_step < g->k ? k + k_step : g->k;
        TRY(launch_tiles(l, g, t, (struct gpu_cut){k, k_to, k_to - k, 1}));
    }
    return ATTNCL_OK;
}
