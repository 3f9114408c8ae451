// SPDX-License-Identifier: MIT
//
// Tiling of the mixing op.  Channel blocks are small, to fit caches and to bound the scratch, and
// run one after another.

#include "op/aft/aft.h"

// Scratch of a channel block: target and maximum size; multiple and minimum of its lanes.
enum {
    CHANNEL_BLOCK_BYTES = 2 << 20,
    MAX_CHANNEL_BLOCK_BYTES = 12 << 20,
    CHANNEL_BLOCK_LANES = 16,
    MIN_CHANNEL_BLOCK_LANES = 4
};

// Lanes and target blocks per work-item.  The blocks share sources, which the first one caches.
enum { MAX_GROUP = 16, MAX_ITEM_BLOCKS = 8, ITEMS_PER_CORE = 8 };

// CPU variant's scratch: after the channel blocks come the weights of as many rows as fit, at least
// a work-item's.  AFT_HEADER floats precede a block's weights; vectors may write past their end.
enum { CPU_SCRATCH_BYTES = 16 << 20, AFT_HEADER = 32 };

enum { GPU_GROUP = 64 }; // neighbouring channels, for coalesced reads

// GPU variant's scratch besides the channel blocks: the weights of as many rows as fit, at least one
// tile's unless that exceeds a channel block.
enum { WEIGHT_BYTES = 3 << 20 };

static bool has_contiguous_inputs(const struct op_sig *sig)
{
    return attncl__desc_contiguous(&sig->in[AFT_IN_Q]) &&
           attncl__desc_contiguous(&sig->in[AFT_IN_K]) &&
           attncl__desc_contiguous(&sig->in[AFT_IN_V]);
}

static size_t gpu_group_size(size_t max_group)
{
    size_t local = 1;

    while (local < GPU_GROUP && 2 * local <= max_group)
        local *= 2;
    return local;
}

// Only block sums.  On CPUs a lane takes an odd number of vectors, so lanes share no cache sets.
static void tile_simple(struct aft_tiling *p, size_t max_group)
{
    const int64_t rows = p->cpu ? AFT_SIMPLE_ROWS : AFT_BLOCK;
    const int64_t group = p->cpu ? AFT_SIMPLE_GROUP : GPU_GROUP;

    p->local = p->cpu ? 1 : gpu_group_size(max_group);
    p->blocks = ceil_div(p->steps, rows) + 1;
    p->after_at = p->blocks * 3 * p->vw;
    p->lane_floats = 2 * p->after_at + (p->cpu ? p->vw : 0);
    p->block_lanes =
        MAX_CHANNEL_BLOCK_BYTES / (p->lane_floats * (int64_t)sizeof(float)) / group * group;
    if (p->block_lanes < group)
        p->block_lanes = group;
    if (p->block_lanes > p->lanes)
        p->block_lanes = p->lanes;
    p->block_floats = p->block_lanes * p->lane_floats;
    p->iterations = 2 * rows * (p->cpu ? AFT_SIMPLE_GROUP : 1);
    if (p->iterations < 2 * p->blocks)
        p->iterations = 2 * p->blocks; // of the scan
}

static void tile_cpu_channels(struct aft_tiling *p, const int *tuned)
{
    const int64_t packed = p->blocks * AFT_ROWS * 2 * p->vw, sums = p->blocks * 3 * p->vw;
    // In floats: lanes a multiple of 4 KiB apart would share cache sets.
    const int64_t page = 1024, off_page = 160;

    p->panels = ceil_div(p->blocks, AFT_PANEL);
    p->ranges_at = packed;
    p->before_at = p->ranges_at + p->panels * 2 * p->vw;
    p->after_at = p->before_at + sums;
    p->lane_floats = ceil_div(p->after_at + sums, page) * page + off_page;

    const int64_t bytes = p->lane_floats * (int64_t)sizeof(float);
    const int64_t target_bytes = tuned       ? (int64_t)tuned[AFT_CPU_BLOCK_KIB] * 1024
                                 : p->masked ? MAX_CHANNEL_BLOCK_BYTES
                                             : CHANNEL_BLOCK_BYTES;
    p->block_lanes = target_bytes / bytes / CHANNEL_BLOCK_LANES * CHANNEL_BLOCK_LANES;
    if (p->block_lanes < CHANNEL_BLOCK_LANES)
        p->block_lanes = MAX_CHANNEL_BLOCK_BYTES / bytes < CHANNEL_BLOCK_LANES
                             ? MAX_CHANNEL_BLOCK_BYTES / bytes
                             : CHANNEL_BLOCK_LANES;
    if (p->block_lanes < MIN_CHANNEL_BLOCK_LANES)
        p->block_lanes = MIN_CHANNEL_BLOCK_LANES;
    if (p->block_lanes > p->lanes)
        p->block_lanes = p->lanes;
}

// Upper bound of source blocks inside the window of a block of target rows.
static int64_t count_source_blocks(const struct aft_tiling *p)
{
    const int64_t window = p->window > 1 ? p->window : 1;
    const int64_t blocks = (window + AFT_ROWS - 2) / AFT_ROWS + 1 + ceil_div(window - 1, AFT_ROWS);

    return p->masked || blocks > p->blocks ? p->blocks : blocks;
}

static void tile_cpu_weights(struct aft_tiling *p)
{
    const int64_t reached = count_source_blocks(p);

    p->pitch = AFT_HEADER + (reached * AFT_ROWS + p->vw) * AFT_ROWS + (p->masked ? reached : 0);
    p->weights_at = p->block_lanes * p->lane_floats;
    const int64_t fit = (CPU_SCRATCH_BYTES / (int64_t)sizeof(float) - p->weights_at) / p->pitch;
    const int64_t stripe = fit > MAX_ITEM_BLOCKS ? fit : MAX_ITEM_BLOCKS;
    p->weight_rows = AFT_ROWS * (p->blocks < stripe ? p->blocks : stripe);
    p->block_floats = p->weights_at + p->weight_rows / AFT_ROWS * p->pitch;
}

static void tile_cpu_group(struct aft_tiling *p, unsigned cores, const int *tuned)
{
    const int64_t max = tuned ? tuned[AFT_CPU_GROUP] : MAX_GROUP;

    p->group = p->block_lanes < max ? p->block_lanes : max;
    p->item_blocks = tuned ? tuned[AFT_CPU_BLOCKS] : MAX_ITEM_BLOCKS;
    while (p->item_blocks > 1 && ceil_div(p->weight_rows / AFT_ROWS, p->item_blocks) *
                                         ceil_div(p->block_lanes, p->group) <
                                     ITEMS_PER_CORE * (int64_t)cores)
        p->item_blocks = (p->item_blocks + 1) / 2;
}

// A pass runs `each` iterations for every block of `rows` inside a target block's window.
static int64_t count_iterations(const struct aft_tiling *p, int64_t rows, int64_t each)
{
    const int64_t window = ceil_div(2 * p->window, rows) + 2;
    const int64_t max = each * (p->masked || window > p->blocks ? p->blocks : window);

    return max > 2 * p->blocks ? max : 2 * p->blocks; // at least the scan's
}

// The larger loop: packing weights, or adding element by element in all lanes.
static int64_t count_cpu_iterations(const struct aft_tiling *p)
{
    enum { PACK = 4 * AFT_ROWS * AFT_ROWS, ADD = 3 * AFT_ROWS * AFT_ROWS + 2 * AFT_ROWS };
    const int64_t items = p->group * p->item_blocks;

    return count_iterations(p, AFT_ROWS, items > 1 ? items * ADD : PACK);
}

static void tile_cpu(struct aft_tiling *p, const struct device_caps *caps)
{
    const int *tuned = attncl__tuned(caps, TUNE_AFT_CPU, p->masked ? TUNE_MASKED : TUNE_PLAIN);

    tile_cpu_channels(p, tuned);
    tile_cpu_weights(p);
    tile_cpu_group(p, caps->compute_units, tuned);
    p->iterations = count_cpu_iterations(p);
    while (!attncl__loops_fit(caps, p->iterations) && p->group * p->item_blocks > 1) {
        if (p->group > 1)
            p->group /= 2;
        else
            p->item_blocks /= 2;
        p->iterations = count_cpu_iterations(p);
    }
}

// Keys inside the window of AFT_BLOCK rows, in whole blocks.
static int64_t gpu_weight_pitch(const struct aft_tiling *p)
{
    const int64_t window = p->window > 1 ? p->window : 1;
    const int64_t blocks = ceil_div(2 * window + AFT_BLOCK - 3, AFT_BLOCK) + 1;

    return AFT_BLOCK * (blocks < p->blocks ? blocks : p->blocks);
}

// Scratch, without a mask: sums before and after each block, the block's range, flags, weights.
static void tile_gpu(struct aft_tiling *p, size_t max_group)
{
    const int64_t lane_floats = p->blocks * (2 * 3 + 2);

    p->iterations = count_iterations(p, AFT_BLOCK, AFT_BLOCK * (2 * AFT_TARGETS + 4));
    p->local = gpu_group_size(max_group);
    p->block_lanes = p->lanes;
    if (p->masked)
        return;
    const int64_t max = MAX_CHANNEL_BLOCK_BYTES / (lane_floats * (int64_t)sizeof(float));
    const int64_t max_lanes = max < GPU_GROUP ? GPU_GROUP : max / GPU_GROUP * GPU_GROUP;
    if (p->block_lanes > max_lanes)
        p->block_lanes = max_lanes;

    p->pitch = gpu_weight_pitch(p);
    const int64_t row_floats = p->pitch + 1, all = ceil_div(p->steps, AFT_TILE);
    const int64_t tile_bytes = (int64_t)sizeof(float) * row_floats * AFT_TILE;
    const int64_t fit = WEIGHT_BYTES > tile_bytes               ? WEIGHT_BYTES / tile_bytes
                        : tile_bytes <= MAX_CHANNEL_BLOCK_BYTES ? 1
                                                                : 0;
    p->weight_rows = AFT_TILE * (fit < all ? fit : all);
    p->flags_at = p->block_lanes * lane_floats;
    p->weights_at = p->flags_at + ceil_div(p->steps, AFT_MIN_ROWS) *
                                      ceil_div(p->block_lanes, (int64_t)AFT_TILE_LANES);
    p->block_floats = p->weights_at + p->weight_rows * row_floats;
}

struct aft_variant attncl__aft_filter_variant(const struct tensor_desc *w, int64_t heads)
{
    const int64_t size = w->dim[1];
    return (struct aft_variant){
        .heads = heads,
        .window = (size + 1) / 2,
        .bias_start = size / 2,
        .bias_row = -1,
        .bias_head = size,
    };
}

struct aft_variant attncl__aft_variant(const struct op_sig *sig)
{
    const struct aft_fwd_params *params = sig->params;
    const struct tensor_desc *w = &sig->in[AFT_IN_BIAS];
    struct aft_variant variant = {.window = params->window, .bias_row = w->dim[0]};

    if (params->per_head)
        variant = attncl__aft_filter_variant(w, sig->in[AFT_IN_K].dim[2]);
    variant.causal = params->causal != 0;
    return variant;
}

struct aft_tiling attncl__aft_choose_tiling(const struct op_sig *sig)
{
    const struct aft_variant variant = attncl__aft_variant(sig);
    const struct tensor_desc *q = &sig->in[AFT_IN_Q], *mask = &sig->in[AFT_IN_MASK];
    const bool own_mask = attncl__desc_present(mask) && mask->dim[2] > 1,
               fold = !own_mask && variant.heads == 0 && has_contiguous_inputs(sig);
    struct aft_tiling p = {
        .variant = variant,
        .cpu = sig->caps->variant == VARIANT_CPU,
        .masked = attncl__desc_present(mask),
        .folded = fold,
        .steps = q->dim[0],
        .batch = fold ? 1 : q->dim[1],
        .channels = fold                ? q->dim[1] * q->dim[2]
                    : variant.heads > 0 ? q->dim[2] / variant.heads
                                        : q->dim[2],
        .heads = variant.heads > 0 ? variant.heads : 1,
        .entries = own_mask ? q->dim[1] : 1,
        .per_head = variant.heads > 0,
        .local = 1,
    };

    if (attncl__desc_present(&sig->in[AFT_IN_BIAS]))
        p.window = variant.window < p.steps ? variant.window : p.steps;
    p.vw = p.cpu ? sig->caps->vector_width : 1;
    p.simple = p.window == 0 && !p.masked;
    p.blocks = ceil_div(p.steps, p.cpu ? AFT_ROWS : AFT_BLOCK);
    p.lanes = ceil_div(p.channels, p.vw) * (own_mask ? 1 : p.batch);
    if (p.simple)
        tile_simple(&p, sig->caps->max_group);
    else if (p.cpu)
        tile_cpu(&p, sig->caps);
    else
        tile_gpu(&p, sig->caps->max_group);
    return p;
}
