// SPDX-License-Identifier: MIT
// Batches of training that begin before the one before them was waited for: what is enqueued while the
// device has done nothing yet, and calls of OpenCL that fail meanwhile.

#define _GNU_SOURCE // nanosleep, unsetenv
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attncl/train.h"
#include "device/context.h"
#include "support/directory.h"
#include "support/faults.h"
#include "train/ranks.h"

static attncl_context *context;

static void up(void)
{
    directory_begin();
    directory_write("text", "abcdefgabcdffgabgdefgabcdeegabcdefgafcdefgadcdefgabcdefgabbdefga"
                            "gfedcbagfedcbagfedcbagfcdcbagfedgbagfedcbagfgdcbagfedcbagfedcbag");
    unsetenv("ATTNCL_GUARD"); // which waits for each run
    ck_ok(attncl_context_create(NULL, &context));
    faults_begin();
}

static void down(void)
{
    faults_end();
    ck_ok(attncl_context_destroy(context));
    directory_down();
}

FIXTURE(up, down);

static attncl_trainer *start(const char *keys, attncl_ranks *ranks)
{
    char config[1024], path[FILE_BYTES];
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_trainer *trainer = NULL;

    snprintf(config, sizeof config,
             "{\"arch\": \"lm\", \"model\": {\"layer\": \"aft_simple\", \"d_model\": 4, "
             "\"d_ff\": 4, \"n_layers\": 1, \"seq_len\": 4}, \"train\": {\"batch_size\": 2, "
             "\"seq_len\": 4, \"steps\": 9%s%s}}",
             *keys ? ", " : "", keys);
    options.data = directory_path("text", path);
    options.ranks = ranks;
    ck_ok(attncl_trainer_create(context, config, &options, &trainer));
    return trainer;
}

static void take(attncl_trainer *trainer, attncl_train_step *step)
{
    *step = (attncl_train_step)ATTNCL_TRAIN_STEP_INIT;
    ck_ok(attncl_trainer_step(trainer, step));
}

// -- a device that does nothing

// Nothing behind the event runs until it is set, which a thread does when enough calls were made, or after
// some seconds.
struct gate {
    cl_event event;
    pthread_t thread;
    size_t wanted, n_calls; // when it was set
};

static void *open_gate(void *user)
{
    enum { LONGEST_MS = 10000 };
    struct gate *gate = user;
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int ms = 0; ms < LONGEST_MS && faults_report().n_calls < gate->wanted; ++ms)
        nanosleep(&pause, NULL);
    gate->n_calls = faults_report().n_calls;
    clSetUserEventStatus(gate->event, CL_COMPLETE);
    return NULL;
}

// Counts calls of `function` from now on.
static void close_gate(struct gate *gate, const char *function, size_t wanted)
{
    cl_int code;

    *gate = (struct gate){.event = clCreateUserEvent(context->cl, &code), .wanted = wanted};
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(clEnqueueBarrierWithWaitList(context->queue, 1, &gate->event, NULL),
                     CL_SUCCESS);
    faults_plan((struct fault_plan){.only = function});
    ck_assert_int_eq(pthread_create(&gate->thread, NULL, open_gate, gate), 0);
}

static void check_gate(struct gate *gate)
{
    ck_assert_int_eq(pthread_join(gate->thread, NULL), 0);
    clReleaseEvent(gate->event);
    faults_none();
    ck_assert_msg(gate->n_calls >= gate->wanted, "%zu calls before a wait, expected %zu",
                  gate->n_calls, gate->wanted);
}

// -- a second rank, which computes what this one does

static const char *exchange(const void *out, struct ranks_blocks out_blocks, void *in,
                            struct ranks_blocks in_blocks, struct ranks_request *ret)
{
    (void)ret;
    for (int r = 0; r < 2; ++r)
        memcpy((char *)in + in_blocks.at[r], (const char *)out + out_blocks.at[0],
               (size_t)in_blocks.bytes[r]);
    return NULL;
}

static const char *gather(void *data, struct ranks_blocks blocks, struct ranks_request *ret)
{
    (void)ret;
    const int bytes = blocks.bytes[blocks.bytes[1] < blocks.bytes[0]];
    memcpy((char *)data + blocks.at[1], (const char *)data + blocks.at[0], (size_t)bytes);
    return NULL;
}

static const char *broadcast(void *data, int bytes, struct ranks_request *ret)
{
    (void)data;
    (void)bytes;
    (void)ret;
    return NULL;
}

static const char *test(struct ranks_request *request, int *done_ret)
{
    (void)request;
    *done_ret = 1;
    return NULL;
}

static const char *close_ranks(void)
{
    return NULL;
}

static attncl_ranks *two_ranks(void)
{
    static const struct ranks_plugin plugin = {.version = RANKS_PLUGIN_VERSION,
                                               .close = close_ranks,
                                               .exchange = exchange,
                                               .gather = gather,
                                               .broadcast = broadcast,
                                               .test = test};
    attncl_ranks *ranks = NULL;

    ck_ok(attncl_ranks_open(&ranks));
    ranks->plugin = &plugin;
    ranks->place = (struct ranks_place){.size = 2, .local_size = 2};
    return ranks;
}

// -- what is enqueued before the first wait

// Of a batch: tokens, targets, and step and rate or the loss's weight.
static const struct {
    const char *keys;
    int n_ranks;
    size_t n_writes;
} cases[] = {
    {"", 1, 4}, {"\"dropout\": 0.1, \"ema\": 0.9", 1, 5},  {"\"accumulate\": 3", 1, 3},
    {"", 2, 3}, {"\"accumulate\": 2, \"ema\": 0.9", 2, 3},
};

// In a step that begins with nothing written, as after a resume.
TABLE_TEST(the_next_batch_is_written_before_a_wait, cases)
{
    attncl_train_step step;
    struct gate gate;
    attncl_ranks *ranks = cases[_i].n_ranks > 1 ? two_ranks() : NULL;
    attncl_trainer *trainer = start(cases[_i].keys, ranks);

    if (context->caps.blocking_writes)
        return;
    take(trainer, &step); // compiles
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("checkpoint")));
    ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")));
    close_gate(&gate, "clEnqueueWriteBuffer", 2 * cases[_i].n_writes);
    take(trainer, &step);
    check_gate(&gate);
    attncl_trainer_destroy(trainer);
    attncl_ranks_close(ranks);
}

// Kernels that two calls of attncl_trainer_begin() enqueue: at least this many of a step's.
static const struct {
    const char *keys;
    size_t n_steps, of;
} begun[] = {
    {"", 2, 1},
    {"\"ema\": 0.9", 2, 1},
    {"\"accumulate\": 2, \"ema\": 0.9", 1, 1},
    {"\"accumulate\": 3, \"dropout\": 0.2", 1, 3},
};

TABLE_TEST(steps_begin_without_a_wait, begun)
{
    cl_int code;
    attncl_train_step step;
    attncl_trainer *trainer = start(begun[_i].keys, NULL);

    if (context->caps.blocking_writes)
        return;
    take(trainer, &step); // compiles
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("checkpoint")));
    ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")));
    faults_plan((struct fault_plan){.only = "clEnqueueNDRangeKernel"});
    take(trainer, &step);
    const size_t n_of_a_step = faults_report().n_calls;
    ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")));
    cl_event event = clCreateUserEvent(context->cl, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(clEnqueueBarrierWithWaitList(context->queue, 1, &event, NULL), CL_SUCCESS);
    faults_plan((struct fault_plan){.only = "clEnqueueNDRangeKernel"});
    alarm(60); // a wait would not end
    for (int i = 0; i < 3; ++i)
        ck_ok(attncl_trainer_begin(trainer));
    alarm(0);
    const size_t n = faults_report().n_calls;
    clSetUserEventStatus(event, CL_COMPLETE);
    clReleaseEvent(event);
    faults_none();
    ck_assert_msg(n_of_a_step > 0 && n * begun[_i].of >= n_of_a_step * begun[_i].n_steps,
                  "%zu kernels, a step has %zu", n, n_of_a_step);
    take(trainer, &step);
    take(trainer, &step);
    ck_assert_int_eq(step.step, 3);
    attncl_trainer_destroy(trainer);
}

// -- calls that fail

enum { LAST = 4, MAX_CALLS = 3000 };

struct results {
    attncl_train_step step[LAST + 1];
    double valid_loss;
};

// Goes on to step LAST, with steps that begin early, and says how far it came.
static attncl_status go_on(attncl_trainer *trainer, int64_t *taken, struct results *results)
{
    attncl_status status = attncl_trainer_begin(trainer);
    while (status == ATTNCL_OK && *taken < LAST) {
        attncl_train_step *step = &results->step[*taken + 1];
        *step = (attncl_train_step)ATTNCL_TRAIN_STEP_INIT;
        if (*taken + 1 < LAST)
            status = attncl_trainer_begin(trainer);
        if (status == ATTNCL_OK)
            status = attncl_trainer_step(trainer, step);
        *taken += status == ATTNCL_OK;
    }
    return status;
}

static void check_results(attncl_trainer *trainer, const struct results *want, struct results *got)
{
    ck_ok(attncl_trainer_evaluate(trainer, &got->valid_loss));
    ck_assert_mem_eq(&got->valid_loss, &want->valid_loss, sizeof got->valid_loss);
    for (int i = 2; i <= LAST; ++i) {
        ck_assert_int_eq(got->step[i].step, i);
        ck_assert_mem_eq(&got->step[i].loss, &want->step[i].loss, sizeof(double));
        ck_assert_mem_eq(&got->step[i].grad_norm, &want->step[i].grad_norm, sizeof(double));
        ck_assert_int_eq(got->step[i].n_tokens, want->step[i].n_tokens);
    }
}

// A further call takes the same step, or the trainer refuses until a resume: the results are the same.
static void recover(attncl_trainer *trainer, int64_t *taken, struct results *got)
{
    attncl_status status = ATTNCL_OK;
    for (int i = 0; i < 2 && *taken < LAST; ++i) // the second: graphs that failed are made again
        status = go_on(trainer, taken, got);
    if (status == ATTNCL_OK)
        return;
    ck_assert_int_eq(status, ATTNCL_ERR_STATE);
    ck_fails(attncl_trainer_save(trainer, IN_DIRECTORY("x")), ATTNCL_ERR_STATE, "half done");
    ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")));
    *taken = 1;
    ck_ok(go_on(trainer, taken, got));
}

static const char *const swept[] = {"", "\"ema\": 0.9",
                                    "\"accumulate\": 3, \"ema\": 0.9, \"optimizer\": {\"kind\": "
                                    "\"sgd\", \"momentum\": 0.9}"};

LOOP_TEST(each_call_of_steps, 0, 2 * COUNT_OF(swept))
{
    struct results want, got;
    attncl_trainer *trainer = start(swept[_i / 2], NULL);
    int64_t taken = 1;
    size_t n = 1;

    take(trainer, &want.step[1]);
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("checkpoint")));
    ck_ok(go_on(trainer, &taken, &want));
    ck_ok(attncl_trainer_evaluate(trainer, &want.valid_loss));
    for (; n < MAX_CALLS; n += 1 + n / 8) {
        ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")));
        taken = 1;
        faults_plan((struct fault_plan){
            .at = n, .all = _i % 2 != 0, .code = CL_OUT_OF_RESOURCES, .queries = true});
        const attncl_status status = go_on(trainer, &taken, &got);
        const struct fault_report report = faults_taken();
        if (!report.n_failed)
            break;
        if (status != ATTNCL_OK)
            recover(trainer, &taken, &got);
        check_results(trainer, &want, &got);
    }
    ck_assert_uint_gt(n, 50);
    ck_assert_uint_lt(n, MAX_CALLS);
    attncl_trainer_destroy(trainer);
}
