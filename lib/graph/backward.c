// SPDX-License-Identifier: MIT
//
// Reverse mode.  The nodes between the x and the y are walked from the last to the first, which is
// an order of dependence; each node's rules (op/op.h) say which ops make the gradients of its
// inputs from those of its outputs.  The walk is a loop: a graph may be as deep as memory allows.

#include "attncl/gradient.h"

#include "base/alloc.h"
#include "graph/arrivals.h"

enum { MOST_RULES = 16 }; // of one op

struct backward {
    attncl_graph *g;
    int n_nodes; // of the forward graph
    struct arrivals a;
    bool *wanted;  // by root: an x, or depends on one
    bool *reached; // by root: a y, or one depends on it
};

static bool is_wanted(const struct backward *b, int value)
{
    return value != 0 && b->wanted[b->a.root[value]];
}

static bool any_wanted(const struct backward *b, const struct node *node)
{
    bool any = false;

    for (int i = 0; i < node->cls->n_in; ++i)
        any = any || is_wanted(b, node->in[i]);
    return any;
}

static bool any_reached(const struct backward *b, const struct node *node)
{
    bool any = false;

    for (int i = 0; i < node->cls->n_out; ++i)
        any = any || b->reached[node->out[i]];
    return any;
}

static void mark(struct backward *b, int n_y, const attncl_value *y, int n_x, const attncl_value *x)
{
    const attncl_graph *g = b->g;

    for (int i = 0; i < n_x; ++i)
        b->wanted[b->a.root[x[i].id]] = true;
    for (int n = 0; n < b->n_nodes; ++n)
        for (int i = 0; any_wanted(b, &g->nodes[n]) && i < g->nodes[n].cls->n_out; ++i)
            b->wanted[g->nodes[n].out[i]] = true;
    for (int i = 0; i < n_y; ++i)
        b->reached[b->a.root[y[i].id]] = true;
    for (int n = b->n_nodes - 1; n >= 0; --n)
        for (int i = 0; any_reached(b, &g->nodes[n]) && i < g->nodes[n].cls->n_in; ++i)
            b->reached[b->a.root[g->nodes[n].in[i]]] = true;
}

static bool applies(const struct grad_rule *rule, const struct op_sig *sig)
{
    return !rule->when || rule->when(sig);
}

// True when some rule gives the gradient of input `i`.
static bool has_gradient(const struct op_class *cls, const struct op_sig *sig, int i)
{
    for (int r = 0; r < cls->n_grad; ++r)
        for (int k = 0; k < OP_MAX_OUT; ++k)
            if (cls->grad[r].out[k].kind == REF_KIND_DX && cls->grad[r].out[k].index == i &&
                applies(&cls->grad[r], sig))
                return true;
    return false;
}

// "softmax" of "softmax_fwd".
static int name_length(const struct op_class *cls)
{
    const size_t n = strlen(cls->name);
    return (int)(n > 4 && strcmp(cls->name + n - 4, "_fwd") == 0 ? n - 4 : n);
}

// Every op between an x and a y must have the gradients that are wanted.
static void check_node(const struct backward *b, int n)
{
    const struct node *node = &b->g->nodes[n];
    struct op_sig sig;

    if (!any_wanted(b, node) || !any_reached(b, node))
        return;
    attncl__graph_sig(b->g, node, &sig);
    bool has_all = !attncl__graph_loop_of(b->g, n);
    for (int i = 0; i < node->cls->n_in; ++i)
        if (is_wanted(b, node->in[i]) && sig.in[i].dtype == ATTNCL_F32)
            has_all = has_all && has_gradient(node->cls, &sig, i);
    if (!has_all)
        GRAPH_FAIL(b->g, ATTNCL_ERR_UNSUPPORTED, "%s%s%.*s has no gradient%s", node->scope,
                   node->scope[0] ? ": " : "", name_length(node->cls), node->cls->name,
                   attncl__graph_loop_of(b->g, n) ? " in a loop" : "");
}

// A node on its way back.
struct step {
    struct backward *b;
    int n;            // of the node
    struct node node; // a copy: adding nodes moves them
    struct op_sig sig;
    attncl_value dy[OP_MAX_OUT];
    attncl_value temp[N_GRAD_TEMPS];
    unsigned temps_needed;
};

// True when somebody needs a result of the rule; notes the temporaries it reads.
static bool is_needed(struct step *s, const struct grad_rule *rule)
{
    bool needed = false;

    for (int k = 0; k < OP_MAX_OUT; ++k) {
        const struct grad_ref ref = rule->out[k];
        if (ref.kind == REF_KIND_DX)
            needed = needed || is_wanted(s->b, s->node.in[ref.index]);
        if (ref.kind == REF_KIND_T)
            needed = needed || (s->temps_needed >> ref.index & 1);
    }
    needed = needed && applies(rule, &s->sig);
    for (int i = 0; needed && i < OP_MAX_IN; ++i)
        if (rule->in[i].kind == REF_KIND_T)
            s->temps_needed |= 1u << rule->in[i].index;
    return needed;
}

// From here on the forward op writes its kept outputs.
static void keep_outputs(struct step *s)
{
    struct node *node = &s->b->g->nodes[s->n];
    struct op_sig sig;

    if (node->keep)
        return;
    node->keep = true;
    attncl__graph_sig(s->b->g, node, &sig);
    sig.caps = NULL;
    const attncl_status status = node->cls->infer(&sig);
    assert(status == ATTNCL_OK); // as it was when the node was added
    (void)status;
    for (int i = 0; i < node->cls->n_out; ++i)
        if (node->cls->kept >> i & 1)
            s->b->g->values[node->out[i]].desc = sig.out[i];
}

static attncl_value zeros_like(attncl_graph *g, int value)
{
    const struct zeros_fwd_params params = {g->values[value].desc};
    const attncl_value none = ATTNCL_NONE_VALUE;
    return attncl__graph_add(g, &attncl__op_zeros_fwd, &params, &none, 0);
}

// The value a reference stands for; the null value where it is absent or nothing flows.
static attncl_value resolve(struct step *s, struct grad_ref ref)
{
    switch (ref.kind) {
    case REF_KIND_X:
        return (attncl_value){s->node.in[ref.index]};
    case REF_KIND_Y:
        if (s->node.cls->kept >> ref.index & 1)
            keep_outputs(s);
        return (attncl_value){s->node.out[ref.index]};
    case REF_KIND_DY:
        return s->dy[ref.index];
    case REF_KIND_T:
        return s->temp[ref.index];
    default:
        return ATTNCL_NONE_VALUE;
    }
}

// True when a gradient flows into the rule.
static bool flows_into(struct step *s, const struct grad_rule *rule)
{
    bool flows = false;

    for (int i = 0; i < OP_MAX_IN; ++i)
        if (rule->in[i].kind == REF_KIND_DY || rule->in[i].kind == REF_KIND_T)
            flows = flows || resolve(s, rule->in[i]).id != 0;
    return flows;
}

static void deliver(struct step *s, struct grad_ref ref, attncl_value gradient)
{
    if (ref.kind == REF_KIND_T)
        s->temp[ref.index] = gradient;
    else if (ref.kind == REF_KIND_DX && is_wanted(s->b, s->node.in[ref.index]))
        attncl__arrivals_add(&s->b->a, s->node.in[ref.index], gradient);
}

static void pass_on(struct step *s, const struct grad_rule *rule)
{
    attncl_graph *g = s->b->g;
    attncl_value gradient = resolve(s, rule->in[0]);
    struct tensor_desc view;

    if (rule->part) {
        rule->part(&s->sig, rule->out[0].index, &view);
        if (!attncl__desc_contiguous(attncl__graph_desc(g, gradient)))
            gradient = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, &gradient, 1);
        gradient = attncl__graph_view(g, gradient, &view);
    }
    deliver(s, rule->out[0], gradient);
}

static void apply(struct step *s, const struct grad_rule *rule)
{
    attncl_graph *g = s->b->g;
    attncl_value in[OP_MAX_IN] = {{0}};

    if (!flows_into(s, rule))
        return;
    if (!rule->op) {
        pass_on(s, rule);
        return;
    }
    for (int i = 0; i < rule->op->n_in; ++i) {
        in[i] = resolve(s, rule->in[i]);
        if (in[i].id == 0 && rule->in[i].kind == REF_KIND_DY && !(rule->op->optional >> i & 1))
            in[i] = zeros_like(g, s->node.out[rule->in[i].index]);
    }
    const bool same_params = rule->op->params_bytes == s->node.cls->params_bytes;
    const attncl_value first =
        attncl__graph_add(g, rule->op, same_params ? s->node.params : NULL, in, rule->op->n_in);
    for (int k = 0; k < rule->op->n_out; ++k)
        deliver(s, rule->out[k], attncl__graph_result(g, first, k));
}

// The gradients of node n's inputs from those of its outputs, under the node's own scope.
static void step_back(struct backward *b, int n)
{
    attncl_graph *g = b->g;
    struct step s = {.b = b, .n = n, .node = g->nodes[n]};
    const struct op_class *cls = s.node.cls;
    bool needed[MOST_RULES], any = false;

    for (int i = 0; i < cls->n_out; ++i)
        any = any || attncl__arrivals_any(&b->a, s.node.out[i]);
    if (!any || !any_wanted(b, &s.node))
        return;
    assert(cls->n_grad <= MOST_RULES);
    char *const scope = g->scope;
    const size_t scope_used = g->scope_used;
    g->scope = s.node.scope;
    g->scope_used = strlen(g->scope);

    attncl__graph_sig(g, &s.node, &s.sig);
    for (int i = 0; i < cls->n_out; ++i)
        s.dy[i] = attncl__arrivals_sum(&b->a, s.node.out[i]);
    for (int r = cls->n_grad - 1; r >= 0; --r)
        needed[r] = is_needed(&s, &cls->grad[r]);
    for (int r = 0; r < cls->n_grad && !attncl__graph_failed(g); ++r)
        if (needed[r])
            apply(&s, &cls->grad[r]);

    g->scope = scope;
    g->scope_used = scope_used;
}

static bool check_real(attncl_graph *g, const char *name, int i, attncl_value v)
{
    const struct value *value = attncl__graph_value(g, v);

    if (!value)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "%s %d of a gradient is missing", name, i);
    else if (value->desc.dtype != ATTNCL_F32)
        GRAPH_FAIL(g, ATTNCL_ERR_DTYPE, "%s %d of a gradient is %s, only F32 has gradients", name,
                   i, attncl_dtype_name(value->desc.dtype));
    return !attncl__graph_failed(g);
}

static bool check_call(attncl_graph *g, int n_y, const attncl_value *y, const attncl_value *dy,
                       int n_x, const attncl_value *x)
{
    if (g->in_loop)
        GRAPH_FAIL(g, ATTNCL_ERR_STATE, "a gradient in a loop");
    for (int i = 0; i < n_x && !attncl__graph_failed(g); ++i)
        check_real(g, "x", i, x[i]);
    for (int i = 0; i < n_y && !attncl__graph_failed(g); ++i) {
        if (!check_real(g, "y", i, y[i]))
            return false;
        const struct tensor_desc *d = attncl__graph_desc(g, y[i]);
        if (dy && dy[i].id) {
            const struct tensor_desc *given = attncl__graph_desc(g, dy[i]);
            if (check_real(g, "dy", i, dy[i]) && !attncl__desc_same_shape(d, given))
                GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "dy %d is %s, its y is %s", i, SHAPE(given),
                           SHAPE(d));
        } else if (attncl__desc_count(d) != 1) {
            GRAPH_FAIL(g, ATTNCL_ERR_SHAPE, "y %d is %s: without a dy it must have one element", i,
                       SHAPE(d));
        }
    }
    return !attncl__graph_failed(g);
}

static void seed(struct backward *b, int n_y, const attncl_value *y, const attncl_value *dy)
{
    static const float one = 1.0f;

    for (int i = 0; i < n_y && !attncl__graph_failed(b->g); ++i) {
        const struct tensor_desc d = *attncl__graph_desc(b->g, y[i]);
        const attncl_value gradient =
            dy && dy[i].id ? dy[i] : attncl_graph_constant(b->g, ATTNCL_F32, d.rank, d.dim, &one);
        if (is_wanted(b, y[i].id))
            attncl__arrivals_add(&b->a, y[i].id, gradient);
    }
}

// What arrived at x, in its shape: of a view, the same view of its base's gradient.
static attncl_value result(struct backward *b, attncl_value x)
{
    attncl_graph *g = b->g;
    const struct value v = g->values[x.id];
    attncl_value sum = attncl__arrivals_sum(&b->a, x.id);

    if (attncl__graph_failed(g))
        return ATTNCL_NONE_VALUE;
    if (sum.id == 0)
        return zeros_like(g, x.id);
    if (v.kind != VALUE_VIEW)
        return sum;
    if (!attncl__desc_contiguous(attncl__graph_desc(g, sum)))
        sum = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, &sum, 1);
    return attncl__graph_view(g, sum, &v.desc);
}

static attncl_status begin(struct backward *b, attncl_graph *g)
{
    const size_t n = (size_t)g->n_values;

    b->g = g;
    b->n_nodes = g->n_nodes;
    b->wanted = attncl__alloc_array(n, sizeof *b->wanted);
    b->reached = attncl__alloc_array(n, sizeof *b->reached);
    REQUIRE(b->wanted && b->reached, ATTNCL_ERR_NO_MEMORY, "gradients of %zu values", n);
    return attncl__arrivals_begin(&b->a, g);
}

void attncl_graph_gradient(attncl_graph *g, int n_y, const attncl_value *y, const attncl_value *dy,
                           int n_x, const attncl_value *x, attncl_value *dx)
{
    struct backward b = {0};

    for (int i = 0; i < n_x; ++i)
        dx[i] = ATTNCL_NONE_VALUE;
    if (!attncl__graph_building(g) || !check_call(g, n_y, y, dy, n_x, x))
        return;
    const attncl_status status = begin(&b, g);
    if (status != ATTNCL_OK) {
        attncl__graph_keep_failure(g, status);
        goto done;
    }
    mark(&b, n_y, y, n_x, x);
    for (int n = 0; n < b.n_nodes && !attncl__graph_failed(g); ++n)
        check_node(&b, n);
    seed(&b, n_y, y, dy);
    for (int n = b.n_nodes - 1; n >= 0 && !attncl__graph_failed(g); --n)
        step_back(&b, n);
    for (int i = 0; i < n_x && !attncl__graph_failed(g); ++i)
        dx[i] = result(&b, x[i]);
    for (int i = 0; i < n_x && attncl__graph_failed(g); ++i)
        dx[i] = ATTNCL_NONE_VALUE;
done:
    attncl__arrivals_free(&b.a);
    attncl__free(b.wanted);
    attncl__free(b.reached);
}
