// SPDX-License-Identifier: MIT
// The pass that settles which kernels this device may run: compared at first use, where a graph has an op that they concern.
#ifndef ATTNCL_COMPILE_PROBES_H
#define ATTNCL_COMPILE_PROBES_H

#include "compile/lowered.h"
#include "compile/op_trial.h"

// What is turned on where its trials agree with those without it, or with the host.
enum feature { GPU_VARIANT, SHUFFLES, GEMM_MMA, ATTENTION_MMA, ATTENTION_BWD_MMA };

struct op_probe {
    const char *name; // then a variant or precision: "softmax gpu", "mma gemm f32"
    enum feature feature;
    const struct op_class *const
        *covers; // run for these; NULL: for all.  GPU_VARIANT: what falls back
    const struct op_trial *trials;
    int n_trials;
};
extern const struct op_probe attncl__probes[];
extern const int attncl__n_probes;

// Sets p->caps->shuffle, mma, attention_mma, attention_bwd_mma, and puts ops whose kernels are wrong into `fit`, in the CPU
// variant.  ERR_UNSUPPORTED where they are wrong there too.  fit->probes, LOOK_UP without `fit`: whether kernels are compared
// now, or what was not compared yet counts as right.
attncl_status attncl__apply_probes(attncl_context *ctx, struct fit *fit, struct lowered *p);

#endif
