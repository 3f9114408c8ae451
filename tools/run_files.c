// SPDX-License-Identifier: MIT
//
// The files of a training run.  Every file but the log is replaced as a whole.  The log only grows; a resumed run
// removes the lines after its checkpoint, and a last line that was cut off.

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train.h"

int run_failed_with(const char *path)
{
    return tool_error("%s: %s", path, strerror(errno));
}

int run_write(const struct run_directory *run, const char *name, const char *text)
{
    return output_replace(IN_RUN(run, name), text, strlen(text));
}

// -- the log

// The bytes of the log's lines up to `step`; lines are in order of steps.
static size_t find_log_end(const char *data, size_t bytes, int64_t step)
{
    size_t kept = 0;

    while (kept < bytes) {
        const char *end = memchr(data + kept, '\n', bytes - kept);
        if (!end)
            break;
        json_t *line = json_loadb(data + kept, (size_t)(end - data) - kept, 0, NULL);
        const json_t *at = json_object_get(line, "step");
        const bool keep = json_is_integer(at) && json_integer_value(at) <= step;
        json_decref(line);
        if (!keep)
            break;
        kept = (size_t)(end - data) + 1;
    }
    return kept;
}

int run_cut_log(const char *path, int64_t step)
{
    const int64_t whole[2] = {0, -1};
    size_t bytes;

    if (access(path, F_OK) != 0 && errno == ENOENT)
        return TOOL_OK;
    char *data = read_range(path, whole, &bytes);
    if (!data)
        return TOOL_FAILED;
    const size_t kept = find_log_end(data, bytes, step);
    const int status = kept < bytes ? output_replace(path, data, kept) : TOOL_OK;
    free(data);
    return status;
}

int run_log(struct run_directory *run, json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_DIGITS) : NULL;
    char *whole = text ? malloc(strlen(text) + 2) : NULL;
    int status = TOOL_OK;

    if (whole) {
        sprintf(whole, "%s\n", text);
        if (output_write(run->log, whole, strlen(whole)) != TOOL_OK)
            status = run_failed_with(IN_RUN(run, "log.jsonl"));
    } else {
        status = tool_error("out of memory");
    }
    free(whole);
    free(text);
    json_decref(line);
    return status;
}

int run_log_sync(struct run_directory *run)
{
    return fsync(run->log) == 0 ? TOOL_OK : run_failed_with(IN_RUN(run, "log.jsonl"));
}
