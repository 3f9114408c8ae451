// SPDX-License-Identifier: MIT
//
// Attention-free mixing, GPU variant: tile configurations by vendor, and the launches.
//
// Without a mask: block sums (aft_gpu_blocks), scan, weights once for all channels
// (aft_gpu_weights), the sources inside the window as a product (aft_gpu_band), then the rows that
// aft_gpu_band flagged, with running maxima (aft_gpu_rows).  With a mask: aft_gpu_rows only.
// Weights too large for the scratch are computed for some target rows at a time.

#include "op/aft/aft.h"

// For each vendor the larger tile first.  NVIDIA's is the fastest of eleven on an H200; the others
// follow cl/aft/aft_gpu_band.cl's counts and docs/dev/kernels.md's sources, and are not measured.
static const struct {
    enum device_vendor vendor; // VENDOR_OTHER: any
    unsigned group_multiple;   // 0: any
    struct aft_tile_config tile;
} tile_configs[] = {
    {VENDOR_NVIDIA, 0, {8, 2, 32, 4, 8}},  // 32 sums per work-item
    {VENDOR_AMD, 32, {8, 2, 32, 4, 16}},   // RDNA: 32
    {VENDOR_AMD, 64, {8, 2, 64, 4, 8}},    // GCN, CDNA: 32
    {VENDOR_AMD, 64, {8, 1, 64, 4, 16}},   // 16
    {VENDOR_OTHER, 0, {16, 1, 32, 4, 16}}, // and Intel: 32
    {VENDOR_OTHER, 0, {8, 1, 32, 4, 16}},  // 16
    {VENDOR_OTHER, 0, {8, 1, 8, 2, 8}},    // 16 work-items, 2 KiB
};
enum { N_TILE_CONFIGS = sizeof tile_configs / sizeof tile_configs[0] };

// aft_gpu.cl: target rows of a work-item; more do not fit Intel's registers.
static int row_targets(const struct device_caps *caps)
{
    return caps->vendor == VENDOR_INTEL ? AFT_TARGETS / 2 : AFT_TARGETS;
}

// Work-groups that keep a compute unit busy.  Tiles of at most SMALL_TILE rows times lanes are used
// even with fewer.
enum { GROUPS_PER_UNIT = 2, SMALL_TILE = 32 * 32 };

static size_t tile_work_items(const struct aft_tile_config *r)
{
    return (size_t)(r->tx * r->ty);
}

// The local memory that the kernel declares.
static size_t tile_local_bytes(const struct aft_tile_config *r)
{
    const int lanes = r->tx * r->item_lanes;
    return sizeof(float) *
           (size_t)(r->keys * (2 * lanes + r->ty * r->rows) + lanes + r->tx * r->ty);
}

static bool tile_suits_device(const struct device_caps *caps, int i)
{
    return (tile_configs[i].vendor == VENDOR_OTHER || tile_configs[i].vendor == caps->vendor) &&
           (tile_configs[i].group_multiple == 0 ||
            tile_configs[i].group_multiple == caps->group_multiple) &&
           tile_work_items(&tile_configs[i].tile) <= caps->max_group &&
           tile_local_bytes(&tile_configs[i].tile) <= caps->local_bytes;
}

static bool tile_fills_device(const struct device_caps *caps, const struct aft_tiling *p,
                              const struct aft_tile_config *r)
{
    const int64_t lanes = (int64_t)r->tx * r->item_lanes, targets = (int64_t)r->ty * r->rows;
    const int64_t steps = p->steps < p->weight_rows ? p->steps : p->weight_rows;

    return lanes * targets <= SMALL_TILE ||
           ceil_div(p->block_lanes, lanes) * ceil_div(steps, targets) >=
               (int64_t)GROUPS_PER_UNIT * caps->compute_units;
}

static struct kspec band_spec(const struct aft_tiling *p, const struct aft_tile_config *r,
                              bool backward)
{
    struct kspec spec = kspec_begin("aft/aft_gpu_band.cl", "aft_gpu_band");

    kspec_set_vw_ls(&spec, p->vw, tile_work_items(r));
    kspec_int(&spec, "PER_HEAD", p->per_head);
    kspec_int(&spec, "ROWS", r->rows);
    kspec_int(&spec, "ITEM_LANES", r->item_lanes);
    kspec_int(&spec, "TX", r->tx);
    kspec_int(&spec, "TY", r->ty);
    kspec_int(&spec, "KEYS", r->keys);
    kspec_int(&spec, "BACKWARD", backward);
    return spec;
}

// The first tile that fills the device, then any, with all its values in registers if there is one.
static const struct aft_tile_config *choose_tile(struct launcher *l, const struct aft_tiling *p,
                                                 bool backward)
{
    enum { FILLS_DEVICE, IN_REGISTERS, ANY, N_ROUNDS };

    for (int round = FILLS_DEVICE; round < N_ROUNDS; ++round)
        for (int i = 0; i < N_TILE_CONFIGS; ++i) {
            const struct aft_tile_config *r = &tile_configs[i].tile;
            if (!tile_suits_device(l->caps, i) ||
                (round == FILLS_DEVICE && !tile_fills_device(l->caps, p, r)))
                continue;
            const struct kspec spec = band_spec(p, r, backward);
            if (attncl__kernel_fits(l, &spec, tile_work_items(r), round < ANY))
                return r;
        }
    return NULL;
}

// For all kernels but aft_gpu_band.
static struct kspec rows_spec(const struct launcher *l, const struct aft_tiling *p, bool backward,
                              const char *kernel)
{
    struct kspec spec = attncl__aft_spec(p, "aft/aft_gpu.cl", kernel);

    kspec_int(&spec, "TARGETS", row_targets(l->caps));
    kspec_int(&spec, "BACKWARD", backward);
    kspec_int(&spec, "MASKED", p->masked);
    return spec;
}

void attncl__aft_gpu_fit_work_groups(struct launcher *l, struct aft_tiling *p, bool backward)
{
    struct kspec spec = rows_spec(l, p, backward, "aft_gpu_rows");

    while (p->local > AFT_TARGETS && !attncl__kernel_fits(l, &spec, p->local, false)) {
        p->local /= 2;
        spec = rows_spec(l, p, backward, "aft_gpu_rows");
    }
    p->tile = p->weight_rows > 0 ? choose_tile(l, p, backward) : NULL;
    const int64_t at_once =
        attncl__parts_at_once(l, p->heads * p->entries * p->lanes, (int64_t)p->local);
    if (p->block_lanes > at_once)
        p->block_lanes = at_once;
}

static attncl_status launch_blocks(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    const struct kspec spec = rows_spec(l, p, s->backward, "aft_gpu_blocks");
    struct arg_list args = {.n = 0};

    attncl__aft_add_source_args(&args, s);
    arg_list_add(&args, ARGS(arg_mem(s->scratch), AFT_RANGE(s)));
    return attncl__launch(l, &spec,
                          grid_2d(ceil_div(s->lanes, (int64_t)p->local), p->blocks, p->local, 1),
                          args.arg, args.n);
}

// The weights of the target rows [row0, row0 + count).
static attncl_status launch_weights(struct launcher *l, const struct aft_channel_block *s,
                                    int64_t row0, int64_t count)
{
    const struct aft_tiling *p = s->p;
    const struct kspec spec = rows_spec(l, p, s->backward, "aft_gpu_weights");

    return attncl__launch(l, &spec, grid_1d(ceil_div(count, (int64_t)p->tile->rows), p->local),
                          ARGS(arg_mem(s->bias), arg_i64(s->bias_start), arg_i32(s->bias_row),
                               arg_i32(p->steps), arg_i32(p->window), arg_i32(s->causal),
                               arg_i32(row0), arg_i32(p->tile->rows), arg_mem(s->scratch),
                               arg_i64(p->weights_at), arg_i32(p->pitch)));
}

static attncl_status launch_band(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    const struct aft_tile_config *r = p->tile;
    const struct kspec spec = band_spec(p, r, s->backward);
    const int64_t columns = ceil_div(s->lanes, (int64_t)r->tx * r->item_lanes);

    for (int64_t row0 = 0; row0 < p->steps; row0 += p->weight_rows) {
        const int64_t left = p->steps - row0, count = left < p->weight_rows ? left : p->weight_rows;
        struct arg_list args = {.n = 0};

        if (s->lane0 == 0 || p->steps > p->weight_rows)
            TRY(launch_weights(l, s, row0, count));
        attncl__aft_add_target_args(&args, s);
        attncl__aft_add_source_args(&args, s);
        arg_list_add(&args, ARGS(arg_mem(s->scratch), arg_i64(p->flags_at), arg_i32(row0),
                                 arg_i64(p->weights_at), arg_i32(p->pitch), AFT_RANGE(s),
                                 arg_i32(p->window), arg_i32(s->causal)));
        TRY(attncl__launch(
            l, &spec,
            grid_2d(columns, ceil_div(count, (int64_t)r->ty * r->rows), tile_work_items(r), 1),
            args.arg, args.n));
    }
    return ATTNCL_OK;
}

static attncl_status launch_rows(struct launcher *l, const struct aft_channel_block *s)
{
    const struct aft_tiling *p = s->p;
    const struct aft_tile_config *band = p->tile;
    const struct kspec spec = rows_spec(l, p, s->backward, "aft_gpu_rows");
    struct arg_list args = {.n = 0};

    attncl__aft_add_target_args(&args, s);
    attncl__aft_add_source_args(&args, s);
    arg_list_add(&args,
                 ARGS(arg_mem(s->scratch), arg_i64(p->flags_at), arg_i32(band ? band->rows : 0),
                      arg_i32(band ? band->tx * band->item_lanes : 0), AFT_BIAS(s), AFT_RANGE(s),
                      arg_i32(p->window), arg_i32(s->causal)));
    return attncl__launch(l, &spec,
                          grid_2d(ceil_div(s->lanes, (int64_t)p->local),
                                  ceil_div(p->steps, row_targets(l->caps)), p->local, 1),
                          args.arg, args.n);
}

attncl_status attncl__aft_launch_gpu(struct launcher *l, const struct aft_channel_block *s)
{
    if (!s->p->masked) {
        TRY(launch_blocks(l, s));
        TRY(attncl__aft_launch_scan(l, s));
    }
    if (s->p->tile)
        TRY(launch_band(l, s));
    return launch_rows(l, s);
}
