// SPDX-License-Identifier: MIT
//
// attncl report: writes one file with all that a bug report or a new device needs.  Each phase is a process with a time
// limit, so that a driver that crashes or hangs costs that phase only.  The file is replaced before and after each.

#define _GNU_SOURCE // dladdr
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <attncl/opencl.h>

#include "report.h"

static const char usage[] =
    "usage: attncl report OUT.json [options]\n"
    "\n"
    "Collects what a bug report or a new device needs: OpenCL's loader, devices, extensions and\n"
    "limits, what the driver's compiler makes of each program, a self-test, the bundled model, a\n"
    "short benchmark, and the library's log.  Each phase is a process with a time limit, and\n"
    "OUT.json is replaced before and after it, so that a crash costs one phase.  Meanwhile\n"
    "OUT.json.bench has the benchmark so far.  OUT.json names devices, drivers, the CPU and the\n"
    "system, but no user, host or home directory.  bench/report makes a page of it.\n";

enum { REPORT_SCHEMA = 1, LIMIT_S = 900, FAST_LIMIT_S = 120 };
static const char privacy[] =
    "Devices, drivers, the CPU, the system, settings and logs.  Names of the user and the host, "
    "the home directory, and the directories of this program and this file are no part of it: "
    "words "
    "in < > stand for them.";
static const char fast_cases[] =
    "copy,FMA,launch,product 256,=attention BH=4 T=80 d=16,=AFT-local s=8 T=64 B=2,=gMLP block "
    "d=32 f=64 T=48 B=2,=lm decode transformer d=32 2 layers T=32 B=2,=train step AFT-local d=32 2 "
    "layers T=32 B=2";
static const char full_cases[] = "headline,own product,CLBlast product,copy,FMA";
static const char bench_file[] = ".bench";

// Finds the first of two files, relative to the program's directory, that exists; else gives the second.
static void find_beside(const struct report *r, const char *const names[2], char path[PATH_MAX])
{
    for (int i = 0; i < 2; i++) {
        snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX / 2, r->directory, names[i]);
        if (access(path, R_OK) == 0)
            return;
    }
}

// Describes OpenCL's loader: its path, the drivers that its .icd files name, and environment variables.
static json_t *describe_loader(void)
{
    static const char *const names[] = {
        "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES", "OPENCL_VENDOR_PATH", "RUSTICL_ENABLE",
        "LD_LIBRARY_PATH", "ATTNCL_DEVICE",     "ATTNCL_GEMM",        "ATTNCL_VARIANT",
        "ATTNCL_SHUFFLE",  "ATTNCL_QUEUES",     "ATTNCL_CL_DIR",      "ATTNCL_TUNE"};
    json_t *const drivers = json_object(), *const variables = json_object();
    const char *const named = getenv("OCL_ICD_VENDORS");
    const char *const vendors = named && *named ? named : "/etc/OpenCL/vendors";
    char path[PATH_MAX], line[512];
    DIR *const directory = opendir(vendors);
    Dl_info loader = {0};

    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        snprintf(path, sizeof path, "%s/%s", vendors, entry->d_name);
        FILE *const file = strstr(entry->d_name, ".icd") ? fopen(path, "r") : NULL;
        if (file && fgets(line, sizeof line, file))
            json_object_set_new(drivers, entry->d_name, json_stringn(line, strcspn(line, "\r\n")));
        if (file)
            fclose(file);
    }
    if (directory)
        closedir(directory);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]))
            json_object_set_new(variables, names[i], json_text(getenv(names[i])));
    cl_int (*const function)(cl_uint, cl_platform_id *, cl_uint *) = clGetPlatformIDs;
    void *address;
    memcpy(&address, &function, sizeof address);
    dladdr(address, &loader);
    return json_pack("{so so so}", "library", json_text(loader.dli_fname), "drivers", drivers,
                     "environment", variables);
}

// "gpu" if a listed device is one; without a device the benchmark would take all.
static const char *choose_device(const struct report *r)
{
    const json_t *const phase = json_array_get(json_object_get(r->root, "phases"), 0);
    const json_t *device;
    size_t i;

    json_array_foreach (json_object_get(phase, "result"), i, device) {
        const char *type = json_string_value(json_object_get(device, "type"));
        if (type && strcmp(type, "GPU") == 0)
            return "gpu";
    }
    return NULL;
}

static int run_phases(const struct report *r)
{
    static const char *const benches[] = {"attncl-bench", "../bench/attncl-bench"};
    static const char *const models[] = {
        "../share/doc/attncl/examples/models/shakespeare.safetensors",
        "../../examples/models/shakespeare.safetensors"};
    static const char *const texts[] = {"../share/doc/attncl/examples/romeo_and_juliet.txt",
                                        "../../examples/romeo_and_juliet.txt"};
    static const char *const precisions[] = {"tf32", "bf16"};
    char name[32];
    const char *const cases = r->fast ? fast_cases : full_cases;
    char bench[PATH_MAX], model[PATH_MAX], text[PATH_MAX], results[PATH_MAX];
    char *const tool = (char *)r->tool, *const devices[] = {tool, "devices", "--json", NULL};

    find_beside(r, benches, bench);
    find_beside(r, models, model);
    find_beside(r, texts, text);
    snprintf(results, sizeof results, "%s%s", r->path, bench_file);
    TOOL_TRY(report_run_phase(r, "devices", devices, NULL));
    char *const device = (char *)(r->device ? r->device : choose_device(r));
    char *const with = device ? "--device" : NULL; // NULL ends the arguments
    char *const selftest[] = {tool, "selftest", "--verbose", r->fast ? "--brief" : "--large",
                              with, device,     NULL};
    char *const eval[] = {tool,     "eval",      model, text,   "--bytes", "0:4096",
                          "--json", "--verbose", with,  device, NULL};
    // A second --no-cold changes nothing: a device that ends long loops gets small sizes.
    char *const timing[] = {bench,
                            "--no-cold",
                            "--budget",
                            r->fast ? "2" : "60",
                            "--only",
                            (char *)cases,
                            "--json",
                            results,
                            r->fast ? "--small" : "--no-cold",
                            with,
                            device,
                            NULL};
    TOOL_TRY(report_run_phase(r, "selftest", selftest, NULL));
    // Also tests matrix instructions, on devices that have them.
    for (int i = 0; i < 2; i++) {
        char *const rounded[] = {tool,      "selftest",    "--verbose",
                                 "--brief", "--precision", (char *)precisions[i],
                                 with,      device,        NULL};
        snprintf(name, sizeof name, "selftest %s", precisions[i]);
        TOOL_TRY(report_run_phase(r, name, rounded, NULL));
    }
    TOOL_TRY(report_run_phase(r, "model", eval, NULL));
    return report_run_phase(r, "bench", timing, results);
}

static int start_report(struct report *r)
{
    const char *const home = getenv("HOME");
    const struct passwd *const user = getpwuid(getuid());
    const time_t now = time(NULL);
    struct tm utc;
    char date[32];
    const ssize_t n = readlink("/proc/self/exe", r->tool, sizeof r->tool - 1);

    if (n <= 0 || !strchr(r->tool, '/'))
        return tool_error("the path of this program is not known: %s", strerror(errno));
    snprintf(r->directory, sizeof r->directory, "%.*s", (int)(strrchr(r->tool, '/') - r->tool),
             r->tool);
    snprintf(r->home, sizeof r->home, "%s", home ? home : "");
    snprintf(r->user, sizeof r->user, "%s", user ? user->pw_name : "");
    gethostname(r->host, sizeof r->host - 1);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    r->root =
        json_pack("{si ss ss ss ss sb sb so s[]}", "schema", REPORT_SCHEMA, "program",
                  "attncl report", "version", attncl_version(), "date", date, "private", privacy,
                  "fast", r->fast, "complete", false, "loader", describe_loader(), "phases");
    if (!r->root)
        return tool_error("out of memory");
    report_hide_private(r, json_object_get(r->root, "loader"));
    return report_write(r);
}

int command_report(int argc, char **argv)
{
    struct report r = {.limit = 0};
    const char *binaries = NULL;
    char inside[PATH_MAX];
    const struct option_row rows[] = {
        {"OUT.json", .kind = OPTION_OPERAND, .value = &r.path},
        {"fast", 0, OPTION_SWITCH, &r.fast,
         .help = "a minute on a CPU: attention and products, small sizes in the benchmark"},
        {"limit", 0, OPTION_NUMBER, &r.limit, "S", .low = 0.01L, .high = 1e6,
         .help = "seconds for each phase (default 900, with --fast 120)"},
        {"binaries", 0, OPTION_TEXT, &binaries, "DIRECTORY",
         .help = "keep the programs' binaries there, in the form of the program cache"},
        DEVICE_OPTION(&r.device),
        {.name = NULL},
    };
    int status = tool_options("report", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    TOOL_TRY(output_check(r.path));
    r.limit = r.limit > 0 ? r.limit : r.fast ? FAST_LIMIT_S : LIMIT_S;
    snprintf(inside, sizeof inside, "%s/.", binaries ? binaries : "");
    if (binaries && ((mkdir(binaries, 0777) != 0 && errno != EEXIST) || access(inside, W_OK) != 0))
        return tool_error("--binaries: %s: %s", binaries, strerror(errno));
    // The driver compiles everything, and the library is measured without tuning.
    setenv("ATTNCL_CACHE", binaries ? "rw" : "off", 1);
    if (binaries)
        setenv("ATTNCL_CACHE_DIR", binaries, 1);
    setenv("ATTNCL_TUNE", "off", 0);
    if (attncl_environment_check() != ATTNCL_OK)
        return tool_failed(); // no phase would open a device
    status = start_report(&r);
    if (status == TOOL_OK)
        status = run_phases(&r);
    if (status == TOOL_OK) {
        json_object_set_new(r.root, "complete", json_true());
        status = report_write(&r);
    }
    json_decref(r.root);
    return status;
}
