// SPDX-License-Identifier: MIT

#include "harness/device.h"

#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "device/context.h"

// The device that a name means, described by its own context.
static attncl_status describe(const char *name, attncl_device_info *info_ret)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *ctx = NULL;
    attncl_status status = ATTNCL_OK;

    options.device = name;
    TRY_DONE(attncl_context_create(&options, &ctx));
    *info_ret = (attncl_device_info)ATTNCL_DEVICE_INFO_INIT;
    TRY_DONE(attncl_context_device(ctx, info_ret));

done:
    attncl_context_destroy(ctx);
    return status;
}

static void add(struct devices *all, const attncl_device_info *info)
{
    for (size_t i = 0; i < all->n; ++i)
        if (all->list[i].info.platform == info->platform &&
            all->list[i].info.device == info->device)
            return;
    if (all->n < MAX_DEVICES)
        all->list[all->n++] = (struct bench_device){.info = *info};
}

static attncl_status list(struct devices *all, const struct options *o)
{
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    size_t n = 0;

    for (size_t i = 0; i < o->n_devices; ++i) {
        TRY(describe(o->devices[i], &info));
        add(all, &info);
    }
    if (o->n_devices > 0)
        return ATTNCL_OK;
    TRY(attncl_device_count(&n));
    REQUIRE(n > 0, ATTNCL_ERR_NO_DEVICE, "there is no OpenCL device");
    for (size_t i = 0; i < n; ++i) {
        TRY(attncl_device_get(i, &info));
        add(all, &info);
    }
    return ATTNCL_OK;
}

static void open_device(struct bench_device *s, const struct options *o)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;

    snprintf(s->address, sizeof s->address, "%d:%d", s->info.platform, s->info.device);
    options.device = s->address;
    options.profile = 1;
    if (!s->info.available) {
        snprintf(s->reason, sizeof s->reason, "the driver says it is not available");
        return;
    }
    if (attncl_context_create(&options, &s->ctx) != ATTNCL_OK) {
        snprintf(s->reason, sizeof s->reason, "%s", attncl_last_error());
        s->failed = true;
        return;
    }
    s->sensors = sensors_open(s->ctx);
    // A device whose loops are cut off may give wrong results at full sizes.
    s->loop_limit = o->sizes_given ? 0 : s->ctx->caps.max_loop_iterations;
    s->sizes = s->loop_limit > 0 ? SIZES_SMALL : o->sizes;
    s->driver_does_not_wait = s->ctx->caps.vendor == VENDOR_MESA_CPU;
}

bool devices_open(struct devices *all, const struct options *o)
{
    if (list(all, o) != ATTNCL_OK) {
        fprintf(stderr, "attncl-bench: %s\n", attncl_last_error());
        return false;
    }
    for (size_t i = 0; i < all->n; ++i)
        open_device(&all->list[i], o);
    return true;
}

size_t devices_close(struct devices *all)
{
    size_t n_failed = 0;

    for (size_t i = 0; i < all->n; ++i) {
        sensors_close(all->list[i].sensors);
        if (attncl_context_destroy(all->list[i].ctx) == ATTNCL_OK)
            continue;
        fprintf(stderr, "attncl-bench: %s\n", attncl_last_error());
        ++n_failed;
    }
    all->n = 0;
    return n_failed;
}
