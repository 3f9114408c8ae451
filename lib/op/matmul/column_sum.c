// SPDX-License-Identifier: MIT

#include "op/matmul/matmul.h"
#include "op/row_launch.h"

// For many rows, about sqrt(rows) per block, which keeps both passes short.
static int64_t choose_block_rows(int64_t rows)
{
    enum { MIN_ROWS = 64 };
    int64_t block = MIN_ROWS;

    while (block * block < rows)
        block *= 2;
    return block;
}

static int64_t count_blocks(const struct column_sum *s)
{
    return ceil_div(s->rows, choose_block_rows(s->rows));
}

size_t attncl__column_sum_scratch(const struct column_sum *s)
{
    const int64_t n = count_blocks(s);
    return n > 1 ? (size_t)(s->batch * n * s->width) * sizeof(float) : 0;
}

// Sums each `block` rows of x into y [batch, blocks, width].
static attncl_status launch_pass(struct launcher *l, const struct column_sum *s, int64_t block,
                                 struct span x, struct span y)
{
    enum { VECTORS = 4 }; // as in column_sum.cl
    const struct group_launch p = attncl__group_launch(l->caps, "matmul/column_sum.cl",
                                                       "column_sum_blocks", COLUMN_SUM_WIDTH);
    const int64_t chunk = VECTORS * (int64_t)p.vw * (int64_t)p.local;
    const int64_t blocks = s->rows > block ? ceil_div(s->rows, block) : 1;
    const int64_t n_chunks = ceil_div(s->width, chunk);

    return attncl__launch(l, &p.spec, grid_1d(s->batch * blocks * n_chunks, p.local),
                          ARGS(arg_mem(x), arg_mem(y), arg_i64(s->rows), arg_i64(s->width),
                               arg_i64(block), arg_i64(blocks), arg_i64(n_chunks)));
}

attncl_status attncl__launch_column_sum(struct launcher *l, const struct column_sum *s,
                                        struct span x, struct span y, struct span scratch)
{
    const int64_t n = count_blocks(s);
    const struct column_sum second = {s->batch, n, s->width};

    if (n <= 1)
        return launch_pass(l, s, choose_block_rows(s->rows), x, y);
    TRY(launch_pass(l, s, choose_block_rows(s->rows), x, scratch));
    return launch_pass(l, &second, n, scratch, y);
}
