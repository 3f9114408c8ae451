// SPDX-License-Identifier: MIT
/**
 * @file attncl/ops.h
 * Single operations as graph builders.  All are F32 unless said otherwise; each returns the null
 * value once the graph has failed.  Letters: B batch, T sequence, C channels, V vocabulary.
 *
 * NaN and infinity in inputs do what the formulas say by IEEE 754: they reach the elements whose
 * formula reads them, and no others; inf - inf and 0 * inf are NaN.  Nothing is reported.  Where an
 * op differs or a formula leaves it open, the op says so.
 *
 * Threads: one thread at a time per graph; different graphs of one context from different threads.
 */
#ifndef ATTNCL_OPS_H
#define ATTNCL_OPS_H

#include "attncl/graph.h"
#include "attncl/kinds.h"

ATTNCL_BEGIN

/** softmax over `axis` (negative counts from the end); x any shape of rank >= 1.  -inf gives 0, a
 * row of -inf only zeros; NaN and +inf make their row NaN.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_softmax(attncl_graph *g, attncl_value x, int axis);

/**
 * softmax over the last axis of x [B, Q, K] in which positions >= valid_lens score -1e6.
 * @param valid_lens  I32 [B] or [B, Q]; null: plain softmax.  Length 0 gives 1/K everywhere.
 * What x has at these positions has no effect, NaN included.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_masked_softmax(attncl_graph *g, attncl_value x,
                                              attncl_value valid_lens);

/** (x - mean) / sqrt(var + eps) * weight + bias over the trailing axes that weight and bias have, in
 * the shape of x; biased variance.  NaN and infinity in x make their row NaN.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_layer_norm(attncl_graph *g, attncl_value x, attncl_value weight,
                                          attncl_value bias, float eps);

/** RMS norm: x / sqrt(mean(x^2) + eps) * weight over the trailing axes that weight has, in the shape of x.  NaN and
 * infinity in x make their row NaN.  Source: Zhang and Sennrich 2019, arXiv 1910.07467.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_rms_norm(attncl_graph *g, attncl_value x, attncl_value weight,
                                        float eps);

/** Elementwise activation, in the shape of x.  NaN stays NaN, for ReLU too; infinity gives the limit:
 * at -inf, GELU and SiLU are 0, where x Phi(x) and x sigmoid(x) as formulas would be NaN.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_activate(attncl_graph *g, attncl_value x, attncl_activation kind);

/** f(x + bias) in one kernel: x [..., C], bias [C].  After a linear map, attncl_linear_fused()
 * needs no kernel for it.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_bias_activate(attncl_graph *g, attncl_value x, attncl_value bias,
                                             attncl_activation kind);

/** a + b, same shape.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_add(attncl_graph *g, attncl_value a, attncl_value b);

/** a * b elementwise, same shape.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_mul(attncl_graph *g, attncl_value a, attncl_value b);

/** x W^T + b: x [..., in], weight [out, in], bias [out] or null -> [..., out].  A weight of F16 or BF16
 * is read as it is and widened exactly; its gradient is F32.  With one of Q8 or Q4 there are no gradients, and CPUs round
 * x to 16 bits, in blocks of 32 with a scale each.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_linear(attncl_graph *g, attncl_value x, attncl_value weight,
                                      attncl_value bias);

/** What a linear map does to its result before storing it: act(x W^T + b) * gate + residual. */
typedef struct attncl_linear_desc {
    size_t struct_size;
    attncl_activation activation;
    attncl_value gate;     /**< [..., out] or null */
    attncl_value residual; /**< [..., out] or null */
} attncl_linear_desc;

#define ATTNCL_LINEAR_DESC_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_linear_desc), ATTNCL_IDENTITY, ATTNCL_VALUE_INIT, ATTNCL_VALUE_INIT          \
    }

/** attncl_linear() with its epilogue in the same kernel, [..., out]; desc NULL: none.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_linear_fused(attncl_graph *g, const attncl_linear_desc *desc,
                                            attncl_value x, attncl_value weight, attncl_value bias);

/** a [B, n, m] times b [B, m, p] -> [B, n, p].
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_bmm(attncl_graph *g, attncl_value a, attncl_value b);

/** Rows of weight [V, C], F32, F16 or BF16, at tokens (I32, any shape) times scale -> [..., C].
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_embedding(attncl_graph *g, attncl_value tokens, attncl_value weight,
                                         float scale);

/**
 * The sinusoidal table [T, C] of Vaswani et al. 2017, 3.5: sin in even, cos in odd columns; an odd
 * C drops the last cosine.  Computed in double on the host, stored as F32.
 * Errors: ERR_SHAPE, ERR_NO_MEMORY, kept by the graph.
 */
ATTNCL_API attncl_value attncl_sinusoid(attncl_graph *g, int64_t n_positions, int64_t n_channels);

/** x plus row t of table [n, C] (n >= T) at each position t.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_add_positions(attncl_graph *g, attncl_value x, attncl_value table,
                                             attncl_layout layout);

/** x [B, C] plus row `position` of table [n, C]; position is an I32 value in device memory: [1], or [B] for a row each.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_add_position_at(attncl_graph *g, attncl_value x, attncl_value table,
                                               attncl_value position);

/**
 * Rotates each pair (x_2j, x_2j+1) of x [..., C], C even, by delta 10000^(-2j / C), which turns row p of
 * attncl_sinusoid() into row p + delta.
 * Errors: ERR_SHAPE, ERR_NO_MEMORY, kept by the graph.
 */
ATTNCL_API attncl_value attncl_relative_shift(attncl_graph *g, attncl_value x, double delta);

/** Which channels of a head turn together: i and i + width / 2 (Llama, GPT-NeoX), or 2 i and 2 i + 1 (GPT-J). */
typedef enum attncl_rotary_pairs {
    ATTNCL_ROTARY_HALVES = 0,
    ATTNCL_ROTARY_NEIGHBOURS = 1,
} attncl_rotary_pairs;

/** How frequencies are changed for contexts longer than those of training. */
typedef enum attncl_rotary_scaling {
    ATTNCL_ROTARY_UNSCALED = 0,
    ATTNCL_ROTARY_LINEAR = 1, /**< positions divided by factor */
    ATTNCL_ROTARY_LLAMA3 =
        2, /**< low frequencies divided by factor, from low_freq_factor to high_freq_factor in part */
    ATTNCL_ROTARY_YARN =
        3, /**< by parts, arXiv 2309.00071: beta_fast, beta_slow, attention_factor, mscale */
    ATTNCL_ROTARY_LONGROPE = 4, /**< each divided by its own factor, arXiv 2402.13753: factors */
} attncl_rotary_scaling;

/** Rotary positions (Su et al. 2021, arXiv 2104.09864).  Start from ATTNCL_ROTARY_DESC_INIT and set width. */
typedef struct attncl_rotary_desc {
    size_t struct_size;
    int64_t width; /**< channels of a head that turn, if odd one more; the others stay */
    double theta;  /**< base of the frequencies */
    attncl_rotary_pairs pairs;
    attncl_rotary_scaling scaling;
    double factor;                            /**< of the scalings, at least 1 */
    int64_t original_max_position;            /**< of LLAMA3, YARN, LONGROPE: the trained context */
    double low_freq_factor, high_freq_factor; /**< of LLAMA3 */
    double beta_fast, beta_slow;              /**< of YARN */
    double
        attention_factor; /**< of YARN, LONGROPE, on cosines and sines; 0: of YARN by mscale, or 0.1 ln factor + 1; of
                             LONGROPE sqrt(1 + ln factor / ln original_max_position) */
    double mscale, mscale_all_dim; /**< of YARN; 0: not given */
    int truncate;                  /**< of YARN: whole pairs */
    const double *factors;         /**< of LONGROPE: [width / 2, rounded up], above 0 */
} attncl_rotary_desc;

#define ATTNCL_ROTARY_DESC_INIT                                                                    \
    {                                                                                              \
        sizeof(attncl_rotary_desc), 0, 10000, ATTNCL_ROTARY_HALVES, ATTNCL_ROTARY_UNSCALED, 1, 0,  \
            1, 4, 32, 1, 0, 0, 0, 1, NULL                                                          \
    }

/**
 * The cosines and sines of positions 0 to n_positions - 1, F32 [n_positions, 2, width / 2, rounded up]: a constant of the
 * graph.  An angle is a product in float, as in PyTorch, its cosine and sine are rounded once.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_NO_MEMORY, kept by the graph.
 */
ATTNCL_API attncl_value attncl_rotary_table(attncl_graph *g, const attncl_rotary_desc *desc,
                                            int64_t n_positions);

/**
 * Rotates each row of x [T, B, ..., C] by its position: the first 2 F channels, in pairs; the others stay.
 *
 * @param table     [P, 2, F] of attncl_rotary_table(); P = 1: for all rows
 * @param position  I32 [T or 1, B or 1]; null: row t has position t, T at most P.  Positions outside the table are those of
 *                  its ends
 * @return          like x
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_rotary(attncl_graph *g, attncl_value x, attncl_value table,
                                      attncl_rotary_pairs pairs, attncl_value position);

/** How attncl_cross_entropy() sums.  Start from ATTNCL_CROSS_ENTROPY_DESC_INIT; NULL: the mean. */
typedef struct attncl_cross_entropy_desc {
    size_t struct_size;
    attncl_reduction reduction; /**< NONE gives [...], the others a scalar [] */
    /** The target whose positions have loss 0 and do not count for the mean; negative: none.  All padding gives 0. */
    int64_t pad;
    /** 0 to 1: log sum exp(logits) - (1 - label_smoothing) logits[target] - label_smoothing mean(logits), as
     * torch.nn.CrossEntropyLoss(label_smoothing=...). */
    double label_smoothing;
} attncl_cross_entropy_desc;

#define ATTNCL_CROSS_ENTROPY_DESC_INIT                                                             \
    {                                                                                              \
        sizeof(attncl_cross_entropy_desc), ATTNCL_REDUCE_MEAN, -1, 0                               \
    }

/**
 * Cross entropy, log sum exp(logits) - logits[target]: logits [..., V], targets I32 [...].
 * @param desc  borrowed for the call; NULL: all defaults
 *
 * NaN or +inf among the logits of a position makes its loss NaN, and so do logits that are all -inf.  Another logit of
 * -inf adds nothing, but at the target it makes the loss +inf.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph.
 */
ATTNCL_API attncl_value attncl_cross_entropy(attncl_graph *g, attncl_value logits,
                                             attncl_value targets,
                                             const attncl_cross_entropy_desc *desc);

/** The index of the largest element along the last axis, I32 [...]; the first among equals.  NaN is never the largest.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_argmax(attncl_graph *g, attncl_value x);

/** n values, F32 or I32, joined along an axis; their other extents must be equal.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_concat(attncl_graph *g, size_t n, const attncl_value *values,
                                      int axis);

/* Views: no copy; the result shares x's memory.  An op that needs contiguous memory gets a copy
 * made by the graph. */

/** The same elements in another shape; x is copied first if it is a view with gaps.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, kept by the graph. */
ATTNCL_API attncl_value attncl_reshape(attncl_graph *g, attncl_value x, int rank,
                                       const int64_t *dim);

/** Elements [begin, end) of an axis.
 * Errors: ERR_SHAPE, kept by the graph. */
ATTNCL_API attncl_value attncl_slice(attncl_graph *g, attncl_value x, int axis, int64_t begin,
                                     int64_t end);

/** Axes in another order: axis i of the result is axis order[i] of x.
 * Errors: ERR_ARGUMENT, kept by the graph. */
ATTNCL_API attncl_value attncl_permute(attncl_graph *g, attncl_value x, const int *order);

ATTNCL_END

#endif
