// SPDX-License-Identifier: MIT
//
// Runs the probes that a graph needs (probe_table.c) and enables or disables features by their verdicts.

#include "compile/probes.h"

#include "attncl/kinds.h"

// True if `attncl tune` found that 3xTF32 (three TF32 GEMMs in place of a float one) is faster.
static bool is_3xtf32_faster(const struct device_caps *caps, enum feature feature)
{
    const int *tuned = attncl__tuned(caps, TUNE_THREE_TERMS,
                                     feature == GEMM_MMA ? TUNE_OF_GEMM : TUNE_OF_ATTENTION);

    return tuned && tuned[THREE_TERMS_USED];
}

// WMMA and DPAS (the default case) take 16-bit factors, and attention has no tiles for them.
static bool mma_is_candidate(const struct device_caps *caps, enum feature feature)
{
    switch (caps->mma_candidate) {
    case MMA_NONE:
        return false;
    case MMA_PTX:
        return caps->precision != GEMM_F32 || is_3xtf32_faster(caps, feature);
    case MMA_MFMA:
        return true;
    default:
        return caps->precision == GEMM_BF16 && feature == GEMM_MMA;
    }
}

static bool is_candidate(const attncl_context *ctx, const struct device_caps *caps,
                         enum feature feature)
{
    const char *shuffles = attncl__context_env(ctx, ENV_SHUFFLE);

    if (caps->variant != VARIANT_GPU)
        return false;
    switch (feature) {
    case GPU_VARIANT:
        return caps->is_gpu && !attncl__context_env(ctx, ENV_VARIANT);
    case SHUFFLES:
        return caps->shuffle_candidate != SHUFFLE_NONE &&
               !(shuffles && strcmp(shuffles, "off") == 0);
    case CLBLAST: // not a candidate if the user chose a backend or matrix instructions are surely faster
        return caps->clblast_candidate && caps->mma == MMA_NONE &&
               !attncl__context_env(ctx, ENV_GEMM);
    default:
        return mma_is_candidate(caps, feature);
    }
}

static void set_feature(struct device_caps *caps, enum feature feature, bool enabled)
{
    const enum matrix_instruction mma = enabled ? caps->mma_candidate : MMA_NONE;

    switch (feature) {
    case GPU_VARIANT:
        caps->variant = enabled ? VARIANT_GPU : VARIANT_CPU;
        break;
    case SHUFFLES:
        caps->shuffle = enabled ? caps->shuffle_candidate : SHUFFLE_NONE;
        break;
    case GEMM_MMA:
        caps->mma = mma;
        break;
    case CLBLAST:
        caps->clblast = enabled;
        break;
    case ATTENTION_MMA:
        caps->attention_mma = mma;
        break;
    case ATTENTION_BWD_MMA:
        caps->attention_bwd_mma = mma;
    }
}

static attncl_status run_trials(attncl_context *ctx, const struct device_caps *caps,
                                const void *user, char why[PROBE_WHY_BYTES])
{
    const struct op_probe *probe = user;
    struct device_caps without = *caps;

    set_feature(&without, probe->feature, false);
    for (int i = 0; i < probe->n_trials; ++i) {
        const attncl_status status =
            attncl__op_trial_compare(ctx, &probe->trials[i], &without, caps, NULL);
        if (status != ATTNCL_ERR_UNSUPPORTED)
            TRY(status);
    }
    attncl__programs_build(ctx);
    for (int i = 0; i < probe->n_trials && !*why; ++i)
        TRY(attncl__op_trial_compare(ctx, &probe->trials[i], &without, caps, why));
    return ATTNCL_OK;
}

// Writes "softmax gpu", or "softmax gpu 32" for smaller work-groups than the device's.
static void write_probe_name(const attncl_context *ctx, const struct op_probe *probe,
                             const struct device_caps *caps, char ret[PROBE_NAME_BYTES])
{
    static const char *const precisions[N_GEMM_PRECISIONS] = {" f32", " tf32", " bf16"};
    static const char *const variants[] = {[VARIANT_CPU] = " cpu", [VARIANT_GPU] = " gpu"};
    const bool has_precision = probe->feature != SHUFFLES && probe->feature != CLBLAST;
    char group[24] = "";

    if (caps->max_group < ctx->caps.max_group)
        snprintf(group, sizeof group, " %zu", caps->max_group);
    snprintf(ret, PROBE_NAME_BYTES, "%s%s%s", probe->name,
             probe->feature == GPU_VARIANT ? variants[caps->variant]
             : has_precision               ? precisions[caps->precision]
                                           : "",
             group);
}

// Probes the feature's kernels, or, with candidate false, those used without the feature.
static enum probe_verdict probe_feature(attncl_context *ctx, struct device_caps caps,
                                        const struct op_probe *probe, bool enabled,
                                        enum probe_mode mode, char why[PROBE_WHY_BYTES])
{
    char name[PROBE_NAME_BYTES];

    set_feature(&caps, probe->feature, enabled);
    if (caps.mma_candidate == MMA_MFMA)
        caps.precision = GEMM_F32; // MFMA computes in float at every precision
    write_probe_name(ctx, probe, &caps, name);
    return attncl__probe_get_verdict(ctx, &caps, &(struct probe){name, run_trials, probe}, mode,
                                     why);
}

static bool is_covered(const struct lowered *p, const struct lowered_node *node,
                       const struct op_probe *probe)
{
    const struct op_class *const *c = probe->covers;
    const int32_t *activation = probe->of_functions ? node->params : NULL;
    double flop, bytes;
    struct op_sig sig;

    while (c && *c && *c != node->cls)
        ++c;
    if (node->dead || (c && !*c))
        return false;
    if (activation && (*activation == ATTNCL_IDENTITY || *activation == ATTNCL_RELU))
        return false;
    if (probe->min_flop == 0)
        return true;
    attncl__lowered_fill_sig(p, node, &sig);
    attncl__op_cost(node->cls, &sig, &flop, &bytes);
    return flop >= probe->min_flop;
}

static bool is_needed(const struct lowered *p, const struct op_probe *probe)
{
    for (int n = 0; n < p->n_nodes; ++n)
        if (is_covered(p, &p->nodes[n], probe))
            return true;
    return false;
}

// A look-up treats kernels that were never compared as right.
static bool counts_as_right(enum probe_verdict verdict, enum probe_mode mode)
{
    return verdict == PROBE_PASSED || (verdict == PROBE_UNKNOWN && mode == PROBE_LOOK_UP);
}

// Ops whose kernels are wrong fall back to work-groups of one sub-group, which share little, else to one work-item per
// work-group; the first that is right.
static attncl_status fall_back(attncl_context *ctx, const struct lowered *p,
                               const struct op_probe *probe, struct fit *fit)
{
    enum { SMALL_GROUP = 32 };
    struct device_caps caps = *p->caps;
    char why[PROBE_WHY_BYTES];

    caps.max_group = SMALL_GROUP;
    if (p->caps->max_group <= SMALL_GROUP ||
        !counts_as_right(probe_feature(ctx, caps, probe, true, fit->probes, why), fit->probes)) {
        caps = *p->caps;
        set_feature(&caps, probe->feature, false);
        REQUIRE(probe_feature(ctx, *p->caps, probe, false, fit->probes, why) != PROBE_FAILED,
                ATTNCL_ERR_UNSUPPORTED,
                "%s with driver %s computes wrongly, with one work-item a work-group too: %s; "
                "ATTNCL_VARIANT=gpu uses it all the same",
                ctx->info.name, ctx->info.driver_version, why);
    }
    for (const struct op_class *const *c = probe->covers; *c; ++c)
        TRY(attncl__fit_use(fit, *c, &caps));
    return ATTNCL_OK;
}

attncl_status attncl__apply_probes(attncl_context *ctx, struct fit *fit, struct lowered *p)
{
    const enum probe_mode mode = fit ? fit->probes : PROBE_LOOK_UP;
    char why[PROBE_WHY_BYTES];

    for (int i = 0; i < attncl__n_probes; ++i) {
        const enum feature feature = attncl__probes[i].feature;
        if (!is_candidate(ctx, p->caps, feature) || !is_needed(p, &attncl__probes[i]))
            continue;
        const enum probe_verdict verdict =
            probe_feature(ctx, *p->caps, &attncl__probes[i], true, mode, why);
        if (feature != GPU_VARIANT)
            set_feature(p->caps, feature, counts_as_right(verdict, mode));
        else if (verdict == PROBE_FAILED && fit)
            TRY(fall_back(ctx, p, &attncl__probes[i], fit));
    }
    return ATTNCL_OK;
}
