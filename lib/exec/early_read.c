// SPDX-License-Identifier: MIT
//
// Runs whose outputs are read one by one, so that the last layers' gradients travel to other ranks
// while the first layers' are computed.
//
// The queue is in order, so a read enqueued right after the last writer of its output needs no event to wait for.

#include "exec/exec.h"

attncl_status attncl__early_reads_sort(const attncl_graph *g, struct early_read *reads, size_t n)
{
    struct program *p = NULL;
    struct io_binding *output = NULL;

    TRY(attncl__get_program(g, &p));
    for (size_t i = 0; i < n; ++i)
        TRY(attncl__find_readable_output(p, reads[i].name, reads[i].bytes, &output));
    // Insertion sort: it is stable, and there are a few hundred reads.
    for (size_t i = 1; i < n; ++i) {
        const struct early_read read = reads[i];
        const int last = attncl__find_binding(&p->outputs, read.name)->last_node;
        size_t k = i;
        for (; k > 0 && attncl__find_binding(&p->outputs, reads[k - 1].name)->last_node > last; --k)
            reads[k] = reads[k - 1];
        reads[k] = read;
    }
    return ATTNCL_OK;
}

static void release_events(struct early_read *reads, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        attncl__event_release(&reads[i].done);
}

// Waits until the data is no longer in use; keeps the message of an earlier failure.
static void abandon(struct program *p, struct early_read *reads, size_t n)
{
    attncl__queue_drain(p->ctx);
    release_events(reads, n);
}

static attncl_status enqueue_read(struct program *p, const struct io_binding *output,
                                  struct early_read *read)
{
    return read->bytes ? attncl__buffer_read_queued(p->ctx, output->storage->mem, 0, read->data,
                                                    read->bytes, &read->done)
                       : ATTNCL_OK;
}

static attncl_status enqueue_reads(struct program *p, struct early_read *reads, size_t n)
{
    struct io_binding *output = NULL;
    size_t next = 0;

    for (size_t i = 0; i < n; ++i) {
        TRY(attncl__find_readable_output(p, reads[i].name, reads[i].bytes, &output));
        TRY(attncl__command_list_enqueue_nodes(&p->command_list, &next, output->last_node));
        TRY(enqueue_read(p, output, &reads[i]));
    }
    return attncl__command_list_enqueue_nodes(&p->command_list, &next, p->n_nodes);
}

attncl_status attncl__graph_run_reading(attncl_graph *g, struct early_read *reads, size_t n)
{
    struct program *p = NULL;

    TRY(attncl__get_runnable_program(g, &p));
    REQUIRE(p->inputs.copies.n_commands == 0, ATTNCL_ERR_STATE,
            "an input is bound to a caller's buffer");
    TRY(attncl__run_begin(p));
    attncl_status status = attncl__poison_program(p);
    if (status == ATTNCL_OK)
        status = enqueue_reads(p, reads, n);
    (void)attncl__run_end(p, status);
    if (status != ATTNCL_OK)
        abandon(p, reads, n);
    return status;
}

attncl_status attncl__read_enqueue(attncl_graph *g, struct early_read *read)
{
    struct program *p = NULL;
    struct io_binding *output = NULL;

    TRY(attncl__get_program(g, &p));
    TRY(attncl__find_readable_output(p, read->name, read->bytes, &output));
    return enqueue_read(p, output, read);
}

// The run stays pending, since another may have been enqueued after it.
attncl_status attncl__read_wait(attncl_graph *g, struct early_read *read)
{
    struct program *p = NULL;

    TRY(attncl__get_program(g, &p));
    const attncl_status status = read->done ? attncl__event_wait(p->ctx, read->done) : ATTNCL_OK;
    if (status != ATTNCL_OK)
        attncl__queue_drain(p->ctx);
    release_events(read, 1);
    return status == ATTNCL_OK ? status : attncl__run_note_wait(p, status);
}

attncl_status attncl__early_read_is_done(const struct early_read *read, bool *ret)
{
    *ret = true;
    return read->done ? attncl__event_is_complete(read->done, ret) : ATTNCL_OK;
}

attncl_status attncl__early_reads_end(attncl_graph *g, struct early_read *reads, size_t n)
{
    struct program *p = NULL;

    TRY(attncl__get_program(g, &p));
    const attncl_status status = attncl__run_note_wait(p, attncl__queue_finish(p->ctx));
    release_events(reads, n);
    TRY(status);
    return attncl__run_end(p, attncl__graph_check_canaries(g));
}

void attncl__early_reads_abandon(attncl_graph *g, struct early_read *reads, size_t n)
{
    struct program *p = attncl__graph_program(g);

    abandon(p, reads, n);
    attncl__run_mark_failed(p);
}
