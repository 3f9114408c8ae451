// SPDX-License-Identifier: MIT
//
// attncl-bench: every case on every device, checked, then timed; and reports compared.

#include <stdio.h>
#include <stdlib.h>

#include "harness/compare.h"
#include "harness/folder.h"
#include "harness/session.h"

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
    struct folder programs = {""};

    if (o->cold && !folder_make(&programs))
        return EXIT_WRONG;
    const bool ran = session_run(o, o->cold ? programs.path : NULL, report);
    folder_remove(&programs);
    if (!ran)
        return EXIT_NO_DEVICE;
    int exit_status = EXIT_SUCCESS;
    if (report->n_wrong || report->n_failed) {
        printf("\n%zu wrong, %zu failed\n", report->n_wrong, report->n_failed);
        exit_status = EXIT_WRONG;
    }
    if (o->json && !report_write(report, o->json))
        exit_status = EXIT_WRONG;
    return exit_status;
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

    report_begin(&report, argc, argv, o.label);
    exit_status = run(&o, &report);
    report_end(&report);
    return exit_status;
}
