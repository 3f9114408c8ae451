// SPDX-License-Identifier: MIT
//
// The schedule: assigns each node to one of several in-order queues and lists what it waits for.  In
// execution order, a node goes to the queue whose last node it waits for, if there is one, else to the
// queue with the fewest nodes.
//
// A node waits for the last writer of its inputs, and also for the last readers of inputs that it
// writes.  Queues are in order, so waiting for one node of each queue is enough, and no wait is
// repeated on a queue.  A loop is one unit: all its nodes go to one queue.

#include "compile/lowered.h"

// The last users of a piece of memory.
struct memory_users {
    int writer;
    struct progress readers;
};

struct schedule {
    struct lowered *p;
    struct memory_users *users; // by base value; [0]: all weights
    bool weights_written;
    struct progress tail[MAX_QUEUES]; // by queue: what is complete when its next unit begins
    int n_nodes[MAX_QUEUES];          // by queue
};

static const struct progress nothing = {{-1, -1, -1, -1}};

int attncl__find_unit_end(const struct lowered *p, int node)
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

// Two tensors of a graph may be the same, so all weights count as one piece of memory.
static struct memory_users *get_memory_users(const struct schedule *schedule, int value)
{
    const int base = schedule->p->values[value].base;

    return &schedule->users[schedule->p->values[base].origin->kind == VALUE_TENSOR ? 0 : base];
}

static bool is_constant(const struct schedule *schedule, int value)
{
    const struct memory_users *users = get_memory_users(schedule, value);

    return users == &schedule->users[0] && !schedule->weights_written;
}

static void add_dependency(const struct schedule *schedule, int node, struct progress *need)
{
    if (node >= 0)
        advance(&need->node[schedule->p->nodes[node].queue],
                attncl__find_unit_end(schedule->p, node));
}

static struct progress find_dependencies(const struct schedule *schedule, int first, int last)
{
    struct progress need = nothing;

    for (int n = first; n <= last; ++n) {
        const struct lowered_node *node = &schedule->p->nodes[n];
        for (int i = 0; !node->dead && i < node->cls->n_in; ++i) {
            if (!node->inputs[i] || is_constant(schedule, node->inputs[i]))
                continue;
            const struct memory_users *users = get_memory_users(schedule, node->inputs[i]);
            add_dependency(schedule, users->writer, &need);
            if (node->cls->in[i].flags & STATE)
                join(&need, &users->readers);
        }
    }
    return need;
}

// Makes the unit the last user of its memory.
static void record_uses(struct schedule *schedule, int first, int last)
{
    for (int n = first; n <= last; ++n) {
        const struct lowered_node *node = &schedule->p->nodes[n];
        for (int i = 0; !node->dead && i < node->cls->n_in; ++i) {
            if (!node->inputs[i])
                continue;
            struct memory_users *users = get_memory_users(schedule, node->inputs[i]);
            advance(&users->readers.node[node->queue], last);
            if (node->cls->in[i].flags & STATE)
                users->writer = n;
        }
        for (int i = 0; !node->dead && i < node->cls->n_out; ++i)
            if (node->outputs[i])
                get_memory_users(schedule, node->outputs[i])->writer = n;
    }
}

static int choose_queue(const struct schedule *schedule, const struct progress *need)
{
    int best = 0;

    for (int q = 0; q < schedule->p->n_queues; ++q) {
        if (need->node[q] >= 0 && need->node[q] == schedule->tail[q].node[q])
            return q;
        if (schedule->n_nodes[q] < schedule->n_nodes[best])
            best = q;
    }
    return best;
}

static void schedule_unit(struct schedule *schedule, int first, int last)
{
    struct lowered *p = schedule->p;
    const struct progress need = find_dependencies(schedule, first, last);
    const int q = choose_queue(schedule, &need);
    struct progress *tail = &schedule->tail[q];

    for (int other = 0; other < p->n_queues; ++other) {
        const int node = need.node[other];
        if (other == q || node <= tail->node[other])
            continue;
        if (p->nodes[node].signal < 0)
            p->nodes[node].signal = p->n_signals++;
        p->waits[first].node[other] = node;
        join(tail, &p->complete[node]);
        advance(&tail->node[other], node);
    }
    for (int n = first; n <= last; ++n) {
        p->nodes[n].queue = q;
        p->complete[n] = *tail;
    }
    schedule->n_nodes[q] += last - first + 1;
    advance(&tail->node[q], last);
    advance(&p->end.node[q], last);
    record_uses(schedule, first, last);
}

// On each queue, the nodes that wait for all users follow those that do not.
int attncl__find_last_concurrent(const struct lowered *p, const struct progress *users)
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
            after &= q == queue || users->node[q] <= p->complete[n].node[q];
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
    p->complete = p->waits = NULL;
    for (int n = 0; n < p->n_nodes; ++n) {
        p->nodes[n].signal = -1;
        p->nodes[n].queue = 0;
    }
    if (p->n_queues == 1)
        return ATTNCL_OK;
    struct schedule schedule = {
        .p = p, .users = attncl__lowered_alloc(p, n_values * sizeof *schedule.users)};
    p->complete = attncl__lowered_alloc(p, n_nodes * sizeof *p->complete);
    p->waits = attncl__lowered_alloc(p, n_nodes * sizeof *p->waits);
    REQUIRE(schedule.users && p->complete && p->waits, ATTNCL_ERR_NO_MEMORY, "schedule of %d nodes",
            p->n_nodes);
    for (int v = 0; v < p->n_values; ++v) {
        schedule.users[v] = (struct memory_users){-1, nothing};
        schedule.weights_written |=
            p->values[v].n_writes > 0 && p->values[v].origin->kind == VALUE_TENSOR;
    }
    for (int q = 0; q < MAX_QUEUES; ++q)
        schedule.tail[q] = nothing;
    for (int n = 0, last; n < p->n_nodes; n = last + 1) {
        last = attncl__find_unit_end(p, n);
        for (int i = n; i <= last; ++i)
            p->complete[i] = p->waits[i] = nothing;
        if (last > n || !p->nodes[n].dead)
            schedule_unit(&schedule, n, last);
    }
    return ATTNCL_OK;
}
