// SPDX-License-Identifier: MIT
// One model on two devices, from two threads at once: each evaluates and samples as it does alone, bit for bit, and
// once both are warm no lock of the library is taken by both.  Needs two devices: PoCL, say, and
// rusticl's, which CTest asks for.
//
// Linked with --wrap=pthread_mutex_lock: the calls of the library, not those of drivers.

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/golden.h"

NO_DEVICE;

enum { N_DEVICES = 2, EXIT_SKIPPED = 77, MAX_LOCKS = 64, N_ROUNDS = 20, MAX_ELEMENTS = 2048 };

// Of the calling thread; NULL: nothing is recorded.
struct locks {
    const pthread_mutex_t *lock[MAX_LOCKS];
    int n;
    long n_taken;
};

static _Thread_local struct locks *recorded;

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    struct locks *r = recorded;
    int i = 0;

    while (r && i < r->n && r->lock[i] != lock)
        ++i;
    if (r && i == r->n && r->n < MAX_LOCKS)
        r->lock[r->n++] = lock;
    if (r)
        ++r->n_taken;
    return __real_pthread_mutex_lock(lock);
}

struct opened {
    char device[16], name[128];
    attncl_context *context;
    attncl_model *model;
    attncl_graph *graph;
    attncl_decoder *decoder;
};

// What a device computes in one round: all scores of the evaluation, then those of the tokens drawn.
struct scores {
    float evaluated[MAX_ELEMENTS], drawn[MAX_ELEMENTS];
};

static struct golden golden;
static struct opened opened[N_DEVICES];
static struct scores alone[N_DEVICES];
static int32_t tokens[MAX_ELEMENTS]; // [T, B]
static int64_t n_seq, batch, n_vocab;

static int32_t likeliest(const float *scores)
{
    int32_t best = 0;

    for (int32_t v = 1; v < n_vocab; ++v)
        best = scores[v] > scores[best] ? v : best;
    return best;
}

static attncl_status compute(struct opened *o, struct scores *ret)
{
    const size_t bytes = (size_t)(n_seq * batch * n_vocab) * sizeof(float);
    int32_t next[MAX_ELEMENTS];
    attncl_status status =
        attncl_graph_write(o->graph, "tokens", tokens, (size_t)(n_seq * batch) * sizeof *tokens);

    if (status == ATTNCL_OK)
        status = attncl_graph_run(o->graph);
    if (status == ATTNCL_OK)
        status = attncl_graph_read(o->graph, "output", ret->evaluated, bytes);
    if (status == ATTNCL_OK)
        status = attncl_decoder_reset(o->decoder);
    memcpy(next, tokens, (size_t)batch * sizeof *next);
    for (int64_t t = 0; t < n_seq && status == ATTNCL_OK; ++t) {
        float *scores = ret->drawn + t * batch * n_vocab;
        status = attncl_decoder_step(o->decoder, next, scores);
        for (int64_t b = 0; b < batch; ++b)
            next[b] = likeliest(scores + b * n_vocab);
    }
    return status;
}

static void open_device(int i, size_t index)
{
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    struct opened *o = &opened[i];

    ck_ok(attncl_device_get(index, &info));
    snprintf(o->device, sizeof o->device, "%d:%d", info.platform, info.device);
    snprintf(o->name, sizeof o->name, "%s", info.name);
    options.device = o->device;
    ck_ok(attncl_context_create(&options, &o->context));
    ck_ok(attncl_model_open(o->context, golden.path, NULL, &o->model));
    ck_ok(attncl_model_graph(o->model, golden.inputs, golden.n_inputs, &o->graph));
    ck_ok(attncl_decoder_create(o->model, batch, NULL, &o->decoder));
    n_vocab = attncl_decoder_vocabulary(o->decoder);
    ck_assert_int_le(n_seq * batch * n_vocab, MAX_ELEMENTS);
    ck_ok(compute(o, &alone[i]));
}

static void up(void)
{
    size_t count = 0;

    ck_ok(attncl_device_count(&count));
    if (count < N_DEVICES) {
        fprintf(stderr, "skipped: %zu OpenCL devices, needs %d\n", count, N_DEVICES);
        exit(EXIT_SKIPPED);
    }
    golden_load(&golden, "lm_transformer");
    const attncl_array *given = golden_input(&golden, "tokens");
    n_seq = given->dim[0];
    batch = given->dim[1];
    for (int64_t i = 0; i < n_seq * batch; ++i) {
        int64_t token;
        memcpy(&token, (const char *)given->data + i * (int64_t)sizeof token, sizeof token);
        tokens[i] = (int32_t)token;
    }
    for (int i = 0; i < N_DEVICES; ++i)
        open_device(i, (size_t)i);
}

static void down(void)
{
    for (int i = 0; i < N_DEVICES; ++i) {
        attncl_decoder_destroy(opened[i].decoder);
        attncl_graph_destroy(opened[i].graph);
        attncl_model_destroy(opened[i].model);
        ck_ok(attncl_context_destroy(opened[i].context));
    }
    golden_free(&golden);
}

FIXTURE_ONCE(up, down);

struct thread {
    pthread_t id;
    pthread_barrier_t *start;
    int device;
    attncl_status status;
    bool same;
    struct locks locks;
};

static void *run_thread(void *argument)
{
    struct thread *t = argument;
    struct scores got = {{0}, {0}};

    t->same = true;
    pthread_barrier_wait(t->start);
    recorded = &t->locks;
    for (int i = 0; i < N_ROUNDS && t->status == ATTNCL_OK && t->same; ++i) {
        t->status = compute(&opened[t->device], &got);
        t->same = memcmp(&got, &alone[t->device], sizeof got) == 0;
    }
    recorded = NULL;
    return NULL;
}

static bool has(const struct locks *locks, const pthread_mutex_t *lock)
{
    for (int i = 0; i < locks->n; ++i)
        if (locks->lock[i] == lock)
            return true;
    return false;
}

TEST(threads_on_two_devices_share_no_lock)
{
    struct thread threads[N_DEVICES] = {{0}};
    struct locks locks = {{NULL}, 0, 0};
    pthread_barrier_t start;
    attncl_graph *g = NULL;

    // Else nothing is recorded: a graph is a child of its context, which counts them.
    recorded = &locks;
    ck_ok(attncl_graph_create(opened[0].context, &g));
    attncl_graph_destroy(g);
    recorded = NULL;
    ck_assert_int_gt(locks.n_taken, 0);
    ck_assert_int_eq(pthread_barrier_init(&start, NULL, N_DEVICES), 0);
    for (int i = 0; i < N_DEVICES; ++i) {
        threads[i].device = i;
        threads[i].start = &start;
    }
    for (int i = 0; i < N_DEVICES; ++i)
        ck_assert_int_eq(pthread_create(&threads[i].id, NULL, run_thread, &threads[i]), 0);
    for (int i = 0; i < N_DEVICES; ++i)
        pthread_join(threads[i].id, NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < N_DEVICES; ++i) {
        const struct thread *t = &threads[i];
        ck_assert_msg(t->status == ATTNCL_OK && t->same, "%s: status %d, %s results",
                      opened[i].name, (int)t->status, t->same ? "the same" : "other");
        ck_assert_int_lt(t->locks.n, MAX_LOCKS);
        for (int k = 0; k < t->locks.n; ++k)
            ck_assert_msg(!has(&threads[1 - i].locks, t->locks.lock[k]),
                          "both threads take lock %d of %s", k, opened[i].name);
    }
}
