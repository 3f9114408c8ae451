// SPDX-License-Identifier: MIT
//
// Reverse mode for one node, by the gradient rules of its op, and for one custom-gradient region.

#include <string.h>

#include "autodiff/internal.h"

enum { MAX_RULES = 16 }; // of one op

bool attncl__backward_any_id(const struct backward *b, const bool *marks, int n, const int *ids)
{
    for (int i = 0; i < n; ++i)
        if (attncl__backward_is_marked(b, marks, ids[i]))
            return true;
    return false;
}

bool attncl__backward_any_value(const struct backward *b, const bool *marks, int n,
                                const attncl_value *values)
{
    for (int i = 0; i < n; ++i)
        if (attncl__backward_is_marked(b, marks, values[i].id))
            return true;
    return false;
}

static bool rule_applies(const struct grad_rule *rule, const struct op_sig *sig)
{
    return !rule->when || rule->when(sig);
}

static bool has_gradient(const struct op_class *cls, const struct op_sig *sig, int i)
{
    for (int r = 0; r < cls->n_grad; ++r)
        for (int k = 0; k < GRAD_MAX_OUT; ++k)
            if (cls->grad[r].out[k].kind == REF_KIND_DX && cls->grad[r].out[k].index == i &&
                rule_applies(&cls->grad[r], sig))
                return true;
    return false;
}

// The length of the op's name without "_fwd".
static int forward_name_length(const struct op_class *cls)
{
    const size_t n = strlen(cls->name);
    return (int)(n > 4 && strcmp(cls->name + n - 4, "_fwd") == 0 ? n - 4 : n);
}

void attncl__backward_check(const struct backward *b, int n)
{
    const struct node *node = &b->g->nodes[n];
    struct op_sig sig;

    if (node->region >= 0 ||
        !attncl__backward_any_id(b, b->requires_grad, node->cls->n_in, node->in) ||
        !attncl__backward_any_id(b, b->reaches_output, node->cls->n_out, node->out))
        return;
    attncl__graph_fill_sig(b->g, node, b->descs, &sig);
    const bool in_loop =
        node->loop >= 0 && !b->g->in_loop; // while a loop is open, all visited nodes are in it
    bool has_all = !in_loop;
    for (int i = 0; i < node->cls->n_in; ++i)
        if (attncl__backward_requires_grad(b, node->in[i]) && attncl__is_float(sig.in[i].dtype) &&
            !(node->cls->in[i].flags & SHAPE_ONLY))
            has_all = has_all && has_gradient(node->cls, &sig, i);
    if (!has_all)
        GRAPH_FAIL(b->g, ATTNCL_ERR_UNSUPPORTED, "%s%s%.*s has no gradient%s", node->scope,
                   node->scope[0] ? ": " : "", forward_name_length(node->cls), node->cls->name,
                   in_loop ? " in a loop" : "");
}

// The backward pass of one node.
struct node_grad {
    struct backward *b;
    int n;            // the node's index
    struct node node; // a copy: adding nodes moves them
    struct op_sig sig;
    attncl_value dy[GRAD_MAX_OUT];
    attncl_value temp[N_GRAD_TEMPS];
    unsigned temps_needed;
};

// True when a result of the rule is needed; marks the temporaries it reads.
static bool is_needed(struct node_grad *pass, const struct grad_rule *rule)
{
    bool needed = false;

    for (int k = 0; k < GRAD_MAX_OUT; ++k) {
        const struct grad_ref ref = rule->out[k];
        if (ref.kind == REF_KIND_DX)
            needed = needed || attncl__backward_requires_grad(pass->b, pass->node.in[ref.index]);
        if (ref.kind == REF_KIND_TEMP)
            needed = needed || (pass->temps_needed >> ref.index & 1);
    }
    needed = needed && rule_applies(rule, &pass->sig);
    for (int i = 0; needed && i < GRAD_MAX_IN; ++i)
        if (rule->in[i].kind == REF_KIND_TEMP)
            pass->temps_needed |= 1u << rule->in[i].index;
    return needed;
}

attncl_value attncl__backward_zeros(attncl_graph *g, int value)
{
    const struct tensor_desc *d = &g->values[value].desc;
    return attncl__graph_zeros(g, d->rank, d->dim);
}

// Returns the referenced value; the null value when it is absent or has no gradient.
static attncl_value resolve_ref(struct node_grad *pass, struct grad_ref ref)
{
    switch (ref.kind) {
    case REF_KIND_X:
        return attncl__graph_handle(pass->b->g, pass->node.in[ref.index]);
    case REF_KIND_Y:
        if (pass->node.cls->out[ref.index].flags & FOR_BACKWARD)
            attncl__graph_save_for_backward(pass->b->g, pass->n);
        if (!attncl__desc_present(&pass->b->g->values[pass->node.out[ref.index]].desc))
            return ATTNCL_NONE_VALUE;
        return attncl__graph_handle(pass->b->g, pass->node.out[ref.index]);
    case REF_KIND_DY:
        return pass->dy[ref.index];
    case REF_KIND_TEMP:
        return pass->temp[ref.index];
    default:
        return ATTNCL_NONE_VALUE;
    }
}

static bool has_incoming_grad(struct node_grad *pass, const struct grad_rule *rule)
{
    for (int i = 0; i < GRAD_MAX_IN; ++i)
        if ((rule->in[i].kind == REF_KIND_DY || rule->in[i].kind == REF_KIND_TEMP) &&
            resolve_ref(pass, rule->in[i]).id != 0)
            return true;
    return false;
}

static void accumulate(struct node_grad *pass, struct grad_ref ref, attncl_value gradient)
{
    if (ref.kind == REF_KIND_TEMP)
        pass->temp[ref.index] = gradient;
    else if (ref.kind == REF_KIND_DX &&
             attncl__backward_requires_grad(pass->b, pass->node.in[ref.index]))
        attncl__grad_accum_add(&pass->b->accum, pass->node.in[ref.index], gradient);
}

static void pass_through(struct node_grad *pass, const struct grad_rule *rule)
{
    attncl_graph *g = pass->b->g;
    attncl_value gradient = resolve_ref(pass, rule->in[0]);
    struct tensor_desc view;

    if (rule->part) {
        rule->part(&pass->sig, rule->out[0].index, &view);
        if (!attncl__desc_contiguous(attncl__graph_desc(g, gradient)))
            gradient = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, &gradient, 1);
        gradient = attncl__graph_view(g, gradient, &view);
    }
    accumulate(pass, rule->out[0], gradient);
}

static void apply_rule(struct node_grad *pass, const struct grad_rule *rule)
{
    attncl_graph *g = pass->b->g;
    attncl_value in[GRAD_MAX_IN] = {{0}};

    if (!has_incoming_grad(pass, rule))
        return;
    if (rule->op == OP_NONE) {
        pass_through(pass, rule);
        return;
    }
    const struct op_class *op = attncl__op_table[rule->op];
    for (int i = 0; i < op->n_in; ++i) {
        in[i] = resolve_ref(pass, rule->in[i]);
        if (in[i].id == 0 && rule->in[i].kind == REF_KIND_DY && !(op->in[i].flags & OPTIONAL))
            in[i] = attncl__backward_zeros(g, pass->node.out[rule->in[i].index]);
    }
    const attncl_value first =
        attncl__graph_add(g, op, rule->same_params ? pass->node.params : NULL, in, op->n_in);
    for (int k = 0; k < op->n_out; ++k)
        accumulate(pass, rule->out[k], attncl__graph_result(g, first, k));
}

// The new nodes get the scope of node n.
void attncl__backward_node(struct backward *b, int n)
{
    attncl_graph *g = b->g;
    struct node_grad pass = {.b = b, .n = n, .node = g->nodes[n]};
    const struct op_class *cls = pass.node.cls;
    bool needed[MAX_RULES], any = false;

    for (int i = 0; i < cls->n_out; ++i)
        any = any || attncl__grad_accum_has(&b->accum, pass.node.out[i]);
    if (!any || !attncl__backward_any_id(b, b->requires_grad, cls->n_in, pass.node.in))
        return;
    assert(cls->n_grad <= MAX_RULES && cls->n_out <= GRAD_MAX_OUT);
    attncl__graph_override_scope(g, pass.node.scope);
    attncl__graph_fill_sig(g, &pass.node, b->descs, &pass.sig);
    for (int i = 0; i < cls->n_out; ++i)
        pass.dy[i] = attncl__grad_accum_get(&b->accum, pass.node.out[i]);
    for (int r = cls->n_grad - 1; r >= 0; --r)
        needed[r] = is_needed(&pass, &cls->grad[r]);
    for (int r = 0; r < cls->n_grad && !attncl__graph_failed(g); ++r)
        if (needed[r])
            apply_rule(&pass, &cls->grad[r]);
    attncl__graph_override_scope(g, NULL);
}

void attncl__backward_region(struct backward *b, const struct grad_region *region)
{
    attncl_graph *g = b->g;
    bool any = false;

    for (int i = 0; i < region->n_out; ++i)
        any = any || (region->out[i].id && attncl__grad_accum_has(&b->accum, region->out[i].id));
    if (!any || !attncl__backward_any_value(b, b->requires_grad, region->n_in, region->in))
        return;
    attncl_value *dy = attncl__alloc_array((size_t)region->n_out, sizeof *dy);
    attncl_value *dx = attncl__alloc_array((size_t)region->n_in, sizeof *dx);
    bool *requires_grad = attncl__alloc_array((size_t)region->n_in, sizeof *requires_grad);
    if (!dy || !dx || !requires_grad) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "gradients of %d values", region->n_in);
        goto done;
    }
    for (int i = 0; i < region->n_out; ++i)
        dy[i] = region->out[i].id ? attncl__grad_accum_get(&b->accum, region->out[i].id)
                                  : ATTNCL_NONE_VALUE;
    for (int i = 0; i < region->n_in; ++i) {
        dx[i] = ATTNCL_NONE_VALUE;
        requires_grad[i] = attncl__backward_requires_grad(b, region->in[i].id);
    }
    region->backward(g, region, dy, requires_grad, dx);
    for (int i = 0; i < region->n_in && !attncl__graph_failed(g); ++i)
        if (requires_grad[i] && dx[i].id)
            attncl__grad_accum_add(&b->accum, region->in[i].id, dx[i]);
done:
    attncl__free(dy);
    attncl__free(dx);
    attncl__free(requires_grad);
}
