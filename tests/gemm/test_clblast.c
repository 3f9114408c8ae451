// SPDX-License-Identifier: MIT
// The guards around CLBlast.  Its strided-batched GEMM (1.5.3) is wrong for large matrices with an
// offset or a stride with gaps; the library never uses it for those.  This test calls CLBlast
// itself once, to show the fault.

#include <stdio.h>

#include "gemm/internal.h"
#include "launch/command_list.h"
#include "support/compare.h"
#include "support/test.h"

#include <clblast_c.h>

// 3 GEMMs of 1024 x 1024 x 1024, two matrices apart, beginning with the second.
enum { N = 1024, N_BATCH = 3, N_SAMPLES = 64 };
static const int64_t square = (int64_t)N * N;
static const int64_t n_elements = (2 * N_BATCH + 1) * (int64_t)N * N;

static struct storage a, b, c;
static float *host_a, *host_b, *host_c;

static float *make(struct storage *s, uint32_t state)
{
    float *data = malloc((size_t)n_elements * sizeof *data);

    ck_assert_ptr_nonnull(data);
    for (int64_t i = 0; i < n_elements; ++i) {
        state = state * 1664525u + 1013904223u;
        data[i] = (float)(int32_t)state * (1.0f / 2147483648.0f);
    }
    s->bytes = (size_t)n_elements * sizeof *data;
    ck_ok(attncl__buffer_create(test_context(), s->bytes, &s->mem));
    ck_ok(attncl__buffer_write(test_context(), s->mem, 0, data, s->bytes));
    return data;
}

static void drop(struct storage *s, float *data)
{
    attncl__buffer_release(&s->mem);
    free(data);
}

// Of elements spread over all GEMMs.  Sums of 1024 terms of at most 1: rounding stays below 1024 * 1024 * 2^-24.
static struct worst worst_sample(void)
{
    struct worst worst = {0};

    ck_ok(attncl__buffer_read(test_context(), c.mem, 0, host_c, c.bytes));
    for (int s = 0; s < N_SAMPLES; ++s) {
        const int64_t entry = s % N_BATCH, i = s * 397 % N, j = s * 811 % N;
        const int64_t base = square + entry * 2 * square;
        double sum = 0;

        for (int64_t k = 0; k < N; ++k)
            sum += (double)host_a[base + i * N + k] * host_b[base + k * N + j];
        worst_add(&worst, s, host_c[base + i * N + j], sum, 0.0625);
    }
    return worst;
}

static void run_ours(const struct gemm *g)
{
    attncl_context *ctx = test_context();
    struct command_list command_list;
    struct launcher launcher = {
        .caps = &ctx->caps, .command_list = &command_list, .gemm = "clblast"};

    ck_ok(attncl__command_list_begin(ctx, &command_list));
    ck_ok(attncl__gemm(&launcher, g));
    ck_assert_int_eq((int)command_list.n_commands, 1);
    ck_assert_str_eq(command_list.commands[0].name, "clblast_sgemm");
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
    ck_ok(attncl__queue_finish(ctx));
    attncl__command_list_free(&command_list);
}

// Oclgrind is too slow; llvmpipe caps loop iterations.
static bool worth_trying(void)
{
    const struct device_caps *caps = &test_context()->caps;
    return caps->vendor != VENDOR_OCLGRIND && caps->max_loop_iterations == 0;
}

TEST(strided_batches_are_right)
{
    cl_command_queue queue = test_context()->queue;

    if (!worth_trying())
        return;
    host_a = make(&a, 1);
    host_b = make(&b, 2);
    host_c = make(&c, 3);

    ck_assert_int_eq(
        CLBlastSgemmStridedBatched(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, N,
                                   N, N, 1.0f, a.mem, (size_t)square, N, (size_t)(2 * square),
                                   b.mem, (size_t)square, N, (size_t)(2 * square), 0.0f, c.mem,
                                   (size_t)square, N, (size_t)(2 * square), N_BATCH, &queue, NULL),
        CLBlastSuccess);
    const struct worst direct = worst_sample();
    if (direct.ratio <= 1)
        fprintf(stderr, "this CLBlast's strided batches are right: its guard could go\n");
    ck_ok(attncl__buffer_write(test_context(), c.mem, 0, host_a, c.bytes));

    const struct gemm_matrix place = {.start = square, .ld = N, .batch_stride = 2 * square};
    struct gemm g = {.batch = N_BATCH, .m = N, .n = N, .k = N, .a = place, .b = place, .c = place};
    g.a.span.storage = &a;
    g.b.span.storage = &b;
    g.c.span.storage = &c;
    run_ours(&g);
    const struct worst ours = worst_sample();
    ck_worst(&ours, 1, "CLBlast's own batch has %g instead of %g", direct.got, direct.want);

    drop(&a, host_a);
    drop(&b, host_b);
    drop(&c, host_c);
    ck_assert_int_eq(CLBlastClearCache(), CLBlastSuccess); // what this test did itself
}

TEST(known_devices)
{
    struct device_caps caps = {.vendor = VENDOR_NVIDIA, .is_gpu = true};

    caps.nv_compute_capability = 86;
    ck_assert(attncl__clblast_has_tuning(&caps));
    caps.nv_compute_capability = 90;
    ck_assert(!attncl__clblast_has_tuning(&caps));
    ck_assert(attncl__clblast_has_tuning(&(struct device_caps){.vendor = VENDOR_AMD}));
}

TEST(sizes_beyond_int_are_refused)
{
    struct gemm g = {.batch = 1, .m = 4, .n = 4, .k = 4};

    g.a.ld = g.b.ld = g.c.ld = 4;
    ck_assert_ptr_null(attncl__clblast_unsupported_reason(&g));
    g.b.start = INT64_C(1) << 31;
    ck_assert_ptr_nonnull(attncl__clblast_unsupported_reason(&g));
    g.b.start = 0;
    g.batch = 3;
    g.c.batch_stride = INT64_C(1) << 30;
    ck_assert_ptr_nonnull(attncl__clblast_unsupported_reason(&g));
    g.batch = 1;
    g.causal = true;
    ck_assert_ptr_nonnull(attncl__clblast_unsupported_reason(&g));
}

// The built-in parameters are complete.
TEST(rows_for_unknown_devices_are_complete)
{
    ck_ok(attncl__clblast_add_tuning(test_context()));
}
