// SPDX-License-Identifier: MIT

#include "harness/options.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "Usage: attncl-bench [OPTION]...\n"
    "       attncl-bench --compare A.json[,AGAIN.json...] B.json[,AGAIN.json...] [--markdown]\n"
    "Runs the library's operations, layers and models on every OpenCL device, compares each\n"
    "result with its reference in double precision, times the right ones and prints a table.\n"
    "The devices are interleaved, case by case and round by round.\n";

static const char notes[] =
    "\n"
    "Columns: minimum and median wall time of a run with the wait for it; spread, the\n"
    "distance of the quartiles relative to the median; the device's own time; rates by the\n"
    "fastest run and the operations' own counts; share of the roofline, of compute (c) or of\n"
    "a large copy (m); share of a copy with the same footprint; compilation with nothing\n"
    "cached, and with programs in the cache; memory beside inputs, outputs and weights;\n"
    "error: largest distance from the reference relative to the largest value.\n"
    "\n"
    "Exit status: 0, 1 when a result is wrong or a case failed or nothing could be compared,\n"
    "2 for a mistake on the command line, 3 when there is no device.\n";

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

// What the rows cannot say: options that need or exclude another.
static const char *contradiction(const struct options *o)
{
    if (o->compare[1] && !o->compare[0])
        return "a file without --compare; see --help";
    if (o->compare[0] && !o->compare[1])
        return "--compare needs two sides";
    return o->quick && o->full ? "--quick and --full exclude each other" : NULL;
}

int options_read(int argc, char **argv, struct options *ret)
{
    struct options o = {.budget_s = 60};
    bool no_cold = false, no_roofline = false;
    int64_t runs = 5, rounds = 3;
    const struct option_row rows[] = {
        {"suite", 0, OPTION_CALL, o.suites, "S[,S]", .take = take_suites,
         .help = "only these: device (bandwidth, peak, launches), op, layer, model"},
        {"only", 0, OPTION_TEXT, &o.only, "TEXT",
         .help = "only cases whose name or family contains TEXT, case ignored; several\n"
                 "with commas between them"},
        {"device", 0, OPTION_CALL, &o, "X", .take = take_device,
         .help = "only this device: gpu, cpu, PLATFORM:DEVICE, or part of a name; may be\n"
                 "repeated"},
        {"quick", 0, OPTION_SWITCH, &o.quick,
         .help = "small sizes (taken anyway on devices that limit the length of loops)"},
        {"full", 0, OPTION_SWITCH, &o.full, .help = "full sizes on every device"},
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
         .help = "write everything as JSON (docs/benchmark-reports.md)"},
        {"label", 0, OPTION_TEXT, &o.label, "TEXT",
         .help = "what to call this machine in reports of several"},
        {"interleaved", 0, OPTION_SWITCH, &o.interleaved,
         .help = "for baselines: after a round of a case print \"turn\", a tab and its\n"
                 "name, and wait for a line on standard input"},
        {"turns", 0, OPTION_SWITCH, &o.interleaved, .help = NULL}, // its former name
        {"list", 0, OPTION_SWITCH, &o.list, .help = "print the cases as JSON and end"},
        {"compare", 0, OPTION_TEXT, &o.compare[0], "A B",
         .help = "compare two sides, from JSON reports of this program or of baselines:\n"
                 "ratios of B's times to A's, above 1 where A is faster; marked where the\n"
                 "spreads part"},
        {"markdown", 0, OPTION_SWITCH, &o.markdown, .help = "the comparison as a Markdown table"},
        {"B", .kind = OPTION_LAST, .value = &o.compare[1]},
        {.name = NULL},
    };
    const struct command_line line = {
        .program = "attncl-bench", .usage = usage, .notes = notes, .rows = rows};

    memset(o.suites, true, sizeof o.suites);
    const int status = command_line_read(&line, argc, argv);
    if (status != OPTIONS_OK)
        return status;
    const char *mistake = contradiction(&o);
    if (mistake) {
        fprintf(stderr, "attncl-bench: %s\n", mistake);
        return OPTIONS_MISTAKE;
    }
    o.cold = !no_cold;
    o.roofline = !no_roofline;
    o.min_runs = (size_t)runs;
    o.n_rounds = (size_t)rounds;
    *ret = o;
    return OPTIONS_OK;
}
