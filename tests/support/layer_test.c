// SPDX-License-Identifier: MIT

#include <stdio.h>
#include <string.h>

#include "exec/exec.h"
#include "graph/graph.h"
#include "support/layer_test.h"

enum { NAME_BYTES = 16 };

void rig_open(struct rig *b)
{
    *b = (struct rig){.g = NULL};
    ck_ok(attncl_graph_create(test_context(), &b->g));
}

void rig_close(struct rig *b)
{
    attncl_graph_destroy(b->g);
    b->g = NULL;
}

static const char *port_name(const char *what, int i, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s%d", what, i);
    return name;
}

attncl_value rig_in(struct rig *b, struct host *h)
{
    char name[NAME_BYTES];
    if (!h)
        return ATTNCL_NONE_VALUE;
    ck_assert_int_lt(b->n_in, RIG_MAX);
    b->in[b->n_in] = h;
    return attncl_graph_input(b->g, port_name("in", b->n_in++, name), h->dtype, h->rank, h->dim);
}

void rig_out(struct rig *b, attncl_value v, struct host *h)
{
    char name[NAME_BYTES];
    ck_assert_int_lt(b->n_out, RIG_MAX);
    b->out[b->n_out] = h;
    attncl_graph_output(b->g, port_name("out", b->n_out++, name), v);
}

attncl_status rig_compile(struct rig *b)
{
    return attncl_graph_compile(b->g, NULL);
}

static void write_input(struct rig *b, int i)
{
    const struct host *h = b->in[i];
    const size_t each = attncl_dtype_bytes(h->dtype);
    char name[NAME_BYTES];
    char *bytes = malloc((size_t)h->count * each + 1);
    ck_assert_ptr_nonnull(bytes);
    for (int64_t k = 0; k < h->count; ++k) {
        const float real = (float)h->data[k];
        const int32_t integer = (int32_t)h->data[k];
        const uint8_t flag = (uint8_t)h->data[k];
        const void *from = h->dtype == ATTNCL_F32   ? (const void *)&real
                           : h->dtype == ATTNCL_I32 ? (const void *)&integer
                                                    : (const void *)&flag;
        memcpy(bytes + (size_t)k * each, from, each);
    }
    ck_ok(attncl_graph_write(b->g, port_name("in", i, name), bytes, (size_t)h->count * each));
    free(bytes);
}

static void read_output(struct rig *b, int i)
{
    struct host *h = b->out[i];
    char name[NAME_BYTES];
    attncl_shape shape;
    ck_assert_ptr_nonnull(attncl_graph_output_name(b->g, (size_t)i, &shape));
    ck_assert_int_eq(shape.dtype, ATTNCL_F32);
    ck_assert_int_eq(shape.rank, h->rank);
    for (int axis = 0; axis < h->rank; ++axis)
        ck_assert_int_eq(shape.dim[axis], h->dim[axis]);
    float *data = malloc((size_t)h->count * sizeof *data + 1);
    ck_assert_ptr_nonnull(data);
    ck_ok(
        attncl_graph_read(b->g, port_name("out", i, name), data, (size_t)h->count * sizeof *data));
    for (int64_t k = 0; k < h->count; ++k)
        h->data[k] = data[k];
    free(data);
}

void rig_run(struct rig *b)
{
    for (int i = 0; i < b->n_in; ++i)
        write_input(b, i);
    ck_ok(attncl_graph_run(b->g));
    ck_ok(attncl__graph_check_canaries(b->g));
    for (int i = 0; i < b->n_out; ++i)
        read_output(b, i);
}
