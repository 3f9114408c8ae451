// SPDX-License-Identifier: MIT
//
// Whether attention, and its gradients, use the matrix instruction that the device's architecture has: each does where, at
// first use on this device with this driver, results of two problems (with the statistics of their rows) agree with those by
// FMAs, and the larger problem takes less time.  What was found is kept where that of GEMMs is (gemm/mma_choice.c).

#include "compile/attention_mma_choice.h"

#include <math.h>

#include "base/alloc.h"
#include "base/worst_error.h"
#include "gemm/mma_choice.h"
#include "launch/command_list.h"
#include "op/op.h"

// Inputs and outputs of attention_fwd and of attention_bwd, which reads the former's; G: the gradient of y.
enum { Q, K, V, N_IN = 6, IN_Y = 5, IN_ROWS = 7, G = 8, N_IN_BWD = 11 };
enum { Y, ROWS = 2, N_OUT }; // as many gradients

struct trial {
    attncl_context *ctx;
    struct device_caps caps;
    bool gradients; // of which op: else the forward one
    struct attention_bwd_params params;
    struct tensor_desc in[N_IN_BWD], out[N_OUT], grad[N_OUT];
    struct span in_span[N_IN_BWD], out_span[N_OUT], grad_span[N_OUT];
    struct storage in_storage[N_IN_BWD], out_storage[N_OUT], grad_storage[N_OUT];
    float *result[2][N_OUT]; // of the op, by FMAs and by the instruction
};

static void trial_close(struct trial *t)
{
    for (int i = 0; i < N_IN_BWD; ++i)
        attncl__buffer_release(&t->in_storage[i].mem);
    for (int i = 0; i < N_OUT; ++i) {
        attncl__buffer_release(&t->out_storage[i].mem);
        attncl__buffer_release(&t->grad_storage[i].mem);
        attncl__free(t->result[0][i]);
        attncl__free(t->result[1][i]);
    }
}

static struct op_call forward_call(struct trial *t)
{
    return (struct op_call){.sig = {.caps = &t->caps,
                                    .params = &t->params.attention,
                                    .n_in = N_IN,
                                    .n_out = N_OUT,
                                    .in = t->in,
                                    .out = t->out,
                                    .save_for_backward = true},
                            .in = t->in_span,
                            .out = t->out_span};
}

static struct op_call backward_call(struct trial *t)
{
    return (struct op_call){.sig = {.caps = &t->caps,
                                    .params = &t->params,
                                    .n_in = N_IN_BWD,
                                    .n_out = N_OUT,
                                    .in = t->in,
                                    .out = t->grad},
                            .in = t->in_span,
                            .out = t->grad_span};
}

// What is compared.
static const struct tensor_desc *result_desc(const struct trial *t, int i)
{
    return t->gradients ? &t->grad[i] : &t->out[i];
}

static attncl_status upload_random(struct trial *t, int i, uint32_t random)
{
    attncl_status status = ATTNCL_OK;
    const size_t count = (size_t)attncl__desc_count(&t->in[i]);
    float *x = attncl__alloc_array(count, sizeof *x);

    REQUIRE(x, ATTNCL_ERR_NO_MEMORY, "%zu floats", count);
    for (size_t j = 0; j < count; ++j) {
        random = random * 1664525u + 1013904223u;
        x[j] = (float)(int32_t)random * 0x1p-31f;
    }
    t->in_storage[i].bytes = count * sizeof *x;
    t->in_span[i].storage = &t->in_storage[i];
    TRY_DONE(attncl__buffer_create(t->ctx, t->in_storage[i].bytes, &t->in_storage[i].mem));
    TRY_DONE(attncl__buffer_write(t->ctx, t->in_storage[i].mem, 0, x, t->in_storage[i].bytes));
done:
    attncl__free(x);
    return status;
}

struct extents {
    int64_t heads, queries, keys, width, value_width;
    bool causal;
};

static attncl_status create(attncl_context *ctx, const struct tensor_desc *d, struct span *span,
                            struct storage *storage)
{
    if (!attncl__desc_present(d))
        return ATTNCL_OK;
    storage->bytes = (size_t)attncl__desc_count(d) * sizeof(float);
    span->storage = storage;
    return attncl__buffer_create(ctx, storage->bytes, &storage->mem);
}

// *seconds_ret: the least of some runs; *n_mma_ret: of how many kernels the names have "_mma".
static attncl_status run(struct trial *t, const struct op_class *cls, struct op_call call,
                         double *seconds_ret, int *n_mma_ret)
{
    enum { N_RUNS = 4 };
    attncl_status status = ATTNCL_OK;
    struct command_list list;
    struct launcher l = {.caps = &t->caps, .command_list = &list};
    struct storage scratch = {0};

    *seconds_ret = INFINITY;
    *n_mma_ret = 0;
    TRY(attncl__command_list_begin(t->ctx, &list));
    TRY_DONE(cls->scratch(&call.sig, &scratch.bytes));
    TRY_DONE(attncl__buffer_create(t->ctx, scratch.bytes, &scratch.mem));
    call.scratch.storage = &scratch;
    TRY_DONE(cls->launch(&l, &call));
    for (size_t i = 0; i < list.n_commands; ++i)
        *n_mma_ret += strstr(list.commands[i].name, "_mma") != NULL;
    for (int i = 0; i < N_RUNS; ++i) {
        double seconds = 0;
        TRY_DONE(attncl__command_list_time(&list, &seconds));
        *seconds_ret = fmin(*seconds_ret, seconds);
    }
done:
    attncl__command_list_free(&list);
    attncl__buffer_release(&scratch.mem);
    return status;
}

// What gradients read: y and the statistics of rows, by FMAs, and a gradient of y.
static attncl_status prepare_gradients(struct trial *t)
{
    double seconds = 0;
    int n_mma = 0;

    t->caps.attention_mma = MMA_NONE;
    TRY(run(t, &attncl__op_attention_fwd, forward_call(t), &seconds, &n_mma));
    t->in[IN_Y] = t->in[G] = t->out[Y];
    t->in[IN_ROWS] = t->out[ROWS];
    t->in_span[IN_Y] = t->out_span[Y];
    t->in_span[IN_ROWS] = t->out_span[ROWS];
    TRY(upload_random(t, G, G));
    struct op_call call = backward_call(t);
    TRY(attncl__op_attention_bwd.infer(&call.sig));
    for (int i = 0; i < N_OUT; ++i)
        TRY(create(t->ctx, &t->grad[i], &t->grad_span[i], &t->grad_storage[i]));
    return ATTNCL_OK;
}

// Closed by the caller, after a failure too.
static attncl_status trial_open(struct trial *t, attncl_context *ctx,
                                const struct device_caps *caps, struct extents n, bool gradients)
{
    *t = (struct trial){
        .ctx = ctx,
        .caps = *caps,
        .gradients = gradients,
        .params = {.attention = {.scale = 1 / sqrtf((float)n.width), .causal = n.causal}}};
    const int64_t dim[][4] = {{1, n.heads, n.queries, n.width},
                              {1, n.heads, n.keys, n.width},
                              {1, n.heads, n.keys, n.value_width}};
    for (int i = Q; i <= V; ++i) {
        TRY(attncl__desc_make(ATTNCL_F32, 4, dim[i], &t->in[i]));
        TRY(upload_random(t, i, (uint32_t)i + 1));
    }
    struct op_call call = forward_call(t);
    TRY(attncl__op_attention_fwd.infer(&call.sig));
    for (int i = 0; i < N_OUT; ++i)
        TRY(create(ctx, &t->out[i], &t->out_span[i], &t->out_storage[i]));
    if (gradients)
        TRY(prepare_gradients(t));
    for (int i = 0; i < 2 * N_OUT; ++i) {
        const int64_t count = attncl__desc_count(result_desc(t, i / 2));
        t->result[i % 2][i / 2] = attncl__alloc_array((size_t)count, sizeof(float));
        REQUIRE(t->result[i % 2][i / 2], ATTNCL_ERR_NO_MEMORY, "%" PRId64 " floats", count);
    }
    return ATTNCL_OK;
}

// By the instruction or by FMAs; *seconds_ret: the least of some runs; *done_ret false where no kernel
// builds and fits.
static attncl_status attend(struct trial *t, enum matrix_instruction mma, double *seconds_ret,
                            bool *done_ret)
{
    const struct storage *results = t->gradients ? t->grad_storage : t->out_storage;
    int n_mma = 0;

    t->caps.attention_mma = t->caps.attention_bwd_mma = mma;
    for (int i = 0; i < N_OUT; ++i)
        if (attncl__desc_present(result_desc(t, i)))
            TRY(attncl__buffer_fill(t->ctx, results[i].mem, CANARY_WORD, 0, results[i].bytes));
    if (t->gradients)
        TRY(run(t, &attncl__op_attention_bwd, backward_call(t), seconds_ret, &n_mma));
    else
        TRY(run(t, &attncl__op_attention_fwd, forward_call(t), seconds_ret, &n_mma));
    *done_ret = mma == MMA_NONE || n_mma > 0;
    for (int i = 0; i < N_OUT; ++i)
        if (attncl__desc_present(result_desc(t, i)))
            TRY(attncl__buffer_read(t->ctx, results[i].mem, 0, t->result[mma != MMA_NONE][i],
                                    results[i].bytes));
    return ATTNCL_OK;
}

// The worst element of all results; each gradient is measured by its largest element.
static struct worst_error compare_gradients(const struct trial *t)
{
    struct worst_error worst = {0};

    for (int i = 0; i < N_OUT; ++i) {
        struct worst_error w = {0};
        attncl__worst_error_add_floats(&w, t->result[1][i], t->result[0][i],
                                       attncl__desc_count(&t->grad[i]));
        w.error = w.largest > 0 ? w.error / w.largest : INFINITY;
        if (i == 0 || w.error > worst.error)
            worst = w;
    }
    return worst;
}

// Results and the rows' maxima, which are of about 1, and the ratios of their totals.
static struct worst_error compare_results(const struct trial *t)
{
    const int64_t n = attncl__desc_count(&t->out[Y]), n_rows = attncl__desc_count(&t->out[ROWS]);
    const float *a = t->result[0][ROWS], *b = t->result[1][ROWS];
    struct worst_error worst = {0};

    attncl__worst_error_add_floats(&worst, t->result[1][Y], t->result[0][Y], n);
    for (int64_t i = 0; i < n_rows; i += 2) {
        attncl__worst_error_add(&worst, i, (double)b[i], (double)a[i], 1);
        attncl__worst_error_add(&worst, i + 1, (double)b[i + 1], (double)a[i + 1],
                                fabs((double)a[i + 1]));
    }
    return worst;
}

// *speed_ret: times as fast as FMAs; `failed` as for all.
static attncl_status compare(attncl_context *ctx, const struct device_caps *caps, struct extents n,
                             bool gradients, double *speed_ret, char failed[FINDING_BYTES])
{
    // Random factors of up to 1 make scores of 1/3 at the deviation and of 3 at most, sums of
    // products three times as large in their sizes.  Rounded factors change products by 2^-10 or
    // 2^-7, scores by up to 2^-8 or 2^-5, results by twice that at the worst; floats change the
    // scores by 2^-20 and their own sums.  Gradients are sums over products of such numbers, and
    // shares of the largest.
    static const double max_error[N_GEMM_PRECISIONS] = {0x1p-18, 0x1p-7, 0x1p-4};
    attncl_status status = ATTNCL_OK;
    struct trial t;
    double seconds[2] = {0};
    char text[WORST_ERROR_BYTES];
    bool done = false;

    TRY_DONE(trial_open(&t, ctx, caps, n, gradients));
    TRY_DONE(attend(&t, MMA_NONE, &seconds[0], &done));
    TRY_DONE(attend(&t, caps->mma_candidate, &seconds[1], &done));
    const struct worst_error worst = gradients ? compare_gradients(&t) : compare_results(&t);
    const double bound = max_error[caps->precision];
    if (!done)
        snprintf(failed, FINDING_BYTES, "its kernel does not build or does not fit");
    else if (!attncl__error_within(&worst, bound))
        snprintf(failed, FINDING_BYTES, "differs from FMAs by %.3g, more than %.3g: %s",
                 worst.error, bound, attncl__worst_error_text(&worst, text));
    *speed_ret = seconds[0] / seconds[1];
done:
    trial_close(&t);
    return status;
}

// Queries, and keys, of heads that take about a millisecond for so many products.
static int64_t trial_extent(const struct device_caps *caps, int n_products, int64_t heads,
                            int64_t width)
{
    enum { STEP = 64, MIN_EXTENT = 128, MAX_EXTENT = 4096 };
    const double n =
        sqrt(1e-3 * caps->flop_per_second / (2.0 * n_products * (double)(heads * width)));

    return n < MIN_EXTENT ? MIN_EXTENT : n > MAX_EXTENT ? MAX_EXTENT : (int64_t)n / STEP * STEP;
}

static attncl_status judge(attncl_context *ctx, const struct device_caps *caps, bool gradients,
                           double min_speed, char failed[FINDING_BYTES])
{
    enum { N_HEADS = 4, WIDTH = 64 };
    const int64_t n = trial_extent(caps, gradients ? 5 : 2, N_HEADS, WIDTH);
    double speed = 0;

    failed[0] = '\0';
    // Nothing is a multiple of anything.
    TRY(compare(ctx, caps, (struct extents){2, 70, 75, 21, 35, true}, gradients, &speed, failed));
    if (*failed)
        return ATTNCL_OK;
    TRY(compare(ctx, caps, (struct extents){N_HEADS, n, n, WIDTH, WIDTH, false}, gradients, &speed,
                failed));
    if (!*failed && speed < min_speed)
        snprintf(failed, FINDING_BYTES, "%.2f times as fast as FMAs, less than %.2f", speed,
                 min_speed);
    return ATTNCL_OK;
}

attncl_status attncl__attention_mma_judge(attncl_context *ctx, const struct device_caps *caps,
                                          double min_speed, char failed[FINDING_BYTES])
{
    return judge(ctx, caps, false, min_speed, failed);
}

attncl_status attncl__attention_bwd_mma_judge(attncl_context *ctx, const struct device_caps *caps,
                                              double min_speed, char failed[FINDING_BYTES])
{
    return judge(ctx, caps, true, min_speed, failed);
}

void attncl__attention_choose_mma(attncl_context *ctx, struct device_caps *caps)
{
    caps->attention_mma = attncl__mma_choose(ctx, caps, MMA_ATTENTION, attncl__attention_mma_judge);
}

void attncl__attention_bwd_choose_mma(attncl_context *ctx, struct device_caps *caps)
{
    caps->attention_bwd_mma =
        attncl__mma_choose(ctx, caps, MMA_ATTENTION_BWD, attncl__attention_bwd_mma_judge);
}
