// SPDX-License-Identifier: MIT
//
// Builds a graph: values and their handles, nodes with inferred shapes, views.  Keeps the builders'
// first failure and the scopes that say where it happened.

#include <stdarg.h>

#include "base/alloc.h"
#include "base/quantised.h"
#include "graph/nodes.h"

bool attncl__graph_failed(const attncl_graph *g)
{
    return !g || g->status != ATTNCL_OK;
}

attncl_context *attncl__graph_context(const attncl_graph *g)
{
    return g->ctx;
}

attncl_value attncl__graph_keep_failure(attncl_graph *g, attncl_status status)
{
    const char *const scope = g->scope_override ? g->scope_override : g->scope.data;
    g->status = *scope ? attncl__prefix_failure(status, "%s", scope) : status;
    snprintf(g->message, sizeof g->message, "%s", attncl_last_error());
    return ATTNCL_NONE_VALUE;
}

attncl_value attncl__graph_fail(attncl_graph *g, attncl_status status, const char *file, int line,
                                const char *fmt, ...)
{
    char text[400];
    va_list args;

    if (attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    attncl__fail(status, file, line, "%s", text);
    return attncl__graph_keep_failure(g, status);
}

attncl_status attncl_graph_status(const attncl_graph *g)
{
    REQUIRE(g, ATTNCL_ERR_ARGUMENT, "graph is NULL");
    return g->status == ATTNCL_OK ? ATTNCL_OK : FAIL(g->status, "%s", g->message);
}

bool attncl__graph_check_open(attncl_graph *g)
{
    if (!attncl__graph_failed(g) && g->program)
        GRAPH_FAIL(g, ATTNCL_ERR_STATE, "the graph is compiled and takes no more nodes");
    return !attncl__graph_failed(g);
}

void attncl__graph_override_scope(attncl_graph *g, const char *scope)
{
    g->scope_override = scope;
}

void attncl_graph_push_scope(attncl_graph *g, const char *name)
{
    if (attncl__graph_failed(g) || !name)
        return;
    if (g->scope_depth == MAX_SCOPE_DEPTH) {
        GRAPH_FAIL(g, ATTNCL_ERR_STATE, "scope %s is nested deeper than %d", name, MAX_SCOPE_DEPTH);
        return;
    }
    g->scope_marks[g->scope_depth++] = g->scope.used;
    attncl__strbuf_add(&g->scope, "%s%s", g->scope.used ? "." : "", name);
    if (g->scope.failed)
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "scope %s", name);
}

void attncl_graph_pop_scope(attncl_graph *g)
{
    if (attncl__graph_failed(g) || g->scope_depth == 0)
        return;
    g->scope.used = g->scope_marks[--g->scope_depth];
    g->scope.data[g->scope.used] = '\0';
}

int attncl__graph_add_value(attncl_graph *g, struct value v)
{
    if (!GROW_LIST(g->values, g->n_values, g->values_capacity))
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "graph value %d", g->n_values).id;
    g->values[g->n_values] = v;
    if (v.kind != VALUE_VIEW)
        g->values[g->n_values].base = g->n_values;
    return g->n_values++;
}

const struct value *attncl__graph_value(const attncl_graph *g, attncl_value v)
{
    const bool is_own = g && v.graph == g->serial && v.id > 0 && v.id < g->n_values;
    return is_own ? &g->values[v.id] : NULL;
}

int attncl__compare_by_tensor(const void *a, const void *b)
{
    const struct value *x = *(const struct value *const *)a, *y = *(const struct value *const *)b;

    if (x->tensor != y->tensor)
        return (uintptr_t)x->tensor < (uintptr_t)y->tensor ? -1 : 1;
    return x < y ? -1 : x > y;
}

attncl_value attncl__graph_handle(const attncl_graph *g, int id)
{
    return id ? (attncl_value){id, g->serial} : ATTNCL_NONE_VALUE;
}

bool attncl__graph_is_foreign(const attncl_graph *g, attncl_value v)
{
    return v.id != 0 && v.graph != g->serial;
}

const struct tensor_desc *attncl__graph_desc(const attncl_graph *g, attncl_value v)
{
    const struct value *value = attncl__graph_value(g, v);
    return value ? &value->desc : NULL;
}

attncl_shape attncl_graph_shape(const attncl_graph *g, attncl_value value)
{
    const struct tensor_desc *d = attncl__graph_desc(g, value);
    attncl_shape shape = {.rank = -1};

    if (d) {
        shape = (attncl_shape){.dtype = d->dtype, .rank = d->rank};
        memcpy(shape.dim, d->dim, sizeof shape.dim);
    }
    return shape;
}

attncl_value attncl__graph_view(attncl_graph *g, attncl_value base, const struct tensor_desc *desc)
{
    if (!attncl__graph_check_open(g))
        return ATTNCL_NONE_VALUE;
    const struct value *v = attncl__graph_value(g, base);
    if (attncl__graph_is_foreign(g, base))
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "a view of a value of another graph");
    if (!v)
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "a view of the null value");
    if (attncl__is_quantised(desc->dtype))
        return GRAPH_FAIL(g, ATTNCL_ERR_DTYPE, "a view of %s weights, which are read whole",
                          attncl_dtype_name(desc->dtype));
    struct value view = {.kind = VALUE_VIEW, .base = v->base, .desc = *desc};
    view.desc.start += v->desc.start; // a view of a view is a view of its base
    return attncl__graph_handle(g, attncl__graph_add_value(g, view));
}

static bool accepts_layout(const struct op_class *cls, int i, const struct tensor_desc *d)
{
    struct rows rows;

    if (!attncl__desc_present(d) || (cls->in[i].flags & ANY_VIEW))
        return true;
    if (cls->in[i].flags & STRIDED)
        return attncl__desc_rows(d, &rows);
    return d->start == 0 && attncl__desc_contiguous(d);
}

// Sets the node's inputs, adding copies of views that the op cannot read.  False when the graph fails.
static bool gather_inputs(attncl_graph *g, const attncl_value *in, int n_in, struct node *node)
{
    const struct op_class *cls = node->cls;

    for (int i = 0; i < cls->n_in; ++i) {
        attncl_value input = i < n_in ? in[i] : ATTNCL_NONE_VALUE;
        if (attncl__graph_is_foreign(g, input)) {
            GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s: %s is a value of another graph", cls->name,
                       cls->in[i].name);
            return false;
        }
        const struct value *v = attncl__graph_value(g, input);
        if (!v)
            continue;
        if ((cls->in[i].flags & STATE) && v->kind != VALUE_STATE && v->kind != VALUE_TENSOR) {
            GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s: %s must be state or a weight", cls->name,
                       cls->in[i].name);
            return false;
        }
        if (!accepts_layout(cls, i, &v->desc)) {
            input = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, &input, 1);
            if (!input.id)
                return false;
        }
        node->in[i] = input.id;
    }
    return true;
}

// Returns a copy of the current scope that lives as long as the graph; NULL when memory is short.
static char *keep_scope(attncl_graph *g)
{
    const char *const text = g->scope_override ? g->scope_override : g->scope.data;
    char *const last = g->n_node_scopes ? g->node_scopes[g->n_node_scopes - 1] : NULL;

    if (last && strcmp(last, text) == 0)
        return last;
    const bool has_space = GROW_LIST(g->node_scopes, g->n_node_scopes, g->node_scopes_capacity);
    char *const scope = has_space ? attncl__copy_text(text) : NULL;
    if (scope)
        g->node_scopes[g->n_node_scopes++] = scope;
    return scope;
}

static bool init_node(attncl_graph *g, const struct op_class *cls, const void *params,
                      struct node *node)
{
    const size_t ints = (cls->params_bytes + sizeof(int) - 1) / sizeof(int);

    node->cls = cls;
    node->loop = g->in_loop ? g->n_loops - 1 : -1;
    node->region = -1;
    node->scope = keep_scope(g);
    node->params = attncl__alloc_array(ints + (size_t)(cls->n_in + cls->n_out), sizeof(int));
    if (!node->scope || !node->params) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "node of %s", cls->name);
        return false;
    }
    node->in = (int *)node->params + ints;
    node->out = node->in + cls->n_in;
    if (params)
        memcpy(node->params, params, cls->params_bytes);
    return true;
}

// Appends the node and its results.  Returns the first result; the null value when memory is short.
static attncl_value append_node(attncl_graph *g, struct node *node, const struct op_sig *sig)
{
    if (!GROW_LIST(g->nodes, g->n_nodes, g->nodes_capacity))
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "node of %s", node->cls->name);
    for (int i = 0; i < node->cls->n_out; ++i) {
        node->out[i] = attncl__graph_add_value(
            g, (struct value){.kind = VALUE_RESULT, .desc = sig->out[i], .node = g->n_nodes});
        if (!node->out[i])
            return ATTNCL_NONE_VALUE;
    }
    g->nodes[g->n_nodes++] = *node;
    const attncl_value first = attncl__graph_handle(g, node->cls->n_out ? node->out[0] : 0);
    *node = (struct node){0}; // its memory has passed to the graph
    return first;
}

size_t attncl__op_max_arity(void)
{
    size_t max = 0;

    for (int i = OP_NONE + 1; i < N_OP_IDS; ++i) {
        const size_t arity = (size_t)(attncl__op_table[i]->n_in + attncl__op_table[i]->n_out);
        max = arity > max ? arity : max;
    }
    return max;
}

void attncl__graph_fill_sig(const attncl_graph *g, const struct node *node,
                            struct tensor_desc *descs, struct op_sig *sig)
{
    const int n_in = node->cls->n_in, n_out = node->cls->n_out;

    *sig = (struct op_sig){.caps = g->ctx ? &g->ctx->caps : NULL,
                           .cls = node->cls,
                           .params = node->params,
                           .n_in = n_in,
                           .n_out = n_out,
                           .in = descs,
                           .out = descs + n_in,
                           .save_for_backward = node->save_for_backward};
    for (int i = 0; i < n_in; ++i)
        sig->in[i] = g->values[node->in[i]].desc;
    for (int i = 0; i < n_out; ++i)
        sig->out[i] = g->values[node->out[i]].desc;
}

void attncl__graph_save_for_backward(attncl_graph *g, int n)
{
    struct node *node = &g->nodes[n];
    struct op_sig sig;

    if (node->save_for_backward)
        return;
    node->save_for_backward = true;
    attncl__graph_fill_sig(g, node, g->descs, &sig);
    sig.caps = NULL;
    (void)attncl__op_infer(node->cls, &sig); // succeeded when the node was added
    for (int i = 0; i < node->cls->n_out; ++i)
        if (node->cls->out[i].flags & FOR_BACKWARD)
            g->values[node->out[i]].desc = sig.out[i];
}

attncl_value attncl__graph_add(attncl_graph *g, const struct op_class *cls, const void *params,
                               const attncl_value *in, int n_in)
{
    if (!attncl__graph_check_open(g))
        return ATTNCL_NONE_VALUE;
    assert(cls && n_in <= cls->n_in);

    struct op_sig sig;
    struct node node = {0};
    attncl_value first = ATTNCL_NONE_VALUE;

    if (!init_node(g, cls, params, &node) || !gather_inputs(g, in, n_in, &node))
        goto done;
    attncl__graph_fill_sig(g, &node, g->descs, &sig);
    sig.caps = NULL;
    const attncl_status status =
        attncl__prefix_failure(attncl__op_infer(cls, &sig), "%s", cls->name);
    first =
        status == ATTNCL_OK ? append_node(g, &node, &sig) : attncl__graph_keep_failure(g, status);
done:
    attncl__free(node.params);
    return first;
}

attncl_value attncl__graph_result(attncl_graph *g, attncl_value first, int i)
{
    const struct value *v = attncl__graph_value(g, first);
    if (!v || attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    assert(v->kind == VALUE_RESULT && i < g->nodes[v->node].cls->n_out);
    return attncl__graph_handle(g, g->nodes[v->node].out[i]);
}

attncl_value attncl__graph_zeros(attncl_graph *g, int rank, const int64_t *dim)
{
    struct zeros_fwd_params params;

    if (attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    const attncl_status status = attncl__desc_make(ATTNCL_F32, rank, dim, &params.shape);
    if (status != ATTNCL_OK)
        return attncl__graph_keep_failure(g, status);
    return attncl__graph_add(g, &attncl__op_zeros_fwd, &params, NULL, 0);
}
