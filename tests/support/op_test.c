// SPDX-License-Identifier: MIT

#include "support/op_test.h"

#include <math.h>

#include "base/alloc.h"
#include "device/context.h"
#include "exec/exec.h"
#include "graph/internal.h"

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
    return attncl__is_16_bit(h->dtype)
               ? attncl_graph_constant(g, h->dtype, h->rank, h->dim, host_pack(h))
               : attncl_graph_input(g, name, h->dtype, h->rank, h->dim);
}

// The graph's value for `h`, named "in0", "in1" ...; *fed is what to write into it.
static attncl_value add_input(attncl_graph *g, const char *name, struct host *h, struct host **fed)
{
    *fed = h;
    if (!h->as_view)
        return add_array(g, name, h);

    *fed = widened(h);
    const attncl_value base = add_array(g, name, *fed);
    const struct tensor_desc *desc = attncl__graph_desc(g, base);
    if (!desc)
        return base;
    struct tensor_desc view = *desc;
    view.dim[view.rank - 1] = h->dim[h->rank - 1];
    view.start = VIEW_START;
    return attncl__graph_view(g, base, &view);
}

struct run {
    const struct op_class *cls;
    attncl_graph *g;
    attncl_value in[TEST_MAX_VALUES];
    struct host *fed[TEST_MAX_VALUES]; // NULL: absent or state
    bool saving;                       // outputs for gradients too
};

static void build(struct run *r, const void *params, struct host *const *in, int n_in,
                  struct host *const *out, int n_out)
{
    char name[16];

    for (int i = 0; i < n_in; ++i) {
        snprintf(name, sizeof name, "in%d", i);
        if (!in[i])
            continue;
        if (r->cls->state >> i & 1)
            r->in[i] = attncl_graph_state(r->g, name, in[i]->dtype, in[i]->rank, in[i]->dim);
        else
            r->in[i] = add_input(r->g, name, in[i], &r->fed[i]);
    }
    const attncl_value first = attncl__graph_add(r->g, r->cls, params, r->in, n_in);
    if (r->saving && first.id)
        attncl__graph_save_for_backward(r->g, r->g->n_nodes - 1);
    for (int i = 0; i < n_out; ++i) {
        if (!out[i])
            continue;
        snprintf(name, sizeof name, "out%d", i);
        attncl_graph_output(r->g, name, attncl__graph_result(r->g, first, i));
    }
}

static void check_shapes(const struct run *r, struct host *const *out, int n_out)
{
    size_t n = 0;

    for (int i = 0; i < n_out; ++i) {
        attncl_shape shape;
        if (!out[i])
            continue;
        ck_assert(attncl_graph_output_name(r->g, n++, &shape) != NULL);
        ck_assert_msg(shape.rank == out[i]->rank, "%s: output %d has rank %d, the test expects %d",
                      r->cls->name, i, shape.rank, out[i]->rank);
        for (int axis = 0; axis < shape.rank; ++axis)
            ck_assert_msg(shape.dim[axis] == out[i]->dim[axis],
                          "%s: output %d has %lld on axis %d, the test expects %lld", r->cls->name,
                          i, (long long)shape.dim[axis], axis, (long long)out[i]->dim[axis]);
        ck_assert_msg(shape.dtype == out[i]->dtype, "%s: output %d is %s, the test expects %s",
                      r->cls->name, i, attncl_dtype_name(shape.dtype),
                      attncl_dtype_name(out[i]->dtype));
    }
}

static cl_mem state_memory(const struct run *r, const char *name)
{
    const struct program *p = attncl__graph_program(r->g);

    for (int i = 0; i < p->n_states; ++i)
        if (strcmp(p->states[i].name, name) == 0)
            return p->states[i].storage->mem;
    ck_abort_msg("there is no state %s", name);
    return NULL;
}

static attncl_status write_inputs(const struct run *r, struct host *const *in, int n_in)
{
    char name[16];

    for (int i = 0; i < n_in; ++i) {
        const bool state = in[i] && !r->fed[i];
        const struct host *h = state ? in[i] : r->fed[i];
        if (!h || h->count == 0 || (attncl__is_16_bit(h->dtype) && !state))
            continue;
        snprintf(name, sizeof name, "in%d", i);
        if (state)
            TRY(attncl__buffer_write(test_context(), state_memory(r, name), 0, host_pack(h),
                                     host_bytes(h)));
        else
            TRY(attncl_graph_write(r->g, name, host_pack(h), host_bytes(h)));
    }
    return ATTNCL_OK;
}

// The state or the output called `name`.
static attncl_status read_one(const struct run *r, const char *name, bool state, struct host *h)
{
    void *bytes = host_pack(h);

    if (state)
        TRY(attncl__buffer_read(test_context(), state_memory(r, name), 0, bytes, host_bytes(h)));
    else
        TRY(attncl_graph_read(r->g, name, bytes, host_bytes(h)));
    host_unpack(h, bytes);
    return ATTNCL_OK;
}

static attncl_status run(const char *name, const void *params, struct host *const *in, int n_in,
                         struct host *const *out, int n_out, bool saving)
{
    attncl_status status = ATTNCL_OK;
    struct run r = {.cls = attncl__op_find(name), .saving = saving};
    char port[16];

    ck_assert_msg(r.cls != NULL, "there is no op %s", name);
    ck_assert_int_le(n_in, r.cls->n_in);
    TRY_DONE(attncl_graph_create(test_context(), &r.g));
    build(&r, params, in, n_in, out, n_out);
    TRY_DONE(attncl_graph_compile(r.g, NULL));
    check_shapes(&r, out, n_out);
    TRY_DONE(write_inputs(&r, in, n_in));
    TRY_DONE(attncl_graph_run(r.g));
    TRY_DONE(attncl__graph_check_canaries(r.g));
    for (int i = 0; i < n_out; ++i) {
        if (!out[i])
            continue;
        snprintf(port, sizeof port, "out%d", i);
        TRY_DONE(read_one(&r, port, false, out[i]));
    }
    for (int i = 0; i < n_in; ++i)
        if (in[i] && (r.cls->state >> i & 1)) {
            snprintf(port, sizeof port, "in%d", i);
            TRY_DONE(read_one(&r, port, true, in[i]));
        }
done:
    attncl_graph_destroy(r.g);
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
