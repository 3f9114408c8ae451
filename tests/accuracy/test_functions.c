// SPDX-License-Identifier: MIT
// The functions of cl/common/math.clh on the device, for floats of every size and sign, against long double: what
// the header states as their worst errors, in units in the last place.

#include <CL/cl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "accuracy/table.h"
#include "base/alloc.h"
#include "device/context.h"
#include "device/program.h"
#include "support/compare.h"
#include "support/directory.h"
#include "support/test.h"

static const char kernel_text[] = "\n__kernel __attribute__((reqd_work_group_size(LS, 1, 1)))\n"
                                  "void apply(__global const float *x, __global float *y)\n"
                                  "{\n"
                                  "    const size_t i = get_global_id(0);\n"
                                  "    VSTORE(FUNCTION(VLOAD(x + i * VW)), y + i * VW);\n"
                                  "}\n";

enum { CHUNK = 1 << 16 };
static cl_mem in, out;

static void set_up(void)
{
    char *text = NULL;

    directory_up();
    ck_ok(attncl__source_load(test_context(), "common/math.clh", &text));
    char *file = malloc(strlen(text) + sizeof kernel_text);
    ck_assert(file != NULL);
    strcpy(file, text);
    strcat(file, kernel_text);
    directory_write("functions.cl", file);
    free(file);
    attncl__free(text);
    ck_ok(attncl__buffer_create(test_context(), CHUNK * sizeof(float), &in));
    ck_ok(attncl__buffer_create(test_context(), CHUNK * sizeof(float), &out));
}

static void tear_down(void)
{
    attncl__buffer_release(&in);
    attncl__buffer_release(&out);
    directory_down();
}

FIXTURE_ONCE(set_up, tear_down);

static long double sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double silu(long double x)
{
    return x * sigmoid(x);
}

static long double gelu(long double x)
{
    return x * erfcl(-x / sqrtl(2)) / 2;
}

static long double gelu_tanh(long double x)
{
    return x * sigmoid(2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x));
}

// Bounds: what the header states, for division that is exact; OpenCL allows 2.5 ulp, and contraction to fma or none.
static const struct function {
    const char *name; // without _v
    long double (*want)(long double);
    double low, high; // outside, the header's special values hold
    double bound;
} functions[] = {
    {"exp", expl, -87.3365, 88.7228, 1.1},     {"exp_nonpos", expl, -87.3365, 0, 1.1},
    {"log", logl, 0x1p-149, INFINITY, 1.0},    {"sigmoid", sigmoid, -87.3365, INFINITY, 4.5},
    {"tanh", tanhl, -INFINITY, INFINITY, 4.0}, {"silu", silu, -87, INFINITY, 5.0},
    {"gelu", gelu, -13.2, INFINITY, 11},       {"gelu_tanh", gelu_tanh, -2, INFINITY, 16},
    {"gelu_tanh", gelu_tanh, -10, -2, 250}, // the tail
};

static cl_kernel make_kernel(const struct function *f)
{
    const struct device_caps *caps = &test_context()->caps;
    struct kernel_program *program = NULL;
    cl_kernel kernel = NULL;
    char defines[128];

    snprintf(defines, sizeof defines, "#define LS 1\n#define VW %u\n#define FUNCTION %s_v\n",
             caps->variant == VARIANT_CPU ? caps->vector_width : 1, f->name);
    setenv("ATTNCL_CL_DIR", directory_path("", (char[FILE_BYTES]){0}), 1);
    const attncl_status status =
        attncl__program_get(test_context(), "functions.cl", defines, &program);
    unsetenv("ATTNCL_CL_DIR");
    ck_ok(status);
    ck_ok(attncl__kernel_create(program, "apply", &kernel));
    ck_assert_int_eq(clSetKernelArg(kernel, 0, sizeof in, &in), CL_SUCCESS);
    ck_assert_int_eq(clSetKernelArg(kernel, 1, sizeof out, &out), CL_SUCCESS);
    return kernel;
}

static void apply(cl_kernel kernel, const float *x, float *y)
{
    const struct device_caps *caps = &test_context()->caps;
    const size_t local = 1,
                 global = CHUNK / (caps->variant == VARIANT_CPU ? caps->vector_width : 1);

    ck_ok(attncl__buffer_write(test_context(), in, 0, x, CHUNK * sizeof *x));
    ck_assert_int_eq(clEnqueueNDRangeKernel(test_context()->queue, kernel, 1, NULL, &global, &local,
                                            0, NULL, NULL),
                     CL_SUCCESS);
    ck_ok(attncl__buffer_read(test_context(), out, 0, y, CHUNK * sizeof *y));
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TABLE_TEST(errors_are_as_stated, functions)
{
    static float x[CHUNK], y[CHUNK];
    const struct function *f = &functions[_i];
    const uint32_t stride = table_stride(4099);
    const cl_kernel kernel = make_kernel(f);
    struct worst worst = {0};

    for (uint64_t next = 0; next <= UINT32_MAX;) {
        for (int i = 0; i < CHUNK; ++i, next += stride)
            x[i] = float_of(next <= UINT32_MAX ? (uint32_t)next : 0x3f800000u);
        apply(kernel, x, y);
        for (int i = 0; i < CHUNK; ++i) {
            if (!(x[i] > f->low && x[i] < f->high))
                continue;
            const long double want = f->want((long double)x[i]);
            if (fabsl(want) < 0x1p-126L || fabsl(want) > 0x1.fffffep127L)
                continue;
            worst_add(&worst, (int64_t)bits_of(x[i]), (double)y[i], (double)want,
                      ulp_of((double)want));
        }
    }
    cl_kernel done = kernel;
    attncl__kernel_release(&done);
    char where[64];
    snprintf(where, sizeof where, "x = %a", (double)float_of((uint32_t)worst.at));
    table_add(f->name, worst.ratio, f->bound, "ulp", where);
    ck_worst(&worst, f->bound, "%s, %s", f->name, where);
}
