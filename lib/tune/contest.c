// SPDX-License-Identifier: MIT
//
// The first round is short and finds the best candidate; the second, longer one decides.

#include "tune/contest.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/try.h"

// What a row must gain, and what it may lose on one of the workloads; shares of the contest's time.
static const double least_gain = 0.05, most_loss = 0.02;
static const double candidates_share = 0.6, final_share = 0.3;
// A sample is this long at least: the clock and the wait beside it are microseconds.
static const double sample_seconds = 1e-3;
enum { MOST_RUNS = 64 };

static struct tune_row *row_of(const struct contest *c)
{
    return &c->ctx->caps.tuned->rows[c->kernel][c->class];
}

static void set_row(const struct contest *c, const struct candidate *candidate)
{
    struct tune_row *row = row_of(c);

    memset(row->value, 0, sizeof row->value);
    if (candidate)
        memcpy(row->value, candidate->value, sizeof row->value);
    row->line = candidate != NULL;
    atomic_store(&row->refused, false);
    atomic_store(&row->told, true); // the report says it
}

attncl_status attncl__contest_begin(struct contest *c)
{
    for (size_t i = 0; i < attncl__n_workloads; ++i) {
        const struct workload *w = &attncl__workloads[i];
        if ((w->kernels & (1u << c->kernel)) && w->class == c->class &&
            c->n_work < CONTEST_WORKLOADS)
            c->work[c->n_work++] = w;
    }
    for (int i = 0; i < c->n_work; ++i) {
        TRY(attncl__workload_fill(c->ctx, c->work[i], &c->data[i]));
        c->flop += c->data[i].flop;
    }
    return ATTNCL_OK;
}

static void end_sides(struct side sides[CONTEST_WORKLOADS])
{
    for (int i = 0; i < CONTEST_WORKLOADS; ++i)
        attncl__side_end(&sides[i]);
}

void attncl__contest_end(struct contest *c)
{
    end_sides(c->built_in);
    end_sides(c->best);
    for (int i = 0; i < c->n_work; ++i)
        attncl__workload_clear(&c->data[i]);
}

// Graphs with the present row, run once.
static attncl_status begin_sides(const struct contest *c, struct side sides[CONTEST_WORKLOADS])
{
    for (int i = 0; i < c->n_work; ++i) {
        TRY(attncl__workload_graph(c->ctx, c->work[i], &c->data[i], &sides[i].graph));
        TRY(attncl__side_begin(&sides[i], c->data[i].n_result));
    }
    return ATTNCL_OK;
}

// How long `other` takes of the built-in choice's time, the mean over the workloads, by fastest or
// middle runs; *worst_ret the largest.
static double ratio(const struct contest *c, const struct side other[CONTEST_WORKLOADS],
                    double (*time_of)(const struct side *), double *worst_ret)
{
    double sum = 0;

    *worst_ret = 0;
    for (int i = 0; i < c->n_work; ++i) {
        const double r = time_of(&other[i]) / time_of(&c->built_in[i]);
        sum += r;
        *worst_ret = fmax(*worst_ret, r);
    }
    return sum / c->n_work;
}

static attncl_status duel_all(struct contest *c, struct side other[CONTEST_WORKLOADS],
                              double seconds)
{
    for (int i = 0; i < c->n_work; ++i)
        TRY(attncl__duel(&c->built_in[i], &other[i], c->runs[i], seconds / c->n_work));
    return ATTNCL_OK;
}

static void drop(const struct contest *c, const struct candidate *candidate, const char *why)
{
    struct text row = TEXT_EMPTY;

    attncl__tuned_values_text(c->kernel, candidate->value, &row);
    attncl__log(ATTNCL_LOG_WARN, "tuning %s: %s is left out, %s",
                attncl__tune_kernels[c->kernel].name, row.data ? row.data : "a row", why);
    attncl__text_free(&row);
}

// Takes the place of the best one when it is faster.  Its own failure is not the contest's.
static void try_candidate(struct contest *c, const struct candidate *candidate, double seconds,
                          double *best_ratio)
{
    struct side sides[CONTEST_WORKLOADS] = {{.graph = NULL}};
    double worst;

    set_row(c, candidate);
    if (begin_sides(c, sides) != ATTNCL_OK) {
        drop(c, candidate, attncl_last_error());
        goto done;
    }
    if (atomic_load(&row_of(c)->refused)) // said by whoever refused it
        goto done;
    for (int i = 0; i < c->n_work; ++i)
        if (!attncl__sides_agree(&c->built_in[i], &sides[i], c->data[i].n_result,
                                 c->data[i].terms)) {
            drop(c, candidate, "its result differs from the built-in choice's");
            goto done;
        }
    if (duel_all(c, sides, seconds) != ATTNCL_OK) {
        drop(c, candidate, attncl_last_error());
        goto done;
    }
    const double r = ratio(c, sides, attncl__side_least, &worst);
    if (r < *best_ratio) {
        struct side old[CONTEST_WORKLOADS];

        memcpy(old, c->best, sizeof old);
        memcpy(c->best, sides, sizeof sides);
        memcpy(sides, old, sizeof old);
        *best_ratio = r;
        c->best_row = candidate;
    }

done:
    end_sides(sides);
}

static void first_round(struct contest *c)
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

static attncl_status second_round(struct contest *c)
{
    double worst, worst_median;

    if (c->best_row)
        TRY(duel_all(c, c->best, final_share * c->seconds));
    for (int i = 0; i < c->n_work; ++i) {
        c->built_in_seconds += attncl__side_least(&c->built_in[i]);
        if (c->best_row)
            c->best_seconds += attncl__side_least(&c->best[i]);
    }
    if (!c->best_row)
        return ATTNCL_OK;
    const double by_least = ratio(c, c->best, attncl__side_least, &worst);
    const double by_median = ratio(c, c->best, attncl__side_median, &worst_median);
    c->gain = 1 / fmax(by_least, by_median) - 1;
    c->kept = c->gain >= least_gain && worst <= 1 + most_loss;
    return ATTNCL_OK;
}

attncl_status attncl__contest_hold(struct contest *c)
{
    struct tune_table *table = c->ctx->caps.tuned;
    struct tune_row by[TUNE_MOST_CLASSES];
    attncl_status status = ATTNCL_OK;

    // The library's own tiles are compared with each other, whoever makes products otherwise.
    memcpy(by, table->rows[TUNE_GEMM_BY], sizeof by);
    if (c->kernel == TUNE_GEMM_GPU)
        table->rows[TUNE_GEMM_BY][c->class] = (struct tune_row){.line = 1};
    set_row(c, NULL);
    TRY_DONE(begin_sides(c, c->built_in));
    for (int i = 0; i < c->n_work; ++i) {
        double seconds = 0;
        TRY_DONE(attncl__side_time(&c->built_in[i], 1, &seconds));
        c->built_in[i].sample[0] = seconds;
        c->built_in[i].n_samples = 1;
        c->runs[i] = (int)fmin(fmax(ceil(sample_seconds / seconds), 1), MOST_RUNS);
    }
    first_round(c);
    TRY_DONE(second_round(c));

done:
    set_row(c, c->kept ? c->best_row : NULL);
    if (c->kernel != TUNE_GEMM_BY)
        memcpy(table->rows[TUNE_GEMM_BY], by, sizeof by);
    return status;
}
