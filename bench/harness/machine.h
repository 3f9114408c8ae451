// SPDX-License-Identifier: MIT
// What machine this is.
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <jansson.h>

// {"os", "kernel", "cpu", "cores", "threads", "memory_bytes"}; owned by the caller.
json_t *machine_describe(void);
// The environment variables that change figures, as far as they are set; owned by the caller.
json_t *machine_settings(void);

#endif
