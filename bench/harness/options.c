// SPDX-License-Identifier: MIT

#include "harness/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "Usage: attncl-bench [OPTION]...\n"
    "Runs the library's operations and layers on every OpenCL device, compares each result with "
    "its\n"
    "definition in double precision, times the right ones and prints a table.\n"
    "\n"
    "  --device X     only this device: gpu, cpu, PLATFORM:DEVICE, or part of a name\n"
    "  --only TEXT    only cases whose name or family contains TEXT, case ignored\n"
    "  --quick        small sizes (taken anyway on devices that limit the length of loops)\n"
    "  --full         full sizes on every device\n"
    "  --budget S     seconds of timing per device, default 60; checks and builds come on top\n"
    "  --runs N       least number of timed runs of a case, default 5\n"
    "  --json FILE    write everything as JSON\n"
    "  --list         print the cases as JSON and end\n"
    "  --help         this text\n"
    "\n"
    "Columns: min and median wall time of a run with the wait for it; the device's own time; rates "
    "by\n"
    "the fastest run and the operations' own counts (for a layer, the sum over its operations); "
    "error:\n"
    "largest distance from the definition relative to the largest value; build: kernels and plan.\n"
    "\n"
    "Exit status: 0, 1 when a result is wrong or a case failed, 2 for a mistake on the command "
    "line,\n"
    "3 when there is no device.\n";

enum {
    OPT_DEVICE = 1,
    OPT_ONLY,
    OPT_QUICK,
    OPT_FULL,
    OPT_BUDGET,
    OPT_RUNS,
    OPT_JSON,
    OPT_LIST,
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

// False after a mistake.
static bool take(struct options *o, int option)
{
    double x;

    switch (option) {
    case OPT_DEVICE:
        o->device = optarg;
        return true;
    case OPT_ONLY:
        o->only = optarg;
        return true;
    case OPT_QUICK:
        o->quick = true;
        return true;
    case OPT_FULL:
        o->full = true;
        return true;
    case OPT_BUDGET:
        return number("budget", optarg, 0.01, 1e6, &o->budget_s);
    case OPT_RUNS:
        if (!number("runs", optarg, 1, 1e6, &x))
            return false;
        o->min_runs = (size_t)x;
        return true;
    case OPT_JSON:
        o->json = optarg;
        return true;
    case OPT_LIST:
        o->list = true;
        return true;
    default:
        return false; // getopt_long has said what
    }
}

enum options_next options_read(int argc, char **argv, struct options *ret, int *exit_ret)
{
    static const struct option table[] = {
        {"device", required_argument, NULL, OPT_DEVICE},
        {"only", required_argument, NULL, OPT_ONLY},
        {"quick", no_argument, NULL, OPT_QUICK},
        {"full", no_argument, NULL, OPT_FULL},
        {"budget", required_argument, NULL, OPT_BUDGET},
        {"runs", required_argument, NULL, OPT_RUNS},
        {"json", required_argument, NULL, OPT_JSON},
        {"list", no_argument, NULL, OPT_LIST},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    struct options o = {.budget_s = 60, .min_runs = 5};
    int option;

    *exit_ret = EXIT_USAGE;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            *exit_ret = EXIT_SUCCESS;
            return OPTIONS_EXIT;
        }
        if (!take(&o, option))
            return OPTIONS_EXIT;
    }
    if (optind < argc) {
        fprintf(stderr, "attncl-bench: unexpected argument %s; see --help\n", argv[optind]);
        return OPTIONS_EXIT;
    }
    if (o.quick && o.full) {
        fprintf(stderr, "attncl-bench: --quick and --full exclude each other\n");
        return OPTIONS_EXIT;
    }
    *ret = o;
    *exit_ret = EXIT_SUCCESS;
    return OPTIONS_RUN;
}
