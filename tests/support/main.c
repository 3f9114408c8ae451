// SPDX-License-Identifier: MIT
//
// Every test program's main(), and the device fixture.

#include <stdio.h>

#include "base/alloc.h"
#include "device/context.h"
#include "support/host.h"
#include "support/test.h"

enum { EXIT_SKIPPED = 77 }; // CTest's SKIP_RETURN_CODE

// Host tensors are linked only into the programs that use them.
#pragma weak host_reset

static attncl_context *context;
static size_t heap_before;
static bool leaked;

static const char *const kind_names[N_OBJECT_KINDS] = {
    [OBJECT_CONTEXT] = "contexts", [OBJECT_QUEUE] = "queues",   [OBJECT_BUFFER] = "buffers",
    [OBJECT_PROGRAM] = "programs", [OBJECT_KERNEL] = "kernels", [OBJECT_EVENT] = "events",
};

void device_up(void)
{
    heap_before = attncl__alloc_live();
    const attncl_status status = attncl_context_create(NULL, &context);
    if (status == ATTNCL_ERR_NO_DEVICE) {
        fprintf(stderr, "skipped: %s\n", attncl_last_error());
        exit(EXIT_SKIPPED);
    }
    if (status != ATTNCL_OK) {
        fprintf(stderr, "no context: %s\n", attncl_last_error());
        exit(EXIT_FAILURE);
    }
}

void device_down(void)
{
    struct object_counts counts;

    if (host_reset)
        host_reset();
    if (attncl_context_destroy(context) != ATTNCL_OK) {
        fprintf(stderr, "context not destroyed: %s\n", attncl_last_error());
        leaked = true;
    }
    context = NULL;
    attncl__objects_count(&counts);
    for (int i = 0; i < N_OBJECT_KINDS; ++i)
        if (counts.live[i] != 0) {
            fprintf(stderr, "leak: %ld %s alive\n", counts.live[i], kind_names[i]);
            leaked = true;
        }
    if (attncl__alloc_live() != heap_before) {
        fprintf(stderr, "leak: %zu heap blocks alive, %zu before\n", attncl__alloc_live(),
                heap_before);
        leaked = true;
    }
}

attncl_context *test_context(void)
{
    return context;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());

    srunner_set_fork_status(runner, CK_NOFORK); // OpenCL does not survive fork
    srunner_run_all(runner, CK_ENV);
    const int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed == 0 && !leaked ? EXIT_SUCCESS : EXIT_FAILURE;
}
