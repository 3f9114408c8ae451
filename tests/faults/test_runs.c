// SPDX-License-Identifier: MIT
// A call of OpenCL fails in a run: what has state is as before, or refuses until it is reset; never
// is a wrong result OK.

#include <string.h>

#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "attncl/optim.h"
#include "attncl/profile.h"
#include "device/context.h"
#include "support/faults.h"
#include "support/golden.h"

FAULTS_FIXTURE;

enum { MAX_CALLS = 3000, N_STEPS = 4, N_LOGITS = 11, N = 64 };

static const cl_int codes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY,
                               CL_INVALID_COMMAND_QUEUE};

// From call n on: one fails, or all.
static void plan(size_t n, int variant)
{
    faults_plan((struct fault_plan){.at = n,
                                    .all = variant >= (int)COUNT_OF(codes),
                                    .code = codes[variant % (int)COUNT_OF(codes)],
                                    .queries = true});
}
enum { N_VARIANTS = 2 * COUNT_OF(codes) };

static attncl_status decode(attncl_decoder *decoder, int first, int end, float *logits)
{
    for (int32_t i = first; i < end; ++i) {
        const attncl_status status =
            attncl_decoder_step(decoder, &i, logits ? logits + i * N_LOGITS : NULL);
        if (status != ATTNCL_OK)
            return status;
    }
    return ATTNCL_OK;
}

static const char *const models[] = {"lm_aft_simple", "lm_gmlp", "lm_transformer",
                                     "lm_feedback_kv"};

// What decoders do; `out`: NULL where nothing waits for the result, else MAX_RESULT bytes.
enum { MAX_RESULT = N_LOGITS * sizeof(float) };
typedef attncl_status act_fn(attncl_decoder *decoder, void *out);

static attncl_status take_step(attncl_decoder *decoder, void *out)
{
    return attncl_decoder_step(decoder, &(int32_t){2}, out);
}

static attncl_status take_prompt(attncl_decoder *decoder, void *out)
{
    return attncl_decoder_prefill(decoder, 3, (int32_t[]){0, 1, 2}, out);
}

static attncl_status draw(attncl_decoder *decoder, void *out)
{
    const attncl_sampling sampling = ATTNCL_SAMPLING_INIT;
    int32_t tokens[5];
    const attncl_status status =
        attncl_decoder_sample(decoder, 5, &(int32_t){4}, &sampling, tokens);

    if (out)
        memcpy(out, tokens, sizeof tokens);
    return status;
}

static const struct act {
    act_fn *run;
    int position;  // before it
    bool compiles; // when a decoder does it first, which may find a smaller launch
} acts[] = {{take_step, 2, false}, {take_prompt, 0, false}, {draw, 1, false}, {draw, 1, true}};

// From the act's position on.
static void begin_act(attncl_model *model, const struct act *act, attncl_decoder **decoder)
{
    if (act->compiles) {
        attncl_decoder_destroy(*decoder);
        ck_ok(attncl_decoder_create(model, 1, NULL, decoder));
    }
    ck_ok(attncl_decoder_reset(*decoder));
    ck_ok(decode(*decoder, 0, act->position, NULL));
}

// The act's result and the logits after it.
static void finish(attncl_decoder *decoder, const struct act *act, char ret[2][MAX_RESULT])
{
    memset(ret, 0, 2 * sizeof ret[0]);
    ck_ok(act->run(decoder, ret[0]));
    ck_ok(attncl_decoder_step(decoder, &(int32_t){3}, (float *)(void *)ret[1]));
}

// Calls of an act fail: the state is as before, or refuses until it is reset.
LOOP_TEST(an_act_of_a_decoder, 0, COUNT_OF(models) * COUNT_OF(acts) * N_VARIANTS * 2)
{
    const struct act *act = &acts[_i / 2 / N_VARIANTS % (int)COUNT_OF(acts)];
    const int variant = _i / 2 % N_VARIANTS;
    const bool reads = _i % 2 != 0;
    _Alignas(float) char want[2][MAX_RESULT], got[2][MAX_RESULT];
    struct golden golden;
    attncl_decoder *decoder = NULL;

    if (act->run == draw && (!reads || variant % (int)COUNT_OF(codes) != 0))
        return;
    if (act->run != draw && variant % 2 != reads && !test_has_full_sizes())
        return;
    attncl_model *model = golden_open(&golden, models[_i / 2 / N_VARIANTS / (int)COUNT_OF(acts)]);
    ck_ok(attncl_decoder_create(model, 1, NULL, &decoder));
    ck_assert_int_eq(attncl_decoder_vocabulary(decoder), N_LOGITS);
    begin_act(model, act, &decoder);
    finish(decoder, act, want);
    size_t n = 1;
    for (; n < MAX_CALLS; n += 1 + n / 8) {
        begin_act(model, act, &decoder);
        plan(n, variant);
        attncl_status status = act->run(decoder, reads ? got[0] : NULL);
        const struct fault_report report = faults_taken();
        if (!report.n_failed)
            break;
        if (act->compiles && status == ATTNCL_OK) {
            ck_assert_mem_eq(got[0], want[0], 5 * sizeof(int32_t));
            continue;
        }
        check_failure(n, &report, status);
        ck_assert_int_eq(attncl_decoder_position(decoder), act->position);
        memset(got, 0, sizeof got);
        status = act->run(decoder, got[0]);
        if (status == ATTNCL_OK) {
            ck_assert_mem_eq(got[0], want[0], sizeof want[0]);
        } else {
            ck_assert_msg(status == ATTNCL_ERR_STATE, "call %zu, %s: %s", n, report.first,
                          attncl_last_error());
            ck_fails(decode(decoder, 2, 3, NULL), ATTNCL_ERR_STATE, "reset");
        }
        ck_ok(attncl_decoder_reset(decoder));
        ck_ok(decode(decoder, 0, act->position, NULL));
        finish(decoder, act, got);
        ck_assert_mem_eq(got, want, sizeof want);
    }
    ck_assert_uint_gt(n, 4);
    ck_assert_uint_lt(n, MAX_CALLS);
    attncl_decoder_destroy(decoder);
    golden_close(&golden, model);
}

// A step that did not wait has failed, and only a wait tells.
TEST(a_fault_that_a_wait_tells)
{
    float want[N_STEPS][N_LOGITS], got[N_STEPS][N_LOGITS];
    struct golden golden;
    attncl_decoder *decoder = NULL;

    attncl_model *model = golden_open(&golden, "lm_gmlp");
    ck_ok(attncl_decoder_create(model, 1, NULL, &decoder));
    ck_ok(decode(decoder, 0, N_STEPS, want[0]));
    for (int by_user = 0; by_user < 2; ++by_user) {
        ck_ok(attncl_decoder_reset(decoder));
        ck_ok(decode(decoder, 0, 1, NULL));
        FAIL_CALL("clFinish", 1, CL_OUT_OF_RESOURCES);
        if (by_user)
            ck_fails(attncl_context_finish(test_context()), ATTNCL_ERR_OPENCL, "clFinish");
        else
            ck_fails(decode(decoder, 1, 2, NULL), ATTNCL_ERR_OPENCL, "clFinish");
        faults_none();
        ck_fails(decode(decoder, 1, 2, got[0]), ATTNCL_ERR_STATE, "reset");
        ck_fails(attncl_graph_read(attncl_decoder_graph(decoder), "logits", got[0], sizeof got[0]),
                 ATTNCL_ERR_STATE, "failed");
        ck_ok(attncl_decoder_reset(decoder));
        ck_ok(decode(decoder, 0, N_STEPS, got[0]));
        ck_assert_mem_eq(got, want, sizeof want);
    }
    attncl_decoder_destroy(decoder);
    golden_close(&golden, model);
}

// sum += x, y = 2 x: a graph that updates a tensor of the caller.
struct updating {
    attncl_tensor *sum;
    attncl_graph *g;
};

static void create_updating(struct updating *u)
{
    static const float zeros[N];
    const int64_t dim[] = {N};
    ck_ok(attncl_tensor_create(test_context(), ATTNCL_F32, 1, dim, ATTNCL_F32, zeros, &u->sum));
    ck_ok(attncl_graph_create(test_context(), &u->g));
    const attncl_value x = attncl_graph_input(u->g, "x", ATTNCL_F32, 1, dim);
    const attncl_value y = attncl_add(u->g, x, x);
    attncl_graph_output(u->g, "y", y);
    attncl_accumulate(u->g, attncl_graph_tensor(u->g, u->sum), x);
    attncl_accumulate(u->g, attncl_graph_tensor(u->g, u->sum), y);
    ck_ok(attncl_graph_compile(u->g, NULL));
}

static void destroy_updating(struct updating *u)
{
    attncl_graph_destroy(u->g);
    attncl_tensor_destroy(u->sum);
}

static attncl_status update(struct updating *u)
{
    float x[N], y[N];
    for (int i = 0; i < N; ++i)
        x[i] = (float)i;
    attncl_status status = attncl_graph_write(u->g, "x", x, sizeof x);
    if (status == ATTNCL_OK)
        status = attncl_graph_run(u->g);
    if (status == ATTNCL_OK)
        status = attncl_graph_read(u->g, "y", y, sizeof y);
    if (status == ATTNCL_OK)
        for (int i = 0; i < N; ++i)
            ck_assert_msg(y[i] == 2 * x[i], "y[%d] = %g", i, (double)y[i]);
    return status;
}

static void check_sum(struct updating *u, int n_updates)
{
    float sum[N];
    ck_ok(attncl_tensor_read(u->sum, sum, sizeof sum));
    for (int i = 0; i < N; ++i)
        ck_assert_msg(sum[i] == (float)(3 * i * n_updates), "sum[%d] = %g", i, (double)sum[i]);
}

LOOP_TEST(a_graph_that_updates_weights, 0, N_VARIANTS)
{
    static const float zeros[N];
    struct updating u;
    float y[N];
    size_t n = 1;

    create_updating(&u);
    for (; n < MAX_CALLS; ++n) {
        ck_ok(attncl_tensor_write(u.sum, zeros, sizeof zeros));
        ck_ok(update(&u));
        plan(n, _i);
        attncl_status status = update(&u);
        const struct fault_report report = faults_taken();
        if (!report.n_failed)
            break;
        check_failure(n, &report, status);
        if (strcmp(report.first, "clEnqueueWriteBuffer") == 0) { // before the run
            ck_ok(update(&u));
            check_sum(&u, 2);
            continue;
        }
        status = attncl_graph_run(u.g);
        if (status == ATTNCL_OK) { // only the read had failed
            ck_assert_str_eq(report.first, "clEnqueueReadBuffer");
            check_sum(&u, 3);
            continue;
        }
        ck_fails(attncl_graph_run(u.g), ATTNCL_ERR_STATE, "reset");
        ck_fails(attncl_graph_read(u.g, "y", y, sizeof y), ATTNCL_ERR_STATE, "reset");
        ck_fails(attncl_graph_enqueue(u.g, 0, NULL, NULL), ATTNCL_ERR_STATE, "reset");
        ck_ok(attncl_graph_reset(u.g));
        ck_fails(attncl_graph_read(u.g, "y", y, sizeof y), ATTNCL_ERR_STATE, "failed");
        ck_ok(attncl_tensor_write(u.sum, zeros, sizeof zeros));
        ck_ok(update(&u));
        check_sum(&u, 1);
    }
    ck_assert_uint_gt(n, 3);
    ck_assert_uint_lt(n, MAX_CALLS);
    check_sum(&u, 2);
    destroy_updating(&u);
}

// A graph that keeps nothing gives no output of a run that failed, and runs again.  In the second half
// every command is estimated to take long, so that each is flushed.
LOOP_TEST(a_graph_without_state, 0, 2 * N_VARIANTS)
{
    const int64_t dim[] = {N};
    struct device_caps *caps = &test_context()->caps;
    const double flop_per_second = caps->flop_per_second;
    float x[N], y[N];
    size_t n = 1;

    if (_i >= N_VARIANTS)
        caps->flop_per_second = 1;
    attncl_graph *g = test_graph();
    const attncl_value in = attncl_graph_input(g, "x", ATTNCL_F32, 1, dim);
    attncl_graph_output(g, "y", attncl_add(g, attncl_mul(g, in, in), in));
    ck_ok(attncl_graph_compile(g, NULL));
    caps->flop_per_second = flop_per_second;
    for (int i = 0; i < N; ++i)
        x[i] = (float)i;
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    for (; n < MAX_CALLS; ++n) {
        plan(n, _i % N_VARIANTS);
        const attncl_status status = attncl_graph_run(g);
        const struct fault_report report = faults_taken();
        if (!report.n_failed)
            break;
        check_failure(n, &report, status);
        ck_fails(attncl_graph_read(g, "y", y, sizeof y), ATTNCL_ERR_STATE, "failed");
        ck_ok(attncl_graph_run(g));
        ck_ok(attncl_graph_read(g, "y", y, sizeof y));
        for (int i = 0; i < N; ++i)
            ck_assert(y[i] == x[i] * x[i] + x[i]);
    }
    ck_assert_uint_gt(n, _i < N_VARIANTS ? 2 : 4);
    ck_assert_uint_lt(n, MAX_CALLS);
    attncl_graph_destroy(g);
}

// One buffer of the caller is input and output: runs leave something for the next.
TEST(a_bound_graph)
{
    const int64_t dim[] = {N};
    cl_int code;
    float x[N];
    cl_mem mem = clCreateBuffer(test_context()->cl, CL_MEM_READ_WRITE, sizeof x, NULL, &code);

    ck_assert_int_eq(code, CL_SUCCESS);
    attncl_graph *g = test_graph();
    const attncl_value in = attncl_graph_input(g, "x", ATTNCL_F32, 1, dim);
    attncl_graph_output(g, "y", attncl_add(g, in, in));
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_bind(g, "x", mem, 0));
    ck_ok(attncl_graph_bind(g, "y", mem, 0));
    FAIL_CALL("clFlush", 1, CL_OUT_OF_RESOURCES);
    ck_fails(attncl_graph_run(g), ATTNCL_ERR_OPENCL, "clFlush");
    faults_none();
    ck_fails(attncl_graph_run(g), ATTNCL_ERR_STATE, "reset");
    ck_ok(attncl_graph_reset(g));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_context_finish(test_context()));
    attncl_graph_destroy(g);
    clReleaseMemObject(mem);
}
