// SPDX-License-Identifier: MIT
//
// Inputs of a model's graph.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/desc.h"
#include "base/try.h"
#include "model/inputs.h"

const attncl_array *attncl__input_find(const struct build *b, const char *name)
{
    if (b->probe)
        return attncl__probe_find(b->probe, name);
    for (size_t i = 0; i < b->n_inputs; ++i)
        if (b->inputs[i].name && strcmp(b->inputs[i].name, name) == 0)
            return &b->inputs[i];
    return NULL;
}

bool attncl__input_given(const struct build *b, const char *name)
{
    if (!b->probe)
        return attncl__input_find(b, name) != NULL;
    b->probe->optional = name;
    return !b->probe->only_required;
}

// "[T, B, 12]", "[..., 12]"
static const char *expected_text(int rank, const int64_t *dim, char text[SHAPE_TEXT_BYTES])
{
    size_t used = (size_t)snprintf(text, SHAPE_TEXT_BYTES, "[");
    for (int i = 0; i < rank; ++i) {
        char extent[AXIS_TEXT_BYTES];
        if (i > 0 && dim[i] == AXIS(AXES) && dim[i - 1] == AXIS(AXES))
            continue;
        used += (size_t)snprintf(text + used, SHAPE_TEXT_BYTES - used, "%s%s", i ? ", " : "",
                                 attncl__axis_text(dim[i], extent));
    }
    snprintf(text + used, SHAPE_TEXT_BYTES - used, "]");
    return text;
}

// `dtype`: what is taken, or one of what is.
static attncl_status find_shape(const struct build *b, const char *name, attncl_dtype dtype,
                                int rank, const int64_t *dim, const attncl_array **ret)
{
    if (b->probe) {
        *ret = &attncl__probe_input(b->probe, name, dtype, rank, dim)->array;
        return ATTNCL_OK;
    }
    const attncl_array *a = attncl__input_find(b, name);
    struct tensor_desc d;
    char want[SHAPE_TEXT_BYTES];
    REQUIRE(a, ATTNCL_ERR_ARGUMENT, "input %s is missing", name);
    const attncl_status status = attncl__desc_make(a->dtype, a->rank, a->dim, &d);
    if (status != ATTNCL_OK) {
        attncl__error_prefix("input %s", name);
        return status;
    }
    bool fits = rank == ANY || a->rank == rank;
    for (int i = 0; i < rank && fits; ++i)
        fits = dim[i] < 0 || dim[i] == a->dim[i];
    REQUIRE(fits, ATTNCL_ERR_SHAPE, "input %s has shape %s, expected %s", name, SHAPE(&d),
            expected_text(rank, dim, want));
    *ret = a;
    return ATTNCL_OK;
}

attncl_status attncl__input_real(struct build *b, const char *name, int rank, const int64_t *dim,
                                 attncl_value *ret)
{
    const attncl_array *a;
    TRY(find_shape(b, name, ATTNCL_F32, rank, dim, &a));
    REQUIRE(attncl__is_float(a->dtype), ATTNCL_ERR_DTYPE, "input %s has type %s, expected F32",
            name, attncl_dtype_name(a->dtype));
    *ret = attncl_graph_input(b->graph, name, ATTNCL_F32, a->rank, a->dim);
    return ATTNCL_OK;
}

attncl_status attncl__input_trailing(struct build *b, const char *name, int n, const int64_t *dim,
                                     attncl_value *ret)
{
    const attncl_array *a = attncl__input_find(b, name);
    int64_t want[ATTNCL_MAX_RANK];
    int rank = a && a->rank > n && a->rank <= ATTNCL_MAX_RANK ? a->rank : n;
    if (b->probe)
        rank = n + 1;
    for (int i = 0; i < rank; ++i)
        want[i] = i < rank - n ? AXIS(AXES) : dim[i - (rank - n)];
    return attncl__input_real(b, name, rank, want, ret);
}

static attncl_status find_ints(const struct build *b, const char *name, int rank,
                               const int64_t *dim, const attncl_array **ret)
{
    TRY(find_shape(b, name, ATTNCL_I64, rank, dim, ret));
    const attncl_dtype dtype = (*ret)->dtype;
    REQUIRE(dtype == ATTNCL_I32 || dtype == ATTNCL_I64, ATTNCL_ERR_DTYPE,
            "input %s has type %s, expected I64 or I32", name, attncl_dtype_name(dtype));
    return ATTNCL_OK;
}

attncl_status attncl__input_index(struct build *b, const char *name, int rank, const int64_t *dim,
                                  int64_t high, attncl_value *ret)
{
    const attncl_array *a;
    TRY(find_ints(b, name, rank, dim, &a));
    *ret = attncl_graph_index_input(b->graph, name, a->rank, a->dim, 0, high);
    return ATTNCL_OK;
}

attncl_status attncl__input_int(struct build *b, const char *name, int rank, const int64_t *dim,
                                attncl_value *ret)
{
    const attncl_array *a;
    TRY(find_ints(b, name, rank, dim, &a));
    *ret = attncl_graph_input(b->graph, name, ATTNCL_I32, a->rank, a->dim);
    return ATTNCL_OK;
}

attncl_status attncl__input_lens(struct build *b, int64_t n_batch, int64_t n_queries,
                                 attncl_value *ret)
{
    const int64_t dim[2] = {n_batch, n_queries};
    *ret = ATTNCL_NONE_VALUE;
    if (!attncl__input_given(b, "valid_lens"))
        return ATTNCL_OK;
    const attncl_array *a = attncl__input_find(b, "valid_lens");
    TRY(attncl__input_int(b, "valid_lens", a && a->rank == 1 ? 1 : 2, dim, ret));
    if (b->probe)
        b->probe->inputs[b->probe->n_inputs - 1].or_shape = "[B]";
    return ATTNCL_OK;
}

attncl_status attncl__input_pair_mask(struct build *b, int64_t n_queries, int64_t n_keys,
                                      int64_t n_batch, attncl_value *ret)
{
    static const int64_t any[3] = {AXIS('T'), AXIS('S'), AXIS('B')};
    const int64_t full[3] = {n_queries, n_keys, n_batch};
    const attncl_array *a;
    *ret = ATTNCL_NONE_VALUE;
    if (!attncl__input_given(b, "mask"))
        return ATTNCL_OK;
    TRY(find_shape(b, "mask", ATTNCL_U8, 3, b->probe ? full : any, &a));
    if (b->probe)
        b->probe->inputs[b->probe->n_inputs - 1].or_one = n_batch == 1 ? 1 : 1 | 1 << 2;
    REQUIRE(a->dtype == ATTNCL_BOOL || a->dtype == ATTNCL_U8, ATTNCL_ERR_DTYPE,
            "input mask has type %s, expected BOOL or U8", attncl_dtype_name(a->dtype));
    const int64_t *dim = a->dim;
    REQUIRE((dim[0] == n_queries || dim[0] == 1) && dim[1] == n_keys &&
                (dim[2] == n_batch || dim[2] == 1),
            ATTNCL_ERR_SHAPE,
            "input mask has shape [%" PRId64 ", %" PRId64 ", %" PRId64 "], expected [%" PRId64
            " or 1, %" PRId64 ", %" PRId64 "%s]",
            dim[0], dim[1], dim[2], n_queries, n_keys, n_batch, n_batch == 1 ? "" : " or 1");
    *ret = attncl_graph_input(b->graph, "mask", ATTNCL_U8, 3, dim);
    return ATTNCL_OK;
}

attncl_status attncl__input_mask(struct build *b, int64_t n_seq, int64_t n_batch, attncl_value *ret)
{
    return attncl__input_pair_mask(b, n_seq, n_seq, n_batch, ret);
}

attncl_status attncl__check_length(const char *name, int64_t n_seq, int64_t limit)
{
    REQUIRE(limit == 0 || n_seq <= limit, ATTNCL_ERR_SHAPE,
            "input %s has length %" PRId64 ", the model takes at most %" PRId64, name, n_seq,
            limit);
    return ATTNCL_OK;
}

attncl_status attncl__input_sequence(struct build *b, attncl_layout layout, const char *name,
                                     int64_t width, int64_t limit, attncl_value *ret)
{
    const int64_t dim[2][3] = {{AXIS('T'), AXIS('B'), width}, {AXIS('B'), AXIS('T'), width}};
    const int time_axis = layout == ATTNCL_LAYOUT_BATCH_FIRST ? 1 : 0;
    TRY(attncl__input_real(b, name, 3, dim[time_axis], ret));
    return attncl__check_length(name, attncl__input_find(b, name)->dim[time_axis], limit);
}

void attncl__output(struct build *b, const char *name, attncl_value value)
{
    if (!b->for_loss)
        attncl_graph_output(b->graph, name, value);
    else if (strcmp(name, "output") == 0)
        b->scores = value;
}
