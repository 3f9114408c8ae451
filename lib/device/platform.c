// SPDX-License-Identifier: MIT
//
// Platforms and devices, as the loader lists them.  A driver's answers are untrusted data.  A query
// that fails leaves zero or an empty text.

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/clerr.h"
#include "device/platform.h"

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
    memcpy(out, text, n);
    out[n] = '\0';
    for (; *out; ++out)
        if ((unsigned char)*out < 0x20 || *out == 0x7f)
            *out = ' ';
}

void attncl__device_text(cl_device_id id, cl_device_info what, char *out, size_t capacity)
{
    size_t bytes = 0;

    out[0] = '\0';
    if (clGetDeviceInfo(id, what, 0, NULL, &bytes) != CL_SUCCESS || bytes > MAX_TEXT_BYTES)
        return;
    // One byte more, zeroed, in case the driver omits the terminating zero.
    char *text = attncl__alloc_zero(bytes + 1);
    if (text && clGetDeviceInfo(id, what, bytes, text, NULL) == CL_SUCCESS)
        copy_trimmed(text, out, capacity);
    attncl__free(text);
}

void attncl__platform_text(cl_platform_id id, cl_platform_info what, char *out, size_t capacity)
{
    size_t bytes = 0;

    out[0] = '\0';
    if (clGetPlatformInfo(id, what, 0, NULL, &bytes) != CL_SUCCESS || bytes > MAX_TEXT_BYTES)
        return;
    char *text = attncl__alloc_zero(bytes + 1);
    if (text && clGetPlatformInfo(id, what, bytes, text, NULL) == CL_SUCCESS)
        copy_trimmed(text, out, capacity);
    attncl__free(text);
}

static uint32_t number32(cl_device_id id, cl_device_info what)
{
    cl_uint x = 0;
    return clGetDeviceInfo(id, what, sizeof x, &x, NULL) == CL_SUCCESS ? x : 0;
}

static uint64_t number64(cl_device_id id, cl_device_info what)
{
    cl_ulong x = 0;
    return clGetDeviceInfo(id, what, sizeof x, &x, NULL) == CL_SUCCESS ? x : 0;
}

// A simulator may claim every type at once; it counts as a CPU.
static attncl_device_type type_of(cl_device_id id)
{
    cl_device_type type = 0;

    if (clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL) != CL_SUCCESS)
        return ATTNCL_DEVICE_OTHER;
    if (type & CL_DEVICE_TYPE_CPU)
        return ATTNCL_DEVICE_CPU;
    return type & CL_DEVICE_TYPE_GPU ? ATTNCL_DEVICE_GPU : ATTNCL_DEVICE_OTHER;
}

attncl_status attncl__device_describe(cl_device_id id, attncl_device_info *ret)
{
    attncl_device_info info = {.type = type_of(id)};
    cl_platform_id platform = NULL;
    cl_bool available = CL_FALSE;
    size_t max_group = 0;

    TRY_CL(clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL));
    attncl__platform_text(platform, CL_PLATFORM_NAME, info.platform_name,
                          sizeof info.platform_name);
    attncl__device_text(id, CL_DEVICE_NAME, info.name, sizeof info.name);
    attncl__device_text(id, CL_DEVICE_VENDOR, info.vendor, sizeof info.vendor);
    attncl__device_text(id, CL_DRIVER_VERSION, info.driver_version, sizeof info.driver_version);
    attncl__device_text(id, CL_DEVICE_VERSION, info.opencl_version, sizeof info.opencl_version);
    attncl__device_text(id, CL_DEVICE_OPENCL_C_VERSION, info.opencl_c_version,
                        sizeof info.opencl_c_version);
    info.compute_units = number32(id, CL_DEVICE_MAX_COMPUTE_UNITS);
    info.clock_mhz = number32(id, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    info.global_memory_bytes = number64(id, CL_DEVICE_GLOBAL_MEM_SIZE);
    info.max_buffer_bytes = number64(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info.local_memory_bytes = number64(id, CL_DEVICE_LOCAL_MEM_SIZE);
    info.vector_width = number32(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    if (clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof max_group, &max_group, NULL) ==
        CL_SUCCESS)
        info.max_work_group = max_group;
    if (clGetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL) == CL_SUCCESS)
        info.available = available != CL_FALSE;
    *ret = info;
    return ATTNCL_OK;
}

// Appends the platform's devices.  A platform without devices is skipped: Mesa lists such
// platforms.
static attncl_status add_platform(struct device_list *list, cl_platform_id platform, int index)
{
    attncl_status status = ATTNCL_OK;
    cl_device_id *ids = NULL;
    cl_uint n = 0;

    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n) != CL_SUCCESS || n == 0 ||
        n > MAX_OBJECTS)
        return ATTNCL_OK;
    ids = attncl__alloc_array(n, sizeof(cl_device_id));
    REQUIRE(ids, ATTNCL_ERR_NO_MEMORY, "%u device ids", n);
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, ids, NULL) != CL_SUCCESS)
        goto done;

    struct device_entry *grown =
        attncl__grow_array(list->entries, list->n + n, sizeof(struct device_entry));
    if (!grown) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "%zu devices", list->n + n);
        goto done;
    }
    list->entries = grown;
    for (cl_uint i = 0; i < n; ++i) {
        struct device_entry *entry = &list->entries[list->n];

        *entry = (struct device_entry){.platform = platform, .id = ids[i]};
        if (attncl__device_describe(ids[i], &entry->info) != ATTNCL_OK)
            continue;
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
    if (!platforms) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "%u platform ids", n);
        goto done;
    }
    TRY_DONE(CL_CALL(clGetPlatformIDs(n, platforms, NULL)));
    for (cl_uint i = 0; i < n; ++i) {
        const size_t before = list.n;

        TRY_DONE(add_platform(&list, platforms[i], index));
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
