// SPDX-License-Identifier: MIT
//
// Chooses the sizes of work-groups and launches; looks up a context's tuning table.

#include "base/log.h"
#include "launch/launch.h"

// Display drivers kill a launch after two seconds.
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
    // At least four elements per work-item, and at least a warp, since all its lanes run in any case.
    const size_t max_size = caps->max_group < 256 ? caps->max_group : 256;
    size_t group = 32;

    while (group < 256 && (int64_t)(4 * group) < width)
        group *= 2;
    while (group > max_size)
        group /= 2;
    return group >= 4 ? group : 1;
}

_Static_assert(VARIANT_CPU == 0 && VARIANT_GPU == 1, "bits of tune_kernel.variants");

static void log_entry(attncl_log_level level, const struct device_caps *caps, enum tunable kernel,
                      int class, const char *what)
{
    const struct tune_kernel *k = &attncl__tune_kernels[kernel];

    attncl__log(level, "%s:%d: %s %s %s", caps->tuned->path ? caps->tuned->path : "tuning",
                caps->tuned->entries[kernel][class].line, k->name, k->classes[class], what);
}

const int *attncl__tuned(const struct device_caps *caps, enum tunable kernel, int class)
{
    if (!caps->tuned || caps->max_loop_iterations)
        return NULL;
    struct tune_entry *entry = &caps->tuned->entries[kernel][class];
    if (!entry->line || atomic_load(&entry->rejected))
        return NULL;
    if (!atomic_exchange(&entry->logged, true))
        log_entry(ATTNCL_LOG_INFO, caps, kernel, class, "applies");
    return entry->value;
}

void attncl__tuned_reject(const struct device_caps *caps, enum tunable kernel, int class)
{
    struct tune_entry *entry = &caps->tuned->entries[kernel][class];

    if (!atomic_exchange(&entry->rejected, true))
        log_entry(ATTNCL_LOG_WARN, caps, kernel, class, "does not run on this device; not used");
}
