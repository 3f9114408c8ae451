// SPDX-License-Identifier: MIT

#include <stdio.h>
#include <string.h>

#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "attncl/profile.h"
#include "attncl/slots.h"
#include "attncl/train.h"
#include "base/alloc.h"
#include "device/clerr.h"
#include "device/context.h"
#include "exec/exec.h"
#include "support/directory.h"
#include "support/golden.h"
#include "support/work.h"

enum { N = 64, N_STEPS = 4, MAX_LOGITS = 64 };

static void add(struct strbuf *result, const void *data, size_t bytes)
{
    attncl__strbuf_add_bytes(result, data, bytes);
}

// -- models

// The golden file in use: it stays open, so that faults are in the work alone.
static struct golden golden;
static char golden_name[64];

static const struct golden *use_golden(const char *name)
{
    if (strcmp(golden_name, name) != 0) {
        golden_free(&golden);
        golden_load(&golden, name);
        snprintf(golden_name, sizeof golden_name, "%s", name);
    }
    return &golden;
}

attncl_status run_golden(attncl_context *ctx, const struct golden *g, struct strbuf *result)
{
    attncl_status status = ATTNCL_OK;
    attncl_model *model = NULL;
    attncl_results *results = NULL;

    TRY_DONE(attncl_model_open(ctx, g->path, NULL, &model));
    TRY_DONE(attncl_model_run(model, g->inputs, g->n_inputs, &results, NULL));
    for (size_t i = 0; i < attncl_results_count(results); ++i) {
        const attncl_array *a = attncl_results_at(results, i);
        add(result, a->data, a->bytes);
    }
done:
    attncl_results_destroy(results);
    attncl_model_destroy(model);
    return status;
}

attncl_status work_model(const char *name, struct strbuf *result)
{
    return run_golden(test_context(), use_golden(name), result);
}

attncl_status decode_golden(attncl_context *ctx, const struct golden *g, struct strbuf *result)
{
    attncl_status status = ATTNCL_OK;
    attncl_model *model = NULL;
    attncl_decoder *decoder = NULL;
    float logits[MAX_LOGITS];

    TRY_DONE(attncl_model_open(ctx, g->path, NULL, &model));
    TRY_DONE(attncl_decoder_create(model, 1, NULL, &decoder));
    const size_t n = (size_t)attncl_decoder_vocabulary(decoder);
    ck_assert_uint_le(n, MAX_LOGITS);
    for (int32_t i = 0; i < N_STEPS; ++i) {
        TRY_DONE(attncl_decoder_step(decoder, &i, i == 1 ? NULL : logits));
        if (i != 1)
            add(result, logits, n * sizeof *logits);
    }
    TRY_DONE(attncl_decoder_reset(decoder));
    TRY_DONE(attncl_decoder_step(decoder, &(int32_t){1}, logits));
    add(result, logits, n * sizeof *logits);
done:
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
    return status;
}

attncl_status work_decoder(const char *name, struct strbuf *result)
{
    return decode_golden(test_context(), use_golden(name), result);
}

attncl_status work_slots(const char *name, struct strbuf *result)
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    attncl_status status = ATTNCL_OK;
    attncl_model *model = NULL;
    attncl_decoder *decoder = NULL;
    float logits[MAX_LOGITS];

    options.slot_limit = N_STEPS;
    TRY_DONE(attncl_model_open(test_context(), use_golden(name)->path, NULL, &model));
    TRY_DONE(attncl_decoder_create(model, 2, &options, &decoder));
    const size_t n = (size_t)attncl_decoder_vocabulary(decoder);
    ck_assert_uint_le(2 * n, MAX_LOGITS);
    TRY_DONE(attncl_decoder_slot_prefill(decoder, 0, 1, (int32_t[]){3}, logits));
    add(result, logits, n * sizeof *logits);
    TRY_DONE(attncl_decoder_step(decoder, (int32_t[]){1, -1}, NULL));
    TRY_DONE(attncl_decoder_slot_copy(decoder, 1, 0, 2));
    TRY_DONE(attncl_decoder_slot_truncate(decoder, 0, 1));
    TRY_DONE(attncl_decoder_step(decoder, (int32_t[]){2, 4}, logits));
    add(result, logits, 2 * n * sizeof *logits);
done:
    attncl_decoder_destroy(decoder);
    attncl_model_destroy(model);
    return status;
}

// -- training

static const char config[] =
    "{\"arch\": \"lm\", \"model\": {\"d_model\": 8, \"n_layers\": 1, \"n_vocab\": 7, "
    "\"max_len\": 8, \"layer\": \"transformer\", \"heads\": 2, \"d_ff\": 8}, \"train\": {"
    "\"seq_len\": 8, \"batch_size\": 2, \"steps\": 8, \"dropout\": 0.1, %s}}";

static attncl_status take_step(attncl_trainer *trainer, struct strbuf *result)
{
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    TRY(attncl_trainer_step(trainer, &step));
    add(result, &step.loss, sizeof step.loss);
    add(result, &step.grad_norm, sizeof step.grad_norm);
    return ATTNCL_OK;
}

static attncl_status train(attncl_trainer *trainer, struct strbuf *result)
{
    double loss = 0;
    TRY(take_step(trainer, result));
    TRY(take_step(trainer, result));
    TRY(attncl_trainer_evaluate(trainer, &loss));
    add(result, &loss, sizeof loss);
    TRY(attncl_trainer_save(trainer, IN_DIRECTORY("checkpoint")));
    TRY(take_step(trainer, result));
    TRY(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")));
    return take_step(trainer, result); // the same once more
}

attncl_status work_trainer(const char *keys, struct strbuf *result)
{
    char text[1024], path[FILE_BYTES];
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_trainer *trainer = NULL;

    snprintf(text, sizeof text, config, keys);
    options.data = directory_path("text", path);
    attncl_status status = attncl_trainer_create(test_context(), text, &options, &trainer);
    if (status == ATTNCL_OK)
        status = train(trainer, result);
    attncl_trainer_destroy(trainer);
    remove(IN_DIRECTORY("checkpoint"));
    ck_assert_uint_eq(directory_entries(), 3); // the text, the caches
    return status;
}

// -- interoperation

// y = (x + x) x
static attncl_status build(attncl_context *ctx, attncl_graph **ret)
{
    attncl_graph *g = NULL;
    TRY(attncl_graph_create(ctx, &g));
    *ret = g; // destroyed by the caller, whatever follows
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){N});
    attncl_graph_output(g, "y", attncl_mul(g, attncl_add(g, x, x), x));
    return attncl_graph_compile(g, NULL);
}

// Buffers and reads of the test itself: no faults are meant for them.
static cl_mem buffer_of(attncl_context *ctx, float first)
{
    float data[2 * N];
    for (int i = 0; i < 2 * N; ++i)
        data[i] = first + (float)i;
    return clCreateBuffer(ctx->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof data, data,
                          &(cl_int){0});
}

static attncl_status enqueue_and_wait(attncl_graph *g)
{
    cl_event done = NULL;
    TRY(attncl_graph_enqueue(g, 0, NULL, &done));
    const cl_int code = clWaitForEvents(1, &done);
    clReleaseEvent(done);
    return CL_CODE(code, "clWaitForEvents");
}

attncl_status work_bound(const char *offset, struct strbuf *result)
{
    attncl_context *ctx = test_context();
    attncl_status status = ATTNCL_OK;
    attncl_graph *g = NULL;
    float y[2 * N];
    cl_mem in = buffer_of(ctx, 1), out = buffer_of(ctx, 0);

    if (!in || !out) {
        status = FAIL(ATTNCL_ERR_OPENCL, "clCreateBuffer");
        goto done;
    }
    TRY_DONE(build(ctx, &g));
    TRY_DONE(attncl_graph_bind(g, "x", in, atoi(offset)));
    TRY_DONE(attncl_graph_bind(g, "y", out, atoi(offset)));
    TRY_DONE(enqueue_and_wait(g));
    TRY_DONE(attncl__buffer_read(ctx, out, 0, y, sizeof y));
    add(result, y, sizeof y);
    TRY_DONE(attncl_graph_bind(g, "y", NULL, 0));
    TRY_DONE(attncl_graph_run(g));
    TRY_DONE(attncl_graph_read(g, "y", y, N * sizeof *y));
    add(result, y, N * sizeof *y);
done:
    attncl_graph_destroy(g);
    if (in)
        clReleaseMemObject(in);
    if (out)
        clReleaseMemObject(out);
    return status;
}

// Outputs read as soon as they are complete, and the event of a graph that has no command.
static attncl_status read_early(attncl_graph *g, attncl_graph *empty, struct strbuf *result)
{
    float y[N];
    struct early_read read = {.name = "y", .data = y, .bytes = sizeof y};
    cl_event done = NULL;
    bool is_done = false;

    TRY(attncl__graph_run_reading(g, &read, 1));
    attncl_status status = attncl__early_read_is_done(&read, &is_done);
    if (status == ATTNCL_OK)
        status = attncl_graph_enqueue(empty, 1, &read.done, &done);
    if (status == ATTNCL_OK)
        status = CL_CODE(clWaitForEvents(1, &done), "clWaitForEvents");
    if (done)
        clReleaseEvent(done);
    if (status == ATTNCL_OK) {
        status = attncl__early_reads_end(g, &read, 1);
        add(result, y, sizeof y);
    } else {
        attncl__early_reads_abandon(g, &read, 1);
    }
    return status;
}

attncl_status work_events(const char *unused, struct strbuf *result)
{
    attncl_status status = ATTNCL_OK;
    attncl_graph *g = NULL, *empty = NULL;
    float x[N];

    (void)unused;
    for (int i = 0; i < N; ++i)
        x[i] = (float)i;
    TRY_DONE(build(test_context(), &g));
    TRY_DONE(attncl_graph_create(test_context(), &empty));
    TRY_DONE(attncl_graph_compile(empty, NULL));
    TRY_DONE(attncl_graph_write(g, "x", x, sizeof x));
    TRY_DONE(read_early(g, empty, result));
done:
    attncl_graph_destroy(empty);
    attncl_graph_destroy(g);
    return status;
}

attncl_status run_small(attncl_context *ctx, bool profiled, struct strbuf *result)
{
    attncl_status status = ATTNCL_OK;
    attncl_graph *g = NULL;
    float x[N], y[N];

    for (int i = 0; i < N; ++i)
        x[i] = (float)i;
    TRY_DONE(build(ctx, &g));
    TRY_DONE(attncl_graph_write(g, "x", x, sizeof x));
    TRY_DONE(profiled ? attncl_graph_run_profiled(g) : attncl_graph_run(g));
    TRY_DONE(attncl_graph_read(g, "y", y, sizeof y));
    add(result, y, sizeof y);
done:
    attncl_graph_destroy(g);
    return status;
}

attncl_status work_profile(const char *unused, struct strbuf *result)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;

    (void)unused;
    options.profile = 1;
    TRY(attncl_context_create(&options, &ctx));
    const attncl_status status = run_small(ctx, true, result);
    ck_ok(attncl_context_destroy(ctx));
    return status;
}

attncl_status work_adopted(const char *unused, struct strbuf *result)
{
    attncl_context *own = test_context(), *ctx = NULL;

    (void)unused;
    TRY(attncl_context_adopt(own->cl, own->device, own->queue, NULL, &ctx));
    const attncl_status status = run_small(ctx, false, result);
    ck_ok(attncl_context_destroy(ctx));
    return status;
}

static attncl_status run_cached(const char *name, struct strbuf *result)
{
    char path[FILE_BYTES];
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;

    options.cache_dir = directory_path(name, path);
    setenv("ATTNCL_CACHE", "rw", 1);
    attncl_status status = attncl_context_create(&options, &ctx);
    setenv("ATTNCL_CACHE", "off", 1);
    if (status == ATTNCL_OK)
        status = run_small(ctx, false, result);
    ck_ok(attncl_context_destroy(ctx));
    return status;
}

attncl_status work_cache(const char *name, struct strbuf *result)
{
    return run_cached(name, result);
}

attncl_status work_cold(const char *name, struct strbuf *result)
{
    const attncl_status status = run_cached(name, result);
    directory_empty(name);
    return status;
}

void work_begin(void)
{
    directory_up();
    directory_write("text",
                    "abcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefg"
                    "gfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcbagfedcba"
                    "acegbdfacegbdfacegbdfacegbdfacegbdfacegbdfacegbdfacegbdfacegbdfacegbdf");
    struct strbuf unused = STRBUF_EMPTY;
    ck_ok(work_cache("cache", &unused)); // fills it
    ck_ok(work_cold("cold", &unused));
    attncl__strbuf_free(&unused);
}

void work_end(void)
{
    golden_free(&golden);
    golden_name[0] = '\0';
    directory_down();
}
