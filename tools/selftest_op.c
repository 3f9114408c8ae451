// SPDX-License-Identifier: MIT
//
// One check of attncl selftest: every case of an op's spec (tests/support/op_spec.h), and the gradients, on the device
// against the reference in double precision.

#include <string.h>

#include "selftest.h"
#include "support/spec_point.h"

enum { NAME_BYTES = 24 };

// Sizes of several tiles with ragged tails, for the kernels of large products and matrix instructions.  The forward pass
// of a linear map is an NT product, its gradients are NN and TN products.
static const struct large_sizes {
    const char *op, *tiles, *huge; // huge: takes some seconds on the host
} large[] = {
    {"attention_fwd",
     "B=1 H=2 T=70 S=75 D=64 E=64; B=1 H=2 T=130 S=160 D=64 E=64; B=1 H=1 T=130 S=160 D=128 E=128",
     ""},
    {"linear_fwd", "R=200 K=200 N=200", "R=1400 K=1400 N=1400"},
    {"bmm_fwd", "B=1 N=200 M=200 P=200", ""},
};

static const char *format_name(const char *prefix, int i)
{
    static char name[NAME_BYTES];

    snprintf(name, sizeof name, "%s%d", prefix, i);
    return name;
}

// Whether the array is written before a run; others are constants.
static bool is_written(const struct host *h)
{
    return h && h->dtype != ATTNCL_F16 && h->dtype != ATTNCL_BF16 && h->dtype != ATTNCL_Q8 &&
           h->dtype != ATTNCL_Q4;
}

static attncl_value add_array(attncl_graph *g, const char *name, const struct host *h)
{
    return is_written(h) ? attncl_graph_input(g, name, h->dtype, h->rank, h->dim)
                         : attncl_graph_constant(g, h->dtype, h->rank, h->dim, host_pack(h));
}

// False if no public call covers this case.
static bool build_graph(struct spec_point *p, attncl_graph *g)
{
    attncl_value in[SPEC_MAX_IN] = {ATTNCL_VALUE_INIT}, out[SPEC_MAX_OUT] = {ATTNCL_VALUE_INIT};
    attncl_value y[SPEC_MAX_OUT], dy[SPEC_MAX_OUT], x[SPEC_MAX_IN], dx[SPEC_MAX_IN];
    size_t n_y = 0, n_x = 0;

    for (int i = 0; i < p->n_in; i++)
        if (p->in[i])
            in[i] = add_array(g, format_name("x", i), p->in[i]);
    p->spec->build(g, p->c->params, in, out);
    for (int i = 0; i < p->n_out; i++)
        if (p->out[i] && out[i].id) {
            attncl_graph_output(g, format_name("y", i), out[i]);
            if (p->wanted && p->dy[i]) {
                y[n_y] = out[i];
                dy[n_y++] = add_array(g, format_name("dy", i), p->dy[i]);
            }
        } else {
            p->out[i] = p->dy[i] = NULL;
        }
    for (int i = 0; i < p->n_in; i++)
        if (p->wanted >> i & 1)
            x[n_x++] = in[i];
    if (n_y > 0)
        attncl_graph_gradient(g, n_y, y, dy, n_x, x, dx);
    n_x = 0;
    for (int i = 0; i < p->n_in && n_y > 0; i++)
        if (p->wanted >> i & 1)
            attncl_graph_output(g, format_name("d", i), dx[n_x++]);
    return p->out[0];
}

static attncl_status run(const struct spec_point *p, attncl_graph *g)
{
    attncl_status status = attncl_graph_compile(g, NULL);

    for (int i = 0; i < p->n_in && status == ATTNCL_OK; i++)
        if (is_written(p->in[i]))
            status = attncl_graph_write(g, format_name("x", i), host_pack(p->in[i]),
                                        host_bytes(p->in[i]));
    for (int i = 0; i < p->n_out && p->wanted && status == ATTNCL_OK; i++)
        if (p->dy[i])
            status = attncl_graph_write(g, format_name("dy", i), host_pack(p->dy[i]),
                                        host_bytes(p->dy[i]));
    return status == ATTNCL_OK ? attncl_graph_run(g) : status;
}

static attncl_status compare(const struct spec_point *p, const struct spec_expected *e,
                             attncl_graph *g, enum spec_result which, int i)
{
    struct host *got = host_like(which == SPEC_OUT ? p->out[i] : p->in[i]);
    void *const bytes = host_pack(got);
    const attncl_status status =
        attncl_graph_read(g, format_name(which == SPEC_OUT ? "y" : "d", i), bytes, host_bytes(got));

    host_unpack(got, bytes);
    if (status == ATTNCL_OK)
        spec_compare(p, e, which, i, got);
    return status;
}

static attncl_status check_point(struct spec_point *p, attncl_context *context)
{
    struct spec_expected e;
    attncl_graph *g = NULL;
    attncl_status status = attncl_graph_create(context, &g);

    spec_fill(p);
    if (status == ATTNCL_OK && build_graph(p, g)) {
        status = run(p, g);
        if (status == ATTNCL_OK)
            spec_expect(p, &e);
        for (int i = 0; i < p->n_out && status == ATTNCL_OK; i++)
            if (p->out[i])
                status = compare(p, &e, g, SPEC_OUT, i);
        for (int i = 0; i < p->n_in && status == ATTNCL_OK; i++)
            if (p->wanted >> i & 1)
                status = compare(p, &e, g, SPEC_DX, i);
    }
    if (status != ATTNCL_OK)
        spec_wrong(p, "%s", attncl_last_error());
    attncl_graph_destroy(g);
    return status == ATTNCL_ERR_NO_MEMORY ? status : ATTNCL_OK;
}

// All sizes, or the last ones: the first may have one row, one channel.
static attncl_status check_sizes(struct spec_point *p, const char *sizes, bool all,
                                 attncl_context *context)
{
    attncl_status status = ATTNCL_OK;
    int k = 0;

    while (!all && spec_sizes_at(sizes, k + 1, &p->sizes))
        k++;
    for (; status == ATTNCL_OK && spec_sizes_at(sizes, k, &p->sizes); k++)
        status = check_point(p, context);
    return status;
}

static const struct large_sizes *find_large(const struct op_spec *spec)
{
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        if (strcmp(spec->op, large[i].op) == 0)
            return &large[i];
    return NULL;
}

bool is_brief_op(const struct op_spec *spec)
{
    return find_large(spec) != NULL;
}

static attncl_status check_large(const struct op_spec *spec, bool huge, attncl_context *context)
{
    const struct large_sizes *const sizes = find_large(spec);
    struct spec_point p = spec_point_of(spec, spec->cases);

    if (!sizes)
        return ATTNCL_OK;
    p.wanted = spec_wanted(&p);
    const attncl_status status = check_sizes(&p, sizes->tiles, true, context);
    return status == ATTNCL_OK && huge ? check_sizes(&p, sizes->huge, true, context) : status;
}

int check_op(const struct op_spec *spec, attncl_context *context, const struct op_check *check,
             struct outcome *ret)
{
    const bool suffix = strstr(spec->op, "_fwd"); // an internal suffix, not shown
    attncl_status status = ATTNCL_OK;

    spec_tally = (struct spec_tally){.is_quiet = true, .times = check->times};
    if (check->sizes != CHECK_USUAL)
        status = check_large(spec, check->sizes == CHECK_LARGE, context);
    for (const struct op_case *c = spec->cases;
         check->sizes != CHECK_BRIEF && status == ATTNCL_OK && (c == spec->cases || c->name); c++) {
        struct spec_point p = spec_point_of(spec, c);
        p.wanted = spec_wanted(&p);
        // The first case has all sizes, so that rows and tiles of every kind occur.
        status = check_sizes(&p, spec_sizes_text(&p, false), c == spec->cases, context);
        if (status == ATTNCL_OK && check->full && c == spec->cases)
            status = check_sizes(&p, spec_sizes_text(&p, true), true, context);
    }
    host_reset();
    *ret = (struct outcome){.worst = spec_tally.worst};
    snprintf(ret->op, sizeof ret->op, "%.*s", (int)strlen(spec->op) - (suffix ? 4 : 0), spec->op);
    memcpy(ret->message, spec_tally.first, sizeof ret->message);
    return tool_status(status);
}
