// SPDX-License-Identifier: MIT
//
// The end of a compiled graph.

#include "compile/program.h"

#include "base/alloc.h"

static void free_bindings(struct io_binding *bindings, int n)
{
    for (int i = 0; bindings && i < n; ++i) {
        struct io_binding *b = &bindings[i];
        if (b->own && b->storage->mem != b->own) { // bound in place
            attncl__buffer_release(&b->storage->mem);
            b->storage->mem = b->own;
        }
        attncl__buffer_release(&b->bound);
        attncl__free(b->copied);
    }
    attncl__free(bindings);
}

void attncl__program_free(struct program *p)
{
    if (!p)
        return;
    attncl__command_list_free(&p->command_list);
    attncl__command_list_free(&p->copy_in);
    attncl__command_list_free(&p->copy_out);
    free_bindings(p->inputs, p->n_inputs);
    free_bindings(p->outputs, p->n_outputs);
    // The last part first: where parts overlap NVIDIA's driver (580) crashes in another order.
    while (p->n_parts > 0)
        attncl__buffer_release(&p->parts[--p->n_parts]->mem);
    for (size_t i = 0; p->storages && i < p->n_storages; ++i)
        attncl__buffer_release(&p->storages[i].mem);
    for (size_t i = 0; i < p->n_padded; ++i)
        attncl__buffer_release(&p->padded[i]);
    attncl__buffer_release(&p->arena);
    attncl__buffer_release(&p->empty);
    if (p->profile)
        p->profile_free(p->profile);
    attncl__free(p->states);
    attncl__free(p->nodes);
    attncl__free(p->storages);
    attncl__free(p->parts);
    attncl__free(p->padded);
    attncl__free(p->guarded);
    attncl__free(p);
}
