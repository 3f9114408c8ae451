// SPDX-License-Identifier: MIT
// Which queries of attention's GPU variant stay in local memory, and the tiles of its gradients, on devices that are only
// described.

#include "op/attention/attention.h"
#include "support/test.h"

NO_DEVICE;

static const struct {
    const char *device;
    bool is_cpu;
    size_t local_kib, unit_local_kib;
    int64_t width;
    int channels;
} cases[] = {
    {"H100", false, 48, 228, 64, 64},
    {"H100", false, 48, 228, 65, 96},
    {"H100", false, 48, 228, 128, 128},
    {"H100", false, 48, 228, 192, 0}, // seven work-groups of 64 are too few
    {"A100", false, 48, 164, 64, 64},
    {"RTX 4090", false, 48, 100, 64, 0},
    {"of unknown size", false, 48, 0, 64, 0},
    {"PoCL", true, 512, 0, 64, 64},
    {"a small CPU", true, 28, 0, 64, 0},
    {"PoCL", true, 512, 0, 320, 0},
};

TABLE_TEST(queries_stay_where_work_groups_have_space, cases)
{
    const struct device_caps caps = {.is_cpu = cases[_i].is_cpu,
                                     .max_group = 256,
                                     .local_bytes = cases[_i].local_kib << 10,
                                     .unit_local_bytes = cases[_i].unit_local_kib << 10};
    const struct attention_tile_config *tile =
        attncl__attention_tile_config(&caps, 1000, cases[_i].width, 0);

    ck_assert_ptr_nonnull(tile);
    ck_assert_int_eq(attncl__attention_query_channels(&caps, tile, cases[_i].width),
                     cases[_i].channels);
}

static const struct {
    enum device_vendor vendor;
    int64_t columns;
    int of_group, sums; // columns of a work-group; sums of a work-item, of each gradient
} gradients[] = {
    {VENDOR_NVIDIA, 1, 64, 16},   {VENDOR_NVIDIA, 64, 64, 16},
    {VENDOR_NVIDIA, 65, 128, 32}, {VENDOR_AMD, 256, 128, 32},
    {VENDOR_INTEL, 64, 64, 16},   {VENDOR_INTEL, 65, 128, 16}, // more do not fit its registers
    {VENDOR_INTEL, 256, 128, 16},
};

TABLE_TEST(gradients_have_tiles_by_vendor_and_width, gradients)
{
    const struct device_caps caps = {.vendor = gradients[_i].vendor};
    const struct attention_tile_config *tile =
        attncl__attention_bwd_tile_config(&caps, gradients[_i].columns);

    ck_assert_int_eq(tile->tx * tile->ty, ATT_BWD_GROUP);
    ck_assert_int_eq(4 * tile->tx * tile->ne, gradients[_i].of_group);
    ck_assert_int_eq(16 * tile->ne, gradients[_i].sums);
}
