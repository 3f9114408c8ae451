// SPDX-License-Identifier: MIT
#ifndef ATTNCL_PROFILE_H
#define ATTNCL_PROFILE_H
#include "attncl/graph.h"
ATTNCL_BEGIN
typedef struct attncl_profile_row {
    size_t struct_size;
    const char *op;
    const char *scope;
    size_t n_commands;
    size_t runs;
    uint64_t total_ns;
    uint64_t min_ns;
    double flop;
    double bytes;
} attncl_profile_row;
ATTNCL_API attncl_status attncl_graph_run_profiled(attncl_graph *g);
ATTNCL_API const attncl_profile_row *attncl_graph_profile_row(const attncl_graph *g, size_t i);
ATTNCL_API attncl_status attncl_graph_write_trace(const attncl_graph *g, const char *path);
ATTNCL_END
#endif
