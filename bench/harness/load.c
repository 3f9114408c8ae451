// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // sched_getaffinity

#include "harness/load.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/case.h"

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static double busy_seconds(void)
{
    FILE *file = fopen("/proc/stat", "r");
    char line[512];
    double ticks = 0;
    cpu_set_t mine;

    if (!file)
        return 0;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        CPU_ZERO(&mine);
    while (fgets(line, sizeof line, file)) {
        unsigned long long user, nice, system, idle, wait, irq, softirq, steal;
        unsigned cpu;

        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &user, &nice,
                   &system, &idle, &wait, &irq, &softirq, &steal) == 9 &&
            CPU_ISSET(cpu, &mine))
            ticks += (double)(user + nice + system + irq + softirq + steal);
    }
    fclose(file);
    return ticks / (double)sysconf(_SC_CLK_TCK);
}

struct load load_now(void)
{
    struct rusage used = {0};

    getrusage(RUSAGE_SELF, &used);
    return (struct load){.wall_s = clock_now(),
                         .cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime),
                         .busy_s = busy_seconds(),
                         .switches = used.ru_nivcsw};
}

struct load load_since(const struct load *before)
{
    const struct load now = load_now();

    return (struct load){.wall_s = now.wall_s - before->wall_s,
                         .cpu_s = now.cpu_s - before->cpu_s,
                         .busy_s = now.busy_s - before->busy_s,
                         .switches = now.switches - before->switches};
}
