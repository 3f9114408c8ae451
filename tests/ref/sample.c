// SPDX-License-Identifier: MIT
//
// A token of each row of scores, given the generator's words.

#include <math.h>
#include <string.h>

#include "ref/ref.h"
#include "support/op_spec.h"

// Whether column c is among the k best of a row; the first of equals is the better one.
static bool is_among_best(const double *row, int64_t width, int64_t c, int64_t k)
{
    int64_t n_better = 0;

    if (k >= width)
        return true;
    for (int64_t i = 0; i < width; ++i)
        n_better += row[i] > row[c] || (row[i] == row[c] && i < c);
    return n_better < k;
}

static double uniform(uint64_t seed, int64_t position, int64_t row)
{
    uint32_t words[4] = {(uint32_t)position, (uint32_t)row, 0, 0};

    ref_philox(words, (uint32_t)seed, (uint32_t)(seed >> 32));
    return ((double)words[0] + words[1] * 0x1p-32) * 0x1p-32;
}

static double draw(const struct ref_sample *s, const double *row, int64_t width, double at)
{
    const int64_t k = s->temperature == 0 ? 1 : s->top_k > 0 && s->top_k < width ? s->top_k : width;
    double largest = -INFINITY, sum = 0;
    int64_t token = 0;

    for (int64_t c = 0; c < width; ++c) {
        if (!isfinite(row[c]))
            return -1;
        largest = fmax(largest, row[c]);
    }
    const double temperature = s->temperature == 0 ? 1 : s->temperature; // of one token any will do
    for (int64_t c = 0; c < width; ++c)
        if (is_among_best(row, width, c, k))
            sum += exp((row[c] - largest) / temperature);
    double left = at * sum;
    for (int64_t c = 0; c < width; ++c) {
        const double weight =
            is_among_best(row, width, c, k) ? exp((row[c] - largest) / temperature) : 0;
        if (weight == 0)
            continue;
        token = c;
        if (left < weight)
            break;
        left -= weight;
    }
    return (double)token;
}

void ref_sample_fwd(const struct ref_sample *s, const struct host *x, int64_t position,
                    struct host *y)
{
    const int64_t width = x->dim[1];

    for (int64_t i = 0; i < y->count; ++i)
        y->data[i] = draw(s, x->data + i * width, width, uniform(s->seed, position, i));
}

// step: the position and the tokens; drawn: [R, B]; window: NULL or [W, B].
void ref_sample_store_fwd(const struct host *tokens, struct host *step, struct host *drawn,
                          struct host *window)
{
    const int64_t position = (int64_t)step->data[0], n = tokens->count;

    for (int64_t b = 0; b < n; ++b) {
        drawn->data[position % drawn->dim[0] * n + b] = tokens->data[b];
        step->data[1 + b] = fmax(tokens->data[b], 0);
    }
    step->data[0] = (double)(position + 1);
    for (int64_t i = 0; window && i < window->count; ++i)
        window->data[i] = i + n < window->count ? window->data[i + n] : step->data[1 + i % n];
}

// -- the op

// lib/layer/layer.h: which are drawn from, log2 e / temperature as a float's bits, the seed.
struct host *ref_sampling_words(const struct ref_sample *s)
{
    struct host *h = host_new(ATTNCL_I32, DIMS(4));
    const float factor = (float)(1 / log(2) / fmin(fmax(s->temperature, 1e-30), 1e30));
    int32_t bits;

    memcpy(&bits, &factor, sizeof bits);
    h->data[0] = s->temperature == 0 ? 1 : fmin((double)s->top_k, INT32_MAX);
    h->data[1] = bits;
    h->data[2] = (int32_t)(uint32_t)s->seed;
    h->data[3] = (int32_t)(uint32_t)(s->seed >> 32);
    return h;
}

// The definition of the words that the op reads.
static void sample(const void *params, struct host *const *in, struct host *const *out)
{
    const int32_t bits = (int32_t)in[1]->data[1];
    float factor;

    (void)params;
    memcpy(&factor, &bits, sizeof factor);
    const struct ref_sample s = {1 / (log(2) * (double)factor), (int64_t)in[1]->data[0],
                                 (uint32_t)(int32_t)in[1]->data[2] |
                                     (uint64_t)(uint32_t)(int32_t)in[1]->data[3] << 32};
    ref_sample_fwd(&s, in[0], (int64_t)in[2]->data[0], out[0]);
}

#define SAMPLING(name, ...)                                                                        \
    static void name(struct host *const *in)                                                       \
    {                                                                                              \
        host_set(in[1], ref_sampling_words(&(struct ref_sample){__VA_ARGS__})->data);              \
    }
SAMPLING(all, 1, 0, 7)
SAMPLING(cold, 0.3, 0, 0x123456789abcdefu)
SAMPLING(hot, 50, 1 << 20, ~(uint64_t)0)
SAMPLING(best_of_3, 1, 3, 5)
SAMPLING(best_of_30, 5, 30, 3)
SAMPLING(best, 0, 5, 2)

// A score that is not finite gives -1.
OP_SPEC(sample_fwd, .in = "x f32 B C; sampling i32 4; position i32:0:1073741825 1",
        .out = "y i32 B", .ref = sample, .nonzero = "C", .smoke = "B=40 C=1,3,16,19; B=5 C=300",
        .gpu = "B=65536 C=64,1023,1024,50257", .full = "B=40 C=2,256; B=5 C=1031,4099",
        .special = "B=3 C=21", .data = SCALED | PEAK | LIMITS | ALIKE | RISING | INT_ENDS,
        .cases = {{"all", .prepare = all},
                  {"cold", .prepare = cold},
                  {"hot", .prepare = hot},
                  {"best of 3", .prepare = best_of_3},
                  {"best of 30", .prepare = best_of_30},
                  {"best", .prepare = best}},
        .refusals = {{ATTNCL_ERR_SHAPE, "sampling is [2], must be [4]", .with = "sampling i32 2"}});

static void store(const void *params, struct host *const *in, struct host *const *out)
{
    (void)params;
    (void)out;
    ref_sample_store_fwd(in[0], in[1], in[2], in[3]);
}

// step: the position, then a token of each row.
OP_SPEC(sample_store_fwd,
        .in = "tokens i32:-1:1000 B; step i32:0:2147483647 1+B; drawn i32:-9:99 R B; "
              "window? i32:0:1000 W B",
        .out = "", .ref = store, .data = INT_ENDS, .nonzero = "RW",
        .smoke = "B=1 R=1 W=1; B=3 R=4 W=2; B=300 R=4 W=5", .gpu = "B=8 R=256 W=64",
        .full = "B=1 R=4 W=900", .cases = {{"plain"}, {"window", .with = "window i32:0:1000 W B"}});
