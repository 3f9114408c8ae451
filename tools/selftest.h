// SPDX-License-Identifier: MIT
// attncl selftest: what it computes on the device, and the same in double precision on the host.
#ifndef ATTNCL_TOOL_SELFTEST_H
#define ATTNCL_TOOL_SELFTEST_H

#include "support/op_spec.h"
#include "tool.h"

// How a check ended.
enum { OUTCOME_BYTES = 512, OUTCOME_NAME_BYTES = 40 };
struct outcome {
    char op[OUTCOME_NAME_BYTES];
    double worst;                // difference, of the tolerance
    char message[OUTCOME_BYTES]; // what is wrong; "" where nothing is
};

// One element; what is not finite, as what no kernel wrote is not, is the worst and stays.
void outcome_compare(struct outcome *o, const char *what, int64_t at, double got, double want,
                     double allowed);

enum check_sizes {
    CHECK_USUAL,
    CHECK_BRIEF, // sizes of several tiles alone, of attention and products
    CHECK_LARGE, // these too, and products of 1400
};

struct op_check {
    enum check_sizes sizes;
    bool full;    // the spec's full sizes too
    double times; // of the tolerance is allowed
};

// An op as its spec describes it.  TOOL_OK also where the check fails, which the outcome says.
int check_op(const struct op_spec *spec, attncl_context *context, const struct op_check *check,
             struct outcome *ret);

// Whether CHECK_BRIEF has sizes of it.
bool is_brief_op(const struct op_spec *spec);

// A language model: steps of decoding are compared with a run of all positions, whose ops the other checks
// compare with the host's; gradients of its loss with differences of that.
struct model_check {
    const char *op, *config;
};

extern const struct model_check selftest_decodings[], selftest_trainings[];
extern const size_t selftest_n_decodings, selftest_n_trainings;

int check_decoding(const struct model_check *d, attncl_context *context, struct outcome *ret);
int check_gradients(const struct model_check *d, attncl_context *context, struct outcome *ret);

#endif
