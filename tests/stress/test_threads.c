// SPDX-License-Identifier: MIT
// Several threads, each with graphs, models, decoders and trainers of its own, in one context and in
// one each, with an empty program cache and with a full one: the bits of one thread.
//
// `tests/run --tsan` runs it under the thread sanitizer.

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "stress/work.h"
#include "support/directory.h"

NO_DEVICE;

enum { N_THREADS = 4, EXIT_SKIPPED = 77, MAX_MESSAGE = 256 };

static struct stress_inputs inputs;
static struct strbuf expected[STRESS_KINDS];
static attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;

struct thread {
    pthread_t id;
    int number;
    attncl_context *shared; // NULL: opens its own
    attncl_status status;
    int kind; // what it worked at last
    bool same;
    char message[MAX_MESSAGE];
};

// All kinds of work, in each thread from another one on.
static attncl_status work(struct thread *t, attncl_context *ctx)
{
    for (int i = 0; i < STRESS_KINDS; ++i) {
        struct strbuf got = STRBUF_EMPTY;
        t->kind = (i + 2 * t->number) % STRESS_KINDS;
        const attncl_status status = stress_work(ctx, &inputs, t->kind, &got);
        const struct strbuf *want = &expected[t->kind];
        t->same = status == ATTNCL_OK && !got.failed && got.used == want->used &&
                  memcmp(got.data, want->data, got.used) == 0;
        attncl__strbuf_free(&got);
        if (!t->same)
            return status;
    }
    return ATTNCL_OK;
}

static void *run_thread(void *argument)
{
    struct thread *t = argument;
    attncl_context *ctx = t->shared;
    if (!ctx)
        t->status = attncl_context_create(&options, &ctx);
    if (t->status == ATTNCL_OK)
        t->status = work(t, ctx);
    snprintf(t->message, sizeof t->message, "%s", attncl_last_error());
    if (!t->shared && attncl_context_destroy(ctx) != ATTNCL_OK)
        t->status = ATTNCL_ERR_STATE;
    return NULL;
}

static void run_threads(attncl_context *shared)
{
    struct thread threads[N_THREADS] = {{0}};
    for (int i = 0; i < N_THREADS; ++i) {
        threads[i].number = i;
        threads[i].shared = shared;
        ck_assert_int_eq(pthread_create(&threads[i].id, NULL, run_thread, &threads[i]), 0);
    }
    for (int i = 0; i < N_THREADS; ++i)
        pthread_join(threads[i].id, NULL);
    for (int i = 0; i < N_THREADS; ++i) {
        ck_assert_msg(threads[i].status == ATTNCL_OK, "thread %d, work %d: %s", i, threads[i].kind,
                      threads[i].message);
        ck_assert_msg(threads[i].same, "thread %d, work %d: other results", i, threads[i].kind);
    }
}

static void up(void)
{
    attncl_context *ctx = NULL;
    directory_begin();
    stress_inputs_load(&inputs, IN_DIRECTORY("text"));
    setenv("ATTNCL_CACHE", "off", 1);
    const attncl_status status = attncl_context_create(NULL, &ctx);
    if (status == ATTNCL_ERR_NO_DEVICE) {
        fprintf(stderr, "skipped: %s\n", attncl_last_error());
        exit(EXIT_SKIPPED);
    }
    ck_ok(status);
    for (int i = 0; i < STRESS_KINDS; ++i) {
        ck_ok(stress_work(ctx, &inputs, i, &expected[i]));
        ck_assert_uint_gt(expected[i].used, 0);
    }
    ck_ok(attncl_context_destroy(ctx));
    setenv("ATTNCL_CACHE", "rw", 1);
}

static void down(void)
{
    setenv("ATTNCL_CACHE", "off", 1);
    for (int i = 0; i < STRESS_KINDS; ++i)
        attncl__strbuf_free(&expected[i]);
    stress_inputs_free(&inputs);
    directory_end();
}

FIXTURE_ONCE(up, down);

// First the empty cache, then the full one.
LOOP_TEST(threads_with_contexts_of_their_own, 0, 2)
{
    char path[FILE_BYTES];
    options.cache_dir = directory_path("own", path);
    run_threads(NULL);
}

LOOP_TEST(threads_that_share_a_context, 0, 2)
{
    char path[FILE_BYTES];
    attncl_context *ctx = NULL;
    options.cache_dir = directory_path("shared", path);
    ck_ok(attncl_context_create(&options, &ctx));
    run_threads(ctx);
    ck_ok(attncl_context_destroy(ctx));
}
