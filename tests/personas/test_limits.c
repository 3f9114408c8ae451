// SPDX-License-Identifier: MIT
// The layer itself: what the persona "small" answers, and that it refuses what is beyond its limits.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/context.h"
#include "personas/table.h"
#include "support/test.h"

static const struct persona *small;

static void find_persona(void)
{
    char name[64] = "";

    small = persona_find("small");
    clGetDeviceInfo(test_context()->device, CL_DEVICE_NAME, sizeof name, name, NULL);
    if (strcmp(name, small->device) != 0) {
        fprintf(stderr, "skipped: the OpenCL loader has not loaded the layer\n");
        exit(77);
    }
}
static void nothing(void)
{
}
FIXTURE(find_persona, nothing);

static const char source[] =
    "__kernel void small(__global int *x, __local int *y)\n"
    "{ y[0] = 1; x[get_global_id(0)] = y[0]; }\n"
    "__kernel void large(__global int *x)\n"
    "{ __local int y[1024]; y[get_local_id(0) * 9 % 1024] = x[1]; barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  x[get_global_id(0)] = y[x[2] & 1023]; }\n"
    "__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void wide(__global int *x)\n"
    "{ x[get_global_id(0)] = 1; }\n";

static cl_mem buffer(size_t bytes, cl_int *code)
{
    return clCreateBuffer(test_context()->cl, CL_MEM_READ_WRITE, bytes, NULL, code);
}

static cl_program program(void)
{
    const char *text = source;
    cl_int code = CL_SUCCESS;
    cl_program p = clCreateProgramWithSource(test_context()->cl, 1, &text, NULL, &code);

    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(clBuildProgram(p, 1, &test_context()->device, "", NULL, NULL), CL_SUCCESS);
    return p;
}

static cl_int enqueue(cl_kernel k, size_t global, size_t local)
{
    const cl_int code =
        clEnqueueNDRangeKernel(test_context()->queue, k, 1, NULL, &global, &local, 0, NULL, NULL);
    clFinish(test_context()->queue);
    return code;
}

TEST(answers_as_the_row_says)
{
    const struct device_caps *caps = &test_context()->caps;

    ck_assert(caps->is_gpu);
    ck_assert_uint_eq(caps->max_group, small->max_group);
    ck_assert_uint_eq(caps->local_bytes, small->local_bytes);
    ck_assert_uint_eq(caps->max_buffer_bytes, small->max_buffer_bytes);
    ck_assert_uint_eq(caps->align_bytes, small->align_bits / 8);
    ck_assert_uint_eq(caps->compute_units, small->units);
}

TEST(refuses_buffers)
{
    cl_int code = CL_SUCCESS;
    const cl_buffer_region region = {128, 128};

    ck_assert_ptr_null(buffer(small->max_buffer_bytes + 1, &code));
    ck_assert_int_eq(code, CL_INVALID_BUFFER_SIZE);
    cl_mem whole = buffer(65536, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_ptr_null(
        clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    ck_assert_int_eq(code, CL_MISALIGNED_SUB_BUFFER_OFFSET);
    clReleaseMemObject(whole);
}

TEST(refuses_work_groups_and_local_memory)
{
    cl_int code = CL_SUCCESS;
    size_t group = 0;
    cl_ulong spilled = 1;
    cl_program p = program();
    cl_mem x = buffer(4096, &code);
    cl_kernel k = clCreateKernel(p, "small", &code);

    clSetKernelArg(k, 0, sizeof x, &x);
    clSetKernelArg(k, 1, 64, NULL);
    ck_assert_int_eq(enqueue(k, 128, 64), CL_SUCCESS);
    ck_assert_int_eq(enqueue(k, 128, 128), CL_INVALID_WORK_ITEM_SIZE);
    clSetKernelArg(k, 1, 4096, NULL); // from here on it runs smaller work-groups
    ck_assert_int_eq(enqueue(k, 128, 16), CL_SUCCESS);
    ck_assert_int_eq(enqueue(k, 128, 32), CL_INVALID_WORK_GROUP_SIZE);
    clSetKernelArg(k, 1, small->local_bytes + 4, NULL);
    ck_assert_int_eq(enqueue(k, 128, 16), CL_OUT_OF_RESOURCES);
    clReleaseKernel(k);

    k = clCreateKernel(p, "large", &code);
    clSetKernelArg(k, 0, sizeof x, &x);
    clGetKernelWorkGroupInfo(k, test_context()->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof group,
                             &group, NULL);
    ck_assert_uint_eq(group, small->kernel_group);
    clGetKernelWorkGroupInfo(k, test_context()->device, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof spilled,
                             &spilled, NULL);
    ck_assert_uint_eq(spilled, 0);
    ck_assert_int_eq(enqueue(k, 128, 32), CL_INVALID_WORK_GROUP_SIZE);
    clReleaseKernel(k);

    ck_assert_ptr_null(clCreateKernel(p, "wide", &code));
    ck_assert_int_eq(code, CL_OUT_OF_RESOURCES);
    clReleaseMemObject(x);
    clReleaseProgram(p);
}
