// SPDX-License-Identifier: MIT
//
// A device and a model, opened together and closed in the right order.

#include <stdlib.h>

#include "tool.h"

int session_open(const char *device, bool profile, const char *path, struct session *s)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;

    options.device = device;
    options.profile = profile;
    if (attncl_context_create(&options, &s->context) != ATTNCL_OK)
        return tool_failed();
    if (attncl_model_open(s->context, path, &s->model) != ATTNCL_OK)
        return session_close(s, tool_failed());
    return TOOL_OK;
}

int session_run(const struct session *s, const attncl_safetensors *input,
                attncl_results **results_ret, attncl_graph **graph_ret)
{
    const size_t n = attncl_safetensors_count(input);
    attncl_array *arrays = calloc(n + 1, sizeof *arrays);
    int status = TOOL_OK;

    if (!arrays)
        return tool_error("out of memory");
    for (size_t i = 0; i < n; i++)
        arrays[i] = *attncl_safetensors_at(input, i);
    if (attncl_model_run(s->model, arrays, n, results_ret, graph_ret) != ATTNCL_OK)
        status = tool_failed();
    free(arrays);
    return status;
}

int session_close(struct session *s, int status)
{
    attncl_model_close(s->model);
    s->model = NULL;
    if (attncl_context_destroy(s->context) != ATTNCL_OK && status == TOOL_OK)
        status = tool_failed();
    s->context = NULL;
    return status;
}
