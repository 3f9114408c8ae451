// SPDX-License-Identifier: MIT
//
// Attention, GPU variant: the table of tile configurations by width.

#include "op/attention/attention_tiling.h"

// The best first; local memory is what local_bytes() says, 25 KiB at most.  From the register
// tiles that published fp32 kernels use (docs/kernels.md); not yet measured on a GPU.
static const struct {
    int64_t queries, value_width; // up to these
    struct attention_tile_config tile;
} tile_configs[] = {
    {8, 64, {16, 2, 1, 32}},  // decoding: sums of 4 queries x 4 columns in a work-item
    {8, 128, {32, 2, 1, 16}}, //
    {8, 256, {32, 2, 2, 16}}, // 4 x 8
    {INT64_MAX, 64, {8, 16, 2, 32}},
    {INT64_MAX, 128, {16, 8, 2, 32}},
    {INT64_MAX, 192, {16, 4, 3, 32}},       // 4 x 12
    {INT64_MAX, 256, {16, 4, 4, 32}},       // 4 x 16
    {INT64_MAX, INT64_MAX, {16, 8, 2, 32}}, // panels of 128 columns; scores are computed for each
    {INT64_MAX, INT64_MAX, {8, 8, 2, 16}},
    {INT64_MAX, INT64_MAX, {8, 2, 2, 16}}, // 16 work-items, 10 KiB
};
enum { N_TILE_CONFIGS = sizeof tile_configs / sizeof tile_configs[0] };

// As the kernel declares it.
static size_t local_bytes(const struct attention_tile_config *r)
{
    const int row_ld = 4 * r->ty + 4, key_ld = 4 * r->tx + 4;
    const int stage = r->dc * (row_ld + key_ld) > 2048 ? r->dc * (row_ld + key_ld) : 2048;

    return sizeof(float) * (size_t)(stage + 4 * r->tx * row_ld + 4 * r->ty * (r->tx + 1) + 1);
}

const struct attention_tile_config *attncl__attention_tile_config(const struct device_caps *caps,
                                                                  int64_t n_queries,
                                                                  int64_t value_width, int skip)
{
    for (int i = 0; i < N_TILE_CONFIGS; ++i)
        if (n_queries <= tile_configs[i].queries && value_width <= tile_configs[i].value_width &&
            (size_t)(tile_configs[i].tile.tx * tile_configs[i].tile.ty) <= caps->max_group &&
            local_bytes(&tile_configs[i].tile) <= caps->local_bytes && skip-- == 0)
            return &tile_configs[i].tile;
    return NULL;
}
