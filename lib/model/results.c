// SPDX-License-Identifier: MIT
//
// The results of a run: arrays that own their names and data.

#include <assert.h>
#include <string.h>

#include "model/model.h"

struct attncl_results {
    size_t n, capacity;
    struct result {
        attncl_array array;
        char *name;
        void *data;
    } * list;
};

attncl_status attncl__results_create(size_t capacity, attncl_results **ret)
{
    attncl_results *results = attncl__alloc_zero(sizeof *results);
    struct result *list = attncl__alloc_array(capacity, sizeof *list);
    if (!results || !list) {
        attncl__free(results);
        attncl__free(list);
        return FAIL(ATTNCL_ERR_NO_MEMORY, "results of %zu arrays", capacity);
    }
    *results = (attncl_results){.capacity = capacity, .list = list};
    *ret = results;
    return ATTNCL_OK;
}

attncl_status attncl__results_add(attncl_results *results, const char *name, attncl_dtype dtype,
                                  int rank, const int64_t *dim, void *data)
{
    assert(results->n < results->capacity);
    struct result *r = &results->list[results->n];
    struct tensor_desc d;
    TRY(attncl__desc_make(dtype, rank, dim, &d));
    char *copy = attncl__copy_text(name);
    REQUIRE(copy, ATTNCL_ERR_NO_MEMORY, "name of result %s", name);

    r->name = copy;
    r->data = data;
    r->array = (attncl_array){
        .name = copy, .dtype = dtype, .rank = rank, .data = data, .bytes = attncl__desc_bytes(&d)};
    memcpy(r->array.dim, d.dim, sizeof r->array.dim);
    ++results->n;
    return ATTNCL_OK;
}

size_t attncl_results_count(const attncl_results *results)
{
    return results ? results->n : 0;
}

const attncl_array *attncl_results_at(const attncl_results *results, size_t i)
{
    return results && i < results->n ? &results->list[i].array : NULL;
}

void attncl_results_destroy(attncl_results *results)
{
    if (!results)
        return;
    for (size_t i = 0; i < results->n; ++i) {
        attncl__free(results->list[i].name);
        attncl__free(results->list[i].data);
    }
    attncl__free(results->list);
    attncl__free(results);
}
