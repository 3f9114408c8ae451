// SPDX-License-Identifier: MIT
// Golden files (tests/data, written by generate.py): a model file that also holds its inputs, as
// input.NAME, and what PyTorch computes for them in float64, as expected.NAME.
#ifndef ATTNCL_TEST_GOLDEN_H
#define ATTNCL_TEST_GOLDEN_H

#include "attncl/model.h"
#include "attncl/safetensors.h"
#include "support/test.h"

enum { GOLDEN_MAX_INPUTS = 8, GOLDEN_PATH_BYTES = 512 };

struct golden {
    char path[GOLDEN_PATH_BYTES];
    attncl_safetensors *file;
    attncl_array inputs[GOLDEN_MAX_INPUTS]; // names without the prefix; data borrowed from the file
    size_t n_inputs;
    bool leaves_gradients; // the file's cotangents and gradients are not part of the case
};

// "lm_gmlp"; where only the file of the gradients is there, that one without them.
void golden_load(struct golden *ret, const char *name);
void golden_free(struct golden *golden);

// The same with the file's model.
attncl_model *golden_open(struct golden *ret, const char *name);
void golden_close(struct golden *golden, attncl_model *model);

attncl_array *golden_input(struct golden *golden, const char *name);
// That input, or else one more, a copy of the first, of this name.
attncl_array *golden_give(struct golden *golden, const char *name);
const attncl_array *golden_expected(const struct golden *golden, const char *name);

// Fails the test unless the results are all that is expected, each within `tolerance` of its
// largest value; gradients within 2^-19 of the largest of them besides.
void golden_check(const struct golden *golden, const attncl_results *results, double tolerance);

// The same of one result, whose name is what the file expects it as.
void golden_check_one(const struct golden *golden, const attncl_array *got, double tolerance);

// Visits the names of all files.
void golden_each(void (*visit)(const char *name, void *user), void *user);

// Opens and runs a file's model twice: results are as golden_check() says and the same bits.  Of a file with gradients, NAME_grad,
// the case without them too.
void golden_run(const char *name, double tolerance);

// The model file once more at `path`, changed.  NULL members change nothing.
struct golden_change {
    const char *arch, *config; // metadata instead of the file's; "" leaves the entry out
    const char *parameter;     // this parameter ...
    const attncl_array *with;  // ... becomes this, or is left out
};
void golden_rewrite(const struct golden *golden, const char *path, struct golden_change change);

#endif
