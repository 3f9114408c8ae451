// SPDX-License-Identifier: MIT
//
// attncl devices: lists every OpenCL device of every platform.

#define _POSIX_C_SOURCE 200809L // strtok_r
#include <stdlib.h>
#include <string.h>

#include <attncl/opencl.h>

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
    return type == ATTNCL_DEVICE_GPU ? "GPU" : type == ATTNCL_DEVICE_CPU ? "CPU" : "other";
}

static double to_gib(uint64_t bytes)
{
    return (double)bytes / (1u << 30);
}

// Prints lines indented by five columns.
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
           to_gib(d->global_memory_bytes), to_gib(d->max_buffer_bytes),
           (unsigned long long)d->local_memory_bytes / 1024);
    print_lines(findings);
}

// An array of the lines; NULL: out of memory.
static json_t *json_lines(const char *text)
{
    json_t *lines = json_array();

    for (size_t n; lines && *text; text += n + (text[n] != '\0')) {
        n = strcspn(text, "\n");
        json_array_append_new(lines, json_stringn(text, n));
    }
    return lines;
}

// -- the driver's own answers, printed by --json only

// Limits by their OpenCL names; numeric ones belong to vendor extensions.
#define LIMIT(name)                                                                                \
    {                                                                                              \
#name, CL_DEVICE_##name                                                                    \
    }
static const struct {
    const char *name;
    cl_device_info what;
} limits[] = {
    LIMIT(ADDRESS_BITS),
    LIMIT(MAX_WORK_ITEM_SIZES),
    LIMIT(MAX_PARAMETER_SIZE),
    LIMIT(MAX_CONSTANT_BUFFER_SIZE),
    LIMIT(GLOBAL_MEM_CACHE_SIZE),
    LIMIT(GLOBAL_MEM_CACHELINE_SIZE),
    LIMIT(LOCAL_MEM_TYPE),
    LIMIT(MEM_BASE_ADDR_ALIGN),
    LIMIT(PREFERRED_VECTOR_WIDTH_FLOAT),
    LIMIT(NATIVE_VECTOR_WIDTH_HALF),
    LIMIT(SINGLE_FP_CONFIG),
    LIMIT(DOUBLE_FP_CONFIG),
    LIMIT(HOST_UNIFIED_MEMORY),
    LIMIT(PROFILING_TIMER_RESOLUTION),
    {"HALF_FP_CONFIG", 0x1033},
    {"MAX_NUM_SUB_GROUPS", 0x105c},
    {"SUB_GROUP_SIZES_INTEL", 0x4108},
    {"COMPUTE_CAPABILITY_MAJOR_NV", 0x4000},
    {"COMPUTE_CAPABILITY_MINOR_NV", 0x4001},
    {"REGISTERS_PER_BLOCK_NV", 0x4002},
    {"WARP_SIZE_NV", 0x4003},
    {"WAVEFRONT_WIDTH_AMD", 0x4043},
};

enum { MAX_LISTED = 64, MAX_NUMBERS = 16 };

// Finds the device by its numbers; NULL if the driver's list has changed.
static cl_device_id find_device(const attncl_device_info *d)
{
    cl_platform_id platforms[MAX_LISTED];
    cl_device_id devices[MAX_LISTED];
    cl_uint n_platforms = 0, n = 0;
    int at = -1;

    if (clGetPlatformIDs(MAX_LISTED, platforms, &n_platforms) != CL_SUCCESS)
        return NULL;
    for (cl_uint i = 0; i < n_platforms && i < MAX_LISTED && at < d->platform; i++)
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MAX_LISTED, devices, &n) == CL_SUCCESS)
            at++;
    return at == d->platform && d->device < (int)n && d->device < MAX_LISTED ? devices[d->device]
                                                                             : NULL;
}

// A number, or an array of several; null if the driver does not answer.
static json_t *json_limit(cl_device_id device, cl_device_info what)
{
    uint64_t wide[MAX_NUMBERS] = {0};
    uint32_t narrow;
    size_t bytes = 0;

    if (clGetDeviceInfo(device, what, sizeof wide, wide, &bytes) != CL_SUCCESS || bytes == 0)
        return json_null();
    memcpy(&narrow, wide, sizeof narrow);
    if (bytes <= sizeof wide[0])
        return json_integer(bytes == sizeof narrow ? (json_int_t)narrow : (json_int_t)wide[0]);
    json_t *numbers = json_array();
    for (size_t i = 0; i < bytes / sizeof wide[0]; i++)
        json_array_append_new(numbers, json_integer((json_int_t)wide[i]));
    return numbers;
}

// Adds "extensions" and "limits" to a device's JSON.
static void add_driver_answers(json_t *json, const attncl_device_info *d)
{
    const cl_device_id device = find_device(d);
    json_t *extensions = json_array(), *numbers = json_object();
    size_t bytes = 0;

    if (device && clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) == CL_SUCCESS) {
        char *text = calloc(bytes + 1, 1), *rest = text;
        if (text)
            clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, bytes, text, NULL);
        for (char *word; rest && (word = strtok_r(rest, " ", &rest));)
            json_array_append_new(extensions, json_text(word));
        free(text);
    }
    for (size_t i = 0; device && i < sizeof limits / sizeof limits[0]; i++)
        json_object_set_new(numbers, limits[i].name, json_limit(device, limits[i].what));
    json_object_set_new(json, "extensions", extensions);
    json_object_set_new(json, "limits", numbers);
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
    if (device) {
        add_driver_answers(device, d);
        json_dumpf(device, stdout, 0);
    }
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
    TOOL_TRY(tool_status(attncl_device_count(&n)));
    if (json)
        printf("[\n");
    for (size_t i = 0; i < n; i++) {
        attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
        char findings[8192];
        TOOL_TRY(tool_status(attncl_device_get(i, &info)));
        TOOL_TRY(tool_status(attncl_device_findings(i, findings, sizeof findings)));
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
