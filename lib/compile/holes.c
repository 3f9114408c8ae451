// SPDX-License-Identifier: MIT
//
// Free ranges in a treap: a search tree by offset, a heap by random priorities.  Each node knows the
// largest range below it, so that the lowest one that is large enough is found from the root.

#include "compile/holes.h"

#include "base/alloc.h"
#include "base/try.h"

struct hole {
    size_t offset, bytes;
    size_t largest;  // of this one and those below it
    int left, right; // of unused ones, left: the next
    unsigned priority;
};

attncl_status attncl__holes_begin(struct holes *h, size_t n, size_t end)
{
    *h = (struct holes){.random = 1};
    h->nodes = attncl__alloc_array(n + 2, sizeof *h->nodes); // one between any two, and [0]
    REQUIRE(h->nodes, ATTNCL_ERR_NO_MEMORY, "memory plan of %zu items", n);
    for (size_t i = 1; i <= n; ++i)
        h->nodes[i].left = (int)i + 1;
    h->unused = 1;
    attncl__holes_give(h, 0, end);
    return ATTNCL_OK;
}

void attncl__holes_free(struct holes *h)
{
    attncl__free(h->nodes);
    *h = (struct holes){0};
}

static void update(struct hole *nodes, int t)
{
    const size_t left = nodes[nodes[t].left].largest, right = nodes[nodes[t].right].largest;
    const size_t below = left > right ? left : right;

    nodes[t].largest = nodes[t].bytes > below ? nodes[t].bytes : below;
}

// One tree of two; all of `a` lies below all of `b`.
static int merge(struct hole *nodes, int a, int b)
{
    if (!a || !b)
        return a ? a : b;
    const bool a_above = nodes[a].priority > nodes[b].priority;
    if (a_above)
        nodes[a].right = merge(nodes, nodes[a].right, b);
    else
        nodes[b].left = merge(nodes, a, nodes[b].left);
    update(nodes, a_above ? a : b);
    return a_above ? a : b;
}

// Two trees of one: below `offset`, and from it on.
static void split(struct hole *nodes, int t, size_t offset, int *a, int *b)
{
    if (!t) {
        *a = *b = 0;
    } else if (nodes[t].offset < offset) {
        split(nodes, nodes[t].right, offset, &nodes[t].right, b);
        update(nodes, t);
        *a = t;
    } else {
        split(nodes, nodes[t].left, offset, a, &nodes[t].left);
        update(nodes, t);
        *b = t;
    }
}

static void discard(struct holes *h, int t)
{
    h->nodes[t] = (struct hole){.left = h->unused};
    h->unused = t;
}

// Takes from tree t, whose largest hole has the bytes; returns what is left of it.
static int take(struct holes *h, int t, size_t bytes, size_t *offset_ret)
{
    struct hole *node = &h->nodes[t];

    if (h->nodes[node->left].largest >= bytes) {
        node->left = take(h, node->left, bytes, offset_ret);
    } else if (node->bytes >= bytes) {
        *offset_ret = node->offset;
        node->offset += bytes;
        node->bytes -= bytes;
        if (node->bytes == 0) {
            const int rest = merge(h->nodes, node->left, node->right);
            discard(h, t);
            return rest;
        }
    } else {
        node->right = take(h, node->right, bytes, offset_ret);
    }
    update(h->nodes, t);
    return t;
}

bool attncl__holes_take(struct holes *h, size_t bytes, size_t *offset_ret)
{
    if (h->nodes[h->root].largest < bytes)
        return false;
    h->root = take(h, h->root, bytes, offset_ret);
    return true;
}

void attncl__holes_give(struct holes *h, size_t offset, size_t bytes)
{
    struct hole *nodes = h->nodes;
    int below, above, last, first;

    split(nodes, h->root, offset, &below, &above);
    for (last = below; last && nodes[last].right;)
        last = nodes[last].right;
    for (first = above; first && nodes[first].left;)
        first = nodes[first].left;
    if (last && nodes[last].offset + nodes[last].bytes == offset) {
        split(nodes, below, nodes[last].offset, &below, &last);
        offset = nodes[last].offset;
        bytes += nodes[last].bytes;
        discard(h, last);
    }
    if (first && offset + bytes == nodes[first].offset) {
        split(nodes, above, nodes[first].offset + 1, &first, &above);
        bytes += nodes[first].bytes;
        discard(h, first);
    }
    const int t = h->unused;
    h->unused = nodes[t].left;
    h->random = h->random * 1664525u + 1013904223u;
    nodes[t] =
        (struct hole){.offset = offset, .bytes = bytes, .largest = bytes, .priority = h->random};
    h->root = merge(nodes, merge(nodes, below, t), above);
}
