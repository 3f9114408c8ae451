// SPDX-License-Identifier: MIT
//
// Whether reductions over a work-group use the shuffles that the device's architecture or an extension has: they do where, at first use
// on this device with this driver, sums of random numbers have the same bits as those by local memory.  What was
// found is kept beside what attncl selftest finds.

#include "launch/shuffle_choice.h"

#include <math.h>

#include "base/log.h"
#include "launch/command_list.h"
#include "launch/launch.h"

enum { SUMS = 3, BLOCKS = 1000, MAX_GROUP = 256 }; // of clip_total_fwd

static const char *const names[] = {
    "none",         "PTX shfl",           "ds_bpermute",
    "local memory", "cl_intel_subgroups", "cl_khr_subgroup_shuffle"};

struct trial {
    attncl_context *ctx;
    struct device_caps caps;
    struct storage in, out;
};

static attncl_status upload_numbers(struct trial *t)
{
    static const size_t n = SUMS * BLOCKS;
    float numbers[SUMS * BLOCKS];
    uint32_t random = 1;

    for (size_t i = 0; i < n; ++i) {
        random = random * 1664525u + 1013904223u;
        numbers[i] = ldexpf((float)(int32_t)random, (int)(random >> 8 & 15) - 40);
    }
    t->in.bytes = sizeof numbers;
    t->out.bytes = SUMS * sizeof(float);
    TRY(attncl__buffer_create(t->ctx, t->in.bytes, &t->in.mem));
    TRY(attncl__buffer_create(t->ctx, t->out.bytes, &t->out.mem));
    return attncl__buffer_write(t->ctx, t->in.mem, 0, numbers, t->in.bytes);
}

static attncl_status sum(struct trial *t, enum lane_shuffle shuffle, size_t group,
                         uint32_t sums[SUMS])
{
    attncl_status status = ATTNCL_OK;
    struct command_list list;
    struct launcher l = {.caps = &t->caps, .command_list = &list};
    struct kspec spec = kspec_begin("train/clip.cl", "clip_total_fwd");

    t->caps.shuffle = shuffle;
    kspec_set_vw_ls(&spec, 1, group);
    TRY(attncl__command_list_begin(t->ctx, &list));
    TRY_DONE(attncl__launch(&l, &spec, grid_1d(1, group),
                            ARGS(arg_mem((struct span){&t->in}), arg_mem((struct span){NULL}),
                                 arg_mem((struct span){&t->out}), arg_i32(BLOCKS), arg_i32(0))));
    TRY_DONE(attncl__command_list_enqueue(&list, 0, NULL, NULL, NULL));
    TRY_DONE(attncl__buffer_read(t->ctx, t->out.mem, 0, sums, SUMS * sizeof sums[0]));
done:
    attncl__command_list_free(&list);
    return status;
}

attncl_status attncl__shuffle_judge(attncl_context *ctx, const struct device_caps *caps,
                                    char failed[FINDING_BYTES])
{
    attncl_status status = ATTNCL_OK;
    struct trial t = {.ctx = ctx, .caps = *caps};
    uint32_t expected[SUMS] = {0}, found[SUMS] = {0};

    failed[0] = '\0';
    TRY_DONE(upload_numbers(&t));
    for (size_t group = caps->shuffle_lanes; group <= MAX_GROUP && group <= caps->max_group;
         group *= 2) {
        TRY_DONE(sum(&t, SHUFFLE_NONE, group, expected));
        status = sum(&t, caps->shuffle_candidate, group, found);
        if (status == ATTNCL_ERR_COMPILE) {
            snprintf(failed, FINDING_BYTES, "its kernel does not build");
            status = ATTNCL_OK;
            goto done;
        }
        TRY_DONE(status);
        if (memcmp(expected, found, sizeof found) != 0) {
            snprintf(failed, FINDING_BYTES, "sums of %zu work-items differ from local memory's",
                     group);
            goto done;
        }
    }
done:
    attncl__buffer_release(&t.in.mem);
    attncl__buffer_release(&t.out.mem);
    return status;
}

static bool is_usable(attncl_context *ctx, const struct device_caps *caps)
{
    const char *name = names[caps->shuffle_candidate];
    char failed[FINDING_BYTES] = "";

    if (!attncl__finding_read(ctx, "shuffle", failed)) {
        if (attncl__shuffle_judge(ctx, caps, failed) != ATTNCL_OK) {
            attncl__log(ATTNCL_LOG_WARN, "%s is not used: %s", name, attncl_last_error());
            return false;
        }
        if (attncl__finding_keep(ctx, "shuffle", failed) != ATTNCL_OK)
            attncl__log(ATTNCL_LOG_INFO, "shuffles are compared again in the next context: %s",
                        attncl_last_error());
    }
    attncl__log(*failed ? ATTNCL_LOG_WARN : ATTNCL_LOG_INFO, "%s is %sused%s%s", name,
                *failed ? "not " : "", *failed ? ": " : "", failed);
    return *failed == '\0';
}

void attncl__choose_shuffle(attncl_context *ctx, struct device_caps *caps)
{
    const char *off = attncl__context_env(ctx, ENV_SHUFFLE);

    caps->shuffle = SHUFFLE_NONE;
    if (caps->shuffle_candidate == SHUFFLE_NONE || caps->variant != VARIANT_GPU ||
        (off && strcmp(off, "off") == 0))
        return;
    pthread_mutex_lock(&ctx->shuffle_lock);
    if (!ctx->shuffle_known) {
        ctx->shuffle_usable = is_usable(ctx, caps);
        ctx->shuffle_known = true;
    }
    if (ctx->shuffle_usable)
        caps->shuffle = caps->shuffle_candidate;
    pthread_mutex_unlock(&ctx->shuffle_lock);
}
