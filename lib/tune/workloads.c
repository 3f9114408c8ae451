// SPDX-License-Identifier: MIT
//
// Creates the data and graphs of workloads.

#include "tune/internal.h"

#include "attncl/aft.h"
#include "attncl/attention.h"
#include "attncl/ops.h"
#include "base/alloc.h"

// Adds floats uniform in [-1, 1), so that sums and softmax stay far from overflow.
static attncl_status add_floats(attncl_context *ctx, int rank, const int64_t *dim,
                                attncl_tensor **ret)
{
    uint32_t random = 2463534242u;
    size_t n = 1;

    for (int i = 0; i < rank; ++i)
        n *= (size_t)dim[i];
    float *data = attncl__alloc_array(n, sizeof *data);
    REQUIRE(data, ATTNCL_ERR_NO_MEMORY, "%zu floats to tune with", n);
    for (size_t i = 0; i < n; ++i) {
        random ^= random << 13; // xorshift32, Marsaglia 2003
        random ^= random >> 17;
        random ^= random << 5;
        data[i] = (float)(random >> 8) * 0x1p-23f - 1.0f;
    }
    const attncl_status status =
        attncl_tensor_create(ctx, ATTNCL_F32, rank, dim, ATTNCL_F32, data, ret);
    attncl__free(data);
    return status;
}

// Adds a mask that hides every third pair, but none on the diagonal.
static attncl_status add_mask(attncl_context *ctx, int64_t n, attncl_tensor **ret)
{
    unsigned char *data = attncl__alloc_array((size_t)(n * n), 1);

    REQUIRE(data, ATTNCL_ERR_NO_MEMORY, "a mask to tune with");
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
            data[i * n + j] = (i - j) % 3 != 1;
    const attncl_status status =
        attncl_tensor_create(ctx, ATTNCL_U8, 3, (const int64_t[]){n, n, 1}, ATTNCL_U8, data, ret);
    attncl__free(data);
    return status;
}

#define DIMS(...)                                                                                  \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

attncl_status attncl__workload_fill(attncl_context *ctx, const struct workload *w,
                                    struct workload_data *data)
{
    const int64_t a = w->size[0], b = w->size[1], c = w->size[2];
    const int64_t batch = w->size[3] ? w->size[3] : 1;

    switch (w->kind) {
    case WORK_GEMM:
        data->n_result = batch * a * b;
        data->terms = (double)c;
        data->flop = 2.0 * (double)(batch * a * b * c);
        if (w->flag) {
            TRY(add_floats(ctx, DIMS(a, c), &data->in[0]));
            return add_floats(ctx, DIMS(b, c), &data->in[1]);
        }
        TRY(add_floats(ctx, DIMS(batch, a, c), &data->in[0]));
        return add_floats(ctx, DIMS(batch, c, b), &data->in[1]);
    case WORK_ATTENTION:
        data->n_result = a * b * c;
        data->terms = (double)b;
        data->flop = 4.0 * (double)(a * b * b * c);
        for (int i = 0; i < 3; ++i)
            TRY(add_floats(ctx, DIMS(a, 1, b, c), &data->in[i]));
        return ATTNCL_OK;
    case WORK_AFT:
        data->n_result = a * b;
        data->terms = (double)a;
        data->flop = 4.0 * (double)a * (double)b * (double)(w->flag ? a : 2 * w->size[2]);
        for (int i = 0; i < 3; ++i)
            TRY(add_floats(ctx, DIMS(a, 1, b), &data->in[i]));
        TRY(add_floats(ctx, DIMS(a, a), &data->in[3]));
        return w->flag ? add_mask(ctx, a, &data->in[4]) : ATTNCL_OK;
    case WORK_SOFTMAX:
    case WORK_NORM:
    case WORK_GELU:
        break;
    }
    data->n_result = a * b;
    data->terms = (double)b;
    data->flop = 20.0 * (double)(a * b);
    TRY(add_floats(ctx, DIMS(a, b), &data->in[0]));
    if (w->kind != WORK_NORM)
        return ATTNCL_OK;
    TRY(add_floats(ctx, DIMS(b), &data->in[1]));
    return add_floats(ctx, DIMS(b), &data->in[2]);
}

void attncl__workload_clear(struct workload_data *data)
{
    for (int i = 0; i < WORKLOAD_INPUTS; ++i)
        attncl_tensor_destroy(data->in[i]);
    *data = (struct workload_data){.flop = 0};
}

static attncl_value add_result(attncl_graph *g, const struct workload *w,
                               const attncl_value in[WORKLOAD_INPUTS])
{
    const attncl_attention_inputs qkv = {
        .struct_size = sizeof qkv, .query = in[0], .key = in[1], .value = in[2]};
    attncl_aft_desc aft = ATTNCL_AFT_DESC_INIT;

    switch (w->kind) {
    case WORK_GEMM:
        return w->flag ? attncl_linear(g, in[0], in[1], ATTNCL_NONE_VALUE)
                       : attncl_bmm(g, in[0], in[1]);
    case WORK_ATTENTION:
        return attncl_attention(g, NULL, &qkv, NULL);
    case WORK_AFT:
        aft.window = w->size[2];
        return attncl_aft_mix(g, &aft, in[0], in[1], in[2], in[3], in[4]);
    case WORK_SOFTMAX:
        return attncl_softmax(g, in[0], -1);
    case WORK_NORM:
        return attncl_layer_norm(g, in[0], in[1], in[2], 1e-5f);
    case WORK_GELU:
        break;
    }
    return attncl_activate(g, in[0], ATTNCL_GELU);
}

attncl_status attncl__workload_create_graph(attncl_context *ctx, const struct workload *w,
                                            const struct workload_data *data, attncl_graph **ret)
{
    attncl_value in[WORKLOAD_INPUTS] = {{0}};
    attncl_status status = ATTNCL_OK;
    attncl_graph *g = NULL;

    TRY(attncl_graph_create(ctx, &g));
    for (int i = 0; i < WORKLOAD_INPUTS; ++i)
        if (data->in[i])
            in[i] = attncl_graph_tensor(g, data->in[i]);
    const attncl_value y = add_result(g, w, in);
    attncl_value probe = y;
    for (int axis = 0; axis < attncl_graph_shape(g, y).rank - 1; ++axis)
        probe = attncl_slice(g, probe, axis, 0, 1);
    attncl_graph_output(g, "y", y);
    attncl_graph_output(g, "probe", probe);
    TRY_DONE(attncl_graph_compile(g, NULL));
    *ret = g;
    g = NULL;

done:
    attncl_graph_destroy(g);
    return status;
}
