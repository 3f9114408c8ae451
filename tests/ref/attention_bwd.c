// SPDX-License-Identifier: MIT
//
// Gradients of sum_i y_i . g_i + sum_ij p_ij c_ij:
//
//   dv_j = sum_i m_ij p_ij g_i,   dp_ij = m_ij g_i . v_j + c_ij,   dbias_ij = p_ij (dp_ij - sum_j p_ij dp_ij)
//   ds_ij = scale slope_ij dbias_ij,   dq_i = sum_j ds_ij k_j,   dk_j = sum_i ds_ij q_i
//
// slope is that of a soft cap, or 1.  A masked score is a constant: ds is 0 there.  With `sizes` all terms are taken as positive: what
// a result's rounding errors are measured by.  A key of weight 0 contributes nothing, not 0 times what may be NaN; with
// `reaching` it does.

#include <math.h>

#include "ref/ref.h"

// ds of one row without scale from dp and p, in place of dp.
static void softmax_row(const double *p, double *dp, int64_t n, int64_t length, bool sizes)
{
    double mean = 0;

    for (int64_t j = 0; j < n; ++j)
        mean += p[j] * dp[j];
    for (int64_t j = 0; j < n; ++j)
        dp[j] = j < length ? p[j] * (sizes ? dp[j] + mean : dp[j] - mean) : 0;
}

static int64_t length_of(const struct host *lens, int64_t b, int64_t i, int64_t n)
{
    if (!lens)
        return n;
    return (int64_t)lens->data[lens->rank == 1 ? b : b * lens->dim[1] + i];
}

static double signed_or_size(double x, bool sizes)
{
    return sizes ? fabs(x) : x;
}

static double dot(const double *a, const double *b, int64_t n, bool sizes)
{
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
        sum += signed_or_size(a[i] * b[i], sizes);
    return sum;
}

static void add(double *to, double factor, const double *x, int64_t n, bool sizes)
{
    for (int64_t i = 0; i < n; ++i)
        to[i] += signed_or_size(factor * x[i], sizes);
}

// Of the soft cap at the score of a pair.  As a size: it is known to some roundings of 1, of which a result's limit is 1e-5.
static double slope(const struct ref_attention *a, const double *q, const double *k, int64_t width,
                    bool sizes)
{
    const double capped = ref_attention_score(a, dot(q, k, width, false)) / a->softcap;
    return a->softcap > 0 ? 1 - capped * capped + (sizes ? 0.25 : 0) : 1;
}

// Of a bias whose axes may be 1.
static double *element(struct host *bias, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t at[] = {b, h, i, j};
    int64_t place = 0;

    for (int k = 0; k < 4; ++k)
        place = place * bias->dim[k] + (bias->dim[k] == 1 ? 0 : at[k]);
    return bias->data + place;
}

static void clear(struct host *x)
{
    for (int64_t i = 0; i < x->count; ++i)
        x->data[i] = 0;
}

void ref_attention_bwd(const struct ref_attention *a, const struct ref_attention_data *x,
                       bool time_first, bool sizes, struct host *dq, struct host *dk,
                       struct host *dv, struct host *dbias)
{
    const int64_t n_batch = x->q->dim[0], n_heads = x->q->dim[1], n_queries = x->q->dim[2];
    const int64_t width = x->q->dim[3], n_kv = x->k->dim[1], n_keys = x->k->dim[2];
    const int64_t value_width = x->v->dim[3];
    struct host *p = host_new(ATTNCL_F32, DIMS(n_batch, n_heads, n_queries, n_keys));
    struct host *ds = host_new(ATTNCL_F32, DIMS(n_keys)), *mask = host_like(p);

    ref_attention_weights(a, x->q, x->k, p);
    for (int64_t i = 0; i < mask->count; ++i)
        mask->data[i] = 1;
    ref_attention_drop(a, mask);
    clear(dq);
    clear(dk);
    clear(dv);
    if (dbias)
        clear(dbias);
    for (int64_t row = 0; row < n_batch * n_heads * n_queries; ++row) {
        const int64_t head = row / n_queries, i = row % n_queries;
        const int64_t b = head / n_heads, h = head % n_heads;
        const int64_t y_row = (time_first ? i * n_batch + b : b * n_queries + i) * n_heads + h;
        const double *g = x->g->data + y_row * value_width, *pi = p->data + row * n_keys;
        for (int64_t j = 0; j < n_keys; ++j) {
            const int64_t key = head * n_kv / n_heads * n_keys + j;
            ds->data[j] = 0;
            if (pi[j] == 0 && !a->reaching)
                continue;
            const double m = mask->data[row * n_keys + j];
            ds->data[j] = m * dot(g, x->v->data + key * value_width, value_width, sizes) +
                          (x->c ? signed_or_size(x->c->data[row * n_keys + j], sizes) : 0);
            add(dv->data + key * value_width, m * pi[j], g, value_width, sizes);
        }
        softmax_row(pi, ds->data, n_keys, length_of(a->valid_lens, b, i, n_keys), sizes);
        for (int64_t j = 0; j < n_keys; ++j) {
            const int64_t key = head * n_kv / n_heads * n_keys + j;
            if (pi[j] == 0 && !a->reaching)
                continue;
            if (dbias)
                *element(dbias, b, h, i, j) += ds->data[j];
            ds->data[j] *= a->scale * slope(a, x->q->data + row * width, x->k->data + key * width,
                                            width, sizes);
            add(dq->data + row * width, ds->data[j], x->k->data + key * width, width, sizes);
            add(dk->data + key * width, ds->data[j], x->q->data + row * width, width, sizes);
        }
    }
}
