// SPDX-License-Identifier: MIT
// Tiling of the gradients of attention: blocks of queries, splits, scratch, local memory.

#include "op/attention/attention.h"

static int64_t local_floats(const struct backward_tiling *b, int64_t block)
{
    const struct attention_tiling *p = &b->tiling;
    return block *
           (p->width + p->value_width + 2 * p->key_tile + 2 * b->key_pitch + b->value_pitch + 3);
}

// Upper bound of the loop iterations of a work-item with one block.
static int64_t count_iterations(const struct backward_tiling *b)
{
    const struct attention_tiling *p = &b->tiling;
    const int64_t vw = p->vw, tile = p->key_tile, block = p->block;
    const int64_t panels = tile / (p->score_vectors * vw) * (block / p->score_rows);
    const int64_t sum_rows = p->score_rows < 6 ? p->score_rows : 6;
    const int64_t strips = (b->key_pitch + b->value_pitch) / (p->sum_vectors * vw);
    const int64_t each =
        panels * (p->width + p->value_width + 2) +
        strips * (tile / 4 * (block + 1) + block / sum_rows * (tile + 1)) +
        block * ((p->dropout ? 7 : 6) * tile / vw + (p->bias ? tile / vw : 0) + 8) +
        (p->masking & MASKING_MASK ? 4 * block * tile : 4 * block * tile / vw);

    return ceil_div(p->n_keys, tile) * (each + tile * (b->key_pitch + b->value_pitch) / vw) +
           3 * block * (p->width + p->value_width + 4) + block * (p->n_keys / vw + 1);
}

static attncl_status choose_blocks(const struct op_sig *sig, struct backward_tiling *b)
{
    enum { MAX_LOCAL_BYTES = 256 * 1024, GROUPS_PER_CORE = 4 };
    const struct device_caps *caps = sig->caps;
    struct attention_tiling *p = &b->tiling;
    const int64_t strip = (int64_t)p->vw * p->sum_vectors;

    b->key_pitch = round_up(p->width, strip);
    b->value_pitch = round_up(p->value_width, strip);
    const size_t max = caps->local_bytes < MAX_LOCAL_BYTES ? caps->local_bytes : MAX_LOCAL_BYTES;
    while (sizeof(float) * (size_t)local_floats(b, p->score_rows) > caps->local_bytes &&
           attncl__attention_shrink(p))
        continue;
    if (caps->max_loop_iterations)
        p->block = p->score_rows;
    while (p->block > p->score_rows && sizeof(float) * (size_t)local_floats(b, p->block) > max)
        p->block -= p->score_rows;
    b->local = local_floats(b, p->block);
    REQUIRE(sizeof(float) * (size_t)b->local <= caps->local_bytes, ATTNCL_ERR_UNSUPPORTED,
            "gradients of attention with D = %" PRId64 " and E = %" PRId64
            " take %zu bytes of local memory, the device has %zu",
            p->width, p->value_width, sizeof(float) * (size_t)b->local, caps->local_bytes);
    REQUIRE(attncl__loops_fit(caps, count_iterations(b)), ATTNCL_ERR_UNSUPPORTED,
            "gradients of attention over S = %" PRId64 " keys take %" PRId64
            " loop iterations, the device stops at %" PRIu64,
            p->n_keys, count_iterations(b), caps->max_loop_iterations);

    const int64_t blocks = ceil_div(p->n_queries, p->block);
    const int64_t wanted = ceil_div(GROUPS_PER_CORE * (int64_t)caps->compute_units, p->heads);
    b->n_splits = caps->max_loop_iterations || blocks < wanted ? blocks : wanted;
    if (b->n_splits < 1)
        b->n_splits = 1; // no query: dk and dv are 0
    b->tile_keys = round_up(p->n_keys, p->key_tile);
    b->values_at = p->kv_heads * b->tile_keys * p->width;
    b->rows_at = b->values_at + p->kv_heads * b->tile_keys * p->value_width;
    b->dk_at = b->rows_at + p->kv_heads * p->n_keys * b->key_pitch;
    b->dv_at = b->dk_at + b->n_splits * p->heads * b->tile_keys * b->key_pitch;
    b->floats = b->dv_at + b->n_splits * p->heads * b->tile_keys * b->value_pitch;
    return ATTNCL_OK;
}

// Reserves space for ds of as many heads as fit, so that dq's pass need not recompute it.
static void keep_ds(const struct device_caps *caps, struct backward_tiling *b)
{
    enum { FLOATS = 1 << 24, ALIGN = 64 };
    const int64_t limit = (int64_t)(caps->max_buffer_bytes / (4 * sizeof(float)));
    const int64_t max = limit < FLOATS ? limit : FLOATS;

    b->ds_pitch = round_up(b->tiling.n_queries, 4);
    if (b->ds_pitch == 0 || b->tiling.n_keys == 0 || b->tiling.n_keys > max / b->ds_pitch)
        return;
    const int64_t head_floats = b->ds_pitch * b->tiling.n_keys, fit = max / head_floats;
    b->kept_heads = fit < b->tiling.heads ? fit : b->tiling.heads;
    b->ds_at = round_up(b->floats, ALIGN);
    b->floats = b->ds_at + b->kept_heads * head_floats;
}

attncl_status attncl__attention_bwd_choose_tiling(const struct op_sig *sig,
                                                  struct backward_tiling *ret)
{
    *ret = (struct backward_tiling){0};
    TRY(attncl__attention_choose_tiling(sig, &ret->tiling));
    if (!ret->tiling.gpu)
        return choose_blocks(sig, ret);
    REQUIRE(sig->caps->max_group >= ATT_BWD_GROUP && sig->caps->local_bytes >= ATT_BWD_LOCAL_BYTES,
            ATTNCL_ERR_UNSUPPORTED,
            "gradients of attention take work-groups of %d work-items with %d bytes of local "
            "memory, the "
            "device has %zu with %zu",
            ATT_BWD_GROUP, ATT_BWD_LOCAL_BYTES, sig->caps->max_group, sig->caps->local_bytes);
    ret->tiling.mma = attncl__attention_bwd_mma(sig->caps, &ret->tiling);
    ret->floats = ret->tiling.heads * ret->tiling.n_queries;
    if (ret->tiling.kv_group > 1) {
        ret->dk_at = ret->floats;
        ret->dv_at = ret->dk_at + ret->tiling.heads * ret->tiling.n_keys * ret->tiling.width;
        ret->floats = ret->dv_at + ret->tiling.heads * ret->tiling.n_keys * ret->tiling.value_width;
    }
    keep_ds(sig->caps, ret);
    return ATTNCL_OK;
}
