// SPDX-License-Identifier: MIT
//
// Chooses a device; the public list of devices.

#define _GNU_SOURCE // strcasestr
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "base/struct.h"
#include "device/internal.h"

static bool matches_text(const attncl_device_info *info, const char *wanted)
{
    char platform[5] = "", device[5] = "";
    int end = 0;

    if (!info->available || !wanted || !*wanted)
        return info->available;
    if (strcasecmp(wanted, "gpu") == 0)
        return info->type == ATTNCL_DEVICE_GPU;
    if (strcasecmp(wanted, "cpu") == 0)
        return info->type == ATTNCL_DEVICE_CPU;
    sscanf(wanted, "%4[0-9]:%4[0-9]%n", platform, device, &end);
    if (end > 0 && wanted[end] == '\0')
        return info->platform == atoi(platform) && info->device == atoi(device);
    return strcasestr(info->name, wanted) || strcasestr(info->platform_name, wanted);
}

// Ranks GPUs over CPUs over other hardware over software devices and simulators.
static int rank_type(const attncl_device_info *info)
{
    const enum device_vendor vendor = attncl__quirks_find_vendor(info);

    if (vendor == VENDOR_OCLGRIND)
        return 0;
    if (vendor == VENDOR_MESA_CPU)
        return 1;
    return info->type == ATTNCL_DEVICE_GPU ? 4 : info->type == ATTNCL_DEVICE_CPU ? 3 : 2;
}

// Compares ranks, then estimated peaks, then memory.
static bool is_better(const attncl_device_info *a, const attncl_device_info *b)
{
    const double peak_a = attncl__estimate_peak_flop_per_second(a),
                 peak_b = attncl__estimate_peak_flop_per_second(b);

    if (rank_type(a) != rank_type(b))
        return rank_type(a) > rank_type(b);
    if (peak_a != peak_b)
        return peak_a > peak_b;
    return a->global_memory_bytes > b->global_memory_bytes;
}

static const struct maker {
    const char *name, *pci_id;
    const char *file;    // needed by the driver; NULL: the render node
    const char *library; // OpenCL driver
    enum device_vendor vendor;
} makers[] = {
    {"an NVIDIA", "0x10de", "/dev/nvidiactl", "libnvidia-opencl.so.1", VENDOR_NVIDIA},
    {"an AMD", "0x1002", "/dev/kfd", "libamdocl64.so", VENDOR_AMD},
    {"an Intel", "0x8086", NULL, "libigdrcl.so", VENDOR_INTEL},
};

static bool has_gpu_of(const struct device_list *list, const struct maker *m)
{
    for (size_t i = 0; i < list->n; ++i)
        if (list->entries[i].info.type == ATTNCL_DEVICE_GPU &&
            attncl__quirks_find_vendor(&list->entries[i].info) == m->vendor)
            return true;
    return false;
}

// Finds the file by which OpenCL would reach a GPU of this maker; false if there is no such GPU.
static bool find_gpu(const char *root, const struct maker *m, char path[DEVICE_PATH_BYTES])
{
    enum { FIRST_NODE = 128, N_NODES = 16 };

    for (int i = 0; i < N_NODES; ++i) {
        char id[16] = "";
        snprintf(path, DEVICE_PATH_BYTES, "%s/sys/class/drm/renderD%d/device/vendor", root,
                 FIRST_NODE + i);
        FILE *file = fopen(path, "r");
        const bool is_theirs =
            file && fgets(id, sizeof id, file) && strncmp(id, m->pci_id, strlen(m->pci_id)) == 0;
        if (file)
            fclose(file);
        snprintf(path, DEVICE_PATH_BYTES, "%s/dev/dri/renderD%d", root, FIRST_NODE + i);
        if (is_theirs && !m->file)
            return true;
    }
    snprintf(path, DEVICE_PATH_BYTES, "%s%s", root, m->file ? m->file : "");
    return m->file && access(path, F_OK) == 0;
}

void attncl__list_gpus_without_driver(const char *root, const struct device_list *list,
                                      struct strbuf *ret)
{
    char path[DEVICE_PATH_BYTES];

    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; ++i) {
        if (has_gpu_of(list, &makers[i]) || !find_gpu(root, &makers[i], path))
            continue;
        attncl__strbuf_add(ret, "; %s GPU is there", makers[i].name);
        if (access(path, R_OK | W_OK) != 0)
            attncl__strbuf_add(ret, ", but this user may not open %s", path);
        else
            attncl__strbuf_add(
                ret, " without its OpenCL driver: install it, or name it by OCL_ICD_VENDORS=%s",
                makers[i].library);
    }
}

static attncl_status fail_no_device(const struct device_list *list, const char *wanted)
{
    struct strbuf t = STRBUF_EMPTY;
    const bool wants_gpu = strcasecmp(wanted, "gpu") == 0;

    if (list->n == 0)
        attncl__strbuf_add(&t, "no OpenCL device was found");
    else
        attncl__strbuf_add(&t, "no available device matches \"%s\"; there is ", wanted);
    for (size_t i = 0; i < list->n; ++i) {
        const attncl_device_info *info = &list->entries[i].info;
        attncl__strbuf_add(&t, "%s%d:%d %s (%s)%s", i ? ", " : "", info->platform, info->device,
                           info->name, info->platform_name, info->available ? "" : " unavailable");
    }
    if (*list->empty_platforms)
        attncl__strbuf_add(&t, "; without devices: %s", list->empty_platforms);
    const size_t used = t.used;
    if (list->n == 0 || wants_gpu)
        attncl__list_gpus_without_driver("", list, &t);
    if (list->n == 0 && t.used == used)
        attncl__strbuf_add(&t, "; install a driver, for example pocl-opencl-icd");
    const attncl_status status =
        FAIL(ATTNCL_ERR_NO_DEVICE, "%s", t.failed ? "no memory to list the devices" : t.data);
    attncl__strbuf_free(&t);
    return status;
}

// Logs why a CPU was chosen although the machine has a GPU.
static void log_gpus_without_driver(const struct device_list *list)
{
    struct strbuf t = STRBUF_EMPTY;

    attncl__list_gpus_without_driver("", list, &t);
    if (t.used && !t.failed)
        attncl__log(ATTNCL_LOG_INFO, "no GPU is used%s", t.data);
    attncl__strbuf_free(&t);
}

attncl_status attncl__device_select(const struct device_list *list, const char *wanted,
                                    size_t *index_ret)
{
    size_t best = list->n;

    for (size_t i = 0; i < list->n; ++i)
        if (matches_text(&list->entries[i].info, wanted) &&
            (best == list->n || is_better(&list->entries[i].info, &list->entries[best].info)))
            best = i;
    if (best == list->n)
        return fail_no_device(list, wanted ? wanted : "");
    if (!(wanted && *wanted) && list->entries[best].info.type != ATTNCL_DEVICE_GPU)
        log_gpus_without_driver(list);
    *index_ret = best;
    return ATTNCL_OK;
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

attncl_status attncl__device_get_entry(size_t index, struct device_entry *ret)
{
    attncl_status status = ATTNCL_OK;
    struct device_list list = {0};

    TRY(attncl__devices_list(&list));
    if (index < list.n)
        *ret = list.entries[index];
    else
        status =
            FAIL(ATTNCL_ERR_NO_DEVICE, "device %zu was asked for, there are %zu", index, list.n);
    attncl__devices_free(&list);
    return status;
}

attncl_status attncl_device_get(size_t index, attncl_device_info *info_ret)
{
    struct device_entry entry;

    REQUIRE(info_ret, ATTNCL_ERR_ARGUMENT, "info_ret is NULL");
    TRY(attncl__device_get_entry(index, &entry));
    return STRUCT_WRITE(attncl_device_info, info_ret, &entry.info);
}
