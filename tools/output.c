// SPDX-License-Identifier: MIT
//
// A command's output: JSON on stdout, and files that an interruption does not leave half-written.

#define _XOPEN_SOURCE 700 // sigwait, strndup, realpath
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

enum { SIGNAL_STATUS = 128 }; // plus the signal: a shell's status of a process that a signal ended

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_writing; // under the lock
static atomic_int interrupted;

// Waits for signals, which all other threads block.
static void *take_signals(void *set)
{
    int signal;

    while (sigwait(set, &signal) == 0) {
        pthread_mutex_lock(&lock);
        interrupted = signal;
        if (n_writing == 0)
            _exit(SIGNAL_STATUS + signal);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

// A thread waits for signals.  A handler would not do: a driver's compiler, LLVM, replaces handlers by its own, and a
// compilation that a signal interrupts fails.
void output_begin(void)
{
    static const int signals[] = {SIGINT, SIGTERM};
    static sigset_t set;
    pthread_t thread;

    sigemptyset(&set);
    for (int i = 0; i < 2; i++) {
        struct sigaction old;
        // Ignored signals stay ignored, as in a background job.
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&set, signals[i]);
    }
    // Threads created later inherit the mask.
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
        return;
    if (pthread_create(&thread, NULL, take_signals, &set) != 0)
        pthread_sigmask(SIG_UNBLOCK, &set, NULL); // signals then end the process at once
    else
        pthread_detach(thread);
}

int output_check(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    struct stat there;
    int status = TOOL_OK;

    if (!directory)
        return tool_error("out of memory");
    const bool exists = stat(path, &there) == 0;
    if (exists && !S_ISREG(there.st_mode)) // renaming over a device would replace it
        status = tool_error("%s is %s, expected a file", path,
                            S_ISDIR(there.st_mode) ? "a directory" : "no regular file");
    else if (!exists && errno != ENOENT)
        status = tool_error("%s: %s", path, strerror(errno));
    else if (access(directory, W_OK | X_OK) != 0)
        status = tool_error("%s: %s", path, strerror(errno));
    free(directory);
    return status;
}

bool output_is_same(const char *a, const char *b)
{
    struct stat x, y;

    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int output_check_apart(const char *path, const char *model, const char *input)
{
    TOOL_TRY(output_check(path));
    if (output_is_same(path, model) || (input && output_is_same(path, input)))
        return tool_error("%s: the output would overwrite an input", path);
    return TOOL_OK;
}

void output_file_begin(void)
{
    pthread_mutex_lock(&lock);
    n_writing++;
    pthread_mutex_unlock(&lock);
}

void output_file_end(void)
{
    pthread_mutex_lock(&lock);
    n_writing--;
    if (interrupted && n_writing == 0)
        _exit(SIGNAL_STATUS + interrupted);
    pthread_mutex_unlock(&lock);
}

int output_write(int fd, const char *data, size_t bytes)
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

const char *output_target(const char *path, char target[PATH_MAX])
{
    struct stat there;
    const bool is_link = lstat(path, &there) == 0 && S_ISLNK(there.st_mode);

    return is_link && realpath(path, target) ? target : path;
}

int output_replace(const char *path, const char *data, size_t bytes)
{
    char part[PATH_MAX], file[PATH_MAX];
    const char *const target = output_target(path, file);
    int status = TOOL_OK;

    if (snprintf(part, sizeof part, "%s.part", target) >= (int)sizeof part)
        return tool_error("%s: %s", path, strerror(ENAMETOOLONG));
    output_file_begin();
    const int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || output_write(fd, data, bytes) != TOOL_OK || fsync(fd) != 0)
        status = tool_error("%s: %s", path, strerror(errno));
    if (fd >= 0 && close(fd) != 0 && status == TOOL_OK)
        status = tool_error("%s: %s", path, strerror(errno));
    if (status == TOOL_OK && rename(part, target) != 0)
        status = tool_error("%s: %s", path, strerror(errno));
    if (status != TOOL_OK)
        unlink(part);
    output_file_end();
    return status;
}

int output_flush(void)
{
    static bool reported;
    const bool flushed = fflush(stdout) == 0;
    const int reason = errno;

    if (flushed && !ferror(stdout))
        return TOOL_OK;
    if (reported)
        return TOOL_FAILED;
    reported = true;
    return flushed ? tool_error("cannot write to standard output")
                   : tool_error("cannot write to standard output: %s", strerror(reason));
}

int output_end(int status)
{
    progress_clear();
    const int flushed = output_flush();
    return status == TOOL_OK ? flushed : status;
}

bool output_interrupted(void)
{
    return interrupted != 0;
}

int output_take_interrupt(void)
{
    const int signal = atomic_exchange(&interrupted, 0);

    return signal ? SIGNAL_STATUS + signal : 0;
}

int json_print(json_t *value)
{
    const bool made = value != NULL;

    if (made) {
        json_dumpf(value, stdout, JSON_DIGITS);
        putchar('\n');
    }
    json_decref(value);
    return made ? TOOL_OK : tool_error("out of memory");
}

json_t *json_shape(const attncl_array *array)
{
    json_t *shape = json_array();

    for (int i = 0; i < array->rank; i++)
        json_array_append_new(shape, json_integer(array->dim[i]));
    return shape;
}

void print_shape(const attncl_array *array)
{
    printf("[");
    for (int i = 0; i < array->rank; i++)
        printf("%s%lld", i ? ", " : "", (long long)array->dim[i]);
    printf("]");
}

json_t *json_text(const char *text)
{
    json_t *value = json_string(text);

    return value ? value : json_null();
}

json_t *json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *json_device(const attncl_context *context)
{
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;

    return attncl_context_device(context, &info) == ATTNCL_OK ? json_text(info.name) : json_null();
}
