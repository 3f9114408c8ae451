// SPDX-License-Identifier: MIT
//
// The comparisons made at first use.  **To add a probe, add a row to attncl__probes.**  Sizes leave a remainder in
// every tile.

#include "compile/probes.h"

#include <math.h>

#include "gemm/gemm.h"

// -- reference results, in double

static int64_t extent(const struct op_trial *t, int input, int axis)
{
    return t->in[input].dim[axis];
}

static double dot(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t n)
{
    double sum = 0;

    for (int64_t k = 0; k < n; ++k)
        sum += (double)a[k * a_step] * (double)b[k * b_step];
    return sum;
}

// x [m, k], weight [n, k]
static void linear(const struct op_trial *t, const float *const *in, int64_t row, double *ret)
{
    const int64_t n = extent(t, 1, 0), k = extent(t, 1, 1);

    for (int64_t i = 0; i < n; ++i)
        ret[i] = dot(in[0] + row * k, 1, in[1] + i * k, 1, k);
}

// a [batch, m, k], b [batch, k, n]
static void product(const struct op_trial *t, const float *const *in, int64_t row, double *ret)
{
    const int64_t m = extent(t, 0, 1), k = extent(t, 0, 2), n = extent(t, 1, 2);

    for (int64_t i = 0; i < n; ++i)
        ret[i] = dot(in[0] + row * k, 1, in[1] + row / m * k * n + i, n, k);
}

// d [m, n], x [m, k]
static void weight_gradient(const struct op_trial *t, const float *const *in, int64_t row,
                            double *ret)
{
    const int64_t m = extent(t, 0, 0), n = extent(t, 0, 1), k = extent(t, 1, 1);

    for (int64_t i = 0; i < k; ++i)
        ret[i] = dot(in[0] + row, n, in[1] + i, k, m);
}

// x is small, so no maximum is subtracted.
static void softmax(const struct op_trial *t, const float *const *in, int64_t row, double *ret)
{
    const int64_t n = extent(t, 0, 1);
    double total = 0;

    for (int64_t i = 0; i < n; ++i)
        total += ret[i] = exp((double)in[0][row * n + i]);
    for (int64_t i = 0; i < n; ++i)
        ret[i] /= total;
}

static void layer_norm(const struct op_trial *t, const float *const *in, int64_t row, double *ret)
{
    const struct layer_norm_fwd_params *p = t->params;
    const int64_t n = extent(t, 0, 1);
    const float *x = in[0] + row * n;
    double mean = 0, total = 0;

    for (int64_t i = 0; i < n; ++i)
        mean += (double)x[i] / (double)n;
    for (int64_t i = 0; i < n; ++i)
        total += ((double)x[i] - mean) * ((double)x[i] - mean);
    for (int64_t i = 0; i < n; ++i)
        ret[i] =
            ((double)x[i] - mean) / sqrt(total / (double)n + (double)p->eps) * (double)in[1][i] +
            (double)in[2][i];
}

static void gelu(const struct op_trial *t, const float *const *in, int64_t row, double *ret)
{
    (void)row; // the input has one row
    for (int64_t i = 0; i < extent(t, 0, 0); ++i)
        ret[i] = (double)in[0][i] * erfc(-(double)in[0][i] / sqrt(2)) / 2;
}

// q, k, v [B, H, T, D], causal; result [B, T, H, D].  Scores are small, so no maximum is subtracted.
static void attention(const struct op_trial *t, const float *const *in, int64_t row, double *ret)
{
    const struct attention_fwd_params *p = t->params;
    const int64_t n_heads = extent(t, 0, 1), n = extent(t, 0, 2), d = extent(t, 0, 3);
    const int64_t head = row % n_heads, query = row / n_heads % n, b = row / n_heads / n;
    const int64_t base = (b * n_heads + head) * n * d;
    double total = 0;

    memset(ret, 0, (size_t)d * sizeof *ret);
    for (int64_t s = 0; s <= query; ++s) {
        const double w =
            exp((double)p->scale * dot(in[0] + base + query * d, 1, in[1] + base + s * d, 1, d));
        total += w;
        for (int64_t i = 0; i < d; ++i)
            ret[i] += w * (double)in[2][base + s * d + i];
    }
    for (int64_t i = 0; i < d; ++i)
        ret[i] /= total;
}

// q, k, v [T, B, C], biases [T, T] within the window
static void aft(const struct op_trial *t, const float *const *in, int64_t row, double *ret)
{
    const struct aft_fwd_params *p = t->params;
    const int64_t n = extent(t, 0, 0), batch = extent(t, 0, 1), c = extent(t, 0, 2);
    const int64_t query = row / batch;

    for (int64_t i = 0; i < c; ++i) {
        double total = 0, sum = 0;
        for (int64_t s = 0; s < n; ++s) {
            const int64_t at = (s * batch + row % batch) * c + i;
            const double bias = llabs(query - s) < p->window ? (double)in[3][query * n + s] : 0;
            const double w = exp(bias + (double)in[1][at]);
            total += w;
            sum += w * (double)in[2][at];
        }
        ret[i] = sum / total / (1 + exp(-(double)in[0][row * c + i]));
    }
}

// -- trials

// A trial against the host.  The bound is above the rounding of sums (below 1e-6 of the largest result) and far below
// the error of a misplaced element.
#define BY_HOST(op, params_, scale_, unit_, expected_, ...)                                        \
    {                                                                                              \
        .cls = &attncl__op_##op, .params = (params_), .in = {__VA_ARGS__}, .scale = (scale_),      \
        .max_error = {1e-5, 1e-5, 1e-5}, .unit = (unit_), .expected = (expected_)                  \
    }

// The unit of relative errors by element.
static double element(int result, int64_t i, double expected)
{
    (void)result;
    (void)i;
    return fabs(expected);
}

static const struct linear_fwd_params no_activation = {0};
static const struct layer_norm_fwd_params norm = {1e-5f};
static const struct activation_fwd_params by_gelu = {ATTNCL_GELU};
static const struct attention_fwd_params batch_first = {
    .scale = 0.125f, .causal = 1, .layout = ATTNCL_LAYOUT_BATCH_FIRST};
static const struct aft_fwd_params local = {.window = 9};

static const struct op_trial products[] = {
    BY_HOST(linear_fwd, &no_activation, 1, NULL, linear, {2, {0, 24}}, {2, {0, 24}}),
    BY_HOST(linear_fwd, &no_activation, 1, NULL, linear, {2, {70, 132}}, {2, {90, 132}}),
    BY_HOST(linear_fwd, &no_activation, 1, NULL, linear, {2, {3, 300}}, {2, {50, 300}}),
    BY_HOST(bmm_fwd, NULL, 1, NULL, product, {3, {2, 45, 70}}, {3, {2, 70, 39}}),
};
// One compute unit has enough rows, so work-groups take several rows each, as in graphs with many rows.
#define OF_ROWS(op, params_, scale_, expected_, ...)                                               \
    {                                                                                              \
        .cls = &attncl__op_##op, .params = (params_), .in = {__VA_ARGS__}, .scale = (scale_),      \
        .max_error = {1e-5, 1e-5, 1e-5}, .compute_units = 1, .expected = (expected_)               \
    }
#define SOFTMAX(width) OF_ROWS(softmax_fwd, NULL, 20, softmax, {2, {37, width}})
#define NORM           OF_ROWS(layer_norm_fwd, &norm, 2, layer_norm, {2, {37, 120}}, {1, {120}}, {1, {120}})
static const struct op_trial softmaxes[] = {SOFTMAX(300)};
static const struct op_trial norms[] = {NORM};
static const struct op_trial functions[] = {
    BY_HOST(activation_fwd, &by_gelu, 6, element, gelu, {1, {5000}}),
};
static const struct op_trial attentions[] = {
    BY_HOST(attention_fwd, &batch_first, 1, NULL, attention, {4, {2, 2, 70, 40}},
            {4, {2, 2, 70, 40}}, {4, {2, 2, 70, 40}}),
};
static const struct op_trial afts[] = {
    BY_HOST(aft_fwd, &local, 2, NULL, aft, {3, {70, 2, 40}}, {3, {70, 2, 40}}, {3, {70, 2, 40}},
            {2, {70, 70}}),
};

// CLBlast uses other kernels below 512 cubed and pads sizes that are no multiple of its tiles.  The trials cover NN, NT
// and TN, odd sizes and multiples, small and large batches.
static const struct op_trial clblast_products[] = {
    BY_HOST(bmm_fwd, NULL, 1, NULL, product, {3, {1, 641, 311}}, {3, {1, 311, 677}}),
    BY_HOST(linear_fwd, &no_activation, 1, NULL, linear, {2, {520, 528}}, {2, {496, 528}}),
    BY_HOST(linear_bwd_weight, NULL, 1, NULL, weight_gradient, {2, {512, 512}}, {2, {512, 512}}),
    BY_HOST(bmm_fwd, NULL, 1, NULL, product, {3, {16, 130, 33}}, {3, {16, 33, 70}}),
    BY_HOST(bmm_fwd, NULL, 1, NULL, product, {3, {2, 520, 500}}, {3, {2, 500, 528}}),
};

// Reductions by shuffles equal those through local memory, for rows shorter and longer than a sub-group.  Other probes
// need all programs but the last one's too.
static const struct op_trial reductions[] = {
    {.cls = &attncl__op_bmm_bwd_a, .in = {{3, {1, 3, 300}}, {3, {1, 50, 300}}}, .scale = 1},
    NORM,
    SOFTMAX(8000),
};

// First exact arithmetic: integers that every precision represents, with sums that float represents, so that one
// misplaced element is seen (one compute unit, to get the small tile).  Then real numbers, with twice the error that
// rounding the factors may cause.
static const struct op_trial instruction_products[] = {
    {.cls = &attncl__op_bmm_fwd,
     .in = {{3, {1, 64, 16}}, {3, {1, 16, 64}}},
     .scale = 125,
     .whole = true,
     .compute_units = 1,
     .expected = product},
    {.cls = &attncl__op_bmm_fwd,
     .in = {{3, {1, 0, 100}}, {3, {1, 100, 0}}},
     .scale = 1,
     .max_error = {0x1p-19, 0x1p-8, 0x1p-5}},
};

// Error bounds: factors up to 1 give scores with a standard deviation of 1/3 and at most 3.  Rounding the factors to
// TF32 or BF16 changes products by 2^-10 or 2^-7, scores by up to 2^-8 or 2^-5, and results by at most twice that;
// float changes scores by 2^-20.  Gradients are sums of products of such numbers, relative to the largest.  No extent
// of the first trial is a multiple of a tile.
#define ATTENTION_ERRORS .max_error = {0x1p-18, 0x1p-7, 0x1p-4}

// Outputs and row maxima (even elements of result 2) are about 1; row totals are compared by ratio.
static double attention_unit(int result, int64_t i, double expected)
{
    return result == 0 || i % 2 == 0 ? 1 : fabs(expected);
}

static const struct attention_bwd_params causal = {.attention = {.scale = 0.22f, .causal = 1}},
                                         full = {.attention = {.scale = 0.125f}};
static const struct op_trial instruction_attentions[] = {
    {.cls = &attncl__op_attention_fwd,
     .params = &causal.attention,
     .in = {{4, {1, 2, 70, 21}}, {4, {1, 2, 75, 21}}, {4, {1, 2, 75, 35}}},
     .scale = 1,
     .compute_units = 1,
     ATTENTION_ERRORS,
     .unit = attention_unit},
    {.cls = &attncl__op_attention_fwd,
     .params = &full.attention,
     .in = {{4, {1, 4, 130, 64}}, {4, {1, 4, 160, 64}}, {4, {1, 4, 160, 64}}},
     .scale = 1,
     ATTENTION_ERRORS,
     .unit = attention_unit},
};

enum { IN_Y = 7, IN_ROWS = 9, IN_G = 10 }; // of attention_bwd
enum { OUT_Y, OUT_ROWS = 2 };              // of attention_fwd
#define FROM_FORWARD .from = {[IN_Y] = 1 + OUT_Y, [IN_ROWS] = 1 + OUT_ROWS}
static const struct op_trial instruction_gradients[] = {
    {.cls = &attncl__op_attention_bwd,
     .params = &causal,
     .before = &instruction_attentions[0],
     FROM_FORWARD,
     .in = {[IN_G] = {4, {70, 1, 2, 35}}},
     .scale = 1,
     .compute_units = 1,
     ATTENTION_ERRORS},
    {.cls = &attncl__op_attention_bwd,
     .params = &full,
     .before = &instruction_attentions[1],
     FROM_FORWARD,
     .in = {[IN_G] = {4, {130, 1, 4, 64}}},
     .scale = 1,
     ATTENTION_ERRORS},
};

// -- the probes

#define TRIALS(array) .trials = (array), .n_trials = (int)(sizeof(array) / sizeof(array)[0])
#define CLASSES(...)                                                                               \
    (const struct op_class *const[])                                                               \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define CLS(name) &attncl__op_##name
// Op classes that launch GEMMs.
#define PRODUCTS                                                                                   \
    CLS(linear_fwd), CLS(linear_bwd_input), CLS(linear_bwd_weight), CLS(bmm_fwd), CLS(bmm_bwd_a),  \
        CLS(bmm_bwd_b), CLS(spatial_gate_fwd), CLS(spatial_gate_bwd_gate),                         \
        CLS(spatial_gate_bwd_weight), CLS(spatial_gate_bwd_input), CLS(gru_fwd), CLS(gru_bwd),     \
        CLS(fused_linear_fwd)

// Shuffles come first, so that the other probes compare kernels as graphs will use them.
const struct op_probe attncl__probes[] = {
    {"shuffles", SHUFFLES, NULL, TRIALS(reductions)},
    {"products", GPU_VARIANT, CLASSES(PRODUCTS), TRIALS(products)},
    {"softmax", GPU_VARIANT,
     CLASSES(CLS(softmax_fwd), CLS(softmax_bwd), CLS(masked_softmax_fwd), CLS(cross_entropy_fwd),
             CLS(cross_entropy_bwd)),
     TRIALS(softmaxes)},
    {"layer norm", GPU_VARIANT,
     CLASSES(CLS(layer_norm_fwd), CLS(layer_norm_bwd), CLS(rms_norm_fwd), CLS(rms_norm_bwd),
             CLS(fused_linear_fwd)),
     TRIALS(norms)},
    {"functions", GPU_VARIANT,
     CLASSES(CLS(activation_fwd), CLS(activation_bwd), CLS(bias_activation_fwd),
             CLS(linear_bwd_epilogue), CLS(linear_fwd), CLS(fused_linear_fwd)),
     TRIALS(functions), .of_functions = true},
    {"attention", GPU_VARIANT,
     CLASSES(CLS(attention_fwd), CLS(attention_bwd), CLS(attention_step_fwd)), TRIALS(attentions)},
    {"aft", GPU_VARIANT,
     CLASSES(CLS(aft_fwd), CLS(aft_bwd), CLS(aft_step_fwd), CLS(aft_prefill_fwd)), TRIALS(afts)},
    {"mma gemm", GEMM_MMA, CLASSES(PRODUCTS), TRIALS(instruction_products)},
    {"clblast", CLBLAST, CLASSES(PRODUCTS), TRIALS(clblast_products), .min_flop = CLBLAST_MIN_FLOP},
    {"mma attention", ATTENTION_MMA, CLASSES(CLS(attention_fwd)), TRIALS(instruction_attentions)},
    {"mma attention gradients", ATTENTION_BWD_MMA, CLASSES(CLS(attention_bwd)),
     TRIALS(instruction_gradients)},
};
const int attncl__n_probes = (int)(sizeof attncl__probes / sizeof attncl__probes[0]);
