// SPDX-License-Identifier: MIT
//
// A trial: a short first round finds the best candidate, a longer second round decides.

#include "tune/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/opencl.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/worst_error.h"
#include "graph/nodes.h"

static const double min_gain = 0.05, max_loss = 0.02;          // on average; on one workload
static const double candidates_share = 0.6, final_share = 0.3; // of the trial's time
// Minimum length of a sample, because timing it takes microseconds.
static const double sample_seconds = 1e-3;
enum { MAX_RUNS = 64, MIN_ROUNDS = 3, PROBE_FLOATS = 4096 };

// Some drivers return from clFinish before the work is done, but not from reading a part of the result.
static attncl_status wait_for_result(attncl_graph *g)
{
    float probe[PROBE_FLOATS];
    attncl_shape shape;

    attncl_graph_output_name(g, 1, &shape);
    const size_t n = (size_t)shape.dim[shape.rank - 1];
    REQUIRE(n <= PROBE_FLOATS, ATTNCL_ERR_STATE, "a probe of %zu elements", n);
    return attncl_graph_read(g, "probe", probe, n * sizeof *probe);
}

attncl_status attncl__variant_begin(attncl_context *ctx, const struct workload *w,
                                    const struct workload_data *data, struct variant *variant)
{
    const size_t bytes = (size_t)data->n_result * sizeof *variant->result;
    attncl_status status = ATTNCL_OK;
    cl_mem y = NULL;

    TRY(attncl__workload_create_graph(ctx, w, data, &variant->graph));
    variant->result = attncl__alloc_array((size_t)data->n_result, sizeof *variant->result);
    REQUIRE(variant->result, ATTNCL_ERR_NO_MEMORY, "a result of %lld floats",
            (long long)data->n_result);
    // attncl__variants_agree() detects elements that no kernel wrote.
    TRY(attncl__buffer_create(ctx, bytes, &y));
    TRY_DONE(attncl__buffer_fill(ctx, y, CANARY_WORD, 0, bytes));
    TRY_DONE(attncl_graph_bind(variant->graph, "y", y, 0));
    TRY_DONE(attncl_graph_run(variant->graph));
    TRY_DONE(attncl__buffer_read(ctx, y, 0, variant->result, bytes));
    TRY_DONE(attncl_graph_bind(variant->graph, "y", NULL, 0));
done:
    attncl__buffer_release(&y);
    return status;
}

void attncl__variant_end(struct variant *variant)
{
    attncl_graph_destroy(variant->graph);
    attncl__free(variant->result);
    memset(variant, 0, sizeof *variant);
}

bool attncl__variants_agree(const struct variant *a, const struct variant *b, int64_t n,
                            double terms)
{
    // Higham and Mary 2019: with overwhelming probability (lambda = 10) the error of a sum of n terms
    // stays below lambda sqrt(n) u times the sum of magnitudes.  The largest result stands for the
    // magnitudes, both variants err, and 4 allows for other operations (exp, division).
    const double allowed = 2 * 10 * (sqrt(terms) + 4) * 0x1p-24;
    struct worst_error worst = {0};

    for (int64_t i = 0; i < n; ++i)
        attncl__worst_error_add(&worst, i, (double)b->result[i], (double)a->result[i], 1);
    return attncl__error_is_within(&worst, allowed * worst.largest);
}

attncl_status attncl__variant_measure(struct variant *variant, int runs, double *seconds_ret)
{
    const double start = attncl__clock_seconds();

    for (int i = 0; i < runs; ++i)
        TRY(attncl_graph_run(variant->graph));
    TRY(wait_for_result(variant->graph));
    *seconds_ret = (attncl__clock_seconds() - start) / runs;
    return ATTNCL_OK;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Runs interleaved rounds of both variants, `runs` runs each, for `seconds` and at least MIN_ROUNDS
// rounds.  Replaces the variants' samples by the new ones, sorted.
static attncl_status measure_ab(struct variant *a, struct variant *b, int runs, double seconds)
{
    const double start = attncl__clock_seconds();
    int n = 0;

    do {
        // The order alternates, so that cache contents favour neither.
        struct variant *const order[2] = {n % 2 ? b : a, n % 2 ? a : b};
        for (int i = 0; i < 2; ++i)
            TRY(attncl__variant_measure(order[i], runs, &order[i]->sample[n]));
        ++n;
    } while (n < AB_MAX_SAMPLES && (n < MIN_ROUNDS || attncl__clock_seconds() - start <= seconds));
    a->n_samples = b->n_samples = n;
    qsort(a->sample, (size_t)n, sizeof a->sample[0], compare_doubles);
    qsort(b->sample, (size_t)n, sizeof b->sample[0], compare_doubles);
    return ATTNCL_OK;
}

static struct tune_entry *get_row(const struct tuning_trial *trial)
{
    return &trial->ctx->caps.tuned->entries[trial->kernel][trial->class];
}

static void set_row(const struct tuning_trial *trial, const struct candidate *candidate)
{
    struct tune_entry *row = get_row(trial);

    memset(row->value, 0, sizeof row->value);
    if (candidate)
        memcpy(row->value, candidate->value, sizeof row->value);
    row->line = candidate != NULL;
    atomic_store(&row->rejected, false);
    atomic_store(&row->logged, true); // the report has it already
}

attncl_status attncl__tuning_trial_begin(struct tuning_trial *trial)
{
    for (size_t i = 0; i < attncl__n_workloads; ++i) {
        const struct workload *w = &attncl__workloads[i];
        if ((w->kernels & (1u << trial->kernel)) && w->class == trial->class &&
            trial->n_work < TRIAL_WORKLOADS)
            trial->work[trial->n_work++] = w;
    }
    for (int i = 0; i < trial->n_work; ++i) {
        TRY(attncl__workload_fill(trial->ctx, trial->work[i], &trial->data[i]));
        trial->flop += trial->data[i].flop;
    }
    return ATTNCL_OK;
}

static void end_variants(struct variant variants[TRIAL_WORKLOADS])
{
    for (int i = 0; i < TRIAL_WORKLOADS; ++i)
        attncl__variant_end(&variants[i]);
}

void attncl__tuning_trial_end(struct tuning_trial *trial)
{
    end_variants(trial->built_in);
    end_variants(trial->best);
    for (int i = 0; i < trial->n_work; ++i)
        attncl__workload_clear(&trial->data[i]);
}

static attncl_status begin_variants(const struct tuning_trial *trial,
                                    struct variant variants[TRIAL_WORKLOADS])
{
    for (int i = 0; i < trial->n_work; ++i)
        TRY(attncl__variant_begin(trial->ctx, trial->work[i], &trial->data[i], &variants[i]));
    return ATTNCL_OK;
}

enum sample_kind { FASTEST, MEDIAN };

// Returns the time of `other` relative to the built-in choice, averaged over the workloads.
// *slowest_ret: the largest.
static double compute_ratio(const struct tuning_trial *trial,
                            const struct variant other[TRIAL_WORKLOADS], enum sample_kind kind,
                            double *slowest_ret)
{
    double sum = 0;

    *slowest_ret = 0;
    for (int i = 0; i < trial->n_work; ++i) {
        const int at = kind == MEDIAN ? other[i].n_samples / 2 : 0;
        const double r = other[i].sample[at] / trial->built_in[i].sample[at];
        sum += r;
        *slowest_ret = fmax(*slowest_ret, r);
    }
    return sum / trial->n_work;
}

static attncl_status measure_ab_all(struct tuning_trial *trial,
                                    struct variant other[TRIAL_WORKLOADS], double seconds)
{
    for (int i = 0; i < trial->n_work; ++i)
        TRY(measure_ab(&trial->built_in[i], &other[i], trial->runs[i], seconds / trial->n_work));
    return ATTNCL_OK;
}

static void log_left_out(const struct tuning_trial *trial, const struct candidate *candidate,
                         const char *why)
{
    struct strbuf row = STRBUF_EMPTY;

    attncl__tuned_add_values(trial->kernel, candidate->value, &row);
    attncl__log(ATTNCL_LOG_WARN, "tuning %s: %s is left out, %s",
                attncl__tune_kernels[trial->kernel].name, row.data ? row.data : "a row", why);
    attncl__strbuf_free(&row);
}

// Makes the candidate the best one if it is faster.  Its failure does not fail the trial.
static void try_candidate(struct tuning_trial *trial, const struct candidate *candidate,
                          double seconds, double *best_ratio)
{
    struct variant variants[TRIAL_WORKLOADS] = {{.graph = NULL}};
    double slowest;

    set_row(trial, candidate);
    if (begin_variants(trial, variants) != ATTNCL_OK) {
        log_left_out(trial, candidate, attncl_last_error());
        goto done;
    }
    if (atomic_load(&get_row(trial)->rejected)) // logged where it was rejected
        goto done;
    for (int i = 0; i < trial->n_work; ++i)
        if (!attncl__variants_agree(&trial->built_in[i], &variants[i], trial->data[i].n_result,
                                    trial->data[i].terms)) {
            log_left_out(trial, candidate, "its result differs from the built-in choice's");
            goto done;
        }
    if (measure_ab_all(trial, variants, seconds) != ATTNCL_OK) {
        log_left_out(trial, candidate, attncl_last_error());
        goto done;
    }
    const double ratio = compute_ratio(trial, variants, FASTEST, &slowest);
    if (ratio < *best_ratio) {
        struct variant old[TRIAL_WORKLOADS];

        memcpy(old, trial->best, sizeof old);
        memcpy(trial->best, variants, sizeof variants);
        memcpy(variants, old, sizeof old);
        *best_ratio = ratio;
        trial->best_row = candidate;
    }

done:
    end_variants(variants);
}

static void first_round(struct tuning_trial *trial)
{
    const double end = attncl__clock_seconds() + (1 - final_share) * trial->seconds;
    double best_ratio = HUGE_VAL;

    for (size_t i = 0; i < attncl__n_candidates; ++i)
        trial->n_rows += attncl__candidates[i].kernel == trial->kernel;
    const double seconds = candidates_share * trial->seconds / trial->n_rows;
    for (size_t i = 0; i < attncl__n_candidates && attncl__clock_seconds() < end; ++i)
        if (attncl__candidates[i].kernel == trial->kernel) {
            try_candidate(trial, &attncl__candidates[i], seconds, &best_ratio);
            ++trial->n_tried;
        }
}

static attncl_status second_round(struct tuning_trial *trial)
{
    double slowest, slowest_median;

    if (trial->best_row)
        TRY(measure_ab_all(trial, trial->best, final_share * trial->seconds));
    for (int i = 0; i < trial->n_work; ++i) {
        trial->built_in_seconds += trial->built_in[i].sample[0];
        if (trial->best_row)
            trial->best_seconds += trial->best[i].sample[0];
    }
    if (!trial->best_row)
        return ATTNCL_OK;
    const double by_min = compute_ratio(trial, trial->best, FASTEST, &slowest);
    const double by_median = compute_ratio(trial, trial->best, MEDIAN, &slowest_median);
    trial->gain = 1 / fmax(by_min, by_median) - 1;
    trial->kept = trial->gain >= min_gain && slowest <= 1 + max_loss;
    return ATTNCL_OK;
}

attncl_status attncl__tuning_trial_run(struct tuning_trial *trial)
{
    struct tune_table *table = trial->ctx->caps.tuned;
    struct tune_entry backend_rows[TUNE_MAX_CLASSES];
    attncl_status status = ATTNCL_OK;

    // Native tiles are compared with each other, even if the backend would be CLBlast.
    memcpy(backend_rows, table->entries[TUNE_GEMM_BACKEND], sizeof backend_rows);
    if (trial->kernel == TUNE_GEMM_GPU)
        table->entries[TUNE_GEMM_BACKEND][TUNE_SINGLE] = (struct tune_entry){.line = 1};
    set_row(trial, NULL);
    TRY_DONE(begin_variants(trial, trial->built_in));
    for (int i = 0; i < trial->n_work; ++i) {
        double *const seconds = &trial->built_in[i].sample[0];
        TRY_DONE(attncl__variant_measure(&trial->built_in[i], 1, seconds));
        trial->runs[i] = (int)fmin(fmax(ceil(sample_seconds / *seconds), 1), MAX_RUNS);
    }
    first_round(trial);
    TRY_DONE(second_round(trial));

done:
    set_row(trial, trial->kept ? trial->best_row : NULL);
    if (trial->kernel != TUNE_GEMM_BACKEND)
        memcpy(table->entries[TUNE_GEMM_BACKEND], backend_rows, sizeof backend_rows);
    return status;
}
