// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // strcasestr

#include "harness/session.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "harness/attempt.h"
#include "harness/json.h"
#include "harness/progress.h"
#include "harness/station.h"
#include "harness/stop.h"

// Of a case that nobody sees.
static const double most_for_roofline_s = 0.5;
// Bandwidth and peak are measured again after so many cases, and at the end: what disturbed the
// machine once would make every share too large.
enum { CASES_BETWEEN_ROOFLINES = 16 };
static const double roofline_again_s = 0.1;
// A roofline that has grown by less is not told again.
static const double growth_to_tell = 1.02;

// True when the case's or family's name contains one of the texts, which commas part.
static bool is_named(const struct bench_case *c, const char *texts)
{
    char text[128];

    for (const char *at = texts; *at;) {
        const size_t n = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)n, at);
        if (n > 0 && (strcasestr(c->name, text) || strcasestr(c->family->name, text)))
            return true;
        at += at[n] ? n + 1 : n;
    }
    return false;
}

static bool asked_for(const struct bench_case *c, const struct options *o)
{
    return o->suites[c->family->suite] && (!o->only || is_named(c, o->only));
}

// What others are measured by.
static bool is_limit(const struct bench_case *c)
{
    return c->family->quantity == QUANTITY_COPY || c->family->quantity == QUANTITY_FMA;
}

// A case that nobody asked for.
static bool only_for_roofline(const struct bench_case *c, const struct options *o)
{
    return o->roofline && is_limit(c) && !asked_for(c, o);
}

static bool wanted(const struct bench_case *c, const struct options *o)
{
    return asked_for(c, o) || only_for_roofline(c, o);
}

static size_t count_wanted(const struct options *o, enum case_set set)
{
    size_t n = 0;

    for (size_t i = 0; i < bench_n_cases; ++i)
        n += bench_cases[i].set == set && wanted(&bench_cases[i], o);
    return n;
}

// One round of one case on one device, out of what is left of the device's time.
static struct measure_options round_options(const struct station *s, const struct bench_case *c,
                                            const struct options *o)
{
    const double share = station_share(s, o->budget_s);
    const double most = only_for_roofline(c, o) ? most_for_roofline_s : o->budget_s / 10;

    return (struct measure_options){
        .budget_s = (share < most ? share : most) / (double)o->n_rounds,
        .min_runs = (o->min_runs + o->n_rounds - 1) / o->n_rounds,
        .driver_does_not_wait = s->driver_does_not_wait,
    };
}

// Takes the finished attempt's result and lets go of it.
static void conclude(struct station *s, struct report *report, bool silent)
{
    struct attempt *a = s->attempt;
    struct result *r = &a->result;

    roofline_take(&s->roofline, r);
    roofline_judge(&s->roofline, r);
    if (!silent || r->outcome == OUTCOME_WRONG || r->outcome == OUTCOME_FAILED)
        shares_add(&s->shares, r, report_result(report, s->json, &s->info, r));
    s->spent_s += a->spent_s;
    ++s->n_done;
    attempt_free(a);
    s->attempt = NULL;
}

struct run {
    const struct options *o;
    const char *folder;
    struct report *report;
    struct stations stations;
    size_t n_steps, n_steps_done; // rounds, for the progress bar
    size_t n_since_roofline;      // cases since it was measured
};

static void show(struct run *run, const struct bench_case *c, const struct station *s)
{
    char what[160];

    snprintf(what, sizeof what, "%d:%d %s", s->info.platform, s->info.device, c->name);
    progress_show(run->n_steps_done, run->n_steps, what);
}

// A peer's turn: it answers with a line when it is done.  One that is gone is not waited for.
static void pass_turn(const struct bench_case *c)
{
    int character;

    printf("turn\t%s\n", c->name);
    fflush(stdout);
    do
        character = getchar();
    while (character != '\n' && character != EOF);
}

// False when no device runs the case.
static bool begin_case(struct run *run, const struct bench_case *c, struct measure_options *options)
{
    struct stations *all = &run->stations;
    bool any = false;

    for (size_t i = 0; i < all->n; ++i) {
        struct station *s = &all->list[i];
        if (!station_runs(s, c->set))
            continue;
        show(run, c, s);
        options[i] = round_options(s, c, run->o);
        const struct attempt_setting setting = {.ctx = s->ctx,
                                                .device = s->address,
                                                .folder = run->folder,
                                                .driver_does_not_wait = s->driver_does_not_wait};
        s->attempt = attempt_begin(&setting, c);
        any = any || s->attempt;
    }
    return any;
}

static void run_case(struct run *run, const struct bench_case *c)
{
    const struct options *o = run->o;
    struct measure_options options[STATIONS_MAX];
    struct stations *all = &run->stations;

    if (!begin_case(run, c, options))
        return;
    for (size_t round = 0; round < o->n_rounds && !stop_wanted(); ++round) {
        for (size_t i = 0; i < all->n; ++i)
            if (all->list[i].attempt) {
                show(run, c, &all->list[i]);
                attempt_round(all->list[i].attempt, &options[i]);
                ++run->n_steps_done;
            }
        if (o->turns && c->family->suite != SUITE_DEVICE)
            pass_turn(c);
    }
    progress_clear();
    for (size_t i = 0; i < all->n; ++i)
        if (all->list[i].attempt) {
            attempt_end(all->list[i].attempt, &options[i]);
            conclude(&all->list[i], run->report, only_for_roofline(c, o));
        }
    report_write(run->report, false);
}

static void report_stations(struct run *run)
{
    const struct options *o = run->o;

    for (size_t i = 0; i < run->stations.n; ++i) {
        struct station *s = &run->stations.list[i];
        if (!s->ctx) {
            report_no_device(run->report, &s->info, s->reason);
            run->report->n_failed += s->failed;
            continue;
        }
        s->json = report_device(run->report, &s->info, s->set, s->limited ? s->loop_limit : 0);
        s->n_wanted = count_wanted(o, s->set);
        run->n_steps += s->n_wanted * o->n_rounds;
    }
}

static void report_rooflines(struct run *run)
{
    for (size_t i = 0; i < run->stations.n; ++i) {
        struct station *s = &run->stations.list[i];
        s->first_roofline = s->roofline;
        if (s->json && (s->roofline.copy_rate > 0 || s->roofline.fma_rate > 0))
            report_roofline(s->json, &s->info, "roofline", &s->roofline);
    }
}

// The case once more on all devices, for the roofline alone.
static void run_limit_again(struct run *run, const struct bench_case *c)
{
    const struct measure_options again = {.budget_s = roofline_again_s, .min_runs = 1};
    struct measure_options options[STATIONS_MAX];
    struct stations *all = &run->stations;

    begin_case(run, c, options);
    for (size_t i = 0; i < all->n; ++i) {
        struct station *s = &all->list[i];
        if (!s->attempt)
            continue;
        options[i] = again;
        options[i].driver_does_not_wait = s->driver_does_not_wait;
        attempt_round(s->attempt, &options[i]);
        attempt_end(s->attempt, &options[i]);
        roofline_take(&s->roofline, &s->attempt->result);
        attempt_free(s->attempt);
        s->attempt = NULL;
    }
}

static void run_rooflines_again(struct run *run)
{
    run->n_since_roofline = 0;
    for (size_t i = 0; i < bench_n_cases && !stop_wanted(); ++i)
        if (is_limit(&bench_cases[i]) && wanted(&bench_cases[i], run->o))
            run_limit_again(run, &bench_cases[i]);
    progress_clear();
    for (size_t i = 0; i < run->stations.n; ++i) {
        struct station *s = &run->stations.list[i];
        if (s->json && (s->roofline.copy_rate > 0 || s->roofline.fma_rate > 0))
            json_set_roofline(s->json, &s->roofline);
        shares_judge(&s->shares, &s->roofline);
    }
    report_write(run->report, false);
}

// The rows above were judged by what was known then.
static void report_growth(const struct run *run)
{
    for (size_t i = 0; i < run->stations.n; ++i) {
        const struct station *s = &run->stations.list[i];
        const struct roofline *first = &s->first_roofline, *last = &s->roofline;
        if (s->json && (last->copy_rate > growth_to_tell * first->copy_rate ||
                        last->fma_rate > growth_to_tell * first->fma_rate))
            report_roofline(s->json, &s->info,
                            "best roofline of the run, which the report's shares are of", last);
    }
}

static void run_cases(struct run *run)
{
    bool rooflines_known = false;

    report_heading();
    for (size_t i = 0; i < bench_n_cases && !stop_wanted(); ++i) {
        const struct bench_case *c = &bench_cases[i];
        if (!wanted(c, run->o))
            continue;
        if (c->family->suite != SUITE_DEVICE && !rooflines_known) {
            report_rooflines(run);
            rooflines_known = true;
        }
        run_case(run, c);
        if (c->family->suite != SUITE_DEVICE && ++run->n_since_roofline == CASES_BETWEEN_ROOFLINES)
            run_rooflines_again(run);
    }
    if (!rooflines_known)
        report_rooflines(run);
    if (run->n_since_roofline > 0)
        run_rooflines_again(run);
    report_growth(run);
}

bool session_run(const struct options *o, const char *folder, struct report *report)
{
    struct run run = {.o = o, .folder = folder, .report = report};

    if (!stations_open(&run.stations, o))
        return false;
    report_stations(&run);
    run_cases(&run);
    report->n_failed += stations_close(&run.stations);
    return true;
}
