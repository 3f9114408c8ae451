// SPDX-License-Identifier: MIT
//
// One phase of attncl report: a process with a time limit, and its output without private names.

#define _GNU_SOURCE // open_memstream, strsignal
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

static const char program_line[] = "attncl: debug: program ";

// -- private names

static bool is_word(char c)
{
    return isalnum((unsigned char)c);
}

// The text with `by` for each whole word `what` that follows the character `before` (0: any); the caller frees it.
static char *replace_text(const char *text, const char *what, const char *by, char before)
{
    const size_t n = strlen(what);
    char *result = NULL;
    size_t bytes;
    FILE *out = open_memstream(&result, &bytes);

    for (const char *at = text; out && *at;) {
        const char last = at == text ? ' ' : at[-1];
        const bool begins = before ? last == before : !is_word(*what) || !is_word(last);
        const bool found = n > 1 && begins && strncmp(at, what, n) == 0 && !is_word(at[n]);

        if (found)
            fputs(by, out);
        else
            fputc(*at, out);
        at += found ? n : 1;
    }
    return out && fclose(out) == 0 ? result : NULL;
}

void report_hide_private(const struct report *r, json_t *value)
{
    const struct {
        const char *what, *by;
        char before;
    } hidden[] = {{strchr(r->path, '/') ? r->path : "", "<OUT>", 0},
                  {r->directory, "<BIN>", 0},
                  {r->home, "<HOME>", 0},
                  {r->user, "<USER>", '/'},
                  {r->host, "<HOST>", 0}};
    const char *key;
    json_t *item;
    size_t i;

    json_array_foreach (value, i, item)
        report_hide_private(r, item);
    json_object_foreach (value, key, item)
        report_hide_private(r, item);
    for (i = 0; json_is_string(value) && i < sizeof hidden / sizeof hidden[0]; i++) {
        // A whole text stays, since a host may be called "gpu".
        if (strcmp(json_string_value(value), hidden[i].what) == 0 && hidden[i].what == r->host)
            continue;
        char *text =
            replace_text(json_string_value(value), hidden[i].what, hidden[i].by, hidden[i].before);
        json_string_set(value, text ? text : "<out of memory>");
        free(text);
    }
}

int report_write(const struct report *r)
{
    char *text = json_dumps(r->root, JSON_INDENT(1) | JSON_DIGITS);
    const int status =
        text ? output_replace(r->path, text, strlen(text)) : tool_error("out of memory");

    free(text);
    return status;
}

// -- the output of a process

// The lines of a file; the log's lines of programs go to `programs` if that is not NULL.
static json_t *read_lines(FILE *file, json_t *programs)
{
    const size_t prefix = sizeof program_line - 1;
    json_t *lines = json_array();
    char *line = NULL;
    size_t capacity = 0;

    rewind(file);
    for (ssize_t n; (n = getline(&line, &capacity, file)) > 0;) {
        line[n - (line[n - 1] == '\n')] = '\0';
        json_t *program = programs && strncmp(line, program_line, prefix) == 0
                              ? json_loads(line + prefix, 0, NULL)
                              : NULL;
        if (program)
            json_array_append_new(programs, program);
        else
            json_array_append_new(lines, json_text(line));
    }
    free(line);
    return lines;
}

static void add_outcome(json_t *phase, int status, bool is_late, double limit)
{
    const char *outcome = is_late               ? "time limit"
                          : WIFSIGNALED(status) ? "crashed"
                          : WEXITSTATUS(status) ? "failed"
                                                : "ok";

    json_object_set_new(phase, "outcome", json_string(outcome));
    if (is_late)
        json_object_set_new(phase, "limit_s", json_real(limit));
    else if (WIFSIGNALED(status))
        json_object_set_new(phase, "signal", json_text(strsignal(WTERMSIG(status))));
    else
        json_object_set_new(phase, "exit_status", json_integer(WEXITSTATUS(status)));
}

// -- a phase

// Called in the new process; does not return.
static void run_program(char *const argv[], pid_t parent, int out, int err)
{
    sigset_t none;

    setpgid(0, 0); // a time limit ends its compilers too
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
        execv(argv[0], argv);
    fprintf(stderr, "attncl: %s cannot be started: %s\n", argv[0], strerror(errno));
    _exit(127);
}

// Waits for the process, at most `limit` seconds, then kills it and returns false.
static bool wait_or_kill(pid_t pid, double limit, int *status_ret)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    const double end = seconds_now() + limit;

    while (waitpid(pid, status_ret, WNOHANG) == 0) {
        if (seconds_now() > end) {
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL); // if it has no group yet
            waitpid(pid, status_ret, 0);
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

static void run_process(const struct report *r, json_t *phase, char *const argv[])
{
    FILE *const out = tmpfile(), *const err = tmpfile();
    const double began = seconds_now();
    const pid_t parent = getpid(), pid = out && err ? fork() : -1;
    int status = 0;

    if (pid == 0)
        run_program(argv, parent, fileno(out), fileno(err));
    if (pid < 0) {
        json_object_set_new(phase, "outcome", json_string("not run"));
        json_object_set_new(phase, "reason", json_text(strerror(errno)));
    } else {
        const bool is_late = !wait_or_kill(pid, r->limit, &status);
        json_t *const programs = json_array();
        add_outcome(phase, status, is_late, r->limit);
        json_object_set_new(phase, "seconds", json_real(seconds_now() - began));
        rewind(out);
        json_t *const result = json_loadf(out, JSON_DISABLE_EOF_CHECK, NULL);
        json_object_set_new(phase, result ? "result" : "output",
                            result ? result : read_lines(out, NULL));
        json_object_set_new(phase, "log", read_lines(err, programs));
        json_object_set_new(phase, "programs", programs);
    }
    if (out)
        fclose(out);
    if (err)
        fclose(err);
}

// The last line that a failed phase wrote to its log, which says why; "" for others.
static const char *find_reason(const json_t *phase)
{
    const json_t *const log = json_object_get(phase, "log");
    const char *const outcome = json_string_value(json_object_get(phase, "outcome"));
    const char *const last = json_string_value(json_array_get(log, json_array_size(log) - 1));

    return last && strcmp(outcome, "failed") == 0 ? last : "";
}

// Replaces the benchmark's table by its own report, even if it did not finish.
static void take_benchmark(json_t *phase, const char *path)
{
    json_t *const result = json_load_file(path, 0, NULL);

    unlink(path);
    if (!result)
        return;
    json_object_set(result, "command", json_object_get(phase, "command"));
    json_object_set_new(phase, "result", result);
    json_object_del(phase, "output");
}

int report_run_phase(const struct report *r, const char *name, char *const argv[],
                     const char *bench)
{
    json_t *const command = json_array(), *const phase = json_object();
    int status;

    for (int i = 0; argv[i]; i++) {
        const char *slash = i ? NULL : strrchr(argv[0], '/');
        json_array_append_new(command, json_text(slash ? slash + 1 : argv[i]));
    }
    json_object_set_new(phase, "name", json_string(name));
    json_object_set_new(phase, "command", command);
    json_object_set_new(phase, "outcome", json_string("running"));
    json_array_append_new(json_object_get(r->root, "phases"), phase);
    status = report_write(r);
    if (status != TOOL_OK)
        return status;
    progress_text(name);
    if (access(argv[0], X_OK) == 0) {
        run_process(r, phase, argv);
    } else {
        json_object_set_new(phase, "outcome", json_string("not run"));
        json_object_set_new(phase, "reason", json_string("it is not beside this program"));
    }
    if (bench)
        take_benchmark(phase, bench);
    report_hide_private(r, phase);
    progress_clear();
    const char *const reason = find_reason(phase);
    printf("%-13s %s%s%s\n", name, json_string_value(json_object_get(phase, "outcome")),
           *reason ? "  " : "", reason);
    return output_flush();
}
