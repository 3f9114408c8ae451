// SPDX-License-Identifier: MIT
//
// The checks of attncl selftest: each op as a graph, and as its formula in double precision.

#include "selftest.h"

int64_t check_count(const struct check_array *a)
{
    int64_t count = 1;

    for (int i = 0; i < a->rank; i++)
        count *= a->dim[i];
    return count;
}

int64_t check_last_axis(const struct check_array *a)
{
    return a->dim[a->rank - 1];
}

#define A(type, low, high, ...)                                                                    \
    {                                                                                              \
        ATTNCL_##type, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__},   \
            low, high                                                                              \
    }
#define F(low, high, ...) A(F32, low, high, __VA_ARGS__)
#define I(high, ...)      A(I32, 1, high, __VA_ARGS__)
#define MASK(...)         A(U8, 0, 2, __VA_ARGS__)
#define OUT(...)          F(0, 0, __VA_ARGS__)
#define INDICES(...)      A(I32, 0, 0, __VA_ARGS__)
#define ROWS(...)         F(-3, 3, __VA_ARGS__)
#define UNIT(...)         F(-0.5, 0.5, __VA_ARGS__)

// `name` is that of check_build_ and check_ref_.
#define CHECK(op, name, kind, causal, out, ...)                                                    \
    {                                                                                              \
        op, check_build_##name, check_ref_##name, true, kind, causal, out,                         \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define RESULT(op, name, kind, out, ...)                                                           \
    {                                                                                              \
        op, check_build_##name, check_ref_##name, false, kind, 0, out,                             \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define ACTIVATION(name, kind)                                                                     \
    CHECK(name, activation, kind, 0, OUT(1031), ROWS(1031)),                                       \
        RESULT(name " of large values", activation, kind, OUT(257), F(-200, 200, 257))

// Widths on both sides of a vector, of a work-group and of what a GPU's registers hold.
const struct check selftest_checks[] = {
    CHECK("softmax", softmax, 0, 0, OUT(5, 37), ROWS(5, 37)),
    CHECK("softmax of wide rows", softmax, 0, 0, OUT(3, 1100), ROWS(3, 1100)),
    RESULT("softmax of large values", softmax, 0, OUT(5, 70), F(-9000, 9000, 5, 70)),
    CHECK("masked_softmax", masked, 0, 0, OUT(3, 4, 37), ROWS(3, 4, 37), I(37, 3)),
    CHECK("layer_norm", norm, 0, 0, OUT(9, 70), ROWS(9, 70), ROWS(70), ROWS(70)),
    CHECK("layer_norm of wide rows", norm, 0, 0, OUT(3, 1100), ROWS(3, 1100), ROWS(1100),
          ROWS(1100)),
    CHECK("cross_entropy", loss, 0, 0, OUT(7), ROWS(7, 70), I(70, 7)),
    RESULT("argmax", argmax, 0, INDICES(7), ROWS(7, 70)),
    ACTIVATION("gelu", ATTNCL_GELU),
    ACTIVATION("relu", ATTNCL_RELU),
    ACTIVATION("sigmoid", ATTNCL_SIGMOID),
    ACTIVATION("tanh", ATTNCL_TANH),
    ACTIVATION("silu", ATTNCL_SILU),
    ACTIVATION("gelu_tanh", ATTNCL_GELU_TANH),
    CHECK("bias_activate", biased, ATTNCL_GELU, 0, OUT(9, 37), ROWS(9, 37), ROWS(37)),
    CHECK("add", sum, 0, 0, OUT(1031), ROWS(1031), ROWS(1031)),
    CHECK("mul", product, 0, 0, OUT(1031), ROWS(1031), ROWS(1031)),
    CHECK("concat", concat, 0, 0, OUT(5, 40), ROWS(5, 19), ROWS(5, 21)),
    CHECK("copy of a transposed view", transpose, 0, 0, OUT(37 * 19), ROWS(37, 19)),
    CHECK("slice", slice, 0, 0, OUT(3, 5, 19), ROWS(3, 11, 19)),
    CHECK("relative_shift", rotation, 0, 0, OUT(5, 38), ROWS(5, 38)),
    CHECK("embedding", embedding, 0, 0, OUT(9, 37), ROWS(11, 37), I(11, 9)),
    CHECK("linear of one row", linear, 0, 0, OUT(1, 67), ROWS(1, 65), ROWS(67, 65), ROWS(67)),
    CHECK("linear", linear, 0, 0, OUT(70, 67), ROWS(70, 65), ROWS(67, 65), ROWS(67)),
    CHECK("linear of one row, 16 bits", halves, ATTNCL_F16, 0, OUT(1, 67), ROWS(1, 65)),
    CHECK("linear, 16 bits", halves, ATTNCL_F16, 0, OUT(70, 67), ROWS(70, 65)),
    CHECK("linear, bfloat16", halves, ATTNCL_BF16, 0, OUT(70, 67), ROWS(70, 65)),
    RESULT("embedding, 16 bits", lookup, ATTNCL_F16, OUT(9, 37), I(11, 9)),
    CHECK("bmm", bmm, 0, 0, OUT(3, 19, 33), ROWS(3, 19, 17), ROWS(3, 17, 33)),
    CHECK("attention", attention, 0, 0, OUT(1, 2, 11, 24), ROWS(1, 2, 11, 24), ROWS(1, 2, 19, 24),
          ROWS(1, 2, 19, 24)),
    CHECK("causal attention", attention, 0, 1, OUT(1, 2, 11, 24), ROWS(1, 2, 11, 24),
          ROWS(1, 2, 19, 24), ROWS(1, 2, 19, 24)),
    CHECK("aft_full", aft, ATTNCL_AFT_FULL, 0, OUT(9, 2, 19), ROWS(9, 2, 19), ROWS(9, 2, 19),
          ROWS(9, 2, 19), ROWS(9, 9)),
    CHECK("aft_local", aft, ATTNCL_AFT_LOCAL, 1, OUT(19, 2, 19), ROWS(19, 2, 19), ROWS(19, 2, 19),
          ROWS(19, 2, 19), ROWS(19, 19)),
    CHECK("aft_simple", mixing, ATTNCL_AFT_SIMPLE, 0, OUT(9, 2, 19), ROWS(9, 2, 19), ROWS(9, 2, 19),
          ROWS(9, 2, 19)),
    CHECK("aft_conv", mixing, ATTNCL_AFT_CONV, 0, OUT(9, 2, 20), ROWS(9, 2, 20), ROWS(9, 2, 4),
          ROWS(9, 2, 20), ROWS(4, 5)),
    CHECK("aft_local of many positions", aft, ATTNCL_AFT_LOCAL, 0, OUT(150, 1, 4), ROWS(150, 1, 4),
          ROWS(150, 1, 4), ROWS(150, 1, 4), ROWS(150, 150)),
    CHECK("aft_simple of many positions", mixing, ATTNCL_AFT_SIMPLE, 1, OUT(150, 1, 4),
          ROWS(150, 1, 4), ROWS(150, 1, 4), ROWS(150, 1, 4)),
    CHECK("additive_attention", additive, 0, 0, OUT(2, 5, 21), ROWS(2, 5, 19), ROWS(2, 7, 19),
          ROWS(2, 7, 21), ROWS(19)),
    CHECK("gru", gru, 0, 0, OUT(4, 3, 17), ROWS(4, 3, 9), F(-0.5, 0.5, 51, 9), ROWS(51),
          F(-0.5, 0.5, 51, 17), ROWS(51)),
    CHECK("spatial_gate", gating, 0, 0, OUT(11, 2, 19), ROWS(11, 2, 38), ROWS(19), ROWS(19),
          ROWS(11, 11), ROWS(11)),
    CHECK("causal spatial_gate", gating, 0, 1, OUT(11, 2, 19), ROWS(11, 2, 38), ROWS(19), ROWS(19),
          ROWS(11, 11), ROWS(11)),
    CHECK("attention of some keys", attention, 0, 0, OUT(2, 2, 11, 24), ROWS(2, 2, 11, 24),
          ROWS(2, 2, 19, 24), ROWS(2, 2, 19, 24), I(19, 2)),
    CHECK("causal attention in a window", attention, 5, 1, OUT(1, 2, 19, 24), ROWS(1, 2, 19, 24),
          ROWS(1, 2, 19, 24), ROWS(1, 2, 19, 24)),
    CHECK("attention with a mask", attention, 0, 0, OUT(2, 2, 11, 24), ROWS(2, 2, 11, 24),
          ROWS(2, 2, 19, 24), ROWS(2, 2, 19, 24), MASK(11, 19, 2)),
    CHECK("aft_full with a mask", aft, ATTNCL_AFT_FULL, 0, OUT(9, 2, 19), ROWS(9, 2, 19),
          ROWS(9, 2, 19), ROWS(9, 2, 19), ROWS(9, 9), MASK(9, 9, 2)),
    CHECK("spatial_gate with a mask", gating, 0, 0, OUT(11, 2, 19), ROWS(11, 2, 38), ROWS(19),
          ROWS(19), ROWS(11, 11), ROWS(11), MASK(11, 11, 1)),
    CHECK("attention of many keys", attention, 0, 0, OUT(1, 1, 3, 24), ROWS(1, 1, 3, 24),
          ROWS(1, 1, 900, 24), ROWS(1, 1, 900, 24)),
    CHECK("attention_pooling", pooling, 0, 0, OUT(37), ROWS(50), ROWS(50), ROWS(37)),
    CHECK("feedback_attention", feedback, 0, 0, OUT(3, 32), ROWS(3, 32), UNIT(32, 32),
          ROWS(11, 3, 2, 16), ROWS(11, 3, 2, 16), UNIT(13, 2, 16), UNIT(2, 16), UNIT(32, 32),
          UNIT(32)),
    RESULT("adam", adam, 0, OUT(1031), ROWS(1031), ROWS(1031), F(0.1, 3, 1031), ROWS(1031),
           I(2, 1)),
    RESULT("adamw", adam, 1, OUT(1031), ROWS(1031), ROWS(1031), F(0.1, 3, 1031), ROWS(1031),
           I(2, 1)),
    RESULT("sgd", sgd, 0, OUT(1031), ROWS(1031), ROWS(1031), ROWS(1031), I(2, 1)),
    RESULT("clip_grad_norm", clip, 0, OUT(1031), ROWS(1031), ROWS(257)),
    RESULT("clip_grad_value", clamp, 0, OUT(1031), ROWS(1031)),
    RESULT("learning_rate", rate, ATTNCL_RATE_COSINE, OUT(1), I(2, 1)),
    RESULT("accumulate", accumulate, 0, OUT(1031), ROWS(1031), ROWS(1031)),
    CHECK("dropout", dropout, 0, 0, OUT(9, 37), ROWS(9, 37), I(2, 1)),
};
const size_t selftest_n_checks = sizeof selftest_checks / sizeof selftest_checks[0];

// CLBlast's where it is tuned for the device; other kernels of the library else.
const struct check selftest_large_checks[] = {
    RESULT("bmm of large matrices", bmm, 0, OUT(1, 520, 528), ROWS(1, 520, 512), ROWS(1, 512, 528)),
};
const size_t selftest_n_large_checks =
    sizeof selftest_large_checks / sizeof selftest_large_checks[0];
