// SPDX-License-Identifier: MIT

#include "support/gemm_test.h"

#include <math.h>

#include "base/dtype.h"
#include "base/env.h"
#include "ref/ref.h"
#include "support/compare.h"
#include "support/test.h"

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

static const struct device_caps *caps_of(const struct gemm_case *p)
{
    return p->caps ? p->caps : &test_context()->caps;
}

static void lay_out(struct gemm_data *s, const struct gemm_case *p)
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
                       .activation = p->activation,
                       .b_dtype = p->b_dtype};
    s->count[A] = p->trans_a ? place(&g->a, p->batch, p->k, p->m, p->gap)
                             : place(&g->a, p->batch, p->m, p->k, p->gap);
    const int64_t b_batch = p->shared_b ? 1 : p->batch;
    s->count[B] = p->trans_b ? place(&g->b, b_batch, p->n, p->k, p->gap)
                             : place(&g->b, b_batch, p->k, p->n, p->gap);
    s->count[C] = place(&g->c, p->batch, p->m, p->n, p->gap);
    s->count[BIAS] = p->bias == GEMM_BIAS_ROW ? p->m : p->bias ? p->n : 0;
    s->count[GATE] = p->gate ? place(&g->gate, p->batch, p->m, p->n, p->gap + p->side_gap) : 0;
    s->count[RESIDUAL] =
        p->residual ? place(&g->residual, p->batch, p->m, p->n, 2 * p->gap + p->side_gap) : 0;
    g->scratch_bytes = p->scratch ? attncl__gemm_scratch(caps_of(p), g) : 0;
    s->count[SCRATCH] = (int64_t)(g->scratch_bytes / sizeof(float));
}

// True for an element of the matrix, false for one beside it.
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

static void poison(struct gemm_data *s, int operand, const struct gemm_matrix *x, int64_t rows,
                   int64_t columns)
{
    for (int64_t i = 0; i < s->count[operand]; ++i)
        if (!inside(x, s->g.batch, rows, columns, i))
            s->data[operand][i] = NAN;
}

static void fill(struct gemm_data *s)
{
    const struct gemm *g = &s->g;

    random_state = (uint32_t)(g->m * 31 + g->n * 7 + g->k + g->batch);
    for (int o = 0; o < N_OPERANDS; ++o) {
        s->data[o] = calloc((size_t)s->count[o] + 1, sizeof(float));
        ck_assert(s->data[o]);
        for (int64_t i = 0; i < s->count[o]; ++i)
            s->data[o][i] = o == C || o == SCRATCH ? NAN : next_random();
    }
    poison(s, A, &g->a, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k);
    poison(s, B, &g->b, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n);
    if (s->count[GATE])
        poison(s, GATE, &g->gate, g->m, g->n);
    if (s->count[RESIDUAL])
        poison(s, RESIDUAL, &g->residual, g->m, g->n);
    // The triangle that a causal GEMM does not read.
    for (int64_t e = 0; g->causal && e < g->batch; ++e)
        for (int64_t i = 0; i < g->m; ++i)
            for (int64_t j = i + 1; j < g->k; ++j)
                s->data[A][g->a.start + e * g->a.batch_stride + i * g->a.ld + j] = NAN;
}

// B as it is stored, from floats and back.
static size_t b_bytes(const struct gemm_data *s)
{
    return (size_t)s->count[B] * (s->g.b_dtype ? sizeof(uint16_t) : sizeof(float));
}

static void *stored_b(const struct gemm_data *s)
{
    const attncl_dtype type = s->g.b_dtype ? s->g.b_dtype : ATTNCL_F32;
    void *bytes = malloc(b_bytes(s) + 1);

    ck_assert(bytes);
    ck_ok(attncl__convert(ATTNCL_F32, s->data[B], type, bytes, (size_t)s->count[B]));
    return bytes;
}

static void round_b(struct gemm_data *s)
{
    if (!s->g.b_dtype)
        return;
    void *bytes = stored_b(s);
    ck_ok(attncl__convert(s->g.b_dtype, bytes, ATTNCL_F32, s->data[B], (size_t)s->count[B]));
    free(bytes);
}

void gemm_data_open(struct gemm_data *s, const struct gemm_case *p)
{
    struct gemm *g = &s->g;

    *s = (struct gemm_data){.p = p};
    lay_out(s, p);
    fill(s);
    round_b(s);
    for (int o = 0; o < N_OPERANDS; ++o) {
        s->storage[o].bytes = o == B ? b_bytes(s) : (size_t)s->count[o] * sizeof(float);
        ck_ok(attncl__buffer_create(test_context(), s->storage[o].bytes, &s->storage[o].mem));
    }
    g->a.span.storage = &s->storage[A];
    g->b.span.storage = &s->storage[B];
    g->c.span.storage = &s->storage[C];
    g->bias.storage = s->count[BIAS] ? &s->storage[BIAS] : NULL;
    g->gate.span.storage = s->count[GATE] ? &s->storage[GATE] : NULL;
    g->residual.span.storage = s->count[RESIDUAL] ? &s->storage[RESIDUAL] : NULL;
    g->scratch.storage = s->count[SCRATCH] ? &s->storage[SCRATCH] : NULL;
}

void gemm_data_close(struct gemm_data *s)
{
    for (int o = 0; o < N_OPERANDS; ++o) {
        attncl__buffer_release(&s->storage[o].mem);
        free(s->data[o]);
    }
}

attncl_status gemm_data_run(struct gemm_data *s)
{
    attncl_context *ctx = test_context();
    struct command_list list;
    struct launcher launcher = {.caps = caps_of(s->p),
                                .command_list = &list,
                                .gemm = s->p->backend ? s->p->backend
                                                      : attncl__context_env(ctx, ENV_GEMM)};

    launcher.seconds = gemm_seconds(launcher.caps, &s->g);
    void *b = stored_b(s);
    for (int o = 0; o < N_OPERANDS; ++o)
        if (s->count[o])
            ck_ok(attncl__buffer_write(ctx, s->storage[o].mem, 0, o == B ? b : s->data[o],
                                       s->storage[o].bytes));
    free(b);
    ck_ok(attncl__command_list_begin(ctx, &list));
    attncl_status status = attncl__gemm(&launcher, &s->g);
    s->n_commands = (int)list.n_commands;
    if (status == ATTNCL_OK)
        status = attncl__command_list_enqueue(&list, 0, NULL, NULL, NULL);
    if (status == ATTNCL_OK && s->count[C])
        status = attncl__buffer_read(ctx, s->storage[C].mem, 0, s->data[C], s->storage[C].bytes);
    attncl__command_list_free(&list);
    return status;
}

// The elements of C, dense; what lies between them must still be NaN.
static double *collect(const struct gemm_data *s)
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

static double *as_double(const struct gemm_data *s, int operand)
{
    double *x = calloc((size_t)s->count[operand] + 1, sizeof *x);

    ck_assert(x);
    for (int64_t i = 0; i < s->count[operand]; ++i)
        x[i] = s->data[operand][i];
    return x;
}

int gemm_check(const struct gemm_case *p)
{
    struct gemm_data s;
    const int64_t count = p->batch * p->m * p->n;
    double *want = calloc((size_t)count + 1, sizeof *want);
    double *bound = calloc((size_t)count + 1, sizeof *bound);
    double *x[SCRATCH];

    ck_assert(want && bound);
    gemm_data_open(&s, p);
    for (int o = 0; o < SCRATCH; ++o)
        x[o] = as_double(&s, o);
    ref_gemm(&s.g,
             &(struct ref_operands){x[A], x[B], x[BIAS], s.count[GATE] ? x[GATE] : NULL,
                                    s.count[RESIDUAL] ? x[RESIDUAL] : NULL},
             want, bound);
    ck_ok(gemm_data_run(&s));
    double *got = collect(&s);
    struct worst w = {0};
    for (int64_t i = 0; i < count; ++i)
        worst_add(&w, i, got[i], want[i], bound[i]);
    if (count > 0)
        ck_worst(&w, 1,
                 "%lldx%lldx%lld %c%c causal %d batch %lld bias %d activation %d gate %d residual "
                 "%d gap %d B of %s",
                 (long long)p->m, (long long)p->n, (long long)p->k, p->trans_a ? 'T' : 'N',
                 p->trans_b ? 'T' : 'N', p->causal, (long long)p->batch, p->bias, p->activation,
                 p->gate, p->residual, p->gap,
                 attncl_dtype_name(p->b_dtype ? p->b_dtype : ATTNCL_F32));
    for (int o = 0; o < SCRATCH; ++o)
        free(x[o]);
    free(got);
    free(want);
    free(bound);
    gemm_data_close(&s);
    return s.n_commands;
}
