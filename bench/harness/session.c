// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // strcasestr

#include "harness/session.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "harness/attempt.h"
#include "harness/progress.h"
#include "harness/station.h"
#include "harness/stop.h"

// Of a case that nobody sees.
static const double most_for_roofline_s = 0.5;

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

// A case that nobody asked for, but whose figures others are measured by.
static bool only_for_roofline(const struct bench_case *c, const struct options *o)
{
    const enum quantity q = c->family->quantity;

    return o->roofline && (q == QUANTITY_COPY || q == QUANTITY_FMA) && !asked_for(c, o);
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
        report_result(report, s->json, &s->info, r);
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
        const struct station *s = &run->stations.list[i];
        if (s->json && (s->roofline.copy_rate > 0 || s->roofline.fma_rate > 0))
            report_roofline(s->json, &s->info, &s->roofline);
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
    }
    if (!rooflines_known)
        report_rooflines(run);
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
