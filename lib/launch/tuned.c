// SPDX-License-Identifier: MIT
//
// Lookup in a context's tuning table.

#include "base/log.h"
#include "launch/launch.h"

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
