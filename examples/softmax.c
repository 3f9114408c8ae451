// SPDX-License-Identifier: MIT
//
// The smallest graph: the softmax of two rows, compiled once, written, run and read.

#include <attncl/attncl.h>
#include <stdio.h>

enum { ROWS = 2, WIDTH = 4 };

// A builder's first mistake is reported by attncl_graph_compile().
static attncl_status softmax(attncl_graph *g, const float *x, float *y)
{
    const int64_t dim[] = {ROWS, WIDTH};
    const size_t bytes = sizeof(float) * ROWS * WIDTH;
    attncl_status status;

    attncl_value in = attncl_graph_input(g, "x", ATTNCL_F32, 2, dim);
    attncl_graph_output(g, "y", attncl_softmax(g, in, -1));
    if ((status = attncl_graph_compile(g, NULL)) != ATTNCL_OK ||
        (status = attncl_graph_write(g, "x", x, bytes)) != ATTNCL_OK ||
        (status = attncl_graph_run(g)) != ATTNCL_OK)
        return status;
    return attncl_graph_read(g, "y", y, bytes);
}

int main(void)
{
    const float x[ROWS * WIDTH] = {0, 1, 2, 3, 3, 2, 1, 0};
    float y[ROWS * WIDTH];
    attncl_context *context = NULL;
    attncl_graph *g = NULL;
    attncl_status status = attncl_context_create(NULL, &context);

    if (status == ATTNCL_OK)
        status = attncl_graph_create(context, &g);
    if (status == ATTNCL_OK)
        status = softmax(g, x, y);
    if (status == ATTNCL_OK)
        printf("%.4f %.4f %.4f %.4f\n", y[0], y[1], y[2], y[3]);
    else
        fprintf(stderr, "softmax: %s\n", attncl_last_error());
    attncl_graph_destroy(g);
    attncl_context_destroy(context);
    return status != ATTNCL_OK;
}
