// SPDX-License-Identifier: MIT
// One op with made-up inputs, compared with its definition on the host or with itself by other kernels.
#ifndef ATTNCL_COMPILE_OP_TRIAL_H
#define ATTNCL_COMPILE_OP_TRIAL_H

#include "device/probe.h"
#include "op/op.h"

struct op_trial {
    const struct op_class *cls;
    const void *params;
    struct {
        int rank;       // 0: the input that `before` has, if any
        int64_t dim[4]; // 0: rows or columns that give each compute unit two of the largest tiles
    } in[GRAD_MAX_IN];
    double scale;                  // inputs are in -scale .. scale
    bool whole;                    // whole numbers
    const struct op_trial *before; // whose results this one reads, by the kernels of the reference
    signed char from[GRAD_MAX_IN]; // 1 + the result of `before` that the input is; 0: none
    unsigned sub_groups;           // of a work-group, at most; 0: as the device allows
    unsigned compute_units;        // 0: the device's
    double max_error[N_GEMM_PRECISIONS]; // by the candidate's precision
    // What errors of element i are shares of.  NULL: of the result's largest.
    double (*unit)(int result, int64_t i, double expected);
    // Element i of result 0, in double.  NULL: the kernels of the reference give all results.
    double (*expected)(const struct op_trial *t, const float *const *in, int64_t i);
};

// why: unchanged where the kernels that `candidate` chooses agree, else the reason.  With `expected`, a kernel that the device
// refuses or does not build is no mistake: compilation reports it or falls back.  Without it, the candidate must have a
// program of its own.
attncl_status attncl__op_trial_compare(attncl_context *ctx, const struct op_trial *trial,
                                       const struct device_caps *reference,
                                       const struct device_caps *candidate,
                                       char why[PROBE_WHY_BYTES]);

#endif
