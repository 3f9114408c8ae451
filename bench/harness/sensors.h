// SPDX-License-Identifier: MIT
// Clock, power, temperature and throttling of a device while it works, from sysfs and NVML.
#ifndef BENCH_SENSORS_H
#define BENCH_SENSORS_H

#include <jansson.h>

#include "attncl/context.h"

enum sensor { SENSOR_CLOCK, SENSOR_POWER, SENSOR_TEMPERATURE, SENSOR_THROTTLED, N_SENSORS };

// Of several readings.
struct sensor_sums {
    double sum[N_SENSORS]; // MHz, W, degrees Celsius, 1 where throttled
    int n[N_SENSORS];      // 0: not known
};

struct sensors;
// Of the context's device.  NULL: no memory, or no OpenCL device number to find it by.
struct sensors *sensors_open(const attncl_context *ctx);
void sensors_close(struct sensors *s);
// Adds a reading; what is not known is left out.  s NULL: nothing.
void sensors_read(struct sensors *s, struct sensor_sums *sums);

// {"clock_mhz", "power_w", "temperature_c", "throttled"}: means, and whether ever; null: not known.
json_t *sensors_json(const struct sensor_sums *sums);

#endif
