// SPDX-License-Identifier: MIT
//
// Tunes a device: for each kernel and class of shapes, times every candidate against the built-in choice,
// then the best candidate again.
//
// One of a dozen candidates looks faster by chance.  So a candidate must win twice, interleaved with the
// built-in choice, by its fastest and by its median run.

#include "attncl/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "base/struct.h"
#include "base/suggest.h"
#include "device/program.h"
#include "store/tuning_table.h"
#include "tune/internal.h"

static const double default_seconds = 20.0;

struct tuner {
    attncl_context *ctx;
    attncl_tune_options options;
    attncl_tune_summary summary;
    bool measured[N_TUNABLES][TUNE_MAX_CLASSES];
    double flop_per_second; // of a small GEMM: a lower bound, to skip workloads that take too long
    double deadline;
};

static attncl_status read_options(const attncl_tune_options *given, attncl_tune_options *ret)
{
    attncl_tune_options o = ATTNCL_TUNE_OPTIONS_INIT;

    if (given)
        TRY(STRUCT_READ(attncl_tune_options, &o, given));
    REQUIRE(o.seconds >= 0 && o.seconds <= 1e6, ATTNCL_ERR_ARGUMENT, "%g seconds to tune in",
            o.seconds);
    if (o.seconds == 0)
        o.seconds = default_seconds;
    *ret = o;
    return ATTNCL_OK;
}

static bool takes_part(const struct tuner *t, int kernel)
{
    const struct device_caps *caps = &t->ctx->caps;
    const struct tune_kernel *k = &attncl__tune_kernels[kernel];

    if (t->options.kernel && strcmp(t->options.kernel, k->name) != 0)
        return false;
    return (k->variants & (1u << caps->variant)) &&
           (kernel != TUNE_GEMM_BACKEND || caps->clblast_candidate) &&
           (kernel != TUNE_THREE_TERMS ||
            (caps->mma_candidate == MMA_PTX && caps->precision == GEMM_F32));
}

static int count_trials(const struct tuner *t)
{
    int n = 0;

    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; takes_part(t, k) && attncl__tune_kernels[k].classes[c]; ++c)
            ++n;
    return n;
}

static attncl_status measure_rate(struct tuner *t)
{
    static const struct workload small = {.kind = WORK_GEMM, .size = {64, 64, 64}};
    attncl_status status = ATTNCL_OK;
    struct workload_data data = {.flop = 0};
    struct variant variant = {.graph = NULL};
    double seconds = 0;

    TRY_DONE(attncl__workload_fill(t->ctx, &small, &data));
    TRY_DONE(attncl__variant_begin(t->ctx, &small, &data, &variant));
    for (int i = 0; i < 3; ++i) { // the fastest of three, against background load
        TRY_DONE(attncl__variant_measure(&variant, 1, &seconds));
        t->flop_per_second = fmax(t->flop_per_second, data.flop / fmax(seconds, 1e-6));
    }

done:
    attncl__variant_end(&variant);
    attncl__workload_clear(&data);
    return status;
}

static void report_trial(const struct tuner *t, const struct tuning_trial *trial, const char *note)
{
    struct strbuf row = STRBUF_EMPTY, names = STRBUF_EMPTY;
    attncl_tune_result result = {
        .struct_size = sizeof result,
        .kernel = attncl__tune_kernels[trial->kernel].name,
        .shapes = attncl__tune_kernels[trial->kernel].classes[trial->class],
        .built_in_ms = 1e3 * trial->built_in_seconds,
        .best_ms = 1e3 * trial->best_seconds,
        .gain = trial->gain,
        .kept = trial->kept,
        .n_tried = (size_t)trial->n_tried,
        .n_rows = (size_t)trial->n_rows,
        .note = note,
    };

    if (!t->options.report)
        return;
    for (int i = 0; i < trial->n_work; ++i)
        attncl__strbuf_add(&names, "%s%s", i ? ", " : "", trial->work[i]->name);
    if (trial->best_row)
        attncl__tuned_add_values(trial->kernel, trial->best_row->value, &row);
    result.workload = names.data ? names.data : "";
    result.row = row.data;
    t->options.report(&result, t->options.user);
    attncl__strbuf_free(&row);
    attncl__strbuf_free(&names);
}

// Tunes one kernel and class within its share of the remaining time.
static attncl_status tune_one(struct tuner *t, int kernel, int class, int n_left)
{
    const double left = t->deadline - attncl__clock_seconds();
    struct tuning_trial trial = {
        .ctx = t->ctx, .kernel = (enum tunable)kernel, .class = class, .seconds = left / n_left};
    attncl_status status = ATTNCL_OK;
    const char *note = NULL;

    TRY_DONE(attncl__tuning_trial_begin(&trial));
    if (left <= 0)
        note = "no time left";
    else if (trial.flop / t->flop_per_second > trial.seconds / 2)
        note = "takes too long on this device";
    else
        TRY_DONE(attncl__tuning_trial_run(&trial));
    if (!note) {
        ++t->summary.n_measured;
        t->summary.n_kept += trial.kept;
        t->measured[kernel][class] = true;
    }
    report_trial(t, &trial, note);

done:
    attncl__tuning_trial_end(&trial);
    return status;
}

static attncl_status fail_no_kernel(const struct tuner *t)
{
    struct tuner any = *t;
    struct suggestion s = {.word = t->options.kernel ? t->options.kernel : ""};
    any.options.kernel = NULL;
    for (int k = 0; k < N_TUNABLES; ++k)
        if (takes_part(&any, k))
            attncl__suggestion_add(&s, attncl__tune_kernels[k].name);
    return FAIL(ATTNCL_ERR_ARGUMENT, "no kernel \"%.100s\" is tuned on this device%s", s.word,
                attncl__suggestion_text(&s, "kernels"));
}

static attncl_status tune_all(struct tuner *t)
{
    const int n = count_trials(t);
    int done = 0;

    if (n == 0)
        return fail_no_kernel(t);
    TRY(measure_rate(t));
    for (int k = 0; k < N_TUNABLES; ++k)
        for (int c = 0; takes_part(t, k) && attncl__tune_kernels[k].classes[c]; ++c) {
            TRY(tune_one(t, k, c, n - done));
            ++done;
            if (t->options.progress)
                t->options.progress((double)done / n, t->options.user);
        }
    return ATTNCL_OK;
}

static struct tuning_key make_key(const attncl_context *ctx)
{
    return (struct tuning_key){ctx->info.name, ctx->info.driver_version, ctx->ignore_environment};
}

static attncl_status store_entries(struct tuner *t)
{
    const struct tuning_key key = make_key(t->ctx);
    char *path = NULL;

    // A file that ATTNCL_TUNE names must exist afterwards, because other contexts require it.
    if (t->options.check ||
        (t->summary.n_measured == 0 && attncl__tuning_check_file(&key, false) == ATTNCL_OK))
        return ATTNCL_OK;
    TRY(attncl__tuning_store(&key, t->ctx->caps.tuned, t->measured, &path));
    if (path)
        snprintf(t->summary.file, sizeof t->summary.file, "%s", path);
    attncl__free(path);
    return ATTNCL_OK;
}

// Empties this context's tuning table and closes its program cache: most programs will not be used again.
static attncl_status prepare_context(struct tuner *t)
{
    attncl_context *ctx = t->ctx;
    const struct tuning_key key = make_key(ctx);

    REQUIRE(ctx->caps.max_loop_iterations == 0, ATTNCL_ERR_UNSUPPORTED,
            "%s ends loops early, its kernels are cut up by count and not tuned", ctx->info.name);
    if (!t->options.check)
        TRY(attncl__tuning_check_path(&key));
    attncl__cache_close(ctx->cache);
    ctx->cache = NULL;
    attncl__tuning_free(ctx->caps.tuned);
    ctx->caps.tuned = attncl__alloc_zero(sizeof *ctx->caps.tuned);
    REQUIRE(ctx->caps.tuned, ATTNCL_ERR_NO_MEMORY, "a tuning table");
    return ATTNCL_OK;
}

attncl_status attncl_device_tune(const attncl_context_options *device,
                                 const attncl_tune_options *options,
                                 attncl_tune_summary *summary_ret)
{
    struct tuner t = {.deadline = attncl__clock_seconds()};
    attncl_status status = ATTNCL_OK;

    TRY(read_options(options, &t.options));
    t.deadline += t.options.seconds;
    TRY(attncl__context_create(device, true, &t.ctx));
    TRY_DONE(prepare_context(&t));
    TRY_DONE(tune_all(&t));
    TRY_DONE(store_entries(&t));
    if (summary_ret)
        TRY_DONE(STRUCT_WRITE(attncl_tune_summary, summary_ret, &t.summary));

done:
    if (status == ATTNCL_OK)
        return attncl_context_destroy(t.ctx);
    (void)attncl_context_destroy(t.ctx); // keeps the message of the failure
    return status;
}
