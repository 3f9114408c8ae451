// SPDX-License-Identifier: MIT
//
// attncl-bench: every case on every device, checked, then timed; and reports compared.

#include <stdio.h>
#include <stdlib.h>

#include "harness/compare.h"
#include "harness/directory.h"
#include "harness/session.h"
#include "harness/stop.h"

enum { EXIT_WRONG = 1, EXIT_NO_DEVICE = 3 };

static int list_cases(void)
{
    json_t *list = json_array();

    for (size_t i = 0; i < bench_n_cases; ++i)
        json_array_append_new(list, report_case(&bench_cases[i]));
    json_dumpf(list, stdout, JSON_INDENT(1));
    printf("\n");
    json_decref(list);
    return EXIT_SUCCESS;
}

static int run(const struct options *o, struct report *report)
{
    struct directory programs = {""};

    // A run of minutes does not end with a file that cannot be written.
    if (!report_write(report, false))
        return EXIT_WRONG;
    stop_on_signals();
    if (o->cold && !directory_make(&programs))
        return EXIT_WRONG;
    const bool ran = session_run(o, o->cold ? programs.path : NULL, report);
    directory_remove(&programs);
    if (!ran)
        return EXIT_NO_DEVICE;
    if (stop_wanted())
        printf("\nstopped\n");
    if (report->n_wrong || report->n_failed)
        printf("\n%zu wrong, %zu failed\n", report->n_wrong, report->n_failed);
    const bool written = report_write(report, !stop_wanted());
    return written && !stop_wanted() && !report->n_wrong && !report->n_failed ? EXIT_SUCCESS
                                                                              : EXIT_WRONG;
}

int main(int argc, char **argv)
{
    struct options o;
    struct report report;
    int exit_status = EXIT_SUCCESS;

    if (options_read(argc, argv, &o, &exit_status) == OPTIONS_EXIT)
        return exit_status;
    if (o.list)
        return list_cases();
    if (o.compare[0])
        return compare_reports(o.compare[0], o.compare[1], o.markdown);

    report_begin(&report, argc, argv, o.json, o.label);
    exit_status = run(&o, &report);
    report_end(&report);
    return exit_status;
}
