// SPDX-License-Identifier: MIT
//
// The directory of a training:
//
//     config.json                       the configuration with all defaults
//     log.jsonl                         a line for each step and each evaluation
//     model.safetensors                 the last model
//     best.safetensors                  the one with the least held-out loss
//     checkpoints/step-N.safetensors    the last ones
//     curve.svg                         the losses
//
// Every file but the log is replaced as a whole.  The log only grows; a resumed training drops the lines
// after its checkpoint, and with them one that was cut off.

#define _DEFAULT_SOURCE // flock
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train.h"

const char *run_path(const struct run_directory *run, const char *name, char ret[RUN_PATH_BYTES])
{
    snprintf(ret, RUN_PATH_BYTES, "%s/%s", run->path, name);
    return ret;
}

const char *run_checkpoint(const struct run_directory *run, int64_t step, char ret[RUN_PATH_BYTES])
{
    snprintf(ret, RUN_PATH_BYTES, "%s/checkpoints/step-%lld.safetensors", run->path,
             (long long)step);
    return ret;
}

static int failed_with(const char *path)
{
    return tool_error("%s: %s", path, strerror(errno));
}

// -- entries of a directory

// N of "step-N.safetensors"; -1: another name.
static int64_t step_of(const char *name)
{
    long long step = -1;
    int used = 0;

    if (sscanf(name, "step-%lld.safetensors%n", &step, &used) != 1 || used == 0 || name[used])
        return -1;
    return step;
}

// Calls `act` with each entry of a directory, which may be missing.
static int for_entries(const char *directory,
                       int (*act)(const char *directory, const char *name, void *user), void *user)
{
    DIR *entries = opendir(directory);
    int status = TOOL_OK;

    if (!entries)
        return errno == ENOENT ? TOOL_OK : failed_with(directory);
    for (struct dirent *entry; status == TOOL_OK && (entry = readdir(entries)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = act(directory, entry->d_name, user);
    closedir(entries);
    return status;
}

static int count_entry(const char *directory, const char *name, void *user)
{
    (void)directory, (void)name;
    ++*(int *)user;
    return TOOL_OK;
}

int run_check(const struct run_directory *run, bool resume)
{
    int n = 0;

    if (strlen(run->path) > RUN_PATH_BYTES / 2)
        return tool_error("%.100s...: the path is longer than %d bytes", run->path,
                          RUN_PATH_BYTES / 2);
    if (for_entries(run->path, count_entry, &n) != TOOL_OK)
        return TOOL_FAILED;
    if (n > 0 && !resume)
        return tool_error("%s exists; --resume continues it, or name another directory", run->path);
    return TOOL_OK;
}

static int find_last(const char *directory, const char *name, void *user)
{
    int64_t *last = user;

    (void)directory;
    if (step_of(name) > *last)
        *last = step_of(name);
    return TOOL_OK;
}

int64_t run_last_step(const struct run_directory *run)
{
    int64_t last = -1;

    return for_entries(IN_RUN(run, "checkpoints"), find_last, &last) == TOOL_OK ? last : -1;
}

// What a writer that was killed left beside its file.
static int remove_part(const char *directory, const char *name, void *user)
{
    static const char *const of_ours[] = {"step-",        "model.safetensors.", "best.safetensors.",
                                          "config.json.", "log.jsonl.",         "curve.svg."};
    char path[RUN_PATH_BYTES + NAME_MAX + 2];

    (void)user;
    if (!strstr(name, ".tmp-") && !strstr(name, ".part"))
        return TOOL_OK;
    for (size_t i = 0; i < sizeof of_ours / sizeof of_ours[0]; i++)
        if (strncmp(name, of_ours[i], strlen(of_ours[i])) == 0) {
            snprintf(path, sizeof path, "%s/%s", directory, name);
            return unlink(path) == 0 ? TOOL_OK : failed_with(path);
        }
    return TOOL_OK;
}

struct oldest {
    int64_t n, step;
};

static int find_oldest(const char *directory, const char *name, void *user)
{
    struct oldest *oldest = user;
    const int64_t step = step_of(name);

    (void)directory;
    if (step < 0)
        return TOOL_OK;
    if (oldest->n++ == 0 || step < oldest->step)
        oldest->step = step;
    return TOOL_OK;
}

int run_prune(const struct run_directory *run, int64_t keep)
{
    for (;;) {
        struct oldest oldest = {0, 0};
        char path[RUN_PATH_BYTES];
        if (for_entries(IN_RUN(run, "checkpoints"), find_oldest, &oldest) != TOOL_OK)
            return TOOL_FAILED;
        if (oldest.n <= keep)
            return TOOL_OK;
        if (unlink(run_checkpoint(run, oldest.step, path)) != 0)
            return failed_with(path);
    }
}

// -- files

static int write_all(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t put = write(fd, data, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return TOOL_FAILED;
        data += put;
        bytes -= (size_t)put;
    }
    return TOOL_OK;
}

// A new file beside the old one, on the disk before it takes its place.
static int replace(const char *path, const char *data, size_t bytes)
{
    char part[RUN_PATH_BYTES + sizeof ".part"];
    int status = TOOL_OK;

    snprintf(part, sizeof part, "%s.part", path);
    output_file_begin();
    const int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || write_all(fd, data, bytes) != TOOL_OK || fsync(fd) != 0)
        status = failed_with(path);
    if (fd >= 0 && close(fd) != 0 && status == TOOL_OK)
        status = failed_with(path);
    if (status == TOOL_OK && rename(part, path) != 0)
        status = failed_with(path);
    if (status != TOOL_OK)
        unlink(part);
    output_file_end();
    return status;
}

int run_write(const struct run_directory *run, const char *name, const char *text)
{
    return replace(IN_RUN(run, name), text, strlen(text));
}

// -- the log

// The bytes of a file, with a zero after them, free() them; NULL: it is not there, or (reported) cannot
// be read.
static char *read_file(const char *path, size_t *bytes_ret, int *status)
{
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    struct stat info;

    *bytes_ret = 0;
    if (!file) {
        if (errno != ENOENT)
            *status = failed_with(path);
        return NULL;
    }
    if (fstat(fileno(file), &info) == 0)
        data = malloc((size_t)info.st_size + 1);
    if (data) {
        *bytes_ret = fread(data, 1, (size_t)info.st_size, file);
        data[*bytes_ret] = '\0';
    } else {
        *status = failed_with(path);
    }
    fclose(file);
    return data;
}

// The length of the lines up to `step`, from the begin on: they stand in order.
static size_t length_to(const char *data, size_t bytes, int64_t step)
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

static int cut_log(const char *path, int64_t step)
{
    int status = TOOL_OK;
    size_t bytes;
    char *data = read_file(path, &bytes, &status);

    if (data) {
        const size_t kept = length_to(data, bytes, step);
        if (kept < bytes)
            status = replace(path, data, kept);
    }
    free(data);
    return status;
}

static int make_directory(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? TOOL_OK : failed_with(path);
}

int run_open(struct run_directory *run, int64_t step)
{
    char log[RUN_PATH_BYTES], checkpoints[RUN_PATH_BYTES];

    run_path(run, "log.jsonl", log);
    run_path(run, "checkpoints", checkpoints);
    run->log = -1;
    if (make_directory(run->path) != TOOL_OK || make_directory(checkpoints) != TOOL_OK)
        return TOOL_FAILED;
    // The lock is on the directory: the log is replaced.
    run->lock = open(run->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock < 0)
        return failed_with(run->path);
    if (flock(run->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return tool_error("%s: another process trains there", run->path);
    if (for_entries(run->path, remove_part, NULL) != TOOL_OK ||
        for_entries(checkpoints, remove_part, NULL) != TOOL_OK || cut_log(log, step) != TOOL_OK)
        return TOOL_FAILED;
    run->log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return run->log >= 0 ? TOOL_OK : failed_with(log);
}

void run_close(struct run_directory *run)
{
    if (run->log >= 0)
        close(run->log);
    if (run->lock >= 0)
        close(run->lock);
    run->log = run->lock = -1;
}

int run_log(struct run_directory *run, json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    char *whole = text ? malloc(strlen(text) + 2) : NULL;
    int status = TOOL_OK;

    if (whole) {
        sprintf(whole, "%s\n", text);
        if (write_all(run->log, whole, strlen(whole)) != TOOL_OK)
            status = failed_with(IN_RUN(run, "log.jsonl"));
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
    return fsync(run->log) == 0 ? TOOL_OK : failed_with(IN_RUN(run, "log.jsonl"));
}
