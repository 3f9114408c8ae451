// SPDX-License-Identifier: MIT
// Reduced capabilities of op classes whose kernels a device refuses.

#include "compile/lowered.h"

#include "base/alloc.h"
#include "base/log.h"

struct fitted_op {
    const struct op_class *cls;
    struct device_caps caps;
};

void attncl__fit_free(struct fit *fit)
{
    attncl__free(fit->ops);
    *fit = (struct fit){0};
}

static struct fitted_op *find_op(const struct fit *fit, const struct op_class *cls)
{
    for (int i = 0; fit && i < fit->n; ++i)
        if (fit->ops[i].cls == cls)
            return &fit->ops[i];
    return NULL;
}

const struct device_caps *attncl__fit_get_caps(const struct fit *fit, const struct op_class *cls,
                                               const struct device_caps *device)
{
    const struct fitted_op *op = find_op(fit, cls);

    return op ? &op->caps : device;
}

static attncl_status set_caps(struct fit *fit, const struct op_class *cls,
                              const struct device_caps *caps)
{
    struct fitted_op *op = find_op(fit, cls);

    if (!op) {
        struct fitted_op *grown = attncl__grow_array(fit->ops, (size_t)fit->n + 1, sizeof *grown);
        REQUIRE(grown, ATTNCL_ERR_NO_MEMORY, "the work-groups of %s", cls->name);
        fit->ops = grown;
        op = &fit->ops[fit->n++];
    }
    *op = (struct fitted_op){cls, *caps};
    return ATTNCL_OK;
}

attncl_status attncl__fit_use(struct fit *fit, const struct op_class *cls,
                              const struct device_caps *limit)
{
    struct device_caps caps = *attncl__fit_get_caps(fit, cls, limit);

    caps.variant = limit->variant;
    if (caps.max_group > limit->max_group)
        caps.max_group = limit->max_group;
    return set_caps(fit, cls, &caps);
}

// Kernels support work-groups of a power of two, except two work-items.
static size_t round_down_group(size_t limit)
{
    size_t group = 1;

    while (2 * group <= limit)
        group *= 2;
    return group >= 4 ? group : 1;
}

attncl_status attncl__fit_reduce(struct fit *fit, const struct refused_op *refused,
                                 attncl_status failure, const struct device_caps *device,
                                 bool *retry_ret)
{
    const struct op_class *cls = refused->cls;
    const struct launch_refusal *reason = &refused->reason;
    const size_t group = round_down_group(reason->max_group);

    *retry_ret = false;
    if (!cls || !reason->refused)
        return failure;
    struct device_caps caps = *attncl__fit_get_caps(fit, cls, device);
    if (caps.variant == VARIANT_CPU)
        return failure;
    // Fewer work-items may not help, as with local memory or a kernel of fixed work-group size.
    if (reason->max_group == 0 || group >= caps.max_group || group == 1)
        caps.variant = VARIANT_CPU;
    else
        caps.max_group = group;
    attncl__log(failure == ATTNCL_ERR_COMPILE ? ATTNCL_LOG_WARN : ATTNCL_LOG_INFO,
                "%s: %s; recorded again %s", cls->name, attncl_last_error(),
                caps.variant == VARIANT_CPU ? "in the CPU variant" : "with smaller work-groups");

    TRY(set_caps(fit, cls, &caps));
    *retry_ret = true;
    return failure;
}
