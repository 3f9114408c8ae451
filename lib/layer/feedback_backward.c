// SPDX-License-Identifier: MIT
//
// Backward pass of the steps of a feedback transformer, last step first.
//
// The cache still holds every key and value, and the forward pass saved its steps' results.  The
// backward pass adds a step's nodes again and differentiates them; they read the saved results
// (autodiff/loops.h) and recompute the others, such as the argument of a GELU.  Later steps have
// already accumulated the gradients of this step's keys and values in a gradient cache, to which this
// step adds those of earlier memories.  The parameters' gradients are summed over the steps.  All
// steps share one set of nodes.

#include "attncl/gradient.h"
#include "base/alloc.h"
#include "layer/feedback_internal.h"

// -- inputs of the backward pass

// The region's context.
struct feedback_context {
    struct feedback_steps steps; // its p is set by the backward pass
    struct feedback_model p;
    struct loop_saves saves;
    int64_t n_steps;
    struct feedback_layer layers[];
};

// A backward pass under construction.
struct feedback_pass {
    struct feedback_context *c; // a copy of the region's
    attncl_value **list;        // the n parameter values in the copy that a step reads
    int n;
    // The n_inner inputs of a step that require a gradient:
    attncl_value *inner, *inner_d; // value; gradient
    int *index;                    // position in the list; -1: x
    struct loop_sum *sum;          // sum of the gradient over the steps
    int n_inner;
};

enum { MAX_LAYER_VALUES = 19, MAX_MODEL_VALUES = 3 }; // of a layer, and of the model itself

static int add_given(attncl_value **list, int n, attncl_value *const *values, int n_values)
{
    for (int i = 0; i < n_values; ++i)
        if (attncl__given(*values[i]))
            list[n++] = values[i];
    return n;
}

// Lists pointers to the parameter values that a step reads, less than max_values(); returns their number.
static int list_values(struct feedback_context *c, attncl_value **list)
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
            &p->params.norm_attn_weight, &p->params.norm_attn_bias, &p->attn.query_weight,
            &p->attn.output_weight,      &p->attn.output_bias,      &p->attn.key_pos_embeddings,
            &p->attn.query_pos_bias,     &p->attn.key_pos_bias,     &p->params.norm_ffn_weight,
            &p->params.norm_ffn_bias,    &p->ffn.layer1_weight,     &p->ffn.layer1_bias,
            &p->ffn.gate_weight,         &p->ffn.gate_bias,         &p->ffn.layer2_weight,
            &p->ffn.layer2_bias,
        };
        n = add_given(list, n, layer, (int)(sizeof layer / sizeof layer[0]));
        if (own)
            n = add_given(list, n, memory, (int)(sizeof memory / sizeof memory[0]));
    }
    return n;
}

static int max_values(int64_t n_layers)
{
    return 1 + MAX_MODEL_VALUES + MAX_LAYER_VALUES * (int)n_layers; // x first
}

static void free_pass(struct feedback_pass *b)
{
    attncl__free(b->c);
    attncl__free(b->list);
    attncl__free(b->inner);
    attncl__free(b->inner_d);
    attncl__free(b->index);
    attncl__free(b->sum);
}

// Release *b with free_pass() even if it fails.
static attncl_status init_pass(const struct feedback_context *given, struct feedback_pass *b)
{
    const size_t max_n = (size_t)max_values(given->p.n_layers);
    const size_t layers = (size_t)given->p.n_layers * sizeof given->layers[0];

    *b = (struct feedback_pass){
        .c = (struct feedback_context *)(void *)attncl__copy_bytes(given, sizeof *given + layers),
        .list = attncl__alloc_array(max_n, sizeof *b->list),
        .inner = attncl__alloc_array(max_n, sizeof *b->inner),
        .inner_d = attncl__alloc_array(max_n, sizeof *b->inner_d),
        .index = attncl__alloc_array(max_n, sizeof *b->index),
        .sum = attncl__alloc_array(max_n, sizeof *b->sum),
    };
    REQUIRE(b->c && b->list && b->inner && b->inner_d && b->index && b->sum, ATTNCL_ERR_NO_MEMORY,
            "gradients of %zu values", max_n);
    b->c->p.layers = b->c->layers;
    b->c->steps.p = &b->c->p;
    b->n = list_values(b->c, b->list);
    return ATTNCL_OK;
}

// Keeps only the last n_memories rows, the ones a sequence reads, since every step computes the whole table's
// gradient.
static void truncate_table(attncl_graph *g, attncl_value *table, int64_t n_memories)
{
    struct tensor_desc d;
    if (!attncl__given(*table) || !attncl__layer_shape(g, *table, "key_pos_embeddings", &d) ||
        d.dim[0] <= n_memories)
        return;
    const attncl_value rows = attncl_slice(g, *table, 0, d.dim[0] - n_memories, d.dim[0]);
    *table = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, IN(rows));
}

static void truncate_tables(attncl_graph *g, struct feedback_context *c)
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

// Lists the inputs that require a gradient.  A value that several layers share is listed once.
static void list_inner(struct feedback_pass *b, attncl_value x, const bool *requires_grad)
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

// -- the pass

// Adds the nodes of the step at `position` again, and the nodes of its inputs' gradients.
static void differentiate_step(attncl_graph *g, struct feedback_pass *b, attncl_value x,
                               attncl_value position, const attncl_value *dy)
{
    struct feedback_steps *s = &b->c->steps;
    const int64_t n_projections = attncl__feedback_count_projections(s);
    attncl_value memory,
        *outputs = attncl__alloc_array((size_t)n_projections + 2, 2 * sizeof *outputs);
    if (!outputs) {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "gradients of a step");
        return;
    }
    attncl_value *const output_grads = outputs + n_projections + 2;
    int n = 0;

    outputs[0] = attncl__feedback_add_step(g, s, x, position, &memory);
    outputs[1] = memory;
    for (int i = 0; i < 2; ++i) {
        output_grads[n] = attncl__layer_row_at(g, dy[i], position);
        outputs[n] = outputs[i];
        n += attncl__given(dy[i]);
    }
    for (int64_t i = 0; i < n_projections; ++i) {
        const struct kv_projection projection = attncl__feedback_project_memory(g, s, memory, i);
        const struct feedback_load_fwd_params params = {projection.slot, projection.n_slots,
                                                        (int32_t)b->c->n_steps};
        outputs[n] = projection.value;
        output_grads[n++] = attncl__graph_add(g, &attncl__op_feedback_load_fwd, &params,
                                              IN(s->gradients, position));
    }
    attncl_graph_gradient(g, (size_t)n, outputs, output_grads, (size_t)b->n_inner, b->inner,
                          b->inner_d);
    attncl__free(outputs);
}

static attncl_status backprop_step(attncl_graph *g, struct feedback_pass *b, attncl_value x,
                                   attncl_value position, const attncl_value *dy)
{
    struct loop_reads reads;
    attncl_status status = attncl__loop_reads_begin(g, &b->c->saves, position, &reads);

    if (status == ATTNCL_OK) {
        differentiate_step(g, b, x, position, dy);
        if (!attncl__graph_failed(g))
            status = attncl__loop_reads_replace(g, &reads, b->c->steps.first_kept);
    }
    attncl__loop_reads_free(&reads);
    return status;
}

// Collects the gradients of all iterations: x's are stacked, others summed.
static attncl_status collect_grads(attncl_graph *g, struct feedback_pass *b, attncl_value position)
{
    struct loop_sums sums;
    const int32_t n_steps = (int32_t)b->c->n_steps;

    TRY(attncl__loop_sums_begin(g, position, n_steps, n_steps - 1, &sums));
    for (int i = 0; i < b->n_inner; ++i)
        b->sum[i] = b->index[i] < 0
                        ? (struct loop_sum){.sum = attncl__loop_sums_stack(&sums, b->inner_d[i])}
                        : attncl__loop_sums_add(&sums, b->inner_d[i]);
    attncl__loop_sums_free(&sums);
    return ATTNCL_OK;
}

// in: the region's inputs, whose tables are not truncated.
static void store_grads(attncl_graph *g, const struct feedback_pass *b, const attncl_value *in,
                        attncl_value *dx)
{
    for (int i = 0; i < b->n_inner; ++i) {
        const int at = b->index[i];
        b->inner_d[i] = attncl__loop_sum_finish(g, &b->sum[i]);
        if (at < 0 || b->inner[i].id == in[1 + at].id)
            dx[1 + at] = b->inner_d[i];
        else // a truncated table
            attncl_graph_gradient(g, 1, &b->inner[i], &b->inner_d[i], 1, &in[1 + at], &dx[1 + at]);
    }
}

static void backprop_steps(attncl_graph *g, const struct grad_region *region,
                           const attncl_value *dy, const bool *requires_grad, attncl_value *dx)
{
    const struct feedback_context *given = region->context;
    attncl_status status = ATTNCL_OK;
    struct feedback_pass b = {0};

    if (given->n_steps == 0)
        return;
    TRY_DONE(init_pass(given, &b));
    truncate_tables(g, b.c);
    if (attncl__given(b.c->steps.cache)) {
        const attncl_shape cache = attncl_graph_shape(g, b.c->steps.cache);
        b.c->steps.gradients =
            attncl_graph_state(g, "memory gradient", ATTNCL_F32, cache.rank, cache.dim);
    }
    const attncl_value position = attncl__graph_loop_begin(g, given->n_steps, true);
    const attncl_value x = attncl__layer_row_at(g, region->in[0], position);
    list_inner(&b, x, requires_grad);
    status = backprop_step(g, &b, x, position, dy);
    if (status == ATTNCL_OK && !attncl__graph_failed(g))
        status = collect_grads(g, &b, position);
    attncl__graph_loop_end(g);
    if (status == ATTNCL_OK && !attncl__graph_failed(g))
        store_grads(g, &b, region->in, dx);
done:
    if (status != ATTNCL_OK)
        GRAPH_FAIL(g, status, "%s", attncl_last_error());
    free_pass(&b);
}

struct grad_region *attncl__feedback_backward_begin(attncl_graph *g, const struct feedback_steps *s,
                                                    attncl_value x)
{
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d))
        return NULL;
    const size_t layers = (size_t)s->p->n_layers * sizeof s->p->layers[0];
    struct feedback_context *c = attncl__alloc_zero(sizeof *c + layers);
    attncl_value **list = attncl__alloc_array((size_t)max_values(s->p->n_layers), sizeof *list);
    struct grad_region *region = NULL;

    if (c && list) {
        *c = (struct feedback_context){.steps = *s, .p = *s->p, .n_steps = d.dim[0]};
        if (layers > 0)
            memcpy(c->layers, s->p->layers, layers);
        const int n = list_values(c, list);
        region = attncl__grad_region_begin(g, 1 + n, 2, c, sizeof *c + layers);
        for (int i = 0; region && i < n; ++i)
            region->in[1 + i] = *list[i];
        if (region)
            region->in[0] = x;
    } else {
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "%d layers", (int)s->p->n_layers);
    }
    attncl__free(c);
    attncl__free(list);
    return region;
}

void attncl__feedback_backward_end(attncl_graph *g, struct grad_region *region, attncl_value y,
                                   attncl_value memory, const struct loop_saves *saves)
{
    if (region) {
        struct feedback_context *c = region->context;
        c->saves = *saves;
        region->out[0] = y;
        region->out[1] = memory;
        region->backward = backprop_steps;
    }
    attncl__grad_region_end(g, region);
}
