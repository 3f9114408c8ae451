// SPDX-License-Identifier: MIT
//
// Inputs, tensors, constants, state and outputs of a graph.

#include "base/alloc.h"
#include "graph/nodes.h"

bool attncl__graph_has_input(const attncl_graph *g, const char *name)
{
    return attncl__name_find(&g->inputs.names, name) >= 0;
}

attncl_value attncl__graph_input_value(const attncl_graph *g, size_t i)
{
    assert(i < (size_t)g->inputs.n);
    return attncl__graph_handle(g, g->inputs.list[i].value);
}

attncl_value attncl__graph_find_output(const attncl_graph *g, const char *name)
{
    const int i = attncl__name_find(&g->outputs.names, name);
    return i < 0 ? ATTNCL_NONE_VALUE : attncl__graph_handle(g, g->outputs.list[i].value);
}

static attncl_value add_named_value(attncl_graph *g, enum value_kind kind, const char *name,
                                    attncl_dtype dtype, int rank, const int64_t *dim)
{
    struct value v = {.kind = kind};

    if (!attncl__graph_check_open(g))
        return ATTNCL_NONE_VALUE;
    if (!name || !*name || (!dim && rank != 0))
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "an input or state needs a name and extents");
    const bool is_state = kind == VALUE_STATE;
    if (dtype != ATTNCL_F32 && dtype != ATTNCL_I32 && dtype != ATTNCL_U8 &&
        !(is_state && attncl__is_16_bit(dtype)))
        return GRAPH_FAIL(g, ATTNCL_ERR_DTYPE, "%s: %s, not %s", name,
                          is_state ? "state is F32, F16, BF16, I32 or U8"
                                   : "a value is F32, I32 or U8",
                          attncl_dtype_name(dtype));
    const attncl_status status = attncl__desc_make(dtype, rank, dim, &v.desc);
    if (status != ATTNCL_OK)
        return attncl__graph_keep_failure(g, attncl__prefix_failure(status, "%s", name));
    v.name = attncl__copy_text(name);
    if (!v.name)
        return GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "name of %s", name);
    const int id = attncl__graph_add_value(g, v);
    if (!id)
        attncl__free(v.name);
    return attncl__graph_handle(g, id);
}

static void add_name(attncl_graph *g, struct named_values *to, const char *name, int value)
{
    if (attncl__name_find(&to->names, name) >= 0) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "the name %s is given twice", name);
        return;
    }
    char *copy = GROW_LIST(to->list, to->n, to->capacity) ? attncl__copy_text(name) : NULL;
    if (!copy || attncl__name_add(&to->names, copy, to->n) != ATTNCL_OK) {
        attncl__free(copy);
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "name of %s", name);
        return;
    }
    to->list[to->n++] = (struct named_value){.name = copy, .value = value};
}

attncl_value attncl_graph_input(attncl_graph *g, const char *name, attncl_dtype dtype, int rank,
                                const int64_t *dim)
{
    const attncl_value v = add_named_value(g, VALUE_INPUT, name, dtype, rank, dim);
    if (v.id)
        add_name(g, &g->inputs, name, v.id);
    return attncl__graph_failed(g) ? ATTNCL_NONE_VALUE : v;
}

attncl_value attncl_graph_index_input(attncl_graph *g, const char *name, int rank,
                                      const int64_t *dim, int64_t low, int64_t high)
{
    const attncl_value v = attncl_graph_input(g, name, ATTNCL_I32, rank, dim);
    if (v.id) {
        struct named_value *input = &g->inputs.list[g->inputs.n - 1];
        input->ranged = true;
        input->low = low;
        input->high = high;
    }
    return v;
}

attncl_value attncl_graph_state(attncl_graph *g, const char *name, attncl_dtype dtype, int rank,
                                const int64_t *dim)
{
    return add_named_value(g, VALUE_STATE, name, dtype, rank, dim);
}

attncl_value attncl_graph_tensor(attncl_graph *g, attncl_tensor *tensor)
{
    if (!attncl__graph_check_open(g))
        return ATTNCL_NONE_VALUE;
    if (!tensor)
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "tensor is NULL");
    if (attncl__tensor_context(tensor) != g->ctx)
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "the tensor belongs to another context");
    const struct value v = {
        .kind = VALUE_TENSOR, .tensor = tensor, .desc = attncl__tensor_desc(tensor)};
    return attncl__graph_handle(g, attncl__graph_add_value(g, v));
}

attncl_value attncl__graph_placeholder(attncl_graph *g, attncl_dtype dtype, int rank,
                                       const int64_t *dim)
{
    struct value v = {.kind = VALUE_TENSOR};
    if (!attncl__graph_check_open(g))
        return ATTNCL_NONE_VALUE;
    const attncl_status status = attncl__desc_make(dtype, rank, dim, &v.desc);
    if (status != ATTNCL_OK)
        return attncl__graph_keep_failure(g, status);
    return attncl__graph_handle(g, attncl__graph_add_value(g, v));
}

attncl_value attncl_graph_constant(attncl_graph *g, attncl_dtype dtype, int rank,
                                   const int64_t *dim, const void *data)
{
    if (!attncl__graph_check_open(g))
        return ATTNCL_NONE_VALUE;
    if (!g->ctx)
        return attncl__graph_placeholder(g, dtype, rank, dim);
    attncl_tensor *tensor = NULL;
    const attncl_status status =
        attncl_tensor_create(g->ctx, dtype, rank, dim, dtype, data, &tensor);
    if (status != ATTNCL_OK)
        return attncl__graph_keep_failure(g, attncl__prefix_failure(status, "constant"));
    const attncl_value v = attncl_graph_tensor(g, tensor);
    if (v.id)
        g->values[v.id].owns_tensor = true;
    else
        attncl_tensor_destroy(tensor);
    return v;
}

void attncl_graph_output(attncl_graph *g, const char *name, attncl_value value)
{
    if (!attncl__graph_check_open(g))
        return;
    const struct value *v = attncl__graph_value(g, value);
    if (!v || !name || !*name) {
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "output %s %s", name ? name : "without a name",
                   attncl__graph_is_foreign(g, value) ? "is a value of another graph"
                                                      : "has no value");
        return;
    }
    // An output is a whole buffer of its own; anything else is copied into one.
    const struct value *base = &g->values[v->base];
    if (base->kind != VALUE_RESULT || base->is_output || !attncl__desc_contiguous(&v->desc) ||
        v->desc.start != 0 || attncl__desc_count(&v->desc) != attncl__desc_count(&base->desc))
        value = attncl__graph_add(g, &attncl__op_copy_fwd, NULL, &value, 1);
    if (!value.id)
        return;
    g->values[g->values[value.id].base].is_output = true;
    add_name(g, &g->outputs, name, value.id);
}

static const char *get_name(const attncl_graph *g, const struct named_values *values, size_t i,
                            attncl_shape *shape_ret)
{
    if (i >= (size_t)values->n)
        return NULL;
    if (shape_ret)
        *shape_ret = attncl_graph_shape(g, attncl__graph_handle(g, values->list[i].value));
    return values->list[i].name;
}

size_t attncl_graph_input_count(const attncl_graph *g)
{
    return g ? (size_t)g->inputs.n : 0;
}

const char *attncl_graph_input_name(const attncl_graph *g, size_t i, attncl_shape *shape_ret)
{
    return g ? get_name(g, &g->inputs, i, shape_ret) : NULL;
}

const char *attncl_graph_output_name(const attncl_graph *g, size_t i, attncl_shape *shape_ret)
{
    return g ? get_name(g, &g->outputs, i, shape_ret) : NULL;
}

void attncl__graph_share_state(attncl_graph *g, const attncl_graph *owner)
{
    assert(owner->program && !g->program);
    g->state_owner = owner;
}
