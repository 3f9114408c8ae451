// SPDX-License-Identifier: MIT
//
// Several processes started by mpirun: the device of each, and how all of them end.

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

static attncl_ranks *ranks; // null: not joined

// Divides the cores among the processes, since a CPU driver takes all cores in each.  Which variable PoCL reads depends
// on its version.
static void share_cores(void)
{
    const int n = attncl_ranks_local_size(ranks);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char share[32];

    if (n == 1)
        return;
    snprintf(share, sizeof share, "%ld", cores > n ? cores / n : 1);
    setenv("POCL_MAX_PTHREAD_COUNT", share, 0);
    setenv("POCL_CPU_MAX_CU_COUNT", share, 0);
}

int ranks_begin(attncl_ranks **ranks_ret)
{
    if (!ranks && attncl_ranks_open(&ranks) != ATTNCL_OK)
        return tool_failed();
    share_cores();
    *ranks_ret = ranks;
    return TOOL_OK;
}

// Entry i modulo n of the n entries in "D,D,...".
static const char *pick_from_list(const char *list, int i)
{
    static char device[256];
    int n = 1;

    for (const char *at = list; *at; at++)
        n += *at == ',';
    for (i %= n; i > 0; i--)
        list = strchr(list, ',') + 1;
    snprintf(device, sizeof device, "%.*s", (int)strcspn(list, ","), list);
    return device;
}

// Chooses one of the GPUs of the platform with the most; a GPU may appear on two platforms.  NULL if there is only
// one.
static const char *choose_gpu(void)
{
    enum { MAX_GPUS = 64, GPU_TEXT = 24 };
    static char best[MAX_GPUS * GPU_TEXT];
    char list[sizeof best] = "";
    int platform = -1, n = 0, most = 1;
    attncl_device_info d = ATTNCL_DEVICE_INFO_INIT;

    for (size_t i = 0, used = 0; attncl_device_get(i, &d) == ATTNCL_OK; i++) {
        if (d.platform != platform) // devices are in order of platforms
            used = 0, n = 0;
        platform = d.platform;
        if (d.type != ATTNCL_DEVICE_GPU || !d.available || n == MAX_GPUS)
            continue;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%d:%d", n++ ? "," : "",
                                 d.platform, d.device);
        if (n > most) {
            most = n;
            memcpy(best, list, sizeof best);
        }
    }
    return most > 1 ? pick_from_list(best, attncl_ranks_local_rank(ranks)) : NULL;
}

const char *ranks_device(const char *list)
{
    const char *given = getenv("ATTNCL_DEVICE");

    if (list)
        return pick_from_list(list, attncl_ranks_local_rank(ranks));
    if ((given && *given) || attncl_ranks_local_size(ranks) == 1)
        return NULL;
    return choose_gpu();
}

const char *ranks_speaker(void)
{
    static char speaker[32];
    const struct timespec pause = {.tv_nsec = 300000000};

    if (attncl_ranks_size(ranks) == 1)
        return "attncl";
    if (attncl_ranks_rank(ranks) > 0)
        nanosleep(&pause, NULL); // if every rank fails, rank 0 reports it and ends all
    snprintf(speaker, sizeof speaker, "attncl: rank %d", attncl_ranks_rank(ranks));
    return speaker;
}

int ranks_end(int status)
{
    if (status == TOOL_OK &&
        attncl_ranks_barrier(ranks) != ATTNCL_OK) // a barrier has a time limit, a close has none
        status = tool_failed();
    if (status != TOOL_OK && attncl_ranks_size(ranks) > 1) {
        const struct timespec pause = {.tv_nsec = 200000000};
        nanosleep(&pause, NULL); // MPICH's launcher drops a message that it has not forwarded
        attncl_ranks_abort(ranks);
    }
    attncl_ranks_close(ranks);
    ranks = NULL;
    return status;
}
