// SPDX-License-Identifier: MIT
//
// An OpenCL layer (OPENCL_LAYERS) that plays the device named by ATTNCL_PERSONA: every device answers as the
// table's row says, and calls beyond its limits fail as on such a device, with a line on stderr.  Of two names,
// "intel,a770", the first is played by the driver's first device, the second by the others.

#define CL_TARGET_OPENCL_VERSION 300
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYER_NAME "attncl personas"
#include "personas/table.h"
#include "support/icd_layer.h"

static const struct persona *named[2];
static cl_device_id first_device;
// Whose limits hold: that of the device asked of last, since a test uses one of two at a time.
static const struct persona *persona;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REFUSE(code, ...)                                                                          \
    (fprintf(stderr, "persona %s: ", persona->name), fprintf(stderr, __VA_ARGS__),                 \
     fputc('\n', stderr), (code))

// -- what kernels take: by handle, in a hash table with open addressing

enum { KERNEL_SLOTS = 1 << 14, MAX_ARGS = 256, REGISTERS_FROM = 4096 };

static struct kernel {
    cl_kernel handle;
    char name[48];
    size_t static_bytes;         // local memory declared in the kernel
    size_t local_args[MAX_ARGS]; // bytes of local memory by argument
    size_t arg_bytes[MAX_ARGS];
    bool is_constant[MAX_ARGS];
} * kernels[KERNEL_SLOTS];

// NULL: unknown, and not to be added, or no more space.
static struct kernel *kernel_of(cl_kernel handle, bool add)
{
    size_t i = (size_t)((unsigned long long)(size_t)handle * 0x9e3779b97f4a7c15u >> 40);

    for (size_t n = 0; n < KERNEL_SLOTS; ++n, ++i) {
        struct kernel **slot = &kernels[i % KERNEL_SLOTS];
        if (*slot && (*slot)->handle == handle)
            return *slot;
        if (!*slot) {
            *slot = add ? calloc(1, sizeof **slot) : NULL;
            return *slot;
        }
    }
    return NULL;
}

static size_t sum_of(const size_t *bytes)
{
    size_t sum = 0;
    for (int i = 0; i < MAX_ARGS; ++i)
        sum += bytes[i];
    return sum;
}

static size_t local_bytes_of(const struct kernel *k)
{
    return k->static_bytes + sum_of(k->local_args);
}

static size_t group_of(const struct kernel *k)
{
    return local_bytes_of(k) >= REGISTERS_FROM ? persona->kernel_group : persona->max_group;
}

static size_t static_bytes_of(cl_kernel handle, cl_device_id device)
{
    cl_ulong bytes = 0;
    target->clGetKernelWorkGroupInfo(handle, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes,
                                     NULL);
    return (size_t)bytes;
}

static cl_device_id device_of(cl_kernel handle)
{
    cl_program program = NULL;
    cl_device_id device = NULL;

    target->clGetKernelInfo(handle, CL_KERNEL_PROGRAM, sizeof program, &program, NULL);
    if (program)
        target->clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof device, &device, NULL);
    return device;
}

// Notes a new kernel; what the device's driver would say of it.
static cl_int note_kernel(cl_kernel handle, const char *name)
{
    const cl_device_id device = device_of(handle);
    size_t required[3] = {0};
    cl_uint n_args = 0, n_constant = 0;

    pthread_mutex_lock(&lock);
    struct kernel *const k = kernel_of(handle, true);
    if (k) {
        memset(k, 0, sizeof *k); // a handle may come back after the driver freed its object
        k->handle = handle;
        strncpy(k->name, name, sizeof k->name - 1);
        k->static_bytes = static_bytes_of(handle, device);
        target->clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof n_args, &n_args, NULL);
        for (cl_uint i = 0; i < n_args && i < MAX_ARGS; ++i) {
            cl_kernel_arg_address_qualifier space = 0;
            target->clGetKernelArgInfo(handle, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space,
                                       &space, NULL);
            k->is_constant[i] = space == CL_KERNEL_ARG_ADDRESS_CONSTANT;
            n_constant += k->is_constant[i];
        }
    }
    pthread_mutex_unlock(&lock);
    if (!k || n_args > MAX_ARGS)
        return REFUSE(CL_OUT_OF_HOST_MEMORY, "%s: too many kernels or arguments for the layer",
                      name);
    target->clGetKernelWorkGroupInfo(handle, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                     sizeof required, required, NULL);
    if (required[0] * required[1] * required[2] > persona->max_group)
        return REFUSE(CL_OUT_OF_RESOURCES, "clCreateKernel of %s: compiled for work-groups of %zu",
                      name, required[0] * required[1] * required[2]);
    if (n_constant > persona->constant_args)
        return REFUSE(CL_OUT_OF_RESOURCES, "clCreateKernel of %s: %u constant arguments", name,
                      n_constant);
    return CL_SUCCESS;
}

// -- answers

#define GIVE(type, x)   give(&(const type){x}, sizeof(type), n, value, n_ret)
#define GIVE_TEXT(text) give(text, strlen(text) + 1, n, value, n_ret)
#define ANSWER(question, type, x)                                                                  \
    case question:                                                                                 \
        return GIVE(type, x)
#define ANSWER_TEXT(question, text)                                                                \
    case question:                                                                                 \
        return GIVE_TEXT(text)

static CL_API_ENTRY cl_int CL_API_CALL layer_clGetPlatformInfo(cl_platform_id id,
                                                               cl_platform_info what, size_t n,
                                                               void *value, size_t *n_ret)
{
    switch (what) {
        ANSWER_TEXT(CL_PLATFORM_NAME, named[0]->platform);
        ANSWER_TEXT(CL_PLATFORM_VENDOR, named[0]->vendor);
        ANSWER_TEXT(CL_PLATFORM_VERSION, named[0]->version);
        ANSWER_TEXT(CL_PLATFORM_PROFILE, named[0]->embedded ? "EMBEDDED_PROFILE" : "FULL_PROFILE");
    default:
        return target->clGetPlatformInfo(id, what, n, value, n_ret);
    }
}

// A GPU, whatever the driver's device is.
static CL_API_ENTRY cl_int CL_API_CALL layer_clGetDeviceIDs(cl_platform_id platform,
                                                            cl_device_type type, cl_uint n,
                                                            cl_device_id *ids, cl_uint *n_ret)
{
    if (!(type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)))
        return CL_DEVICE_NOT_FOUND;
    const cl_int code = target->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, ids, n_ret);
    first_device = code == CL_SUCCESS && n > 0 && ids ? ids[0] : first_device;
    return code;
}

enum { // of extensions
    NV_COMPUTE_CAPABILITY_MAJOR = 0x4000,
    NV_COMPUTE_CAPABILITY_MINOR = 0x4001,
    NV_WARP_SIZE = 0x4003,
    NV_PCI_BUS_ID = 0x4008,
    NV_PCI_SLOT_ID = 0x4009,
    AMD_TOPOLOGY = 0x4037,
    AMD_BOARD_NAME = 0x4038,
    AMD_WAVEFRONT_WIDTH = 0x4043,
    SUB_GROUP_SIZES_INTEL = 0x4108,
    KHR_PCI_BUS_INFO = 0x410F,
    FEATURES_INTEL = 0x4256,
};

// The address 0000:41:00.0, as the extension of each vendor gives it; -1: not asked for.
static cl_int give_pci_address(cl_device_info what, size_t n, void *value, size_t *n_ret)
{
    static const struct {
        cl_uint domain, bus, device, function;
    } khr = {.bus = 0x41};
    static const struct {
        cl_uint type;
        unsigned char unused[17], bus, device, function;
    } amd = {.type = 1, .bus = 0x41};
    const char *const extension = what == NV_PCI_BUS_ID || what == NV_PCI_SLOT_ID
                                      ? "cl_nv_device_attribute_query"
                                  : what == AMD_TOPOLOGY     ? "cl_amd_device_attribute_query"
                                  : what == KHR_PCI_BUS_INFO ? "cl_khr_pci_bus_info"
                                                             : NULL;

    if (!extension)
        return -1;
    if (!strstr(persona->extensions, extension))
        return CL_INVALID_VALUE;
    if (what == AMD_TOPOLOGY)
        return give(&amd, sizeof amd, n, value, n_ret);
    if (what == KHR_PCI_BUS_INFO)
        return give(&khr, sizeof khr, n, value, n_ret);
    return GIVE(cl_uint, what == NV_PCI_BUS_ID ? 0x41 : 0);
}

// -1: not a text.
static cl_int give_device_text(cl_device_info what, size_t n, void *value, size_t *n_ret)
{
    switch (what) {
        ANSWER_TEXT(CL_DEVICE_NAME, persona->device);
        ANSWER_TEXT(CL_DEVICE_VENDOR, persona->vendor);
        ANSWER_TEXT(CL_DEVICE_VERSION, persona->version);
        ANSWER_TEXT(CL_DEVICE_OPENCL_C_VERSION, persona->c_version);
        ANSWER_TEXT(CL_DRIVER_VERSION, "persona");
        ANSWER_TEXT(CL_DEVICE_PROFILE, persona->embedded ? "EMBEDDED_PROFILE" : "FULL_PROFILE");
        ANSWER_TEXT(CL_DEVICE_EXTENSIONS, persona->extensions);
    case AMD_BOARD_NAME: // which CLBlast asks for
        if (!strstr(persona->extensions, "cl_amd_device_attribute_query"))
            return CL_INVALID_VALUE;
        return GIVE_TEXT(persona->device);
    default:
        return -1;
    }
}

static CL_API_ENTRY cl_int CL_API_CALL layer_clGetDeviceInfo(cl_device_id id, cl_device_info what,
                                                             size_t n, void *value, size_t *n_ret)
{
    static const size_t intel_sizes[] = {8, 16, 32};
    persona = named[id != first_device];
    const cl_int text = give_device_text(what, n, value, n_ret);
    const cl_int address = give_pci_address(what, n, value, n_ret);

    if (text != -1 || address != -1)
        return text != -1 ? text : address;
    switch (what) {
        ANSWER(CL_DEVICE_TYPE, cl_device_type, CL_DEVICE_TYPE_GPU);
        ANSWER(CL_DEVICE_MAX_WORK_GROUP_SIZE, size_t, persona->max_group);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return give(persona->max_items, sizeof persona->max_items, n, value, n_ret);
        ANSWER(CL_DEVICE_LOCAL_MEM_SIZE, cl_ulong, persona->local_bytes);
        ANSWER(CL_DEVICE_LOCAL_MEM_TYPE, cl_device_local_mem_type,
               persona->local_is_global ? CL_GLOBAL : CL_LOCAL);
        ANSWER(CL_DEVICE_GLOBAL_MEM_SIZE, cl_ulong, persona->global_bytes);
        ANSWER(CL_DEVICE_MAX_MEM_ALLOC_SIZE, cl_ulong, persona->max_buffer_bytes);
        ANSWER(CL_DEVICE_MEM_BASE_ADDR_ALIGN, cl_uint, persona->align_bits);
        ANSWER(CL_DEVICE_MAX_PARAMETER_SIZE, size_t, persona->parameter_bytes);
        ANSWER(CL_DEVICE_MAX_CONSTANT_ARGS, cl_uint, persona->constant_args);
        ANSWER(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, cl_ulong, persona->constant_bytes);
        ANSWER(CL_DEVICE_MAX_COMPUTE_UNITS, cl_uint, persona->units);
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
        ANSWER(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, cl_uint, persona->vector_width);
        ANSWER(CL_DEVICE_HOST_UNIFIED_MEMORY, cl_bool, persona->unified);
        ANSWER(CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, size_t, persona->warp);
        ANSWER(CL_DEVICE_MAX_NUM_SUB_GROUPS, cl_uint, 0);
    case NV_WARP_SIZE:
    case NV_COMPUTE_CAPABILITY_MAJOR:
    case NV_COMPUTE_CAPABILITY_MINOR:
        if (!strstr(persona->extensions, "cl_nv_device_attribute_query"))
            return CL_INVALID_VALUE;
        return GIVE(cl_uint, what == NV_WARP_SIZE ? persona->warp
                             : what == NV_COMPUTE_CAPABILITY_MAJOR
                                 ? persona->compute_capability / 10
                                 : persona->compute_capability % 10);
    case AMD_WAVEFRONT_WIDTH:
        if (!strstr(persona->extensions, "cl_amd_device_attribute_query"))
            return CL_INVALID_VALUE;
        return GIVE(cl_uint, persona->warp);
    case SUB_GROUP_SIZES_INTEL:
        if (!strstr(persona->extensions, "cl_intel_required_subgroup_size"))
            return CL_INVALID_VALUE;
        return give(intel_sizes, sizeof intel_sizes, n, value, n_ret);
    case FEATURES_INTEL: // DP4A and DPAS
        if (!strstr(persona->extensions, "cl_intel_device_attribute_query"))
            return CL_INVALID_VALUE;
        return GIVE(cl_uint, 3);
    default:
        return target->clGetDeviceInfo(id, what, n, value, n_ret);
    }
}

static CL_API_ENTRY cl_int CL_API_CALL
layer_clGetKernelWorkGroupInfo(cl_kernel handle, cl_device_id device,
                               cl_kernel_work_group_info what, size_t n, void *value, size_t *n_ret)
{
    cl_int code = -1;

    pthread_mutex_lock(&lock);
    const struct kernel *const k = kernel_of(handle, false);
    if (k && what == CL_KERNEL_WORK_GROUP_SIZE)
        code = GIVE(size_t, group_of(k));
    else if (k && what == CL_KERNEL_LOCAL_MEM_SIZE)
        code = GIVE(cl_ulong, local_bytes_of(k));
    else if (k && what == CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)
        code = GIVE(size_t, persona->warp);
    else if (k && what == CL_KERNEL_PRIVATE_MEM_SIZE)
        code = GIVE(cl_ulong, 0); // what PoCL tells are not spilled registers
    pthread_mutex_unlock(&lock);
    return code != -1 ? code
                      : target->clGetKernelWorkGroupInfo(handle, device, what, n, value, n_ret);
}

// -- limits

static CL_API_ENTRY cl_mem CL_API_CALL layer_clCreateBuffer(cl_context context, cl_mem_flags flags,
                                                            size_t bytes, void *host, cl_int *ret)
{
    if (bytes <= persona->max_buffer_bytes)
        return target->clCreateBuffer(context, flags, bytes, host, ret);
    if (ret)
        *ret = REFUSE(CL_INVALID_BUFFER_SIZE, "clCreateBuffer of %zu bytes", bytes);
    return NULL;
}

static CL_API_ENTRY cl_mem CL_API_CALL layer_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
                                                               cl_buffer_create_type type,
                                                               const void *region, cl_int *ret)
{
    const cl_buffer_region *const r = region;

    if (type != CL_BUFFER_CREATE_TYPE_REGION || !r || r->origin % (persona->align_bits / 8) == 0)
        return target->clCreateSubBuffer(buffer, flags, type, region, ret);
    if (ret)
        *ret = REFUSE(CL_MISALIGNED_SUB_BUFFER_OFFSET, "clCreateSubBuffer at %zu", r->origin);
    return NULL;
}

// The kernel of a program that asks for the most local memory.
static size_t most_local_bytes(cl_program program)
{
    cl_kernel all[MAX_ARGS];
    cl_uint n = 0;
    size_t most = 0;

    if (target->clCreateKernelsInProgram(program, MAX_ARGS, all, &n) != CL_SUCCESS)
        return 0;
    for (cl_uint i = 0; i < n; ++i) {
        const size_t bytes = static_bytes_of(all[i], device_of(all[i]));
        most = bytes > most ? bytes : most;
        target->clReleaseKernel(all[i]);
    }
    return most;
}

static CL_API_ENTRY cl_int CL_API_CALL
layer_clBuildProgram(cl_program program, cl_uint n, const cl_device_id *devices,
                     const char *options, void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    const cl_int code = target->clBuildProgram(program, n, devices, options, notify, user);

    if (code != CL_SUCCESS || !persona->build_counts)
        return code;
    const size_t bytes = most_local_bytes(program);
    return bytes <= persona->local_bytes
               ? CL_SUCCESS
               : REFUSE(CL_BUILD_PROGRAM_FAILURE, "clBuildProgram: %zu bytes of local memory",
                        bytes);
}

static CL_API_ENTRY cl_kernel CL_API_CALL layer_clCreateKernel(cl_program program, const char *name,
                                                               cl_int *ret)
{
    cl_kernel kernel = target->clCreateKernel(program, name, ret);
    if (!kernel)
        return NULL;
    const cl_int code = note_kernel(kernel, name);
    if (code == CL_SUCCESS)
        return kernel;
    target->clReleaseKernel(kernel);
    if (ret)
        *ret = code;
    return NULL;
}

static CL_API_ENTRY cl_int CL_API_CALL layer_clSetKernelArg(cl_kernel handle, cl_uint index,
                                                            size_t bytes, const void *value)
{
    const cl_int code = target->clSetKernelArg(handle, index, bytes, value);
    size_t constant_bytes = 0;

    pthread_mutex_lock(&lock);
    struct kernel *const k = kernel_of(handle, false);
    if (code == CL_SUCCESS && k && index < MAX_ARGS) {
        k->local_args[index] = value ? 0 : bytes;
        k->arg_bytes[index] = value ? bytes : sizeof(cl_uint);
        if (k->is_constant[index] && value)
            target->clGetMemObjectInfo(*(const cl_mem *)value, CL_MEM_SIZE, sizeof constant_bytes,
                                       &constant_bytes, NULL);
    }
    pthread_mutex_unlock(&lock);
    if (constant_bytes > persona->constant_bytes)
        return REFUSE(CL_INVALID_ARG_SIZE, "clSetKernelArg: %zu bytes of constant memory",
                      constant_bytes);
    return code;
}

static cl_int judge_range(const struct kernel *k, cl_uint n_axes, const size_t *global,
                          const size_t *local)
{
    size_t items = 1;

    for (cl_uint i = 0; i < n_axes; ++i) {
        items *= local ? local[i] : 1;
        if (local && local[i] > persona->max_items[i])
            return REFUSE(CL_INVALID_WORK_ITEM_SIZE, "%s: %zu work-items on axis %u", k->name,
                          local[i], i);
        if (global[i] > UINT32_MAX)
            return REFUSE(CL_INVALID_GLOBAL_WORK_SIZE, "%s: %zu work-items on axis %u", k->name,
                          global[i], i);
    }
    if (items > group_of(k))
        return REFUSE(CL_INVALID_WORK_GROUP_SIZE, "%s: work-groups of %zu, of at most %zu", k->name,
                      items, group_of(k));
    if (local_bytes_of(k) > persona->local_bytes)
        return REFUSE(CL_OUT_OF_RESOURCES, "%s: %zu bytes of local memory", k->name,
                      local_bytes_of(k));
    if (sum_of(k->arg_bytes) > persona->parameter_bytes)
        return REFUSE(CL_OUT_OF_RESOURCES, "%s: %zu bytes of arguments", k->name,
                      sum_of(k->arg_bytes));
    return CL_SUCCESS;
}

static CL_API_ENTRY cl_int CL_API_CALL
layer_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel handle, cl_uint n_axes,
                             const size_t *offset, const size_t *global, const size_t *local,
                             cl_uint n_wait, const cl_event *wait, cl_event *event)
{
    pthread_mutex_lock(&lock);
    const struct kernel *const k = kernel_of(handle, false);
    const cl_int code = k && global ? judge_range(k, n_axes, global, local) : CL_SUCCESS;
    pthread_mutex_unlock(&lock);
    return code != CL_SUCCESS ? code
                              : target->clEnqueueNDRangeKernel(queue, handle, n_axes, offset,
                                                               global, local, n_wait, wait, event);
}

// -- the loader

static const cl_icd_dispatch entries = {
    ENTRY(clGetPlatformInfo),        ENTRY(clGetDeviceIDs), ENTRY(clGetDeviceInfo),
    ENTRY(clGetKernelWorkGroupInfo), ENTRY(clCreateBuffer), ENTRY(clCreateSubBuffer),
    ENTRY(clBuildProgram),           ENTRY(clCreateKernel), ENTRY(clSetKernelArg),
    ENTRY(clEnqueueNDRangeKernel),
};

static void begin_layer(void)
{
    const char *const names = getenv("ATTNCL_PERSONA");
    const char *const comma = names ? strchr(names, ',') : NULL;
    char first[32] = "";

    if (names)
        snprintf(first, sizeof first, "%.*s", (int)strcspn(names, ","), names);
    named[0] = persona_find(first);
    named[1] = comma ? persona_find(comma + 1) : named[0];
    persona = named[0];
    if (!named[0] || !named[1]) { // never silently the driver's own device
        fprintf(stderr, "ATTNCL_PERSONA is \"%s\", none of the personas\n", names ? names : "");
        exit(EXIT_FAILURE);
    }
}
