// SPDX-License-Identifier: MIT
//
// Merges a word's symbols: of all neighbours that have a rule, the pair of the lowest rank first, the leftmost of equal
// rank.  O(n log n) by a heap over a linked list.

#include "base/alloc.h"
#include "base/try.h"
#include "tokenizer/tokenizer.h"

static const uint64_t free_pair = UINT64_MAX;

attncl_status attncl__ids_append(struct id_list *ids, int32_t id)
{
    REQUIRE(GROW_LIST(ids->id, ids->n, ids->capacity), ATTNCL_ERR_NO_MEMORY, "%zu tokens", ids->n);
    ids->id[ids->n++] = id;
    return ATTNCL_OK;
}

static struct merge_rule *find_rule(const struct bpe *bpe, int32_t left, int32_t right)
{
    const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    const uint64_t hash = pair * UINT64_C(0x9e3779b97f4a7c15);

    for (size_t i = (size_t)(hash >> 32);; ++i) {
        struct merge_rule *rule = &bpe->rules[i & (bpe->rules_capacity - 1)];
        if (rule->pair == pair || rule->pair == free_pair)
            return rule;
    }
}

size_t attncl__choose_table_capacity(size_t n)
{
    size_t capacity = 256;

    while (capacity < 2 * n)
        capacity *= 2;
    return capacity;
}

attncl_status attncl__rules_reserve(struct bpe *bpe, size_t n)
{
    const size_t capacity = attncl__choose_table_capacity(n);

    bpe->rules = attncl__alloc_array(capacity, sizeof *bpe->rules);
    REQUIRE(bpe->rules, ATTNCL_ERR_NO_MEMORY, "%zu merges", n);
    for (size_t i = 0; i < capacity; ++i)
        bpe->rules[i].pair = free_pair;
    bpe->rules_capacity = capacity;
    return ATTNCL_OK;
}

void attncl__rule_set(struct bpe *bpe, int32_t left, int32_t right, struct merge_rule rule)
{
    rule.pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    *find_rule(bpe, left, right) = rule;
}

static void push(struct bpe *bpe, struct merge merge)
{
    struct merge *heap = bpe->heap;
    size_t at = bpe->n_heap++;

    for (; at > 0 && merge.order < heap[(at - 1) / 2].order; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = merge;
}

static struct merge pop(struct bpe *bpe)
{
    struct merge *heap = bpe->heap;
    const struct merge first = heap[0], last = heap[--bpe->n_heap];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < bpe->n_heap; at = child) {
        if (child + 1 < bpe->n_heap && heap[child + 1].order < heap[child].order)
            ++child;
        if (last.order <= heap[child].order)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

// Adds a merge of the symbol at `at` and the next one to the heap, if they have a rule.
static void push_merge(struct bpe *bpe, int32_t at)
{
    const struct symbol *left = &bpe->symbol[at];

    if (left->next < 0)
        return;
    const struct merge_rule *rule = find_rule(bpe, left->id, bpe->symbol[left->next].id);
    if (rule->pair != free_pair)
        push(bpe, (struct merge){(uint64_t)rule->rank << 32 | (uint32_t)at, rule->id});
}

static void merge_all(struct bpe *bpe)
{
    struct symbol *symbol = bpe->symbol;

    while (bpe->n_heap > 0) {
        const struct merge merge = pop(bpe);
        const int32_t at = (int32_t)(merge.order & UINT32_MAX);
        struct symbol *left = &symbol[at];
        if (left->is_gone || left->next < 0)
            continue;
        struct symbol *right = &symbol[left->next];
        const struct merge_rule *rule = find_rule(bpe, left->id, right->id);
        // As in `tokenizers`, neighbours that changed meanwhile are still merged if that gives the same token.
        if (rule->pair == free_pair || rule->id != merge.id)
            continue;
        left->id = merge.id;
        left->next = right->next;
        right->is_gone = true;
        if (left->next >= 0)
            symbol[left->next].prev = at;
        if (left->prev >= 0)
            push_merge(bpe, left->prev);
        push_merge(bpe, at);
    }
}

attncl_status attncl__bpe_merge(struct bpe *bpe, size_t n, struct id_list *ids)
{
    // Each merge removes a symbol and adds at most two merges.
    if (3 * n > bpe->heap_capacity) {
        void *grown = attncl__grow_array(bpe->heap, 6 * n, sizeof *bpe->heap);
        REQUIRE(grown, ATTNCL_ERR_NO_MEMORY, "a word of %zu symbols", n);
        bpe->heap = grown;
        bpe->heap_capacity = 6 * n;
    }
    for (size_t i = 0; i < n; ++i) {
        bpe->symbol[i].prev = (int32_t)i - 1;
        bpe->symbol[i].next = i + 1 < n ? (int32_t)i + 1 : -1;
        bpe->symbol[i].is_gone = false;
    }
    bpe->n_heap = 0;
    for (size_t i = 0; i < n; ++i)
        push_merge(bpe, (int32_t)i);
    merge_all(bpe);
    for (int32_t at = n > 0 ? 0 : -1; at >= 0; at = bpe->symbol[at].next)
        TRY(attncl__ids_append(ids, bpe->symbol[at].id));
    return ATTNCL_OK;
}
