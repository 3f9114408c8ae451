// SPDX-License-Identifier: MIT
// One mathematical operation: its shapes, scratch, launch and gradient rule.  An op never sees a
// graph, a layer or an OpenCL handle.
//
// Adding an op: lib/op/FAMILY/X.c, cl/FAMILY/X.cl, tests/ref/X.c, tests/op/FAMILY/test_X.c, and one
// line in lib/op/op_list.def.
#ifndef ATTNCL_OP_OP_H
#define ATTNCL_OP_OP_H

#include "base/shape_spec.h"
#include "launch/launch.h"

enum { VIEW_SCATTER_ADD_MAX_IN = 10, MAX_MOVED = 10 };

// The parameter struct of each op class, `struct CLASS_params`, from its line in op_list.def.
#define NO_PARAMS char none;
#define OP(file, cls, ...)                                                                         \
    struct cls##_params {                                                                          \
        __VA_ARGS__                                                                                \
    };
#include "op/op_list.def"
#undef OP

struct op_class;
struct gemm;

// An op's parameters, and the shapes of its inputs and outputs.
struct op_sig {
    const struct device_caps *caps; // NULL while a graph is built; set when memory is planned
    const void *params;             // struct CLASS_params
    int n_in, n_out;                // of the class
    struct tensor_desc *in;         // dtype NONE where an optional input is absent
    struct tensor_desc *out;        // dtype NONE: absent, such as an absent input's gradient
    bool save_for_backward;         // describe and write the outputs flagged FOR_BACKWARD
    const struct op_class *cls;
    struct axes *axes; // extents of the inputs' letters; only while infer runs
};

// A signature with memory.
struct op_call {
    struct op_sig sig;
    const struct span *in, *out;
    struct span scratch; // absent if the op needs none
};

// Inputs and results of a gradient op, as data; only autodiff/backward.c adds nodes.
//
//   REF_X(i)    input i of the forward op, absent if that is
//   REF_Y(i)    output i of the forward op, absent if that is
//   REF_DY(i)   the gradient of output i.  If there is none: absent if the gradient op allows that,
//               else zeros.  A rule whose REF_DYs are all missing is skipped
//   REF_DX(i)   the gradient of input i, of its shape or of as many elements; several are summed
//   REF_TEMP(i) a temporary, i < N_GRAD_TEMPS: the result of an earlier rule of the same table
enum grad_ref_kind { REF_NONE, REF_KIND_X, REF_KIND_Y, REF_KIND_DY, REF_KIND_DX, REF_KIND_TEMP };
struct grad_ref {
    enum grad_ref_kind kind;
    int index;
};
#define GRAD_REF(kind, i)                                                                          \
    {                                                                                              \
        (kind), (i)                                                                                \
    }
#define REF_X(i)    GRAD_REF(REF_KIND_X, i)
#define REF_Y(i)    GRAD_REF(REF_KIND_Y, i)
#define REF_DY(i)   GRAD_REF(REF_KIND_DY, i)
#define REF_DX(i)   GRAD_REF(REF_KIND_DX, i)
#define REF_TEMP(i) GRAD_REF(REF_KIND_TEMP, i)
enum { N_GRAD_TEMPS = 2, GRAD_MAX_IN = 13, GRAD_MAX_OUT = 6 };

// OP_X for each class X of the list.  Rules name ops by number, so op files do not depend on each
// other.
enum op_id {
    OP_NONE,
#define OP(file, cls, ...) OP_##cls,
#include "op/op_list.def"
#undef OP
    N_OP_IDS
};

// One rule of the backward pass, applied when one of its results is needed.  An input that no rule of
// the class covers has no gradient; requesting it is the caller's mistake.
struct grad_rule {
    enum op_id op;    // OP_NONE: out[0] is in[0], perhaps reshaped
    bool same_params; // the op has the forward op's parameters; else none
    struct grad_ref in[GRAD_MAX_IN];
    struct grad_ref out[GRAD_MAX_OUT];
    // Whether the rule applies to this node; NULL: always.
    bool (*when)(const struct op_sig *forward);
    // Only with OP_NONE: describes the view of in[0] that is the gradient of `input`; NULL: all of it.
    void (*part)(const struct op_sig *forward, int input, struct tensor_desc *view);
};

// An input or output of a class.  Unless flagged STRIDED or ANY_VIEW, inputs reach launch contiguous
// with start 0.
enum op_arg_flag {
    F32,
    I32,
    U8,
    STORED,    // F32, F16 or BF16
    SAME_TYPE, // the type of the input before it
    ANY_TYPE,  // infer checks or sets it
    TYPE_MASK = 7,
    OPTIONAL = 1 << 3,   // may be absent; an output is, unless infer sets its dtype
    STRIDED = 1 << 4,    // input: may start anywhere, its rows one stride apart (attncl__desc_rows)
    ANY_VIEW = 1 << 5,   // input: may be a view with any strides
    STATE = 1 << 6,      // input: the op updates it in place
    SHAPE_ONLY = 1 << 7, // input: only its shape is used, and it gets no gradient
    FOR_BACKWARD = 1 << 8, // output: absent unless sig->save_for_backward
    OR_QUANTISED = 1 << 9, // with STORED: also Q8 and Q4
    OR_U8 = 1 << 10        // with STORED: also U8, 8-bit rows (op/attention/q8_row.h)
};
struct op_arg {
    const char *name;
    unsigned flags;
    // Letters (base/shape_spec.h); an output "=x" is like input x, absent if that is.  NULL: infer
    // checks or describes it.
    const char *shape;
};

struct op_class {
    const char *name;
    size_t params_bytes;
    const struct op_arg *in, *out;
    int n_in, n_out;
    const char *int_axes;    // letters of axes that kernels count with int; NULL: none
    const char *filled_axes; // letters of such axes that must not be empty
    // Checks parameters and limits; sets letters that only outputs have (sig->axes) and the types of
    // optional outputs.  Inputs may be strided.  NULL: the declared shapes are enough.
    attncl_status (*infer)(struct op_sig *sig);
    // Bytes of scratch; NULL: none.
    attncl_status (*scratch)(const struct op_sig *sig, size_t *bytes_ret);
    // Appends the kernels.  Never called when an output is empty, unless the op has state.
    attncl_status (*launch)(struct launcher *l, const struct op_call *call);
    struct gemm (*gemm)(const struct op_call *call); // set by GEMM_OP (op/matmul/matmul.h)
    // Cost for reports (attncl__op_cost), as sums of products like "4SBH + 2y": numbers, axis letters,
    // x the elements of input 0, y and z those of outputs 0 and 1, p the result of `pairs`.
    const char *flop; // floating-point operations; NULL: none
    const char
        *moved[MAX_MOVED]; // elements moved of each input, then of each output; NULL: all, twice
                           // for STATE, none for SHAPE_ONLY
    double (*pairs)(const struct op_sig *sig);
    // Adjusts the results of flop and moved.
    void (*cost)(const struct op_sig *sig, double *flop_ret, double *bytes_ret);

    const struct grad_rule *grad;
    int n_grad;
};

// Every op class: by name, NULL if unknown; by op_id, NULL at OP_NONE.
const struct op_class *attncl__op_find(const char *name);
extern const struct op_class *const attncl__op_table[];

// `.name = OP_CLASS(softmax_fwd)` also sets the size of the parameters; `.in = OP_IN(...)`,
// `.out = OP_OUT(...)` and `.grad = GRAD_RULES(table)` also set their number.
#define OP_CLASS(cls) #cls, .params_bytes = sizeof(struct cls##_params)
#define OP_ARGS(...)                                                                               \
    (const struct op_arg[])                                                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define OP_IN(...) OP_ARGS(__VA_ARGS__), .n_in = sizeof OP_ARGS(__VA_ARGS__) / sizeof(struct op_arg)
#define OP_OUT(...)                                                                                \
    OP_ARGS(__VA_ARGS__), .n_out = sizeof OP_ARGS(__VA_ARGS__) / sizeof(struct op_arg)
#define GRAD_RULES(rule) (rule), .n_grad = sizeof(rule) / sizeof(rule)[0]

#define OP(file, cls, ...) extern const struct op_class attncl__op_##cls;
#include "op/op_list.def"
#undef OP

void attncl__op_cost(const struct op_class *cls, const struct op_sig *sig, double *flop_ret,
                     double *bytes_ret);

// Checks inputs and parameters, fills sig->out.
attncl_status attncl__op_infer(const struct op_class *cls, struct op_sig *sig);
// Bit i: input i has the flag.
unsigned attncl__op_inputs(const struct op_class *cls, enum op_arg_flag flag);

// -- for infer

// ERR_SHAPE unless input i has this shape.
attncl_status attncl__check_shape(const struct op_sig *sig, int i, const char *shape);
// Describes output i as F32 of this shape.
attncl_status attncl__make_output(struct op_sig *sig, int i, const char *shape);
// ERR_SHAPE unless input `part` has the last axes of input `all` and at most INT32_MAX elements.
attncl_status attncl__check_last_axes(const struct op_sig *sig, int all, int part);
// ERR_SHAPE unless each letter's extent is in [min, max]; the extents and their product are at most
// `max`; the extent of a is at most that of b, if b's is known.
attncl_status attncl__check_axes(const struct op_sig *sig, const char *letters, int64_t min,
                                 int64_t max);
attncl_status attncl__check_product(const struct op_sig *sig, const char *letters, int64_t max);
attncl_status attncl__check_at_most(const struct op_sig *sig, char a, char b);

// ERR_ARGUMENT unless the first parameter is a valid activation.
attncl_status attncl__check_activation(struct op_sig *sig);
// ERR_ARGUMENT unless p is in [0, 1], the site fits 32 bits, `step` is present if p is not 0, and the
// `n` entries from batch_begin on are within batch_total, if that is set.
attncl_status attncl__check_dropout(const struct dropout_fwd_params *mask,
                                    const struct tensor_desc *step, int64_t n);
// ERR_ARGUMENT unless the soft cap is finite and at least 0 (none).
attncl_status attncl__check_softcap(float softcap);

// ERR_SHAPE unless `width` fits the int with which kernels count columns.
attncl_status attncl__check_width(const char *name, int64_t width);

#endif
