// SPDX-License-Identifier: MIT
//
// Profiles of a graph: device times of each command, summed by node and recorded for a trace.

#include "attncl/profile.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "exec/exec.h"

// One command of one run.
struct sample {
    uint64_t start_ns, end_ns;
    size_t command;
};

struct profile {
    attncl_profile_row *rows; // one per live node
    int *row_of_node;
    size_t n_rows;
    struct sample *samples; // of the trace; at most MAX_SAMPLES
    size_t n_samples, samples_capacity;
};

enum { MAX_SAMPLES = 1 << 18 };

static void free_profile(struct profile *profile)
{
    if (!profile)
        return;
    attncl__free(profile->rows);
    attncl__free(profile->row_of_node);
    attncl__free(profile->samples);
    attncl__free(profile);
}

static attncl_status make_profile(struct program *program)
{
    attncl_status status = ATTNCL_OK;
    struct profile *profile = attncl__alloc_zero(sizeof *profile);
    REQUIRE(profile, ATTNCL_ERR_NO_MEMORY, "profile");
    profile->rows = attncl__alloc_array((size_t)program->n_nodes, sizeof *profile->rows);
    profile->row_of_node =
        attncl__alloc_array((size_t)program->n_nodes, sizeof *profile->row_of_node);
    if (!profile->rows || !profile->row_of_node)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "profile of %d nodes", program->n_nodes));
    for (int n = 0; n < program->n_nodes; ++n) {
        const struct program_node *node = &program->nodes[n];
        if (!node->op)
            continue;
        profile->row_of_node[n] = (int)profile->n_rows;
        profile->rows[profile->n_rows++] =
            (attncl_profile_row){.struct_size = sizeof *profile->rows,
                                 .op = node->op,
                                 .scope = node->scope,
                                 .min_ns = UINT64_MAX,
                                 .flop = node->flop,
                                 .bytes = node->bytes};
    }
    size_t command = 0, iteration = 0;
    for (size_t i = attncl__command_list_length(&program->command_list); i > 0; --i) {
        const struct command *c = &program->command_list.commands[command];
        if (!attncl__command_is_sync(c))
            ++profile->rows[profile->row_of_node[c->node]].n_commands;
        command = attncl__command_list_next(&program->command_list, command, &iteration);
    }
    program->profile = profile;
    program->profile_free = free_profile;
    profile = NULL;
done:
    free_profile(profile);
    return status;
}

// After MAX_SAMPLES only the rows are continued.
static attncl_status keep_sample(struct profile *profile, struct sample sample)
{
    if (profile->n_samples == MAX_SAMPLES)
        return ATTNCL_OK;
    REQUIRE(GROW_LIST(profile->samples, profile->n_samples, profile->samples_capacity),
            ATTNCL_ERR_NO_MEMORY, "profile of %zu commands", profile->n_samples);
    profile->samples[profile->n_samples++] = sample;
    return ATTNCL_OK;
}

// Adds one run's events to the rows; after a failure none of them.
static attncl_status add_run(struct program *program, const cl_event *events)
{
    struct profile *profile = program->profile;
    attncl_status status = ATTNCL_OK;
    uint64_t *sums = attncl__alloc_array(profile->n_rows, sizeof *sums);
    REQUIRE(sums, ATTNCL_ERR_NO_MEMORY, "profile of %zu rows", profile->n_rows);

    const size_t n_samples = profile->n_samples;
    const struct command_list *list = &program->command_list;
    const size_t n = attncl__command_list_length(list);
    size_t command = 0, iteration = 0;
    for (size_t i = 0; i < n; ++i, command = attncl__command_list_next(list, command, &iteration)) {
        struct sample s = {.command = command};
        if (!events[i])
            continue;
        TRY_DONE(attncl__event_times(events[i], &s.start_ns, &s.end_ns));
        sums[profile->row_of_node[list->commands[command].node]] += s.end_ns - s.start_ns;
        TRY_DONE(keep_sample(profile, s));
    }
    for (size_t i = 0; i < profile->n_rows; ++i) {
        profile->rows[i].total_ns += sums[i];
        profile->rows[i].runs += 1;
        if (sums[i] < profile->rows[i].min_ns)
            profile->rows[i].min_ns = sums[i];
    }
done:
    if (status != ATTNCL_OK)
        profile->n_samples = n_samples;
    attncl__free(sums);
    return status;
}

static attncl_status run_all(struct program *program, cl_event *events)
{
    TRY(attncl__poison_program(program));
    TRY(attncl__command_list_enqueue(&program->inputs.copies, 0, NULL, NULL, NULL));
    TRY(attncl__command_list_enqueue(&program->command_list, 0, NULL, events, NULL));
    TRY(attncl__command_list_enqueue(&program->outputs.copies, 0, NULL, NULL, NULL));
    return attncl__run_note_wait(program, attncl__queue_finish(program->ctx));
}

attncl_status attncl_graph_run_profiled(attncl_graph *graph)
{
    struct program *program = NULL;

    TRY(attncl__get_runnable_program(graph, &program));
    REQUIRE(program->ctx->profile, ATTNCL_ERR_STATE,
            "the context was not created with profile = 1");
    if (!program->profile)
        TRY(make_profile(program));

    attncl_status status = ATTNCL_OK;
    const size_t n = attncl__command_list_length(&program->command_list);
    cl_event *events = attncl__alloc_array(n, sizeof *events);
    REQUIRE(events, ATTNCL_ERR_NO_MEMORY, "events of %zu commands", n);
    TRY_DONE(attncl__run_begin(program));
    TRY_DONE(attncl__run_end(program, run_all(program, events)));
    TRY_DONE(add_run(program, events));
done:
    for (size_t i = 0; i < n; ++i)
        attncl__event_release(&events[i]);
    attncl__free(events);
    return status;
}

const attncl_profile_row *attncl_graph_profile_row(const attncl_graph *graph, size_t i)
{
    const struct program *program = graph ? attncl__graph_program(graph) : NULL;
    return program && program->profile && i < program->profile->n_rows ? &program->profile->rows[i]
                                                                       : NULL;
}

attncl_status attncl_graph_write_trace(const attncl_graph *graph, const char *path)
{
    REQUIRE(graph && path, ATTNCL_ERR_ARGUMENT, "graph or path is NULL");
    const struct program *program = attncl__graph_program(graph);
    REQUIRE(program && program->profile && program->profile->n_samples, ATTNCL_ERR_STATE,
            "no run was profiled");

    attncl_status status = ATTNCL_OK;
    const struct profile *profile = program->profile;
    const uint64_t origin = profile->samples[0].start_ns;
    struct strbuf t = STRBUF_EMPTY;

    attncl__strbuf_add(&t, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (size_t i = 0; i < profile->n_samples; ++i) {
        const struct sample *s = &profile->samples[i];
        const struct command *c = &program->command_list.commands[s->command];
        const uint64_t at = s->start_ns > origin ? s->start_ns - origin : 0;
        const uint64_t took = s->end_ns - s->start_ns;
        attncl__strbuf_add(&t, "%s{\"ph\":\"X\",\"pid\":1,\"tid\":%d,", i ? ",\n" : "",
                           c->queue + 1);
        // Microseconds, from integers so that the locale's decimal point is not used.
        attncl__strbuf_add(&t, "\"ts\":%" PRIu64 ".%03u,", at / 1000, (unsigned)(at % 1000));
        attncl__strbuf_add(&t, "\"dur\":%" PRIu64 ".%03u,", took / 1000, (unsigned)(took % 1000));
        attncl__strbuf_add(&t, "\"name\":");
        attncl__strbuf_add_quoted(&t, c->name);
        attncl__strbuf_add(&t, ",\"cat\":\"%s\",\"args\":{\"scope\":", program->nodes[c->node].op);
        attncl__strbuf_add_quoted(&t, program->nodes[c->node].scope); // the caller's text
        attncl__strbuf_add(&t, "}}");
    }
    attncl__strbuf_add(&t, "\n]}\n");
    if (t.failed)
        TRY_DONE(FAIL(ATTNCL_ERR_NO_MEMORY, "trace of %zu commands", profile->n_samples));
    TRY_DONE(attncl__file_replace(path, &(struct bytes){t.data, t.used}, 1, false));
done:
    attncl__strbuf_free(&t);
    return status;
}
