// SPDX-License-Identifier: MIT
//
// Cuts the mixing op up.  Slices are small for the caches' sake and to bound scratch, and run one
// after another.

#include "op/aft_plan.h"

// Scratch of a slice: what it should take, what it may take, and how many lanes share packed
// weights at the least.
enum {
    SLICE_BYTES = 6 << 20,
    SLICE_BYTES_MOST = 12 << 20,
    SLICE_LANES = 16,
    SLICE_LANES_LEAST = 4
};

// Lanes of a work-item; packing costs more where a mask is read.  Source blocks packed at a time.
enum { GROUP_MOST = 32, GROUP_MOST_MASKED = 64, SEGMENT_MOST = 40, SEGMENT_LEAST = 8 };

// The weights of SEGMENT_MOST blocks and the sums of 16 lanes.  With less local memory than this
// too few lanes would share weights, and the GPU form is used.
enum { CPU_LEAST_LOCAL_BYTES = 65536 };

enum { GPU_GROUP = 64 }; // neighbouring channels read together

// Scratch of the GPU form beside the slices': the weights of as many rows as fit, at least a tile
// where that is no more than a slice.
enum { WEIGHT_BYTES = 3 << 20 };

static bool contiguous(const struct op_sig *sig)
{
    return attncl__desc_contiguous(&sig->in[AFT_IN_Q]) &&
           attncl__desc_contiguous(&sig->in[AFT_IN_K]) &&
           attncl__desc_contiguous(&sig->in[AFT_IN_V]);
}

static void plan_cpu_slice(struct aft_plan *p, const int *tuned)
{
    const int64_t packed = p->blocks * AFT_ROWS * 2 * p->vw, sums = p->blocks * 3 * p->vw;
    const int64_t page = 1024,
                  off_page = 160; // floats: lanes a multiple of 4 KiB apart would share cache sets

    p->ranges_at = packed;
    p->before_at = p->ranges_at + p->panels * 2 * p->vw;
    p->after_at = p->before_at + sums;
    p->lane_floats = ceil_div(p->after_at + sums, page) * page + off_page;

    const int64_t bytes = p->lane_floats * (int64_t)sizeof(float);
    const int64_t wish = tuned       ? (int64_t)tuned[AFT_CPU_SLICE_KIB] * 1024
                         : p->masked ? SLICE_BYTES_MOST
                                     : SLICE_BYTES;
    p->slice = wish / bytes / SLICE_LANES * SLICE_LANES;
    if (p->slice < SLICE_LANES)
        p->slice = SLICE_BYTES_MOST / bytes < SLICE_LANES ? SLICE_BYTES_MOST / bytes : SLICE_LANES;
    if (p->slice < SLICE_LANES_LEAST)
        p->slice = SLICE_LANES_LEAST;
    if (p->slice > p->lanes)
        p->slice = p->lanes;
}

static void plan_local(struct aft_plan *p)
{
    const size_t parked = 3 * AFT_ROWS * p->vw * (size_t)p->group * sizeof(float);

    p->weights_bytes = (size_t)(p->segment * AFT_ROWS + p->vw) * AFT_ROWS * sizeof(float);
    p->parked_bytes = p->blocks > p->segment ? parked : 0;
}

// Lanes share packed weights; what does not fit local memory is shared by fewer.
static void plan_cpu_group(struct aft_plan *p, size_t local_bytes, const int *tuned)
{
    const int64_t most = tuned ? tuned[AFT_CPU_GROUP] : p->masked ? GROUP_MOST_MASKED : GROUP_MOST;
    const int64_t segment = tuned ? tuned[AFT_CPU_SEGMENT] : SEGMENT_MOST;

    p->segment = p->blocks < segment ? p->blocks : segment;
    p->group = p->slice < most ? p->slice : most;
    plan_local(p);
    while (p->segment > SEGMENT_LEAST && p->weights_bytes > local_bytes / 2) {
        p->segment /= 2;
        plan_local(p);
    }
    while (p->group > 1 && p->weights_bytes + p->parked_bytes > local_bytes) {
        p->group /= 2;
        plan_local(p);
    }
}

// Blocks that a block of targets reaches, and what the last pass does for each: CPU, packing once
// for all lanes and adding element by element in each; GPU, a block's sources to all targets.
static int64_t count_iterations(const struct aft_plan *p)
{
    const int64_t rows = p->cpu ? AFT_ROWS : AFT_BLOCK;
    const int64_t window = ceil_div(2 * p->window, rows) + 2;
    const int64_t reach = p->masked || window > p->blocks ? p->blocks : window;
    const int64_t pack = 3 * rows * ceil_div(rows, (int64_t)p->vw),
                  add = 3 * rows * rows + 2 * rows;
    const int64_t most =
        p->cpu ? reach * (pack + p->group * add) : reach * rows * (2 * AFT_TARGETS + 4);

    return most > 2 * p->blocks ? most : 2 * p->blocks; // the scan's
}

// What is in reach of AFT_BLOCK rows, in whole blocks.
static int64_t find_pitch(const struct aft_plan *p)
{
    const int64_t window = p->window > 1 ? p->window : 1;
    const int64_t blocks = ceil_div(2 * window + AFT_BLOCK - 3, AFT_BLOCK) + 1;

    return AFT_BLOCK * (blocks < p->blocks ? blocks : p->blocks);
}

// Without a mask: sums before and after each block and its range, flags, weights.
static void plan_gpu(struct aft_plan *p, size_t max_group)
{
    const int64_t lane_floats = p->blocks * (2 * 3 + 2);

    while (p->local < GPU_GROUP && 2 * p->local <= max_group)
        p->local *= 2;
    p->slice = p->lanes;
    if (p->masked)
        return;
    const int64_t most = SLICE_BYTES_MOST / (lane_floats * (int64_t)sizeof(float));
    const int64_t slice = most < GPU_GROUP ? GPU_GROUP : most / GPU_GROUP * GPU_GROUP;
    if (p->slice > slice)
        p->slice = slice;

    p->pitch = find_pitch(p);
    const int64_t row_floats = p->pitch + 1, all = ceil_div(p->steps, AFT_TILE);
    const int64_t tile_bytes = (int64_t)sizeof(float) * row_floats * AFT_TILE;
    const int64_t fit = WEIGHT_BYTES > tile_bytes        ? WEIGHT_BYTES / tile_bytes
                        : tile_bytes <= SLICE_BYTES_MOST ? 1
                                                         : 0;
    p->weight_rows = AFT_TILE * (fit < all ? fit : all);
    p->flags_at = p->slice * lane_floats;
    p->weights_at = p->flags_at + ceil_div(p->steps, AFT_LEAST_ROWS) *
                                      ceil_div(p->slice, (int64_t)AFT_TILE_LANES);
    p->slice_floats = p->weights_at + p->weight_rows * row_floats;
}

struct aft_plan attncl__aft_plan(const struct op_sig *sig, const struct aft_form *form)
{
    const struct tensor_desc *q = &sig->in[AFT_IN_Q], *mask = &sig->in[AFT_IN_MASK];
    const bool own_mask = attncl__desc_present(mask) && mask->dim[2] > 1,
               fold = !own_mask && form->heads == 0 && contiguous(sig);
    struct aft_plan p = {
        .cpu = sig->caps->form == FORM_CPU && sig->caps->local_bytes >= CPU_LEAST_LOCAL_BYTES,
        .masked = attncl__desc_present(mask),
        .folded = fold,
        .steps = q->dim[0],
        .batch = fold ? 1 : q->dim[1],
        .channels = fold              ? q->dim[1] * q->dim[2]
                    : form->heads > 0 ? q->dim[2] / form->heads
                                      : q->dim[2],
        .heads = form->heads > 0 ? form->heads : 1,
        .entries = own_mask ? q->dim[1] : 1,
        .per_head = form->heads > 0,
        .local = 1,
    };

    if (attncl__desc_present(&sig->in[AFT_IN_BIAS]))
        p.window = form->window < p.steps ? form->window : p.steps;
    p.vw = p.cpu ? sig->caps->vector_width : 1;
    p.blocks = ceil_div(p.steps, p.cpu ? AFT_ROWS : AFT_BLOCK);
    p.panels = ceil_div(p.blocks, AFT_PANEL);
    p.lanes = ceil_div(p.channels, p.vw) * (own_mask ? 1 : p.batch);
    if (p.cpu) {
        const int *tuned =
            attncl__tuned(sig->caps, TUNE_AFT_CPU, p.masked ? TUNE_MASKED : TUNE_PLAIN);
        plan_cpu_slice(&p, tuned);
        plan_cpu_group(&p, sig->caps->local_bytes, tuned);
        p.iterations = count_iterations(&p);
        for (; sig->caps->loop_limit && p.group > 1; p.iterations = count_iterations(&p)) {
            if ((uint64_t)p.iterations < sig->caps->loop_limit)
                break;
            p.group /= 2;
        }
        p.slice_floats = p.slice * p.lane_floats;
        return p;
    }
    p.iterations = count_iterations(&p);
    plan_gpu(&p, sig->caps->max_group);
    return p;
}
