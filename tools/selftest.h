// SPDX-License-Identifier: MIT
// Checks of attncl selftest: results of the device against double precision on the host.
#ifndef ATTNCL_TOOL_SELFTEST_H
#define ATTNCL_TOOL_SELFTEST_H

#include "support/op_spec.h"
#include "tool.h"

enum { OUTCOME_BYTES = 512, OUTCOME_NAME_BYTES = 40 };
struct outcome {
    char op[OUTCOME_NAME_BYTES];
    double worst;                // the largest difference, divided by its tolerance
    char message[OUTCOME_BYTES]; // what is wrong; "": nothing
};

// Compares one element.  A value that is not finite, such as one that no kernel wrote, counts as infinitely wrong.
void outcome_compare(struct outcome *o, const char *what, int64_t at, double got, double want,
                     double allowed);

enum check_sizes {
    CHECK_USUAL,
    CHECK_BRIEF, // only attention and products, of several tiles
    CHECK_LARGE, // the usual sizes, those of CHECK_BRIEF, and products of 1400
};

struct op_check {
    enum check_sizes sizes;
    bool full;    // also the spec's full sizes
    double times; // factor of the tolerance
};

// Checks an op as its spec describes it.  Returns TOOL_OK even if the check fails, which the outcome says.
int check_op(const struct op_spec *spec, attncl_context *context, const struct op_check *check,
             struct outcome *ret);

// Whether CHECK_BRIEF checks the op.
bool is_brief_op(const struct op_spec *spec);

// A language model.  check_decoding() compares steps of decoding with a run of all positions, whose ops the other checks
// cover; check_gradients() compares gradients of the loss with its finite differences.
struct model_check {
    const char *op, *config;
};

extern const struct model_check selftest_decodings[], selftest_trainings[];
extern const size_t selftest_n_decodings, selftest_n_trainings;

int check_decoding(const struct model_check *d, attncl_context *context, struct outcome *ret);
int check_gradients(const struct model_check *d, attncl_context *context, struct outcome *ret);

#endif
