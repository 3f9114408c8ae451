// SPDX-License-Identifier: MIT
//
// GEMM in tiles, GPU variant (cl/gemm/gemm_gpu.cl, and by matrix instructions gemm_gpu_mma.cl): the
// launches.  The tile is chosen by gemm_gpu_tiles.c.
//
// A GEMM with long sums whose tiles do not fill the device is split along k (split-K): partial sums
// go to scratch, and the epilogue kernel adds them in order.

#include "gemm/internal.h"

// Terms [k_from, k_to) in `n_splits` splits of `step` each.
struct k_split {
    int64_t k_from, k_to, step, n_splits;
};

static attncl_status launch_tiles(struct launcher *l, const struct gemm *g,
                                  const struct gpu_tile *t, struct k_split split)
{
    const struct kspec spec = attncl__gpu_tile_spec(l, g, t);
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
    return attncl__launch(l, &spec, grid_2d(attncl__gpu_tile_count(g, t), split.n_splits, local, 1),
                          args.arg, args.n);
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

    REQUIRE(attncl__gpu_tile_choose(l, g, &tile, &tuned), ATTNCL_ERR_UNSUPPORTED,
            "no tile variant of the GEMM runs in the device's %zu work-items and %zu bytes of "
            "local memory",
            l->caps->max_group, l->caps->local_bytes);
    const int64_t k_step = k_of_a_launch(l, g, t->bk);
    struct k_split split = {.k_to = g->k};

    TRY(attncl__gemm_check_groups(g, attncl__gemm_tile_count(g, t->bm, t->bn)));
    split.n_splits = attncl__gpu_split_k_count(l->caps, g, t, &split.step);
    const size_t needed = sizeof(float) * (size_t)(split.n_splits * g->batch * g->m * g->n);
    const bool use_split_k = split.n_splits > 1 && needed <= g->scratch_bytes;
    snprintf(how, GEMM_HOW_BYTES, "native GPU tiles %dx%dx%d%s, %" PRId64 " work-groups of %d",
             t->bm, t->bn, t->bk,
             tuned    ? " (tuned)"
             : t->mma ? " by matrix instructions"
                      : "",
             attncl__gpu_tile_count(g, t) * (use_split_k ? split.n_splits : 1), t->tx * t->ty);
    if (use_split_k) {
        TRY(launch_tiles(l, g, t, split));
        return attncl__gemm_apply_epilogue(l, g, GEMM_SPLIT_K, split.n_splits);
    }
    for (int64_t k = 0; k < g->k; k += k_step) {
        const int64_t k_to = k + k_step < g->k ? k + k_step : g->k;
        TRY(launch_tiles(l, g, t, (struct k_split){k, k_to, k_to - k, 1}));
    }
    return ATTNCL_OK;
}
