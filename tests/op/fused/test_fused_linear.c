// SPDX-License-Identifier: MIT
// Linear maps with a norm or parts of attention in front, and several at once, against the references of what they
// stand for: tests/ref/layer_norm.c, tests/ref/gemm.c; parts are merged here.

#include <math.h>

#include "base/quantised.h"
#include "device/context.h"
#include "op/fused/fused.h"
#include "ref/ref.h"
#include "support/op_test.h"

struct map_case {
    int64_t rows, in, out;
    bool norm, rms;                // rms: by RMS
    int64_t sums;                  // partial sums that x lacks
    int64_t more;                  // columns of the two other products; 0: one
    int64_t n_heads, parts, limit; // n_heads 0: x is rows
    int position;                  // of the parts: has position + own_key keys
    bool own_key, refused;         // refused: by every device
    bool gate, residual, views;    // views: all that may be
    bool sums_biased;              // the sums' bias
    unsigned biased;               // a bit per product
    int32_t activation;
    attncl_dtype dtype; // of the weights; 0: F32
    double mean;        // of x
};

enum { N_PRODUCTS = 1 + GEMM_MAX_OTHERS };
static const double u = 6e-8; // a rounding

static struct host *view_if(bool wanted, struct host *h)
{
    return wanted && h ? host_view(h) : h;
}

static struct host *random_if(bool wanted, unsigned seed, int rank, const int64_t *dim)
{
    return wanted ? host_random(seed, rank, dim) : NULL;
}

static struct host *random_weight(const struct map_case *c, unsigned seed, int64_t out)
{
    struct host *w = host_random(seed, DIMS(out, c->in));
    return view_if(c->views, c->dtype ? host_stored(w, c->dtype) : w);
}

// Rows, or parts that have keys; what the other ones hold is not looked at.
static struct host *random_x(const struct map_case *c, int64_t n_used)
{
    if (!c->n_heads) {
        struct host *x = host_random(1, DIMS(c->rows, c->in));
        for (int64_t i = 0; i < x->count; ++i)
            x->data[i] = (double)(float)(x->data[i] + c->mean);
        return view_if(c->views, x);
    }
    const int64_t width = 2 + c->in / c->n_heads;
    struct host *x = host_random(1, DIMS(c->rows, c->n_heads, c->parts, width));
    for (int64_t i = 0; i < x->count / width; ++i) {
        x->data[i * width + 1] = (double)(float)(0.5 + fabs(x->data[i * width + 1]));
        for (int64_t j = 0; i % c->parts >= n_used && j < width; ++j)
            x->data[i * width + j] = NAN;
    }
    return x;
}

// Parts of 32 keys at least, as cl/common/attention_merge.clh shares them out.
static int64_t used_parts(const struct map_case *c)
{
    const int64_t own = c->own_key, limit = c->limit - own;
    const int64_t n = own + (c->position < 0 ? 0 : c->position > limit ? limit : c->position);
    const int64_t even = c->parts ? (n + c->parts - 1) / c->parts : 1, each = even > 32 ? even : 32;
    return (n + each - 1) / each;
}

// A part counts e^(its largest score) in each sum.  z [rows, in], and what it may be off by.
static void merge(const struct map_case *c, const struct host *x, int64_t n_used, struct host *z,
                  struct host *off)
{
    const int64_t width = c->in / c->n_heads;

    for (int64_t head = 0; head < c->rows * c->n_heads; ++head) {
        const double *parts = x->data + head * c->parts * (2 + width);
        double most = -INFINITY, total = 0;
        for (int64_t p = 0; p < n_used; ++p)
            most = fmax(most, parts[p * (2 + width)]);
        for (int64_t p = 0; p < n_used; ++p)
            total += exp(parts[p * (2 + width)] - most) * parts[p * (2 + width) + 1];
        for (int64_t i = 0; i < n_used * width; ++i) {
            const double *part = parts + i / width * (2 + width);
            const double below = most - part[0], term = exp(-below) * part[2 + i % width] / total;
            z->data[head * width + i % width] += term;
            // Of the exponential, of all of them, of the sums.
            off->data[head * width + i % width] +=
                fabs(term) * u * (2 * below + 20 + 2 * (double)n_used);
        }
    }
}

// x + (bias + the sums), rounded to float: what the norm is of.
static struct host *add_sums(const struct map_case *c, const struct host *x,
                             const struct host *sums, const struct host *bias)
{
    struct host *total = host_like(x);

    for (int64_t i = 0; i < x->count; ++i) {
        double sum = bias ? bias->data[i % c->in] : 0;
        for (int64_t s = 0; s < c->sums; ++s)
            sum += sums->data[s * x->count + i];
        total->data[i] = x->data[i] + sum;
    }
    return total;
}

static void normalise(const struct map_case *c, const struct host *x,
                      const struct host *const norm[2], struct host *z, struct host *off)
{
    const double n = (double)c->in;
    const double size = fmax(host_largest(norm[0]), norm[1] ? host_largest(norm[1]) : 0);

    ref_layer_norm_fwd(x, norm[0], norm[1], 1e-5, z);
    for (int64_t i = 0; i < z->count; ++i)
        off->data[i] = (8 + n / 256) * u * fabs(z->data[i]) +
                       u * (4 * log2(n + 1) + 2 + 4 * (double)c->sums) * size;
}

// What an error of z adds to element i: no activation is steeper than 1.13.
static double carried(const struct map_case *c, const struct host *weight, const struct host *off,
                      int64_t i)
{
    const int64_t out = weight->dim[0];
    double sum = 0;
    for (int64_t k = 0; k < c->in; ++k)
        sum += fabs(weight->data[i % out * c->in + k]) * off->data[i / out * c->in + k];
    return 1.13 * sum;
}

// in: of the op, with z for x.
static void compare(const struct map_case *c, struct host *const in[N_LINEAR_INPUTS],
                    const struct host *off, const struct host *got)
{
    struct gemm g = ref_linear(c->rows, got->dim[1], c->in, in[LINEAR_BIAS] != NULL, c->activation);
    struct host *want = host_like(got), *bound = host_like(got);
    const double *data[N_LINEAR_INPUTS];

    g.b_dtype = in[LINEAR_WEIGHT]->dtype;
    for (int i = 0; i < N_LINEAR_INPUTS; ++i)
        data[i] = in[i] ? in[i]->data : NULL;
    ref_gemm(&g, &(struct ref_operands){data[0], data[1], data[2], data[3], data[4]}, want->data,
             bound->data);
    for (int64_t i = 0; i < got->count; ++i)
        bound->data[i] += carried(c, in[LINEAR_WEIGHT], off, i) *
                          (data[LINEAR_GATE] ? fabs(data[LINEAR_GATE][i]) : 1);
    ck_terms(got, want, bound, 1, 0, "y");
}

// What the library says beforehand; of devices with room and without limits of loops the case knows it too.
static bool is_supported(const struct map_case *c)
{
    const struct device_caps *caps = &test_context()->caps;
    const struct gemm g = GEMM_OF(1, c->rows, c->out, c->in, .b_dtype = c->dtype, .trans_b = true,
                                  .merge = {.n_heads = c->n_heads, .n_parts = c->parts});
    const bool does = (!c->norm || attncl__gemm_can_norm(caps, &g)) &&
                      (!c->sums || (c->norm && attncl__gemm_can_add_partials(caps, &g))) &&
                      (!c->n_heads || attncl__gemm_can_merge(caps, &g)) &&
                      (!c->more || attncl__gemm_can_take_others(caps, &g));
    const bool quantised = attncl__is_quantised(c->dtype);
    const bool by_cpu = (!c->more || quantised) && !c->n_heads &&
                        c->rows <= (quantised && c->norm ? 4 : 16) &&
                        (!c->sums || (c->norm && !quantised && c->in % caps->vector_width == 0));

    if (caps->local_bytes >= 48 << 10 && !caps->max_loop_iterations)
        ck_assert(does == (!c->refused &&
                           (caps->variant == VARIANT_GPU ? !quantised && !c->sums : by_cpu)));
    return does;
}

static void check(const struct map_case *c)
{
    const struct fused_linear_fwd_params params = {
        {c->activation}, 1e-5f, c->own_key, (int32_t)c->limit};
    const int64_t n_used = used_parts(c);
    struct host *norm[2] = {random_if(c->norm, 2, DIMS(c->in)),
                            random_if(c->norm && !c->rms, 3, DIMS(c->in))};
    struct host *x = random_x(c, n_used), *z = host_new(ATTNCL_F32, DIMS(c->rows, c->in)),
                *off = host_like(z);
    struct host *partials = random_if(c->sums > 0, 6, DIMS(c->sums, c->rows, c->in)),
                *partials_bias = random_if(c->sums_biased, 7, DIMS(c->in));
    struct host *gate = view_if(c->views, random_if(c->gate, 4, DIMS(c->rows, c->out)));
    struct host *residual = view_if(c->views, random_if(c->residual, 5, DIMS(c->rows, c->out)));
    struct host *w[N_PRODUCTS] = {0}, *b[N_PRODUCTS] = {0}, *y[N_PRODUCTS];
    const int n_products = c->more ? N_PRODUCTS : 1;

    for (int i = 0; i < n_products; ++i) {
        const int64_t out = i ? c->more : c->out;
        w[i] = random_weight(c, 10 + (unsigned)i, out);
        b[i] = random_if(c->biased >> i & 1, 20 + (unsigned)i, DIMS(out));
        y[i] = host_new(ATTNCL_F32, DIMS(c->rows, out));
    }
    struct host *const in[N_FUSED_LINEAR_INPUTS] = {
        x,       w[0],    b[0],     gate,          residual,
        norm[0], norm[1], partials, partials_bias, c->n_heads ? host_index(c->position) : NULL,
        w[1],    b[1],    w[2],     b[2]};
    const attncl_status status =
        run_op("fused_linear_fwd", &params, in, N_FUSED_LINEAR_INPUTS, y, n_products);
    if (!is_supported(c)) {
        ck_fails(status, ATTNCL_ERR_UNSUPPORTED, "cannot be fused");
        return;
    }
    ck_ok(status);
    if (c->norm)
        normalise(c, c->sums ? add_sums(c, x, partials, partials_bias) : x,
                  (const struct host *const *)norm, z, off);
    else if (c->n_heads)
        merge(c, x, n_used, z, off);
    else
        z = x;
    for (int i = 0; i < n_products; ++i)
        compare(c, (struct host *const[]){z, w[i], b[i], gate, residual}, off, y[i]);
}

// Chosen to hit: one row and two, several, all that are allowed, blocks of eight and a rest; columns of one work-item, and
// of several with a rest; rows of less than a vector, a whole number, a ragged tail.
static const struct map_case norms[] = {
    {1, 32, 259, .norm = true, .biased = 1},
    {2, 7, 17, .norm = true, .gate = true, .activation = ATTNCL_GELU},
    {4, 515, 26, .norm = true, .biased = 1, .residual = true},
    {5, 67, 260, .norm = true, .biased = 1, .residual = true},
    {16, 18, 33, .norm = true},
    {3, 21, 19, .norm = true, .gate = true, .residual = true, .views = true},
    {8, 700, 19, .norm = true, .biased = 1, .residual = true},
    {32, 33, 64, .norm = true, .gate = true, .activation = ATTNCL_GELU},
    {21, 40, 37, .norm = true, .residual = true, .views = true, .dtype = ATTNCL_F16},
    {33, 20, 7, .norm = true, .refused = true},
    {1, 32, 65, .norm = true, .biased = 1, .dtype = ATTNCL_F16},
    {3, 37, 20, .norm = true, .gate = true, .dtype = ATTNCL_BF16},
    {7, 37, 20, .norm = true, .activation = ATTNCL_GELU, .dtype = ATTNCL_BF16},
    {3, 100, 9, .norm = true,
     .mean = 1e4}, // the mean is corrected: it does not matter how large it is
    {1, 37, 65, .norm = true, .rms = true, .mean = 2},
    {3, 515, 18, .norm = true, .rms = true, .gate = true, .residual = true, .views = true},
    {8, 67, 35, .norm = true, .rms = true, .biased = 1, .activation = ATTNCL_GELU,
     .dtype = ATTNCL_F16},
    {1, 32, 7, .norm = true, .dtype = ATTNCL_Q8},
    {1, 160, 259, .norm = true, .rms = true, .mean = 3, .biased = 1, .dtype = ATTNCL_Q4},
    {3, 96, 35, .norm = true, .gate = true, .residual = true, .activation = ATTNCL_GELU,
     .dtype = ATTNCL_Q4},
    {4, 64, 200, .norm = true, .rms = true, .dtype = ATTNCL_Q8},
    {5, 64, 20, .norm = true, .dtype = ATTNCL_Q8, .refused = true},
};
TABLE_TEST(norm, norms)
{
    check(&norms[_i]);
}

// What fused steps leave: one sum and several, rows of one vector and of more, without a norm and for quantised weights not.
static const struct map_case sums[] = {
    {1, 32, 259, .norm = true, .sums = 1, .biased = 1},
    {1, 128, 65, .norm = true, .sums = 8, .sums_biased = true},
    {3, 64, 19, .norm = true, .rms = true, .sums = 3, .sums_biased = true, .residual = true},
    {16, 48, 33, .norm = true, .sums = 2, .views = true, .dtype = ATTNCL_F16},
    {2, 37, 17, .norm = true, .sums = 2},
    {2, 32, 17, .sums = 2},
    {1, 32, 7, .norm = true, .sums = 2, .dtype = ATTNCL_Q8},
    {17, 32, 7, .norm = true, .sums = 2},
};
TABLE_TEST(partial_sums, sums)
{
    check(&sums[_i]);
}

static const struct map_case products[] = {
    {1, 32, 32, .norm = true, .more = 32, .biased = 7},
    {1, 7, 5, .more = 1, .biased = 2},
    {3, 67, 21, .norm = true, .more = 7, .biased = 5},
    {4, 515, 6, .norm = true, .more = 6},
    {2, 33, 9, .norm = true, .more = 9, .biased = 4, .views = true},
    {2, 37, 10, .norm = true, .more = 5, .dtype = ATTNCL_F16},
    {2, 37, 10, .norm = true, .rms = true, .more = 5, .biased = 7, .mean = 2},
    {5, 67, 21, .norm = true, .more = 21, .biased = 5},
    {8, 515, 16, .norm = true, .more = 8},
    {17, 33, 19, .more = 9, .biased = 4, .views = true},
    {32, 37, 10, .norm = true, .more = 10, .dtype = ATTNCL_BF16},
    {33, 8, 8, .more = 8, .refused = true},
    {32, 512, 704, .more = 704, .refused = true}, // a launch more takes less time
    {1, 64, 40, .norm = true, .more = 40, .biased = 7, .dtype = ATTNCL_Q8},
    {3, 96, 200, .norm = true, .rms = true, .more = 35, .biased = 5, .dtype = ATTNCL_Q4},
    {16, 64, 150, .more = 70, .biased = 2, .dtype = ATTNCL_Q4},
    {17, 64, 20, .more = 20, .dtype = ATTNCL_Q8, .refused = true},
};
TABLE_TEST(several_products, products)
{
    check(&products[_i]);
}

#define PARTS(heads, n, most, at)                                                                  \
    .n_heads = (heads), .parts = (n), .limit = (most), .position = (at)
// Parts that are full, cut short, and not there yet; positions outside, which count as the nearest; blocks of rows.
static const struct map_case parts[] = {
    {1, 1, 2, PARTS(1, 1, 1, 0), .own_key = true, .biased = 1},
    {1, 256, 19, PARTS(4, 3, 66, 65), .own_key = true},
    {2, 21, 10, PARTS(3, 1, 9, 4), .gate = true, .residual = true, .activation = ATTNCL_GELU},
    {2, 21, 10, PARTS(3, 1, 9, 8), .residual = true, .biased = 1, .views = true},
    {4, 66, 21, PARTS(2, 5, 140, 130), .own_key = true, .gate = true},
    {1, 24, 30, PARTS(2, 32, 1024, 31), .own_key = true, .biased = 1},
    {1, 24, 30, PARTS(2, 32, 1024, 32), .own_key = true},
    {1, 24, 30, PARTS(2, 32, 1024, 32)},
    {2, 129, 7, PARTS(1, 32, 1024, 300), .own_key = true},
    {3, 8, 5, PARTS(2, 11, 1024, 2000), .own_key = true},
    {3, 8, 5, PARTS(2, 11, 1024, -1), .own_key = true},
    {5, 48, 18, PARTS(2, 2, 40, 39), .own_key = true, .biased = 1},
    {8, 21, 16, PARTS(3, 3, 140, 130), .residual = true, .activation = ATTNCL_GELU},
    {21, 9, 10, PARTS(1, 1, 9, 8), .gate = true, .views = true},
    {32, 16, 18, PARTS(2, 2, 40, 33), .dtype = ATTNCL_F16},
    {1, 48, 18, PARTS(2, 2, 40, 39), .biased = 1, .dtype = ATTNCL_BF16},
    {33, 4, 10, PARTS(1, 1, 9, 8), .refused = true},
    {2, 21, 10, PARTS(3, 1, 9, 8), .dtype = ATTNCL_F16, .refused = true}, // heads of 7
};
TABLE_TEST(merged_parts, parts)
{
    check(&parts[_i]);
}

// What all work-groups read grows with columns, parts and elements.
TEST(large_maps_leave_merging_to_a_launch)
{
    static const struct {
        int64_t m, n, n_parts;
        size_t local_bytes;
        bool merges;
    } rows[] = {
        {1, 1024, 17, 48 << 10, true},  {1, 1024, 34, 48 << 10, false},
        {1, 4096, 17, 48 << 10, false}, {4, 1024, 8, 48 << 10, true},
        {8, 1024, 8, 48 << 10, true}, // a block
        {16, 1024, 8, 48 << 10, false}, {1, 1024, 8, 1024, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        const struct device_caps caps = {.variant = VARIANT_GPU,
                                         .compute_units = 132,
                                         .local_bytes = rows[i].local_bytes,
                                         .max_group = 256};
        const struct gemm g = GEMM_OF(1, rows[i].m, rows[i].n, 1024, .trans_b = true,
                                      .merge = {.n_heads = 16, .n_parts = rows[i].n_parts});
        ck_assert(attncl__gemm_can_merge(&caps, &g) == rows[i].merges);
    }
}
