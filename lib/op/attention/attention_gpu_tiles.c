// SPDX-License-Identifier: MIT
//
// Attention, GPU variant: the table of tile configurations by width, and what goes by matrix instructions.

#include "op/attention/attention.h"

// The best first; local memory is what local_bytes() says, 25 KiB at most.  From the register
// tiles that published fp32 kernels use (docs/dev/kernels.md); not measured where no device is named.
static const struct tile_row {
    int64_t queries, value_width; // up to these
    struct attention_tile_config tile;
} tile_configs[] = {
    {8, 64, {16, 2, 1, 32, false}},  // decoding: sums of 4 queries x 4 columns in a work-item
    {8, 128, {32, 2, 1, 16, false}}, //
    {8, 256, {32, 2, 2, 16, false}}, // 4 x 8
    {INT64_MAX, 64, {16, 8, 1, 32, false}}, // the fastest of nine on an H200
    {INT64_MAX, 128, {16, 8, 2, 32, false}},
    {INT64_MAX, 192, {16, 4, 3, 32, false}},       // 4 x 12
    {INT64_MAX, 256, {16, 4, 4, 32, false}},       // 4 x 16
    {INT64_MAX, INT64_MAX, {16, 8, 2, 32, false}}, // scores for each panel of 128 columns
    {INT64_MAX, INT64_MAX, {8, 8, 2, 16, false}},
    {INT64_MAX, INT64_MAX, {8, 2, 2, 16, false}}, // 16 work-items, 10 KiB
};

// Intel's threads have 128 registers: of 8 work-items, which leaves sums of 4 x 4, or of 16, half of that.
static const struct tile_row intel_tile_configs[] = {
    {8, 64, {16, 2, 1, 32, true}},
    {8, INT64_MAX, {32, 2, 1, 16, true}},
    {INT64_MAX, 64, {16, 4, 1, 32, true}},
    {INT64_MAX, INT64_MAX, {32, 4, 1, 32, true}},
    {INT64_MAX, INT64_MAX, {16, 4, 1, 32, true}},
    {INT64_MAX, INT64_MAX, {8, 2, 1, 16, true}}, // 16 work-items
};

// Gradients, one for each width; 128 work-items and 22 KiB.
static const struct tile_row bwd_tile_configs[] = {
    {INT64_MAX, 64, {16, 8, 1, 32, false}},
    {INT64_MAX, INT64_MAX, {16, 8, 2, 32, false}}, // 4 x 8 sums, of dk and dv each
};
static const struct tile_row intel_bwd_tile_configs[] = {
    {INT64_MAX, 64, {16, 8, 1, 32, true}},
    {INT64_MAX, INT64_MAX, {32, 4, 1, 16, true}},
};

void attncl__attention_set_tile_macros(struct kspec *spec, const struct attention_tile_config *r)
{
    kspec_int(spec, "TX", r->tx);
    kspec_int(spec, "TY", r->ty);
    kspec_int(spec, "NE", r->ne);
    kspec_int(spec, "DC", r->dc);
    kspec_int(spec, "REMATERIALIZE", r->rematerialize);
}

void attncl__attention_set_mma_macros(struct kspec *spec, const struct device_caps *caps,
                                      enum matrix_instruction mma)
{
    kspec_int(spec, "MMA", mma);
    kspec_int(spec, "PRECISION", mma == MMA_PTX ? caps->precision : GEMM_F32);
}

// As the kernel declares it.
static size_t local_bytes(const struct attention_tile_config *r, int query_channels)
{
    const int row_ld = 4 * r->ty + 4, key_ld = 4 * r->tx + 4;
    const int staged = r->dc * (key_ld + (query_channels ? 0 : row_ld));
    const int stage = staged > 2048 ? staged : 2048;

    return sizeof(float) * (size_t)(stage + query_channels * row_ld + 4 * r->tx * row_ld +
                                    4 * r->ty * (r->tx + 1) + 1);
}

int attncl__attention_query_channels(const struct device_caps *caps,
                                     const struct attention_tile_config *tile, int64_t width)
{
    // Work-items that registers allow, and what a driver keeps of a work-group for itself.
    enum { ITEMS_OF_UNIT = 512, DRIVER_BYTES = 1024, MAX_WIDTH = 256 };

    if (width > MAX_WIDTH)
        return 0;
    const int channels = (int)(ceil_div(width, tile->dc) * tile->dc);
    const size_t bytes = local_bytes(tile, channels), group = (size_t)(tile->tx * tile->ty);
    // A CPU's local memory is memory.
    const bool enough =
        caps->is_cpu || caps->unit_local_bytes / (bytes + DRIVER_BYTES) * group >= ITEMS_OF_UNIT;
    return bytes <= caps->local_bytes && enough ? channels : 0;
}

const struct attention_tile_config *attncl__attention_tile_config(const struct device_caps *caps,
                                                                  int64_t n_queries,
                                                                  int64_t value_width, int skip)
{
    const bool intel = caps->vendor == VENDOR_INTEL;
    const struct tile_row *rows = intel ? intel_tile_configs : tile_configs;
    const size_t n = intel ? sizeof intel_tile_configs / sizeof intel_tile_configs[0]
                           : sizeof tile_configs / sizeof tile_configs[0];

    for (size_t i = 0; i < n; ++i)
        if (n_queries <= rows[i].queries && value_width <= rows[i].value_width &&
            (size_t)(rows[i].tile.tx * rows[i].tile.ty) <= caps->max_group &&
            local_bytes(&rows[i].tile, 0) <= caps->local_bytes && skip-- == 0)
            return &rows[i].tile;
    return NULL;
}

const struct attention_tile_config *
attncl__attention_bwd_tile_config(const struct device_caps *caps, int64_t columns)
{
    const struct tile_row *row =
        caps->vendor == VENDOR_INTEL ? intel_bwd_tile_configs : bwd_tile_configs;

    while (columns > row->value_width)
        ++row;
    return &row->tile;
}

// As the kernel by matrix instructions has them.
enum { MAX_COLUMNS = 128, SUB_GROUPS = 4, PTX_LANES = 32, MFMA_LANES = 64 };

size_t attncl__attention_mma_group(enum matrix_instruction mma)
{
    return SUB_GROUPS * (mma == MMA_MFMA ? MFMA_LANES : PTX_LANES);
}

// Half of a work-group's queries and of a round's channels and columns at least: less would be zeros, and
// of few terms FMAs are more exact.
static bool is_wide(const struct attention_tiling *p)
{
    return p->n_queries >= ATT_MMA_ROWS / 2 && p->width >= ATT_MMA_COLUMNS / 2 &&
           p->value_width >= ATT_MMA_COLUMNS / 2 && p->value_width <= MAX_COLUMNS;
}

static bool has_group(const struct device_caps *caps, enum matrix_instruction mma)
{
    return attncl__attention_mma_group(mma) <= caps->max_group;
}

enum matrix_instruction attncl__attention_mma(const struct device_caps *caps,
                                              const struct attention_tiling *p, bool weights)
{
    // Dropout's generator makes four neighbours at once, which several work-items have here; a
    // launch for weights has no second product.
    const bool plain = !p->dropout && !weights;

    return is_wide(p) && plain && has_group(caps, caps->attention_mma) ? caps->attention_mma
                                                                       : MMA_NONE;
}

enum matrix_instruction attncl__attention_bwd_mma(const struct device_caps *caps,
                                                  const struct attention_tiling *p)
{
    // Of wider heads each of more than two panels of columns would compute its tiles again.
    const bool fits = p->n_keys >= ATT_MMA_ROWS / 2 && p->width <= MAX_COLUMNS;

    return is_wide(p) && fits && has_group(caps, caps->attention_bwd_mma) ? caps->attention_bwd_mma
                                                                          : MMA_NONE;
}

int64_t attncl__attention_bwd_mma_columns(enum matrix_instruction mma, int64_t columns,
                                          bool reads_ds)
{
    // Both gradients' sums stay in registers: of NVIDIA's 255 of a work-item 64 columns take half.
    const int64_t most = mma == MMA_MFMA || reads_ds ? MAX_COLUMNS : MAX_COLUMNS / 2;
    const int64_t panels = ceil_div(columns, most);

    return round_up(ceil_div(columns, panels), ATT_MMA_COLUMNS);
}
