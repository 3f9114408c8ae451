// SPDX-License-Identifier: MIT
//
// CLBlast, with guards against its known faults:
//
//   sizes       It casts sizes and offsets to int.  Sizes that do not fit are refused.
//   batches     Its strided-batched GEMM is wrong above about 512 cubed with an offset or with gaps
//               between matrices.  Such batches are computed one matrix at a time.
//   threads     Its program cache has a race at first use.  A lock serialises calls.
//   memory      It allocates a buffer for padded copies at every call.  Here one buffer per context
//               serves all calls.
//   teardown    Its cache keeps contexts alive and releases programs at exit.  It is cleared with the
//               last context.

#include "gemm/internal.h"

#include "base/alloc.h"
#include "device/clerr.h"
#include "launch/command_list.h"

#include <clblast_c.h> // after device/cl.h, which names OpenCL's version

// State per context.
struct clblast_user {
    attncl_context *ctx;
    cl_mem temp; // for padded copies; grows while GEMMs are appended
    size_t temp_bytes;
    struct clblast_user *next;
};

// Guards the list, the temporary buffers, and every CLBlast call.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct clblast_user *users;

struct clblast_call {
    struct clblast_user *user;
    struct gemm gemm;
    bool batched; // one call for all batch entries
};

const char *attncl__clblast_unsupported_reason(const struct gemm *g)
{
    const struct gemm_matrix *const matrices[] = {&g->a, &g->b, &g->c};
    const int64_t rows[] = {g->trans_a ? g->k : g->m, g->trans_b ? g->n : g->k, g->m};

    if (g->causal)
        return "CLBlast has no triangular operand";
    for (int i = 0; i < 3; ++i) {
        const struct gemm_matrix *x = matrices[i];
        if (x->start + (g->batch - 1) * x->batch_stride + rows[i] * x->ld > INT32_MAX)
            return "CLBlast counts elements in int";
    }
    return NULL;
}

static bool is_dense(const struct gemm_matrix *x, int64_t rows, int64_t columns)
{
    return x->start == 0 && x->ld == columns && x->batch_stride == rows * columns;
}

static bool is_dense_batch(const struct gemm *g)
{
    return g->batch > 1 && is_dense(&g->c, g->m, g->n) &&
           (g->trans_a ? is_dense(&g->a, g->k, g->m) : is_dense(&g->a, g->m, g->k)) &&
           (g->trans_b ? is_dense(&g->b, g->n, g->k) : is_dense(&g->b, g->k, g->n));
}

bool attncl__clblast_is_one_call(const struct gemm *g)
{
    return g->batch == 1 || is_dense_batch(g);
}

bool attncl__clblast_has_tuning(const struct device_caps *caps)
{
    static const unsigned capabilities[] = {70, 75, 80, 86, 89};

    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; ++i)
        if (caps->nv_compute_capability == capabilities[i])
            return true;
    return caps->vendor != VENDOR_NVIDIA;
}

static attncl_status check(CLBlastStatusCode code, const char *what)
{
    REQUIRE(code == CLBlastSuccess, ATTNCL_ERR_BLAS, "CLBlast: %s gives %d", what, (int)code);
    return ATTNCL_OK;
}

// An entry of CLBlast's tuning database.
enum { MAX_TUNING_PARAMETERS = 16 };
struct clblast_tuning {
    const char *kernel;
    bool replaces; // also replaces an entry of the database
    size_t n;
    const char *name[MAX_TUNING_PARAMETERS];
    size_t value[MAX_TUNING_PARAMETERS];
};

// For NVIDIA GPUs without an entry: the parameters of GPUs with 128 lanes per multiprocessor (RTX 3070, 3080).  For
// every GPU: the kernels that pad and transpose are used from 512 cubed on, which are those compared at first use.
static const struct clblast_tuning tunings[] = {
    {"Xgemm",
     false,
     16,
     {"GEMMK", "KREG", "KWG", "KWI", "MDIMA", "MDIMC", "MWG", "NDIMB", "NDIMC", "NWG", "SA", "SB",
      "STRM", "STRN", "VWM", "VWN"},
     {0, 1, 32, 2, 8, 8, 64, 32, 16, 128, 1, 1, 1, 1, 2, 2}},
    {"XgemmDirect",
     false,
     10,
     {"KWID", "MDIMAD", "MDIMCD", "NDIMBD", "NDIMCD", "PADA", "PADB", "VWMD", "VWND", "WGD"},
     {2, 8, 8, 8, 8, 1, 1, 4, 4, 32}},
    {"GemmRoutine", true, 1, {"XGEMM_MIN_INDIRECT_SIZE"}, {512}},
};

attncl_status attncl__clblast_add_tuning(attncl_context *ctx)
{
    const bool has_entry = attncl__clblast_has_tuning(&ctx->caps);

    for (size_t i = 0; i < sizeof tunings / sizeof tunings[0]; ++i) {
        struct clblast_tuning tuning = tunings[i];
        if (has_entry && !tuning.replaces)
            continue;
        TRY(check(CLBlastOverrideParameters(ctx->device, tuning.kernel, CLBlastPrecisionSingle,
                                            tuning.n, tuning.name, tuning.value),
                  tuning.kernel));
    }
    return ATTNCL_OK;
}

static void forget_user(void *arg)
{
    struct clblast_user *user = arg;

    pthread_mutex_lock(&lock);
    struct clblast_user **at = &users;
    while (*at != user)
        at = &(*at)->next;
    *at = user->next;
    if (!users)
        CLBlastClearCache();
    pthread_mutex_unlock(&lock);
    attncl__buffer_release(&user->temp);
    attncl__free(user);
}

// Called with the lock held.
static attncl_status add_user(attncl_context *ctx, struct clblast_user **ret)
{
    attncl_status status = ATTNCL_OK;
    struct clblast_user *user = attncl__alloc_zero(sizeof *user);

    REQUIRE(user, ATTNCL_ERR_NO_MEMORY, "CLBlast's state");
    user->ctx = ctx;
    TRY_DONE(attncl__clblast_add_tuning(ctx));
    ctx->on_destroy = forget_user;
    ctx->destroy_user = user;
    user->next = users;
    users = user;
    *ret = user;
    user = NULL; // the list and the context's hook own it now

done:
    attncl__free(user);
    return status;
}

static CLBlastTranspose transpose(bool is_transposed)
{
    return is_transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
}

static size_t offset(const struct gemm_matrix *x, int64_t entry)
{
    return (size_t)(x->start + entry * x->batch_stride);
}

// Called with the lock held.  Grows the temporary buffer to serve batch entry 0 and an entry with an
// offset.
static attncl_status reserve_temp(struct clblast_user *user, const struct gemm *g)
{
    for (int64_t entry = 0; entry < (g->batch > 1 ? 2 : 1); ++entry) {
        size_t bytes = 0;
        TRY(check(CLBlastSGemmTempBufferSize(
                      CLBlastLayoutRowMajor, transpose(g->trans_a), transpose(g->trans_b),
                      (size_t)g->m, (size_t)g->n, (size_t)g->k, offset(&g->a, entry),
                      (size_t)g->a.ld, offset(&g->b, entry), (size_t)g->b.ld, offset(&g->c, entry),
                      (size_t)g->c.ld, &user->ctx->queue, &bytes),
                  "GemmTempBufferSize"));
        if (bytes > user->temp_bytes) {
            attncl__buffer_release(&user->temp);
            user->temp_bytes = 0;
            TRY(attncl__buffer_create(user->ctx, bytes, &user->temp));
            user->temp_bytes = bytes;
        }
    }
    return ATTNCL_OK;
}

static attncl_status run_batched(attncl_context *ctx, const struct gemm *g, cl_event *event)
{
    return check(CLBlastSgemmStridedBatched(
                     CLBlastLayoutRowMajor, transpose(g->trans_a), transpose(g->trans_b),
                     (size_t)g->m, (size_t)g->n, (size_t)g->k, 1.0f, g->a.span.storage->mem, 0,
                     (size_t)g->a.ld, (size_t)g->a.batch_stride, g->b.span.storage->mem, 0,
                     (size_t)g->b.ld, (size_t)g->b.batch_stride, 0.0f, g->c.span.storage->mem, 0,
                     (size_t)g->c.ld, (size_t)g->c.batch_stride, (size_t)g->batch, &ctx->queue,
                     event),
                 "SgemmStridedBatched");
}

static attncl_status run_single(attncl_context *ctx, const struct clblast_call *call, int64_t entry,
                                cl_event *event)
{
    const struct gemm *g = &call->gemm;

    return check(CLBlastSgemmWithTempBuffer(
                     CLBlastLayoutRowMajor, transpose(g->trans_a), transpose(g->trans_b),
                     (size_t)g->m, (size_t)g->n, (size_t)g->k, 1.0f, g->a.span.storage->mem,
                     offset(&g->a, entry), (size_t)g->a.ld, g->b.span.storage->mem,
                     offset(&g->b, entry), (size_t)g->b.ld, 0.0f, g->c.span.storage->mem,
                     offset(&g->c, entry), (size_t)g->c.ld, &ctx->queue, event, call->user->temp),
                 "Sgemm");
}

static attncl_status run_call(attncl_context *ctx, void *user, cl_event *event)
{
    const struct clblast_call *call = user;
    attncl_status status = ATTNCL_OK;

    pthread_mutex_lock(&lock);
    if (call->batched)
        status = run_batched(ctx, &call->gemm, event);
    for (int64_t i = 0; i < call->gemm.batch && !call->batched && status == ATTNCL_OK; ++i)
        status = run_single(ctx, call, i, i + 1 == call->gemm.batch ? event : NULL);
    pthread_mutex_unlock(&lock);
    return status;
}

attncl_status attncl__clblast_gemm(struct launcher *l, const struct gemm *g)
{
    attncl_context *ctx = l->command_list->ctx;
    attncl_status status = ATTNCL_OK;
    struct clblast_call *call = attncl__alloc_zero(sizeof *call);

    REQUIRE(call, ATTNCL_ERR_NO_MEMORY, "a CLBlast call");
    assert(!attncl__clblast_unsupported_reason(g));
    call->gemm = *g;
    call->batched = is_dense_batch(g);
    pthread_mutex_lock(&lock);
    for (call->user = users; call->user && call->user->ctx != ctx;)
        call->user = call->user->next;
    if (!call->user)
        TRY_DONE(add_user(ctx, &call->user));
    if (!call->batched)
        TRY_DONE(reserve_temp(call->user, g));
    TRY_DONE(attncl__command_list_add_call(l->command_list, "clblast_sgemm", run_call, call,
                                           attncl__free));
    call = NULL; // the command list owns it now

done:
    pthread_mutex_unlock(&lock);
    attncl__free(call);
    return status;
}
