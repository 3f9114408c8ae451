// SPDX-License-Identifier: MIT
//
// How large work-groups and launches are.

#include "launch/launch.h"

// Drivers of displays wait for two seconds.
int64_t attncl__parts_at_once(const struct launcher *l, int64_t n, int64_t step)
{
    const double max_seconds = 0.5;

    if (l->seconds <= max_seconds)
        return n;
    const int64_t parts = (int64_t)(max_seconds / l->seconds * (double)n) / step * step;
    return parts > step ? parts : step < n ? step : n;
}

size_t attncl__group_for_row(const struct device_caps *caps, int64_t width)
{
    // At least four elements per work-item, and at least a warp, since all its lanes run anyway.
    const size_t max_size = caps->max_group < 256 ? caps->max_group : 256;
    size_t group = 32;

    while (group < 256 && (int64_t)(4 * group) < width)
        group *= 2;
    while (group > max_size)
        group /= 2;
    return group >= 4 ? group : 1;
}
