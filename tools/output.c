// SPDX-License-Identifier: MIT
//
// What a command leaves: JSON on stdout, and files that an interruption does not leave half-written.

#define _POSIX_C_SOURCE 200809L // sigaction, strndup
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

enum { SIGNAL_STATUS = 128 }; // a shell's status of a process that a signal ended

static volatile sig_atomic_t n_writing, interrupted;

static void on_signal(int signal)
{
    interrupted = signal;
    if (n_writing == 0)
        _exit(SIGNAL_STATUS + signal);
}

void output_begin(void)
{
    static const int signals[] = {SIGINT, SIGTERM};

    for (int i = 0; i < 2; i++) {
        struct sigaction old, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        // What the caller ignores stays so: a job in the background.
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

int output_check(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    struct stat there;
    int status = TOOL_OK;

    if (!directory)
        return tool_error("out of memory");
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        status = tool_error("%s is a directory, expected a file", path);
    else if (access(directory, W_OK | X_OK) != 0)
        status = tool_error("%s: %s", path, strerror(errno));
    free(directory);
    return status;
}

void output_file_begin(void)
{
    n_writing++;
}

void output_file_end(void)
{
    n_writing--;
    if (interrupted && n_writing == 0)
        _exit(SIGNAL_STATUS + interrupted);
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
    const int signal = interrupted;

    interrupted = 0;
    return signal ? SIGNAL_STATUS + signal : 0;
}

int json_print(json_t *value)
{
    const bool made = value != NULL;

    if (made) {
        json_dumpf(value, stdout, JSON_REAL_PRECISION(9));
        putchar('\n');
    }
    json_decref(value);
    return made ? TOOL_OK : tool_error("out of memory");
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
