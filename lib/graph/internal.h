// SPDX-License-Identifier: MIT
// A graph as its builders see it.
#ifndef ATTNCL_GRAPH_INTERNAL_H
#define ATTNCL_GRAPH_INTERNAL_H

#include "base/name_table.h"
#include "device/context.h"
#include "graph/nodes.h"

enum { MAX_SCOPE_DEPTH = 32 };

struct program; // compile/program.h

struct attncl_graph {
    attncl_context *ctx;
    uint32_t serial;      // in every handle of its values; never 0
    attncl_status status; // first failure of the builders
    char message[512];

    struct value *values; // [0] is the null value
    int n_values, values_capacity;
    struct node *nodes;
    int n_nodes, nodes_capacity;
    struct tensor_desc *descs; // of the node that is being added
    int descs_capacity;
    struct loop *loops; // in the order of their nodes
    int n_loops, loops_capacity;
    bool in_loop;                // the last one has no end yet
    struct node_region *regions; // in the order of their nodes
    int n_regions, regions_capacity;
    int region_first; // of the region that has no end yet
    struct named_value *inputs, *outputs;
    int n_inputs, n_outputs, inputs_capacity, outputs_capacity;
    struct name_table input_names, output_names;

    char *scope; // "encoder.layers.0", "" at the top
    size_t scope_used, scope_capacity;
    size_t scope_marks[MAX_SCOPE_DEPTH]; // scope_used before each push
    int scope_depth;

    bool canaries;           // ATTNCL_GUARD
    struct program *program; // NULL: not compiled
    void (*program_free)(struct program *program);
};

// graph/scope.c: true when the graph takes more nodes (else it has failed, or fails now); keeps the
// last error as the graph's first failure, the scope in front.
bool attncl__graph_building(attncl_graph *g);
attncl_value attncl__graph_keep_failure(attncl_graph *g, attncl_status status);
// graph/values.c: grows an array by at least one element (NULL: no memory); appends a value (0: no
// memory, the graph has failed); the value of a handle (NULL: none).
void *attncl__graph_grow(void *old, int used, int *capacity, size_t each);
int attncl__graph_add_value(attncl_graph *g, struct value v);
const struct value *attncl__graph_value(const attncl_graph *g, attncl_value v);
// graph/nodes.c: a node's signature; descs: of its inputs and outputs.
void attncl__graph_sig(const attncl_graph *g, const struct node *node, struct tensor_desc *descs,
                       struct op_sig *sig);

#endif
