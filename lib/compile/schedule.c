// SPDX-License-Identifier: MIT
//
// The schedule: which of several in-order queues each node goes to, and what it waits for.  In the order
// of execution a node goes to the queue whose last node it waits for, if there is one, else to the one
// with the fewest nodes.
//
// A node waits for the last writer of what it reads, and for the last writer and readers of what it
// writes.  Queues are in order, so one node of each queue is enough, and one that is complete when a
// node before it on its queue begins is not waited for again.  The nodes of a loop go to one queue, as
// one: a unit.

#include "compile/lowered.h"

// Last users of one piece of memory: a base value, or, [0], all weights.
struct memory_users {
    int writer;
    struct progress readers;
};

struct schedule {
    struct lowered *p;
    struct memory_users *users; // of each base value
    bool weights_written;
    struct progress tail[MAX_QUEUES]; // what is complete when what comes next on each queue begins
    int n_nodes[MAX_QUEUES];          // of each queue
};

static const struct progress nothing = {{-1, -1, -1, -1}};

int attncl__unit_last(const struct lowered *p, int node)
{
    return p->nodes[node].loop < 0 ? node : p->loops[p->nodes[node].loop].last;
}

static void advance(int *at, int node)
{
    *at = node > *at ? node : *at;
}

static void join(struct progress *at, const struct progress *other)
{
    for (int q = 0; q < MAX_QUEUES; ++q)
        advance(&at->node[q], other->node[q]);
}

// Two tensors of a graph may be one, so weights that the graph updates count as one memory.
static struct memory_users *memory_of(const struct schedule *s, int value)
{
    const int base = s->p->values[value].base;

    return &s->users[s->p->values[base].origin->kind == VALUE_TENSOR ? 0 : base];
}

static bool is_constant(const struct schedule *s, int value)
{
    const struct memory_users *m = memory_of(s, value);

    return m == &s->users[0] && !s->weights_written;
}

static void need_node(const struct schedule *s, int node, struct progress *need)
{
    if (node >= 0)
        advance(&need->node[s->p->nodes[node].queue], attncl__unit_last(s->p, node));
}

// What must be complete before the unit begins.
static struct progress needs(const struct schedule *s, int first, int last)
{
    struct progress need = nothing;

    for (int n = first; n <= last; ++n) {
        const struct lowered_node *node = &s->p->nodes[n];
        for (int i = 0; !node->dead && i < node->cls->n_in; ++i) {
            if (!node->inputs[i] || is_constant(s, node->inputs[i]))
                continue;
            const struct memory_users *m = memory_of(s, node->inputs[i]);
            need_node(s, m->writer, &need);
            if (node->cls->in[i].flags & STATE)
                join(&need, &m->readers);
        }
    }
    return need;
}

// The unit has its queue: it is the last user of its memory.
static void use(struct schedule *s, int first, int last)
{
    for (int n = first; n <= last; ++n) {
        const struct lowered_node *node = &s->p->nodes[n];
        for (int i = 0; !node->dead && i < node->cls->n_in; ++i) {
            if (!node->inputs[i])
                continue;
            struct memory_users *m = memory_of(s, node->inputs[i]);
            advance(&m->readers.node[node->queue], last);
            if (node->cls->in[i].flags & STATE)
                m->writer = n;
        }
        for (int i = 0; !node->dead && i < node->cls->n_out; ++i)
            if (node->outputs[i])
                memory_of(s, node->outputs[i])->writer = n;
    }
}

static int choose(const struct schedule *s, const struct progress *need)
{
    int best = 0;

    for (int q = 0; q < s->p->n_queues; ++q) {
        if (need->node[q] >= 0 && need->node[q] == s->tail[q].node[q])
            return q;
        if (s->n_nodes[q] < s->n_nodes[best])
            best = q;
    }
    return best;
}

static void schedule_unit(struct schedule *s, int first, int last)
{
    struct lowered *p = s->p;
    const struct progress need = needs(s, first, last);
    const int q = choose(s, &need);
    struct progress *tail = &s->tail[q];

    for (int other = 0; other < p->n_queues; ++other) {
        const int node = need.node[other];
        if (other == q || node <= tail->node[other])
            continue;
        if (p->nodes[node].signal < 0)
            p->nodes[node].signal = p->n_signals++;
        p->waits[first].node[other] = node;
        join(tail, &p->begun[node]);
        advance(&tail->node[other], node);
    }
    for (int n = first; n <= last; ++n) {
        p->nodes[n].queue = q;
        p->begun[n] = *tail;
    }
    s->n_nodes[q] += last - first + 1;
    advance(&tail->node[q], last);
    advance(&p->end.node[q], last);
    use(s, first, last);
}

// On each queue, nodes that begin after the users follow those that do not.
int attncl__schedule_last(const struct lowered *p, const struct progress *users)
{
    int last = -1, n_open = p->n_queues;
    bool open[MAX_QUEUES] = {true, true, true, true};

    for (int q = 0; q < p->n_queues; ++q)
        advance(&last, users->node[q]);
    for (int n = last + 1; n < p->n_nodes && n_open > 0; ++n) {
        const int queue = p->nodes[n].queue;
        bool after = true;
        if (p->nodes[n].dead || !open[queue])
            continue;
        for (int q = 0; q < p->n_queues; ++q)
            after &= q == queue || users->node[q] <= p->begun[n].node[q];
        open[queue] = !after;
        n_open -= after;
        last = after ? last : n;
    }
    return last;
}

attncl_status attncl__schedule(struct lowered *p)
{
    const size_t n_nodes = (size_t)p->n_nodes, n_values = (size_t)p->n_values;

    p->end = nothing;
    p->n_signals = 0;
    p->begun = p->waits = NULL;
    for (int n = 0; n < p->n_nodes; ++n) {
        p->nodes[n].signal = -1;
        p->nodes[n].queue = 0;
    }
    if (p->n_queues == 1)
        return ATTNCL_OK;
    struct schedule s = {.p = p, .users = attncl__lowered_alloc(p, n_values * sizeof *s.users)};
    p->begun = attncl__lowered_alloc(p, n_nodes * sizeof *p->begun);
    p->waits = attncl__lowered_alloc(p, n_nodes * sizeof *p->waits);
    REQUIRE(s.users && p->begun && p->waits, ATTNCL_ERR_NO_MEMORY, "schedule of %d nodes",
            p->n_nodes);
    for (int v = 0; v < p->n_values; ++v) {
        s.users[v] = (struct memory_users){-1, nothing};
        s.weights_written |= p->values[v].n_writes > 0 && p->values[v].origin->kind == VALUE_TENSOR;
    }
    for (int q = 0; q < MAX_QUEUES; ++q)
        s.tail[q] = nothing;
    for (int n = 0, last; n < p->n_nodes; n = last + 1) {
        last = attncl__unit_last(p, n);
        for (int i = n; i <= last; ++i)
            p->begun[i] = p->waits[i] = nothing;
        if (last > n || !p->nodes[n].dead)
            schedule_unit(&s, n, last);
    }
    return ATTNCL_OK;
}
