// SPDX-License-Identifier: MIT
//
// The layer: a dispatch table of the calls that libattncl and CLBlast make.

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYER_NAME "attncl fault injection"
#include "faults/layer.h"
#include "support/icd_layer.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault_plan plan;
static struct fault_report report;

// -- functions called and failed

enum { MAX_FUNCTIONS = 128 };
static struct {
    const char *name;
    size_t n_calls, n_failed;
} functions[MAX_FUNCTIONS];
static size_t n_functions;

static size_t function_index(const char *name)
{
    size_t i = 0;
    while (i < n_functions && strcmp(functions[i].name, name) != 0)
        ++i;
    if (i == n_functions && n_functions < MAX_FUNCTIONS - 1)
        functions[n_functions++].name = name;
    return i;
}

// At the program's end, for tests of tools: how often it called each function.
__attribute__((destructor)) static void write_calls(void)
{
    const char *path = getenv("ATTNCL_FAULTS_CALLS");
    FILE *file = path ? fopen(path, "w") : NULL;
    for (size_t i = 0; file && i < n_functions; ++i)
        fprintf(file, "%s %zu\n", functions[i].name, functions[i].n_calls);
    if (file)
        fclose(file);
}

static bool is_query(const char *name)
{
    return strncmp(name, "clGet", 5) == 0;
}

// Counts a call; the code it must fail with, or CL_SUCCESS.
static cl_int judge(const char *name)
{
    cl_int code = CL_SUCCESS;

    pthread_mutex_lock(&lock);
    const size_t function = function_index(name);
    ++functions[function].n_calls;
    if ((!plan.only || strcmp(plan.only, name) == 0) && (plan.queries || !is_query(name))) {
        const size_t n = ++report.n_calls;
        if (plan.at && (n == plan.at || (plan.all && n > plan.at))) {
            code = plan.code;
            ++functions[function].n_failed;
            if (!report.n_failed++)
                strncpy(report.first, name, sizeof report.first - 1);
        }
    }
    pthread_mutex_unlock(&lock);
    return code;
}

// -- the ledger: references by handle, in a hash table with open addressing

enum { LEDGER_SLOTS = 1 << 18 };
static struct {
    const void *handle;
    long references;
    bool is_program; // the library keeps those while their context lives
} ledger[LEDGER_SLOTS];

// The slot of a handle; a new one's handle is set.
static size_t slot_of(const void *handle)
{
    size_t i = (size_t)((unsigned long long)(size_t)handle * 0x9e3779b97f4a7c15u >> 40);

    for (i %= LEDGER_SLOTS; ledger[i].handle && ledger[i].handle != handle;)
        i = (i + 1) % LEDGER_SLOTS;
    ledger[i].handle = handle;
    return i;
}

static void created(const void *handle, const char *function)
{
    if (!handle)
        return;
    pthread_mutex_lock(&lock);
    const size_t i = slot_of(handle);
    report.live -= ledger[i].references > 0 && !ledger[i].is_program;
    ledger[i].references = 1; // a handle may come back after the driver freed its object
    ledger[i].is_program = strstr(function, "Program") != NULL;
    report.live += !ledger[i].is_program;
    pthread_mutex_unlock(&lock);
}

static void retained(const void *handle)
{
    pthread_mutex_lock(&lock);
    const size_t i = slot_of(handle);
    report.live += ledger[i].references <= 0 && !ledger[i].is_program;
    ++ledger[i].references;
    pthread_mutex_unlock(&lock);
}

// False for an object that is dead.
static bool released(const void *handle)
{
    pthread_mutex_lock(&lock);
    const size_t i = slot_of(handle);
    const bool alive = ledger[i].references > 0;
    report.over_released += !alive;
    report.live -= ledger[i].references == 1 && !ledger[i].is_program;
    ledger[i].references -= alive;
    pthread_mutex_unlock(&lock);
    return alive;
}

// -- calls that return a code

#define CALL(name, parameters, arguments)                                                          \
    static CL_API_ENTRY cl_int CL_API_CALL layer_##name parameters                                 \
    {                                                                                              \
        const cl_int code = judge(#name);                                                          \
        return code != CL_SUCCESS ? code : target->name arguments;                                 \
    }

#define QUERY(name, type, query)                                                                   \
    CALL(name, (type id, query what, size_t n, void *value, size_t *n_ret),                        \
         (id, what, n, value, n_ret))
#define QUERY_OF_DEVICE(name, type, query)                                                         \
    CALL(name, (type id, cl_device_id device, query what, size_t n, void *value, size_t *n_ret),   \
         (id, device, what, n, value, n_ret))

CALL(clGetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *n_ret), (n, ids, n_ret))
QUERY(clGetPlatformInfo, cl_platform_id, cl_platform_info)
CALL(clGetDeviceIDs,
     (cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *n_ret),
     (platform, type, n, ids, n_ret))
QUERY(clGetDeviceInfo, cl_device_id, cl_device_info)
QUERY(clGetContextInfo, cl_context, cl_context_info)
QUERY(clGetCommandQueueInfo, cl_command_queue, cl_command_queue_info)
QUERY(clGetMemObjectInfo, cl_mem, cl_mem_info)
QUERY(clGetProgramInfo, cl_program, cl_program_info)
QUERY_OF_DEVICE(clGetProgramBuildInfo, cl_program, cl_program_build_info)
QUERY_OF_DEVICE(clGetKernelWorkGroupInfo, cl_kernel, cl_kernel_work_group_info)
QUERY(clGetEventInfo, cl_event, cl_event_info)
QUERY(clGetEventProfilingInfo, cl_event, cl_profiling_info)
CALL(clBuildProgram,
     (cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
      void(CL_CALLBACK *notify)(cl_program, void *), void *user),
     (program, n, devices, options, notify, user))
CALL(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t bytes, const void *value),
     (kernel, index, bytes, value))
CALL(clSetMemObjectDestructorCallback,
     (cl_mem buffer, void(CL_CALLBACK *notify)(cl_mem, void *), void *user), (buffer, notify, user))
CALL(clFlush, (cl_command_queue queue), (queue))

// A wait that fails has waited.
static CL_API_ENTRY cl_int CL_API_CALL layer_clFinish(cl_command_queue queue)
{
    const cl_int code = judge("clFinish"), waited = target->clFinish(queue);
    return code != CL_SUCCESS ? code : waited;
}

static CL_API_ENTRY cl_int CL_API_CALL layer_clWaitForEvents(cl_uint n, const cl_event *events)
{
    const cl_int code = judge("clWaitForEvents"), waited = target->clWaitForEvents(n, events);
    return code != CL_SUCCESS ? code : waited;
}

// -- calls that create an object

#define CREATE(type, name, parameters, arguments)                                                  \
    static CL_API_ENTRY type CL_API_CALL layer_##name parameters                                   \
    {                                                                                              \
        const cl_int code = judge(#name);                                                          \
        if (code != CL_SUCCESS) {                                                                  \
            if (ret)                                                                               \
                *ret = code;                                                                       \
            return NULL;                                                                           \
        }                                                                                          \
        type object = target->name arguments;                                                      \
        created(object, #name);                                                                    \
        return object;                                                                             \
    }

CREATE(cl_context, clCreateContext,
       (const cl_context_properties *properties, cl_uint n, const cl_device_id *devices,
        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
        cl_int *ret),
       (properties, n, devices, notify, user, ret))
// A test's own.
CREATE(cl_event, clCreateUserEvent, (cl_context context, cl_int *ret), (context, ret))
CREATE(cl_command_queue, clCreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties,
        cl_int *ret),
       (context, device, properties, ret))
CREATE(cl_mem, clCreateBuffer,
       (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *ret),
       (context, flags, bytes, host, ret))
CREATE(cl_mem, clCreateSubBuffer,
       (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *region,
        cl_int *ret),
       (buffer, flags, type, region, ret))
CREATE(cl_program, clCreateProgramWithSource,
       (cl_context context, cl_uint n, const char **texts, const size_t *bytes, cl_int *ret),
       (context, n, texts, bytes, ret))
CREATE(cl_program, clCreateProgramWithBinary,
       (cl_context context, cl_uint n, const cl_device_id *devices, const size_t *bytes,
        const unsigned char **binaries, cl_int *statuses, cl_int *ret),
       (context, n, devices, bytes, binaries, statuses, ret))
CREATE(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *ret),
       (program, name, ret))

// -- references

#define REFERENCES(type, Name)                                                                     \
    static CL_API_ENTRY cl_int CL_API_CALL layer_clRetain##Name(type object)                       \
    {                                                                                              \
        cl_int code = judge("clRetain" #Name);                                                     \
        if (code == CL_SUCCESS)                                                                    \
            code = target->clRetain##Name(object);                                                 \
        if (code == CL_SUCCESS)                                                                    \
            retained(object);                                                                      \
        return code;                                                                               \
    }                                                                                              \
    static CL_API_ENTRY cl_int CL_API_CALL layer_clRelease##Name(type object)                      \
    {                                                                                              \
        return released(object) ? target->clRelease##Name(object) : CL_INVALID_VALUE;              \
    }

REFERENCES(cl_context, Context)
REFERENCES(cl_command_queue, CommandQueue)
REFERENCES(cl_mem, MemObject)
REFERENCES(cl_program, Program)
REFERENCES(cl_kernel, Kernel)
REFERENCES(cl_event, Event)

// -- commands, which may give an event

#define ENQUEUE(name, parameters, arguments)                                                       \
    static CL_API_ENTRY cl_int CL_API_CALL layer_##name parameters                                 \
    {                                                                                              \
        cl_int code = judge(#name);                                                                \
        if (code == CL_SUCCESS)                                                                    \
            code = target->name arguments;                                                         \
        if (code == CL_SUCCESS && event)                                                           \
            created(*event, #name);                                                                \
        return code;                                                                               \
    }

ENQUEUE(clEnqueueReadBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
         void *data, cl_uint n_wait, const cl_event *wait, cl_event *event),
        (queue, buffer, blocking, offset, bytes, data, n_wait, wait, event))
ENQUEUE(clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
         const void *data, cl_uint n_wait, const cl_event *wait, cl_event *event),
        (queue, buffer, blocking, offset, bytes, data, n_wait, wait, event))
ENQUEUE(clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
         size_t bytes, cl_uint n_wait, const cl_event *wait, cl_event *event),
        (queue, from, to, from_offset, to_offset, bytes, n_wait, wait, event))
ENQUEUE(clEnqueueCopyBufferRect,
        (cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_origin,
         const size_t *to_origin, const size_t *region, size_t from_row, size_t from_slice,
         size_t to_row, size_t to_slice, cl_uint n_wait, const cl_event *wait, cl_event *event),
        (queue, from, to, from_origin, to_origin, region, from_row, from_slice, to_row, to_slice,
         n_wait, wait, event))
ENQUEUE(clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_bytes,
         size_t offset, size_t bytes, cl_uint n_wait, const cl_event *wait, cl_event *event),
        (queue, buffer, pattern, pattern_bytes, offset, bytes, n_wait, wait, event))
ENQUEUE(clEnqueueUnmapMemObject,
        (cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint n_wait, const cl_event *wait,
         cl_event *event),
        (queue, buffer, mapped, n_wait, wait, event))
ENQUEUE(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint n_axes, const size_t *offset,
         const size_t *global, const size_t *local, cl_uint n_wait, const cl_event *wait,
         cl_event *event),
        (queue, kernel, n_axes, offset, global, local, n_wait, wait, event))
ENQUEUE(clEnqueueMarkerWithWaitList,
        (cl_command_queue queue, cl_uint n_wait, const cl_event *wait, cl_event *event),
        (queue, n_wait, wait, event))
ENQUEUE(clEnqueueBarrierWithWaitList,
        (cl_command_queue queue, cl_uint n_wait, const cl_event *wait, cl_event *event),
        (queue, n_wait, wait, event))

static CL_API_ENTRY void *CL_API_CALL layer_clEnqueueMapBuffer(
    cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
    size_t bytes, cl_uint n_wait, const cl_event *wait, cl_event *event, cl_int *ret)
{
    *ret = judge("clEnqueueMapBuffer");
    return *ret == CL_SUCCESS ? target->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset,
                                                           bytes, n_wait, wait, event, ret)
                              : NULL;
}

// -- the loader

#define ENTRIES(a, b, c, d)     ENTRY(a), ENTRY(b), ENTRY(c), ENTRY(d)
#define REFERENCE_ENTRIES(Name) ENTRY(clRetain##Name), ENTRY(clRelease##Name)
static const cl_icd_dispatch entries = {
    ENTRIES(clGetPlatformIDs, clGetPlatformInfo, clGetDeviceIDs, clGetDeviceInfo),
    ENTRIES(clGetContextInfo, clGetCommandQueueInfo, clGetMemObjectInfo, clGetProgramInfo),
    ENTRIES(clGetProgramBuildInfo, clGetKernelWorkGroupInfo, clGetEventInfo,
            clGetEventProfilingInfo),
    ENTRIES(clBuildProgram, clSetKernelArg, clFlush, clFinish),
    ENTRIES(clWaitForEvents, clCreateContext, clCreateUserEvent, clCreateCommandQueue),
    ENTRIES(clCreateBuffer, clCreateSubBuffer, clCreateProgramWithSource,
            clCreateProgramWithBinary),
    ENTRIES(clCreateKernel, clEnqueueReadBuffer, clEnqueueWriteBuffer, clEnqueueCopyBuffer),
    ENTRIES(clEnqueueFillBuffer, clEnqueueNDRangeKernel, clEnqueueMarkerWithWaitList,
            clEnqueueBarrierWithWaitList),
    ENTRY(clEnqueueCopyBufferRect),
    ENTRY(clEnqueueMapBuffer),
    ENTRY(clEnqueueUnmapMemObject),
    ENTRY(clSetMemObjectDestructorCallback),
    REFERENCE_ENTRIES(Context),
    REFERENCE_ENTRIES(CommandQueue),
    REFERENCE_ENTRIES(MemObject),
    REFERENCE_ENTRIES(Program),
    REFERENCE_ENTRIES(Kernel),
    REFERENCE_ENTRIES(Event),
};

static void begin_layer(void)
{
}

// -- the test

EXPORT void fault_layer_set(const struct fault_plan *given)
{
    pthread_mutex_lock(&lock);
    plan = *given;
    report.n_calls = report.n_failed = 0;
    report.first[0] = '\0';
    pthread_mutex_unlock(&lock);
}

EXPORT void fault_layer_report(struct fault_report *ret)
{
    pthread_mutex_lock(&lock);
    *ret = report;
    pthread_mutex_unlock(&lock);
}

EXPORT void fault_layer_each(fault_layer_visit_fn *visit, void *user)
{
    for (size_t i = 0; i < n_functions; ++i)
        visit(functions[i].name, functions[i].n_calls, functions[i].n_failed, user);
}
