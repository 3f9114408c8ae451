// SPDX-License-Identifier: MIT

#include "harness/schedule.h"

#include <stdio.h>
#include <unistd.h>

// For a case that is not reported.
static const double max_for_roofline_s = 0.5;
// Bandwidth and peak are measured again after so many cases, and at the end: what disturbed the
// machine once would make every share too large.
enum { CASES_BETWEEN_ROOFLINES = 16 };
static const double roofline_again_s = 0.1;

volatile sig_atomic_t schedule_stop;

// What others are measured by.
static bool is_limit(const struct bench_case *c)
{
    return c->family->quantity == QUANTITY_COPY || c->family->quantity == QUANTITY_FMA;
}

// A case that was not requested.
static bool only_for_roofline(const struct options *o, enum sizes_kind sizes,
                              const struct bench_case *c)
{
    return o->roofline && is_limit(c) && (c->sets & (sizes == SIZES_SMALL ? SMALL : FULL)) &&
           !options_want(o, sizes, c);
}

static bool wanted(const struct options *o, enum sizes_kind sizes, const struct bench_case *c)
{
    return options_want(o, sizes, c) || only_for_roofline(o, sizes, c);
}

static size_t count_wanted(const struct options *o, enum sizes_kind sizes)
{
    size_t n = 0;

    for (size_t i = 0; i < bench_n_cases; ++i)
        n += wanted(o, sizes, &bench_cases[i]);
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
    double start_s;
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
    // The steps to come take as long as those before, on average.
    const double done = (double)s->n_steps_done, spent_s = clock_now() - s->start_s;
    const long left_s = (long)(done > 0 ? spent_s / done * (double)(total - s->n_steps_done) : 0);

    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K[%.*s%*s] %3zu %%  ", n, full, (int)width - n, "",
            100 * s->n_steps_done / total);
    if (done > 0)
        fprintf(stderr, "about %ld:%02ld left  ", left_s / 60, left_s % 60);
    fprintf(stderr, "%s %s\r", d->address, c->name);
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

    FOR_EACH_DEVICE (d, s) {
        if (!d->ctx || !wanted(o, d->sizes, c))
            continue;
        const double longest =
            only_for_roofline(o, d->sizes, c) ? max_for_roofline_s : o->budget_s / 10;
        const double share = time_share(d, o->budget_s);
        const double round_s = (share < longest ? share : longest) / (double)o->n_rounds;
        const struct run_options options = {
            .ctx = d->ctx,
            .device = d->address,
            .directory = s->directory,
            .sensors = d->sensors,
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

// False when no device runs it.
static bool run_case(struct schedule *s, const struct bench_case *c)
{
    const struct options *o = s->o;
    bool any = false;

    begin_case(s, c, 0);
    FOR_EACH_DEVICE (d, s)
        any = any || d->run;
    if (!any)
        return false;
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
            end_run(s, d, only_for_roofline(o, d->sizes, c));
    report_write(s->report, false);
    return true;
}

static void report_rooflines(struct schedule *s, const char *what)
{
    FOR_EACH_DEVICE (d, s)
        if (d->json && roofline_is_known(&d->roofline))
            report_roofline(d, what);
}

// Bandwidth and peak once more on all devices.
static void run_rooflines_again(struct schedule *s)
{
    s->n_since_roofline = 0;
    for (size_t i = 0; i < bench_n_cases && !schedule_stop; ++i) {
        if (!is_limit(&bench_cases[i]))
            continue;
        begin_case(s, &bench_cases[i], roofline_again_s);
        FOR_EACH_DEVICE (d, s)
            if (d->run) {
                run_round(d->run);
                run_end(d->run);
                roofline_take(&d->roofline, d->run);
                run_free(d->run);
                d->run = NULL;
            }
    }
    clear_progress();
    FOR_EACH_DEVICE (d, s)
        report_update_roofline(d);
    report_write(s->report, false);
}

static void run_cases(struct schedule *s)
{
    bool rooflines_known = false;

    report_heading();
    for (size_t i = 0; i < bench_n_cases && !schedule_stop; ++i) {
        const struct bench_case *c = &bench_cases[i];
        if (c->family->suite != SUITE_DEVICE && !rooflines_known) {
            report_rooflines(s, "roofline");
            rooflines_known = true;
        }
        const bool ran = run_case(s, c);
        if (ran && c->family->suite != SUITE_DEVICE &&
            ++s->n_since_roofline == CASES_BETWEEN_ROOFLINES)
            run_rooflines_again(s);
    }
    if (!rooflines_known)
        report_rooflines(s, "roofline");
    if (s->n_since_roofline > 0)
        run_rooflines_again(s);
    // The rows above were judged by what was known then.
    report_rooflines(s, "best roofline of the run, which the report's shares are of");
}

bool schedule_run(const struct options *o, const char *directory, struct report *report)
{
    struct schedule s = {.o = o, .directory = directory, .report = report, .start_s = clock_now()};

    if (!devices_open(&s.devices, o))
        return false;
    FOR_EACH_DEVICE (d, &s) {
        report_device(report, d);
        d->n_wanted = count_wanted(o, d->sizes);
        s.n_steps += d->json ? d->n_wanted * o->n_rounds : 0;
    }
    run_cases(&s);
    report->n_failed += devices_close(&s.devices);
    return true;
}
