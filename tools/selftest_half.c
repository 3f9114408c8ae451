// SPDX-License-Identifier: MIT
//
// Checks of attncl selftest: weights of 16 bits.

#include <stdlib.h>

#include "selftest.h"

// Of both types of 16 bits without rounding: multiples of 1/64 below 1.
static double weight_at(int64_t i)
{
    return (double)(i * 37 % 101 - 50) / 64;
}

// kind: the type.
static attncl_value new_weight(attncl_graph *g, const struct check *c, int64_t rows,
                               int64_t columns)
{
    const int64_t dim[] = {rows, columns};
    const size_t n = (size_t)(rows * columns);
    float *const x = malloc(n * sizeof *x);
    uint16_t *const halves = malloc(n * sizeof *halves);
    attncl_value weight = ATTNCL_VALUE_INIT;

    for (size_t i = 0; x && i < n; i++)
        x[i] = (float)weight_at((int64_t)i);
    if (x && halves &&
        attncl_elements_convert(ATTNCL_F32, x, (attncl_dtype)c->kind, halves, n) == ATTNCL_OK)
        weight = attncl_graph_constant(g, (attncl_dtype)c->kind, 2, dim, halves);
    free(x);
    free(halves);
    return weight;
}

attncl_value check_build_halves(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    return attncl_linear(g, in[0], new_weight(g, c, c->out.dim[1], c->in[0].dim[1]),
                         (attncl_value)ATTNCL_VALUE_INIT);
}

void check_ref_halves(const struct check *c, double *const *in, double *out)
{
    const int64_t n = c->out.dim[1], k = c->in[0].dim[1];

    for (int64_t i = 0; i < check_count(&c->out); i++) {
        out[i] = 0;
        for (int64_t j = 0; j < k; j++)
            out[i] += in[0][i / n * k + j] * weight_at(i % n * k + j);
    }
}

enum { WORDS = 11 };

attncl_value check_build_lookup(attncl_graph *g, const struct check *c, const attncl_value *in)
{
    return attncl_embedding(g, in[0], new_weight(g, c, WORDS, c->out.dim[1]), 2);
}

void check_ref_lookup(const struct check *c, double *const *in, double *out)
{
    const int64_t n = c->out.dim[1];

    for (int64_t i = 0; i < check_count(&c->out); i++)
        out[i] = 2 * weight_at((int64_t)in[0][i / n] * n + i % n);
}
