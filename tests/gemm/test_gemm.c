// SPDX-License-Identifier: MIT
// Every form of the GEMM against its reference: shapes, transposes, strides, epilogues.

#include <math.h>

#include "attncl/log.h"
#include "support/gemm_test.h"
#include "support/test.h"

// Chosen to hit: one element, few rows (dots and columns), one column, panels and tiles filled
// exactly and raggedly, several tiles, sums longer than a block.
static const struct shape {
    int m, n, k;
} shapes[] = {{1, 1, 1},    {1, 67, 130},   {4, 64, 16},    {3, 5, 257},   {37, 1, 19},
              {7, 13, 1},   {12, 64, 32},   {16, 20, 35},   {2, 33, 48},   {64, 64, 64},
              {61, 97, 53}, {97, 131, 67},  {101, 35, 611}, {5, 130, 70},  {8, 531, 129},
              {9, 31, 64},  {13, 300, 200}, {40, 65, 70},   {29, 144, 300}};

TABLE_TEST(matches_the_reference, shapes)
{
    static const int gaps[] = {0, 3, 4};
    const struct shape *x = &shapes[_i];

    for (int form = 0; form < 4; ++form)
        for (int i = 0; i < 3; ++i)
            if (test_has_full_sizes() ||
                ((_i + form) % 3 == i && (form == _i % 4 || !test_has_few_sizes())))
                gemm_check(&GEMM_CASE(1, x->m, x->n, x->k, .trans_a = form & 1,
                                      .trans_b = form >> 1, .gap = gaps[i]));
}

// Few rows and tiles, B plain and transposed; rows of whole and of broken vectors.
static const struct {
    attncl_dtype type;
    int m, n, k;
} stored[] = {{ATTNCL_F16, 3, 67, 40},    {ATTNCL_F16, 4, 140, 33},   {ATTNCL_BF16, 2, 256, 20},
              {ATTNCL_F16, 5, 64, 35},    {ATTNCL_F16, 37, 1, 19},    {ATTNCL_BF16, 61, 97, 53},
              {ATTNCL_BF16, 12, 130, 64}, {ATTNCL_BF16, 101, 35, 611}};

TABLE_TEST(weights_of_16_bits, stored)
{
    for (int trans_b = 0; trans_b < 2; ++trans_b) {
        if (!test_has_full_sizes() && trans_b != _i % 2)
            continue;
        struct gemm_case p =
            GEMM_CASE(1, stored[_i].m, stored[_i].n, stored[_i].k, .trans_b = trans_b,
                      .bias = GEMM_BIAS_COLUMN, .b_dtype = stored[_i].type, .scratch = true);
        if (test_has_full_sizes())
            gemm_check(&p);
        p.gap = 3;
        gemm_check(&p);
        p.gap = 4;
        gemm_check(&p);
    }
}

TEST(batches)
{
    for (int form = 0; form < 4; ++form) {
        struct gemm_case p = GEMM_CASE(3, 21, 35, 18, .trans_a = form & 1, .trans_b = form >> 1);
        gemm_check(&p);
        p.gap = 5;
        gemm_check(&p);
        p.shared_b = true;
        gemm_check(&p);
        p.m = 2;
        gemm_check(&p);
    }
}

TEST(causal)
{
    static const int sizes[] = {1, 2, 6, 7, 48, 97, 300};

    for (size_t i = 0; i < COUNT_OF(sizes); ++i)
        for (int trans_b = 0; trans_b < 2; ++trans_b)
            gemm_check(&GEMM_CASE(2, sizes[i], 37, sizes[i], .gap = 1, .trans_b = trans_b,
                                  .causal = true, .bias = GEMM_BIAS_ROW, .gate = true,
                                  .shared_b = trans_b));
}

// Row i of a causal GEMM is right whatever later rows of B hold.
TEST(causal_rows_do_not_depend_on_later_ones)
{
    struct gemm_data s;
    const struct gemm_case p = GEMM_CASE(1, 70, 19, 70, .causal = true);

    gemm_data_open(&s, &p);
    for (int j = 0; j < 19; ++j)
        s.data[B][40 * 19 + j] = INFINITY;
    ck_ok(gemm_data_run(&s));
    for (int i = 0; i < 70; ++i)
        for (int j = 0; j < 19; ++j)
            ck_assert_int_eq(!!isfinite(s.data[C][i * 19 + j]), i < 40);
    gemm_data_close(&s);
}

LOOP_TEST(epilogues, 0, ATTNCL_GELU_TANH + 1)
{
    if (test_has_few_sizes() && _i != ATTNCL_GELU)
        return;
    for (int parts = 0; parts < 12; ++parts)
        for (int few = 0; few < 2; ++few)
            if (test_has_full_sizes() ||
                (few == _i % 2 && (parts == 6 || parts == 11 || parts % 4 == _i % 4)))
                gemm_check(&GEMM_CASE(2, few ? 3 : 23, 41, 9, .gap = few, .trans_b = true,
                                      .bias = (enum gemm_bias)(parts % 3),
                                      .activation = (attncl_activation)_i, .gate = parts / 3 % 2,
                                      .residual = parts / 6));
}

// Times one column: done as one row times the transposed matrix, where that is possible.
TEST(one_column)
{
    for (int i = 0; i < 12; ++i) {
        struct gemm_case p = GEMM_CASE(
            2, 23, 1, 23, .trans_a = i % 2, .trans_b = true, .causal = i % 2 == 0 && i >= 6,
            .bias = (enum gemm_bias)(i % 3), .gate = i / 3 % 2, .residual = i % 4 == 2 || i == 1,
            .side_gap = i == 1 || i == 9);
        if (i % 4 == 3)
            p.b_dtype = ATTNCL_F16;
        gemm_check(&p);
    }
}

TEST(empty_sums_give_the_epilogue_of_zero)
{
    gemm_check(&GEMM_CASE(1, 3, 5, 0));
    gemm_check(&GEMM_CASE(2, 3, 37, 0, .gap = 2, .bias = GEMM_BIAS_ROW,
                          .activation = ATTNCL_SIGMOID, .gate = true, .residual = true));
}

TEST(empty_results_launch_nothing)
{
    gemm_check(&GEMM_CASE(0, 3, 5, 2));
    gemm_check(&GEMM_CASE(1, 0, 5, 2));
    gemm_check(&GEMM_CASE(1, 3, 0, 2));
}

// On a device with an iteration cap, sums are divided among launches and continue from C.
TEST(limited_loops)
{
    struct device_caps limited = test_context()->caps;
    struct gemm_case p = GEMM_CASE(2, 31, 45, 4003, .residual = true, .gap = 3, .caps = &limited,
                                   .backend = "native");

    limited.max_loop_iterations = 3000;
    for (int form = 0; form < 4; ++form) {
        p.trans_a = form & 1;
        p.trans_b = form >> 1;
        p.bias =
            form < 2 ? GEMM_BIAS_NONE : GEMM_BIAS_COLUMN; // the whole epilogue, and a part of it
        ck_assert_int_gt(gemm_check(&p), 1);
    }
    p = GEMM_CASE(1, 3, 5, 4003, .caps = &limited, .backend = "native");
    gemm_check(&p);
    limited.max_loop_iterations = 300;
    p.m = p.k = 350;
    p.n = 9;
    p.causal = true;
    gemm_check(&p);
}

// A single core gets tiles so tall that a transposed A is copied in several parts, the last ragged.
TEST(tall_tiles_of_a_transposed_a)
{
    static const int rows[] = {192, 193, 199, 294};
    struct device_caps single = test_context()->caps;

    single.compute_units = 1;
    for (size_t i = 0; i < COUNT_OF(rows); ++i)
        gemm_check(&GEMM_CASE(3, rows[i], 130, 101, .trans_a = true, .trans_b = i % 2,
                              .gap = (int)i, .caps = &single));
}

// A transposed A and a plain B of short rows are not copied: rows that fill no panel, several blocks
// of k, the whole epilogue.
TEST(short_rows_of_a_transposed_a)
{
    static const int rows[] = {17, 37, 128, 331};
    struct device_caps single = test_context()->caps;

    single.compute_units = 1;
    for (size_t i = 0; i < COUNT_OF(rows); ++i)
        gemm_check(&GEMM_CASE(1 + (int)i % 3, rows[i], i < 3 ? 64 * (int)i + 64 : 128,
                              i % 2 ? 1201 : 1024, .trans_a = true, .bias = GEMM_BIAS_COLUMN,
                              .activation = ATTNCL_GELU, .gate = i % 2, .residual = true,
                              .gap = (int)i, .caps = &single));
}

// A long sum into a small C uses split-K with splits of equal length, if there are any.
TEST(long_sums_use_split_k)
{
    struct device_caps single = test_context()->caps;
    const bool splits = single.variant == VARIANT_CPU && single.max_loop_iterations == 0;

    single.compute_units = 1;
    for (int i = 0; i < 6; ++i) { // the last two: of a batch, without scratch
        const int n_commands = gemm_check(
            &GEMM_CASE(i == 4 ? 2 : 1, 7, 5, i / 2 != 1 ? 2048 : 2049, .trans_a = true,
                       .trans_b = i % 2, .bias = GEMM_BIAS_COLUMN, .residual = true, .gap = 3,
                       .scratch = i < 5, .caps = &single, .backend = "native"));
        if (splits)
            ck_assert_int_eq(n_commands, i < 2 ? 2 : 1);
    }
}

static char last_line[256];
static int n_lines;

static void keep_line(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    if (level == ATTNCL_LOG_INFO && strncmp(text, "gemm ", 5) == 0) {
        snprintf(last_line, sizeof last_line, "%s", text);
        ++n_lines;
    }
}

TEST(the_choice_is_logged_once)
{
    const struct gemm_case p = GEMM_CASE(1, 19, 23, 29, .trans_b = true);

    attncl_log_set(keep_line, NULL, ATTNCL_LOG_INFO);
    gemm_check(&p);
    gemm_check(&p);
    attncl_log_set(NULL, NULL, ATTNCL_LOG_INFO);
    ck_assert_int_eq(n_lines, 1);
    ck_assert_msg(strstr(last_line, "gemm 19x23x29 NT, batch 1: ") != NULL, "%s", last_line);
    ck_assert_msg(strchr(last_line, '(') != NULL, "no reason in \"%s\"", last_line);
}

TEST(refusals)
{
    const struct gemm_case p = GEMM_CASE(1, 2, 2, 2);
    struct gemm_data s;

    gemm_data_open(&s, &p);
    s.g.m = INT64_C(1) << 31;
    ck_fails(gemm_data_run(&s), ATTNCL_ERR_UNSUPPORTED, "extent");
    gemm_data_close(&s);
}
