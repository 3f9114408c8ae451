// SPDX-License-Identifier: MIT

#include "support/fused_step_test.h"

#include <math.h>

#include "ref/ref.h"
#include "support/compare.h"

const float stream_eps = 1e-5f;

struct stream stream_make(unsigned seed, int64_t m, int64_t d, int64_t n_partials)
{
    struct stream s = {
        .x = host_random(seed, DIMS(m, d)),
        .norm_weight = host_random(seed + 1, DIMS(d)),
        .norm_bias = host_random(seed + 2, DIMS(d)),
    };
    s.reduced = host_like(s.x);
    s.z = host_like(s.x);
    if (n_partials > 0) {
        s.partials = host_random(seed + 3, DIMS(n_partials, m, d));
        s.bias = seed / 10 % 3 == 0 ? NULL : host_random(seed + 4, DIMS(d));
    }
    // Rows far from 0, whose means round: x itself would too with partial sums added.
    for (int64_t i = 0; n_partials == 0 && i < m * d; ++i)
        s.x->data[i] = (float)(s.x->data[i] + 4096);
    for (int64_t i = 0; i < m * d; ++i) {
        s.reduced->data[i] = s.x->data[i] + (s.bias ? s.bias->data[i % d] : 0);
        for (int64_t p = 0; p < n_partials; ++p)
            s.reduced->data[i] += s.partials->data[p * m * d + i];
    }
    ref_layer_norm_fwd(s.reduced, s.norm_weight, s.norm_bias, (double)stream_eps, s.z);
    return s;
}

static struct host *map(const struct host *z, const struct host *weight, const struct host *bias,
                        bool sizes)
{
    const int64_t in = weight->dim[1], out = weight->dim[0], m = z->count / in;
    struct host *y = host_new(ATTNCL_F32, DIMS(m, out));

    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < out; ++j) {
            double sum = bias ? bias->data[j] : 0;
            sum = sizes ? fabs(sum) : sum;
            for (int64_t c = 0; c < in; ++c) {
                const double term = z->data[i * in + c] * weight->data[j * in + c];
                sum += sizes ? fabs(term) : term;
            }
            y->data[i * out + j] = sum;
        }
    return y;
}

struct host *map_rows(const struct host *z, const struct host *weight, const struct host *bias)
{
    return map(z, weight, bias, false);
}

struct host *map_sizes(const struct host *z, const struct host *weight, const struct host *bias)
{
    return map(z, weight, bias, true);
}

void ck_partials(const struct host *partials, const struct host *want, const struct host *size,
                 double tolerance)
{
    struct worst w = {0};

    for (int64_t i = 0; i < want->count; ++i) {
        double sum = 0;
        for (int64_t p = 0; p < partials->dim[0]; ++p)
            sum += partials->data[p * want->count + i];
        worst_add(&w, i, sum, want->data[i], tolerance * size->data[i]);
    }
    ck_worst(&w, 1, "sums of partial results");
}
