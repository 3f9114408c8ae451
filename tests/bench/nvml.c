// SPDX-License-Identifier: MIT
//
// A libnvidia-ml.so.1 of a test: one GPU, at the address that the layer of tests/personas gives, and constant readings.

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **ret);
EXPORT int nvmlDeviceGetClockInfo(void *device, int which, unsigned *ret);
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *ret);
EXPORT int nvmlDeviceGetTemperature(void *device, int which, unsigned *ret);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *ret);

enum { SUCCESS, INVALID_ARGUMENT = 2, NOT_FOUND = 6 };
enum { CLOCK_SM = 1, TEMPERATURE_GPU = 0, REASON_HW_SLOWDOWN = 8 };

static int gpu;

int nvmlInit_v2(void)
{
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **ret)
{
    *ret = &gpu;
    return strcmp(address, "0000:41:00.0") == 0 ? SUCCESS : NOT_FOUND;
}

static int give(void *device, int wanted, unsigned value, unsigned *ret)
{
    *ret = value;
    return device == &gpu && wanted ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *ret)
{
    return give(device, which == CLOCK_SM, 1980, ret);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *ret)
{
    return give(device, 1, 412500, ret); // milliwatts
}

int nvmlDeviceGetTemperature(void *device, int which, unsigned *ret)
{
    return give(device, which == TEMPERATURE_GPU, 66, ret);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *ret)
{
    *ret = REASON_HW_SLOWDOWN;
    return device == &gpu ? SUCCESS : INVALID_ARGUMENT;
}
