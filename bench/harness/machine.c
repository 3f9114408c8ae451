// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // sched_getaffinity

#include "harness/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "attncl/version.h"

// The value of the first line "KEY<separator>value" of a file, without quotes; "" when there is
// none.
static void value_of(const char *path, const char *key, char separator, char *text, size_t capacity)
{
    char line[512];
    FILE *file = fopen(path, "r");

    text[0] = '\0';
    while (file && !text[0] && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, separator);

        if (strncmp(line, key, strlen(key)) != 0 || !value)
            continue;
        value += 1 + strspn(value + 1, " \t\"");
        snprintf(text, capacity, "%.*s", (int)strcspn(value, "\"\n"), value);
    }
    if (file)
        fclose(file);
}

static json_t *text_or_null(const char *text)
{
    json_t *string = text[0] ? json_string(text) : NULL;

    return string ? string : json_null();
}

static int usable_threads(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                       : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static json_t *describe_host(void)
{
    char os[256], cpu[256], kernel[256] = "";
    struct utsname u;

    value_of("/etc/os-release", "PRETTY_NAME", '=', os, sizeof os);
    value_of("/proc/cpuinfo", "model name", ':', cpu, sizeof cpu);
    if (uname(&u) == 0)
        snprintf(kernel, sizeof kernel, "%s %s %s", u.sysname, u.release, u.machine);
    return json_pack("{s:o, s:o, s:o, s:i, s:i, s:I}", "os", text_or_null(os), "kernel",
                     text_or_null(kernel), "cpu", text_or_null(cpu), "cores",
                     (int)sysconf(_SC_NPROCESSORS_ONLN), "threads", usable_threads(),
                     "memory_bytes",
                     (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE));
}

json_t *machine_report(const char *program, const char *revision, int argc, char **argv,
                       const char *label)
{
    char date[32];
    const time_t now = time(NULL);
    struct tm utc;
    json_t *command = json_array();

    for (int i = 0; i < argc; ++i)
        json_array_append_new(command, json_string(argv[i]));
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_pack("{s:i, s:s, s:s, s:s?, s:s, s:o, s:o, s:o, s:[]}", "schema", REPORT_SCHEMA,
                     "program", program, "version", attncl_version(), "revision", revision, "date",
                     date, "command", command, "label", text_or_null(label ? label : ""), "host",
                     describe_host(), "devices");
}

json_t *machine_settings(void)
{
    static const char *const names[] = {"ATTNCL_TUNE",   "ATTNCL_GEMM",   "ATTNCL_VARIANT",
                                        "ATTNCL_GUARD",  "ATTNCL_CL_DIR", "POCL_MAX_PTHREAD_COUNT",
                                        "POCL_AFFINITY", "LP_NUM_THREADS"};
    json_t *settings = json_object();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        const char *value = getenv(names[i]);

        if (value && *value)
            json_object_set_new(settings, names[i], text_or_null(value));
    }
    return settings;
}
