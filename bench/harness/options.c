// SPDX-License-Identifier: MIT

#include "harness/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: attncl-bench [OPTION]...\n"
    "       attncl-bench --compare A.json[,AGAIN.json...] B.json[,AGAIN.json...] [--markdown]\n"
    "Runs the library's operations, layers and models on every OpenCL device, compares each\n"
    "result with its reference in double precision, times the right ones and prints a table.\n"
    "The devices are interleaved, case by case and round by round.\n"
    "\n"
    "  --suite S[,S]  only these: device (bandwidth, peak, launches), op, layer, model\n"
    "  --only TEXT    only cases whose name or family contains TEXT, case ignored; several with\n"
    "                 commas between them\n"
    "  --device X     only this device: gpu, cpu, PLATFORM:DEVICE, or part of a name; may be\n"
    "                 repeated\n"
    "  --quick        small sizes (taken anyway on devices that limit the length of loops)\n"
    "  --full         full sizes on every device\n"
    "  --budget S     seconds of timing per device, default 60; checks and builds come on top\n"
    "  --rounds N     rounds of each device at a case, default 3\n"
    "  --runs N       least number of timed runs of a case, default 5\n"
    "  --no-cold      do not time compilation; programs come from the usual caches\n"
    "  --no-roofline  do not measure bandwidth and peak when suite device is not among the wanted\n"
    "  --json FILE    write everything as JSON (bench/JSON.md)\n"
    "  --label TEXT   what to call this machine in reports of several\n"
    "  --interleaved  for baselines: after a round of a case print \"turn\", a tab and its name, "
    "and "
    "wait\n"
    "                 for a line on standard input\n"
    "  --list         print the cases as JSON and end\n"
    "  --compare A B  compare two sides, from JSON reports of this program or of baselines: ratios "
    "of\n"
    "                 B's times to A's, above 1 where A is faster; marked where the spreads part\n"
    "  --markdown     the comparison as a Markdown table\n"
    "  --help         this text\n"
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

enum {
    OPT_DEVICE = 1,
    OPT_SUITE,
    OPT_ONLY,
    OPT_QUICK,
    OPT_FULL,
    OPT_BUDGET,
    OPT_ROUNDS,
    OPT_RUNS,
    OPT_NO_COLD,
    OPT_NO_ROOFLINE,
    OPT_JSON,
    OPT_LABEL,
    OPT_INTERLEAVED,
    OPT_LIST,
    OPT_COMPARE,
    OPT_MARKDOWN,
    OPT_HELP
};
enum { EXIT_USAGE = 2 };

static bool number(const char *option, const char *text, double low, double high, double *ret)
{
    char *end;
    const double x = strtod(text, &end);

    if (end == text || *end || !(x >= low && x <= high)) {
        fprintf(stderr, "attncl-bench: --%s %s: give a number from %g to %g\n", option, text, low,
                high);
        return false;
    }
    *ret = x;
    return true;
}

static bool count(const char *option, const char *text, double high, size_t *ret)
{
    double x;

    if (!number(option, text, 1, high, &x))
        return false;
    *ret = (size_t)x;
    return true;
}

static bool suites(const char *text, bool *wanted)
{
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

static bool device(struct options *o, const char *name)
{
    if (o->n_devices == OPTIONS_MAX_DEVICES) {
        fprintf(stderr, "attncl-bench: more than %d --device\n", OPTIONS_MAX_DEVICES);
        return false;
    }
    o->devices[o->n_devices++] = name;
    return true;
}

// Options without a value.
static bool take_switch(struct options *o, int option)
{
    switch (option) {
    case OPT_QUICK:
        return o->quick = true;
    case OPT_FULL:
        return o->full = true;
    case OPT_INTERLEAVED:
        return o->interleaved = true;
    case OPT_LIST:
        return o->list = true;
    case OPT_MARKDOWN:
        return o->markdown = true;
    case OPT_NO_COLD:
        o->cold = false;
        return true;
    case OPT_NO_ROOFLINE:
        o->roofline = false;
        return true;
    default:
        return false; // getopt_long has said what
    }
}

// False after a mistake.
static bool take(struct options *o, int option)
{
    switch (option) {
    case OPT_DEVICE:
        return device(o, optarg);
    case OPT_SUITE:
        return suites(optarg, o->suites);
    case OPT_ONLY:
        o->only = optarg;
        return true;
    case OPT_BUDGET:
        return number("budget", optarg, 0.01, 1e6, &o->budget_s);
    case OPT_ROUNDS:
        return count("rounds", optarg, 1000, &o->n_rounds);
    case OPT_RUNS:
        return count("runs", optarg, 1e6, &o->min_runs);
    case OPT_JSON:
        o->json = optarg;
        return true;
    case OPT_LABEL:
        o->label = optarg;
        return true;
    case OPT_COMPARE:
        o->compare[0] = optarg;
        return true;
    default:
        return take_switch(o, option);
    }
}

// What is left after the options: the second side of --compare.
static bool take_rest(struct options *o, int n, char **rest)
{
    if (o->compare[0] && n > 0) {
        o->compare[1] = *rest++;
        --n;
    }
    if (n > 0) {
        fprintf(stderr, "attncl-bench: unexpected argument %s; see --help\n", *rest);
        return false;
    }
    if (o->compare[0] && !o->compare[1])
        fprintf(stderr, "attncl-bench: --compare needs two sides\n");
    else if (o->quick && o->full)
        fprintf(stderr, "attncl-bench: --quick and --full exclude each other\n");
    else
        return true;
    return false;
}

enum options_next options_read(int argc, char **argv, struct options *ret, int *exit_ret)
{
    static const struct option table[] = {
        {"device", required_argument, NULL, OPT_DEVICE},
        {"suite", required_argument, NULL, OPT_SUITE},
        {"only", required_argument, NULL, OPT_ONLY},
        {"quick", no_argument, NULL, OPT_QUICK},
        {"full", no_argument, NULL, OPT_FULL},
        {"budget", required_argument, NULL, OPT_BUDGET},
        {"rounds", required_argument, NULL, OPT_ROUNDS},
        {"runs", required_argument, NULL, OPT_RUNS},
        {"no-cold", no_argument, NULL, OPT_NO_COLD},
        {"no-roofline", no_argument, NULL, OPT_NO_ROOFLINE},
        {"json", required_argument, NULL, OPT_JSON},
        {"label", required_argument, NULL, OPT_LABEL},
        {"interleaved", no_argument, NULL, OPT_INTERLEAVED},
        {"turns", no_argument, NULL, OPT_INTERLEAVED}, // its former name
        {"list", no_argument, NULL, OPT_LIST},
        {"compare", required_argument, NULL, OPT_COMPARE},
        {"markdown", no_argument, NULL, OPT_MARKDOWN},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    struct options o = {
        .budget_s = 60, .min_runs = 5, .n_rounds = 3, .cold = true, .roofline = true};
    int option;

    *exit_ret = EXIT_USAGE;
    memset(o.suites, true, sizeof o.suites);
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            *exit_ret = EXIT_SUCCESS;
            return OPTIONS_EXIT;
        }
        if (!take(&o, option))
            return OPTIONS_EXIT;
    }
    if (!take_rest(&o, argc - optind, argv + optind))
        return OPTIONS_EXIT;
    *ret = o;
    *exit_ret = EXIT_SUCCESS;
    return OPTIONS_RUN;
}
