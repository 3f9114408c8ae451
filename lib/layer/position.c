// SPDX-License-Identifier: MIT
//
// Sinusoidal positions (Vaswani et al. 2017, 3.5):
//
//     P[p, 2i] = sin(p / 10000^(2i / C)),   P[p, 2i + 1] = cos(same)
//
// Rotations of pairs of channels by positions (Su et al. 2021):
//
//     angle[p, i] = p f_i,   f_i = theta^(-2i / R), adjusted by context-length scaling
//
// Slopes of linear biases (Press et al. 2022) for n heads, a power of two:
//
//     slope[h] = 2^(-max (h + 1) / n)

#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "layer/layer.h"

void attncl__sinusoid_fill(float *table, int64_t n_positions, int64_t n_channels)
{
    for (int64_t c = 0; c < n_channels; c += 2) {
        const double frequency = pow(10000.0, -(double)c / (double)n_channels);
        for (int64_t p = 0; p < n_positions; ++p) {
            float *pair = table + p * n_channels + c;
            pair[0] = (float)sin((double)p * frequency);
            if (c + 1 < n_channels) // an odd width has no last cosine
                pair[1] = (float)cos((double)p * frequency);
        }
    }
}

// An F32 table that the caller fills in and passes to end_table(); NULL: the graph has failed.
static float *begin_table(attncl_graph *g, int rank, const int64_t *dim)
{
    struct tensor_desc d;
    if (attncl__graph_failed(g))
        return NULL;
    const attncl_status status = attncl__desc_make(ATTNCL_F32, rank, dim, &d);
    if (status != ATTNCL_OK) {
        GRAPH_FAIL(g, status, "%s", attncl_last_error());
        return NULL;
    }
    float *table = attncl__alloc_array((size_t)attncl__desc_count(&d), sizeof *table);
    if (!table)
        GRAPH_FAIL(g, ATTNCL_ERR_NO_MEMORY, "positional table %s", SHAPE(&d));
    return table;
}

static attncl_value end_table(attncl_graph *g, int rank, const int64_t *dim, float *table)
{
    const attncl_value value = attncl_graph_constant(g, ATTNCL_F32, rank, dim, table);
    attncl__free(table);
    return value;
}

attncl_value attncl_sinusoid(attncl_graph *g, int64_t n_positions, int64_t n_channels)
{
    const int64_t dim[2] = {n_positions, n_channels};
    float *table = begin_table(g, 2, dim);
    if (!table)
        return ATTNCL_NONE_VALUE;
    attncl__sinusoid_fill(table, n_positions, n_channels);
    return end_table(g, 2, dim, table);
}

attncl_value attncl_add_positions(attncl_graph *g, attncl_value x, attncl_value table,
                                  attncl_layout layout)
{
    const struct add_positions_fwd_params params = {(int32_t)layout};
    return attncl__graph_add(g, &attncl__op_add_positions_fwd, &params, IN(x, table));
}

attncl_value attncl_add_position_at(attncl_graph *g, attncl_value x, attncl_value table,
                                    attncl_value position)
{
    return attncl__graph_add(g, &attncl__op_add_position_at_fwd, NULL, IN(x, table, position));
}

// -- rotations

static const double two_pi = 6.28318530717958647692;

// Frequencies are rounded wherever transformers uses a float, as models were trained with them.

// Llama 3 stretches long waves, keeps short ones, and interpolates between them.
static float scale_llama3(const attncl_rotary_desc *d, float frequency)
{
    const double length = (double)d->original_max_position;
    const float wave = (float)two_pi / frequency, stretched = frequency / (float)d->factor;

    if (wave > (float)(length / d->low_freq_factor))
        return stretched;
    if (wave < (float)(length / d->high_freq_factor))
        return frequency;
    const float kept = ((float)length / wave - (float)d->low_freq_factor) /
                       (float)(d->high_freq_factor - d->low_freq_factor);
    return (1 - kept) * stretched + kept * frequency;
}

// YaRN: the pair whose wave makes `turns` turns in the original context.
static double find_yarn_pair(const attncl_rotary_desc *d, double turns)
{
    return (double)d->width * log((double)d->original_max_position / (turns * two_pi)) /
           (2 * log(d->theta));
}

// power: 1 / the unscaled frequency.
static float scale_yarn(const attncl_rotary_desc *d, int64_t i, float power)
{
    double low = find_yarn_pair(d, d->beta_fast), high = find_yarn_pair(d, d->beta_slow);

    low = fmax(d->truncate ? floor(low) : low, 0);
    high = fmin(d->truncate ? ceil(high) : high, (double)(d->width - 1));
    const double range = high == low ? 0.001 : high - low;
    const float part = ((float)i - (float)low) / (float)range;
    const float kept = 1 - fminf(fmaxf(part, 0), 1);
    return 1 / ((float)d->factor * power) * (1 - kept) + 1 / power * kept;
}

static float get_frequency(const attncl_rotary_desc *d, int64_t i)
{
    const float exponent = (float)(2 * i) / (float)d->width;
    const float power = (float)pow((double)(float)d->theta, (double)exponent);

    switch (d->scaling) {
    case ATTNCL_ROTARY_LINEAR:
        return 1 / power / (float)d->factor;
    case ATTNCL_ROTARY_LLAMA3:
        return scale_llama3(d, 1 / power);
    case ATTNCL_ROTARY_YARN:
        return scale_yarn(d, i, power);
    case ATTNCL_ROTARY_LONGROPE:
        return 1 / ((float)d->factors[i] * power);
    case ATTNCL_ROTARY_UNSCALED:
        break;
    }
    return 1 / power;
}

static double yarn_scale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

// The factor of cosines and sines; attention's scores scale with its square.
static double get_table_scale(const attncl_rotary_desc *d)
{
    if (d->scaling != ATTNCL_ROTARY_YARN && d->scaling != ATTNCL_ROTARY_LONGROPE)
        return 1;
    if (d->attention_factor != 0)
        return d->attention_factor;
    if (d->scaling == ATTNCL_ROTARY_LONGROPE)
        return sqrt(1 + log(d->factor) / log((double)d->original_max_position));
    if (d->mscale != 0 && d->mscale_all_dim != 0)
        return yarn_scale(d->factor, d->mscale) / yarn_scale(d->factor, d->mscale_all_dim);
    return yarn_scale(d->factor, 1);
}

static bool check_factors(attncl_graph *g, const attncl_rotary_desc *d)
{
    if (!d->factors)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "factors is NULL, scaling LONGROPE needs them");
    for (int64_t i = 0; d->factors && i < (d->width + 1) / 2; ++i)
        if (!(d->factors[i] > 0) || !isfinite(d->factors[i]))
            GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "factors[%" PRId64 "] is %g, must be above 0", i,
                       d->factors[i]);
    return !attncl__graph_failed(g);
}

static bool check_desc(attncl_graph *g, const attncl_rotary_desc *d)
{
    const bool is_longrope = d->scaling == ATTNCL_ROTARY_LONGROPE;
    const int64_t shortest =
        is_longrope ? 2 // its logarithm divides
                    : d->scaling == ATTNCL_ROTARY_LLAMA3 || d->scaling == ATTNCL_ROTARY_YARN;

    if (d->width < 1)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "width is %" PRId64 ", must be at least 1", d->width);
    else if (!(d->theta > 1) || !isfinite(d->theta))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "theta is %g, must be above 1", d->theta);
    else if (d->pairs != ATTNCL_ROTARY_HALVES && d->pairs != ATTNCL_ROTARY_NEIGHBOURS)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "pairs %d is unknown", (int)d->pairs);
    else if ((unsigned)d->scaling > ATTNCL_ROTARY_LONGROPE)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "scaling %d is unknown", (int)d->scaling);
    else if (d->scaling != ATTNCL_ROTARY_UNSCALED && !(d->factor >= 1 && isfinite(d->factor)))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "factor is %g, must be at least 1", d->factor);
    else if (shortest > 0 && d->original_max_position < shortest)
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT,
                   "original_max_position is %" PRId64 ", at least %" PRId64,
                   d->original_max_position, shortest);
    else if (d->scaling == ATTNCL_ROTARY_LLAMA3 && !(d->low_freq_factor < d->high_freq_factor))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT,
                   "low_freq_factor is %g, high_freq_factor is %g: must be less",
                   d->low_freq_factor, d->high_freq_factor);
    else if (d->scaling == ATTNCL_ROTARY_YARN && !(d->beta_slow > 0 && d->beta_slow < d->beta_fast))
        GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "beta_slow is %g, beta_fast is %g: must be more",
                   d->beta_slow, d->beta_fast);
    return is_longrope ? check_factors(g, d) : !attncl__graph_failed(g);
}

attncl_value attncl_rotary_table(attncl_graph *g, const attncl_rotary_desc *desc,
                                 int64_t n_positions)
{
    attncl_rotary_desc d = ATTNCL_ROTARY_DESC_INIT;
    if (!LAYER_STRUCT(g, attncl_rotary_desc, &d, desc) || !check_desc(g, &d))
        return ATTNCL_NONE_VALUE;
    const int64_t pairs = d.width / 2 + d.width % 2, dim[3] = {n_positions, 2, pairs};
    float *table = begin_table(g, 3, dim);
    if (!table)
        return ATTNCL_NONE_VALUE;
    const double scale = get_table_scale(&d);
    for (int64_t i = 0; i < pairs; ++i) {
        const float frequency = get_frequency(&d, i);
        for (int64_t p = 0; p < n_positions; ++p) {
            const float angle = (float)p * frequency; // a float in PyTorch
            table[(2 * p) * pairs + i] = (float)(scale * cos((double)angle));
            table[(2 * p + 1) * pairs + i] = (float)(scale * sin((double)angle));
        }
    }
    return end_table(g, 3, dim, table);
}

attncl_value attncl_rotary(attncl_graph *g, attncl_value x, attncl_value table,
                           attncl_rotary_pairs pairs, attncl_value position)
{
    const struct rotate_fwd_params params = {.half = pairs == ATTNCL_ROTARY_HALVES};
    if (!params.half && pairs != ATTNCL_ROTARY_NEIGHBOURS)
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT, "pairs %d is unknown", (int)pairs);
    return attncl__graph_add(g, &attncl__op_rotate_fwd, &params, IN(x, table, position));
}

attncl_value attncl_alibi_slopes(attncl_graph *g, int64_t n_heads, double max)
{
    int64_t whole = 1;
    if (n_heads < 1 || !(max > 0) || !isfinite(max))
        return GRAPH_FAIL(g, ATTNCL_ERR_ARGUMENT,
                          "n_heads is %" PRId64 ", at least 1; max is %g, above 0", n_heads, max);
    float *slopes = begin_table(g, 1, &n_heads);
    if (!slopes)
        return ATTNCL_NONE_VALUE;
    while (whole <= n_heads / 2)
        whole *= 2;
    for (int64_t h = 0; h < n_heads; ++h) {
        // Heads beyond a power of two take every other slope of twice as many heads.
        const double k = h < whole ? (double)(h + 1) : (double)(h - whole) + 0.5;
        slopes[h] = (float)exp2(-max * k / (double)whole);
    }
    return end_table(g, 1, &n_heads, slopes);
}

attncl_value attncl_relative_shift(attncl_graph *g, attncl_value x, double delta)
{
    const struct rotate_fwd_params params = {.half = false};
    struct tensor_desc d;
    if (!attncl__layer_shape(g, x, "x", &d))
        return ATTNCL_NONE_VALUE;
    const int64_t width = d.rank > 0 ? d.dim[d.rank - 1] : 0;
    if (d.rank == 0 || width % 2 != 0 || !isfinite(delta))
        return GRAPH_FAIL(g, ATTNCL_ERR_SHAPE,
                          "x is %s, delta is %g: expected an even last axis and a finite delta",
                          SHAPE(&d), delta);
    const int64_t pairs = width / 2, dim[3] = {1, 2, pairs};
    float *table = begin_table(g, 3, dim);
    if (!table)
        return ATTNCL_NONE_VALUE;
    for (int64_t i = 0; i < pairs; ++i) { // sines come before cosines, hence -sin
        const double angle = delta * pow(10000.0, -2 * (double)i / (double)width);
        table[i] = (float)cos(angle);
        table[pairs + i] = (float)-sin(angle);
    }
    return attncl__graph_add(g, &attncl__op_rotate_fwd, &params,
                             IN(x, end_table(g, 3, dim, table)));
}
