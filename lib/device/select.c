// SPDX-License-Identifier: MIT
//
// Choosing a device, and the public list of them.

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/struct.h"
#include "device/internal.h"

// The parsed form of `wanted`.
struct device_filter {
    attncl_device_type type; // 0: any
    int platform, device;    // -1: any
    const char *part;        // of a name; NULL: any
};

static bool same_word(const char *a, const char *b)
{
    for (; *a && tolower((unsigned char)*a) == tolower((unsigned char)*b); ++a)
        ++b;
    return *a == *b;
}

static bool contains(const char *text, const char *part)
{
    for (; *text; ++text) {
        size_t n = 0;
        while (part[n] && tolower((unsigned char)text[n]) == tolower((unsigned char)part[n]))
            ++n;
        if (!part[n])
            return true;
    }
    return false;
}

// Parses up to four digits at *text and advances it; -1 when there are none or too many.
static int short_number(const char **text)
{
    int x = 0, digits = 0;

    for (; isdigit((unsigned char)**text); ++*text)
        x = ++digits > 4 ? 0 : 10 * x + (**text - '0');
    return digits >= 1 && digits <= 4 ? x : -1;
}

static struct device_filter parse_filter(const char *wanted)
{
    struct device_filter filter = {.platform = -1, .device = -1};

    if (!wanted || !*wanted)
        return filter;
    if (same_word(wanted, "gpu")) {
        filter.type = ATTNCL_DEVICE_GPU;
        return filter;
    }
    if (same_word(wanted, "cpu")) {
        filter.type = ATTNCL_DEVICE_CPU;
        return filter;
    }
    const char *at = wanted;
    const int platform = short_number(&at);
    if (platform >= 0 && *at == ':') {
        ++at;
        const int device = short_number(&at);
        if (device >= 0 && !*at)
            return (struct device_filter){.platform = platform, .device = device};
    }
    filter.part = wanted;
    return filter;
}

static bool matches(const attncl_device_info *info, const struct device_filter *filter)
{
    if (!info->available)
        return false;
    if (filter->platform >= 0)
        return info->platform == filter->platform && info->device == filter->device;
    if (filter->part)
        return contains(info->name, filter->part) || contains(info->platform_name, filter->part);
    return !filter->type || info->type == filter->type;
}

// GPUs, then CPUs, then other hardware, then simulators and software devices; within a kind, by
// compute units times clock.
static uint64_t merit(const attncl_device_info *info)
{
    const enum device_vendor vendor = attncl__quirks_vendor(info);
    const uint64_t speed = (uint64_t)info->compute_units * (info->clock_mhz ? info->clock_mhz : 1);
    uint64_t rank = 2;

    if (vendor == VENDOR_OCLGRIND)
        rank = 0;
    else if (vendor == VENDOR_MESA_CPU)
        rank = 1;
    else if (info->type == ATTNCL_DEVICE_GPU)
        rank = 4;
    else if (info->type == ATTNCL_DEVICE_CPU)
        rank = 3;
    return (rank << 60) + (speed >> 4);
}

attncl_status attncl__device_select(const struct device_list *list, const char *wanted,
                                    size_t *index_ret)
{
    const struct device_filter filter = parse_filter(wanted);
    size_t best = list->n;

    REQUIRE(list->n > 0, ATTNCL_ERR_NO_DEVICE, "no OpenCL device was found");
    for (size_t i = 0; i < list->n; ++i) {
        if (!matches(&list->entries[i].info, &filter))
            continue;
        if (best == list->n || merit(&list->entries[i].info) > merit(&list->entries[best].info))
            best = i;
    }
    if (best < list->n) {
        *index_ret = best;
        return ATTNCL_OK;
    }

    struct strbuf there = STRBUF_EMPTY;
    for (size_t i = 0; i < list->n; ++i) {
        const attncl_device_info *info = &list->entries[i].info;
        attncl__strbuf_add(&there, "%s%d:%d %s (%s)%s", i ? ", " : "", info->platform, info->device,
                           info->name, info->platform_name, info->available ? "" : " unavailable");
    }
    const attncl_status status =
        FAIL(ATTNCL_ERR_NO_DEVICE, "no available device matches \"%s\"; there is %s",
             wanted ? wanted : "", there.failed ? "no memory to list them" : there.data);
    attncl__strbuf_free(&there);
    return status;
}

attncl_status attncl_device_count(size_t *count_ret)
{
    struct device_list list = {0};

    REQUIRE(count_ret, ATTNCL_ERR_ARGUMENT, "count_ret is NULL");
    TRY(attncl__devices_list(&list));
    *count_ret = list.n;
    attncl__devices_free(&list);
    return ATTNCL_OK;
}

attncl_status attncl_device_get(size_t index, attncl_device_info *info_ret)
{
    attncl_status status = ATTNCL_OK;
    struct device_list list = {0};

    REQUIRE(info_ret, ATTNCL_ERR_ARGUMENT, "info_ret is NULL");
    TRY(attncl__devices_list(&list));
    if (index < list.n)
        status = STRUCT_WRITE(attncl_device_info, info_ret, &list.entries[index].info);
    else
        status =
            FAIL(ATTNCL_ERR_NO_DEVICE, "device %zu was asked for, there are %zu", index, list.n);
    attncl__devices_free(&list);
    return status;
}
