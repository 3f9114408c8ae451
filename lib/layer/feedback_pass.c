// SPDX-License-Identifier: MIT
// Inputs and outputs of the backward pass of a feedback transformer's steps.

#include "layer/feedback_internal.h"

#include "base/alloc.h"

enum { MAX_LAYER_VALUES = 19, MAX_MODEL_VALUES = 3 }; // of a layer, and of the model itself

static int add_given(attncl_value **list, int n, attncl_value *const *values, int n_values)
{
    for (int i = 0; i < n_values; ++i)
        if (attncl__given(*values[i]))
            list[n++] = values[i];
    return n;
}

int attncl__feedback_list_values(struct feedback_context *c, attncl_value **list)
{
    attncl_value *const model[MAX_MODEL_VALUES] = {&c->p.weights, &c->p.key_value_weight,
                                                   &c->p.key_value_bias};
    const bool own = !attncl__given(c->p.key_value_weight);
    int n = add_given(list, 0, model, MAX_MODEL_VALUES);

    for (int64_t k = 0; k < c->p.n_layers; ++k) {
        struct feedback_layer *p = &c->layers[k];
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

int attncl__feedback_max_values(int64_t n_layers)
{
    return 1 + MAX_MODEL_VALUES + MAX_LAYER_VALUES * (int)n_layers; // x first
}

void attncl__feedback_pass_free(struct feedback_pass *b)
{
    attncl__free(b->c);
    attncl__free(b->list);
    attncl__free(b->whole);
    attncl__free(b->inner);
    attncl__free(b->inner_d);
    attncl__free(b->index);
    attncl__free(b->sum);
}

attncl_status attncl__feedback_pass_init(const struct feedback_context *given,
                                         struct feedback_pass *b)
{
    const size_t max_n = (size_t)attncl__feedback_max_values(given->p.n_layers);
    const size_t layers = (size_t)given->p.n_layers * sizeof given->layers[0];

    *b = (struct feedback_pass){
        .c = (struct feedback_context *)(void *)attncl__copy_bytes(given, sizeof *given + layers),
        .list = attncl__alloc_array(max_n, sizeof *b->list),
        .whole = attncl__alloc_array(max_n, sizeof *b->whole),
        .inner = attncl__alloc_array(max_n, sizeof *b->inner),
        .inner_d = attncl__alloc_array(max_n, sizeof *b->inner_d),
        .index = attncl__alloc_array(max_n, sizeof *b->index),
        .sum = attncl__alloc_array(max_n, sizeof *b->sum),
    };
    REQUIRE(b->c && b->list && b->whole && b->inner && b->inner_d && b->index && b->sum,
            ATTNCL_ERR_NO_MEMORY, "gradients of %zu values", max_n);
    b->c->p.layers = b->c->layers;
    b->c->steps.p = &b->c->p;
    b->n = attncl__feedback_list_values(b->c, b->list);
    for (int i = 0; i < b->n; ++i)
        b->whole[i] = *b->list[i];
    return ATTNCL_OK;
}

// The last n_memories rows, all that a sequence reads: a table's gradient is computed in every
// step.
static void truncate_table(attncl_graph *g, attncl_value *table, int64_t n_memories)
{
    struct tensor_desc d;
    if (!attncl__given(*table) || !attncl__layer_shape(g, *table, "key_pos_embeddings", &d) ||
        d.dim[0] <= n_memories)
        return;
    const attncl_value rows = attncl_slice(g, *table, 0, d.dim[0] - n_memories, d.dim[0]);
    *table = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, IN(rows));
}

void attncl__feedback_pass_truncate(attncl_graph *g, struct feedback_context *c)
{
    const int64_t n_memories = c->n_steps > 1 ? c->n_steps - 1 : 1;
    for (int64_t k = 0; k < c->p.n_layers; ++k) {
        truncate_table(g, &c->layers[k].attn.key_pos_embeddings, n_memories);
        truncate_table(g, &c->layers[k].attn.key_pos_bias, n_memories);
    }
}

static bool is_listed(const struct feedback_pass *b, attncl_value x)
{
    for (int i = 0; i < b->n_inner; ++i)
        if (b->inner[i].id == x.id)
            return true;
    return false;
}

void attncl__feedback_pass_list(struct feedback_pass *b, attncl_value x, const bool *requires_grad)
{
    if (requires_grad[0]) {
        b->index[b->n_inner] = -1;
        b->inner[b->n_inner++] = x;
    }
    for (int i = 0; i < b->n; ++i) {
        if (!requires_grad[1 + i] || is_listed(b, *b->list[i]))
            continue;
        b->index[b->n_inner] = i;
        b->inner[b->n_inner++] = *b->list[i];
    }
}
