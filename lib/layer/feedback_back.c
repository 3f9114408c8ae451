// SPDX-License-Identifier: MIT
//
// Back through the steps of a feedback transformer, last step first.
//
// The cache still holds every key and value, so a step needs nothing else of the forward run: it is
// made again from its row of x, and gone back through.  What later steps read of its memory has
// gathered in a cache of gradients by then; what it reads of earlier ones it adds there.  The
// parameters' gradients are summed over the steps.  One step is one set of nodes here too.

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "base/alloc.h"
#include "layer/feedback_parts.h"

// The block's context; the layers follow.
struct context {
    struct feedback_steps steps; // p is set when it is used
    attncl_feedback_transformer_params p;
    int64_t n_steps;
    attncl_feedback_layer_params layers[];
};

enum { OF_LAYER = 19, OF_MODEL = 3 }; // most values of a layer, and of the model beside them

static int add_given(attncl_value **list, int n, attncl_value *const *values, int n_values)
{
    for (int i = 0; i < n_values; ++i)
        if (attncl__given(*values[i]))
            list[n++] = values[i];
    return n;
}

// Where the values of the parameters that a step reads are; their number.
static int list_values(struct context *c, attncl_value **list)
{
    attncl_value *const model[OF_MODEL] = {&c->p.weights, &c->p.key_value_weight,
                                           &c->p.key_value_bias};
    const bool own = !attncl__given(c->p.key_value_weight);
    int n = add_given(list, 0, model, OF_MODEL);

    for (int64_t k = 0; k < c->p.n_layers; ++k) {
        attncl_feedback_layer_params *p = &c->layers[k];
        attncl_value *const memory[] = {&p->attn.key_weight, &p->attn.value_weight,
                                        &p->attn.value_bias};
        attncl_value *const layer[] = {
            &p->norm_attn_weight,    &p->norm_attn_bias,    &p->attn.query_weight,
            &p->attn.output_weight,  &p->attn.output_bias,  &p->attn.key_pos_embeddings,
            &p->attn.query_pos_bias, &p->attn.key_pos_bias, &p->norm_ffn_weight,
            &p->norm_ffn_bias,       &p->ffn.layer1_weight, &p->ffn.layer1_bias,
            &p->ffn.gate_weight,     &p->ffn.gate_bias,     &p->ffn.layer2_weight,
            &p->ffn.layer2_bias,
        };
        n = add_given(list, n, layer, (int)(sizeof layer / sizeof layer[0]));
        if (own)
            n = add_given(list, n, memory, (int)(sizeof memory / sizeof memory[0]));
    }
    return n;
}

static int most_values(int64_t n_layers)
{
    return 1 + OF_MODEL + OF_LAYER * (int)n_layers; // x first
}

// A way back that is built: a copy of the context, and lists of what the steps read.
struct back {
    struct context *c;
    attncl_value **list; // in the copy
    int n;
    attncl_value *whole;           // what stands in the block, before tables were cut
    attncl_value *inner, *inner_d; // what a step reads, wanted ones only; their gradients
    int *index;                    // of an inner value, in the list; -1: x
    int n_inner;
};

static void free_back(struct back *b)
{
    attncl__free(b->c);
    attncl__free(b->list);
    attncl__free(b->whole);
    attncl__free(b->inner);
    attncl__free(b->inner_d);
    attncl__free(b->index);
}

static attncl_status make_back(const struct context *given, struct back *b)
{
    const size_t most = (size_t)most_values(given->p.n_layers);
    const size_t layers = (size_t)given->p.n_layers * sizeof given->layers[0];

    *b = (struct back){
        .c = (struct context *)(void *)attncl__copy_bytes(given, sizeof *given + layers),
        .list = attncl__alloc_array(most, sizeof *b->list),
        .whole = attncl__alloc_array(most, sizeof *b->whole),
        .inner = attncl__alloc_array(most, sizeof *b->inner),
        .inner_d = attncl__alloc_array(most, sizeof *b->inner_d),
        .index = attncl__alloc_array(most, sizeof *b->index),
    };
    REQUIRE(b->c && b->list && b->whole && b->inner && b->inner_d && b->index, ATTNCL_ERR_NO_MEMORY,
            "gradients of %zu values", most);
    b->c->p.layers = b->c->layers;
    b->c->steps.p = &b->c->p;
    b->n = list_values(b->c, b->list);
    for (int i = 0; i < b->n; ++i)
        b->whole[i] = *b->list[i];
    return ATTNCL_OK;
}

// The last n_memories rows, which are all a sequence reads: a table's gradient is made in every
// step.
static void cut_table(attncl_graph *g, attncl_value *table, int64_t n_memories)
{
    struct tensor_desc d;
    if (!attncl__given(*table) || !attncl__layer_shape(g, *table, "key_pos_embeddings", &d) ||
        d.dim[0] <= n_memories)
        return;
    const attncl_value rows = attncl_slice(g, *table, 0, d.dim[0] - n_memories, d.dim[0]);
    *table = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, IN(rows));
}

static void cut_tables(attncl_graph *g, struct context *c)
{
    const int64_t n_memories = c->n_steps > 1 ? c->n_steps - 1 : 1;
    for (int64_t k = 0; k < c->p.n_layers; ++k) {
        cut_table(g, &c->layers[k].attn.key_pos_embeddings, n_memories);
        cut_table(g, &c->layers[k].attn.key_pos_bias, n_memories);
    }
}

static bool is_listed(const struct back *b, attncl_value x)
{
    for (int i = 0; i < b->n_inner; ++i)
        if (b->inner[i].id == x.id)
            return true;
    return false;
}

// A value that several layers share is one.
static void list_wanted(struct back *b, attncl_value x, const bool *wanted)
{
    if (wanted[0]) {
        b->index[b->n_inner] = -1;
        b->inner[b->n_inner++] = x;
    }
    for (int i = 0; i < b->n; ++i) {
        if (!wanted[1 + i] || is_listed(b, *b->list[i]))
            continue;
        b->index[b->n_inner] = i;
        b->inner[b->n_inner++] = *b->list[i];
    }
}

static attncl_value row_of(attncl_graph *g, attncl_value x, attncl_value position)
{
    return attncl__given(x) ? attncl__graph_add(g, &attncl__op_loop_row_fwd, NULL, IN(x, position))
                            : ATTNCL_NONE_VALUE;
}

// The step at `position` made again, and the gradients of what it reads.
static void step_back(attncl_graph *g, struct back *b, attncl_value x, attncl_value position,
                      const attncl_value *dy)
{
    struct feedback_steps *s = &b->c->steps;
    const int64_t n_products = attncl__feedback_product_count(s);
    attncl_value memory, *made = attncl__alloc_array((size_t)n_products + 2, 2 * sizeof *made);
    if (!made) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "gradients of a step");
        return;
    }
    attncl_value *const arrived = made + n_products + 2;
    int n = 0;

    made[0] = attncl__feedback_one_step(g, s, x, position, &memory);
    made[1] = memory;
    for (int i = 0; i < 2; ++i) {
        arrived[n] = row_of(g, dy[i], position);
        made[n] = made[i];
        n += attncl__given(dy[i]);
    }
    for (int64_t i = 0; i < n_products; ++i) {
        const struct feedback_product product = attncl__feedback_product(g, s, memory, i);
        const struct feedback_load_fwd_params params = {product.slot, product.n_slots,
                                                        (int32_t)b->c->n_steps};
        made[n] = product.value;
        arrived[n++] = attncl__graph_add(g, &attncl__op_feedback_load_fwd, &params,
                                         IN(s->gradients, position));
    }
    attncl_graph_gradient(g, n, made, arrived, b->n_inner, b->inner, b->inner_d);
    attncl__free(made);
}

// What the steps' gradients come to behind the loop: rows of x's, sums of the others.
static void gather(attncl_graph *g, struct back *b, attncl_value position)
{
    const struct loop_stack_fwd_params stack = {(int32_t)b->c->n_steps};
    const struct loop_sum_fwd_params sum = {(int32_t)b->c->n_steps - 1};

    for (int i = 0; i < b->n_inner; ++i)
        b->inner_d[i] = b->index[i] < 0 ? attncl__graph_add(g, &attncl__op_loop_stack_fwd, &stack,
                                                            IN(b->inner_d[i], position))
                                        : attncl__graph_add(g, &attncl__op_loop_sum_fwd, &sum,
                                                            IN(b->inner_d[i], position));
}

static void hand_over(attncl_graph *g, const struct back *b, attncl_value *dx)
{
    for (int i = 0; i < b->n_inner; ++i) {
        const int at = b->index[i];
        if (at < 0 || b->inner[i].id == b->whole[at].id)
            dx[1 + at] = b->inner_d[i];
        else // a table that was cut
            attncl_graph_gradient(g, 1, &b->inner[i], &b->inner_d[i], 1, &b->whole[at],
                                  &dx[1 + at]);
    }
}

static void go_back(attncl_graph *g, const struct graph_block *block, const attncl_value *dy,
                    const bool *wanted, attncl_value *dx)
{
    const struct context *given = block->context;
    attncl_status status = ATTNCL_OK;
    struct back b = {0};

    if (given->n_steps == 0)
        return;
    TRY_DONE(make_back(given, &b));
    cut_tables(g, b.c);
    if (attncl__given(b.c->steps.cache)) {
        const attncl_shape cache = attncl_graph_shape(g, b.c->steps.cache);
        b.c->steps.gradients =
            attncl_graph_state(g, "memory gradient", ATTNCL_F32, cache.rank, cache.dim);
    }
    const attncl_value position = attncl__graph_loop_begin_back(g, given->n_steps);
    const attncl_value x = row_of(g, block->in[0], position);
    list_wanted(&b, x, wanted);
    step_back(g, &b, x, position, dy);
    gather(g, &b, position);
    attncl__graph_loop_end(g);
    hand_over(g, &b, dx);
done:
    if (status != ATTNCL_OK)
        GRAPH_FAIL(g, status, "%s", attncl_last_error());
    free_back(&b);
}

struct graph_block *attncl__feedback_back_begin(attncl_graph *g, const struct feedback_steps *s,
                                                attncl_value x)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d))
        return NULL;
    const size_t layers = (size_t)s->p->n_layers * sizeof s->p->layers[0];
    struct context *c = attncl__alloc_zero(sizeof *c + layers);
    attncl_value **list = attncl__alloc_array((size_t)most_values(s->p->n_layers), sizeof *list);
    struct graph_block *block = NULL;

    if (c && list) {
        *c = (struct context){.steps = *s, .p = *s->p, .n_steps = d.dim[0]};
        if (layers > 0)
            memcpy(c->layers, s->p->layers, layers);
        const int n = list_values(c, list);
        block = attncl__graph_block_begin(g, 1 + n, 2, c, sizeof *c + layers);
        for (int i = 0; block && i < n; ++i)
            block->in[1 + i] = *list[i];
        if (block)
            block->in[0] = x;
    } else {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%d layers", (int)s->p->n_layers);
    }
    attncl__free(c);
    attncl__free(list);
    return block;
}

void attncl__feedback_back_end(attncl_graph *g, struct graph_block *block, attncl_value y,
                               attncl_value memory)
{
    if (block) {
        block->out[0] = y;
        block->out[1] = memory;
        block->backward = go_back;
    }
    attncl__graph_block_end(g, block);
}
