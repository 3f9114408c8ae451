// SPDX-License-Identifier: MIT
//
// The library inside a program that has its own OpenCL context, queue and buffers: the program's
// upload, a graph of the library and the program's download follow each other by events, with no
// wait on the host between them.
//
//     interop

#include <attncl/attncl.h>
#include <attncl/opencl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 8, WIDTH = 100, N = ROWS * WIDTH };

// What the program owns.
struct program {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_mem in, out;
};

// The first device of the first platform that has one.
static cl_int first_device(cl_device_id *device_ret)
{
    cl_platform_id platforms[16];
    cl_uint n = 0;
    const cl_int err = clGetPlatformIDs(16, platforms, &n);

    for (cl_uint i = 0; err == CL_SUCCESS && i < n && i < 16; i++)
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, device_ret, NULL) == CL_SUCCESS)
            return CL_SUCCESS;
    return err != CL_SUCCESS ? err : CL_DEVICE_NOT_FOUND;
}

static cl_int open_program(struct program *p)
{
    const size_t bytes = N * sizeof(float);
    cl_int err = first_device(&p->device);

    if (err == CL_SUCCESS)
        p->context = clCreateContext(NULL, 1, &p->device, NULL, NULL, &err);
    if (err == CL_SUCCESS)
        p->queue = clCreateCommandQueue(p->context, p->device, 0, &err);
    if (err == CL_SUCCESS)
        p->in = clCreateBuffer(p->context, CL_MEM_READ_WRITE, bytes, NULL, &err);
    if (err == CL_SUCCESS)
        p->out = clCreateBuffer(p->context, CL_MEM_READ_WRITE, bytes, NULL, &err);
    return err;
}

static void close_program(struct program *p)
{
    if (p->out)
        clReleaseMemObject(p->out);
    if (p->in)
        clReleaseMemObject(p->in);
    if (p->queue)
        clReleaseCommandQueue(p->queue);
    if (p->context)
        clReleaseContext(p->context);
}

// y = softmax(x) over rows, reading and writing the program's buffers.
static attncl_status make_graph(attncl_context *context, const struct program *p, attncl_graph **g)
{
    const int64_t dim[] = {ROWS, WIDTH};
    attncl_status status = attncl_graph_create(context, g);

    if (status != ATTNCL_OK)
        return status;
    attncl_graph_output(*g, "y",
                        attncl_softmax(*g, attncl_graph_input(*g, "x", ATTNCL_F32, 2, dim), -1));
    status = attncl_graph_compile(*g, NULL);
    if (status == ATTNCL_OK)
        status = attncl_graph_bind(*g, "x", p->in, 0);
    if (status == ATTNCL_OK)
        status = attncl_graph_bind(*g, "y", p->out, 0);
    return status;
}

// Upload, graph and download, each waiting for the one before on the device; the host waits once,
// for the last.
static int run(const struct program *p, attncl_graph *g, const float *x, float *y)
{
    const size_t bytes = N * sizeof(float);
    cl_event uploaded = NULL, computed = NULL;
    int ok = 0;

    if (clEnqueueWriteBuffer(p->queue, p->in, CL_FALSE, 0, bytes, x, 0, NULL, &uploaded) !=
        CL_SUCCESS)
        fprintf(stderr, "interop: the upload was refused\n");
    else if (attncl_graph_enqueue(g, 1, &uploaded, &computed) != ATTNCL_OK)
        fprintf(stderr, "interop: %s\n", attncl_last_error());
    else if (clEnqueueReadBuffer(p->queue, p->out, CL_TRUE, 0, bytes, y, 1, &computed, NULL) !=
             CL_SUCCESS)
        fprintf(stderr, "interop: the download was refused\n");
    else
        ok = 1;
    if (computed)
        clReleaseEvent(computed);
    if (uploaded)
        clReleaseEvent(uploaded);
    return ok;
}

// How far the worst row is from a sum of 1.
static double worst_row(const float *y)
{
    double worst = 0;

    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int i = 0; i < WIDTH; i++)
            sum += y[row * WIDTH + i];
        if (!(fabs(sum - 1.0) <= worst) && !isnan(worst)) // NaN stays
            worst = fabs(sum - 1.0);
    }
    return worst;
}

int main(void)
{
    static float x[N], y[N];
    struct program p = {NULL, NULL, NULL, NULL, NULL};
    attncl_context *context = NULL;
    attncl_graph *g = NULL;
    double worst = 1;
    const cl_int err = open_program(&p);

    for (int i = 0; i < N; i++)
        x[i] = (float)((i * 37) % 101) / 10.0f;
    if (err != CL_SUCCESS)
        fprintf(stderr, "interop: OpenCL error %d\n", (int)err);
    else if (attncl_context_adopt(p.context, p.device, p.queue, NULL, &context) != ATTNCL_OK ||
             make_graph(context, &p, &g) != ATTNCL_OK)
        fprintf(stderr, "interop: %s\n", attncl_last_error());
    else if (run(&p, g, x, y)) {
        worst = worst_row(y);
        printf("softmax in the caller's queue: %d row sums, none further from 1 than %.1e\n", ROWS,
               worst);
    }
    attncl_graph_destroy(g);
    if (attncl_context_destroy(context) != ATTNCL_OK)
        fprintf(stderr, "interop: %s\n", attncl_last_error());
    close_program(&p);
    return worst < 1e-5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
