// SPDX-License-Identifier: MIT
// The gradients of layer normalisation, and of RMS normalisation, whose mean and bias are 0.  Host side: lib/op/norm/layer_norm_bwd.c
//
//   Work      LANES_PER_ROW work-items share a block of `block` rows, each the same columns of every row;
//             LS / LANES_PER_ROW blocks make a work-group; CPU variant: one work-item walks `per_group` blocks
//   Memory    reads x and dy and writes dx once, and a row of partial sums per block.  The CPU variant, and
//             rows that are not cached: reads x three times and dy twice, all but the first from cache,
//             and updates the partial sums row by row in cache
//   Numerics  mean and variance as in layer_norm.cl, from the whole row's mean; sums over rows in order
//
//   Macro  Meaning            Values
//   RMS    RMS normalisation  0 | 1

#include "common/row_tiling.clh"

#include "common/norm.clh"

#ifndef RMS
#error "RMS: RMS normalisation"
#endif

enum { SUMS = 2 - RMS }; // rows of a block's partial sums

// A work-item's sums over one row of d = x - near, d^2, g = dy weight and g d.
struct sums {
    FV d, dd, g, gd;
};

static inline void add_vector(struct sums *s, FV d, FV g)
{
    s->d += d;
    s->dd += d * d;
    s->g += g;
    s->gd += g * d;
}

#if LS == 1

// Writes the row's dx and adds its part to dw and db.  MAP_ROW_VECS(), without branches in whole vectors, is 1.15
// times as fast as FOR_ROW_VECS() while rows lie in cache.
static inline void add_row_gradients(__global const float *x, __global const float *weight,
                                     __global const float *dy, __global float *dx,
                                     __global float *dw, __global float *db, int width, float eps)
{
    const float count = (float)width, near = RMS ? 0.0f : item_sum(x, width) / count;
    struct sums s = {(FV)(0.0f), (FV)(0.0f), (FV)(0.0f), (FV)(0.0f)};

    MAP_ROW_VECS(c, n, width,
                 add_vector(&s, row_vec_load(x, c, n, near) - near,
                            row_vec_load(dy, c, n, 0.0f) * row_vec_load(weight, c, n, 0.0f)));
    const float2 d = (float2)(horizontal_sum(s.d), horizontal_sum(s.dd));
    const float g_sum = RMS ? 0.0f : horizontal_sum(s.g), gd_sum = horizontal_sum(s.gd);
    const float3 norm = norm_terms(near, d, count, eps, RMS);
    const float rest = norm.y, scale = norm.z;
    const float g_mean = g_sum / count, gh_mean = (gd_sum - rest * g_sum) * scale / count;

    MAP_ROW_VECS(c, n, width, const FV h = ((row_vec_load(x, c, n, 0.0f) - near) - rest) * scale;
                 const FV d_y = row_vec_load(dy, c, n, 0.0f);
                 const FV g = d_y * row_vec_load(weight, c, n, 0.0f);
                 row_vec_store(scale * ((g - g_mean) - h * gh_mean), dx, c, n);
                 row_vec_store(row_vec_load(dw, c, n, 0.0f) + d_y * h, dw, c, n);
                 if (!RMS) row_vec_store(row_vec_load(db, c, n, 0.0f) + d_y, db, c, n));
}

#else

// Adds v to a sum over rows: *held if columns are cached, else memory.
static inline void add_to(FV *held, __global float *sum, FV v, int c, int n)
{
#if VECS_PER_LANE
    *held += c < n ? v : (FV)(0.0f);
#else
    row_vec_store(row_vec_load(sum, c, n, 0.0f) + v, sum, c, n);
#endif
}

#endif

// x, dy, dx: [rows, width]; parts: [blocks, SUMS, width], the sums of dy h and of dy, where
// h = (x - mean) scale
KERNEL void layer_norm_bwd_rows(__global const float *restrict x,
                                __global const float *restrict weight,
                                __global const float *restrict dy, __global float *restrict dx,
                                __global float *restrict parts, int width, long rows, int block,
                                long blocks, int per_group, float eps)
{
#if LS == 1
    FOR_ROWS (part, blocks, per_group) {
        __global float *dw = parts + SUMS * part * width, *db = dw + width;
        const long end = min((part + 1) * block, rows);

        MAP_ROW_VECS(c, n, SUMS * width, row_vec_store((FV)(0.0f), dw, c, n));
        for (long row = part * block; row < end; ++row)
            add_row_gradients(x + row * width, weight, dy + row * width, dx + row * width, dw, db,
                              width, eps);
    }
#else
    ROW_REDUCE_LOCALS(tmp, 5);

    FOR_ROWS (part, blocks, per_group) {
        const int columns = part < blocks ? width : 0;
        __global float *dw = parts + SUMS * part * width, *db = dw + width;
        FV dw_v[VECS_PER_LANE ? VECS_PER_LANE : 1], db_v[VECS_PER_LANE ? VECS_PER_LANE : 1];
        ROW_CACHE_ARRAY(x_v);
        ROW_CACHE_ARRAY(dy_v);

        FOR_ROW_VECS (k, c, columns) {
            dw_v[VECS_PER_LANE ? k : 0] = db_v[VECS_PER_LANE ? k : 0] = (FV)(0.0f);
            row_vec_store((FV)(0.0f), dw, c, columns);
            if (!RMS)
                row_vec_store((FV)(0.0f), db, c, columns);
        }
        for (int i = 0; i < block; ++i) {
            const long row = part * block + i;
            const int n = row < rows ? columns : 0; // rows beyond only take part in the barriers
            __global const float *xr = x + row * width, *dyr = dy + row * width;
            const float count = (float)n;

            FV sum = (FV)(0.0f);
            FOR_ROW_VECS (k, c, n)
                sum += ROW_CACHE(x_v, k, row_vec_load(xr, c, n, 0.0f));
            const float near =
                RMS ? 0.0f : row_reduce_sum(horizontal_sum(sum), ROW_REDUCE_SLOT(tmp, 0)) / count;

            struct sums s = {(FV)(0.0f), (FV)(0.0f), (FV)(0.0f), (FV)(0.0f)};
            FOR_ROW_VECS (k, c, n) {
                const FV v = ROW_CACHED(x_v, k, row_vec_load(xr, c, n, 0.0f));
                const FV g = ROW_CACHE(dy_v, k, row_vec_load(dyr, c, n, 0.0f)) *
                             row_vec_load(weight, c, n, 0.0f);
                add_vector(&s, LANES < (IV)(n - c) ? v - near : (FV)(0.0f), g);
            }
#if RMS // two slots in turn: no other reduction lies between those of two rows
            const float2 both =
                row_reduce_sum2((float2)(horizontal_sum(s.dd), horizontal_sum(s.gd)),
                                ROW_REDUCE_SLOT(tmp, 2 * (i & 1)));
            const float4 all = (float4)(0.0f, both.x, 0.0f, both.y);
#else
            const float4 all = row_reduce_sum4((float4)(horizontal_sum(s.d), horizontal_sum(s.dd),
                                                        horizontal_sum(s.g), horizontal_sum(s.gd)),
                                               ROW_REDUCE_SLOT(tmp, 1));
#endif
            const float3 norm = norm_terms(near, all.xy, count, eps, RMS);
            const float rest = norm.y, scale = norm.z;
            const float g_mean = all.z / count;
            const float gh_mean = (all.w - rest * all.z) * scale / count;

            FOR_ROW_VECS (k, c, n) {
                const FV v = ROW_CACHED(x_v, k, row_vec_load(xr, c, n, 0.0f));
                const FV d_y = ROW_CACHED(dy_v, k, row_vec_load(dyr, c, n, 0.0f));
                const FV h = ((v - near) - rest) * scale;
                const FV g = d_y * row_vec_load(weight, c, n, 0.0f);
                row_vec_store(scale * ((g - g_mean) - h * gh_mean), dx + row * width, c, n);
                add_to(&dw_v[VECS_PER_LANE ? k : 0], dw, d_y * h, c, n);
                if (!RMS)
                    add_to(&db_v[VECS_PER_LANE ? k : 0], db, d_y, c, n);
            }
        }
#if VECS_PER_LANE
        FOR_ROW_VECS (k, c, columns) {
            row_vec_store(dw_v[k], dw, c, columns);
            if (!RMS)
                row_vec_store(db_v[k], db, c, columns);
        }
#endif
    }
#endif
}
