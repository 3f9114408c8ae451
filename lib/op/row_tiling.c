// SPDX-License-Identifier: MIT
//
// Row tiling of kernels that need a whole row at once (cl/common/row_tiling.clh), GPU variant: a
// table of tile configurations by width.
//
// A row that fits the registers of a few work-items is read once, and a work-group has several rows.
// Longer rows take more work-items; the longest are read twice.  Vectors are float4s if all rows
// consist of whole aligned float4s, else floats.

#include "op/row_launch.h"

struct row_tile {
    enum device_vendor vendor; // VENDOR_OTHER: any
    unsigned group_multiple;   // 0: any
    int lanes_per_row;         // work-items that share a row
    int vecs_per_lane;         // float4s that each keeps in registers
    int rows;                  // of a work-group
};

// In order of columns, 4 * lanes_per_row * vecs_per_lane at most.  For the same columns entries differ
// by vendor and by the number of arrays that fit.  Modelled on PyTorch, llm.c and oneDNN
// (docs/dev/kernels.md); not yet measured on a GPU.
static const struct row_tile tile_configs[] = {
    {VENDOR_OTHER, 0, 8, 2, 16},  // up to 64 columns
    {VENDOR_OTHER, 0, 16, 2, 8},  // 128
    {VENDOR_OTHER, 0, 32, 2, 4},  // 256
    {VENDOR_OTHER, 0, 32, 4, 4},  // 512
    {VENDOR_OTHER, 0, 64, 2, 2},  // 512 of four arrays
    {VENDOR_AMD, 64, 64, 4, 4},   // 1024: a wave per row
    {VENDOR_INTEL, 0, 64, 4, 2},  // 1024: half the registers of others
    {VENDOR_OTHER, 0, 32, 8, 4},  // 1024
    {VENDOR_OTHER, 0, 64, 4, 2},  // 1024 of two arrays
    {VENDOR_OTHER, 0, 128, 2, 1}, // 1024 of four
    {VENDOR_INTEL, 0, 256, 4, 1}, // 4096
    {VENDOR_OTHER, 0, 128, 8, 1}, // 4096
    {VENDOR_OTHER, 0, 256, 4, 1}, // 4096 of two arrays
    {VENDOR_OTHER, 0, 256, 2, 1}, // 2048 of four
    {VENDOR_OTHER, 0, 256, 8, 1}, // 8192
    {VENDOR_OTHER, 0, 256, 0, 1}, // any
    {VENDOR_OTHER, 0, 64, 0, 1},  {VENDOR_OTHER, 0, 16, 0, 1}, {VENDOR_OTHER, 0, 1, 0, 1},
};
enum { N_TILE_CONFIGS = sizeof tile_configs / sizeof tile_configs[0] };

// MAX_VECS_PER_LANE: float4s of all arrays in a work-item.  GROUP: work-items of a work-group if a
// row needs fewer.  GROUPS_PER_UNIT: work-groups that keep a compute unit busy.
enum { MAX_VECS_PER_LANE = 8, GROUP = 128, GROUPS_PER_UNIT = 2 };

static bool tile_holds_row(const struct row_tile *r, const struct row_problem *w)
{
    return r->vecs_per_lane == 0 || (4 * (int64_t)r->lanes_per_row * r->vecs_per_lane >= w->width &&
                                     r->vecs_per_lane * w->arrays <= MAX_VECS_PER_LANE);
}

static bool tile_suits_device(const struct device_caps *caps, const struct row_tile *r)
{
    return (r->vendor == VENDOR_OTHER || r->vendor == caps->vendor) &&
           (r->group_multiple == 0 || r->group_multiple == caps->group_multiple) &&
           (size_t)r->lanes_per_row <= caps->max_group;
}

static void set_tile_macros(struct kspec *spec, int lanes_per_row, int vecs_per_lane)
{
    kspec_int(spec, "LANES_PER_ROW", lanes_per_row);
    kspec_int(spec, "VECS_PER_LANE", vecs_per_lane);
}

static struct row_launch make_tile_launch(const struct device_caps *caps,
                                          const struct row_problem *w, const struct row_tile *r)
{
    const unsigned vw = w->float4_aligned && r->lanes_per_row > 1 ? 4 : 1;
    int64_t rows = r->rows;

    while (rows > 1 && ((size_t)(rows * r->lanes_per_row) > caps->max_group ||
                        (rows * r->lanes_per_row > 32 &&
                         ceil_div(w->rows, rows) < GROUPS_PER_UNIT * (int64_t)caps->compute_units)))
        rows /= 2;
    struct row_launch config = {
        w->spec, grid_1d(ceil_div(w->rows, rows), (size_t)(rows * r->lanes_per_row)), rows, vw};
    config.grid.iterations = attncl__row_iterations(1, w->width, vw, (size_t)r->lanes_per_row);
    kspec_set_vw_ls(&config.spec, vw, config.grid.local[0]);
    set_tile_macros(&config.spec, r->lanes_per_row, r->vecs_per_lane * (4 / (int)vw));
    return config;
}

// Uses the tuned number of work-items, with the fewest vectors per lane that hold the row.
static bool choose_tuned_launch(struct launcher *l, const struct row_problem *w,
                                struct row_launch *ret)
{
    const int class = attncl__row_class(w->width);
    const int *tuned = attncl__tuned(l->caps, TUNE_ROWS_GPU, class);

    if (!tuned)
        return false;
    const int lanes_per_row = tuned[ROWS_GPU_LS];
    struct row_tile r = {.lanes_per_row = lanes_per_row,
                         .rows = lanes_per_row < GROUP ? GROUP / lanes_per_row : 1};
    for (int vecs_per_lane = MAX_VECS_PER_LANE; vecs_per_lane > 0; vecs_per_lane /= 2)
        if (tile_holds_row(
                &(struct row_tile){.lanes_per_row = lanes_per_row, .vecs_per_lane = vecs_per_lane},
                w))
            r.vecs_per_lane = vecs_per_lane;
    if ((size_t)lanes_per_row <= l->caps->max_group) {
        *ret = make_tile_launch(l->caps, w, &r);
        if (attncl__kernel_fits(l, &ret->spec, ret->grid.local[0], true))
            return true;
    }
    attncl__tuned_reject(l->caps, TUNE_ROWS_GPU, class);
    return false;
}

// For rows that are not kept in registers: two vectors per work-item, in large work-groups.
static struct row_launch choose_strided_launch(struct launcher *l, const struct row_problem *w)
{
    static const int groups[] = {256, 64, 16, 4, 1};
    struct row_launch config = {.rows_per_group = 1};

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; ++i) {
        struct row_tile r = {.lanes_per_row = groups[i] < 8 ? groups[i] : 8, .vecs_per_lane = 0};
        while (r.lanes_per_row < groups[i] && 8 * (int64_t)r.lanes_per_row < w->width)
            r.lanes_per_row *= 2;
        r.rows = groups[i] / r.lanes_per_row;
        config = make_tile_launch(l->caps, w, &r);
        if (tile_suits_device(l->caps, &r) &&
            attncl__kernel_fits(l, &config.spec, config.grid.local[0], false))
            break;
    }
    return config;
}

// The first configuration without register spills; else any that fits; else the last, whose launch
// reports why it does not run.
static struct row_launch choose_gpu_launch(struct launcher *l, const struct row_problem *w)
{
    struct row_launch config = {.rows_per_group = 1};

    if (choose_tuned_launch(l, w, &config))
        return config;
    for (int registers = 1; registers >= 0; --registers)
        for (int i = 0; i < N_TILE_CONFIGS; ++i) {
            if (!tile_suits_device(l->caps, &tile_configs[i]) ||
                !tile_holds_row(&tile_configs[i], w))
                continue;
            config = make_tile_launch(l->caps, w, &tile_configs[i]);
            if (attncl__kernel_fits(l, &config.spec, config.grid.local[0], registers))
                return config;
        }
    return config;
}

void attncl__set_no_row_sharing(struct kspec *spec, size_t group)
{
    set_tile_macros(spec, (int)group, 0);
}

struct row_launch attncl__choose_row_tiling(struct launcher *l, const struct row_problem *w)
{
    if (!attncl__row_fits_work_item(l->caps, w->width))
        return w->arrays > 0 ? choose_gpu_launch(l, w) : choose_strided_launch(l, w);
    struct row_launch config =
        attncl__row_launch(l->caps, w->spec.file, w->spec.kernel, w->rows, w->width);
    config.spec = w->spec;
    kspec_set_vw_ls(&config.spec, config.vw, 1);
    attncl__set_no_row_sharing(&config.spec, 1);
    return config;
}

bool attncl__rows_are_float4_aligned(int64_t start, const struct rows *rows)
{
    return start % 4 == 0 && rows->stride % 4 == 0 && rows->width % 4 == 0;
}
