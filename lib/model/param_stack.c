// SPDX-License-Identifier: MIT
//
// Several parameters of the file as rows of one tensor.

#include <assert.h>
#include <string.h>

#include "base/ckd.h"
#include "model/params.h"

// Reserves `count` more elements.  Grows with the parameters found, not by the configuration's claims.
static attncl_status reserve_rows(struct param_stack *s, size_t used, size_t count)
{
    size_t need;
    REQUIRE(ckd_add_size(used, count, &need), ATTNCL_ERR_NO_MEMORY, "parameter %s", s->name);
    if (need <= s->capacity)
        return ATTNCL_OK;
    const size_t capacity = need > 2 * s->capacity ? need : 2 * s->capacity;
    float *rows = attncl__grow_array(s->rows, capacity, sizeof *rows);
    REQUIRE(rows, ATTNCL_ERR_NO_MEMORY, "%zu elements of parameter %s", capacity, s->name);
    s->rows = rows;
    s->capacity = capacity;
    return ATTNCL_OK;
}

// Loads n_rows rows of parameter `full`, or zeros if it is NULL.
static attncl_status load_rows(struct param_stack *s, const char *full,
                               const struct param_init *init, int64_t n_rows)
{
    const int64_t dim[2] = {n_rows, s->width};
    const int64_t each = s->width ? s->width : 1;
    const size_t used = (size_t)(s->n_rows * each), count = (size_t)(n_rows * each);
    TRY(reserve_rows(s, used, count));
    if (full) {
        TRY(attncl__param_table_add_rows(s->p->table, full, s->n_rows, s->width ? 2 : 1, dim));
        if (s->p->initial) {
            attncl__initial_fill(s->p->initial, full, init, s->rows + used, count);
            return ATTNCL_OK;
        }
        const attncl_array *a = attncl_safetensors_find(s->p->file, full);
        assert(a); // the list has been checked
        return attncl__param_read_floats(s->p->file, a, s->rows + used);
    }
    memset(s->rows + used, 0, count * sizeof *s->rows);
    return ATTNCL_OK;
}

void attncl__param_stack_add(struct param_stack *s, const char *name, struct param_init init,
                             int64_t n_rows)
{
    struct params *p = s->p;
    const int64_t dim[2] = {n_rows, s->width};
    const char *full = name ? attncl__params_name(p, name) : NULL;
    if (p->list && name && p->status == ATTNCL_OK)
        p->status = attncl__param_list_add(p->list, full, s->width ? 2 : 1, dim, PARAM_REQUIRED);
    else if (!p->graph && !p->list && p->status == ATTNCL_OK)
        p->status = load_rows(s, full, &init, n_rows);
    s->n_rows += n_rows;
}

attncl_value attncl__param_stack_end(struct param_stack *s)
{
    struct params *p = s->p;
    const int64_t dim[2] = {s->n_rows, s->width};
    const int rank = s->width ? 2 : 1;
    const char *full = attncl__params_name(p, s->name);
    if (p->graph)
        return attncl__params_fetch(p, full);
    if (!p->list && p->status == ATTNCL_OK)
        p->status = attncl__param_table_add(p->table, full, ATTNCL_F32, rank, dim, s->rows);
    attncl__free(s->rows);
    s->rows = NULL;
    return ATTNCL_NONE_VALUE;
}
