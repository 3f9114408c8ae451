// SPDX-License-Identifier: MIT
// The pass that settles which kernels this device may run: compared at first use, where a graph has an op that they concern.
#ifndef ATTNCL_COMPILE_PROBES_H
#define ATTNCL_COMPILE_PROBES_H

#include "compile/lowered.h"

// -- op_trial.c: one op with made-up inputs, compared with its definition on the host or with itself by other kernels

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
    unsigned compute_units;        // 0: the device's
    double max_error[N_GEMM_PRECISIONS]; // by the candidate's precision
    // The scale of an error of element i.  NULL: the largest value of the result.
    double (*unit)(int result, int64_t i, double expected);
    // A row of result 0, in double: all axes but the last are one.  NULL: the kernels of the reference give all results.
    void (*expected)(const struct op_trial *t, const float *const *in, int64_t row, double *ret);
};

// why: unchanged where the kernels that `candidate` chooses agree, else the reason.  With `expected`, a kernel that the device
// refuses or does not build is no mistake: compilation reports it or falls back.  Without it, the candidate must have a
// program of its own.  Without `why` nothing is compared: programs that it would need are wanted
// (attncl__program_want()).
attncl_status attncl__op_trial_compare(attncl_context *ctx, const struct op_trial *trial,
                                       const struct device_caps *reference,
                                       const struct device_caps *candidate, char *why);

// -- probes.c, probe_table.c

// What is turned on where its trials agree with those without it, or with the host.
enum feature { GPU_VARIANT, SHUFFLES, GEMM_MMA, CLBLAST, ATTENTION_MMA, ATTENTION_BWD_MMA };

struct op_probe {
    const char *name; // then a variant or precision: "softmax gpu", "mma gemm f32"
    enum feature feature;
    const struct op_class *const *covers; // run for these, NULL: for all; GPU_VARIANT: falls back
    const struct op_trial *trials;
    int n_trials;
    double min_flop;   // of an op that it is run for
    bool of_functions; // only where its activation, its first parameter, is neither none nor ReLU
};
extern const struct op_probe attncl__probes[];
extern const int attncl__n_probes;

// Sets p->caps->shuffle, mma, clblast, attention_mma, attention_bwd_mma, and puts ops whose kernels are wrong into `fit`, with
// smaller work-groups or in the CPU variant.  ERR_UNSUPPORTED where they are wrong there too.  fit->probes, LOOK_UP without `fit`: whether kernels are compared
// now, or what was not compared yet counts as right.
attncl_status attncl__apply_probes(attncl_context *ctx, struct fit *fit, struct lowered *p);

#endif
