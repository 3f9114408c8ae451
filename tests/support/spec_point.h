// SPDX-License-Identifier: MIT
// Problems of an op spec: arrays from sizes and kinds of data, what must come out of them, and by how much results may be
// off.  Neither Check nor a device is needed: tests of ops, random graphs, offline kernels and `attncl selftest` share it.
#ifndef ATTNCL_TEST_SPEC_POINT_H
#define ATTNCL_TEST_SPEC_POINT_H

#include "support/op_spec.h"

// An input or output as it is declared.
struct spec_slot {
    char name[24], low[16], high[16]; // of integers; low alone: the share of ones of a mask
    char axes[32];                    // letters, digits that are extents, sums of these with '+'
    bool present, any_rank;           // the first axis may be any number of axes
    bool any_type, ranged;
    attncl_dtype dtype;
};

struct spec_sizes {
    int rank[SPEC_LETTERS]; // -1: the letter is not used
    int64_t dim[SPEC_LETTERS][ATTNCL_MAX_RANK];
};

struct spec_point {
    const struct op_spec *spec;
    const struct op_case *c;
    int n_in, n_out;
    struct spec_slot in_slot[SPEC_MAX_IN], out_slot[SPEC_MAX_OUT];
    struct spec_sizes sizes;
    unsigned kind;   // the bit of enum spec_data
    unsigned state;  // bits of the inputs that the op updates in place
    unsigned wanted; // bits of the inputs whose gradients are asked for
    bool view;       // inputs are views, in reports
    char note[64];   // in reports; not empty: inputs are not finite
    struct host *in[SPEC_MAX_IN], *out[SPEC_MAX_OUT], *dy[SPEC_MAX_OUT]; // NULL: absent
};

// Of NORMAL data, without sizes and state.
struct spec_point spec_point_of(const struct op_spec *spec, const struct op_case *c);
// Puts the declarations of `with` (NULL: none) in the place of those of their names.
void spec_declare(struct spec_point *p, const char *with);
// The k-th combination of "R=1,3 C=7,2x5; R=4 C=-"; false behind the last one.
bool spec_sizes_at(const char *text, int k, struct spec_sizes *ret);
// Of the case: "" where it has none.
const char *spec_sizes_text(const struct spec_point *p, bool full);
int spec_shape(const struct spec_slot *s, const struct spec_sizes *sizes, int64_t *dim); // the rank
double spec_number(const struct spec_point *p, const char *text); // "-2", "C", "S+10"
// "softmax_fwd plain, R=3 C=7".
void spec_describe(const struct spec_point *p, char text[SPEC_TEXT_BYTES]);
// The inputs that have gradients.
unsigned spec_wanted(const struct spec_point *p);

// Makes in, out and dy; ends the life of all host tensors before.
void spec_fill(struct spec_point *p);

// What must come out: of output i at i, of the state at input i, and the gradients.
struct spec_expected {
    struct host *out[SPEC_MAX_OUT], *state[SPEC_MAX_IN], *dx[SPEC_MAX_IN], *size[SPEC_MAX_IN];
    struct host *reach[SPEC_MAX_OUT], *dx_reach[SPEC_MAX_IN]; // NULL: of nothing special
};
void spec_expect(const struct spec_point *p, struct spec_expected *ret);

enum spec_result { SPEC_OUT, SPEC_STATE, SPEC_DX };
// Compares output i, the state at input i or the gradient of input i.
void spec_compare(const struct spec_point *p, const struct spec_expected *e, enum spec_result which,
                  int i, const struct host *got);

// What was found since it was set to {0}.
struct spec_tally {
    bool is_quiet; // else reports go to stderr
    double times;  // of the tolerance is allowed; 0: once
    int n_compared, n_wrong;
    double worst;                // error, of what is allowed
    char first[SPEC_TEXT_BYTES]; // the first report
};
extern struct spec_tally spec_tally;
void spec_wrong(const struct spec_point *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// d sum(out . dy) / d in[k] by central differences in double.  `out` receives the outputs; NULL outputs or dy do not count.
struct host *finite_differences(ref_forward forward, const void *params, struct host *const *in,
                                struct host *const *out, struct host *const *dy, int n_out, int k);

#endif
