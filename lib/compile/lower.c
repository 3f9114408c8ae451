// SPDX-License-Identifier: MIT
//
// The lowered copy of a graph: its memory, edits that keep its links consistent, and lowering itself.  Views that an op
// cannot read were already copied when the graph was built, so nodes are lowered one by one.

#include <stdlib.h>

#include "base/alloc.h"
#include "compile/lowered.h"

enum { POOL_BLOCK_BYTES = 1 << 16 };

struct pool_block {
    struct pool_block *next;
    size_t used, capacity; // in units of max_align_t
    max_align_t data[];
};

void *attncl__lowered_alloc(struct lowered *p, size_t bytes)
{
    const size_t unit = sizeof(max_align_t), need = (bytes + unit - 1) / unit;

    if (!p->pool || p->pool->capacity - p->pool->used < need) {
        const size_t normal = POOL_BLOCK_BYTES / unit, capacity = need > normal ? need : normal;
        struct pool_block *block = attncl__alloc_zero(sizeof *block + capacity * unit);
        if (!block)
            return NULL;
        *block = (struct pool_block){.next = p->pool, .capacity = capacity};
        p->pool = block;
    }
    void *const memory = p->pool->data + p->pool->used;
    p->pool->used += need;
    return memory;
}

void attncl__lowered_free(struct lowered *p)
{
    for (struct pool_block *next; p->pool; p->pool = next) {
        next = p->pool->next;
        attncl__free(p->pool);
    }
    *p = (struct lowered){0};
}

attncl_status attncl__lowered_prefix_failure(const struct lowered_node *node, attncl_status status)
{
    return attncl__prefix_failure(status, "%s%s%s", node->scope, *node->scope ? ": " : "",
                                  node->cls->name);
}

void attncl__lowered_fill_class_sig(const struct lowered *p, const struct op_class *cls,
                                    const int *inputs, struct op_sig *sig)
{
    *sig = (struct op_sig){.caps = attncl__fit_get_caps(p->fit, cls, p->caps),
                           .cls = cls,
                           .n_in = cls->n_in,
                           .n_out = cls->n_out,
                           .in = p->descs,
                           .out = p->descs + cls->n_in};
    for (int i = 0; i < cls->n_in; ++i)
        sig->in[i] = *p->values[inputs[i]].desc;
    memset(sig->out, 0, (size_t)cls->n_out * sizeof *sig->out);
}

void attncl__lowered_fill_sig(const struct lowered *p, const struct lowered_node *node,
                              struct op_sig *sig)
{
    attncl__lowered_fill_class_sig(p, node->cls, node->inputs, sig);
    sig->params = node->params;
    sig->save_for_backward = node->save_for_backward;
    for (int i = 0; i < node->cls->n_out; ++i)
        sig->out[i] = *p->values[node->outputs[i]].desc;
}

static void unlink_inputs(struct lowered *p, struct lowered_node *node)
{
    for (int i = 0; i < node->cls->n_in; ++i) {
        struct use *use = &node->uses[i];
        struct lowered_value *base = &p->values[p->values[node->inputs[i]].base];
        if (!node->inputs[i])
            continue;
        *use->link = use->next;
        if (use->next)
            use->next->link = use->link;
        --base->n_uses;
        base->n_writes -= use->writes;
    }
}

static void link_inputs(struct lowered *p, int n)
{
    struct lowered_node *node = &p->nodes[n];

    for (int i = 0; i < node->cls->n_in; ++i) {
        struct use *use = &node->uses[i];
        struct lowered_value *base = &p->values[p->values[node->inputs[i]].base];
        if (!node->inputs[i])
            continue;
        *use = (struct use){.node = n,
                            .writes = node->cls->in[i].flags & STATE,
                            .next = base->first_use,
                            .link = &base->first_use};
        if (use->next)
            use->next->link = &use->next;
        base->first_use = use;
        ++base->n_uses;
        base->n_writes += use->writes;
    }
}

attncl_status attncl__lowered_replace(struct lowered *p, int n, const struct op_class *cls,
                                      const void *params, const int *inputs)
{
    struct lowered_node *node = &p->nodes[n];
    const int output = node->cls && node->cls->n_out ? node->outputs[0] : 0;
    int *const links =
        attncl__lowered_alloc(p, (size_t)(cls->n_in + cls->n_out) * sizeof *node->inputs);
    struct use *const uses = attncl__lowered_alloc(p, (size_t)cls->n_in * sizeof *uses);
    REQUIRE(links && uses, ATTNCL_ERR_NO_MEMORY, "node of %s", cls->name);

    if (node->cls)
        unlink_inputs(p, node);
    node->cls = cls;
    node->params = params;
    node->inputs = memcpy(links, inputs, (size_t)cls->n_in * sizeof *inputs);
    node->outputs = links + cls->n_in;
    if (cls->n_out)
        node->outputs[0] = output;
    node->uses = uses;
    link_inputs(p, n);
    return ATTNCL_OK;
}

void attncl__lowered_remove(struct lowered *p, int n)
{
    unlink_inputs(p, &p->nodes[n]);
    p->nodes[n].dead = true;
}

static void lower_value(const attncl_graph *g, struct lowered *p, int v)
{
    const struct value *origin = &g->values[v];

    p->values[v] = (struct lowered_value){
        .origin = origin,
        .desc = &origin->desc,
        .base = origin->base,
        .producer = origin->kind == VALUE_RESULT ? origin->node : -1,
        .is_output = origin->is_output,
    };
}

static attncl_status lower_node(const attncl_graph *g, struct lowered *p, int n)
{
    const struct node *origin = &g->nodes[n];
    struct lowered_node *node = &p->nodes[n];

    TRY(attncl__lowered_replace(p, n, origin->cls, origin->params, origin->in));
    memcpy(node->outputs, origin->out, (size_t)origin->cls->n_out * sizeof *node->outputs);
    node->scope = origin->scope;
    node->loop = origin->loop;
    node->save_for_backward = origin->save_for_backward;
    return ATTNCL_OK;
}

attncl_status attncl__lower(const attncl_graph *g, const struct fit *fit, struct lowered *p)
{
    *p = (struct lowered){
        .fit = fit,
        .canaries = g->canaries,
        .n_values = g->n_values,
        .n_nodes = g->n_nodes,
        .loops = g->loops,
        .inputs = &g->inputs,
        .outputs = &g->outputs,
    };
    struct device_caps *caps = attncl__lowered_alloc(p, sizeof *caps);
    REQUIRE(caps, ATTNCL_ERR_NO_MEMORY, "graph of %d nodes", g->n_nodes);
    *caps = g->ctx->caps;
    if (fit)
        attncl__caps_set_precision(caps, fit->precision);
    p->caps = caps;
    const char *queues = attncl__context_env(g->ctx, ENV_QUEUES);
    p->n_queues = fit && fit->n_queues ? fit->n_queues : queues ? atoi(queues) : 1;
    REQUIRE(p->n_queues >= 1 && p->n_queues <= MAX_QUEUES, ATTNCL_ERR_ARGUMENT,
            "ATTNCL_QUEUES is %.20s, it can be 1 to %d", queues, MAX_QUEUES);
    p->values = attncl__lowered_alloc(p, (size_t)g->n_values * sizeof *p->values);
    p->nodes = attncl__lowered_alloc(p, (size_t)g->n_nodes * sizeof *p->nodes);
    p->descs = attncl__lowered_alloc(p, attncl__op_max_arity() * sizeof *p->descs);
    p->spans = attncl__lowered_alloc(p, attncl__op_max_arity() * sizeof *p->spans);
    REQUIRE(p->values && p->nodes && p->descs && p->spans, ATTNCL_ERR_NO_MEMORY,
            "graph of %d nodes", g->n_nodes);

    for (int v = 0; v < g->n_values; ++v)
        lower_value(g, p, v);
    for (int n = 0; n < g->n_nodes; ++n)
        TRY(lower_node(g, p, n));
    return ATTNCL_OK;
}
