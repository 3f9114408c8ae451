// SPDX-License-Identifier: MIT
//
// attncl run: runs a model on the arrays of an input file.

#define _POSIX_C_SOURCE 200809L // isatty
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "picture.h"

enum { PROFILED_RUNS = 10 };

static const char usage[] =
    "usage: attncl run MODEL INPUT OUTPUT [options]\n"
    "\n"
    "Runs a model on the arrays in INPUT and writes its outputs to OUTPUT.  All three are\n"
    "safetensors files.  On failure, OUTPUT does not change.\n";

struct request {
    struct session_options session;
    const char *output, *trace, *heatmap;
    bool profile, json;
};

// Prints a text, or two dots and its end if it is longer than `width`.
static void print_tail(const char *text, size_t width)
{
    const size_t n = strlen(text);

    if (n > width)
        printf("..%s\n", text + n - (width - 2));
    else
        printf("%s\n", text);
}

static void print_profile(const attncl_graph *g)
{
    const attncl_profile_row *row;
    uint64_t total = 0;

    for (size_t i = 0; (row = attncl_graph_profile_row(g, i)) != NULL; i++)
        total += row->min_ns;
    printf("%10s %6s %9s %8s %8s  %-20s %s\n", "us", "share", "commands", "GFLOP/s", "GB/s", "op",
           "scope");
    for (size_t i = 0; (row = attncl_graph_profile_row(g, i)) != NULL; i++) {
        const double ns = (double)row->min_ns;
        const int used =
            printf("%10.1f %5.1f%% %9zu %8.1f %8.1f  %-20s ", ns / 1e3,
                   total ? 100.0 * ns / (double)total : 0.0, row->n_commands,
                   ns > 0 ? row->flop / ns : 0.0, ns > 0 ? row->bytes / ns : 0.0, row->op);
        print_tail(row->scope ? row->scope : "", (size_t)(OUTPUT_COLUMNS - used));
    }
    printf("%10.1f total, the fastest of %d runs of each node\n", (double)total / 1e3,
           PROFILED_RUNS);
}

static json_t *json_profile(const attncl_graph *g)
{
    const attncl_profile_row *row;
    json_t *rows = json_array();

    for (size_t i = 0; (row = attncl_graph_profile_row(g, i)) != NULL; i++)
        json_array_append_new(rows, json_pack("{ss ss sI sI sf sf}", "op", row->op, "scope",
                                              row->scope ? row->scope : "", "commands",
                                              (json_int_t)row->n_commands, "min_ns",
                                              (json_int_t)row->min_ns, "flop", row->flop, "bytes",
                                              row->bytes));
    return rows;
}

static void print_memory(const attncl_memory_report *m)
{
    printf("memory in bytes: weights %zu, inputs and outputs %zu, state %zu, arena %zu\n"
           "(%zu without reuse)\n",
           m->weights_bytes, m->io_bytes, m->state_bytes, m->arena_bytes, m->unshared_bytes);
}

static json_t *json_memory(const attncl_memory_report *m)
{
    return json_pack("{sI sI sI sI sI}", "weights", (json_int_t)m->weights_bytes, "io",
                     (json_int_t)m->io_bytes, "state", (json_int_t)m->state_bytes, "arena",
                     (json_int_t)m->arena_bytes, "unshared", (json_int_t)m->unshared_bytes);
}

// Runs the graph again for its profile.
static int run_profiled(const struct request *r, attncl_graph *g)
{
    int status = TOOL_OK;

    if (!g)
        return tool_error("this architecture runs as several graphs and has no profile");
    for (int i = 0; i < PROFILED_RUNS; i++)
        TOOL_TRY(tool_status(attncl_graph_run_profiled(g)));
    if (r->trace) {
        output_file_begin();
        if (attncl_graph_write_trace(g, r->trace) != ATTNCL_OK)
            status = tool_failed();
        output_file_end();
    }
    return status;
}

static int write_results(const struct request *r, const attncl_results *results)
{
    const size_t n = attncl_results_count(results);
    attncl_array *arrays = calloc(n + 1, sizeof *arrays);
    size_t n_written = 0;
    int status = TOOL_OK;

    if (!arrays)
        return tool_error("out of memory");
    for (size_t i = 0; i < n; i++)
        if (!is_shown_attention(attncl_results_at(results, i)))
            arrays[n_written++] = *attncl_results_at(results, i);
    output_file_begin();
    if (attncl_safetensors_write(r->output, arrays, n_written, NULL) != ATTNCL_OK)
        status = tool_failed();
    output_file_end();
    free(arrays);
    return status;
}

struct times {
    double build_ms, run_ms;
};

static int report_json(const struct request *r, const struct session *session,
                       const attncl_results *results, attncl_graph *g, const struct times *times)
{
    json_t *outputs = json_array(), *report;
    attncl_memory_report memory = ATTNCL_MEMORY_REPORT_INIT;

    for (size_t i = 0; i < attncl_results_count(results); i++) {
        const attncl_array *array = attncl_results_at(results, i);
        if (!is_shown_attention(array))
            json_array_append_new(outputs, json_pack("{ss ss so}", "name", array->name, "dtype",
                                                     attncl_dtype_name(array->dtype), "shape",
                                                     json_shape(array)));
    }
    report = json_pack("{ss so so sf sf}", "file", r->output, "outputs", outputs, "device",
                       json_device(session->context), "build_ms", times->build_ms, "run_ms",
                       times->run_ms);
    if (report && r->profile && attncl_graph_memory(g, &memory) == ATTNCL_OK) {
        json_object_set_new(report, "profile", json_profile(g));
        json_object_set_new(report, "memory", json_memory(&memory));
    }
    return json_print(report);
}

// Prints "output [2, 3], loss [] on DEVICE, 1.2 ms", with at most MOST outputs.
static void report_line(const struct session *session, const attncl_results *results,
                        const struct times *times)
{
    enum { MOST = 3 };
    attncl_device_info device = ATTNCL_DEVICE_INFO_INIT;
    int n = 0;

    attncl_context_device(session->context, &device);
    for (size_t i = 0; i < attncl_results_count(results); i++) {
        const attncl_array *array = attncl_results_at(results, i);
        if (is_shown_attention(array) || n++ >= MOST)
            continue;
        printf("%s%s ", n > 1 ? ", " : "", array->name);
        print_shape(array);
    }
    if (n > MOST)
        printf(" and %d more", n - MOST);
    printf(" on %s, %.1f ms\n", device.name, times->run_ms);
}

static int report(const struct request *r, const struct session *session,
                  const attncl_results *results, attncl_graph *g, const struct times *times)
{
    attncl_memory_report memory = ATTNCL_MEMORY_REPORT_INIT;

    progress_clear();
    if (r->json)
        return report_json(r, session, results, g, times);
    if (r->profile) {
        TOOL_TRY(tool_status(attncl_graph_memory(g, &memory)));
        print_profile(g);
        print_memory(&memory);
    }
    if (isatty(STDOUT_FILENO))
        report_line(session, results, times);
    return TOOL_OK;
}

// The output is written last, so that a failure leaves none.
static int run(struct session *session, const void *request)
{
    const struct request *r = request;
    const bool profiled = r->profile || r->trace;
    attncl_results *results = NULL;
    attncl_graph *g = NULL;

    attncl_model_show_attention(session->model, r->heatmap != NULL);
    int status = session_run_model(session, &results, profiled ? &g : NULL);
    const double ended = seconds_now();
    const struct times times = {.build_ms = 1e3 * (session->compiled - session->opened),
                                .run_ms = 1e3 * (ended - session->compiled)};

    if (status == TOOL_OK && profiled)
        status = run_profiled(r, g);
    if (status == TOOL_OK && r->heatmap)
        status = draw_heatmaps(session, r->session.model, results, r->heatmap);
    if (status == TOOL_OK)
        status = write_results(r, results);
    if (status == TOOL_OK)
        status = report(r, session, results, g, &times);
    attncl_results_destroy(results);
    attncl_graph_destroy(g);
    return status;
}

int command_run(int argc, char **argv)
{
    struct request r = {.profile = false};
    const struct option_row rows[] = {
        DEVICE_OPTION(&r.session.device),
        PRECISION_OPTION(&r.session.precision),
        JSON_OPTION(&r.json,
                    "print output shapes and times as JSON, with --profile also the profile"),
        {"profile", 0, OPTION_SWITCH, &r.profile,
         .help = "run ten more times; print each node's fastest time and the memory use"},
        {"trace", 0, OPTION_TEXT, &r.trace, "FILE",
         .help = "run ten more times; write a Chrome trace (chrome://tracing, Perfetto)"},
        {"heatmap", 0, OPTION_TEXT, &r.heatmap, "DIR",
         .help = "write PNG heat maps of attention weights and AFT position biases to DIR,\n"
                 "a panel for each batch entry and head; needs gnuplot"},
        {"MODEL", .kind = OPTION_OPERAND, .value = &r.session.model},
        {"INPUT", .kind = OPTION_OPERAND, .value = &r.session.input},
        {"OUTPUT", .kind = OPTION_OPERAND, .value = &r.output},
        {.name = NULL},
    };
    const int status = tool_options("run", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    if (output_check_apart(r.output, r.session.model, r.session.input) != TOOL_OK ||
        (r.trace && output_check_apart(r.trace, r.session.model, r.session.input) != TOOL_OK))
        return TOOL_FAILED;
    if (r.trace && output_is_same(r.trace, r.output))
        return tool_error("%s: OUTPUT and the trace would be the same file", r.trace);
    r.session.profile = r.profile || r.trace;
    return session_use(&r.session, run, &r);
}
