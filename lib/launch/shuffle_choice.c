// SPDX-License-Identifier: MIT
//
// Whether reductions over a work-group or a row use the shuffles that the device's architecture or an extension has: they do where, at
// first use on this device with this driver, sums of random numbers, a softmax and layer norms of them have the same bits as those by
// local memory.  What was found is kept beside what attncl selftest finds.

#include "launch/shuffle_choice.h"

#include <math.h>

#include "base/log.h"
#include "base/worst_error.h"
#include "launch/command_list.h"
#include "launch/launch.h"

enum { SUMS = 3, BLOCKS = 1000 }; // of clip_total_fwd
enum { MAX_GROUP = 256, ROW_VW = 4, MAX_OUT = ROW_VW * MAX_GROUP };

static const char *const names[] = {"none",
                                    "PTX shfl",
                                    "DPP and ds_bpermute",
                                    "local memory",
                                    "cl_intel_subgroups",
                                    "cl_khr_subgroup_shuffle",
                                    "local memory for DPP and ds_bpermute"};

struct trial {
    attncl_context *ctx;
    struct device_caps caps;
    struct storage in, out;
    char *failed;
};

static attncl_status upload_numbers(struct trial *t)
{
    static const size_t n = SUMS * BLOCKS;
    float numbers[SUMS * BLOCKS];
    uint32_t random = 1;

    for (size_t i = 0; i < n; ++i) {
        random = random * 1664525u + 1013904223u;
        numbers[i] = ldexpf((float)(int32_t)random, (int)(random >> 8 & 15) - 44); // at most 4
    }
    t->in.bytes = sizeof numbers;
    t->out.bytes = MAX_OUT * sizeof(float);
    TRY(attncl__buffer_create(t->ctx, t->in.bytes, &t->in.mem));
    TRY(attncl__buffer_create(t->ctx, t->out.bytes, &t->out.mem));
    return attncl__buffer_write(t->ctx, t->in.mem, 0, numbers, t->in.bytes);
}

// One work-group.  out: what it wrote, of canaries.
static attncl_status run(struct trial *t, const struct kspec *spec, size_t group,
                         const struct arg *args, size_t n_args, float out[MAX_OUT])
{
    attncl_status status = ATTNCL_OK;
    struct command_list list;
    struct launcher l = {.caps = &t->caps, .command_list = &list};

    TRY(attncl__command_list_begin(t->ctx, &list));
    TRY_DONE(attncl__buffer_fill(t->ctx, t->out.mem, CANARY_WORD, 0, t->out.bytes));
    TRY_DONE(attncl__launch(&l, spec, grid_1d(1, group), args, n_args));
    TRY_DONE(attncl__command_list_enqueue(&list, 0, NULL, NULL, NULL));
    TRY_DONE(attncl__buffer_read(t->ctx, t->out.mem, 0, out, t->out.bytes));
done:
    attncl__command_list_free(&list);
    return status;
}

// By local memory and by the candidate: n_out elements are written, with the same bits.
static attncl_status compare(struct trial *t, const struct kspec *spec, size_t group,
                             const struct arg *args, size_t n_args, size_t n_out)
{
    float expected[MAX_OUT], found[MAX_OUT];
    struct worst_error worst = {0};
    char text[WORST_ERROR_BYTES];

    t->caps.shuffle = SHUFFLE_NONE;
    TRY(run(t, spec, group, args, n_args, expected));
    t->caps.shuffle = t->caps.shuffle_candidate;
    const attncl_status status = run(t, spec, group, args, n_args, found);
    if (status == ATTNCL_ERR_COMPILE) {
        snprintf(t->failed, FINDING_BYTES, "its kernel does not build");
        return ATTNCL_OK;
    }
    if (status != ATTNCL_OK)
        return status;
    attncl__worst_error_add_floats(&worst, found, expected, (int64_t)n_out);
    if (!attncl__error_within(&worst, 0) || memcmp(expected, found, sizeof found) != 0)
        snprintf(t->failed, FINDING_BYTES,
                 "%s: sums of %zu work-items differ from local memory's: %s", spec->kernel, group,
                 attncl__worst_error_text(&worst, text));
    return ATTNCL_OK;
}

static attncl_status compare_groups(struct trial *t, size_t group)
{
    struct kspec spec = kspec_begin("train/clip.cl", "clip_total_fwd");

    kspec_set_vw_ls(&spec, 1, group);
    return compare(t, &spec, group,
                   ARGS(arg_mem((struct span){&t->in}), arg_mem((struct span){NULL}),
                        arg_mem((struct span){&t->out}), arg_i32(BLOCKS), arg_i32(0)),
                   SUMS);
}

static struct kspec row_kernel(const char *file, const char *kernel, size_t group, size_t lanes)
{
    struct kspec spec = kspec_begin(file, kernel);

    kspec_set_vw_ls(&spec, ROW_VW, group);
    kspec_int(&spec, "LANES_PER_ROW", (int64_t)lanes);
    kspec_int(&spec, "VECS_PER_LANE", 1);
    return spec;
}

// Sums of one and of two floats.
static attncl_status compare_layer_norms(struct trial *t, size_t group, size_t lanes)
{
    struct kspec spec = row_kernel("norm/layer_norm.cl", "layer_norm_rows_fwd", group, lanes);
    const struct arg in = arg_mem((struct span){&t->in});
    const int64_t rows = (int64_t)(group / lanes), width = ROW_VW * (int64_t)lanes;

    kspec_int(&spec, "PIECES", 0);
    return compare(t, &spec, group,
                   ARGS(in, in, in, arg_mem((struct span){&t->out}), arg_i64(0), arg_i64(width),
                        arg_i32(width), arg_i32(1), arg_i64(rows), arg_i32(1), arg_f32(1e-5f)),
                   ROW_VW * group);
}

static attncl_status compare_softmax(struct trial *t, size_t group)
{
    const struct kspec spec = row_kernel("norm/softmax.cl", "softmax_rows_fwd", group, group);
    const int64_t width = ROW_VW * (int64_t)group;

    return compare(t, &spec, group,
                   ARGS(arg_mem((struct span){&t->in}), arg_mem((struct span){&t->out}), arg_i64(0),
                        arg_i64(width), arg_i32(width), arg_i64(1), arg_i32(1)),
                   ROW_VW * group);
}

// Rows of less than a sub-group, of one, and of as many work-items as a work-group has.
static attncl_status compare_rows(struct trial *t, size_t lanes, size_t largest)
{
    if (*t->failed == '\0')
        TRY(compare_layer_norms(t, lanes, lanes / 2));
    if (*t->failed == '\0')
        TRY(compare_layer_norms(t, lanes, lanes));
    if (*t->failed == '\0')
        TRY(compare_layer_norms(t, largest, largest));
    return *t->failed == '\0' ? compare_softmax(t, largest) : ATTNCL_OK;
}

attncl_status attncl__shuffle_judge(attncl_context *ctx, const struct device_caps *caps,
                                    char failed[FINDING_BYTES])
{
    attncl_status status = ATTNCL_OK;
    struct trial t = {.ctx = ctx, .caps = *caps, .failed = failed};
    size_t largest = 0;

    failed[0] = '\0';
    TRY_DONE(upload_numbers(&t));
    for (size_t group = caps->shuffle_lanes;
         *failed == '\0' && group <= MAX_GROUP && group <= caps->max_group; group *= 2) {
        TRY_DONE(compare_groups(&t, group));
        largest = group;
    }
    if (largest)
        TRY_DONE(compare_rows(&t, caps->shuffle_lanes, largest));
done:
    attncl__buffer_release(&t.in.mem);
    attncl__buffer_release(&t.out.mem);
    return status;
}

static bool is_usable(attncl_context *ctx, const struct device_caps *caps)
{
    static const struct finding_source source = {
        .what = "shuffle", .otherwise = "shuffles are not used", .judge = attncl__shuffle_judge};
    const char *name = names[caps->shuffle_candidate];
    char failed[FINDING_BYTES] = "";

    if (!attncl__finding_read(ctx, source.what, failed) &&
        !attncl__finding_make(ctx, caps, &source, failed))
        return false;
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
