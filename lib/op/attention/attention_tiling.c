// SPDX-License-Identifier: MIT
//
// Tiling of attention on a device.

#include "op/attention/attention.h"

// With 48 queries and 128 keys, a block's scores, sums and queries stay in a core's second-level
// cache.  Blocks are smaller where cores would be idle.
enum { MAX_BLOCK = 48, TILE = 128, SHORT_TILE = 32, GROUPS_PER_CORE = 8 };
enum { MAX_LOCAL_BYTES = 256 * 1024, SUM_ROWS = 6 };

// Prefers the least padding, then the widest panel.
static int choose_sum_vectors(int64_t vectors, int max)
{
    int best = vectors == 1 ? 1 : 2;

    for (int n = 3; n <= max && vectors > 1; ++n)
        if (round_up(vectors, n) <= round_up(vectors, best))
            best = n;
    return best;
}

static size_t local_bytes(const struct attention_tiling *p, int64_t block)
{
    return sizeof(float) * (size_t)(block * (p->width + p->key_tile + p->value_pitch + 1 + p->vw));
}

// The tuned values for this many keys, or NULL.
static const int *tuned_values(const struct device_caps *caps, const struct attention_tiling *p)
{
    const int64_t long_keys = 512;

    return attncl__tuned(caps, TUNE_ATTENTION_CPU, p->n_keys < long_keys ? TUNE_SHORT : TUNE_LONG);
}

bool attncl__attention_shrink(struct attention_tiling *p)
{
    if (p->score_rows > SUM_ROWS)
        p->score_rows = SUM_ROWS;
    else if (p->key_tile > SHORT_TILE)
        p->key_tile = SHORT_TILE;
    else if (p->score_rows > 2)
        p->score_rows = 2;
    else if (p->score_rows > 1)
        p->score_rows = 1;
    else
        return false;
    return true;
}

// Queries of a block: few enough for local memory and to occupy all cores; blocks of even size.
static int choose_block(const struct device_caps *caps, const struct attention_tiling *p,
                        int max_block)
{
    const int64_t rows = p->score_rows, wanted = GROUPS_PER_CORE * (int64_t)caps->compute_units;
    const size_t capacity =
        caps->local_bytes < MAX_LOCAL_BYTES ? caps->local_bytes : MAX_LOCAL_BYTES;
    int64_t block = caps->max_loop_iterations ? rows : max_block;

    while (block > rows &&
           (local_bytes(p, block) > capacity || p->heads * ceil_div(p->n_queries, block) < wanted))
        block -= rows;
    const int64_t n_blocks = p->n_queries > 0 ? ceil_div(p->n_queries, block) : 1;
    return (int)round_up(p->n_queries > 0 ? ceil_div(p->n_queries, n_blocks) : 1, rows);
}

// Upper bound of the loop iterations of a work-item.
static int64_t count_iterations(const struct attention_tiling *p)
{
    const int64_t vw = p->vw, tile = p->key_tile, block = p->block;
    const int64_t sum_rows = p->score_rows < SUM_ROWS ? p->score_rows : SUM_ROWS;
    const int64_t panels = tile / (p->score_vectors * vw) * (block / p->score_rows);
    const int64_t sums = p->value_pitch / (p->sum_vectors * vw) * (block / sum_rows);
    const int64_t masks = p->masking & MASKING_MASK ? 2 * block * tile : 2 * block * tile / vw;
    const int64_t each = panels * (p->width + 1) + sums * (tile + 1) + masks +
                         block * ((p->dropout ? 4 : 3) * tile / vw + (p->bias ? tile / vw : 0) +
                                  p->value_pitch / vw + 4);

    return ceil_div(p->n_keys, tile) * each + block * (p->width + 2 * p->value_pitch / vw + 4);
}

static attncl_status tile_cpu(const struct device_caps *caps, struct attention_tiling *p,
                              int64_t value_stride)
{
    p->score_rows = p->vw == 16 ? 12 : 6;
    p->score_vectors = 2;
    p->sum_vectors = choose_sum_vectors(ceil_div(p->value_width, p->vw), p->vw == 16 ? 4 : 2);
    p->value_pitch = round_up(p->value_width, (int64_t)p->vw * p->sum_vectors);
    const int *tuned = tuned_values(caps, p);
    if (tuned) {
        p->key_tile = tuned[ATTENTION_CPU_TILE];
        p->block = choose_block(caps, p, tuned[ATTENTION_CPU_BLOCK]);
    }
    if (!tuned || local_bytes(p, p->block) > caps->local_bytes) {
        p->key_tile = caps->max_loop_iterations ? SHORT_TILE : TILE;
        while (local_bytes(p, p->score_rows) > caps->local_bytes && attncl__attention_shrink(p))
            continue;
        p->block = choose_block(caps, p, MAX_BLOCK);
    }
    REQUIRE(local_bytes(p, p->block) <= caps->local_bytes, ATTNCL_ERR_UNSUPPORTED,
            "attention with D = %" PRId64 " and E = %" PRId64
            " takes %zu bytes of local memory, the device has %zu",
            p->width, p->value_width, local_bytes(p, p->block), caps->local_bytes);
    REQUIRE(attncl__loops_fit(caps, count_iterations(p)), ATTNCL_ERR_UNSUPPORTED,
            "attention over S = %" PRId64 " keys takes %" PRId64
            " loop iterations, the device stops at %" PRIu64,
            p->n_keys, count_iterations(p), caps->max_loop_iterations);

    // Rows of a projection's heads are far apart and map to few cache sets: a copy pays off once
    // several blocks read it.
    p->copy_values = p->value_pitch != p->value_width ||
                     (value_stride != p->value_width && p->n_queries > 4 * p->block);
    p->key_floats = p->kv_heads * round_up(p->n_keys, p->key_tile) * p->width;
    p->value_floats = p->copy_values ? p->kv_heads * p->n_keys * p->value_pitch : 0;
    return ATTNCL_OK;
}

// Splits the keys, at least 256 to a split, where blocks of queries do not fill the device: two
// work-groups per compute unit, or four if causal, when the last block has the most keys (512 blocks
// in two splits take 0.8 of the time on an H200 with 132 units).
static void choose_splits(const struct device_caps *caps, struct attention_tiling *p)
{
    enum { MIN_KEYS = 256 };
    const int64_t per_unit = p->window_right == 0 ? 4 : 2;
    const int64_t groups = p->heads * ceil_div(p->n_queries, p->block);
    // Without queries this is the gradients' tiling, where keys get zeros.
    const int64_t wanted = groups > 0 ? ceil_div(per_unit * caps->compute_units, groups) : 1;
    const int64_t max = p->n_keys / MIN_KEYS;
    const int64_t splits = wanted < max ? wanted : max;

    p->split_keys = round_up(ceil_div(p->n_keys, splits > 1 ? splits : 1), p->key_tile);
    p->n_splits = p->split_keys > 0 ? ceil_div(p->n_keys, p->split_keys) : 1;
    if (p->n_splits > 1)
        p->partial_floats = p->n_splits * p->heads * p->n_queries * (p->value_width + 2);
}

static void tile_gpu(const struct device_caps *caps, struct attention_tiling *p, bool scratch_rows)
{
    p->block = p->mma ? ATT_MMA_ROWS : 4 * p->tile->ty;
    p->key_tile = p->mma ? ATT_MMA_KEYS : 4 * p->tile->tx;
    p->row_floats = scratch_rows ? 2 * p->heads * p->n_queries : 0;
    choose_splits(caps, p);
}

static bool has_whole_float4s(const struct tensor_desc *x)
{
    return x->start % 4 == 0 && x->stride[0] % 4 == 0 && x->stride[1] % 4 == 0 &&
           x->stride[2] % 4 == 0 && x->dim[3] % 4 == 0;
}

attncl_status attncl__attention_launch(struct launcher *l, const struct op_call *call,
                                       const struct attention_tiling *p, const struct kspec *spec,
                                       struct grid grid, const struct arg *args, size_t n_args)
{
    const struct attention_fwd_params *params = call->sig.params;
    const struct tensor_desc *table = &call->sig.in[ATT_IN_BIAS];
    const int64_t n_heads = call->sig.in[ATT_IN_Q].dim[1];
    const struct span step = call->in[call->sig.n_in - 1]; // each op's last input
    struct arg_list list = {.n = 0};
    int axes = 0;

    arg_list_add(&list, args, n_args);
    arg_list_add(&list, ARGS(ATTENTION_VISIBILITY(call, p), arg_i32(n_heads), arg_i32(p->n_queries),
                             arg_i32(p->n_keys), arg_i32(p->width), arg_i32(p->value_width),
                             arg_f32(params->scale), arg_f32(params->softcap),
                             DROPOUT_ARGS(&params->dropout, step),
                             arg_i64(params->dropout.batch_begin * n_heads * p->n_queries)));
    for (int i = 0; i < 3 && p->bias & BIAS_TABLE; ++i)
        axes |= table->dim[i] > 1 ? 1 << i : 0;
    if (p->bias & BIAS_TABLE)
        arg_list_add(&list, ARGS(arg_mem(call->in[ATT_IN_BIAS]), arg_i32(axes)));
    if (p->bias & BIAS_SLOPES)
        arg_list_add(&list, ARGS(arg_mem(call->in[ATT_IN_SLOPES])));
    if (p->at_position)
        arg_list_add(&list, ARGS(arg_mem(call->in[ATT_IN_POSITION])));
    return attncl__launch(l, spec, grid, list.arg, list.n);
}

attncl_status attncl__attention_choose_tiling(const struct op_sig *sig,
                                              struct attention_tiling *ret)
{
    const struct attention_fwd_params *params = sig->params;
    const struct tensor_desc *q = &sig->in[ATT_IN_Q], *v = &sig->in[ATT_IN_V];
    const int64_t unlimited = q->dim[2] + v->dim[2];
    const int64_t reach =
        params->window > 0 && params->window <= unlimited ? params->window - 1 : unlimited;

    *ret = (struct attention_tiling){
        .heads = q->dim[0] * q->dim[1],
        .kv_heads = v->dim[0] * v->dim[1],
        .kv_group = v->dim[1] > 0 ? q->dim[1] / v->dim[1] : 1,
        .n_queries = q->dim[2],
        .n_keys = v->dim[2],
        .width = q->dim[3],
        .value_width = v->dim[3],
        .window_left = reach,
        .window_right = params->causal ? 0 : reach,
        .masking = (attncl__desc_present(&sig->in[ATT_IN_MASK]) ? MASKING_MASK : 0) |
                   (!attncl__desc_present(&sig->in[ATT_IN_LENS]) ? 0
                    : params->hard_lens                          ? MASKING_HARD_LENS
                                                                 : MASKING_LENS),
        .bias = (attncl__desc_present(&sig->in[ATT_IN_BIAS]) ? BIAS_TABLE : 0) |
                (attncl__desc_present(&sig->in[ATT_IN_SLOPES]) ? BIAS_SLOPES : 0),
        .dropout = params->dropout.p > 0,
        .softcap = params->softcap > 0,
        .aligned =
            has_whole_float4s(q) && has_whole_float4s(&sig->in[ATT_IN_K]) && has_whole_float4s(v),
        .vw = sig->caps->variant == VARIANT_CPU ? sig->caps->vector_width : 4,
    };
    // A GPU with small work-groups runs the CPU variant, one work-item per work-group.
    if (sig->caps->variant == VARIANT_GPU)
        ret->tile = attncl__attention_tile_config(sig->caps, ret->n_queries, ret->value_width, 0);
    if (!ret->tile)
        return tile_cpu(sig->caps, ret, v->stride[2]);
    ret->gpu = true;
    ret->mma =
        attncl__attention_mma(sig->caps, ret, attncl__desc_present(&sig->out[ATT_OUT_WEIGHTS]));
    tile_gpu(sig->caps, ret,
             attncl__desc_present(&sig->out[ATT_OUT_WEIGHTS]) &&
                 !attncl__desc_present(&sig->out[ATT_OUT_ROWS]));
    return ATTNCL_OK;
}

double attncl__attention_pairs(const struct op_sig *sig)
{
    const struct attention_fwd_params *params = sig->params;
    const double n_queries = (double)sig->in[ATT_IN_Q].dim[2];
    const double n_keys = (double)sig->in[ATT_IN_V].dim[2];
    const double window = (double)params->window;
    double pairs = n_queries * n_keys;

    if (params->causal)
        pairs = n_keys >= n_queries ? pairs - n_queries * (n_queries - 1) / 2
                                    : n_keys * (n_keys + 1) / 2;
    const double wide = n_queries * (params->causal ? window : 2 * window - 1);
    return window > 0 && wide < pairs ? wide : pairs;
}

static void set_visibility_macros(struct kspec *spec, const struct attention_tiling *p)
{
    kspec_int(spec, "MASKING", p->masking);
    if (p->at_position)
        kspec_int(spec, "AT_POSITION", 1);
}

static void set_macros(struct kspec *spec, const struct attention_tiling *p)
{
    set_visibility_macros(spec, p);
    kspec_int(spec, "DROPOUT", p->dropout);
    kspec_int(spec, "SOFTCAP", p->softcap);
    kspec_int(spec, "BIAS", p->bias);
}

void attncl__attention_set_gpu_macros(struct kspec *spec, const struct attention_tiling *p,
                                      size_t group)
{
    kspec_set_vw_ls(spec, p->vw, group);
    kspec_int(spec, "ALIGNED", p->aligned);
    set_macros(spec, p);
}

struct kspec attncl__attention_cpu_spec(const struct attention_tiling *p, const char *file,
                                        const char *kernel)
{
    struct kspec spec = kspec_begin(file, kernel);

    kspec_set_vw_ls(&spec, p->vw, 1);
    kspec_int(&spec, "BC", p->key_tile);
    kspec_int(&spec, "NS", p->score_vectors);
    kspec_int(&spec, "MR", p->score_rows);
    kspec_int(&spec, "NE", p->sum_vectors);
    set_macros(&spec, p);
    return spec;
}

attncl_status attncl__attention_launch_packing(struct launcher *l, const struct op_call *call,
                                               const struct attention_tiling *p,
                                               const struct attention_packing *x)
{
    const struct tensor_desc *tiles = &call->sig.in[x->tiles], *rows = &call->sig.in[x->rows];
    struct kspec spec = kspec_begin("attention/attention_cpu_pack.cl", "attention_cpu_pack_fwd");
    struct arg_list list = {.n = 0};

    kspec_set_vw_ls(&spec, p->vw, 1);
    kspec_int(&spec, "BC", p->key_tile);
    kspec_int(&spec, "PANEL", p->score_vectors * (int64_t)p->vw);
    set_visibility_macros(&spec, p);
    arg_list_add(&list, ARGS(ATTENTION_HEADS(call, x->tiles), ATTENTION_HEADS(call, x->rows),
                             ATTENTION_VISIBILITY(call, p), arg_mem(call->scratch),
                             arg_i64(x->tiles_at), arg_i64(x->rows_at), arg_i32(tiles->dim[1]),
                             arg_i32(p->n_queries), arg_i32(p->n_keys), arg_i32(tiles->dim[3]),
                             arg_i32(rows->dim[3]), arg_i32(x->pitch)));
    if (p->at_position)
        arg_list_add(&list, ARGS(arg_mem(call->in[ATT_IN_POSITION])));
    return attncl__launch(l, &spec, grid_2d(p->kv_heads, ceil_div(p->n_keys, p->key_tile), 1, 1),
                          list.arg, list.n);
}
