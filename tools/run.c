// SPDX-License-Identifier: MIT
//
// attncl run: a model file on the arrays of an input file.

#include <stdlib.h>

#include "picture.h"

enum { VAL_DEVICE = 'd', VAL_PROFILE = 'p', VAL_TRACE = 't', VAL_HEATMAP = 'm' };
enum { PROFILED_RUNS = 10 }; // the fastest of them is shown

static const struct option options[] = {{"device", required_argument, NULL, VAL_DEVICE},
                                        {"profile", no_argument, NULL, VAL_PROFILE},
                                        {"trace", required_argument, NULL, VAL_TRACE},
                                        {"heatmap", required_argument, NULL, VAL_HEATMAP},
                                        {NULL, 0, NULL, 0}};

static const struct command command = {
    .name = "run",
    .usage = "usage: attncl run MODEL INPUT OUTPUT [options]\n"
             "\n"
             "Runs the model file on the arrays of INPUT and writes the architecture's outputs to "
             "OUTPUT; all three\n"
             "are safetensors files.  On failure OUTPUT is left as it was.\n"
             "\n"
             "  -d, --device D    gpu, cpu, PLATFORM:DEVICE, or part of a device's name\n"
             "  -p, --profile     run again ten times and print each node's fastest time and the "
             "memory used\n"
             "  -t, --trace FILE  the same, as a Chrome trace (chrome://tracing, Perfetto)\n"
             "  -m, --heatmap DIR PNG heat maps of attention weights among the outputs and of AFT "
             "position biases, a panel\n"
             "                    per batch entry and head; needs gnuplot\n"
             "  -v, --verbose     the library's log on stderr\n"
             "  -h, --help        this text\n",
    .options = options,
    .n_operands = 3,
};

struct request {
    const char *model, *input, *output;
    const char *device, *trace, *heatmap;
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
    attncl_memory_report m;

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

// With the input's arrays and an open model.  The output is written last: when something fails
// there is none.
static int run_model(const struct request *r, const struct session *session,
                     const attncl_safetensors *input)
{
    const bool profiled = r->profile || r->trace;
    attncl_results *results = NULL;
    attncl_graph *g = NULL;
    attncl_model_show_attention(session->model, r->heatmap != NULL);
    int status = session_run(session, input, &results, profiled ? &g : NULL);

    if (status == TOOL_OK && profiled)
        status = profile(r, g);
    if (status == TOOL_OK && r->heatmap)
        status = draw_heatmaps(session, r->model, results, r->heatmap);
    if (status == TOOL_OK)
        status = write_results(r, results);
    attncl_results_destroy(results);
    attncl_graph_destroy(g);
    return status;
}

static int run(const struct request *r)
{
    struct session session = {0};
    attncl_safetensors *input = NULL;
    int status;

    if (attncl_safetensors_open(r->input, &input) != ATTNCL_OK)
        return tool_failed();
    status = session_open(r->device, r->profile || r->trace, r->model, &session);
    if (status == TOOL_OK)
        status = session_close(&session, run_model(r, &session, input));
    attncl_safetensors_close(input);
    return status;
}

int command_run(int argc, char **argv)
{
    struct request r = {0};
    int option, status = TOOL_OK;

    while ((option = tool_option(&command, argc, argv, &status)) != OPTION_DONE) {
        switch (option) {
        case VAL_DEVICE:
            r.device = optarg;
            break;
        case VAL_PROFILE:
            r.profile = true;
            break;
        case VAL_TRACE:
            r.trace = optarg;
            break;
        case VAL_HEATMAP:
            r.heatmap = optarg;
            break;
        default:
            return status;
        }
    }
    r.model = argv[optind];
    r.input = argv[optind + 1];
    r.output = argv[optind + 2];
    return run(&r);
}
