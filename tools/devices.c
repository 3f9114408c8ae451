// SPDX-License-Identifier: MIT
//
// attncl devices: every OpenCL device of every platform.

#include <string.h>

#include "tool.h"

static const char usage[] =
    "usage: attncl devices [--json]\n"
    "\n"
    "Lists the OpenCL devices.  --device and ATTNCL_DEVICE accept the first column, gpu, cpu,\n"
    "or part of a name.  The lines below a device are results of its checks with this driver:\n"
    "those of attncl selftest, and of the first compilation of a graph.  Exit status 1 if there\n"
    "is no device.\n";

static const char *type_name(attncl_device_type type)
{
    switch (type) {
    case ATTNCL_DEVICE_GPU:
        return "GPU";
    case ATTNCL_DEVICE_CPU:
        return "CPU";
    default:
        return "other";
    }
}

static double gib(uint64_t bytes)
{
    return (double)bytes / (1u << 30);
}

// Each line after five columns.
static void print_lines(const char *text)
{
    for (size_t n; *text; text += n + (text[n] != '\0')) {
        n = strcspn(text, "\n");
        printf("     %.*s\n", (int)n, text);
    }
}

static void print_device(const attncl_device_info *d, const char *findings)
{
    printf("%d:%d  %-5s  %s%s\n", d->platform, d->device, type_name(d->type), d->name,
           d->available ? "" : "  (not available)");
    printf("     %s, %s, driver %s\n", d->platform_name, d->opencl_version, d->driver_version);
    printf("     %u compute units", d->compute_units);
    if (d->clock_mhz > 0)
        printf(" at %u MHz", d->clock_mhz);
    printf(", %.1f GiB memory (%.1f GiB in one buffer), %llu KiB local memory\n",
           gib(d->global_memory_bytes), gib(d->max_buffer_bytes),
           (unsigned long long)d->local_memory_bytes / 1024);
    print_lines(findings);
}

// An array of the lines; NULL: out of memory.
static json_t *json_lines(const char *text)
{
    json_t *lines = json_array();

    for (size_t n; lines && *text; text += n + (text[n] != '\0')) {
        char line[1024];
        n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        json_array_append_new(lines, json_text(line));
    }
    return lines;
}

static bool print_device_json(const attncl_device_info *d, const char *findings)
{
    char id[32];
    json_t *device;

    snprintf(id, sizeof id, "%d:%d", d->platform, d->device);
    device = json_pack(
        "{ss ss so so so so so so sI sI sI sI sI sI sI sb so}", "id", id, "type",
        type_name(d->type), "name", json_text(d->name), "platform", json_text(d->platform_name),
        "vendor", json_text(d->vendor), "driver_version", json_text(d->driver_version),
        "opencl_version", json_text(d->opencl_version), "opencl_c_version",
        json_text(d->opencl_c_version), "compute_units", (json_int_t)d->compute_units, "clock_mhz",
        (json_int_t)d->clock_mhz, "global_memory_bytes", (json_int_t)d->global_memory_bytes,
        "max_buffer_bytes", (json_int_t)d->max_buffer_bytes, "local_memory_bytes",
        (json_int_t)d->local_memory_bytes, "max_work_group", (json_int_t)d->max_work_group,
        "vector_width", (json_int_t)d->vector_width, "available", d->available, "findings",
        json_lines(findings));
    if (device)
        json_dumpf(device, stdout, 0);
    json_decref(device);
    return device != NULL;
}

int command_devices(int argc, char **argv)
{
    bool json = false;
    const struct option_row rows[] = {
        {"json", 'j', OPTION_SWITCH, &json, .help = "print JSON, one device per line"},
        {.name = NULL},
    };
    const int status = tool_options("devices", usage, rows, argc, argv);
    size_t n = 0;

    if (status != OPTIONS_OK)
        return status;
    if (attncl_device_count(&n) != ATTNCL_OK)
        return tool_failed();
    if (json)
        printf("[\n");
    for (size_t i = 0; i < n; i++) {
        attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
        char findings[8192];
        if (attncl_device_get(i, &info) != ATTNCL_OK ||
            attncl_device_findings(i, findings, sizeof findings) != ATTNCL_OK)
            return tool_failed();
        if (json) {
            if (!print_device_json(&info, findings))
                return tool_error("out of memory");
            printf(i + 1 < n ? ",\n" : "\n");
        } else {
            print_device(&info, findings);
        }
    }
    if (json)
        printf("]\n");
    if (n == 0)
        return tool_no_device();
    return TOOL_OK;
}
