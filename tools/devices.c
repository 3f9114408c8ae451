// SPDX-License-Identifier: MIT
//
// attncl devices: every OpenCL device of every platform.

#include "tool.h"

enum { VAL_JSON = 'j' };

static const struct option options[] = {{"json", no_argument, NULL, VAL_JSON}, {NULL, 0, NULL, 0}};

static const struct command command = {
    .name = "devices",
    .usage = "usage: attncl devices [--json]\n"
             "\n"
             "Lists the OpenCL devices.  The first column is what --device and ATTNCL_DEVICE take; "
             "gpu, cpu and a\n"
             "part of the name do as well.\n"
             "\n"
             "  -j, --json      as JSON, one device per line\n"
             "  -v, --verbose   the library's log on stderr\n"
             "  -h, --help      this text\n"
             "\n"
             "Exit status 1 when there is no device.\n",
    .options = options,
    .n_operands = 0,
};

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

static void print_text(const attncl_device_info *d)
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
}

static void print_field(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    json_string(stdout, text);
}

static void print_json(const attncl_device_info *d)
{
    printf("  {\"id\": \"%d:%d\", \"type\": \"%s\"", d->platform, d->device, type_name(d->type));
    print_field("name", d->name);
    print_field("platform", d->platform_name);
    print_field("vendor", d->vendor);
    print_field("driver_version", d->driver_version);
    print_field("opencl_version", d->opencl_version);
    print_field("opencl_c_version", d->opencl_c_version);
    printf(", \"compute_units\": %u, \"clock_mhz\": %u", d->compute_units, d->clock_mhz);
    printf(
        ", \"global_memory_bytes\": %llu, \"max_buffer_bytes\": %llu, \"local_memory_bytes\": %llu",
        (unsigned long long)d->global_memory_bytes, (unsigned long long)d->max_buffer_bytes,
        (unsigned long long)d->local_memory_bytes);
    printf(", \"max_work_group\": %llu, \"vector_width\": %u, \"available\": %s}",
           (unsigned long long)d->max_work_group, d->vector_width, d->available ? "true" : "false");
}

int command_devices(int argc, char **argv)
{
    bool json = false;
    size_t n = 0;
    int option, status = TOOL_OK;

    while ((option = tool_option(&command, argc, argv, &status)) != OPTION_DONE) {
        if (option == OPTION_EXIT)
            return status;
        json = true;
    }
    if (attncl_device_count(&n) != ATTNCL_OK)
        return tool_failed();
    if (json)
        printf("[\n");
    for (size_t i = 0; i < n; i++) {
        attncl_device_info info;
        if (attncl_device_get(i, &info) != ATTNCL_OK)
            return tool_failed();
        if (json) {
            print_json(&info);
            printf(i + 1 < n ? ",\n" : "\n");
        } else {
            print_text(&info);
        }
    }
    if (json)
        printf("]\n");
    if (n == 0)
        return tool_error("no OpenCL device; install a driver, for example pocl-opencl-icd");
    return TOOL_OK;
}
