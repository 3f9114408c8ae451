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
    char name[NAME_BYTES];

    ck_ok(attncl_graph_write(b->g, port_name("in", i, name), host_pack(h), host_bytes(h)));
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
    void *bytes = host_pack(h);
    ck_ok(attncl_graph_read(b->g, port_name("out", i, name), bytes, host_bytes(h)));
    host_unpack(h, bytes);
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

void rig_run_once(struct rig *b)
{
    ck_ok(rig_compile(b));
    rig_run(b);
    rig_close(b);
}
