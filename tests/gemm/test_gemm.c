// SPDX-License-Identifier: MIT
// Every form of the GEMM against its reference: shapes, transposes, strides, epilogues.

#include <math.h>

#include "attncl/log.h"
#include "base/env.h"
#include "launch/command_list.h"
#include "ref/ref.h"
#include "support/test.h"

// What a case is made of; the matrices' places are chosen by lay_out().
struct gemm_case {
    int64_t batch, m, n, k;
    bool trans_a, trans_b, causal;
    enum gemm_bias bias;
    enum gemm_activation activation;
    bool gate, residual;
    int gap;       // elements between rows, and before the first
    bool shared_b; // one B for all entries
    bool scratch;  // what the GEMM asks for
};

enum { A, B, C, BIAS, GATE, RESIDUAL, SCRATCH, N_OPERANDS };

struct setup {
    struct gemm g;
    struct storage storage[N_OPERANDS];
    float *data[N_OPERANDS];
    double *exact[N_OPERANDS];
    int64_t count[N_OPERANDS];
};

static const char *forced;             // stands for ATTNCL_GEMM
static const struct device_caps *caps; // the device's, or a test's changed copy
static size_t n_launched;              // by the last run

static uint32_t random_state;
static float next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(int32_t)random_state * (1.0f / 2147483648.0f);
}

static int64_t place(struct gemm_matrix *x, int64_t batch, int64_t rows, int64_t columns, int gap)
{
    *x = (struct gemm_matrix){.start = gap, .ld = columns + gap};
    x->batch_stride = batch > 1 ? rows * x->ld + gap : 0;
    return x->start + (batch > 1 ? batch : 1) * (rows * x->ld + gap);
}

static void lay_out(struct setup *s, const struct gemm_case *p)
{
    struct gemm *g = &s->g;

    *g = (struct gemm){.batch = p->batch,
                       .m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .trans_a = p->trans_a,
                       .trans_b = p->trans_b,
                       .causal = p->causal,
                       .bias_kind = p->bias,
                       .activation = p->activation};
    s->count[A] = p->trans_a ? place(&g->a, p->batch, p->k, p->m, p->gap)
                             : place(&g->a, p->batch, p->m, p->k, p->gap);
    const int64_t b_batch = p->shared_b ? 1 : p->batch;
    s->count[B] = p->trans_b ? place(&g->b, b_batch, p->n, p->k, p->gap)
                             : place(&g->b, b_batch, p->k, p->n, p->gap);
    s->count[C] = place(&g->c, p->batch, p->m, p->n, p->gap);
    s->count[BIAS] = p->bias == GEMM_BIAS_ROW ? p->m : p->bias ? p->n : 0;
    s->count[GATE] = p->gate ? place(&g->gate, p->batch, p->m, p->n, p->gap) : 0;
    s->count[RESIDUAL] = p->residual ? place(&g->residual, p->batch, p->m, p->n, 2 * p->gap) : 0;
    g->scratch_bytes = p->scratch ? attncl__gemm_scratch(caps, g) : 0;
    s->count[SCRATCH] = (int64_t)(g->scratch_bytes / sizeof(float));
}

// What no GEMM may read or overwrite.
static bool inside(const struct gemm_matrix *x, int64_t batch, int64_t rows, int64_t columns,
                   int64_t at)
{
    at -= x->start;
    if (at < 0)
        return false;
    const int64_t entry = x->batch_stride ? at / x->batch_stride : 0;
    at -= entry * x->batch_stride;
    return entry < batch && at / x->ld < rows && at % x->ld < columns;
}

static void poison(struct setup *s, int operand, const struct gemm_matrix *x, int64_t rows,
                   int64_t columns)
{
    for (int64_t i = 0; i < s->count[operand]; ++i)
        if (!inside(x, s->g.batch, rows, columns, i))
            s->data[operand][i] = NAN;
}

static void fill(struct setup *s)
{
    const struct gemm *g = &s->g;

    random_state = (uint32_t)(g->m * 31 + g->n * 7 + g->k + g->batch);
    for (int o = 0; o < N_OPERANDS; ++o) {
        s->data[o] = calloc((size_t)s->count[o] + 1, sizeof(float));
        s->exact[o] = calloc((size_t)s->count[o] + 1, sizeof(double));
        ck_assert(s->data[o] && s->exact[o]);
        for (int64_t i = 0; i < s->count[o]; ++i)
            s->data[o][i] = o == C || o == SCRATCH ? NAN : next_random();
    }
    poison(s, A, &g->a, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k);
    poison(s, B, &g->b, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n);
    if (s->count[GATE])
        poison(s, GATE, &g->gate, g->m, g->n);
    if (s->count[RESIDUAL])
        poison(s, RESIDUAL, &g->residual, g->m, g->n);
    // The triangle that a causal GEMM does not know.
    for (int64_t e = 0; g->causal && e < g->batch; ++e)
        for (int64_t i = 0; i < g->m; ++i)
            for (int64_t j = i + 1; j < g->k; ++j)
                s->data[A][g->a.start + e * g->a.batch_stride + i * g->a.ld + j] = NAN;
    for (int o = 0; o < N_OPERANDS; ++o)
        for (int64_t i = 0; i < s->count[o]; ++i)
            s->exact[o][i] = s->data[o][i];
}

static void upload(struct setup *s)
{
    struct gemm *g = &s->g;

    for (int o = 0; o < N_OPERANDS; ++o) {
        s->storage[o].bytes = (size_t)s->count[o] * sizeof(float);
        ck_ok(attncl__buffer_create(test_context(), s->storage[o].bytes, &s->storage[o].mem));
        if (s->count[o])
            ck_ok(attncl__buffer_write(test_context(), s->storage[o].mem, 0, s->data[o],
                                       s->storage[o].bytes));
    }
    g->a.span.storage = &s->storage[A];
    g->b.span.storage = &s->storage[B];
    g->c.span.storage = &s->storage[C];
    g->bias.storage = s->count[BIAS] ? &s->storage[BIAS] : NULL;
    g->gate.span.storage = s->count[GATE] ? &s->storage[GATE] : NULL;
    g->residual.span.storage = s->count[RESIDUAL] ? &s->storage[RESIDUAL] : NULL;
    g->scratch.storage = s->count[SCRATCH] ? &s->storage[SCRATCH] : NULL;
}

static attncl_status run(struct setup *s)
{
    attncl_context *ctx = test_context();
    struct command_list command_list;
    attncl_status status = attncl__command_list_begin(ctx, &command_list);
    struct launcher launcher = {.caps = caps, .command_list = &command_list, .gemm = forced};

    if (status == ATTNCL_OK)
        status = attncl__gemm(&launcher, &s->g);
    n_launched = command_list.n_commands;
    if (status == ATTNCL_OK)
        status = attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL);
    if (status == ATTNCL_OK && s->count[C])
        status = attncl__buffer_read(ctx, s->storage[C].mem, 0, s->data[C], s->storage[C].bytes);
    attncl__command_list_free(&command_list);
    return status;
}

static void release(struct setup *s)
{
    for (int o = 0; o < N_OPERANDS; ++o) {
        attncl__buffer_release(&s->storage[o].mem);
        free(s->data[o]);
        free(s->exact[o]);
    }
}

// The elements of C, dense; what lies between them must still be NaN.
static double *collect(const struct setup *s)
{
    const struct gemm *g = &s->g;
    double *dense = calloc((size_t)(g->batch * g->m * g->n) + 1, sizeof *dense);
    int64_t n = 0;

    ck_assert(dense);
    for (int64_t i = 0; i < s->count[C]; ++i) {
        if (inside(&g->c, g->batch, g->m, g->n, i))
            dense[n++] = s->data[C][i];
        else
            ck_assert_msg(isnan(s->data[C][i]), "element %lld beside C was written", (long long)i);
    }
    ck_assert_int_eq(n, g->batch * g->m * g->n);
    return dense;
}

static void check(const struct gemm_case *p)
{
    struct setup s = {.g.batch = 0};
    const int64_t count = p->batch * p->m * p->n;
    double *want = calloc((size_t)count + 1, sizeof *want);
    double *bound = calloc((size_t)count + 1, sizeof *bound);

    ck_assert(want && bound);
    lay_out(&s, p);
    fill(&s);
    upload(&s);
    ref_gemm(&s.g,
             &(struct ref_operands){s.exact[A], s.exact[B], s.exact[BIAS],
                                    s.count[GATE] ? s.exact[GATE] : NULL,
                                    s.count[RESIDUAL] ? s.exact[RESIDUAL] : NULL},
             want, bound);
    ck_ok(run(&s));
    double *got = collect(&s);
    const double worst = ref_worst(got, want, bound, count);
    ck_assert_msg(worst <= 1,
                  "%lldx%lldx%lld %c%c causal %d batch %lld bias %d activation %d gate %d residual "
                  "%d gap %d: error is %g times the bound",
                  (long long)p->m, (long long)p->n, (long long)p->k, p->trans_a ? 'T' : 'N',
                  p->trans_b ? 'T' : 'N', p->causal, (long long)p->batch, p->bias, p->activation,
                  p->gate, p->residual, p->gap, worst);
    free(got);
    free(want);
    free(bound);
    release(&s);
}

// Chosen to hit: one element, few rows (dots and columns), one column, panels and tiles filled
// exactly and raggedly, several tiles, sums longer than a block.
static const struct shape {
    int m, n, k;
} shapes[] = {{1, 1, 1},    {1, 67, 130},  {4, 64, 16},   {3, 5, 257}, {37, 1, 19},
              {7, 13, 1},   {12, 64, 32},  {16, 20, 35},  {2, 33, 48}, {64, 64, 64},
              {61, 97, 53}, {97, 131, 67}, {101, 35, 611}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void up(void)
{
    forced = attncl__context_env(test_context(), ENV_GEMM);
    caps = &test_context()->caps;
}

FIXTURE_ONCE(up, NULL);

LOOP_TEST(meets_the_definition, 0, N_SHAPES)
{
    const struct shape *x = &shapes[_i];

    for (int form = 0; form < 4; ++form) {
        struct gemm_case p = {
            .batch = 1, .m = x->m, .n = x->n, .k = x->k, .trans_a = form & 1, .trans_b = form >> 1};
        check(&p);
        p.gap = 3;
        check(&p);
        p.gap = 4;
        check(&p);
    }
}

TEST(batches)
{
    for (int form = 0; form < 4; ++form) {
        struct gemm_case p = {
            .batch = 3, .m = 21, .n = 35, .k = 18, .trans_a = form & 1, .trans_b = form >> 1};
        check(&p);
        p.gap = 5;
        check(&p);
        p.shared_b = true;
        check(&p);
        p.m = 2;
        check(&p);
    }
}

TEST(causal)
{
    static const int sizes[] = {1, 2, 6, 7, 48, 97, 300};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
        for (int trans_b = 0; trans_b < 2; ++trans_b)
            check(&(struct gemm_case){.batch = 2,
                                      .m = sizes[i],
                                      .n = 37,
                                      .k = sizes[i],
                                      .gap = 1,
                                      .trans_b = trans_b,
                                      .causal = true,
                                      .bias = GEMM_BIAS_ROW,
                                      .gate = true,
                                      .shared_b = trans_b});
}

// Row i of a causal GEMM is right whatever later rows of B hold.
TEST(causal_rows_do_not_see_later_ones)
{
    struct setup s = {.g.batch = 0};
    const struct gemm_case p = {.batch = 1, .m = 70, .n = 19, .k = 70, .causal = true};

    lay_out(&s, &p);
    fill(&s);
    for (int j = 0; j < 19; ++j)
        s.data[B][40 * 19 + j] = INFINITY;
    upload(&s);
    ck_ok(run(&s));
    for (int i = 0; i < 70; ++i)
        for (int j = 0; j < 19; ++j)
            ck_assert_int_eq(!!isfinite(s.data[C][i * 19 + j]), i < 40);
    release(&s);
}

LOOP_TEST(epilogues, 0, GEMM_ACT_SILU + 1)
{
    for (int parts = 0; parts < 12; ++parts)
        for (int few = 0; few < 2; ++few)
            check(&(struct gemm_case){.batch = 2,
                                      .m = few ? 3 : 23,
                                      .n = 41,
                                      .k = 9,
                                      .gap = few,
                                      .trans_b = true,
                                      .bias = (enum gemm_bias)(parts % 3),
                                      .activation = (enum gemm_activation)_i,
                                      .gate = parts / 3 % 2,
                                      .residual = parts / 6});
}

TEST(nothing_to_sum_gives_the_epilogue_of_zero)
{
    check(&(struct gemm_case){.batch = 1, .m = 3, .n = 5, .k = 0});
    check(&(struct gemm_case){.batch = 2,
                              .m = 3,
                              .n = 37,
                              .k = 0,
                              .gap = 2,
                              .bias = GEMM_BIAS_ROW,
                              .activation = GEMM_ACT_SIGMOID,
                              .gate = true,
                              .residual = true});
}

TEST(empty_results_launch_nothing)
{
    check(&(struct gemm_case){.batch = 0, .m = 3, .n = 5, .k = 2});
    check(&(struct gemm_case){.batch = 1, .m = 0, .n = 5, .k = 2});
    check(&(struct gemm_case){.batch = 1, .m = 3, .n = 0, .k = 2});
}

TEST(not_a_number_and_infinity_pass)
{
    for (int few = 0; few < 2; ++few)
        for (int activation = 0; activation < 6; ++activation) {
            struct setup s = {.g.batch = 0};
            const struct gemm_case p = {.batch = 1,
                                        .m = few ? 2 : 9,
                                        .n = 18,
                                        .k = 5,
                                        .trans_b = true,
                                        .activation = (enum gemm_activation)activation};

            lay_out(&s, &p);
            fill(&s);
            s.data[A][5] = NAN; // row 1
            upload(&s);
            ck_ok(run(&s));
            for (int j = 0; j < 18; ++j) {
                ck_assert(isfinite(s.data[C][j]));
                ck_assert(isnan(s.data[C][18 + j]));
            }
            release(&s);
        }
}

TEST(same_bits_every_time)
{
    struct setup s = {.g.batch = 0};
    const struct gemm_case p = {.batch = 1, .m = 50, .n = 70, .k = 300};
    float first[50 * 70];

    lay_out(&s, &p);
    fill(&s);
    upload(&s);
    ck_ok(run(&s));
    memcpy(first, s.data[C], sizeof first);
    ck_ok(run(&s));
    ck_assert_int_eq(memcmp(first, s.data[C], sizeof first), 0);
    release(&s);
}

// A device that stops loops early gets the sums in pieces, which wait in C between launches.
TEST(limited_loops)
{
    struct device_caps limited = test_context()->caps;
    const char *const before = forced;

    forced = "native";
    limited.max_loop_iterations = 3000;
    caps = &limited;
    for (int form = 0; form < 4; ++form) {
        check(&(struct gemm_case){.batch = 2,
                                  .m = 31,
                                  .n = 45,
                                  .k = 4003,
                                  .trans_a = form & 1,
                                  .trans_b = form >> 1,
                                  .residual = true});
        ck_assert_int_gt((int)n_launched, 1);
    }
    check(&(struct gemm_case){.batch = 1, .m = 3, .n = 5, .k = 4003});
    limited.max_loop_iterations = 300;
    check(&(struct gemm_case){.batch = 1, .m = 350, .n = 9, .k = 350, .causal = true});
    caps = &test_context()->caps;
    forced = before;
}

// A single core gets tiles so tall that a transposed A is copied in several parts, the last ragged.
TEST(tall_tiles_of_a_transposed_a)
{
    static const int rows[] = {192, 193, 199, 294};
    struct device_caps single = test_context()->caps;

    single.compute_units = 1;
    caps = &single;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i)
        check(&(struct gemm_case){.batch = 3,
                                  .m = rows[i],
                                  .n = 130,
                                  .k = 101,
                                  .trans_a = true,
                                  .trans_b = i % 2,
                                  .gap = (int)i});
    caps = &test_context()->caps;
}

// A long sum into a small C uses split-K with splits of equal length, if it can.
TEST(long_sums_use_split_k)
{
    struct device_caps single = test_context()->caps;
    const bool cuts = single.variant == VARIANT_CPU && single.max_loop_iterations == 0;
    const char *const before = forced;

    single.compute_units = 1;
    caps = &single;
    forced = "native";
    for (int i = 0; i < 4; ++i) {
        check(&(struct gemm_case){.batch = 1,
                                  .m = 7,
                                  .n = 5,
                                  .k = i < 2 ? 2048 : 2049,
                                  .trans_a = true,
                                  .trans_b = i % 2,
                                  .bias = GEMM_BIAS_COLUMN,
                                  .residual = true,
                                  .gap = 3,
                                  .scratch = true});
        if (cuts)
            ck_assert_int_eq((int)n_launched, i < 2 ? 2 : 1);
    }
    caps = &test_context()->caps;
    forced = before;
}

// The GPU tiles of vendors that are not here are built, for kernels.offline to compile, but not
// run: on a CPU each takes many seconds to become machine code.
static const struct vendor {
    enum device_vendor vendor;
    unsigned group_multiple, compute_units;
    size_t group; // of the tile that is expected
} vendors[] = {{VENDOR_NVIDIA, 32, 1, 256}, {VENDOR_NVIDIA, 32, 4, 128}, {VENDOR_AMD, 32, 1, 128},
               {VENDOR_AMD, 64, 1, 256},    {VENDOR_AMD, 64, 8, 256},    {VENDOR_OTHER, 1, 1, 128}};
enum { N_VENDORS = sizeof vendors / sizeof vendors[0] };

LOOP_TEST(tiles_of_other_vendors, 0, N_VENDORS)
{
    const struct vendor *v = &vendors[_i];
    struct device_caps other = test_context()->caps;
    struct command_list command_list;
    struct launcher launcher = {.caps = &other, .command_list = &command_list, .gemm = "native"};
    struct gemm g = {.batch = 1, .m = 145, .n = 151, .k = 38, .trans_b = true};

    other.vendor = v->vendor;
    other.group_multiple = v->group_multiple;
    other.compute_units = v->compute_units;
    other.variant = VARIANT_GPU;
    other.vector_width = 4;
    ck_ok(attncl__command_list_begin(test_context(), &command_list));
    ck_ok(attncl__gemm(&launcher, &g));
    g.causal = true;
    g.k = g.n = g.m;
    g.trans_b = false;
    ck_ok(attncl__gemm(&launcher, &g));
    ck_assert_int_eq((int)command_list.n_commands, 2);
    if (other.max_group >= 256 && other.max_loop_iterations == 0)
        ck_assert_int_eq((int)command_list.commands[0].local[0], (int)v->group);
    attncl__command_list_free(&command_list);
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
    const struct gemm_case p = {.batch = 1, .m = 19, .n = 23, .k = 29, .trans_b = true};

    attncl_set_log(keep_line, NULL, ATTNCL_LOG_INFO);
    check(&p);
    check(&p);
    attncl_set_log(NULL, NULL, ATTNCL_LOG_INFO);
    ck_assert_int_eq(n_lines, 1);
    ck_assert_msg(strstr(last_line, "gemm 19x23x29 NT, batch 1: ") != NULL, "%s", last_line);
    ck_assert_msg(strchr(last_line, '(') != NULL, "no reason in \"%s\"", last_line);
}

TEST(refusals)
{
    struct setup s = {.g.batch = 0};
    const char *const before = forced;

    lay_out(&s, &(struct gemm_case){.batch = 1, .m = 2, .n = 2, .k = 2});
    fill(&s);
    upload(&s);
    forced = "openblas";
    ck_fails(run(&s), ATTNCL_ERR_ARGUMENT, "openblas");
    forced = before;
    s.g.m = INT64_C(1) << 31;
    ck_fails(run(&s), ATTNCL_ERR_UNSUPPORTED, "extent");
    release(&s);
}
