// SPDX-License-Identifier: MIT
// Stands in for launching, so that the choice of kernels can be tested on devices that are only
// described.  Programs that use it link with ${attncl_wrap_launch} (cmake/Library.cmake).
#ifndef ATTNCL_TESTS_LAUNCH_MOCK_H
#define ATTNCL_TESTS_LAUNCH_MOCK_H

#include "device/cl.h"
#include "launch/launch.h"

// With TEST_KERNEL_GROUP=N in the environment no kernel runs in work-groups of more than N work-items, as its driver
// says when asked: a device whose kernels take many registers.

struct launch_mock {
    // Stands in for attncl__kernel_fits().  NULL: every kernel does.
    bool (*is_launchable)(const struct kspec *spec, bool no_spills);
    // Stands in for attncl__launch().  Not called for empty grids.
    attncl_status (*launch)(const struct kspec *spec, const struct grid *grid);
};

// From now on; NULL: the device.  Borrowed.
void launch_mock_set(const struct launch_mock *mock);
// Of the last launch that a mock stood in for: bytes of the arguments, with pointers of 64 bits, and of local memory.
size_t launch_mock_argument_bytes(void);
size_t launch_mock_local_bytes(void);

// A GPU of so many lanes in a warp and so many compute units.
struct device_caps launch_mock_gpu(enum device_vendor vendor, unsigned multiple, unsigned units);

// Stands in for the library's calls of clFlush; reset to NULL.
extern cl_int (*launch_mock_flush)(cl_command_queue queue);

// Stands in for the library's calls of CLBlast from now on; reset to all zeros.
struct launch_mock_clblast {
    bool fails;    // for one matrix: no memory
    int wrong_one; // the product whose results are a thousandth too large, from 1
    int n_products;
    size_t last_size; // a probe repeats a product as often as its time allows
};
extern struct launch_mock_clblast launch_mock_clblast;

// No kernel keeps registers in memory, whatever the driver says.
extern bool launch_mock_spills_nothing;

#endif
