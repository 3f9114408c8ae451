// SPDX-License-Identifier: MIT
//
// The directory of a training run:
//
//     config.json                       the configuration with all defaults
//     log.jsonl                         a line for each step and each evaluation
//     model.safetensors                 the last model
//     best.safetensors                  the model with the lowest held-out loss
//     checkpoints/step-N.safetensors    the last checkpoints
//     curve.svg                         the losses
//
// run_files.c writes the configuration and the log.

#define _DEFAULT_SOURCE // flock
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

// N of "step-N.safetensors"; -1 for another name.
static int64_t parse_step(const char *name)
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
        return errno == ENOENT ? TOOL_OK : run_failed_with(directory);
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

// The lock is on the directory: the log is replaced.
static int lock_directory(struct run_directory *run)
{
    if (run->lock >= 0)
        return TOOL_OK;
    run->lock = open(run->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock < 0)
        return run_failed_with(run->path);
    if (flock(run->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return tool_error("%s: another process is training there", run->path);
    return TOOL_OK;
}

int run_check(struct run_directory *run, bool resume)
{
    int n = 0;

    if (strlen(run->path) > RUN_PATH_BYTES / 2)
        return tool_error("%.100s...: the path is longer than %d bytes", run->path,
                          RUN_PATH_BYTES / 2);
    TOOL_TRY(for_entries(run->path, count_entry, &n));
    if (n > 0 && !resume)
        return tool_error("%s exists; --resume continues it, or name another directory", run->path);
    return n > 0 ? lock_directory(run) : TOOL_OK; // another process may remove its checkpoints
}

static int find_last(const char *directory, const char *name, void *user)
{
    int64_t *last = user;

    (void)directory;
    if (parse_step(name) > *last)
        *last = parse_step(name);
    return TOOL_OK;
}

int64_t run_last_step(const struct run_directory *run)
{
    int64_t last = -1;

    return for_entries(IN_RUN(run, "checkpoints"), find_last, &last) == TOOL_OK ? last : -1;
}

// Removes a partial file that a killed writer left.
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
            return unlink(path) == 0 ? TOOL_OK : run_failed_with(path);
        }
    return TOOL_OK;
}

struct oldest {
    int64_t n, step;
};

static int find_oldest(const char *directory, const char *name, void *user)
{
    struct oldest *oldest = user;
    const int64_t step = parse_step(name);

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
        TOOL_TRY(for_entries(IN_RUN(run, "checkpoints"), find_oldest, &oldest));
        if (oldest.n <= keep)
            return TOOL_OK;
        if (unlink(run_checkpoint(run, oldest.step, path)) != 0)
            return run_failed_with(path);
    }
}

static int make_directory(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? TOOL_OK : run_failed_with(path);
}

int run_open(struct run_directory *run, int64_t step)
{
    char log[RUN_PATH_BYTES], checkpoints[RUN_PATH_BYTES];

    run_path(run, "log.jsonl", log);
    run_path(run, "checkpoints", checkpoints);
    run->log = -1;
    TOOL_TRY(make_directory(run->path));
    TOOL_TRY(make_directory(checkpoints));
    TOOL_TRY(lock_directory(run));
    TOOL_TRY(for_entries(run->path, remove_part, NULL));
    TOOL_TRY(for_entries(checkpoints, remove_part, NULL));
    TOOL_TRY(run_cut_log(log, step));
    run->log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return run->log >= 0 ? TOOL_OK : run_failed_with(log);
}

void run_close(struct run_directory *run)
{
    if (run->log >= 0)
        close(run->log);
    if (run->lock >= 0)
        close(run->lock);
    run->log = run->lock = -1;
}
