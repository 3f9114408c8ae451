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

// Shapes in, shapes out.
struct op_sig {
    const struct device_caps *caps; // NULL while a graph is built; set when scratch is asked for
    const void *params;             // struct CLASS_params
    int n_in, n_out;                // of the class
    struct tensor_desc *in;         // dtype NONE where an optional input is absent
    struct tensor_desc *out;        // dtype NONE: absent, such as an absent input's gradient
    bool save_for_backward; // a gradient reads the class's saved outputs: describe and write them
    const struct op_class *cls;
    struct axes *axes; // while infer runs: the extents that the letters of its inputs have
};

// The same, with memory.
struct op_call {
    struct op_sig sig;
    const struct span *in, *out;
    struct span scratch; // absent when the op asked for none
};

// What feeds a gradient op and where its results go, as data; autodiff/backward.c alone adds nodes.
//
//   REF_X(i)    input i of the forward op; absent where that is absent
//   REF_Y(i)    its output i; absent where that is absent
//   REF_DY(i)   the gradient of output i.  An output without a gradient is absent where the gradient
//               op allows that, zeros elsewhere; a rule without any REF_DY is skipped
//   REF_DX(i)   the gradient of input i, of its shape or of as many elements; several are summed
//   REF_TEMP(i) a temporary: the result of an earlier rule of the same table, of N_GRAD_TEMPS
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

// OP_X for the class X of each line of the list.  Rules name ops by number, so that the file of an op
// depends on no other's.
enum op_id {
    OP_NONE,
#define OP(file, cls, ...) OP_##cls,
#include "op/op_list.def"
#undef OP
    N_OP_IDS
};

// One rule of the backward pass.  It is applied when one of its results is needed; an input that no
// rule of the class covers has no gradient, and requesting it is the caller's mistake.
struct grad_rule {
    enum op_id op;    // OP_NONE: out[0] is in[0] itself, the shape aside
    bool same_params; // the op's parameters are the forward op's; else it has none
    struct grad_ref in[GRAD_MAX_IN];
    struct grad_ref out[GRAD_MAX_OUT];
    // Whether the rule is for this node at all; NULL: for every one.
    bool (*when)(const struct op_sig *forward);
    // Only without op: the gradient of `input` is this view of in[0]; NULL: all of it.
    void (*part)(const struct op_sig *forward, int input, struct tensor_desc *view);
};

// An input or output of a class.  Other than with STRIDED or ANY_VIEW, inputs reach launch contiguous
// with start 0.
enum op_arg_flag {
    F32,
    I32,
    U8,
    STORED,    // F32, F16 or BF16
    SAME_TYPE, // the type of the input before it
    ANY_TYPE,  // infer says which
    TYPE_MASK = 7,
    OPTIONAL = 1 << 3,   // may be absent; an output is, unless infer sets its dtype
    STRIDED = 1 << 4,    // input: may start anywhere, its rows one stride apart (attncl__desc_rows)
    ANY_VIEW = 1 << 5,   // input: may be any view at all, with strides as they come
    STATE = 1 << 6,      // input: the op updates it in place
    SHAPE_ONLY = 1 << 7, // input: only its shape counts, no gradient reaches it
    OR_QUANTISED = 1 << 9, // input with STORED: Q8 and Q4, too
    OR_U8 = 1 << 10,       // the same: U8, rows in 8 bits (op/attention/q8_row.h)
    FOR_BACKWARD = 1 << 8  // output: absent unless sig->save_for_backward
};
struct op_arg {
    const char *name;
    unsigned flags;
    const char *shape; // letters (base/shape_spec.h); NULL: infer checks or describes it
};                     // of an output "=x": like input x, absent where that is

struct op_class {
    const char *name;
    size_t params_bytes;
    const struct op_arg *in, *out;
    int n_in, n_out;
    const char *int_axes;    // letters of axes that kernels count with int; NULL: none
    const char *filled_axes; // the same of axes that must not be empty
    // Checks parameters and limits; sets the letters that only outputs have (sig->axes) and the types of
    // optional outputs.  Called on contiguous and on strided inputs alike.  NULL: shapes are enough.
    attncl_status (*infer)(struct op_sig *sig);
    // Bytes of scratch; NULL: none.
    attncl_status (*scratch)(const struct op_sig *sig, size_t *bytes_ret);
    // Appends the kernels.  Never called when an output is empty, unless the op has state.
    attncl_status (*launch)(struct launcher *l, const struct op_call *call);
    struct gemm (*gemm)(const struct op_call *call); // of those with GEMM_OP (op/matmul/matmul.h)
    // For reports (attncl__op_cost): floating-point operations, NULL: none; and elements moved at least of
    // inputs and then of outputs, NULL: all, of a state twice, of SHAPE_ONLY none.  Both are sums of products,
    // "4SBH + 2y": numbers, letters, elements x of input 0, y and z of outputs 0 and 1, and p, what `pairs` says.
    const char *flop, *moved[MAX_MOVED];
    double (*pairs)(const struct op_sig *sig);
    // Changes what those cannot say.
    void (*cost)(const struct op_sig *sig, double *flop_ret, double *bytes_ret);

    const struct grad_rule *grad;
    int n_grad;
};

// Every op class: by name, NULL when there is none; and by its op_id, where 0 is none.
const struct op_class *attncl__op_find(const char *name);
extern const struct op_class *const attncl__op_table[];

// `.name = OP_CLASS(softmax_fwd)` sets the size of the parameters too, `.in = OP_IN(...)` the
// number of inputs, `.out = OP_OUT(...)` of outputs, `.grad = GRAD_RULES(table)` of rules.
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
// The inputs with a flag, bit by bit.
unsigned attncl__op_inputs(const struct op_class *cls, enum op_arg_flag flag);

// For infer.  Input i has this shape, where one is not declared or too little.
attncl_status attncl__check_shape(const struct op_sig *sig, int i, const char *shape);
// Describes output i, F32, where no shape is declared.
attncl_status attncl__make_output(struct op_sig *sig, int i, const char *shape);
// ERR_SHAPE unless input `part` has the last axes of input `all`, whose elements an int counts.
attncl_status attncl__check_last_axes(const struct op_sig *sig, int all, int part);
// Each letter's extent is min to max; the product of the letters' extents is at most `max`, as
// is each; extent `a` is at most extent `b`, or b is unknown.
attncl_status attncl__check_axes(const struct op_sig *sig, const char *letters, int64_t min,
                                 int64_t max);
attncl_status attncl__check_product(const struct op_sig *sig, const char *letters, int64_t max);
attncl_status attncl__check_at_most(const struct op_sig *sig, char a, char b);

// ERR_ARGUMENT unless there is an activation of the number that is the first parameter.
attncl_status attncl__check_activation(struct op_sig *sig);
// ERR_ARGUMENT unless p is in [0, 1], the site fits a word, `step` is there where p is not 0, and `n`
// entries from batch_begin on are part of batch_total, where that is given.
attncl_status attncl__check_dropout(const struct dropout_fwd_params *mask,
                                    const struct tensor_desc *step, int64_t n);
// Of scores of attention; 0: none.
attncl_status attncl__check_softcap(float softcap);

// ERR_SHAPE unless an axis fits the int that kernels count columns with.
attncl_status attncl__check_width(const char *name, int64_t width);

#endif
