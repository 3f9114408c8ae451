// SPDX-License-Identifier: MIT
//
// Whether kernels are recorded in command buffers: on GPUs that have them where, at first use on this device with this
// driver, many short kernels take less time so than enqueued one by one.  What was found is kept beside what attncl
// selftest finds.  CPUs enqueue one by one: what they run is longer than a launch.

#include "launch/command_buffer_choice.h"

#include "base/log.h"
#include "launch/timed_kernels.h"

enum { PLAIN, REPLAYED, N_LISTS };

attncl_status attncl__command_buffers_measure(attncl_context *ctx, const struct device_caps *caps,
                                              struct command_buffer_gain *ret)
{
    attncl_status status = ATTNCL_OK;
    struct timed_kernels kernels = {.ctx = NULL};
    struct command_list list[N_LISTS] = {{.ctx = NULL}};
    double seconds[N_LISTS][N_TIMED_RUNS];

    TRY_DONE(attncl__timed_kernels_open(&kernels, ctx, caps));
    for (int i = 0; i < N_LISTS; ++i) {
        TRY_DONE(attncl__command_list_begin(ctx, &list[i]));
        for (int n = 0; n < TIMED_SHORT; ++n)
            TRY_DONE(attncl__timed_kernels_append(&kernels, &list[i], 0, 1));
    }
    attncl__command_list_find_stretches(&list[REPLAYED]);
    TRY_DONE(attncl__command_list_record(&list[REPLAYED]));
    TRY_DONE(attncl__timed_kernels_time(list, N_LISTS, seconds));
    // The least of one against the median of the other: other load makes it no gain.
    const double plain = seconds[PLAIN][0], replayed = seconds[REPLAYED][N_TIMED_RUNS / 2];
    *ret =
        (struct command_buffer_gain){plain / replayed, plain / TIMED_SHORT, replayed / TIMED_SHORT};
done:
    for (int i = 0; i < N_LISTS; ++i)
        attncl__command_list_free(&list[i]);
    attncl__timed_kernels_close(&kernels);
    return status;
}

static void print(const struct command_buffer_gain *gain, char text[FINDING_BYTES])
{
    snprintf(text, FINDING_BYTES, "%.2f times as fast replayed; %.2f us a launch, %.2f replayed",
             gain->speed, 1e6 * gain->plain_seconds, 1e6 * gain->replayed_seconds);
}

static bool parse(const char *text, struct command_buffer_gain *ret)
{
    struct command_buffer_gain us;

    if (sscanf(text, "%lf times as fast replayed; %lf us a launch, %lf replayed", &us.speed,
               &us.plain_seconds, &us.replayed_seconds) != 3)
        return false;
    *ret =
        (struct command_buffer_gain){us.speed, 1e-6 * us.plain_seconds, 1e-6 * us.replayed_seconds};
    return true;
}

static attncl_status judge(attncl_context *ctx, const struct device_caps *caps,
                           char found[FINDING_BYTES])
{
    struct command_buffer_gain gain;

    TRY(attncl__command_buffers_measure(ctx, caps, &gain));
    print(&gain, found);
    return ATTNCL_OK;
}

// As it was kept, or measured now: the same digits.  speed 0: nothing is known.
static struct command_buffer_gain find_gain(attncl_context *ctx, const struct device_caps *caps)
{
    static const struct finding_source source = {.what = "command buffers",
                                                 .otherwise = "command buffers are not used",
                                                 .is_timed = true,
                                                 .judge = judge};
    struct command_buffer_gain gain = {0};
    char text[FINDING_BYTES];

    if (attncl__finding_read(ctx, source.what, text) && parse(text, &gain))
        return gain;
    if (!attncl__finding_make(ctx, caps, &source, text) || !parse(text, &gain))
        return (struct command_buffer_gain){0}; // infinite: no clock
    return gain;
}

// The context's lock is held.
static bool are_usable(attncl_context *ctx)
{
    struct command_buffers *b = &ctx->command_buffers;
    const char *missing = NULL;

    if (b->known)
        return b->usable;
    b->known = true;
    if (attncl__command_buffers_find(ctx, &b->calls, &missing) != ATTNCL_OK)
        attncl__log(ATTNCL_LOG_WARN, "command buffers are not used: %s", attncl_last_error());
    else if (missing)
        attncl__log(ATTNCL_LOG_INFO, "command buffers are not used: the device lacks %s", missing);
    else
        b->usable = true;
    return b->usable;
}

static bool do_gain(attncl_context *ctx, const struct device_caps *caps)
{
    const double min_speed = 1.2; // less may be noise
    struct command_buffers *b = &ctx->command_buffers;
    char text[FINDING_BYTES];

    if (!b->gain_known) {
        b->gain = find_gain(ctx, caps);
        b->gain_known = true;
        print(&b->gain, text);
        if (b->gain.speed > 0)
            attncl__log(ATTNCL_LOG_INFO,
                        "command buffers are %sused: kernels of one work-group are %s",
                        b->gain.speed >= min_speed ? "" : "not ", text);
    }
    return b->gain.speed >= min_speed;
}

static bool are_used(attncl_context *ctx, const struct device_caps *caps)
{
    const char *asked = attncl__context_env(ctx, ENV_COMMAND_BUFFERS);
    const bool may_gain = caps->is_gpu && caps->variant == VARIANT_GPU;

    if (asked ? strcmp(asked, "on") != 0 : !may_gain)
        return false;
    pthread_mutex_lock(&ctx->command_buffers_lock);
    const bool used = are_usable(ctx) && (asked || do_gain(ctx, caps));
    pthread_mutex_unlock(&ctx->command_buffers_lock);
    return used;
}

void attncl__command_list_replay(struct command_list *list, const struct device_caps *caps)
{
    const size_t n_stretches = attncl__command_list_find_stretches(list);

    if (n_stretches == 0 || !are_used(list->ctx, caps))
        return;
    if (attncl__command_list_record(list) == ATTNCL_OK)
        attncl__log(ATTNCL_LOG_INFO, "%zu command buffers replay kernels of the graph",
                    n_stretches);
    else
        attncl__log(ATTNCL_LOG_INFO, "the graph's kernels are not recorded: %s",
                    attncl_last_error());
}
