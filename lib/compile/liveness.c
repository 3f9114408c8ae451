// SPDX-License-Identifier: MIT
//
// Liveness: scratch sizes, the lifetime of each value, and the items of the arena.

#include <stdlib.h>

#include "base/ckd.h"
#include "compile/lowered.h"
#include "compile/program.h"

// *max_items_ret: an upper bound of the arena's items, the results and scratch of live nodes.
static attncl_status query_scratch(struct lowered *p, size_t *max_items_ret)
{
    *max_items_ret = 0;
    for (int n = 0; n < p->n_nodes; ++n) {
        struct lowered_node *node = &p->nodes[n];
        struct op_sig sig;
        if (!node->dead)
            *max_items_ret += (size_t)node->cls->n_out + (node->cls->scratch != NULL);
        if (node->dead || !node->cls->scratch)
            continue;
        attncl__lowered_fill_sig(p, node, &sig);
        const attncl_status status =
            attncl__lowered_prefix_failure(node, node->cls->scratch(&sig, &node->scratch_bytes));
        if (status == ATTNCL_ERR_UNSUPPORTED)
            p->refused = (struct refused_op){node->cls, {.refused = true}};
        TRY(status);
    }
    return ATTNCL_OK;
}

static const struct loop *loop_of(const struct lowered *p, int node)
{
    return p->nodes[node].loop < 0 ? NULL : &p->loops[p->nodes[node].loop];
}

// A value computed before a loop that reads it lives to the loop's end: the next iteration reads it
// again.
static int last_use(const struct lowered *p, int value, int producer)
{
    int last = producer;

    for (const struct use *use = p->values[value].first_use; use; use = use->next) {
        const struct loop *loop = loop_of(p, use->node);
        const int end = loop && producer < loop->first ? loop->last : use->node;
        last = end > last ? end : last;
    }
    return last;
}

// With several queues, memory is in use until only nodes remain that run after its last users.
static int find_last_use_on_queues(const struct lowered *p, int value, int producer, int last)
{
    struct progress users = {{-1, -1, -1, -1}};

    if (p->n_queues == 1)
        return last;
    users.node[p->nodes[producer].queue] = attncl__find_unit_end(p, producer);
    for (const struct use *use = value ? p->values[value].first_use : NULL; use; use = use->next) {
        const int end = attncl__find_unit_end(p, use->node);
        int *at = &users.node[p->nodes[use->node].queue];
        *at = end > *at ? end : *at;
    }
    const int free_after = attncl__find_last_concurrent(p, &users);
    return free_after > last ? free_after : last;
}

// A value computed in a loop and read after it may have parts that earlier iterations wrote.
static int find_first_use(const struct lowered *p, int node, int last)
{
    const struct loop *loop = loop_of(p, node);
    return loop && last > loop->last ? loop->first : node;
}

// One item per value or scratch in the arena, with its first and last node.
static void list_items(struct lowered *p)
{
    for (int n = 0; n < p->n_nodes; ++n) {
        const struct lowered_node *node = &p->nodes[n];
        for (int i = 0; !node->dead && i < node->cls->n_out; ++i) {
            const int value = node->outputs[i];
            if (!value || p->values[value].is_output)
                continue;
            const int last = last_use(p, value, n);
            p->items[p->n_items++] =
                (struct plan_item){.first = find_first_use(p, n, last),
                                   .last = find_last_use_on_queues(p, value, n, last),
                                   .value = value,
                                   .node = n,
                                   .content_bytes = attncl__desc_bytes(p->values[value].desc)};
        }
        if (!node->dead && node->scratch_bytes)
            p->items[p->n_items++] = (struct plan_item){.first = n,
                                                        .last = find_last_use_on_queues(p, 0, n, n),
                                                        .node = n,
                                                        .content_bytes = node->scratch_bytes};
    }
}

// Sets the items' final sizes.  With canaries, each item has one on both sides and the arena is not
// reused, so that a canary keeps its value.
static attncl_status size_items(struct lowered *p)
{
    for (size_t i = 0; i < p->n_items; ++i) {
        struct plan_item *item = &p->items[i];
        size_t bytes = item->content_bytes;
        if (p->canaries) {
            item->first = 0;
            item->last = p->n_nodes;
            REQUIRE(ckd_add_size(bytes, 2 * canary_pad(p->caps), &bytes), ATTNCL_ERR_DEVICE_MEMORY,
                    "a value of %zu bytes", item->content_bytes);
        }
        REQUIRE(ckd_round_up(bytes, p->caps->align_bytes, &item->bytes), ATTNCL_ERR_DEVICE_MEMORY,
                "a value of %zu bytes", item->content_bytes);
    }
    return ATTNCL_OK;
}

// *peak_ret: the largest sum of live values at one node.
static attncl_status compute_peak_live_bytes(struct lowered *p, size_t *peak_ret)
{
    const size_t n_steps = (size_t)p->n_nodes + 2; // with canaries the last step is n_nodes
    size_t *const change = attncl__lowered_alloc(p, n_steps * sizeof *change); // modulo 2^64
    size_t live = 0;
    REQUIRE(change, ATTNCL_ERR_NO_MEMORY, "lifetimes of %d nodes", p->n_nodes);

    for (size_t i = 0; i < p->n_items; ++i)
        if (p->items[i].value) {
            change[p->items[i].first] += p->items[i].bytes;
            change[p->items[i].last + 1] -= p->items[i].bytes;
        }
    for (int step = 0; step < p->n_nodes; ++step) {
        live += change[step];
        *peak_ret = live > *peak_ret ? live : *peak_ret;
    }
    return ATTNCL_OK;
}

// Sums the tensors and constants; one that was added several times counts once.
static attncl_status sum_weights_bytes(struct lowered *p, size_t *bytes_ret)
{
    const size_t max = (size_t)p->n_values;
    const struct value **list = attncl__lowered_alloc(p, max * sizeof *list);
    size_t n = 0;
    REQUIRE(list, ATTNCL_ERR_NO_MEMORY, "memory of %d values", p->n_values);

    for (int i = 1; i < p->n_values; ++i)
        if (p->values[i].origin->kind == VALUE_TENSOR)
            list[n++] = p->values[i].origin;
    qsort(list, n, sizeof *list, attncl__compare_by_tensor);
    for (size_t i = 0; i < n; ++i)
        if (i == 0 || list[i]->tensor != list[i - 1]->tensor)
            *bytes_ret += attncl__desc_bytes(&list[i]->desc);
    return ATTNCL_OK;
}

static attncl_status fill_report(struct lowered *p)
{
    attncl_memory_report *r = &p->report;

    TRY(sum_weights_bytes(p, &r->weights_bytes));
    for (int i = 1; i < p->n_values; ++i) {
        const struct value *v = p->values[i].origin;
        const size_t bytes = attncl__desc_bytes(p->values[i].desc);
        if (v->kind == VALUE_STATE)
            r->state_bytes += bytes;
        else if (v->kind == VALUE_INPUT || (v->kind == VALUE_RESULT && v->is_output))
            r->io_bytes += bytes;
    }
    for (size_t i = 0; i < p->n_items; ++i) {
        r->unshared_bytes += p->items[i].bytes;
        if (!p->items[i].value && p->items[i].content_bytes > r->scratch_bytes)
            r->scratch_bytes = p->items[i].content_bytes;
    }
    return compute_peak_live_bytes(p, &r->activations_bytes);
}

attncl_status attncl__find_lifetimes(struct lowered *p)
{
    size_t max_items;

    TRY(query_scratch(p, &max_items));
    p->items = attncl__lowered_alloc(p, max_items * sizeof *p->items);
    REQUIRE(p->items, ATTNCL_ERR_NO_MEMORY, "memory plan of %zu items", max_items);
    list_items(p);
    TRY(size_items(p));
    return fill_report(p);
}
