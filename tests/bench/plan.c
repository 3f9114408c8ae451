// SPDX-License-Identifier: MIT
//
// attncl-bench-plan [MAX_RATIO]: host time for building a chain of nodes and planning it, in ns per
// node, forward and with gradient: CPU time, the fastest of several repeats, with the lengths
// interleaved.  Each begins with an empty heap, so that it pays for its pages like a program's first
// graph.  The memory plan compares each value with every larger one (docs/dev/decisions/0012-lowering-and-fusion.md), so the
// time per node may grow with the chain, and not faster: the exit code is 1 where that of the longest chain is more than
// MAX_RATIO times that of the shortest.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "attncl/attncl.h"

enum { REPEATS = 9, WIDTH = 64 };
static const int lengths[] = {1000, 2000, 4000};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// ns per node; negative: a failure.
static double plan_once(attncl_context *ctx, int n_nodes, int gradient)
{
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    attncl_graph *g = NULL;

#ifdef __GLIBC__
    malloc_trim(0);
#endif
    const double start = now_ns();

    if (attncl_graph_create(ctx, &g) != ATTNCL_OK)
        return -1;
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){WIDTH});
    attncl_value y = x, dy = attncl_graph_input(g, "dy", ATTNCL_F32, 1, (int64_t[]){WIDTH}), dx;
    for (int i = 0; i < n_nodes; ++i)
        y = i % 2 ? attncl_softmax(g, y, -1) : attncl_mul(g, y, x);
    attncl_graph_output(g, "y", y);
    if (gradient) {
        attncl_graph_gradient(g, 1, &y, &dy, 1, &x, &dx);
        attncl_graph_output(g, "dx", dx);
    }
    const attncl_status status = attncl_graph_memory(g, &report);
    attncl_graph_destroy(g);
    return status == ATTNCL_OK ? (now_ns() - start) / n_nodes : -1;
}

int main(int argc, char **argv)
{
    const double max_ratio = argc > 1 ? atof(argv[1]) : 5;
    attncl_context *ctx = NULL;
    int failed = 0;

    if (attncl_context_create(NULL, &ctx) != ATTNCL_OK) {
        fprintf(stderr, "%s\n", attncl_last_error());
        return 77;
    }
    printf("%-16s", "ns per node");
    for (int i = 0; i < N_LENGTHS; ++i)
        printf("%10d", lengths[i]);
    printf("%10s\n", "ratio");
    for (int gradient = 0; gradient < 2; ++gradient) {
        double ns[N_LENGTHS];
        for (int i = 0; i < REPEATS * N_LENGTHS; ++i) {
            const double x = plan_once(ctx, lengths[i % N_LENGTHS], gradient);
            failed |= x < 0;
            if (i < N_LENGTHS || x < ns[i % N_LENGTHS])
                ns[i % N_LENGTHS] = x;
        }
        printf("%-16s", gradient ? "with gradient" : "forward");
        for (int i = 0; i < N_LENGTHS; ++i)
            printf("%10.0f", ns[i]);
        printf("%10.2f\n", ns[N_LENGTHS - 1] / ns[0]);
        failed |= ns[N_LENGTHS - 1] > max_ratio * ns[0];
    }
    attncl_context_destroy(ctx);
    return failed;
}
