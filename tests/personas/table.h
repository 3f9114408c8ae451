// SPDX-License-Identifier: MIT
// The devices that the layer of layer.c can play: what they answer, and limits they hold to.
#ifndef ATTNCL_TEST_PERSONAS_TABLE_H
#define ATTNCL_TEST_PERSONAS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "device/cl.h"

struct persona {
    const char *name;                             // of --persona
    const char *platform, *vendor, *device;       // texts
    const char *version, *c_version, *extensions; // texts
    bool embedded;                                // EMBEDDED_PROFILE
    size_t max_group, max_items[3];
    // Kernels with at least 4 KiB of local memory keep many values in registers: they run in work-groups of
    // this many work-items at most.
    size_t kernel_group;
    size_t local_bytes;
    bool local_is_global; // CL_DEVICE_LOCAL_MEM_TYPE
    bool build_counts;    // a program with a kernel of more local memory does not build
    cl_ulong global_bytes, max_buffer_bytes;
    cl_uint align_bits;
    size_t parameter_bytes;
    cl_uint constant_args;
    cl_ulong constant_bytes;
    cl_uint units, vector_width, warp;
    cl_uint compute_capability; // of NVIDIA's: 10 * major + minor
    bool unified;
};

extern const struct persona personas[];
extern const size_t n_personas;

// NULL: none of that name.
const struct persona *persona_find(const char *name);

#endif
