// SPDX-License-Identifier: MIT
//
// One step of a feedback transformer.  One set of nodes serves every position: it reads its position
// from device memory, attends to the cached memories before it, and appends its own keys and values.
// At position 0 a gate of zeros switches off the attention's output, including its bias.

#include <inttypes.h>
#include <stdio.h>

#include "layer/feedback_internal.h"

// A cache for the memories of limit - 1 steps; no step attends to the last one's.
static attncl_value make_cache(attncl_graph *g, const struct feedback_steps *s,
                               const struct cache_desc *cache, int64_t n_batch, int64_t width)
{
    const int64_t limit = cache->limit;
    struct tensor_desc d;
    const struct feedback_model *p = s->p;
    if (!attncl__layer_check_heads(g, p->n_heads, width) ||
        !attncl__layer_axes(g, p->layers[0].attn.key_pos_embeddings, "key_pos_embeddings", 3,
                            "[P, H, D]", &d))
        return ATTNCL_NONE_VALUE;
    if (limit - 1 > d.dim[0])
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                          "%" PRId64 " steps have %" PRId64
                          " memories, key_pos_embeddings has positions for %" PRId64,
                          limit, limit - 1, d.dim[0]);
    const int64_t n_positions = limit > 1 ? limit - 1 : 1;
    const int64_t dim[5] = {2 * s->n_sets, n_batch, p->n_heads, n_positions, width / p->n_heads};
    return attncl_graph_state(g, "memory", cache->dtype, 5, dim);
}

bool attncl__feedback_begin_steps(attncl_graph *g, const struct feedback_model *p, int64_t n_batch,
                                  int64_t width, const struct cache_desc *cache,
                                  struct feedback_steps *s)
{
    struct tensor_desc stacked;
    *s = (struct feedback_steps){.p = p, .n_sets = p->n_layers};
    if (attncl__given(p->key_value_weight)) {
        if (!attncl__layer_axes(g, p->key_value_weight, "key_value_weight", 2, "[2 N C, C]",
                                &stacked))
            return false;
        s->n_sets = width > 0 ? stacked.dim[0] / (2 * width) : 0;
        if (stacked.dim[0] != 2 * s->n_sets * width ||
            (s->n_sets != 1 && s->n_sets != p->n_layers)) {
            GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                       "key_value_weight has shape %s, expected [2 N C, C] with C = %" PRId64
                       ", N = 1 or %" PRId64,
                       SHAPE(&stacked), width, p->n_layers);
            return false;
        }
    }
    if (p->n_layers > 0)
        s->cache = make_cache(g, s, cache, n_batch, width);
    return !attncl__graph_failed(g);
}

// A slot of the cache, [positions, B, H, D].
static attncl_value cache_slot(attncl_graph *g, attncl_value cache, int64_t slot)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, cache, "cache", &d))
        return ATTNCL_NONE_VALUE;
    const struct tensor_desc view = {
        .dtype = d.dtype,
        .rank = 4,
        .dim = {d.dim[3], d.dim[1], d.dim[2], d.dim[4]},
        .stride = {d.stride[3], d.stride[1], d.stride[2], d.stride[4]},
        .start = slot * d.stride[0],
    };
    return attncl__graph_view(g, cache, &view);
}

static attncl_value add_layer_step(attncl_graph *g, const struct feedback_steps *s, int64_t i,
                                   attncl_value x)
{
    const int64_t set = s->n_sets == 1 ? 0 : i;
    const struct feedback_memories m = {
        .keys = cache_slot(g, s->cache, 2 * set),
        .values = cache_slot(g, s->cache, 2 * set + 1),
        .position = s->position,
        .gate = s->gate,
        .gradients = s->gradients,
        .slot = (int32_t)(2 * set),
        .adds = s->n_sets == 1 && i < s->p->n_layers - 1,
    };
    char scope[32];

    snprintf(scope, sizeof scope, "layers.%" PRId64, i);
    attncl_graph_push_scope(g, scope);
    x = attncl__feedback_add_layer(g, &s->p->layers[i], x, &m);
    attncl_graph_pop_scope(g);
    return x;
}

// A running mix of a step's values, eight per op.
struct mix {
    attncl_value weights, sum; // sum: null at first
    attncl_value waiting[8];
    int n_waiting;
    int64_t n_mixed;
};

static void mix_waiting(attncl_graph *g, struct mix *m)
{
    const struct feedback_mix_fwd_params params = {(int32_t)m->n_mixed};
    const attncl_value *x = m->waiting;
    m->sum =
        attncl__graph_add(g, &attncl__op_feedback_mix_fwd, &params,
                          IN(m->weights, m->sum, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]));
    m->n_mixed += m->n_waiting;
    m->n_waiting = 0;
    for (int i = 0; i < 8; ++i)
        m->waiting[i] = ATTNCL_NONE_VALUE;
}

static void mix_add(attncl_graph *g, struct mix *m, attncl_value x)
{
    if (m->n_waiting == 8)
        mix_waiting(g, m);
    m->waiting[m->n_waiting++] = x;
}

attncl_value attncl__feedback_add_step(attncl_graph *g, struct feedback_steps *s, attncl_value x,
                                       attncl_value position, attncl_value *memory_ret)
{
    struct mix mix = {.weights = s->p->weights};
    s->position = position;
    s->gate = attncl__graph_add(g, &attncl__op_feedback_gate_fwd, NULL, IN(x, position));
    s->first_kept = attncl__loop_saves_first_node(g); // a gate is as fast to compute as to read
    mix_add(g, &mix, x);
    for (int64_t i = 0; i < s->p->n_layers; ++i) {
        x = add_layer_step(g, s, i, x);
        mix_add(g, &mix, x);
    }
    mix_waiting(g, &mix);
    *memory_ret = mix.sum;
    return x;
}

int64_t attncl__feedback_count_projections(const struct feedback_steps *s)
{
    if (s->p->n_layers == 0)
        return 0;
    return attncl__given(s->p->key_value_weight) ? 1 : 2 * s->p->n_layers;
}

struct kv_projection attncl__feedback_project_memory(attncl_graph *g,
                                                     const struct feedback_steps *s,
                                                     attncl_value memory, int64_t i)
{
    const struct feedback_model *p = s->p;
    const attncl_value none = ATTNCL_NONE_VALUE;
    struct kv_projection projection = {.slot = (int32_t)i, .n_slots = 1};
    if (attncl__given(p->key_value_weight)) {
        projection.n_slots = (int32_t)(2 * s->n_sets);
        projection.value = attncl__layer_project(g, "key_value", memory, p->key_value_weight,
                                                 p->key_value_bias, none);
        return projection;
    }
    const attncl_feedback_params *attn = &p->layers[i / 2].attn;
    projection.value =
        i % 2 == 0
            ? attncl__layer_project(g, "key", memory, attn->key_weight, none, none)
            : attncl__layer_project(g, "value", memory, attn->value_weight, attn->value_bias, none);
    return projection;
}

void attncl__feedback_store_memory(attncl_graph *g, const struct feedback_steps *s,
                                   attncl_value memory)
{
    const int64_t n = attncl__feedback_count_projections(s);
    for (int64_t i = 0; i < n; ++i) {
        const struct kv_projection projection = attncl__feedback_project_memory(g, s, memory, i);
        const struct feedback_store_fwd_params params = {projection.slot};
        attncl__graph_add(g, &attncl__op_feedback_store_fwd, &params,
                          IN(projection.value, s->position, s->cache));
    }
}
