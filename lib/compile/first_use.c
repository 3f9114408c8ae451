// SPDX-License-Identifier: MIT
//
// The first graph that is compiled for a GPU, with this version of the library and this driver, compares some ops
// with definitions on the host: a compiler that makes a mistake of a kernel is known before a user's numbers are
// wrong.  What was found is kept beside what attncl selftest finds, which checks far more.

#include "compile/first_use.h"

#include <math.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/worst_error.h"
#include "launch/command_list.h"

// The worst of 24 to 300 terms is below 1e-6 of the largest result; an element in the wrong place is not.
static const double max_error = 1e-5;

struct trial {
    attncl_context *ctx;
    const struct first_use_check *check;
    struct device_caps caps;
    struct tensor_desc in[GRAD_MAX_IN], out[GRAD_MAX_OUT];
    struct storage in_storage[FIRST_USE_INPUTS], out_storage, scratch;
    float *host_in[FIRST_USE_INPUTS], *host_out;
};

static void trial_close(struct trial *t)
{
    for (int i = 0; i < FIRST_USE_INPUTS; ++i) {
        attncl__buffer_release(&t->in_storage[i].mem);
        attncl__free(t->host_in[i]);
    }
    attncl__buffer_release(&t->out_storage.mem);
    attncl__buffer_release(&t->scratch.mem);
    attncl__free(t->host_out);
}

static struct op_sig sig_of(struct trial *t)
{
    const struct op_class *cls = t->check->cls;

    return (struct op_sig){.caps = &t->caps,
                           .params = t->check->params,
                           .n_in = cls->n_in,
                           .n_out = cls->n_out,
                           .in = t->in,
                           .out = t->out};
}

static attncl_status upload_input(struct trial *t, int i, uint32_t *random)
{
    struct storage *s = &t->in_storage[i];

    TRY(attncl__desc_make(ATTNCL_F32, t->check->in[i].rank, t->check->in[i].dim, &t->in[i]));
    const size_t count = (size_t)attncl__desc_count(&t->in[i]);
    s->bytes = count * sizeof(float);
    t->host_in[i] = attncl__alloc_array(count, sizeof(float));
    REQUIRE(t->host_in[i], ATTNCL_ERR_NO_MEMORY, "inputs of %s", t->check->name);
    for (size_t k = 0; k < count; ++k) {
        *random = *random * 1664525u + 1013904223u;
        t->host_in[i][k] = (float)(t->check->scale * (double)(int32_t)*random * 0x1p-31);
    }
    TRY(attncl__buffer_create(t->ctx, s->bytes, &s->mem));
    return attncl__buffer_write(t->ctx, s->mem, 0, t->host_in[i], s->bytes);
}

// Describes and creates what the op reads and writes.
static attncl_status trial_open(struct trial *t)
{
    struct op_sig sig = sig_of(t);
    uint32_t random = 1;

    for (int i = 0; i < FIRST_USE_INPUTS; ++i)
        if (t->check->in[i].rank > 0)
            TRY(upload_input(t, i, &random));
    TRY(t->check->cls->infer(&sig));
    if (t->check->cls->scratch)
        TRY(t->check->cls->scratch(&sig, &t->scratch.bytes));
    t->out_storage.bytes = attncl__desc_bytes(&t->out[0]);
    t->host_out = attncl__alloc(t->out_storage.bytes);
    REQUIRE(t->host_out, ATTNCL_ERR_NO_MEMORY, "the result of %s", t->check->name);
    if (t->scratch.bytes)
        TRY(attncl__buffer_create(t->ctx, t->scratch.bytes, &t->scratch.mem));
    TRY(attncl__buffer_create(t->ctx, t->out_storage.bytes, &t->out_storage.mem));
    return attncl__buffer_fill(t->ctx, t->out_storage.mem, CANARY_WORD, 0, t->out_storage.bytes);
}

static attncl_status execute(struct trial *t)
{
    attncl_status status = ATTNCL_OK;
    struct command_list list;
    struct launcher l = {.caps = &t->caps, .command_list = &list, .gemm = "native"};
    struct span in[GRAD_MAX_IN] = {{NULL}}, out[GRAD_MAX_OUT] = {{&t->out_storage}};
    const struct op_call call = {
        .sig = sig_of(t), .in = in, .out = out, .scratch = {t->scratch.bytes ? &t->scratch : NULL}};

    for (int i = 0; i < FIRST_USE_INPUTS; ++i)
        in[i].storage = t->check->in[i].rank > 0 ? &t->in_storage[i] : NULL;
    TRY(attncl__command_list_begin(t->ctx, &list));
    TRY_DONE(t->check->cls->launch(&l, &call));
    TRY_DONE(attncl__command_list_enqueue(&list, 0, NULL, NULL, NULL));
    TRY_DONE(attncl__buffer_read(t->ctx, t->out_storage.mem, 0, t->host_out, t->out_storage.bytes));
done:
    attncl__command_list_free(&list);
    return status;
}

// Every element: what a fixed row, column or lane gets wrong is in no sample for sure.  The largest product of a GPU
// takes the host some tenths of a second, less than the compiler takes for its kernel.
static struct worst_error compare_result(const struct trial *t)
{
    const float *in[FIRST_USE_INPUTS];
    const int64_t count = attncl__desc_count(&t->out[0]);
    struct worst_error worst = {0};

    memcpy(in, t->host_in, sizeof in);
    for (int64_t i = 0; i < count; ++i) {
        const double expected = t->check->expected(t->check, in, i);
        attncl__worst_error_add(&worst, i, (double)t->host_out[i], expected,
                                t->check->relative ? fabs(expected) : 1);
    }
    return worst;
}

// *failed: as attncl__first_use_judge().
static attncl_status judge_op(attncl_context *ctx, const struct device_caps *caps,
                              const struct first_use_check *check, char *failed)
{
    struct trial t = {.ctx = ctx, .check = check, .caps = *caps};
    attncl_status status = trial_open(&t);

    if (status == ATTNCL_OK)
        status = execute(&t);
    if (status == ATTNCL_ERR_COMPILE || status == ATTNCL_ERR_UNSUPPORTED) {
        attncl__log(ATTNCL_LOG_INFO, "%s is not compared: %s", check->name, attncl_last_error());
        status = ATTNCL_OK;
    } else if (status == ATTNCL_OK) {
        const struct worst_error worst = compare_result(&t);
        const double unit = check->relative ? 1 : worst.largest;
        char text[WORST_ERROR_BYTES];
        if (!attncl__error_within(&worst, max_error * unit))
            snprintf(failed, FINDING_BYTES, "%s (%s) is wrong by %.2g of %s: %s", check->name,
                     check->cls->name, worst.error / unit,
                     check->relative ? "an element" : "its largest element",
                     attncl__worst_error_text(&worst, text));
    }
    trial_close(&t);
    return status;
}

attncl_status attncl__first_use_judge(attncl_context *ctx, const struct device_caps *caps,
                                      char failed[FINDING_BYTES])
{
    struct first_use_check checks[N_FIRST_USE_CHECKS];

    failed[0] = '\0';
    attncl__first_use_checks(caps, checks);
    for (int i = 0; i < N_FIRST_USE_CHECKS && !*failed; ++i)
        TRY(judge_op(ctx, caps, &checks[i], failed));
    return ATTNCL_OK;
}

// What is known of a variant, or found now.  A comparison that cannot be made is no finding.
static void find(attncl_context *ctx, const struct device_caps *device, enum kernel_variant variant,
                 char failed[FINDING_BYTES])
{
    static const struct finding_source sources[] = {
        [VARIANT_CPU] = {.what = "kernels cpu",
                         .otherwise = "kernels of one work-item are not compared",
                         .judge = attncl__first_use_judge},
        [VARIANT_GPU] = {.what = "kernels gpu",
                         .otherwise = "kernels are not compared",
                         .judge = attncl__first_use_judge},
    };
    struct device_caps caps = *device;

    caps.variant = variant;
    if (!attncl__finding_read(ctx, sources[variant].what, failed) &&
        !attncl__finding_make(ctx, &caps, &sources[variant], failed))
        *failed = '\0';
}

static void judge_device(attncl_context *ctx, const struct device_caps *caps)
{
    char failed[FINDING_BYTES] = "", failed_too[FINDING_BYTES] = "";

    find(ctx, caps, VARIANT_GPU, failed);
    ctx->variant = VARIANT_GPU;
    if (!*failed)
        return;
    find(ctx, caps, VARIANT_CPU, failed_too);
    ctx->variant = VARIANT_CPU;
    snprintf(ctx->variant_fault, sizeof ctx->variant_fault, "%s", failed_too);
    attncl__log(ATTNCL_LOG_WARN, "%s with driver %s: %s; its GPU kernels are not used",
                ctx->info.name, ctx->info.driver_version, failed);
}

attncl_status attncl__choose_variant(attncl_context *ctx, struct device_caps *caps)
{
    if (!caps->is_gpu || caps->variant != VARIANT_GPU || attncl__context_env(ctx, ENV_VARIANT))
        return ATTNCL_OK;
    pthread_mutex_lock(&ctx->variant_lock);
    if (!ctx->variant_known)
        judge_device(ctx, caps);
    ctx->variant_known = true;
    pthread_mutex_unlock(&ctx->variant_lock);
    caps->variant = ctx->variant;
    REQUIRE(!*ctx->variant_fault, ATTNCL_ERR_UNSUPPORTED,
            "%s with driver %s computes wrongly, with one work-item a work-group too: %s; "
            "ATTNCL_VARIANT=gpu uses it all the same",
            ctx->info.name, ctx->info.driver_version, ctx->variant_fault);
    return ATTNCL_OK;
}
