// SPDX-License-Identifier: MIT
// Every parameter that an architecture's load() names, with its shape; with a file, what is wrong
// with each.  Needs no device.
#ifndef ATTNCL_MODEL_PARAM_LIST_H
#define ATTNCL_MODEL_PARAM_LIST_H

#include <stdbool.h>

#include "attncl/safetensors.h"
#include "base/name_table.h"

struct listed_param {
    char *name;
    int rank;
    int64_t dim[ATTNCL_MAX_RANK];
    const char *type;
    bool optional; // a file may lack it
    bool fixed;    // a buffer: nothing to train
    bool is_missing;
    char *problem; // "is missing", "has shape [2], expected [3]"; NULL: none, or there is no file
};

struct param_list {
    const attncl_safetensors *file; // NULL: none
    struct listed_param *list;
    size_t n, capacity, n_problems;
    struct name_table names;
    bool is_cut; // there are more problems than anyone reads: the rest was not listed
};
void attncl__param_list_free(struct param_list *l);

enum param_kind { PARAM_REQUIRED, PARAM_OPTIONAL_WEIGHT, PARAM_BUFFER };

// Appends a parameter and checks the file's.  Errors: ERR_SHAPE for an impossible shape, ERR_FORMAT
// when the list is full.
attncl_status attncl__param_list_add(struct param_list *l, const char *name, int rank,
                                     const int64_t *dim, enum param_kind kind);

// Appends an optional mask BOOL [n, n]; the file's must be |i - j| < window.
attncl_status attncl__param_list_add_window(struct param_list *l, const char *name, int64_t n,
                                            int64_t window);

// ERR_FORMAT with the first problems and the number of the others, ATTNCL_OK when there is none.
attncl_status attncl__param_list_check(const struct param_list *l);

#endif
