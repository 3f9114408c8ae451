// SPDX-License-Identifier: MIT
// Ops whose kernels a device refuses in the work-groups that its capabilities allow, or its compiler does not build:
// they are recorded again with smaller ones, in the end with the CPU variant's, of one work-item each.
#ifndef ATTNCL_COMPILE_FIT_H
#define ATTNCL_COMPILE_FIT_H

#include "attncl/kinds.h"
#include "device/probe.h"
#include "op/op.h"

// The capabilities of the classes that were lowered, and what the graph asks for.  Empty at first.
struct fit {
    attncl_precision precision;
    enum probe_mode probes;
    int n_queues; // 0: as the environment says, else 1
    struct fitted_op *ops;
    int n;
};
void attncl__fit_free(struct fit *fit);

// The device's own, where the class was not lowered.  fit: may be NULL, for none.
const struct device_caps *attncl__fit_caps(const struct fit *fit, const struct op_class *cls,
                                           const struct device_caps *device);

// From now on the class runs in the CPU variant.
attncl_status attncl__fit_use_cpu(struct fit *fit, const struct op_class *cls,
                                  const struct device_caps *device);

// The class that could not be planned or recorded, and why not.
struct refused_op {
    const struct op_class *cls;
    struct launch_refusal reason;
};

// After `failure`.  *lowered_ret: whether there are smaller work-groups to try.
attncl_status attncl__fit_lower(struct fit *fit, const struct refused_op *refused,
                                attncl_status failure, const struct device_caps *device,
                                bool *lowered_ret);

#endif
