// SPDX-License-Identifier: MIT
//
// The first round is short and finds the best candidate.  The second round is longer and decides.

#include "tune/internal.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"

// The gain that a candidate needs, the loss allowed on one workload, and shares of the trial's
// time.
static const double min_gain = 0.05, max_loss = 0.02;
static const double candidates_share = 0.6, final_share = 0.3;
// Minimum length of a sample: timing it takes microseconds.
static const double sample_seconds = 1e-3;
enum { MAX_RUNS = 64 };

static struct tune_entry *row_of(const struct tuning_trial *c)
{
    return &c->ctx->caps.tuned->entries[c->kernel][c->class];
}

static void set_row(const struct tuning_trial *c, const struct candidate *candidate)
{
    struct tune_entry *row = row_of(c);

    memset(row->value, 0, sizeof row->value);
    if (candidate)
        memcpy(row->value, candidate->value, sizeof row->value);
    row->line = candidate != NULL;
    atomic_store(&row->rejected, false);
    atomic_store(&row->logged, true); // the report says it
}

attncl_status attncl__tuning_trial_begin(struct tuning_trial *c)
{
    for (size_t i = 0; i < attncl__n_workloads; ++i) {
        const struct workload *w = &attncl__workloads[i];
        if ((w->kernels & (1u << c->kernel)) && w->class == c->class && c->n_work < TRIAL_WORKLOADS)
            c->work[c->n_work++] = w;
    }
    for (int i = 0; i < c->n_work; ++i) {
        TRY(attncl__workload_fill(c->ctx, c->work[i], &c->data[i]));
        c->flop += c->data[i].flop;
    }
    return ATTNCL_OK;
}

static void end_variants(struct variant variants[TRIAL_WORKLOADS])
{
    for (int i = 0; i < TRIAL_WORKLOADS; ++i)
        attncl__variant_end(&variants[i]);
}

void attncl__tuning_trial_end(struct tuning_trial *c)
{
    end_variants(c->built_in);
    end_variants(c->best);
    for (int i = 0; i < c->n_work; ++i)
        attncl__workload_clear(&c->data[i]);
}

// Creates graphs with the current entry and runs them once.
static attncl_status begin_variants(const struct tuning_trial *c,
                                    struct variant variants[TRIAL_WORKLOADS])
{
    for (int i = 0; i < c->n_work; ++i) {
        TRY(attncl__workload_graph(c->ctx, c->work[i], &c->data[i], &variants[i].graph));
        TRY(attncl__variant_begin(&variants[i], c->data[i].n_result));
    }
    return ATTNCL_OK;
}

// Time of `other` relative to the built-in choice: the mean over the workloads; *slowest_ret the
// largest.
static double ratio(const struct tuning_trial *c, const struct variant other[TRIAL_WORKLOADS],
                    double (*time_of)(const struct variant *), double *slowest_ret)
{
    double sum = 0;

    *slowest_ret = 0;
    for (int i = 0; i < c->n_work; ++i) {
        const double r = time_of(&other[i]) / time_of(&c->built_in[i]);
        sum += r;
        *slowest_ret = fmax(*slowest_ret, r);
    }
    return sum / c->n_work;
}

static attncl_status ab_time_all(struct tuning_trial *c, struct variant other[TRIAL_WORKLOADS],
                                 double seconds)
{
    for (int i = 0; i < c->n_work; ++i)
        TRY(attncl__ab_time(&c->built_in[i], &other[i], c->runs[i], seconds / c->n_work));
    return ATTNCL_OK;
}

static void drop(const struct tuning_trial *c, const struct candidate *candidate, const char *why)
{
    struct strbuf row = STRBUF_EMPTY;

    attncl__tuned_values_text(c->kernel, candidate->value, &row);
    attncl__log(ATTNCL_LOG_WARN, "tuning %s: %s is left out, %s",
                attncl__tune_kernels[c->kernel].name, row.data ? row.data : "a row", why);
    attncl__strbuf_free(&row);
}

// Replaces the best candidate when it is faster.  Its failure does not fail the trial.
static void try_candidate(struct tuning_trial *c, const struct candidate *candidate, double seconds,
                          double *best_ratio)
{
    struct variant variants[TRIAL_WORKLOADS] = {{.graph = NULL}};
    double slowest;

    set_row(c, candidate);
    if (begin_variants(c, variants) != ATTNCL_OK) {
        drop(c, candidate, attncl_last_error());
        goto done;
    }
    if (atomic_load(&row_of(c)->rejected)) // logged where it was rejected
        goto done;
    for (int i = 0; i < c->n_work; ++i)
        if (!attncl__variants_agree(&c->built_in[i], &variants[i], c->data[i].n_result,
                                    c->data[i].terms)) {
            drop(c, candidate, "its result differs from the built-in choice's");
            goto done;
        }
    if (ab_time_all(c, variants, seconds) != ATTNCL_OK) {
        drop(c, candidate, attncl_last_error());
        goto done;
    }
    const double r = ratio(c, variants, attncl__variant_min, &slowest);
    if (r < *best_ratio) {
        struct variant old[TRIAL_WORKLOADS];

        memcpy(old, c->best, sizeof old);
        memcpy(c->best, variants, sizeof variants);
        memcpy(variants, old, sizeof old);
        *best_ratio = r;
        c->best_row = candidate;
    }

done:
    end_variants(variants);
}

static void first_round(struct tuning_trial *c)
{
    const double end = attncl__seconds() + (1 - final_share) * c->seconds;
    double best_ratio = HUGE_VAL;

    for (size_t i = 0; i < attncl__n_candidates; ++i)
        c->n_rows += attncl__candidates[i].kernel == c->kernel;
    const double seconds = candidates_share * c->seconds / c->n_rows;
    for (size_t i = 0; i < attncl__n_candidates && attncl__seconds() < end; ++i)
        if (attncl__candidates[i].kernel == c->kernel) {
            try_candidate(c, &attncl__candidates[i], seconds, &best_ratio);
            ++c->n_tried;
        }
}

static attncl_status second_round(struct tuning_trial *c)
{
    double slowest, slowest_median;

    if (c->best_row)
        TRY(ab_time_all(c, c->best, final_share * c->seconds));
    for (int i = 0; i < c->n_work; ++i) {
        c->built_in_seconds += attncl__variant_min(&c->built_in[i]);
        if (c->best_row)
            c->best_seconds += attncl__variant_min(&c->best[i]);
    }
    if (!c->best_row)
        return ATTNCL_OK;
    const double by_min = ratio(c, c->best, attncl__variant_min, &slowest);
    const double by_median = ratio(c, c->best, attncl__variant_median, &slowest_median);
    c->gain = 1 / fmax(by_min, by_median) - 1;
    c->kept = c->gain >= min_gain && slowest <= 1 + max_loss;
    return ATTNCL_OK;
}

attncl_status attncl__tuning_trial_run(struct tuning_trial *c)
{
    struct tune_table *table = c->ctx->caps.tuned;
    struct tune_entry backend_rows[TUNE_MAX_CLASSES];
    attncl_status status = ATTNCL_OK;

    // The native tiles are compared with each other, whatever the GEMM backend is otherwise.
    memcpy(backend_rows, table->entries[TUNE_GEMM_BACKEND], sizeof backend_rows);
    if (c->kernel == TUNE_GEMM_GPU)
        table->entries[TUNE_GEMM_BACKEND][TUNE_SINGLE] = (struct tune_entry){.line = 1};
    set_row(c, NULL);
    TRY_DONE(begin_variants(c, c->built_in));
    for (int i = 0; i < c->n_work; ++i) {
        double seconds = 0;
        TRY_DONE(attncl__variant_time(&c->built_in[i], 1, &seconds));
        c->built_in[i].sample[0] = seconds;
        c->built_in[i].n_samples = 1;
        c->runs[i] = (int)fmin(fmax(ceil(sample_seconds / seconds), 1), MAX_RUNS);
    }
    first_round(c);
    TRY_DONE(second_round(c));

done:
    set_row(c, c->kept ? c->best_row : NULL);
    if (c->kernel != TUNE_GEMM_BACKEND)
        memcpy(table->entries[TUNE_GEMM_BACKEND], backend_rows, sizeof backend_rows);
    return status;
}
