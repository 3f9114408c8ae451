// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // strcasestr

#include "harness/options.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

enum { NAME_BYTES = 128 };
static const double quick_budget_s = 12;
const char *const sizes_names[] = {"full", "quick", "small"};

static const char usage[] =
    "Usage: attncl-bench [OPTION]...\n"
    "Runs the library's operations, layers and models on every OpenCL device, compares each\n"
    "result with its reference in double precision, times the right ones and prints a table.\n"
    "The devices are interleaved, case by case and round by round.\n";

static const char notes[] =
    "\n"
    "Columns: minimum and median wall time of a run with the wait for it; distance of the\n"
    "quartiles over the median; the device's own time; rates by the fastest run; share of the\n"
    "roofline, of compute (c) or of a copy with the same footprint (m); compilation; memory\n"
    "beside inputs, outputs and weights; distance from the reference over the largest value.\n"
    "\n"
    "Exit status: 0, 1 when a result is wrong or a case failed, 2 for a mistake on the command\n"
    "line, 3 when there is no device.\n";

static bool take_suites(const char *text, void *value)
{
    bool *wanted = value;

    memset(wanted, 0, N_SUITES * sizeof *wanted);
    for (;;) {
        const size_t n = strcspn(text, ",");
        int i = 0;

        while (i < N_SUITES &&
               (strlen(bench_suite_names[i]) != n || strncmp(bench_suite_names[i], text, n) != 0))
            ++i;
        if (i == N_SUITES) {
            fprintf(stderr, "attncl-bench: --suite %.*s: there are device, op, layer, model\n",
                    (int)n, text);
            return false;
        }
        wanted[i] = true;
        if (!text[n])
            return true;
        text += n + 1;
    }
}

static bool take_device(const char *name, void *value)
{
    struct options *o = value;

    if (o->n_devices == OPTIONS_MAX_DEVICES) {
        fprintf(stderr, "attncl-bench: more than %d --device\n", OPTIONS_MAX_DEVICES);
        return false;
    }
    o->devices[o->n_devices++] = name;
    return true;
}

// The next of some texts that commas part; false at the end.
static bool next_text(const char **at, char text[NAME_BYTES])
{
    while (**at == ',')
        ++*at;
    const size_t n = strcspn(*at, ",");
    snprintf(text, NAME_BYTES, "%.*s", (int)n, *at);
    *at += n;
    return n > 0;
}

static bool has_in_name(const struct bench_case *c, const char *text)
{
    if (text[0] == '=')
        return strcmp(c->name, text + 1) == 0;
    if (strcmp(text, "headline") == 0)
        return c->sets & HEADLINE;
    return strcasestr(c->name, text) || strcasestr(c->family->name, text);
}

static bool is_named(const struct bench_case *c, const char *texts)
{
    char text[NAME_BYTES];

    while (next_text(&texts, text))
        if (has_in_name(c, text))
            return true;
    return false;
}

bool options_want(const struct options *o, enum sizes_kind sizes, const struct bench_case *c)
{
    static const unsigned lists[] = {
        [SIZES_FULL] = FULL | HEADLINE, [SIZES_QUICK] = HEADLINE, [SIZES_SMALL] = SMALL};

    return (c->sets & lists[sizes]) && o->suites[c->family->suite] &&
           (!o->only || is_named(c, o->only));
}

// The name or family whose beginning is most like the text.
static const char *nearest_name(const struct options *o, const char *text)
{
    const char *best = "none";
    size_t least = SIZE_MAX;
    char part[NAME_BYTES];

    for (size_t i = 0; i < 2 * bench_n_cases; ++i) {
        const struct bench_case *c = &bench_cases[i / 2];
        const char *name = i % 2 ? c->family->name : c->name;
        snprintf(part, sizeof part, "%.*s", (int)strlen(text) + 1, name);
        const size_t distance = attncl__edit_distance(text, part);
        if (options_want(o, o->sizes, c) && distance < least) {
            best = name;
            least = distance;
        }
    }
    return best;
}

// Every text of --only is in a name of these sizes.
static bool only_is_known(const struct options *o)
{
    const char *rest = o->only ? o->only : "";
    struct options one = *o;
    char text[NAME_BYTES];

    while (next_text(&rest, text)) {
        bool found = false;
        one.only = text;
        for (size_t i = 0; i < bench_n_cases && !found; ++i)
            found = options_want(&one, o->sizes, &bench_cases[i]);
        one.only = NULL;
        if (!found) {
            fprintf(stderr, "attncl-bench: --only %s: in no name of the %s sizes, nearest: %s\n",
                    text, sizes_names[o->sizes], nearest_name(&one, text));
            return false;
        }
    }
    return true;
}

static bool take_sizes(const bool given[3], struct options *o)
{
    int n = 0;

    for (int i = SIZES_FULL; i <= SIZES_SMALL; ++i)
        if (given[i]) {
            o->sizes = (enum sizes_kind)i;
            ++n;
        }
    o->sizes_given = n > 0;
    if (n > 1)
        fprintf(stderr, "attncl-bench: --full, --quick and --small exclude each other\n");
    return n <= 1;
}

int options_read(int argc, char **argv, struct options *ret)
{
    struct options o = {.budget_s = 0};
    bool no_cold = false, no_roofline = false, sizes[3] = {false};
    int64_t runs = 5, rounds = 3;
    const struct option_row rows[] = {
        {"suite", 0, OPTION_CALL, o.suites, "S[,S]", .take = take_suites,
         .help = "only these: device (bandwidth, peak, launches), op, layer, model"},
        {"only", 0, OPTION_TEXT, &o.only, "TEXT",
         .help = "only cases whose name or family contains TEXT, case ignored; several\n"
                 "with commas between them; =NAME: the case of this name; headline: the cases of\n"
                 "--quick"},
        {"device", 0, OPTION_CALL, &o, "X", .take = take_device,
         .help = "only this device: gpu, cpu, PLATFORM:DEVICE, or part of a name; may be\n"
                 "repeated"},
        {"quick", 0, OPTION_SWITCH, &sizes[SIZES_QUICK],
         .help = "the headline cases alone, 12 seconds of timing, compilation not timed"},
        {"small", 0, OPTION_SWITCH, &sizes[SIZES_SMALL],
         .help = "small sizes, which launches bound (taken anyway on devices that limit\n"
                 "the length of loops)"},
        {"full", 0, OPTION_SWITCH, &sizes[SIZES_FULL], .help = "full sizes on every device"},
        {"budget", 0, OPTION_NUMBER, &o.budget_s, "S", .low = 0.01L, .high = 1e6,
         .help = "seconds of timing per device, default 60; checks and builds come on top"},
        {"rounds", 0, OPTION_INTEGER, &rounds, "N", .low = 1, .high = 1000,
         .help = "rounds of each device at a case, default 3"},
        {"runs", 0, OPTION_INTEGER, &runs, "N", .low = 1, .high = 1e6,
         .help = "least number of timed runs of a case, default 5"},
        {"no-cold", 0, OPTION_SWITCH, &no_cold,
         .help = "do not time compilation; programs come from the usual caches"},
        {"no-roofline", 0, OPTION_SWITCH, &no_roofline,
         .help = "do not measure bandwidth and peak when suite device is not among the\n"
                 "wanted"},
        {"json", 0, OPTION_TEXT, &o.json, "FILE",
         .help = "write everything as JSON (docs/dev/benchmark-reports.md)"},
        {"label", 0, OPTION_TEXT, &o.label, "TEXT",
         .help = "what to call this machine in reports of several"},
        {"interleaved", 0, OPTION_SWITCH, &o.interleaved,
         .help = "for baselines: after a round of a case print \"turn\", a tab and its\n"
                 "name, and wait for a line on standard input"},
        {"list", 0, OPTION_SWITCH, &o.list, .help = "print the cases as JSON and end"},
        {.name = NULL},
    };
    const struct command_line line = {
        .program = "attncl-bench", .usage = usage, .notes = notes, .rows = rows};

    memset(o.suites, true, sizeof o.suites);
    const int status = command_line_read(&line, argc, argv);
    if (status != OPTIONS_OK)
        return status;
    if (!take_sizes(sizes, &o) || !only_is_known(&o))
        return OPTIONS_MISTAKE;
    if (o.budget_s <= 0)
        o.budget_s = o.sizes == SIZES_QUICK ? quick_budget_s : 60;
    o.cold = !no_cold && o.sizes != SIZES_QUICK;
    o.roofline = !no_roofline;
    o.min_runs = (size_t)runs;
    o.n_rounds = (size_t)rounds;
    *ret = o;
    return OPTIONS_OK;
}
