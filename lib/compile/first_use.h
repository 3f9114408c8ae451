// SPDX-License-Identifier: MIT
// Whether a GPU's kernels give what they should: compared with the host at first use, kept by version, device and
// driver.
#ifndef ATTNCL_COMPILE_FIRST_USE_H
#define ATTNCL_COMPILE_FIRST_USE_H

#include "device/context.h"
#include "op/op.h"

// On a GPU without ATTNCL_VARIANT: caps->variant becomes that of the CPU where a kernel of the GPU variant is
// wrong.  ERR_UNSUPPORTED where the CPU variant is wrong there too.  Any thread.
attncl_status attncl__choose_variant(attncl_context *ctx, struct device_caps *caps);

// One op with small inputs.
enum { FIRST_USE_INPUTS = 4 };
struct first_use_check {
    const char *name; // for messages: "a softmax"
    const struct op_class *cls;
    const void *params;
    struct {
        int rank;
        int64_t dim[4];
    } in[FIRST_USE_INPUTS]; // rank 0: absent
    double scale;           // inputs are in -scale .. scale
    bool relative;          // each element is compared by itself, else with the largest
    // Element i of the result, in double.
    double (*expected)(const struct first_use_check *c, const float *const *in, int64_t i);
};

// The checks for this device, the largest product with tiles for all of its compute units.
enum { N_FIRST_USE_CHECKS = 10 };
void attncl__first_use_checks(const struct device_caps *caps,
                              struct first_use_check ret[N_FIRST_USE_CHECKS]);

// The comparison alone, of the kernels that `caps` choose.  failed: what is wrong, "" where nothing is.  What the
// device refuses or its compiler does not build is no mistake: compilation tells or goes round it.
attncl_status attncl__first_use_judge(attncl_context *ctx, const struct device_caps *caps,
                                      char failed[FINDING_BYTES]);

#endif
