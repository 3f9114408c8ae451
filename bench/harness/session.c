// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // strcasestr

#include "harness/session.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "harness/bench_device.h"
#include "harness/case_run.h"
#include "harness/json.h"
#include "harness/progress.h"
#include "harness/stop.h"

// For a case that is not reported.
static const double max_for_roofline_s = 0.5;
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

// One round of one case on one device, out of what is left of the device's time.
static struct measure_options round_options(const struct bench_device *s,
                                            const struct bench_case *c, const struct options *o)
{
    const double share = bench_device_time_share(s, o->budget_s);
    const double longest = only_for_roofline(c, o) ? max_for_roofline_s : o->budget_s / 10;

    return (struct measure_options){
        .budget_s = (share < longest ? share : longest) / (double)o->n_rounds,
        .min_runs = (o->min_runs + o->n_rounds - 1) / o->n_rounds,
        .driver_does_not_wait = s->driver_does_not_wait,
    };
}

// Takes the finished case run's result and lets go of it.
static void conclude(struct bench_device *s, struct report *report, bool silent)
{
    struct case_run *a = s->case_run;
    struct result *r = &a->result;

    roofline_take(&s->roofline, r);
    roofline_judge(&s->roofline, r);
    if (!silent || r->outcome == OUTCOME_WRONG || r->outcome == OUTCOME_FAILED)
        roofline_shares_add(&s->shares, r, report_result(report, s->json, &s->info, r));
    s->spent_s += a->spent_s;
    ++s->n_done;
    case_run_free(a);
    s->case_run = NULL;
}

struct run {
    const struct options *o;
    const char *directory;
    struct report *report;
    struct bench_devices bench_devices;
    size_t n_steps, n_steps_done; // rounds, for the progress bar
    size_t n_since_roofline;      // cases since it was measured
};

static void show(struct run *run, const struct bench_case *c, const struct bench_device *s)
{
    char what[160];

    snprintf(what, sizeof what, "%d:%d %s", s->info.platform, s->info.device, c->name);
    progress_show(run->n_steps_done, run->n_steps, what);
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

// False when no device runs the case.
static bool begin_case(struct run *run, const struct bench_case *c, struct measure_options *options)
{
    struct bench_devices *all = &run->bench_devices;
    bool any = false;

    for (size_t i = 0; i < all->n; ++i) {
        struct bench_device *s = &all->list[i];
        if (!bench_device_runs(s, c->set))
            continue;
        show(run, c, s);
        options[i] = round_options(s, c, run->o);
        const struct case_run_setting setting = {.ctx = s->ctx,
                                                 .device = s->address,
                                                 .directory = run->directory,
                                                 .driver_does_not_wait = s->driver_does_not_wait};
        s->case_run = case_run_begin(&setting, c);
        any = any || s->case_run;
    }
    return any;
}

static void run_case(struct run *run, const struct bench_case *c)
{
    const struct options *o = run->o;
    struct measure_options options[MAX_BENCH_DEVICES];
    struct bench_devices *all = &run->bench_devices;

    if (!begin_case(run, c, options))
        return;
    for (size_t round = 0; round < o->n_rounds && !stop_wanted(); ++round) {
        for (size_t i = 0; i < all->n; ++i)
            if (all->list[i].case_run) {
                show(run, c, &all->list[i]);
                case_run_round(all->list[i].case_run, &options[i]);
                ++run->n_steps_done;
            }
        if (o->interleaved && c->family->suite != SUITE_DEVICE)
            run_baseline_round(c);
    }
    progress_clear();
    for (size_t i = 0; i < all->n; ++i)
        if (all->list[i].case_run) {
            case_run_end(all->list[i].case_run, &options[i]);
            conclude(&all->list[i], run->report, only_for_roofline(c, o));
        }
    report_write(run->report, false);
}

static void report_bench_devices(struct run *run)
{
    const struct options *o = run->o;

    for (size_t i = 0; i < run->bench_devices.n; ++i) {
        struct bench_device *s = &run->bench_devices.list[i];
        if (!s->ctx) {
            report_no_device(run->report, &s->info, s->reason);
            run->report->n_failed += s->failed;
            continue;
        }
        s->json =
            report_device(run->report, &s->info, s->set, s->limited ? s->max_loop_iterations : 0);
        s->n_wanted = count_wanted(o, s->set);
        run->n_steps += s->n_wanted * o->n_rounds;
    }
}

static void report_rooflines(struct run *run)
{
    for (size_t i = 0; i < run->bench_devices.n; ++i) {
        struct bench_device *s = &run->bench_devices.list[i];
        s->first_roofline = s->roofline;
        if (s->json && (s->roofline.copy_rate > 0 || s->roofline.fma_rate > 0))
            report_roofline(s->json, &s->info, "roofline", &s->roofline);
    }
}

// The case once more on all devices, for the roofline alone.
static void run_limit_again(struct run *run, const struct bench_case *c)
{
    const struct measure_options again = {.budget_s = roofline_again_s, .min_runs = 1};
    struct measure_options options[MAX_BENCH_DEVICES];
    struct bench_devices *all = &run->bench_devices;

    begin_case(run, c, options);
    for (size_t i = 0; i < all->n; ++i) {
        struct bench_device *s = &all->list[i];
        if (!s->case_run)
            continue;
        options[i] = again;
        options[i].driver_does_not_wait = s->driver_does_not_wait;
        case_run_round(s->case_run, &options[i]);
        case_run_end(s->case_run, &options[i]);
        roofline_take(&s->roofline, &s->case_run->result);
        case_run_free(s->case_run);
        s->case_run = NULL;
    }
}

static void run_rooflines_again(struct run *run)
{
    run->n_since_roofline = 0;
    for (size_t i = 0; i < bench_n_cases && !stop_wanted(); ++i)
        if (is_limit(&bench_cases[i]) && wanted(&bench_cases[i], run->o))
            run_limit_again(run, &bench_cases[i]);
    progress_clear();
    for (size_t i = 0; i < run->bench_devices.n; ++i) {
        struct bench_device *s = &run->bench_devices.list[i];
        if (s->json && (s->roofline.copy_rate > 0 || s->roofline.fma_rate > 0))
            json_set_roofline(s->json, &s->roofline);
        roofline_shares_update(&s->shares, &s->roofline);
    }
    report_write(run->report, false);
}

// The rows above were judged by what was known then.
static void report_growth(const struct run *run)
{
    for (size_t i = 0; i < run->bench_devices.n; ++i) {
        const struct bench_device *s = &run->bench_devices.list[i];
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

bool session_run(const struct options *o, const char *directory, struct report *report)
{
    struct run run = {.o = o, .directory = directory, .report = report};

    if (!bench_devices_open(&run.bench_devices, o))
        return false;
    report_bench_devices(&run);
    run_cases(&run);
    report->n_failed += bench_devices_close(&run.bench_devices);
    return true;
}
