// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // strcasestr

#include "harness/schedule.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// For a case that is not reported.
static const double max_for_roofline_s = 0.5;
// Bandwidth and peak are measured again after so many cases, and at the end: what disturbed the
// machine once would make every share too large.
enum { CASES_BETWEEN_ROOFLINES = 16 };
static const double roofline_again_s = 0.1;
// A roofline that has grown by less is not told again.
static const double growth_to_tell = 1.02;

volatile sig_atomic_t schedule_stop;

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

// A case that was not requested.
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

// What is left of the budget, shared equally among the cases to come: a case that needs less leaves
// more to the others.  One that takes more, for its least number of runs, does not starve them.
static double time_share(const struct bench_device *d, double budget_s)
{
    const double even = budget_s / (double)d->n_wanted;
    const double left = (budget_s - d->spent_s) / (double)(d->n_wanted - d->n_done);

    return left > even / 2 ? left : even / 2;
}

struct schedule {
    const struct options *o;
    const char *directory;
    struct report *report;
    struct devices devices;
    size_t n_steps, n_steps_done; // rounds, for the progress bar
    size_t n_since_roofline;      // cases since it was measured
};

#define FOR_EACH_DEVICE(d, s)                                                                      \
    for (struct bench_device *d = (s)->devices.list; d < (s)->devices.list + (s)->devices.n; ++d)

// A bar on standard error; nothing when that is no terminal.
static void show_progress(const struct schedule *s, const struct bench_case *c,
                          const struct bench_device *d)
{
    static const char full[] = "##############################";
    const size_t width = sizeof full - 1, total = s->n_steps ? s->n_steps : 1;
    const int n = (int)(width * s->n_steps_done / total);

    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K[%.*s%*s] %3zu %%  %s %s\r", n, full, (int)width - n, "",
                100 * s->n_steps_done / total, d->address, c->name);
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

// A baseline's round: it answers with a line when it is done.  One that is gone is not waited for.
static void run_baseline_round(const struct bench_case *c)
{
    int character;

    printf("turn\t%s\n", c->name);
    fflush(stdout);
    do
        character = getchar();
    while (character != '\n' && character != EOF);
}

// On each device that runs it.  budget_s > 0: of a round, of one run at least.
static void begin_case(struct schedule *s, const struct bench_case *c, double budget_s)
{
    const struct options *o = s->o;
    const double longest = only_for_roofline(c, o) ? max_for_roofline_s : o->budget_s / 10;

    FOR_EACH_DEVICE (d, s) {
        if (!d->ctx || d->set != c->set)
            continue;
        const double share = time_share(d, o->budget_s);
        const double round_s = (share < longest ? share : longest) / (double)o->n_rounds;
        const struct run_options options = {
            .ctx = d->ctx,
            .device = d->address,
            .directory = s->directory,
            .budget_s = budget_s > 0 ? budget_s : round_s,
            .min_runs = budget_s > 0 ? 1 : (o->min_runs + o->n_rounds - 1) / o->n_rounds,
            .driver_does_not_wait = d->driver_does_not_wait};
        show_progress(s, c, d);
        d->run = run_begin(&options, c);
    }
}

// Ends the device's run; `silent`: only a fault is reported.
static void end_run(struct schedule *s, struct bench_device *d, bool silent)
{
    struct run *x = d->run;

    run_end(x);
    roofline_take(&d->roofline, x);
    if (!silent || x->outcome == OUTCOME_WRONG || x->outcome == OUTCOME_FAILED)
        report_run(s->report, d, x);
    d->spent_s += x->spent_s;
    ++d->n_done;
    run_free(x);
    d->run = NULL;
}

static void run_case(struct schedule *s, const struct bench_case *c)
{
    const struct options *o = s->o;
    bool any = false;

    begin_case(s, c, 0);
    FOR_EACH_DEVICE (d, s)
        any = any || d->run;
    if (!any)
        return;
    for (size_t round = 0; round < o->n_rounds && !schedule_stop; ++round) {
        FOR_EACH_DEVICE (d, s)
            if (d->run) {
                show_progress(s, c, d);
                run_round(d->run);
                ++s->n_steps_done;
            }
        if (o->interleaved && c->family->suite != SUITE_DEVICE)
            run_baseline_round(c);
    }
    clear_progress();
    FOR_EACH_DEVICE (d, s)
        if (d->run)
            end_run(s, d, only_for_roofline(c, o));
    report_write(s->report, false);
}

static void report_rooflines(struct schedule *s)
{
    FOR_EACH_DEVICE (d, s) {
        d->first_roofline = d->roofline;
        if (d->json && roofline_is_known(&d->roofline))
            report_roofline(d, "roofline");
    }
}

// The case once more on all devices, for the roofline alone.
static void run_limit_again(struct schedule *s, const struct bench_case *c)
{
    begin_case(s, c, roofline_again_s);
    FOR_EACH_DEVICE (d, s) {
        if (!d->run)
            continue;
        run_round(d->run);
        run_end(d->run);
        roofline_take(&d->roofline, d->run);
        run_free(d->run);
        d->run = NULL;
    }
}

static void run_rooflines_again(struct schedule *s)
{
    s->n_since_roofline = 0;
    for (size_t i = 0; i < bench_n_cases && !schedule_stop; ++i)
        if (is_limit(&bench_cases[i]) && wanted(&bench_cases[i], s->o))
            run_limit_again(s, &bench_cases[i]);
    clear_progress();
    FOR_EACH_DEVICE (d, s)
        report_update_roofline(d);
    report_write(s->report, false);
}

// The rows above were judged by what was known then.
static void report_growth(struct schedule *s)
{
    FOR_EACH_DEVICE (d, s) {
        const struct roofline *first = &d->first_roofline, *last = &d->roofline;
        if (d->json && (last->copy_rate > growth_to_tell * first->copy_rate ||
                        last->fma_rate > growth_to_tell * first->fma_rate))
            report_roofline(d, "best roofline of the run, which the report's shares are of");
    }
}

static void run_cases(struct schedule *s)
{
    bool rooflines_known = false;

    report_heading();
    for (size_t i = 0; i < bench_n_cases && !schedule_stop; ++i) {
        const struct bench_case *c = &bench_cases[i];
        if (!wanted(c, s->o))
            continue;
        if (c->family->suite != SUITE_DEVICE && !rooflines_known) {
            report_rooflines(s);
            rooflines_known = true;
        }
        run_case(s, c);
        if (c->family->suite != SUITE_DEVICE && ++s->n_since_roofline == CASES_BETWEEN_ROOFLINES)
            run_rooflines_again(s);
    }
    if (!rooflines_known)
        report_rooflines(s);
    if (s->n_since_roofline > 0)
        run_rooflines_again(s);
    report_growth(s);
}

bool schedule_run(const struct options *o, const char *directory, struct report *report)
{
    struct schedule s = {.o = o, .directory = directory, .report = report};

    if (!devices_open(&s.devices, o))
        return false;
    FOR_EACH_DEVICE (d, &s) {
        report_device(report, d);
        d->n_wanted = count_wanted(o, d->set);
        s.n_steps += d->json ? d->n_wanted * o->n_rounds : 0;
    }
    run_cases(&s);
    report->n_failed += devices_close(&s.devices);
    return true;
}
