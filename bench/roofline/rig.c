// SPDX-License-Identifier: MIT

#include "roofline/rig.h"

#include <stdio.h>

#include "base/alloc.h"
#include "device/clerr.h"
#include "device/source.h"

// roofline.cl, embedded by the build.
extern const struct embedded_source bench_sources[];

enum { CHUNK = 1 << 18 }; // floats moved at a time where only the content matters

attncl_status rig_open(struct case_data *t, struct rig **ret)
{
    struct rig *r = attncl__alloc_zero(sizeof *r);

    REQUIRE(r, ATTNCL_ERR_NO_MEMORY, "state of %s", t->c->name);
    t->state = r;
    *ret = r;
    return ATTNCL_OK;
}

void rig_close(struct case_data *t)
{
    struct rig *r = t->state;

    if (!r)
        return;
    for (int i = 0; i < N_RIG_BUFFERS; ++i)
        if (r->buffer[i])
            clReleaseMemObject(r->buffer[i]);
    if (r->kernel)
        clReleaseKernel(r->kernel);
    if (r->program)
        clReleaseProgram(r->program);
    attncl__free(r->host);
    attncl__free(r);
    t->state = NULL;
}

attncl_status rig_kernel(struct case_data *t, const char *name, int vw, int per)
{
    struct rig *r = t->state;
    char options[64];
    const char *text = (const char *)bench_sources[0].bytes;
    cl_int code;

    snprintf(options, sizeof options, "-cl-std=CL1.2 -DVW=%d -DPER=%d", vw, per);
    r->program = clCreateProgramWithSource(t->ctx->cl, 1, &text, NULL, &code);
    TRY(CL_CODE(code, "clCreateProgramWithSource"));
    TRY_CL(clBuildProgram(r->program, 1, &t->ctx->device, options, NULL, NULL));
    r->kernel = clCreateKernel(r->program, name, &code);
    return CL_CODE(code, "clCreateKernel");
}

void rig_fill(float *x, size_t first, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        x[i] = rig_pattern(first + i);
}

static attncl_status write_pattern(struct case_data *t, cl_mem mem, size_t n)
{
    attncl_status status = ATTNCL_OK;
    float *chunk = attncl__alloc_array(CHUNK, sizeof *chunk);

    REQUIRE(chunk, ATTNCL_ERR_NO_MEMORY, "a part of the pattern");
    for (size_t i = 0; i < n; i += CHUNK) {
        const size_t part = n - i < CHUNK ? n - i : CHUNK;
        rig_fill(chunk, i, part);
        TRY_DONE(attncl__buffer_write(t->ctx, mem, i * sizeof *chunk, chunk, part * sizeof *chunk));
    }

done:
    attncl__free(chunk);
    return status;
}

attncl_status rig_buffer(struct case_data *t, int which, bool pattern)
{
    struct rig *r = t->state;
    const float minus_one = -1;
    const size_t bytes = r->n * sizeof(float);
    cl_int code;

    REQUIRE(bytes <= t->ctx->caps.max_buffer_bytes && 4 * bytes <= t->ctx->caps.global_bytes,
            ATTNCL_ERR_DEVICE_MEMORY, "two buffers of %zu bytes are more than half of the memory",
            bytes);
    r->buffer[which] = clCreateBuffer(t->ctx->cl, CL_MEM_READ_WRITE, bytes, NULL, &code);
    TRY(CL_CODE(code, "clCreateBuffer"));
    if (pattern)
        return write_pattern(t, r->buffer[which], r->n);
    TRY_CL(clEnqueueFillBuffer(t->ctx->queue, r->buffer[which], &minus_one, sizeof minus_one, 0,
                               bytes, 0, NULL, NULL));
    return attncl_context_finish(t->ctx);
}

attncl_status rig_enqueue(struct case_data *t)
{
    const struct rig *r = t->state;

    TRY_CL(clEnqueueNDRangeKernel(t->ctx->queue, r->kernel, 1, NULL, &r->global, &r->local, 0, NULL,
                                  NULL));
    return ATTNCL_OK;
}

attncl_status rig_read_pattern(struct case_data *t)
{
    struct rig *r = t->state;
    attncl_status status = ATTNCL_OK;
    float *chunk = attncl__alloc_array(CHUNK, sizeof *chunk);

    REQUIRE(chunk, ATTNCL_ERR_NO_MEMORY, "a part of the pattern");
    r->n_missed = 0;
    for (size_t i = 0; i < r->n; i += CHUNK) {
        const size_t part = r->n - i < CHUNK ? r->n - i : CHUNK;
        TRY_DONE(attncl__buffer_read(t->ctx, r->buffer[RIG_TO], i * sizeof *chunk, chunk,
                                     part * sizeof *chunk));
        for (size_t j = 0; j < part; ++j)
            r->n_missed += chunk[j] != rig_pattern(i + j);
    }

done:
    attncl__free(chunk);
    return status;
}

void rig_check(const struct case_data *t, struct check *c)
{
    const struct rig *r = t->state;

    c->n = (int64_t)r->n;
    c->magnitude = 1;
    c->difference = (double)r->n_missed;
}

attncl_status rig_settle(struct case_data *t)
{
    const struct rig *r = t->state;
    float one;

    return attncl__buffer_read(t->ctx, r->buffer[RIG_TO], 0, &one, sizeof one);
}
