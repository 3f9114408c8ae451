// SPDX-License-Identifier: MIT
// One description of an op, beside its reference in tests/ref/OP.c.  op_spec.c makes of it the tests matches_the_reference,
// gradients_match, special_values, special_gradients, empty_axes and refusals of test op.OP; random graphs, the offline
// kernels, the table of errors and `attncl selftest` read it too.
//
//   OP_SPEC(softmax_fwd, .in = "x f32 R* C", .out = "y f32 R* C", .ref = softmax, .rel = 10, .smoke = "R=1,5 C=1,7");
//
// TEST_SIZES=full adds the full sizes, few leaves most out for the other variant of the kernels; TEST_SEED=N (0 without it)
// changes all random numbers.
#ifndef ATTNCL_TEST_OP_SPEC_H
#define ATTNCL_TEST_OP_SPEC_H

#include "attncl/dropout.h"
#include "attncl/graph.h"
#include "op/op.h"
#include "support/host.h"

// A reference, as an op calls it: outputs from inputs, in the op's order.
typedef void (*ref_forward)(const void *params, struct host *const *in, struct host *const *out);
// The op as users build it: outputs from values, absent ones null.  Leaves out[0] null where no public call is the case.
typedef void (*spec_build)(attncl_graph *g, const void *params, const attncl_value *in,
                           attncl_value *out);

enum { SPEC_MAX_IN = 16, SPEC_MAX_OUT = 6, SPEC_MAX_CASES = 40, SPEC_MAX_REFUSALS = 12 };
enum { SPEC_LETTERS = 26, SPEC_TEXT_BYTES = 512 };

// What the inputs hold; a run for each bit.  All before MASK_SPARSE are about the first F32 input without a range, row by
// row; all other inputs are N(0, 1) then, which is what every spec is run with.
enum spec_data {
    NORMAL = 1 << 0,    // N(0, 1)
    SPAN90 = 1 << 1,    // +-45: exponentials differ by all of float's range
    FAR = 1 << 2,       // 9912 to 10000, or the same below 0
    OFFSET = 1 << 3,    // N(0, 1) + 1, 100, 10000
    SCALED = 1 << 4,    // N(0, 1) times 1e-10, 1e15, 1
    PEAK = 1 << 5,      // one 1e4 among -1e4
    LIMITS = 1 << 6,    // one 3e38 among -3e38
    ALIKE = 1 << 7,     // all 5.5; 9999 and 10000
    RISING = 1 << 8,    // N(0, 1) + column / 8, or minus
    MINUS_INF = 1 << 9, // every other element -inf; all; all but the last
    TAILS = 1 << 10,    // +-86: where activations end
    NEAR_ZERO = 1 << 11,
    NAN_ROWS = 1 << 12,    // every third row
    MASK_SPARSE = 1 << 13, // U8 inputs: one in fifty, the first and the last of axis 0 see nothing
    MASK_LAST = 1 << 14,   // only the last key is visible
    MASK_NONE = 1 << 15,   // all 0
    INT_ENDS = 1 << 16,    // I32 inputs: the ends of their range
    END_OF_DATA = 1 << 17
};

// Where results may differ from the reference in what is not finite (include/attncl/gradient.h).
enum spec_leeway {
    MEETS = 1,   // infinities meet in sums: NaN and infinity stand for each other
    SPREADS = 2, // NaN may also reach where the reference has a finite number
    UNSEEN = 4   // gradients alone: need not reach where the reference has NaN times a weight of 0
};

// Gradients of the inputs, which are zeros before; dx[i] is there where in[i] is.
typedef void (*spec_backward)(const void *params, struct host *const *in, struct host *const *dy,
                              struct host *const *dx);

// One problem, as an op's own bound of errors sees it.
struct spec_point;
const void *spec_params(const struct spec_point *p);
const struct host *spec_in(const struct spec_point *p, int i); // NULL: absent
const struct host *spec_dy(const struct spec_point *p, int i);
double spec_extent(const struct spec_point *p,
                   char letter);              // the product, where it is several axes
double spec_span(const struct spec_point *p); // of the data within a row, where exponentials count

// Fills in what each element may be off by.  k: the output; in gradients the input; n_out + i: the state at input i.
typedef void (*spec_bound)(const struct spec_point *p, int k, const struct host *want,
                           struct host *allowed);

// The same op with other parameters, inputs or sizes.
struct op_case {
    const char *name;
    const void *params;
    const char *with; // declarations that replace the spec's, and make optional ones present
    const char *grad; // instead of the spec's; "": no gradients
    const char *smoke, *full, *special, *gpu; // instead of the spec's; special or gpu "": none
    unsigned data;                            // instead of the spec's
    double rel;                               // instead of the spec's
    unsigned leeway;                          // where inputs are not finite
    void (*prepare)(struct host *const *in);  // changes what inputs hold, which may be none
};

// Parameters or inputs that must be refused, beside the generated refusals.
struct op_refusal {
    attncl_status status;
    const char *words;  // of the message
    const void *params; // NULL: the first case's
    const char *with;
    const char *sizes; // instead of the first smoke size
};

struct op_spec {
    const char *op, *file; // without a class of this name: what `build` builds
    int line;
    // "x f32 R* C; lens? i32:0:C R": name, type, axes; in the class's order.
    //   name?        optional: absent unless a case's `with` declares it
    //   f32+         also takes other types: no refusal of them is expected
    //   f32:0.5:2    uniform in a range; i32:0:C: integers below the extent C (also C+1, C-1); u8:0.5: share of ones
    //   R* C 3 1+B   axes: any number of them (in front or behind), one, one of 3, a sum
    // State of the class, which it updates in place, starts with random values as any input; `ref` updates in[i].
    // F16 and BF16 inputs are constants.  Results that are not F32 must be equal.
    // A message of a refusal has the name of the input; value3 is "value" there.
    const char *in, *out;
    ref_forward ref;
    spec_build build;      // NULL: a part of others, or of no use by itself
    const char *grad;      // names of the inputs that have a gradient, "x weight"
    spec_backward ref_bwd; // NULL: central differences of `ref`.  Small sizes compare both
    double rel, abs,
        tiny; // error in roundings of 2^-24: of a result, of the largest one; and the absolute one
    char chain;       // the letter of the longest sum: log2 n + n / 256 roundings more in `rel`
    bool spans;       // spec_span() roundings more in `rel`
    spec_bound allow; // instead of these
    double grad_tolerance;    // of the largest element, or of grad_sizes; 0: 1e-5
    spec_backward grad_sizes; // ref_bwd with all terms taken as positive
    spec_bound allow_grad;    // instead of these
    const char *smoke,
        *full; // "R=1,3 C=7,257; R=2x5 C=-": all combinations of a line; 2x5: two axes, -: none
    const char *
        special; // sizes at which NaN and infinity are put into each F32 input and dy; NULL: none are
    // What GPUs compute: attncl-gpu-variants launches the op and the gradients of `grad` with these sizes, without a GPU.
    const char *gpu;
    unsigned data,
        grad_data;   // which of `data` gradients are computed with, beside masks and INT_ENDS
    unsigned leeway; // of gradients
    // `ref` and `ref_bwd` with 0 times what has weight 0: where they are not finite, a result may be NaN too.
    ref_forward reach;
    spec_backward reach_bwd;
    const char *nonzero; // letters that must not be 0; all others may
    const char *unequal; // letters of which one input's extent may differ from another's
    struct op_case cases[SPEC_MAX_CASES]; // none: one without parameters
    struct op_refusal refusals[SPEC_MAX_REFUSALS];
};

// A spec_build of one expression in g, params and in.
#define SPEC_BUILD(name, ...)                                                                      \
    static void name(attncl_graph *g, const void *params, const attncl_value *in,                  \
                     attncl_value *out)                                                            \
    {                                                                                              \
        (void)params;                                                                              \
        out[0] = __VA_ARGS__;                                                                      \
    }

// A dropout as public calls take it (ref/dropout.c).
attncl_dropout_desc spec_dropout(const struct dropout_fwd_params *p, attncl_value step);

#define SPEC_PARAMS(type, ...) (&(const struct type##_params){__VA_ARGS__})
#define OP_SPEC(name, ...)                                                                         \
    static const struct op_spec spec_##name = {                                                    \
        .op = #name, .file = __FILE__, .line = __LINE__, __VA_ARGS__};                             \
    __attribute__((constructor)) static void spec_##name##_register(void)                          \
    {                                                                                              \
        spec_add(&spec_##name);                                                                    \
    }                                                                                              \
    struct spec_##name

void spec_add(const struct op_spec *spec);
const struct op_spec *spec_at(int i);            // NULL after the last
const struct op_spec *spec_find(const char *op); // NULL: there is none

#endif
