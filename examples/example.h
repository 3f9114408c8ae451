// SPDX-License-Identifier: MIT
//
// What the layer examples share: weights that are the same numbers on every machine, and one run
// that prints a line.
#ifndef ATTNCL_EXAMPLE_H
#define ATTNCL_EXAMPLE_H

#include <attncl/attncl.h>
#include <stdio.h>
#include <stdlib.h>

// Uniform in [-scale, scale).
static inline void example_fill(float *x, size_t n, float scale, uint32_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        x[i] = ((float)(*seed >> 8) / 8388608.0f - 1.0f) * scale;
    }
}

// A constant [rows, columns], or [columns] when rows is 0, of random numbers; the null value when
// memory is short.
static inline attncl_value example_weight(attncl_graph *g, int64_t rows, int64_t columns,
                                          float scale, uint32_t *seed)
{
    const int64_t dim[] = {rows, columns};
    const size_t n = (size_t)((rows ? rows : 1) * columns);
    float *data = (float *)malloc(n * sizeof *data);
    attncl_value v = ATTNCL_NONE_VALUE;

    if (data) {
        example_fill(data, n, scale, seed);
        v = attncl_graph_constant(g, ATTNCL_F32, rows ? 2 : 1, rows ? dim : dim + 1, data);
    }
    free(data);
    return v;
}

// A layer norm's weight, all ones.
static inline attncl_value example_ones(attncl_graph *g, int64_t n)
{
    float *data = (float *)malloc((size_t)n * sizeof *data);
    attncl_value v = ATTNCL_NONE_VALUE;

    for (int64_t i = 0; data && i < n; i++)
        data[i] = 1.0f;
    if (data)
        v = attncl_graph_constant(g, ATTNCL_F32, 1, &n, data);
    free(data);
    return v;
}

// Runs the compiled graph on random numbers for input "x" of n_in floats, and prints the mean square
// of output "y" of n_out floats.
static inline attncl_status example_step(attncl_graph *g, const char *name, float *x, size_t n_in,
                                         float *y, size_t n_out, uint32_t *seed)
{
    double sum = 0;

    example_fill(x, n_in, 1.0f, seed);
    attncl_status status = attncl_graph_write(g, "x", x, n_in * sizeof *x);
    if (status == ATTNCL_OK)
        status = attncl_graph_run(g);
    if (status == ATTNCL_OK)
        status = attncl_graph_read(g, "y", y, n_out * sizeof *y);
    for (size_t i = 0; i < n_out; i++)
        sum += (double)y[i] * y[i];
    if (status == ATTNCL_OK)
        printf("%s: mean square of y %.6f\n", name, sum / (double)n_out);
    return status;
}

// Compiles the graph, which reports the first mistake of the builders, and runs it once.
static inline attncl_status example_run(attncl_graph *g, const char *name, float *x, size_t n_in,
                                        float *y, size_t n_out, uint32_t *seed)
{
    const attncl_status status = attncl_graph_compile(g, NULL);
    return status == ATTNCL_OK ? example_step(g, name, x, n_in, y, n_out, seed) : status;
}

// Opens a device, lets `work` do its part with a graph, and closes everything.  Returns main's
// result.
static inline int example_main(const char *name, const char *device,
                               attncl_status (*work)(attncl_graph *g))
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *context = NULL;
    attncl_graph *g = NULL;

    options.device = device;
    attncl_status status = attncl_context_create(&options, &context);
    if (status == ATTNCL_OK)
        status = attncl_graph_create(context, &g);
    if (status == ATTNCL_OK)
        status = work(g);
    if (status != ATTNCL_OK)
        fprintf(stderr, "%s: %s\n", name, attncl_last_error());
    attncl_graph_destroy(g);
    if (attncl_context_destroy(context) != ATTNCL_OK) {
        fprintf(stderr, "%s: %s\n", name, attncl_last_error());
        status = ATTNCL_ERR_STATE;
    }
    return status == ATTNCL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
