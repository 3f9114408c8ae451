// SPDX-License-Identifier: MIT
//
// Opens a device and a model together, and closes them in the right order.

#include <stdlib.h>
#include <string.h>

#include "tool.h"

bool take_precision(const char *text, void *precision_ret)
{
    static const char *const names[] = {"float32", "tf32", "bf16"};
    attncl_precision *precision = precision_ret;

    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *precision = (attncl_precision)(ATTNCL_PRECISION_FLOAT32 + i);
            return true;
        }
    tool_error("--precision is \"%s\", it can be float32, tf32 or bf16", text);
    return false;
}

static const struct {
    const char *name;
    attncl_dtype dtype;
} dtypes[] = {{"f16", ATTNCL_F16},
              {"bf16", ATTNCL_BF16},
              {"f32", ATTNCL_F32},
              {"q8", ATTNCL_Q8},
              {"q4", ATTNCL_Q4}};
enum { N_STATE_TYPES = 4, N_TYPES = sizeof dtypes / sizeof dtypes[0] };

static bool find_type(const char *text, size_t n, void *dtype_ret)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, dtypes[i].name) == 0) {
            *(attncl_dtype *)dtype_ret = dtypes[i].dtype;
            return true;
        }
    return false;
}

bool take_state_type(const char *option, const char *text, void *dtype_ret)
{
    if (find_type(text, N_STATE_TYPES, dtype_ret))
        return true;
    tool_error("%s: '%s' is not f16, bf16, f32 or q8", option, text);
    return false;
}

bool take_weight_type(const char *option, const char *text, void *dtype_ret)
{
    if (find_type(text, N_TYPES, dtype_ret))
        return true;
    tool_error("%s: '%s' is not f16, bf16, f32, q8 or q4", option, text);
    return false;
}

static void compile_progress(size_t done, size_t total, void *user)
{
    struct session *s = user;

    progress_building(done, total);
    if (done == total)
        s->compiled = seconds_now();
}

static int open_session(const struct session_options *o, struct session *s)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;

    options.device = o->device;
    options.profile = o->profile;
    options.precision = o->precision;
    options.compile_progress = compile_progress;
    options.user = s;
    s->opened = s->compiled = seconds_now();
    if (o->input)
        TOOL_TRY(tool_status(attncl_safetensors_open(o->input, &s->input)));
    TOOL_TRY(tool_status(attncl_context_create(&options, &s->context)));
    TOOL_TRY(tool_status(attncl_model_open(s->context, o->model, NULL, &s->model)));
    if (o->text_is_numbers && o->input)
        return tokens_take(s, o->input);
    if (!o->text)
        return TOOL_OK;
    if (o->text_is_numbers)
        return tokens_read(s, o->text_name, o->text);
    TOOL_TRY(vocabulary_open(s));
    return vocabulary_encode(s, o->text_name, o->text, o->text_bytes, o->text_offset);
}

int session_use(const struct session_options *options,
                int (*use)(struct session *session, const void *request), const void *request)
{
    struct session s = {0};
    int status = open_session(options, &s);

    if (status == TOOL_OK)
        status = use(&s, request);
    free(s.tokens);
    vocabulary_close(&s.vocabulary);
    attncl_model_destroy(s.model);
    if (attncl_context_destroy(s.context) != ATTNCL_OK && status == TOOL_OK)
        status = tool_failed();
    attncl_safetensors_close(s.input);
    return status;
}

int session_run_model(const struct session *s, attncl_results **results_ret,
                      attncl_graph **graph_ret)
{
    const size_t n = attncl_safetensors_count(s->input);
    attncl_array *arrays = calloc(n + 1, sizeof *arrays);
    int status = TOOL_OK;

    if (!arrays)
        return tool_error("out of memory");
    for (size_t i = 0; i < n; i++)
        arrays[i] = *attncl_safetensors_at(s->input, i);
    if (attncl_model_run(s->model, arrays, n, results_ret, graph_ret) != ATTNCL_OK)
        status = tool_failed();
    free(arrays);
    return status;
}
