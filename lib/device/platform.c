// SPDX-License-Identifier: MIT
//
// Platforms and devices, as the loader lists them.  A driver's answers are untrusted data.  Names
// select quirks and numbers select variants, so a failing query is an error.

#include <stdio.h>
#include <string.h>

#include "device/internal.h"

// The loader's answer when no driver is installed (cl_khr_icd).
enum { PLATFORM_NOT_FOUND_KHR = -1001 };

// Limits of a plausible answer.
enum { MAX_TEXT_BYTES = 1 << 20, MAX_OBJECTS = 4096 };

// Trims blanks at both ends and cuts to `capacity` bytes without splitting a UTF-8 character.
static void copy_trimmed(const char *text, char *out, size_t capacity)
{
    while (*text == ' ')
        ++text;
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == ' ')
        --n;
    if (n >= capacity)
        for (n = capacity - 1; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
            --n;
    memmove(out, text, n); // `text` and `out` may overlap
    out[n] = '\0';
    for (; *out; ++out)
        if ((unsigned char)*out < 0x20 || *out == 0x7f)
            *out = ' ';
}

// Queries the device, or the platform if device is NULL.
static cl_int query(cl_device_id device, cl_platform_id platform, cl_uint what, size_t bytes,
                    void *value, size_t *bytes_ret)
{
    return device ? clGetDeviceInfo(device, what, bytes, value, bytes_ret)
                  : clGetPlatformInfo(platform, what, bytes, value, bytes_ret);
}

static attncl_status query_text(cl_device_id device, cl_platform_id platform, cl_uint what,
                                char **ret)
{
    const char *call = device ? "clGetDeviceInfo" : "clGetPlatformInfo";
    attncl_status status = ATTNCL_OK;
    size_t bytes = 0;
    char *text = NULL;

    const cl_int code = query(device, platform, what, 0, NULL, &bytes);
    const bool unknown = attncl__cl_is_refusal(code) || bytes > MAX_TEXT_BYTES;
    TRY(CL_CODE(unknown ? CL_SUCCESS : code, call));
    // A zeroed byte more, in case the driver omits the terminating zero.
    text = attncl__alloc_zero(unknown ? 1 : bytes + 1);
    REQUIRE(text, ATTNCL_ERR_NO_MEMORY, "a driver's text of %zu bytes", bytes);
    if (!unknown)
        TRY_DONE(CL_CODE(query(device, platform, what, bytes, text, NULL), call));
    *ret = text;
    text = NULL;

done:
    attncl__free(text);
    return status;
}

attncl_status attncl__device_query_text(cl_device_id id, cl_device_info what, char **ret)
{
    TRY(query_text(id, NULL, what, ret));
    copy_trimmed(*ret, *ret, strlen(*ret) + 1);
    return ATTNCL_OK;
}

static attncl_status query_cut_text(cl_device_id device, cl_platform_id platform, cl_uint what,
                                    char *out, size_t capacity)
{
    char *text = NULL;

    TRY(query_text(device, platform, what, &text));
    copy_trimmed(text, out, capacity);
    attncl__free(text);
    return ATTNCL_OK;
}

attncl_status attncl__platform_query_text(cl_platform_id id, cl_platform_info what, char *out,
                                          size_t capacity)
{
    return query_cut_text(NULL, id, what, out, capacity);
}

// A simulator may claim every type at once; then it counts as a CPU.
static attncl_device_type map_device_type(cl_device_type type)
{
    if (type & CL_DEVICE_TYPE_CPU)
        return ATTNCL_DEVICE_CPU;
    return type & CL_DEVICE_TYPE_GPU ? ATTNCL_DEVICE_GPU : ATTNCL_DEVICE_OTHER;
}

static attncl_status describe_texts(cl_device_id id, attncl_device_info *info)
{
    cl_platform_id platform = NULL;

    TRY(DEVICE_QUERY(id, CL_DEVICE_PLATFORM, &platform));
    TRY(attncl__platform_query_text(platform, CL_PLATFORM_NAME, info->platform_name,
                                    sizeof info->platform_name));
    TRY(query_cut_text(id, NULL, CL_DEVICE_NAME, info->name, sizeof info->name));
    TRY(query_cut_text(id, NULL, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor));
    TRY(query_cut_text(id, NULL, CL_DRIVER_VERSION, info->driver_version,
                       sizeof info->driver_version));
    TRY(query_cut_text(id, NULL, CL_DEVICE_VERSION, info->opencl_version,
                       sizeof info->opencl_version));
    return query_cut_text(id, NULL, CL_DEVICE_OPENCL_C_VERSION, info->opencl_c_version,
                          sizeof info->opencl_c_version);
}

attncl_status attncl__device_describe(cl_device_id id, attncl_device_info *ret)
{
    attncl_device_info info = {0};
    cl_device_type type = 0;
    cl_bool available = CL_FALSE;
    size_t max_group = 0;

    TRY(describe_texts(id, &info));
    TRY(DEVICE_QUERY(id, CL_DEVICE_TYPE, &type));
    TRY(DEVICE_QUERY(id, CL_DEVICE_MAX_COMPUTE_UNITS, &info.compute_units));
    TRY(DEVICE_QUERY(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, &info.clock_mhz));
    TRY(DEVICE_QUERY(id, CL_DEVICE_GLOBAL_MEM_SIZE, &info.global_memory_bytes));
    TRY(DEVICE_QUERY(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &info.max_buffer_bytes));
    TRY(DEVICE_QUERY(id, CL_DEVICE_LOCAL_MEM_SIZE, &info.local_memory_bytes));
    TRY(DEVICE_QUERY(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, &info.vector_width));
    TRY(DEVICE_QUERY(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, &max_group));
    TRY(DEVICE_QUERY(id, CL_DEVICE_AVAILABLE, &available));
    info.type = map_device_type(type);
    info.max_work_group = max_group;
    info.available = available != CL_FALSE;
    *ret = info;
    return ATTNCL_OK;
}

// Records a platform without devices, which explains a missing GPU.  Mesa lists such platforms.
static attncl_status add_empty_platform(struct device_list *list, cl_platform_id platform)
{
    const size_t used = strlen(list->empty_platforms);
    char name[64];

    TRY(attncl__platform_query_text(platform, CL_PLATFORM_NAME, name, sizeof name));
    snprintf(list->empty_platforms + used, sizeof list->empty_platforms - used, "%s%s",
             used ? ", " : "", name);
    return ATTNCL_OK;
}

static attncl_status add_platform(struct device_list *list, cl_platform_id platform, int index)
{
    attncl_status status = ATTNCL_OK;
    cl_device_id *ids = NULL;
    cl_uint n = 0;

    const cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n);
    if (code == CL_DEVICE_NOT_FOUND || (code == CL_SUCCESS && (n == 0 || n > MAX_OBJECTS)))
        return add_empty_platform(list, platform);
    TRY(CL_CODE(code, "clGetDeviceIDs"));
    ids = attncl__alloc_array(n, sizeof(cl_device_id));
    REQUIRE(ids, ATTNCL_ERR_NO_MEMORY, "%u device ids", n);
    TRY_DONE(CL_CALL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, ids, NULL)));
    struct device_entry *grown =
        attncl__grow_array(list->entries, list->n + n, sizeof(struct device_entry));
    if (!grown)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%zu devices", list->n + n));
    list->entries = grown;
    for (cl_uint i = 0; i < n; ++i) {
        struct device_entry *entry = &list->entries[list->n];

        *entry = (struct device_entry){.platform = platform, .id = ids[i]};
        TRY_DONE(attncl__device_describe(ids[i], &entry->info));
        entry->info.platform = index;
        entry->info.device = (int)i;
        ++list->n;
    }

done:
    attncl__free(ids);
    return status;
}

attncl_status attncl__devices_list(struct device_list *ret)
{
    attncl_status status = ATTNCL_OK;
    struct device_list list = {0};
    cl_platform_id *platforms = NULL;
    cl_uint n = 0;
    int index = 0;

    const cl_int code = clGetPlatformIDs(0, NULL, &n);
    if (code == PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && n == 0))
        goto done;
    TRY_DONE(CL_CODE(code, "clGetPlatformIDs"));
    if (n > MAX_OBJECTS)
        n = MAX_OBJECTS;
    platforms = attncl__alloc_array(n, sizeof(cl_platform_id));
    if (!platforms)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "%u platform ids", n));
    TRY_DONE(CL_CALL(clGetPlatformIDs(n, platforms, NULL)));
    for (cl_uint i = 0; i < n; ++i) {
        const size_t before = list.n;

        TRY_DONE(attncl__prefix_failure(add_platform(&list, platforms[i], index),
                                        "OpenCL platform %u of %u", i + 1, n));
        index += list.n > before;
    }

done:
    if (status == ATTNCL_OK)
        *ret = list;
    else
        attncl__devices_free(&list);
    attncl__free(platforms);
    return status;
}

void attncl__devices_free(struct device_list *list)
{
    attncl__free(list->entries);
    *list = (struct device_list){0};
}
