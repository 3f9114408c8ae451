// SPDX-License-Identifier: MIT
//
// Tiling of the mixing op.  Channel blocks are small to fit caches and to bound scratch, and run
// one after another.

#include "op/aft/aft_tiling.h"

// Scratch of a channel block: its target, its maximum, and the minimum of lanes that share packed
// weights.
enum {
    CHANNEL_BLOCK_BYTES = 6 << 20,
    MAX_CHANNEL_BLOCK_BYTES = 12 << 20,
    CHANNEL_BLOCK_LANES = 16,
    MIN_CHANNEL_BLOCK_LANES = 4
};

// Lanes of a work-item; packing costs more where a mask is read.  Source blocks packed at a time.
enum { MAX_GROUP = 32, MAX_GROUP_MASKED = 64, MAX_SEGMENT = 40, MIN_SEGMENT = 8 };

// The weights of MAX_SEGMENT blocks and the sums of 16 lanes.  With less local memory than this
// too few lanes would share weights, and the GPU variant is used.
enum { CPU_MIN_LOCAL_BYTES = 65536 };

enum { GPU_GROUP = 64 }; // neighbouring channels read together

// Scratch of the GPU variant besides the channel blocks': the weights of as many rows as fit, at
// least a tile where that is no more than a channel block.
enum { WEIGHT_BYTES = 3 << 20 };

static bool contiguous(const struct op_sig *sig)
{
    return attncl__desc_contiguous(&sig->in[AFT_IN_Q]) &&
           attncl__desc_contiguous(&sig->in[AFT_IN_K]) &&
           attncl__desc_contiguous(&sig->in[AFT_IN_V]);
}

static void tile_cpu_channels(struct aft_tiling *p, const int *tuned)
{
    const int64_t packed = p->blocks * AFT_ROWS * 2 * p->vw, sums = p->blocks * 3 * p->vw;
    const int64_t page = 1024,
                  off_page = 160; // floats: lanes a multiple of 4 KiB apart would share cache sets

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

static void size_local(struct aft_tiling *p)
{
    const size_t spilled = 3 * AFT_ROWS * p->vw * (size_t)p->group * sizeof(float);

    p->weights_bytes = (size_t)(p->segment * AFT_ROWS + p->vw) * AFT_ROWS * sizeof(float);
    p->spill_bytes = p->blocks > p->segment ? spilled : 0;
}

// Lanes share packed weights; what does not fit local memory is shared by fewer.
static void tile_cpu_group(struct aft_tiling *p, size_t local_bytes, const int *tuned)
{
    const int64_t max = tuned ? tuned[AFT_CPU_GROUP] : p->masked ? MAX_GROUP_MASKED : MAX_GROUP;
    const int64_t segment = tuned ? tuned[AFT_CPU_SEGMENT] : MAX_SEGMENT;

    p->segment = p->blocks < segment ? p->blocks : segment;
    p->group = p->block_lanes < max ? p->block_lanes : max;
    size_local(p);
    while (p->segment > MIN_SEGMENT && p->weights_bytes > local_bytes / 2) {
        p->segment /= 2;
        size_local(p);
    }
    while (p->group > 1 && p->weights_bytes + p->spill_bytes > local_bytes) {
        p->group /= 2;
        size_local(p);
    }
}

// Blocks that a block of targets reaches, and what the last pass does for each: CPU, packing once
// for all lanes and adding element by element in each; GPU, a block's sources to all targets.
static int64_t count_iterations(const struct aft_tiling *p)
{
    const int64_t rows = p->cpu ? AFT_ROWS : AFT_BLOCK;
    const int64_t window = ceil_div(2 * p->window, rows) + 2;
    const int64_t reach = p->masked || window > p->blocks ? p->blocks : window;
    const int64_t pack = 3 * rows * ceil_div(rows, (int64_t)p->vw),
                  add = 3 * rows * rows + 2 * rows;
    const int64_t max =
        p->cpu ? reach * (pack + p->group * add) : reach * rows * (2 * AFT_TARGETS + 4);

    return max > 2 * p->blocks ? max : 2 * p->blocks; // the scan's
}

// Keys inside the window of AFT_BLOCK rows, in whole blocks.
static int64_t find_pitch(const struct aft_tiling *p)
{
    const int64_t window = p->window > 1 ? p->window : 1;
    const int64_t blocks = ceil_div(2 * window + AFT_BLOCK - 3, AFT_BLOCK) + 1;

    return AFT_BLOCK * (blocks < p->blocks ? blocks : p->blocks);
}

// Without a mask: sums before and after each block and its range, flags, weights.
static void tile_gpu(struct aft_tiling *p, size_t max_group)
{
    const int64_t lane_floats = p->blocks * (2 * 3 + 2);

    while (p->local < GPU_GROUP && 2 * p->local <= max_group)
        p->local *= 2;
    p->block_lanes = p->lanes;
    if (p->masked)
        return;
    const int64_t max = MAX_CHANNEL_BLOCK_BYTES / (lane_floats * (int64_t)sizeof(float));
    const int64_t max_lanes = max < GPU_GROUP ? GPU_GROUP : max / GPU_GROUP * GPU_GROUP;
    if (p->block_lanes > max_lanes)
        p->block_lanes = max_lanes;

    p->pitch = find_pitch(p);
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

struct aft_tiling attncl__aft_tiling(const struct op_sig *sig)
{
    const struct aft_variant variant = attncl__aft_variant(sig);
    const struct tensor_desc *q = &sig->in[AFT_IN_Q], *mask = &sig->in[AFT_IN_MASK];
    const bool own_mask = attncl__desc_present(mask) && mask->dim[2] > 1,
               fold = !own_mask && variant.heads == 0 && contiguous(sig);
    struct aft_tiling p = {
        .variant = variant,
        .cpu = sig->caps->variant == VARIANT_CPU && sig->caps->local_bytes >= CPU_MIN_LOCAL_BYTES,
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
    p.blocks = ceil_div(p.steps, p.cpu ? AFT_ROWS : AFT_BLOCK);
    p.panels = ceil_div(p.blocks, AFT_PANEL);
    p.lanes = ceil_div(p.channels, p.vw) * (own_mask ? 1 : p.batch);
    if (p.cpu) {
        const int *tuned =
            attncl__tuned(sig->caps, TUNE_AFT_CPU, p.masked ? TUNE_MASKED : TUNE_PLAIN);
        tile_cpu_channels(&p, tuned);
        tile_cpu_group(&p, sig->caps->local_bytes, tuned);
        p.iterations = count_iterations(&p);
        for (; sig->caps->max_loop_iterations && p.group > 1; p.iterations = count_iterations(&p)) {
            if ((uint64_t)p.iterations < sig->caps->max_loop_iterations)
                break;
            p.group /= 2;
        }
        p.block_floats = p.block_lanes * p.lane_floats;
        return p;
    }
    p.iterations = count_iterations(&p);
    tile_gpu(&p, sig->caps->max_group);
    return p;
}
