// SPDX-License-Identifier: MIT
//
// attncl run: a model file on the arrays of an input file.

#include <stdlib.h>

#include "picture.h"

enum { PROFILED_RUNS = 10 }; // the fastest of them is shown

static const char usage[] =
    "usage: attncl run MODEL INPUT OUTPUT [options]\n"
    "\n"
    "Runs the model file on the arrays of INPUT and writes the architecture's outputs to\n"
    "OUTPUT; all three are safetensors files.  On failure OUTPUT is left as it was.\n";

struct request {
    struct session_options session;
    const char *output, *trace, *heatmap;
    bool profile;
};

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
        printf("%10.1f %5.1f%% %9zu %8.1f %8.1f  %-20s %s\n", ns / 1e3,
               total ? 100.0 * ns / (double)total : 0.0, row->n_commands,
               ns > 0 ? row->flop / ns : 0.0, ns > 0 ? row->bytes / ns : 0.0, row->op,
               row->scope ? row->scope : "");
    }
    printf("%10.1f total, the fastest of %d runs of each node\n", (double)total / 1e3,
           PROFILED_RUNS);
}

static int print_memory(attncl_graph *g)
{
    attncl_memory_report m = ATTNCL_MEMORY_REPORT_INIT;

    if (attncl_graph_memory(g, &m) != ATTNCL_OK)
        return tool_failed();
    printf("memory in bytes: weights %zu, inputs and outputs %zu, state %zu, arena %zu (%zu "
           "without reuse)\n",
           m.weights_bytes, m.io_bytes, m.state_bytes, m.arena_bytes, m.unshared_bytes);
    return TOOL_OK;
}

static int profile(const struct request *r, attncl_graph *g)
{
    if (!g)
        return tool_error("this architecture is not one graph: it has no profile");
    for (int i = 0; i < PROFILED_RUNS; i++)
        if (attncl_graph_run_profiled(g) != ATTNCL_OK)
            return tool_failed();
    if (r->trace && attncl_graph_write_trace(g, r->trace) != ATTNCL_OK)
        return tool_failed();
    if (!r->profile)
        return TOOL_OK;
    print_profile(g);
    return print_memory(g);
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
    if (attncl_safetensors_write(r->output, arrays, n_written, NULL) != ATTNCL_OK)
        status = tool_failed();
    free(arrays);
    return status;
}

// The output is written last: when something fails there is none.
static int run(struct session *session, const void *request)
{
    const struct request *r = request;
    const bool profiled = r->session.profile;
    attncl_results *results = NULL;
    attncl_graph *g = NULL;
    attncl_model_show_attention(session->model, r->heatmap != NULL);
    int status = session_run_model(session, &results, profiled ? &g : NULL);

    if (status == TOOL_OK && profiled)
        status = profile(r, g);
    if (status == TOOL_OK && r->heatmap)
        status = draw_heatmaps(session, r->session.model, results, r->heatmap);
    if (status == TOOL_OK)
        status = write_results(r, results);
    attncl_results_destroy(results);
    attncl_graph_destroy(g);
    return status;
}

int command_run(int argc, char **argv)
{
    struct request r = {.profile = false};
    const struct option_row rows[] = {
        DEVICE_OPTION(&r.session.device),
        {"profile", 'p', OPTION_SWITCH, &r.profile,
         .help = "run again ten times and print each node's fastest time and the memory used"},
        {"trace", 't', OPTION_TEXT, &r.trace, "FILE",
         .help = "the same, as a Chrome trace (chrome://tracing, Perfetto)"},
        {"heatmap", 'm', OPTION_TEXT, &r.heatmap, "DIR",
         .help = "PNG heat maps of attention weights among the outputs and of AFT position biases, "
                 "a panel\nper batch entry and head; needs gnuplot"},
        {"MODEL", .kind = OPTION_OPERAND, .value = &r.session.model},
        {"INPUT", .kind = OPTION_OPERAND, .value = &r.session.input},
        {"OUTPUT", .kind = OPTION_OPERAND, .value = &r.output},
        {.name = NULL},
    };
    const int status = tool_options("run", usage, rows, argc, argv);

    if (status != OPTIONS_OK)
        return status;
    r.session.profile = r.profile || r.trace;
    return session_use(&r.session, run, &r);
}
