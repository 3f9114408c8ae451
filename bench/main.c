// SPDX-License-Identifier: MIT
//
// attncl-bench: every case on every device, checked, then timed.

#define _GNU_SOURCE // nftw

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "harness/schedule.h"

enum { EXIT_WRONG = 1, EXIT_NO_DEVICE = 3 };

static int list_cases(void)
{
    json_t *list = json_array();

    for (size_t i = 0; i < bench_n_cases; ++i)
        json_array_append_new(list, json_case(&bench_cases[i]));
    json_dumpf(list, stdout, JSON_INDENT(1));
    printf("\n");
    json_decref(list);
    return EXIT_SUCCESS;
}

static void on_signal(int signal_number)
{
    (void)signal_number;
    schedule_stop = 1;
}

// Ctrl-C ends a run after the present round, with what was measured reported; twice, at once.
static void stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    (void)s, (void)type, (void)ftw;
    return remove(path);
}

static void remove_directory(const char *path)
{
    if (path[0])
        nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

// A directory of this process's own for programs, empty at the start, before the first OpenCL call.
// Drivers keep programs in the user's home: there they would be found again in the next run, and
// what is compiled once to be timed would stay for ever.
static bool make_program_directory(char path[256])
{
    static const char *const variables[] = {"POCL_CACHE_DIR", "MESA_SHADER_CACHE_DIR",
                                            "CUDA_CACHE_PATH", "NEO_CACHE_DIR"};
    const char *base = getenv("TMPDIR");
    const int n = snprintf(path, 256, "%s/attncl-bench-XXXXXX", base && *base ? base : "/tmp");
    bool done = n < 256 && mkdtemp(path);

    for (size_t i = 0; done && i < sizeof variables / sizeof variables[0]; ++i) {
        char sub[300];

        snprintf(sub, sizeof sub, "%s/%s", path, variables[i]);
        done = mkdir(sub, 0700) == 0 && setenv(variables[i], sub, 1) == 0;
    }
    if (!done)
        perror("attncl-bench: a temporary directory for programs");
    return done;
}

static int run(const struct options *o, struct report *report)
{
    char programs[256] = "";

    // A run of minutes does not end with a file that cannot be written.
    if (!report_write(report, false))
        return EXIT_WRONG;
    stop_on_signals();
    const bool ready = !o->cold || make_program_directory(programs);
    const bool ran = ready && schedule_run(o, o->cold ? programs : NULL, report);
    remove_directory(programs);
    if (!ran)
        return ready ? EXIT_NO_DEVICE : EXIT_WRONG;
    if (schedule_stop)
        printf("\nstopped\n");
    if (report->n_wrong || report->n_failed)
        printf("\n%zu wrong, %zu failed\n", report->n_wrong, report->n_failed);
    const bool written = report_write(report, !schedule_stop);
    return written && !schedule_stop && !report->n_wrong && !report->n_failed ? EXIT_SUCCESS
                                                                              : EXIT_WRONG;
}

int main(int argc, char **argv)
{
    struct options o;
    struct report report;
    int status = options_read(argc, argv, &o);

    if (status != OPTIONS_OK)
        return status;
    if (o.list)
        return list_cases();

    report_begin(&report, argc, argv, o.json, o.label);
    status = run(&o, &report);
    report_end(&report);
    return status;
}
