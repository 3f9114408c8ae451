// SPDX-License-Identifier: MIT
//
// Reverse mode.  The nodes between x and y are visited in reverse topological order; each node's
// rules (op/op.h) say which ops compute the gradients of its inputs from those of its outputs.  The
// traversal is iterative, so a graph's depth is limited by memory alone.
//
// A custom-gradient region (graph.h) is visited as one node.  Inside a loop the backward pass ends
// where the loop begins: values computed before the loop count as constants.

#include "attncl/gradient.h"

#include "autodiff/internal.h"

static void mark_values(const struct backward *b, bool *marks, size_t n, const attncl_value *values)
{
    for (size_t i = 0; i < n; ++i)
        if (values[i].id != 0)
            marks[b->accum.root[values[i].id]] = true;
}

static const struct node_region *region_of(const attncl_graph *g, int n)
{
    return g->nodes[n].region < 0 ? NULL : &g->regions[g->nodes[n].region];
}

// Marks, in forward order, each value that depends on an x.
static void mark_requires_grad(struct backward *b)
{
    const attncl_graph *g = b->g;

    for (int n = b->first; n < b->n_nodes; ++n) {
        const struct node_region *region = region_of(g, n);
        if (region) {
            n = region->last;
            if (attncl__backward_any_value(b, b->requires_grad, region->grad->n_in,
                                           region->grad->in))
                mark_values(b, b->requires_grad, (size_t)region->grad->n_out, region->grad->out);
            continue;
        }
        const struct node *node = &g->nodes[n];
        if (attncl__backward_any_id(b, b->requires_grad, node->cls->n_in, node->in))
            for (int i = 0; i < node->cls->n_out; ++i)
                b->requires_grad[node->out[i]] = true;
    }
}

// Marks, in reverse order, each value that a y depends on.
static void mark_reaches_output(struct backward *b)
{
    const attncl_graph *g = b->g;

    for (int n = b->n_nodes - 1; n >= b->first; --n) {
        const struct node_region *region = region_of(g, n);
        if (region) {
            n = region->first;
            if (attncl__backward_any_value(b, b->reaches_output, region->grad->n_out,
                                           region->grad->out))
                mark_values(b, b->reaches_output, (size_t)region->grad->n_in, region->grad->in);
            continue;
        }
        const struct node *node = &g->nodes[n];
        if (attncl__backward_any_id(b, b->reaches_output, node->cls->n_out, node->out))
            for (int i = 0; i < node->cls->n_in; ++i)
                b->reaches_output[b->accum.root[node->in[i]]] = true;
    }
}

static void backprop_nodes(struct backward *b)
{
    for (int n = b->n_nodes - 1; n >= b->first && !attncl__graph_failed(b->g); --n) {
        const struct node_region *region = region_of(b->g, n);
        if (region) {
            n = region->first;
            attncl__backward_region(b, region->grad);
        } else {
            attncl__backward_node(b, n);
        }
    }
}

static bool check_float(attncl_graph *g, const char *name, size_t i, attncl_value v)
{
    const struct value *value = attncl__graph_value(g, v);

    if (attncl__graph_is_foreign(g, v))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s %zu of a gradient is a value of another graph", name,
                   i);
    else if (!value)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s %zu of a gradient is missing", name, i);
    else if (!attncl__is_float(value->desc.dtype))
        GRAPH_FAIL(g, ATTNCL_ERR_DTYPE, "%s %zu of a gradient is %s, only floats have gradients",
                   name, i, attncl_dtype_name(value->desc.dtype));
    return !attncl__graph_failed(g);
}

static bool check_call(attncl_graph *g, size_t n_y, const attncl_value *y, const attncl_value *dy,
                       size_t n_x, const attncl_value *x)
{
    for (size_t i = 0; i < n_x && !attncl__graph_failed(g); ++i)
        check_float(g, "x", i, x[i]);
    for (size_t i = 0; i < n_y && !attncl__graph_failed(g); ++i) {
        if (!check_float(g, "y", i, y[i]))
            return false;
        const struct tensor_desc *d = attncl__graph_desc(g, y[i]);
        if (dy && dy[i].id) {
            const struct tensor_desc *given = attncl__graph_desc(g, dy[i]);
            if (check_float(g, "dy", i, dy[i]) && !attncl__desc_same_shape(d, given))
                GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "dy %zu is %s, its y is %s", i, SHAPE(given),
                           SHAPE(d));
        } else if (attncl__desc_count(d) != 1) {
            GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "y %zu is %s: without a dy it must have one element", i,
                       SHAPE(d));
        }
    }
    return !attncl__graph_failed(g);
}

static void seed_gradients(struct backward *b, size_t n_y, const attncl_value *y,
                           const attncl_value *dy)
{
    static const float one = 1.0f;

    for (size_t i = 0; i < n_y && !attncl__graph_failed(b->g); ++i) {
        const struct tensor_desc d = *attncl__graph_desc(b->g, y[i]);
        const attncl_value gradient =
            dy && dy[i].id ? dy[i] : attncl_graph_constant(b->g, ATTNCL_F32, d.rank, d.dim, &one);
        if (attncl__backward_requires_grad(b, y[i].id))
            attncl__grad_accum_add(&b->accum, y[i].id, gradient);
    }
}

// Returns the gradient of x, in its shape; for a view, the corresponding view of its base's gradient.
static attncl_value get_gradient(struct backward *b, attncl_value x)
{
    attncl_graph *g = b->g;
    const struct value v = g->values[x.id];
    attncl_value sum = attncl__grad_accum_get(&b->accum, x.id);

    if (attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    if (sum.id == 0)
        return attncl__backward_zeros(g, x.id);
    if (v.kind != VALUE_VIEW)
        return sum;
    if (!attncl__desc_contiguous(attncl__graph_desc(g, sum)))
        sum = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, &sum, 1);
    return attncl__graph_view(g, sum, &v.desc);
}

static attncl_status begin_backward(struct backward *b, attncl_graph *g)
{
    const size_t n = (size_t)g->n_values;

    b->g = g;
    b->first = g->in_loop ? g->loops[g->n_loops - 1].first : 0;
    b->n_nodes = g->n_nodes;
    b->requires_grad = attncl__alloc_array(n, sizeof *b->requires_grad);
    b->reaches_output = attncl__alloc_array(n, sizeof *b->reaches_output);
    b->descs = attncl__alloc_array(attncl__op_max_arity(), sizeof *b->descs);
    REQUIRE(b->requires_grad && b->reaches_output && b->descs, ATTNCL_ERR_NO_MEMORY,
            "gradients of %zu values", n);
    return attncl__grad_accum_begin(&b->accum, g);
}

void attncl_graph_gradient(attncl_graph *g, size_t n_y, const attncl_value *y,
                           const attncl_value *dy, size_t n_x, const attncl_value *x,
                           attncl_value *dx)
{
    struct backward b = {0};

    if ((!y && n_y > 0) || ((!x || !dx) && n_x > 0)) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "y, x or dx is NULL");
        n_x = dx ? n_x : 0;
    }
    for (size_t i = 0; i < n_x; ++i)
        dx[i] = ATTNCL_NONE_VALUE;
    if (!attncl__graph_check_open(g) || !check_call(g, n_y, y, dy, n_x, x))
        return;
    const attncl_status status = begin_backward(&b, g);
    if (status != ATTNCL_OK) {
        attncl__graph_keep_failure(g, status);
        goto done;
    }
    mark_values(&b, b.requires_grad, n_x, x);
    mark_requires_grad(&b);
    mark_values(&b, b.reaches_output, n_y, y);
    mark_reaches_output(&b);
    for (int n = b.first; n < b.n_nodes && !attncl__graph_failed(g); ++n)
        attncl__backward_check(&b, n);
    seed_gradients(&b, n_y, y, dy);
    backprop_nodes(&b);
    for (size_t i = 0; i < n_x && !attncl__graph_failed(g); ++i)
        dx[i] = get_gradient(&b, x[i]);
    for (size_t i = 0; i < n_x && attncl__graph_failed(g); ++i)
        dx[i] = ATTNCL_NONE_VALUE;
done:
    attncl__grad_accum_free(&b.accum);
    attncl__free(b.descs);
    attncl__free(b.requires_grad);
    attncl__free(b.reaches_output);
}
