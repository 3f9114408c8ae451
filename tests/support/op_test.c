// SPDX-License-Identifier: MIT

#include "support/op_test.h"

#include <math.h>

#include "attncl/gradient.h"
#include "base/alloc.h"
#include "device/context.h"
#include "exec/exec.h"
#include "graph/nodes.h"

// A view's rows are VIEW_GAP wider in memory than they seem, and begin at VIEW_START.
enum { VIEW_GAP = 5, VIEW_START = 3 };

// The array of which `h` is to be a view: rows wider by VIEW_GAP, NaN (0 for integers) around them.
static struct host *widened(const struct host *h)
{
    int64_t dim[ATTNCL_MAX_RANK];
    const int last = h->rank - 1;

    ck_assert_int_ge(h->rank, 1);
    memcpy(dim, h->dim, sizeof dim);
    dim[last] += VIEW_GAP;
    struct host *wide = host_new(h->dtype, h->rank, dim);
    for (int64_t i = 0; attncl__is_float(h->dtype) && i < wide->count; ++i)
        wide->data[i] = NAN;
    for (int64_t i = 0; i < h->count; ++i)
        wide->data[i / h->dim[last] * dim[last] + VIEW_START + i % h->dim[last]] = h->data[i];
    return wide;
}

// An input of the graph, or a weight of 16-bit elements, which an input has not.
static attncl_value add_array(attncl_graph *g, const char *name, const struct host *h)
{
    return host_is_constant(h) ? attncl_graph_constant(g, h->dtype, h->rank, h->dim, host_pack(h))
                               : attncl_graph_input(g, name, h->dtype, h->rank, h->dim);
}

static const char *port(const char *prefix, int i)
{
    static char name[16];
    snprintf(name, sizeof name, "%s%d", prefix, i);
    return name;
}

static attncl_value add_input(attncl_graph *g, const char *name, const struct host *h)
{
    if (!h->as_view)
        return add_array(g, name, h);

    const attncl_value base = add_array(g, name, widened(h));
    const struct tensor_desc *desc = attncl__graph_desc(g, base);
    if (!desc)
        return base;
    struct tensor_desc view = *desc;
    view.dim[view.rank - 1] = h->dim[h->rank - 1];
    view.start = VIEW_START;
    return attncl__graph_view(g, base, &view);
}

static void add_gradients(struct op_graph *t, const attncl_value *x)
{
    attncl_value y[TEST_MAX_VALUES], dy[TEST_MAX_VALUES], of[TEST_MAX_VALUES], dx[TEST_MAX_VALUES];
    int n_y = 0, n = 0;

    for (int i = 0; i < t->n_out; ++i)
        if (t->dy[i]) {
            y[n_y] = t->value[i];
            dy[n_y++] =
                attncl_graph_input(t->g, port("dy", i), ATTNCL_F32, t->dy[i]->rank, t->dy[i]->dim);
        }
    for (int i = 0; i < t->n_in; ++i)
        if (t->wanted >> i & 1)
            of[n++] = x[i];
    attncl_graph_gradient(t->g, n_y, y, dy, n, of, dx);
    n = 0;
    for (int i = 0; i < t->n_in; ++i)
        if (t->wanted >> i & 1)
            attncl_graph_output(t->g, port("dx", i), dx[n++]);
}

// The gradients of the outputs, where the caller gives none.
static void random_dy(struct op_graph *t)
{
    for (int i = 0; i < t->cls->n_out; ++i) {
        const attncl_shape shape = attncl_graph_shape(t->g, t->value[i]);
        if (shape.rank < 0 || shape.dtype == ATTNCL_DTYPE_NONE)
            continue;
        t->out[i] = host_new(shape.dtype, shape.rank, shape.dim);
        if (shape.dtype == ATTNCL_F32)
            t->dy[i] = host_random(97u + (unsigned)i, shape.rank, shape.dim);
    }
    t->n_out = t->cls->n_out;
}

static bool is_state(const struct op_graph *t, int i)
{
    return t->cls && (t->cls->in[i].flags & STATE);
}

static void add_class(struct op_graph *t, const void *params, const attncl_value *x)
{
    const attncl_value first = attncl__graph_add(t->g, t->cls, params, x, t->n_in);

    if (t->saving && first.id)
        attncl__graph_save_for_backward(t->g, t->g->n_nodes - 1);
    for (int i = 0; i < t->cls->n_out; ++i)
        t->value[i] = attncl__graph_result(t->g, first, i);
}

attncl_status op_graph_open(struct op_graph *t, const void *params)
{
    attncl_value x[TEST_MAX_VALUES] = {{0}};
    const bool finds_outputs = t->wanted && t->n_out == 0;

    ck_assert_msg(t->cls || t->build, "there is no such op");
    memset(t->value, 0, sizeof t->value);
    TRY(attncl_graph_create(test_context(), &t->g));
    for (int i = 0; i < t->n_in; ++i) {
        const struct host *const h = t->in[i];
        if (h && is_state(t, i))
            x[i] = attncl_graph_state(t->g, port("in", i), h->dtype, h->rank, h->dim);
        else if (h)
            x[i] = add_input(t->g, port("in", i), h);
    }
    if (t->cls)
        add_class(t, params, x);
    else
        t->build(t->g, params, x, t->value);
    if (finds_outputs)
        random_dy(t);
    for (int i = 0; i < t->n_out && !finds_outputs; ++i)
        if (t->out[i])
            attncl_graph_output(t->g, port("out", i), t->value[i]);
    if (t->wanted)
        add_gradients(t, x);
    return attncl_graph_compile(t->g, NULL);
}

bool op_graph_has_shapes(const struct op_graph *t, char text[OP_GRAPH_TEXT_BYTES])
{
    size_t n = 0;

    for (int i = 0; i < t->n_out; ++i) {
        attncl_shape shape;
        char got[SHAPE_TEXT_BYTES], want[SHAPE_TEXT_BYTES];
        if (!t->out[i])
            continue;
        struct tensor_desc is = {0}, expected = {.rank = t->out[i]->rank};
        if (attncl_graph_output_name(t->g, n++, &shape)) {
            is.rank = shape.rank;
            memcpy(is.dim, shape.dim, sizeof is.dim);
        }
        memcpy(expected.dim, t->out[i]->dim, sizeof expected.dim);
        snprintf(text, OP_GRAPH_TEXT_BYTES, "output %d is %s %s, the test expects %s %s", i,
                 attncl_dtype_name(shape.dtype), attncl__format_shape(&is, got),
                 attncl_dtype_name(t->out[i]->dtype), attncl__format_shape(&expected, want));
        if (strcmp(got, want) != 0 || shape.dtype != t->out[i]->dtype)
            return false;
    }
    return true;
}

static cl_mem state_memory(const struct op_graph *t, int i)
{
    const struct program *p = attncl__graph_program(t->g);

    for (int k = 0; k < p->n_states; ++k)
        if (strcmp(p->states[k].name, port("in", i)) == 0)
            return p->states[k].storage->mem;
    ck_abort_msg("there is no state of input %d", i);
    return NULL;
}

static attncl_status write_one(const struct op_graph *t, const char *name, const struct host *h)
{
    return h && h->count > 0 && !host_is_constant(h)
               ? attncl_graph_write(t->g, name, host_pack(h), host_bytes(h))
               : ATTNCL_OK;
}

attncl_status op_graph_run(const struct op_graph *t)
{
    for (int i = 0; i < t->n_in; ++i) {
        const struct host *const h = t->in[i];
        if (h && is_state(t, i))
            TRY(attncl__buffer_write(test_context(), state_memory(t, i), 0, host_pack(h),
                                     host_bytes(h)));
        else if (h)
            TRY(write_one(t, port("in", i), h->as_view ? widened(h) : h));
    }
    for (int i = 0; i < t->n_out && t->wanted; ++i)
        TRY(write_one(t, port("dy", i), t->dy[i]));
    TRY(attncl_graph_run(t->g));
    return attncl__graph_check_canaries(t->g);
}

attncl_status op_graph_read(const struct op_graph *t, const char *prefix, int i, struct host *h)
{
    void *bytes = host_pack(h);

    if (strcmp(prefix, "in") == 0)
        TRY(attncl__buffer_read(test_context(), state_memory(t, i), 0, bytes, host_bytes(h)));
    else
        TRY(attncl_graph_read(t->g, port(prefix, i), bytes, host_bytes(h)));
    host_unpack(h, bytes);
    return ATTNCL_OK;
}

void op_graph_close(struct op_graph *t)
{
    attncl_graph_destroy(t->g);
    t->g = NULL;
}

static attncl_status run(const char *name, const void *params, struct host *const *in, int n_in,
                         struct host *const *out, int n_out, bool saving)
{
    attncl_status status = ATTNCL_OK;
    struct op_graph t = {
        .cls = attncl__op_find(name), .n_in = n_in, .n_out = n_out, .saving = saving};
    char text[OP_GRAPH_TEXT_BYTES];

    ck_assert_msg(t.cls != NULL, "there is no op %s", name);
    for (int i = 0; i < n_in; ++i)
        t.in[i] = in[i];
    for (int i = 0; i < n_out; ++i)
        t.out[i] = out[i];
    TRY_DONE(op_graph_open(&t, params));
    ck_assert_msg(op_graph_has_shapes(&t, text), "%s: %s", name, text);
    TRY_DONE(op_graph_run(&t));
    for (int i = 0; i < n_out; ++i)
        if (out[i])
            TRY_DONE(op_graph_read(&t, "out", i, out[i]));
    for (int i = 0; i < n_in; ++i)
        if (in[i] && is_state(&t, i))
            TRY_DONE(op_graph_read(&t, "in", i, in[i]));
done:
    op_graph_close(&t);
    return status;
}

attncl_status run_op(const char *name, const void *params, struct host *const *in, int n_in,
                     struct host *const *out, int n_out)
{
    return run(name, params, in, n_in, out, n_out, false);
}

attncl_status run_op_saving(const char *name, const void *params, struct host *const *in, int n_in,
                            struct host *const *out, int n_out)
{
    return run(name, params, in, n_in, out, n_out, true);
}

void ck_op(const char *name, const void *params, struct host *const *in, int n_in,
           struct host *const *want, int n_out, double rtol, double atol)
{
    struct host *got[TEST_MAX_VALUES] = {NULL};

    for (int i = 0; i < n_out; ++i)
        got[i] = host_new(want[i]->dtype, want[i]->rank, want[i]->dim);
    ck_ok(run_op(name, params, in, n_in, got, n_out));
    for (int i = 0; i < n_out; ++i)
        ck_near(got[i], want[i], rtol, atol);
}

struct host *host_index(double value)
{
    struct host *h = host_new(ATTNCL_I32, DIMS(1));

    h->data[0] = value;
    return h;
}

bool on_simulator(void)
{
    const enum device_vendor vendor = test_context()->caps.vendor;
    return vendor == VENDOR_OCLGRIND || vendor == VENDOR_MESA_CPU;
}
