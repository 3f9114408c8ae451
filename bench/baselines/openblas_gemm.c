// SPDX-License-Identifier: MIT
// attncl-bench-openblas [--json FILE] [REPEATS [cpu]]: the library's GEMM and OpenBLAS's
// on the same operands, interleaved in one process; the least time of each counts, since other work
// on the machine only ever adds.  With `cpu` it is the process's CPU time, which a busy machine
// hardly disturbs; then run both with one thread (POCL_MAX_PTHREAD_COUNT=1 OPENBLAS_NUM_THREADS=1).
// The causal GEMM has no counterpart in OpenBLAS, which multiplies the zeros.

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gemm/gemm.h"
#include "harness/machine.h"
#include "harness/stats.h"
#include "launch/command_list.h"

static const struct size {
    int m, n, k;
    const char *forms; // of A and B: N, T; C: causal
} sizes[] = {
    {512, 512, 512, "NN NT TN TT"}, {1024, 1024, 1024, "NN NT TN TT"},
    {2048, 2048, 2048, "NN NT TN"}, {4096, 512, 512, "NN NT TN"},
    {4096, 2048, 512, "NN NT TN"},  {4096, 512, 2048, "NT"},
    {512, 512, 8192, "TN"},         {16, 2048, 512, "NN NT"},
    {8, 2048, 512, "NN NT"},        {4, 2048, 512, "NN NT"},
    {1, 2048, 2048, "NN NT"},       {1, 512, 512, "NN NT"},
    {64, 64, 64, "NN NT"},          {128, 128, 128, "NN NT"},
    {256, 256, 256, "NN NT"},       {1024, 1024, 1024, "CN"},
};

enum { SKINNY_MAX_ROWS = 8 };

// One call takes at least this long, by repetition: enqueueing and waiting are not the subject.
static const double min_seconds = 0.02;

struct problem {
    int m, n, k;
    bool trans_a, trans_b, causal;
    float *a, *b, *c, *want;
    struct storage on_device[4]; // A, B, C, scratch
    struct command_list command_list;
};

struct provider {
    void (*run)(struct problem *p);
    struct samples seconds; // per GEMM
    int inner;
};

static attncl_context *ctx;
static clockid_t clock_id = CLOCK_MONOTONIC;

static double clock_now(void)
{
    struct timespec t;

    clock_gettime(clock_id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, attncl_last_error());
    exit(1);
}

static float *random_matrix(size_t n, uint32_t state)
{
    float *x = malloc(n * sizeof *x);

    if (!x)
        die("memory");
    for (size_t i = 0; i < n; ++i) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * (1.0f / 2147483648.0f);
    }
    return x;
}

static void put(struct storage *s, const float *data, size_t n)
{
    s->bytes = n * sizeof *data;
    if (attncl__buffer_create(ctx, s->bytes, &s->mem) != ATTNCL_OK ||
        attncl__buffer_write(ctx, s->mem, 0, data, s->bytes) != ATTNCL_OK)
        die("buffer");
}

static void open_problem(struct problem *p)
{
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    struct launcher l = {.caps = &ctx->caps, .command_list = &p->command_list};

    p->a = random_matrix(m * k, 1);
    p->b = random_matrix(k * n, 2);
    p->c = random_matrix(m * n, 3);
    p->want = random_matrix(m * n, 4);
    for (size_t i = 0; p->causal && i < m; ++i)
        for (size_t j = i + 1; j < k; ++j)
            p->a[i * k + j] = 0;
    put(&p->on_device[0], p->a, m * k);
    put(&p->on_device[1], p->b, k * n);
    put(&p->on_device[2], p->c, m * n);
    struct gemm g = {.batch = 1,
                     .m = p->m,
                     .n = p->n,
                     .k = p->k,
                     .trans_a = p->trans_a,
                     .trans_b = p->trans_b,
                     .causal = p->causal,
                     .a = {{&p->on_device[0]}, 0, p->trans_a ? p->m : p->k, 0},
                     .b = {{&p->on_device[1]}, 0, p->trans_b ? p->k : p->n, 0},
                     .c = {{&p->on_device[2]}, 0, p->n, 0}};
    g.scratch_bytes = attncl__gemm_scratch(&ctx->caps, &g);
    if (g.scratch_bytes > 0) {
        p->on_device[3].bytes = g.scratch_bytes;
        if (attncl__buffer_create(ctx, g.scratch_bytes, &p->on_device[3].mem) != ATTNCL_OK)
            die("scratch");
        g.scratch.storage = &p->on_device[3];
    }
    if (attncl__command_list_begin(ctx, &p->command_list) != ATTNCL_OK ||
        attncl__gemm(&l, &g) != ATTNCL_OK)
        die("gemm");
}

static void close_problem(struct problem *p)
{
    attncl__command_list_free(&p->command_list);
    for (int i = 0; i < 4; ++i)
        attncl__buffer_release(&p->on_device[i].mem);
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->want);
}

static void ours(struct problem *p)
{
    if (attncl__command_list_enqueue(&p->command_list, 0, NULL, NULL, NULL) != ATTNCL_OK)
        die("enqueue");
}

static void theirs(struct problem *p)
{
    cblas_sgemm(CblasRowMajor, p->trans_a ? CblasTrans : CblasNoTrans,
                p->trans_b ? CblasTrans : CblasNoTrans, p->m, p->n, p->k, 1.0f, p->a,
                p->trans_a ? p->m : p->k, p->b, p->trans_b ? p->k : p->n, 0.0f, p->want, p->n);
}

// Runs one provider once more and returns its time per GEMM.
static double time_once(struct problem *p, const struct provider *provider)
{
    const double start = clock_now();

    for (int i = 0; i < provider->inner; ++i)
        provider->run(p);
    if (attncl__queue_finish(ctx) != ATTNCL_OK)
        die("finish");
    return (clock_now() - start) / provider->inner;
}

static void measure(struct problem *p, struct provider *provider)
{
    if (!samples_add(&provider->seconds, time_once(p, provider)))
        die("memory");
}

static double largest_error(struct problem *p)
{
    double worst = 0;

    if (attncl__buffer_read(ctx, p->on_device[2].mem, 0, p->c, p->on_device[2].bytes) != ATTNCL_OK)
        die("read");
    for (size_t i = 0; i < (size_t)p->m * (size_t)p->n; ++i) {
        const double error = fabs((double)p->c[i] - p->want[i]);
        if (!(error <= worst))
            worst = error;
    }
    return worst;
}

// As in cases.def.
static void case_name(const struct problem *p, const char *form, char *text, size_t capacity)
{
    if (p->m == p->n && p->n == p->k)
        snprintf(text, capacity, "product %.2s %d", form, p->m);
    else
        snprintf(text, capacity, "product %.2s %dx%dx%d%s", form, p->m, p->n, p->k,
                 p->m <= SKINNY_MAX_ROWS ? " (few rows)" : "");
}

// A result of the report, docs/benchmark-reports.md: OpenBLAS's times, and the library's least.
static json_t *result(const struct problem *p, const char *form, int runs, const struct spread *t,
                      double ours_s)
{
    const double flop = 2.0 * p->m * p->n * p->k;
    char name[64];

    case_name(p, form, name, sizeof name);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:i, s:i, s:i, s:b}, s:s, s:i, s:i, s:{s:f, "
                     "s:f, s:f, s:f, s:f}, s:f, s:f, s:f}",
                     "case", name, "suite", "op", "family", "gemm", "set", "full", "dtype", "f32",
                     "sizes", "M", p->m, "N", p->n, "K", p->k, "transposed", p->trans_b, "outcome",
                     "ok", "runs", runs, "rounds", runs, "wall", "min_s", t->min, "q1_s", t->q1,
                     "median_s", t->median, "q3_s", t->q3, "max_s", t->max, "flop", flop, "gflop_s",
                     1e-9 * flop / t->min, "library_min_s", ours_s);
}

static json_t *compare(const struct size *size, const char *form, int repeats)
{
    struct problem p = {.m = size->m,
                        .n = size->n,
                        .k = size->k,
                        .trans_a = form[0] == 'T',
                        .trans_b = form[1] == 'T',
                        .causal = form[0] == 'C'};
    struct provider us = {ours, .inner = 1}, them = {theirs, .inner = 1};
    const double gflop = 2e-9 * p.m * p.n * p.k;

    open_problem(&p);
    time_once(&p, &us); // compiles
    us.inner = (int)(min_seconds / time_once(&p, &us)) + 1;
    them.inner = (int)(min_seconds / time_once(&p, &them)) + 1;
    for (int i = 0; i < repeats; ++i) {
        measure(&p, &us);
        measure(&p, &them);
    }
    const struct spread blas = samples_spread(&them.seconds);
    const double ours_s = samples_spread(&us.seconds).min;
    printf("| %dx%dx%d | %.2s | %.1f | %.1f | %.2f | %.1e |\n", p.m, p.n, p.k, form, gflop / ours_s,
           gflop / blas.min, blas.min / ours_s, largest_error(&p));
    fflush(stdout);
    json_t *json = result(&p, form, repeats, &blas, ours_s);
    samples_free(&us.seconds);
    samples_free(&them.seconds);
    close_problem(&p);
    return json;
}

static void compare_all(int repeats, json_t *results)
{
    printf("| m x n x k | form | GFLOP/s | OpenBLAS | ratio | difference |\n"
           "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
        for (const char *form = sizes[i].forms;; form += 3) {
            json_array_append_new(results, compare(&sizes[i], form, repeats));
            if (form[2] == '\0')
                break;
        }
}

// OpenBLAS as a baseline's device.
static json_t *device(const char *clock, json_t *results)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:i, s:s, s:s?}, s:n, s:o}", "device",
                     "openblas", "kind", "baseline", "type", "cpu", "name", openblas_get_config(),
                     "sizes", "full", "settings", "threads", openblas_get_num_threads(), "clock",
                     clock, "OPENBLAS_CORETYPE", getenv("OPENBLAS_CORETYPE"), "roofline", "results",
                     results);
}

int main(int argc, char **argv)
{
    const int skip = argc > 2 && strcmp(argv[1], "--json") == 0 ? 2 : 0;
    const int repeats = argc > skip + 1 && atoi(argv[skip + 1]) > 0 ? atoi(argv[skip + 1]) : 12;
    const bool cpu = argc > skip + 2 && strcmp(argv[skip + 2], "cpu") == 0;
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;

    if (cpu)
        clock_id = CLOCK_PROCESS_CPUTIME_ID;
    if (attncl_context_create(NULL, &ctx) != ATTNCL_OK ||
        attncl_context_device(ctx, &info) != ATTNCL_OK)
        die("no device");
    printf("%s, %u compute units; %s, %d threads; best of %d, interleaved%s\n\n", info.name,
           info.compute_units, openblas_get_config(), openblas_get_num_threads(), repeats,
           cpu ? ", CPU time" : "");
    json_t *report = machine_report("attncl-bench-openblas", NULL, argc, argv, NULL);
    json_t *results = json_array();
    compare_all(repeats, results);
    json_array_append_new(json_object_get(report, "devices"),
                          device(cpu ? "CPU" : "wall", results));
    if (skip && json_dump_file(report, argv[2], JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0)
        die(argv[2]);
    json_decref(report);
    return attncl_context_destroy(ctx) == ATTNCL_OK ? 0 : 1;
}
