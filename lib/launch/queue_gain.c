// SPDX-License-Identifier: MIT
//
// Whether graphs go to several queues by themselves: they may where, at first use on this device with this driver,
// kernels of one work-group take less time on two queues, joined as those of graphs are, than on one.  What launches
// and waits for another queue take is measured beside it.  What was found is kept beside what attncl selftest finds.

#include "launch/queue_gain.h"

#include <math.h>

#include "base/log.h"
#include "launch/command_list.h"
#include "launch/launch.h"

// Kernels in a list: long ones enough to overlap, short ones so many that the wait for the end counts little.
enum { N_LONG = 8, N_SHORT = 64, N_RUNS = 5, GROUP = 64, LONG_COUNT = GROUP * 2048, SUMS = 3 };

// CHAIN: each kernel waits for the one before it, in the other queue.
enum { LONG_ONE, LONG_TWO, SHORT_ONE, SHORT_TWO, SHORT_CHAIN, N_LISTS };

struct trial {
    attncl_context *ctx;
    struct device_caps caps;
    struct storage in, out[2];
    struct command_list list[N_LISTS];
    int n_lists;
};

static attncl_status append(struct trial *t, struct command_list *list, int queue, int64_t count)
{
    const size_t group = t->caps.max_group < GROUP ? t->caps.max_group : GROUP;
    struct launcher l = {.caps = &t->caps, .command_list = list};
    struct kspec spec = kspec_begin("train/clip.cl", "clip_squares_fwd");

    kspec_set_vw_ls(&spec, 1, group);
    list->queue = queue;
    return attncl__launch(&l, &spec, grid_1d(1, group),
                          ARGS(arg_mem((struct span){&t->in}),
                               arg_mem((struct span){&t->out[queue]}), arg_i64(count),
                               arg_i32(count), arg_i32(1)));
}

static attncl_status record_one(struct trial *t, struct command_list *list, int n, int64_t count)
{
    for (int i = 0; i < n; ++i)
        TRY(append(t, list, 0, count));
    return ATTNCL_OK;
}

// As compile/record.c joins queues.
static attncl_status record_two(struct trial *t, struct command_list *list, int n, int64_t count)
{
    TRY(attncl__command_list_use_queues(list, 2, 2));
    TRY(attncl__command_list_add_sync(list, COMMAND_SIGNAL, 0, 0));
    TRY(attncl__command_list_add_sync(list, COMMAND_WAIT, 1, 0));
    for (int i = 0; i < n; ++i)
        TRY(append(t, list, i % 2, count));
    TRY(attncl__command_list_add_sync(list, COMMAND_SIGNAL, 1, 1));
    return attncl__command_list_add_sync(list, COMMAND_WAIT, 0, 1);
}

static attncl_status record_chain(struct trial *t, struct command_list *list, int n, int64_t count)
{
    TRY(attncl__command_list_use_queues(list, 2, (size_t)n));
    for (int i = 0; i < n; ++i) {
        TRY(append(t, list, i % 2, count));
        TRY(attncl__command_list_add_sync(list, COMMAND_SIGNAL, i % 2, i));
        TRY(attncl__command_list_add_sync(list, COMMAND_WAIT, (i + 1) % 2, i));
    }
    return ATTNCL_OK;
}

static attncl_status trial_open(struct trial *t)
{
    static const float zeros[LONG_COUNT];

    t->in.bytes = sizeof zeros;
    TRY(attncl__buffer_create(t->ctx, t->in.bytes, &t->in.mem));
    TRY(attncl__buffer_write(t->ctx, t->in.mem, 0, zeros, t->in.bytes));
    for (int i = 0; i < 2; ++i) {
        t->out[i].bytes = SUMS * sizeof(float);
        TRY(attncl__buffer_create(t->ctx, t->out[i].bytes, &t->out[i].mem));
    }
    for (; t->n_lists < N_LISTS; ++t->n_lists)
        TRY(attncl__command_list_begin(t->ctx, &t->list[t->n_lists]));
    TRY(record_one(t, &t->list[LONG_ONE], N_LONG, LONG_COUNT));
    TRY(record_two(t, &t->list[LONG_TWO], N_LONG, LONG_COUNT));
    TRY(record_one(t, &t->list[SHORT_ONE], N_SHORT, 1));
    TRY(record_two(t, &t->list[SHORT_TWO], N_SHORT, 1));
    return record_chain(t, &t->list[SHORT_CHAIN], N_SHORT, 1);
}

static void trial_close(struct trial *t)
{
    for (int i = 0; i < t->n_lists; ++i)
        attncl__command_list_free(&t->list[i]);
    for (int i = 0; i < 2; ++i)
        attncl__buffer_release(&t->out[i].mem);
    attncl__buffer_release(&t->in.mem);
}

static void sort(double x[N_RUNS])
{
    for (int i = 1; i < N_RUNS; ++i)
        for (int j = i; j > 0 && x[j] < x[j - 1]; --j) {
            const double larger = x[j - 1];
            x[j - 1] = x[j];
            x[j] = larger;
        }
}

attncl_status attncl__queues_measure(attncl_context *ctx, const struct device_caps *caps,
                                     struct queue_gain *ret)
{
    attncl_status status = ATTNCL_OK;
    struct trial t = {.ctx = ctx, .caps = *caps};
    double seconds[N_LISTS][N_RUNS], first = 0;

    TRY_DONE(trial_open(&t));
    for (int list = 0; list < N_LISTS; ++list) // a driver may compile at a kernel's first launch
        TRY_DONE(attncl__command_list_time(&t.list[list], &first));
    for (int i = 0; i < N_RUNS; ++i) // in turn: what slows the machine down meets all
        for (int list = 0; list < N_LISTS; ++list)
            TRY_DONE(attncl__command_list_time(&t.list[list], &seconds[list][i]));
    for (int list = 0; list < N_LISTS; ++list)
        sort(seconds[list]);
    // The least of one queue against the median of two: other load makes it no gain.
    const double short_one = seconds[SHORT_ONE][0], *const chain = seconds[SHORT_CHAIN];
    *ret = (struct queue_gain){
        .speed = seconds[LONG_ONE][0] / seconds[LONG_TWO][N_RUNS / 2],
        .launch_seconds = short_one / N_SHORT,
        .two_seconds = seconds[SHORT_TWO][N_RUNS / 2] / N_SHORT,
        .wait_seconds = fmax(0, chain[N_RUNS / 2] - short_one) / N_SHORT,
    };
done:
    trial_close(&t);
    return status;
}

bool attncl__queues_may_gain(const attncl_context *ctx, const struct device_caps *caps)
{
    // A queue of the caller's may have properties that one of ours lacks.
    return caps->is_gpu && caps->variant == VARIANT_GPU && caps->flop_per_second > 0 &&
           !ctx->adopted;
}

static void print(const struct queue_gain *gain, char text[FINDING_BYTES])
{
    snprintf(text, FINDING_BYTES,
             "%.2f times as fast on two queues; %.2f us a launch, %.2f on two, %.2f a wait",
             gain->speed, 1e6 * gain->launch_seconds, 1e6 * gain->two_seconds,
             1e6 * gain->wait_seconds);
}

static bool parse(const char *text, struct queue_gain *ret)
{
    struct queue_gain us;

    if (sscanf(text, "%lf times as fast on two queues; %lf us a launch, %lf on two, %lf a wait",
               &us.speed, &us.launch_seconds, &us.two_seconds, &us.wait_seconds) != 4)
        return false;
    *ret = (struct queue_gain){us.speed, 1e-6 * us.launch_seconds, 1e-6 * us.two_seconds,
                               1e-6 * us.wait_seconds};
    return true;
}

// As it was kept, or measured now: the same digits.  speed 0: nothing is known.
static struct queue_gain find(attncl_context *ctx, const struct device_caps *caps)
{
    struct queue_gain gain = {0};
    char text[FINDING_BYTES];

    if (attncl__finding_read(ctx, "queues", text) && parse(text, &gain))
        return gain;
    if (attncl__queues_measure(ctx, caps, &gain) != ATTNCL_OK) {
        attncl__log(ATTNCL_LOG_WARN, "several queues are not used: %s", attncl_last_error());
        return (struct queue_gain){0};
    }
    print(&gain, text);
    // Queues that take times may be slower than those that do not.
    if (!ctx->profile && attncl__finding_keep(ctx, "queues", text) != ATTNCL_OK)
        attncl__log(ATTNCL_LOG_INFO, "queues are measured again in the next context: %s",
                    attncl_last_error());
    return parse(text, &gain) ? gain : (struct queue_gain){0}; // infinite: no clock
}

bool attncl__queues_gain(attncl_context *ctx, const struct device_caps *caps,
                         struct queue_gain *ret)
{
    const double min_speed = 1.3; // 2 is what can be had; less may be noise
    char text[FINDING_BYTES];

    pthread_mutex_lock(&ctx->queue_gain_lock);
    if (!ctx->queue_gain_known) {
        ctx->queue_gain = find(ctx, caps);
        ctx->queue_gain_known = true;
        print(&ctx->queue_gain, text);
        if (ctx->queue_gain.speed > 0)
            attncl__log(ATTNCL_LOG_INFO, "graphs go to %s: kernels of one work-group are %s",
                        ctx->queue_gain.speed >= min_speed ? "several queues where they gain by it"
                                                           : "one queue",
                        text);
    }
    *ret = ctx->queue_gain;
    pthread_mutex_unlock(&ctx->queue_gain_lock);
    return ret->speed >= min_speed;
}
