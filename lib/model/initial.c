// SPDX-License-Identifier: MIT
//
// Initial values by Philox 4x32-10: key = seed; counter = (number of the parameter, low and high word
// of the element's index, 0).  Uniform numbers are the high 24 bits of word 0; normal ones come from
// words 0 and 1 by Box-Muller.  All in double, rounded once.

#include "model/params.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"

struct param_init attncl__init_fan_in(int64_t n)
{
    const double bound = 1 / sqrt((double)n);
    return INIT_UNIFORM(-bound, bound);
}

struct param_init attncl__init_xavier(int64_t in, int64_t out)
{
    const double bound = sqrt(6 / ((double)in + (double)out));
    return INIT_UNIFORM(-bound, bound);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

attncl_status attncl__initial_create(uint64_t seed, const struct param_list *list,
                                     struct initial *ret)
{
    attncl_status status = ATTNCL_OK;
    const char **names = attncl__alloc_array(list->n, sizeof *names);
    size_t n = 0;

    *ret = (struct initial){.seed = seed};
    REQUIRE(names, ATTNCL_ERR_NO_MEMORY, "names of %zu parameters", list->n);
    for (size_t i = 0; i < list->n; ++i)
        if (!list->list[i].optional) // a new model has no optional parameters
            names[n++] = list->list[i].name;
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0; i < n; ++i)
        TRY_DONE(attncl__name_add(&ret->numbers, names[i], (int)i));
done:
    attncl__free(names);
    if (status != ATTNCL_OK)
        attncl__initial_free(ret);
    return status;
}

void attncl__initial_free(struct initial *initial)
{
    attncl__name_table_free(&initial->numbers);
}

// In [0, 1).
static double make_uniform(const uint32_t word[4])
{
    return (word[0] >> 8) * 0x1p-24;
}

static double make_normal(const uint32_t word[4])
{
    const double pi = 3.14159265358979323846;
    const double radius = sqrt(-2 * log((word[0] + 1.0) * 0x1p-32)); // of (0, 1]
    return radius * cos(2 * pi * (word[1] * 0x1p-32));
}

void attncl__initial_fill(const struct initial *initial, const char *name,
                          const struct param_init *init, float *data, size_t count)
{
    const int number = attncl__name_find(&initial->numbers, name);
    const uint32_t key[2] = {(uint32_t)initial->seed, (uint32_t)(initial->seed >> 32)};
    const double low = init->low, range = init->high - init->low;

    assert(number >= 0); // the list has it
    for (size_t i = 0; i < count; ++i) {
        const uint32_t counter[4] = {(uint32_t)number, (uint32_t)i, (uint32_t)((uint64_t)i >> 32),
                                     0};
        uint32_t word[4];
        if (init->kind == INIT_KIND_CONSTANT) {
            data[i] = (float)low;
            continue;
        }
        attncl__philox4x32(counter, key, word);
        data[i] = (float)(init->kind == INIT_KIND_NORMAL ? low + init->high * make_normal(word)
                                                         : low + range * make_uniform(word));
    }
}
