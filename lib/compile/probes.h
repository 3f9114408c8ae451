// SPDX-License-Identifier: MIT
// The pass that decides which kernels this device may use.  Kernels are compared at first use, when a graph has an op
// that needs them.
#ifndef ATTNCL_COMPILE_PROBES_H
#define ATTNCL_COMPILE_PROBES_H

#include "compile/lowered.h"

// -- op_trial.c: one op with random inputs, compared with a host reference or with the same op's other kernels

struct op_trial {
    const struct op_class *cls;
    const void *params;
    struct {
        int rank;       // 0: taken from `before`, or absent
        int64_t dim[4]; // 0: an extent that gives each compute unit two of the largest tiles
    } in[GRAD_MAX_IN];
    double scale; // inputs are in [-scale, scale]
    bool whole;   // inputs are whole numbers
    // The op whose results this one reads; it runs with the reference's kernels.
    const struct op_trial *before;
    signed char from[GRAD_MAX_IN];       // by input: 1 + the result of `before` that it is; 0: none
    unsigned compute_units;              // 0: the device's
    double max_error[N_GEMM_PRECISIONS]; // by the candidate's precision, in units
    // The unit of element i's error.  NULL: the largest value of the result.
    double (*unit)(int result, int64_t i, double expected);
    // Computes a row (last axis) of result 0, in double.  NULL: the reference's kernels compute all results.
    void (*expected)(const struct op_trial *t, const float *const *in, int64_t row, double *ret);
};

// Compares the kernels that `candidate` chooses.  why: unchanged if they are right, else the reason.  With `expected`,
// a kernel that the device refuses or cannot build counts as right: compilation reports it or falls back.  Without it,
// the candidate must use another program than the reference.  why NULL: only requests the programs
// (attncl__program_request()).
attncl_status attncl__op_trial_compare(attncl_context *ctx, const struct op_trial *trial,
                                       const struct device_caps *reference,
                                       const struct device_caps *candidate, char *why);

// -- probes.c, probe_table.c

// Features that are enabled once their trials pass.
enum feature { GPU_VARIANT, SHUFFLES, GEMM_MMA, CLBLAST, ATTENTION_MMA, ATTENTION_BWD_MMA };

struct op_probe {
    const char *name; // a variant or precision is appended: "softmax gpu", "mma gemm f32"
    enum feature feature;
    const struct op_class *const *covers; // op classes that need the probe; NULL: all
    const struct op_trial *trials;
    int n_trials;
    double min_flop;   // smaller ops do not need it
    bool of_functions; // needed only by ops whose activation is neither identity nor ReLU
};
extern const struct op_probe attncl__probes[];
extern const int attncl__n_probes;

// Sets shuffle, mma, clblast, attention_mma and attention_bwd_mma of p->caps.  Puts ops whose kernels are wrong into
// `fit`, with smaller work-groups or in the CPU variant; ERR_UNSUPPORTED when those are wrong too.  fit->probes
// (PROBE_LOOK_UP without `fit`) says whether to compare kernels now.
attncl_status attncl__apply_probes(attncl_context *ctx, struct fit *fit, struct lowered *p);

#endif
