// SPDX-License-Identifier: MIT
//
// Liveness: which nodes are live, the lifetime of each value, the contents of the arena.  Host data
// only.

#include <string.h>

#include "base/alloc.h"
#include "base/ckd.h"
#include "base/struct.h"
#include "compile/memory_plan.h"
#include "graph/internal.h"

// A node is live when an output or a state depends on it.  Nodes are in topological order, so one
// backward traversal is enough.
static attncl_status mark_live(attncl_graph *g)
{
    bool *needed = attncl__alloc_array((size_t)g->n_values, sizeof *needed);
    REQUIRE(needed, ATTNCL_ERR_NO_MEMORY, "graph of %d values", g->n_values);

    for (int i = 0; i < g->n_outputs; ++i)
        needed[g->values[g->outputs[i].value].base] = true;
    for (int n = g->n_nodes - 1; n >= 0; --n) {
        struct node *node = &g->nodes[n];
        node->live = node->cls->state != 0;
        for (int i = 0; i < node->cls->n_out; ++i)
            node->live |= needed[node->out[i]];
        if (!node->live)
            continue;
        for (int i = 0; i < node->cls->n_in; ++i)
            needed[g->values[node->in[i]].base] = true;
    }
    attncl__free(needed);
    return ATTNCL_OK;
}

void attncl__graph_sig_inputs(const attncl_graph *g, const int in[OP_MAX_IN], struct op_sig *sig)
{
    for (int i = 0; i < sig->n_in; ++i)
        if (in[i])
            sig->in[i] = g->values[in[i]].desc;
}

void attncl__graph_sig(const attncl_graph *g, const struct node *node, struct op_sig *sig)
{
    *sig = (struct op_sig){.caps = &g->ctx->caps,
                           .params = node->params,
                           .n_in = node->cls->n_in,
                           .save_for_backward = node->save_for_backward};
    attncl__graph_sig_inputs(g, node->in, sig);
    for (int i = 0; i < node->cls->n_out; ++i)
        sig->out[i] = g->values[node->out[i]].desc;
}

static attncl_status query_scratch(attncl_graph *g)
{
    for (int n = 0; n < g->n_nodes; ++n) {
        struct node *node = &g->nodes[n];
        struct op_sig sig;
        node->scratch_bytes = 0;
        if (!node->live || !node->cls->scratch)
            continue;
        attncl__graph_sig(g, node, &sig);
        const attncl_status status = node->cls->scratch(&sig, &node->scratch_bytes);
        if (status != ATTNCL_OK) {
            attncl__graph_prefix(node);
            return status;
        }
    }
    return ATTNCL_OK;
}

// A value computed in a loop and used after it: earlier iterations may have written parts of it.
static int first_use(const attncl_graph *g, int node, int last)
{
    const struct loop *loop = attncl__graph_loop_of(g, node);
    return loop && last > loop->last ? loop->first : node;
}

// One item per value or scratch in the arena, with its first and last node.
static size_t list_items(const attncl_graph *g, const int *last_use, struct placement *placements,
                         struct plan_item *items)
{
    size_t n_items = 0;

    for (int n = 0; n < g->n_nodes; ++n) {
        const struct node *node = &g->nodes[n];
        if (!node->live)
            continue;
        for (int i = 0; i < node->cls->n_out; ++i) {
            const struct value *v = &g->values[node->out[i]];
            if (!node->out[i] || v->is_output)
                continue;
            const int last = last_use[node->out[i]] > n ? last_use[node->out[i]] : n;
            placements[n_items] = (struct placement){
                .value = node->out[i], .node = -1, .bytes = attncl__desc_bytes(&v->desc)};
            items[n_items++] = (struct plan_item){.first = first_use(g, n, last), .last = last};
        }
        if (node->scratch_bytes) {
            placements[n_items] =
                (struct placement){.value = -1, .node = n, .bytes = node->scratch_bytes};
            items[n_items++] = (struct plan_item){.first = n, .last = n};
        }
    }
    return n_items;
}

// A value from outside that a loop reads lives to the loop's end: the next iteration reads it
// again.
static void find_last_uses(const attncl_graph *g, int *last_use)
{
    for (int n = 0; n < g->n_nodes; ++n) {
        const struct loop *loop = attncl__graph_loop_of(g, n);
        for (int i = 0; g->nodes[n].live && i < g->nodes[n].cls->n_in; ++i) {
            const int base = g->values[g->nodes[n].in[i]].base;
            const bool outside = loop && g->values[base].node < loop->first;
            last_use[base] = outside ? loop->last : n;
        }
    }
}

// Everything but the arena.
static void report_fixed(const attncl_graph *g, attncl_memory_report *r)
{
    for (int i = 1; i < g->n_values; ++i) {
        const struct value *v = &g->values[i];
        const size_t bytes = attncl__desc_bytes(&v->desc);
        if (v->kind == VALUE_TENSOR)
            r->weights_bytes += bytes;
        else if (v->kind == VALUE_STATE)
            r->state_bytes += bytes;
        else if (v->kind == VALUE_INPUT || (v->kind == VALUE_RESULT && v->is_output))
            r->io_bytes += bytes;
    }
}

// The largest sum of live values at one node: a lower bound for every plan.
static size_t peak_live_bytes(const struct plan_item *items, const struct placement *placements,
                              size_t n, int n_nodes)
{
    size_t peak = 0;
    for (int step = 0; step < n_nodes; ++step) {
        size_t sum = 0;
        for (size_t i = 0; i < n; ++i)
            if (placements[i].value >= 0 && items[i].first <= step && step <= items[i].last)
                sum += items[i].bytes;
        if (sum > peak)
            peak = sum;
    }
    return peak;
}

// Sets the items' final sizes.  With canaries, each item has one on both sides and the arena is not
// reused, so that a canary keeps its value.
static attncl_status size_items(const attncl_graph *g, struct plan_item *items,
                                struct placement *placements, size_t n, size_t align)
{
    for (size_t i = 0; i < n; ++i) {
        size_t bytes = placements[i].bytes;
        if (g->canaries) {
            items[i].first = 0;
            items[i].last = g->n_nodes;
            REQUIRE(ckd_add_size(bytes, 2 * CANARY_BYTES, &bytes), ATTNCL_ERR_DEVICE_MEMORY,
                    "a value of %zu bytes", placements[i].bytes);
        }
        REQUIRE(ckd_round_up(bytes, align, &items[i].bytes), ATTNCL_ERR_DEVICE_MEMORY,
                "a value of %zu bytes", placements[i].bytes);
    }
    return ATTNCL_OK;
}

static attncl_status plan_arena(attncl_graph *g, attncl_memory_report *r)
{
    attncl_status status = ATTNCL_OK;
    const size_t max_items = (size_t)g->n_values + (size_t)g->n_nodes;
    struct placement *placements = attncl__alloc_array(max_items, sizeof *placements);
    struct plan_item *items = attncl__alloc_array(max_items, sizeof *items);
    int *last_use = attncl__alloc_array((size_t)g->n_values, sizeof *last_use);
    if (!placements || !items || !last_use) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "memory plan of %zu items", max_items);
        goto done;
    }
    find_last_uses(g, last_use);
    const size_t n = list_items(g, last_use, placements, items);
    const size_t align = g->ctx->caps.align_bytes;
    TRY_DONE(size_items(g, items, placements, n, align));
    TRY_DONE(attncl__memory_plan(items, n, align, &r->arena_bytes));

    for (size_t i = 0; i < n; ++i) {
        placements[i].offset = items[i].offset + (g->canaries ? CANARY_BYTES : 0);
        r->unshared_bytes += items[i].bytes;
        if (placements[i].node >= 0 && placements[i].bytes > r->scratch_bytes)
            r->scratch_bytes = placements[i].bytes;
    }
    r->activations_bytes = peak_live_bytes(items, placements, n, g->n_nodes);
    attncl__free(g->placements);
    g->placements = placements;
    g->n_placements = n;
    placements = NULL;
done:
    attncl__free(last_use);
    attncl__free(items);
    attncl__free(placements);
    return status;
}

attncl_status attncl__graph_plan(attncl_graph *g)
{
    attncl_memory_report report = {0};

    if (g->planned)
        return ATTNCL_OK;
    attncl__graph_restore(g);
    TRY(mark_live(g));
    TRY(attncl__graph_merge(g));
    TRY(attncl__graph_rewrite(g));
    TRY(query_scratch(g));
    report_fixed(g, &report);
    TRY(plan_arena(g, &report));
    g->report = report;
    g->planned = true;
    return ATTNCL_OK;
}

attncl_status attncl_graph_memory(attncl_graph *g, attncl_memory_report *report_ret)
{
    REQUIRE(g && report_ret, ATTNCL_ERR_ARGUMENT, "graph or report_ret is NULL");
    TRY(attncl_graph_status(g));
    TRY(attncl__graph_plan(g));
    return STRUCT_WRITE(attncl_memory_report, report_ret, &g->report);
}
