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
#include "launch/command_list.h"
#include "openblas_json.h"

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

// One call takes at least this long, by repetition: enqueueing and waiting are not the subject.
static const double min_seconds = 0.02;

struct side {
    struct samples seconds; // per GEMM
    int inner;
};

struct problem {
    int m, n, k;
    bool trans_a, trans_b, causal;
    float *a, *b, *c, *want;
    struct storage on_device[4]; // A, B, C, scratch
    struct command_list command_list;
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

// Runs one side once more and returns its time per GEMM.
static double time_once(struct problem *p, void (*run)(struct problem *), const struct side *side)
{
    const double start = clock_now();

    for (int i = 0; i < side->inner; ++i)
        run(p);
    if (attncl__queue_finish(ctx) != ATTNCL_OK)
        die("finish");
    return (clock_now() - start) / side->inner;
}

static void measure(struct problem *p, void (*run)(struct problem *), struct side *side)
{
    if (!samples_add(&side->seconds, time_once(p, run, side)))
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

static void print(const struct openblas_figure *f, double difference)
{
    const double gflop = 2e-9 * f->m * f->n * f->k;

    printf("| %dx%dx%d | %.2s | %.1f | %.1f | %.2f | %.1e |\n", f->m, f->n, f->k, f->form,
           gflop / f->ours_s, gflop / f->theirs.min, f->theirs.min / f->ours_s, difference);
    fflush(stdout);
}

static void compare(const struct size *size, const char *form, int repeats, json_t *report)
{
    struct problem p = {.m = size->m,
                        .n = size->n,
                        .k = size->k,
                        .trans_a = form[0] == 'T',
                        .trans_b = form[1] == 'T',
                        .causal = form[0] == 'C'};
    struct side us = {.inner = 1}, them = {.inner = 1};

    open_problem(&p);
    time_once(&p, ours, &us); // compiles
    us.inner = (int)(min_seconds / time_once(&p, ours, &us)) + 1;
    them.inner = (int)(min_seconds / time_once(&p, theirs, &them)) + 1;
    for (int i = 0; i < repeats; ++i) {
        measure(&p, ours, &us);
        measure(&p, theirs, &them);
    }
    const struct openblas_figure figure = {.m = p.m,
                                           .n = p.n,
                                           .k = p.k,
                                           .form = form,
                                           .runs = repeats,
                                           .theirs = samples_spread(&them.seconds),
                                           .ours_s = samples_spread(&us.seconds).min};
    print(&figure, largest_error(&p));
    openblas_add(report, &figure);
    samples_free(&us.seconds);
    samples_free(&them.seconds);
    close_problem(&p);
}

static void compare_all(int repeats, json_t *report)
{
    printf("| m x n x k | form | GFLOP/s | OpenBLAS | ratio | difference |\n"
           "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
        for (const char *form = sizes[i].forms;; form += 3) {
            compare(&sizes[i], form, repeats, report);
            if (form[2] == '\0')
                break;
        }
}

int main(int argc, char **argv)
{
    const bool has_path = argc > 2 && strcmp(argv[1], "--json") == 0;
    const char *const path = has_path ? argv[2] : NULL;
    char **const rest = argv + (has_path ? 2 : 0);
    const int n_rest = argc - (has_path ? 2 : 0);
    const int repeats = n_rest > 1 && atoi(rest[1]) > 0 ? atoi(rest[1]) : 12;
    const bool cpu = n_rest > 2 && strcmp(rest[2], "cpu") == 0;
    attncl_device_info info;

    if (cpu)
        clock_id = CLOCK_PROCESS_CPUTIME_ID;
    if (attncl_context_create(NULL, &ctx) != ATTNCL_OK ||
        attncl_context_device(ctx, &info) != ATTNCL_OK)
        die("no device");
    printf("%s, %u compute units; %s, %d threads; best of %d, interleaved%s\n\n", info.name,
           info.compute_units, openblas_get_config(), openblas_get_num_threads(), repeats,
           cpu ? ", CPU time" : "");
    const struct openblas_setting setting = {openblas_get_config(), openblas_get_num_threads(),
                                             cpu ? "CPU" : "wall"};
    json_t *report = openblas_report(argc, argv, &setting);
    compare_all(repeats, report);
    if (path && json_dump_file(report, path, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0)
        die(path);
    json_decref(report);
    return attncl_context_destroy(ctx) == ATTNCL_OK ? 0 : 1;
}
