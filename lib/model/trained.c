// SPDX-License-Identifier: MIT
//
// The trained tensors of a model.  A stack may have rows that no parameter of the file fills: they stay
// zero, because nothing trains them.

#include "model/params.h"

#include <assert.h>

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "graph/graph.h"

size_t attncl__trained_count(const struct param_table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; ++i)
        n += !t->list[i].fixed;
    return n;
}

const struct param *attncl__trained_at(const struct param_table *t, size_t i)
{
    for (size_t k = 0; k < t->n; ++k)
        if (!t->list[k].fixed && i-- == 0)
            return &t->list[k];
    return NULL;
}

static attncl_value zero_rows(attncl_graph *g, attncl_shape like, int64_t n_rows)
{
    like.dim[0] = n_rows;
    return attncl__graph_zeros(g, like.rank, like.dim);
}

// Whether the pieces leave rows of the tensor to none.
static bool has_filler(attncl_shape shape, const struct param_piece *pieces, size_t n)
{
    int64_t n_rows = 0;
    for (size_t i = 0; i < n; ++i)
        n_rows += pieces[i].n_rows;
    return shape.rank > 0 && n_rows < shape.dim[0];
}

// The gradient with zeros in the rows that belong to none of the pieces, which are in order.
static attncl_status without_filler(attncl_graph *g, attncl_shape shape,
                                    const struct param_piece *pieces, size_t n_pieces,
                                    attncl_value *gradient)
{
    attncl_value *parts = attncl__alloc_array(2 * n_pieces + 1, sizeof *parts);
    int64_t next = 0;
    size_t n = 0;

    REQUIRE(parts, ATTNCL_ERR_NO_MEMORY, "gradients of %zu parameters", n_pieces);
    for (size_t i = 0; i < n_pieces; ++i) {
        const struct param_piece *piece = &pieces[i];
        assert(piece->first >= next);
        if (piece->first > next)
            parts[n++] = zero_rows(g, shape, piece->first - next);
        next = piece->first + piece->n_rows;
        parts[n++] = attncl_slice(g, *gradient, 0, piece->first, next);
    }
    if (next < shape.dim[0])
        parts[n++] = zero_rows(g, shape, shape.dim[0] - next);
    *gradient = attncl_concat(g, n, parts, 0);
    attncl__free(parts);
    return attncl_graph_status(g);
}

attncl_status attncl__trained_gradient(const struct param_table *t, attncl_graph *g,
                                       attncl_value loss, attncl_value *weights,
                                       attncl_value *gradients)
{
    size_t n = 0, piece = 0;

    for (size_t i = 0; i < t->n; ++i)
        if (!t->list[i].fixed)
            weights[n++] = attncl_graph_tensor(g, t->list[i].tensor);
    attncl_graph_gradient(g, 1, &loss, NULL, n, weights, gradients);
    TRY(attncl_graph_status(g));
    n = 0;
    for (size_t i = 0; i < t->n; ++i) {
        const size_t first = piece;
        while (piece < t->n_pieces && t->pieces[piece].param == i)
            ++piece;
        const struct param_piece *pieces = t->pieces + first;
        if (!t->list[i].fixed && has_filler(t->list[i].shape, pieces, piece - first))
            TRY(without_filler(g, t->list[i].shape, pieces, piece - first, &gradients[n]));
        n += !t->list[i].fixed;
    }
    return ATTNCL_OK;
}
