// SPDX-License-Identifier: MIT
//
// Whether GEMMs use the matrix instruction that the device's architecture has: they do where, at first use on this
// device with this driver, a small GEMM of integers is exact, and one of random numbers agrees with that by FMAs and
// takes less time.  What was found is kept beside what attncl selftest finds.

#include "gemm/mma_choice.h"

#include <math.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/worst_error.h"
#include "gemm/gemm.h"
#include "launch/command_list.h"

static const char *const precision_names[N_GEMM_PRECISIONS] = {"f32", "tf32", "bf16"};
static const char *const mma_names[N_MATRIX_INSTRUCTIONS] = {"none", "PTX mma", "MFMA", "WMMA",
                                                             "WMMA", "DPAS",    "DPAS"};

enum { FACTOR_A, FACTOR_B, RESULT, N_MATRICES };

struct trial {
    attncl_context *ctx;
    struct device_caps caps;
    struct gemm g;
    struct storage storage[N_MATRICES];
    float *host[N_MATRICES];
    size_t count[N_MATRICES];
};

static void trial_close(struct trial *t)
{
    for (int i = 0; i < N_MATRICES; ++i) {
        attncl__buffer_release(&t->storage[i].mem);
        attncl__free(t->host[i]);
    }
}

// C [m, n] = A [m, k] B [k, n]; closed by the caller, after a failure too.
static attncl_status trial_open(struct trial *t, attncl_context *ctx,
                                const struct device_caps *caps, int m, int n, int k)
{
    *t = (struct trial){
        .ctx = ctx,
        .caps = *caps,
        .g = GEMM_OF(1, m, n, k),
        .count = {(size_t)m * (size_t)k, (size_t)k * (size_t)n, (size_t)m * (size_t)n}};
    for (int i = 0; i < N_MATRICES; ++i) {
        t->host[i] = attncl__alloc_array(t->count[i], sizeof(float));
        REQUIRE(t->host[i], ATTNCL_ERR_NO_MEMORY, "a GEMM of %d x %d x %d", m, n, k);
        t->storage[i].bytes = t->count[i] * sizeof(float);
        TRY(attncl__buffer_create(ctx, t->storage[i].bytes, &t->storage[i].mem));
    }
    t->g.a = (struct gemm_matrix){.span = {&t->storage[FACTOR_A]}, .ld = k};
    t->g.b = (struct gemm_matrix){.span = {&t->storage[FACTOR_B]}, .ld = n};
    t->g.c = (struct gemm_matrix){.span = {&t->storage[RESULT]}, .ld = n};
    return ATTNCL_OK;
}

static attncl_status upload(struct trial *t)
{
    for (int i = FACTOR_A; i <= FACTOR_B; ++i)
        TRY(attncl__buffer_write(t->ctx, t->storage[i].mem, 0, t->host[i], t->storage[i].bytes));
    return ATTNCL_OK;
}

// By the instruction or by FMAs; the result is in host[RESULT], *seconds_ret the least of some runs,
// *done_ret false where the kernel does not build or does not fit.
static attncl_status multiply(struct trial *t, enum matrix_instruction mma, double *seconds_ret,
                              bool *done_ret)
{
    enum { N_RUNS = 4 };
    attncl_status status = ATTNCL_OK;
    struct command_list list;
    struct launcher l = {.caps = &t->caps, .command_list = &list, .gemm = "native"};

    t->caps.mma = mma;
    *seconds_ret = INFINITY;
    TRY(attncl__buffer_fill(t->ctx, t->storage[RESULT].mem, CANARY_WORD, 0,
                            t->storage[RESULT].bytes));
    TRY(attncl__command_list_begin(t->ctx, &list));
    TRY_DONE(attncl__gemm(&l, &t->g));
    *done_ret = strstr(list.commands[0].name, mma ? "_mma" : "gemm") != NULL;
    for (int i = 0; i < N_RUNS; ++i) {
        double seconds = 0;
        TRY_DONE(attncl__command_list_time(&list, &seconds));
        *seconds_ret = fmin(*seconds_ret, seconds);
    }
    TRY_DONE(attncl__buffer_read(t->ctx, t->storage[RESULT].mem, 0, t->host[RESULT],
                                 t->storage[RESULT].bytes));
done:
    attncl__command_list_free(&list);
    return status;
}

// Integers that any precision has, whose sums floats have: a lane with another element than it
// should have is seen.
static attncl_status multiply_integers(attncl_context *ctx, const struct device_caps *caps,
                                       char failed[FINDING_BYTES])
{
    enum { TILE = 64, TERMS = 16 };
    attncl_status status = ATTNCL_OK;
    struct worst_error worst = {0};
    struct trial t;
    double seconds = 0;
    bool done = false;
    char text[WORST_ERROR_BYTES];

    TRY_DONE(trial_open(&t, ctx, caps, TILE, TILE, TERMS));
    t.caps.compute_units = 1; // for more, such a tile is not worth it
    for (int i = 0; i < TILE; ++i)
        for (int k = 0; k < TERMS; ++k) {
            t.host[FACTOR_A][i * TERMS + k] = (float)((i * 37 + k * 11) % 251 - 125);
            t.host[FACTOR_B][k * TILE + i] = (float)((i * 53 + k * 29) % 241 - 120);
        }
    TRY_DONE(upload(&t));
    TRY_DONE(multiply(&t, caps->mma_candidate, &seconds, &done));
    if (!done) {
        snprintf(failed, FINDING_BYTES, "its kernel does not build or does not fit");
        goto done;
    }
    for (int i = 0; i < TILE; ++i)
        for (int j = 0; j < TILE; ++j) {
            int sum = 0;
            for (int k = 0; k < TERMS; ++k)
                sum += (int)t.host[FACTOR_A][i * TERMS + k] * (int)t.host[FACTOR_B][k * TILE + j];
            const int at = i * TILE + j;
            attncl__worst_error_add(&worst, at, (double)t.host[RESULT][at], sum, 1);
        }
    if (!attncl__error_within(&worst, 0))
        snprintf(failed, FINDING_BYTES, "a GEMM of integers is wrong: %s",
                 attncl__worst_error_text(&worst, text));
done:
    trial_close(&t);
    return status;
}

// Rows of a square GEMM that takes about a millisecond.
static int trial_extent(const struct device_caps *caps)
{
    enum { STEP = 128, MAX_EXTENT = 2048 };
    const double n = cbrt(1e-3 * caps->flop_per_second / 2);

    return n < STEP ? STEP : n > MAX_EXTENT ? MAX_EXTENT : (int)n / STEP * STEP;
}

static void fill_randomly(struct trial *t)
{
    uint32_t random = 1;

    for (int f = FACTOR_A; f <= FACTOR_B; ++f)
        for (size_t i = 0; i < t->count[f]; ++i) {
            random = random * 1664525u + 1013904223u;
            t->host[f][i] = (float)(int32_t)random * 0x1p-31f;
        }
}

// Differences from FMAs, as a share of the mean of sum |a b|; *speed_ret: times as fast.
static attncl_status compare_with_fmas(attncl_context *ctx, const struct device_caps *caps,
                                       struct worst_error *worst_ret, double *speed_ret)
{
    attncl_status status = ATTNCL_OK;
    const int n = trial_extent(caps);
    const double mean_sum = n / 4.0;
    float *by_fmas = attncl__alloc_array((size_t)n * (size_t)n, sizeof(float));
    struct trial t = {0};
    double seconds[2] = {0};
    bool done = false;

    *worst_ret = (struct worst_error){0};
    if (!by_fmas) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "a matrix of %d x %d", n, n);
        goto done;
    }
    TRY_DONE(trial_open(&t, ctx, caps, n, n, n));
    fill_randomly(&t);
    TRY_DONE(upload(&t));
    TRY_DONE(multiply(&t, MMA_NONE, &seconds[0], &done));
    memcpy(by_fmas, t.host[RESULT], t.storage[RESULT].bytes);
    TRY_DONE(multiply(&t, caps->mma_candidate, &seconds[1], &done));
    for (size_t i = 0; i < t.count[RESULT]; ++i)
        attncl__worst_error_add(worst_ret, (int64_t)i, (double)t.host[RESULT][i],
                                (double)by_fmas[i], mean_sum);
    *speed_ret = seconds[0] / seconds[1];
done:
    attncl__free(by_fmas);
    trial_close(&t);
    return status;
}

attncl_status attncl__mma_judge(attncl_context *ctx, const struct device_caps *caps,
                                double min_speed, char failed[FINDING_BYTES])
{
    // Twice what rounding the factors may change.
    static const double max_error[N_GEMM_PRECISIONS] = {0x1p-20, 0x1p-9, 0x1p-6};
    const double bound = max_error[caps->precision];
    struct worst_error worst;
    char text[WORST_ERROR_BYTES];
    double speed = 0;

    failed[0] = '\0';
    TRY(multiply_integers(ctx, caps, failed));
    if (*failed)
        return ATTNCL_OK;
    TRY(compare_with_fmas(ctx, caps, &worst, &speed));
    if (!attncl__error_within(&worst, bound))
        snprintf(failed, FINDING_BYTES,
                 "differs from FMAs by %.3g of sum |a b|, more than %.3g: %s", worst.error, bound,
                 attncl__worst_error_text(&worst, text));
    else if (speed < min_speed)
        snprintf(failed, FINDING_BYTES, "%.2f times as fast as FMAs, less than %.2f", speed,
                 min_speed);
    return ATTNCL_OK;
}

static bool is_usable(attncl_context *ctx, const struct device_caps *caps, const char *kernels,
                      attncl__mma_judge_fn judge)
{
    const double min_speed = 1.05;
    const char *precision = precision_names[caps->precision];
    char failed[FINDING_BYTES] = "", what[32];

    snprintf(what, sizeof what, "mma %s%s", kernels, precision);
    if (!attncl__finding_read(ctx, what, failed)) {
        if (judge(ctx, caps, min_speed, failed) != ATTNCL_OK) {
            attncl__log(ATTNCL_LOG_WARN, "%s, %s%s, is not used: %s",
                        mma_names[caps->mma_candidate], kernels, precision, attncl_last_error());
            return false;
        }
        if (attncl__finding_keep(ctx, what, failed) != ATTNCL_OK)
            attncl__log(ATTNCL_LOG_INFO, "%s is compared again in the next context: %s", what,
                        attncl_last_error());
    }
    attncl__log(ATTNCL_LOG_INFO, "%s, %s%s, is %sused%s%s", mma_names[caps->mma_candidate], kernels,
                precision, *failed ? "not " : "", *failed ? ": " : "", failed);
    return *failed == '\0';
}

enum matrix_instruction attncl__mma_choose(attncl_context *ctx, struct device_caps *caps,
                                           enum mma_kernels kernels, attncl__mma_judge_fn judge)
{
    static const char *const names[N_MMA_KERNELS] = {[MMA_GEMM] = "",
                                                     [MMA_ATTENTION] = "attention ",
                                                     [MMA_ATTENTION_BWD] = "attention gradients "};

    if (caps->mma_candidate == MMA_NONE || caps->variant != VARIANT_GPU)
        return MMA_NONE;
    if (caps->mma_candidate == MMA_MFMA)
        caps->precision = GEMM_F32; // it computes in float, whatever is asked for
    // WMMA and DPAS have factors of 16 bits, and attention has no tiles for them.
    if (caps->mma_candidate > MMA_MFMA && (caps->precision != GEMM_BF16 || kernels != MMA_GEMM))
        return MMA_NONE;
    pthread_mutex_lock(&ctx->mma_lock);
    bool *known = &ctx->mma_known[kernels][caps->precision];
    bool *usable = &ctx->mma_usable[kernels][caps->precision];
    if (!*known) {
        *usable = is_usable(ctx, caps, names[kernels], judge);
        *known = true;
    }
    const bool use = *usable;
    pthread_mutex_unlock(&ctx->mma_lock);
    return use ? caps->mma_candidate : MMA_NONE;
}

void attncl__gemm_choose_mma(attncl_context *ctx, struct device_caps *caps)
{
    caps->mma = attncl__mma_choose(ctx, caps, MMA_GEMM, attncl__mma_judge);
}
