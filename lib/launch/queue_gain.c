// SPDX-License-Identifier: MIT
//
// Whether graphs go to several queues by themselves: they may where, at first use on this device with this driver,
// kernels of one work-group take less time on two queues, joined as those of graphs are, than on one.  What launches
// and waits for another queue take is measured beside it.  What was found is kept beside what attncl selftest finds.

#include "launch/queue_gain.h"

#include <math.h>

#include "base/log.h"
#include "launch/timed_kernels.h"

enum { N_LONG = 8 }; // kernels in a list

// CHAIN: each kernel waits for the one before it, in the other queue.
enum { LONG_ONE, LONG_TWO, SHORT_ONE, SHORT_TWO, SHORT_CHAIN, N_LISTS };

struct trial {
    struct timed_kernels kernels;
    struct command_list list[N_LISTS];
    int n_lists;
};

static attncl_status record_one(struct trial *t, struct command_list *list, int n, int64_t count)
{
    for (int i = 0; i < n; ++i)
        TRY(attncl__timed_kernels_append(&t->kernels, list, 0, count));
    return ATTNCL_OK;
}

// As compile/record.c joins queues.
static attncl_status record_two(struct trial *t, struct command_list *list, int n, int64_t count)
{
    TRY(attncl__command_list_use_queues(list, 2, 2));
    TRY(attncl__command_list_add_sync(list, COMMAND_SIGNAL, 0, 0));
    TRY(attncl__command_list_add_sync(list, COMMAND_WAIT, 1, 0));
    for (int i = 0; i < n; ++i)
        TRY(attncl__timed_kernels_append(&t->kernels, list, i % 2, count));
    TRY(attncl__command_list_add_sync(list, COMMAND_SIGNAL, 1, 1));
    return attncl__command_list_add_sync(list, COMMAND_WAIT, 0, 1);
}

static attncl_status record_chain(struct trial *t, struct command_list *list, int n, int64_t count)
{
    TRY(attncl__command_list_use_queues(list, 2, (size_t)n));
    for (int i = 0; i < n; ++i) {
        TRY(attncl__timed_kernels_append(&t->kernels, list, i % 2, count));
        TRY(attncl__command_list_add_sync(list, COMMAND_SIGNAL, i % 2, i));
        TRY(attncl__command_list_add_sync(list, COMMAND_WAIT, (i + 1) % 2, i));
    }
    return ATTNCL_OK;
}

static attncl_status trial_open(struct trial *t, attncl_context *ctx,
                                const struct device_caps *caps)
{
    TRY(attncl__timed_kernels_open(&t->kernels, ctx, caps));
    for (; t->n_lists < N_LISTS; ++t->n_lists)
        TRY(attncl__command_list_begin(ctx, &t->list[t->n_lists]));
    TRY(record_one(t, &t->list[LONG_ONE], N_LONG, TIMED_LONG_COUNT));
    TRY(record_two(t, &t->list[LONG_TWO], N_LONG, TIMED_LONG_COUNT));
    TRY(record_one(t, &t->list[SHORT_ONE], TIMED_SHORT, 1));
    TRY(record_two(t, &t->list[SHORT_TWO], TIMED_SHORT, 1));
    return record_chain(t, &t->list[SHORT_CHAIN], TIMED_SHORT, 1);
}

static void trial_close(struct trial *t)
{
    for (int i = 0; i < t->n_lists; ++i)
        attncl__command_list_free(&t->list[i]);
    attncl__timed_kernels_close(&t->kernels);
}

attncl_status attncl__queues_measure(attncl_context *ctx, const struct device_caps *caps,
                                     struct queue_gain *ret)
{
    attncl_status status = ATTNCL_OK;
    struct trial t = {.n_lists = 0};
    double seconds[N_LISTS][N_TIMED_RUNS];

    TRY_DONE(trial_open(&t, ctx, caps));
    TRY_DONE(attncl__timed_kernels_time(t.list, N_LISTS, seconds));
    // The least of one queue against the median of two: other load makes it no gain.
    const int median = N_TIMED_RUNS / 2;
    const double short_one = seconds[SHORT_ONE][0], *const chain = seconds[SHORT_CHAIN];
    *ret = (struct queue_gain){
        .speed = seconds[LONG_ONE][0] / seconds[LONG_TWO][median],
        .launch_seconds = short_one / TIMED_SHORT,
        .two_seconds = seconds[SHORT_TWO][median] / TIMED_SHORT,
        .wait_seconds = fmax(0, chain[median] - short_one) / TIMED_SHORT,
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

static attncl_status judge(attncl_context *ctx, const struct device_caps *caps,
                           char found[FINDING_BYTES])
{
    struct queue_gain gain;

    TRY(attncl__queues_measure(ctx, caps, &gain));
    print(&gain, found);
    return ATTNCL_OK;
}

// As it was kept, or measured now: the same digits.  speed 0: nothing is known.
static struct queue_gain find(attncl_context *ctx, const struct device_caps *caps)
{
    static const struct finding_source source = {.what = "queues",
                                                 .otherwise = "several queues are not used",
                                                 .is_timed = true,
                                                 .judge = judge};
    struct queue_gain gain = {0};
    char text[FINDING_BYTES];

    if (attncl__finding_read(ctx, source.what, text) && parse(text, &gain))
        return gain;
    if (!attncl__finding_make(ctx, caps, &source, text) || !parse(text, &gain))
        return (struct queue_gain){0}; // infinite: no clock
    return gain;
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
