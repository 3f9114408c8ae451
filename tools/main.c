// SPDX-License-Identifier: MIT
//
// attncl: the library's command line.  One file per subcommand.

#include <stdarg.h>
#include <string.h>

#include "tool.h"

static const char usage[] =
    "usage: attncl COMMAND [options] ...\n"
    "\n"
    "  devices                   the OpenCL devices there are\n"
    "  inspect FILE              what a safetensors file holds\n"
    "  run MODEL INPUT OUTPUT    runs a model file on the arrays of INPUT\n"
    "  eval MODEL TEXT           how well a language model predicts a text\n"
    "  sample MODEL              writes text with a language model\n"
    "  plot MODEL INPUT FILE.png draws a positional encoding or attention pooling\n"
    "  tune                      measures tiles and work-group sizes and keeps what is faster\n"
    "\n"
    "Every command takes --help and --verbose.  ATTNCL_DEVICE names the device where --device does "
    "not.\n"
    "Exit status: 0 done, 1 failed (one line on stderr says why), 2 the command line is wrong.\n";

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"devices", command_devices}, {"inspect", command_inspect}, {"run", command_run},
    {"eval", command_eval},       {"sample", command_sample},   {"plot", command_plot},
    {"tune", command_tune},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

int tool_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_error("attncl", format, args);
    va_end(args);
    return TOOL_FAILED;
}

int tool_failed(void)
{
    return tool_error("%s", attncl_last_error());
}

static void log_line(attncl_log_level level, const char *text, void *user)
{
    static const char *const names[] = {"", "error", "warning", "info", "debug"};

    (void)user;
    fprintf(stderr, "attncl: %s: %s\n", names[level], text);
}

static void log_everything(void)
{
    attncl_log_set(log_line, NULL, ATTNCL_LOG_DEBUG);
}

int tool_options(const char *command, const char *usage_text, const struct option_row *rows,
                 int argc, char **argv)
{
    const struct command_line line = {.program = "attncl",
                                      .command = command,
                                      .usage = usage_text,
                                      .rows = rows,
                                      .verbose = log_everything};

    return command_line_read(&line, argc, argv);
}

static int run_command(int argc, char **argv)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        fputs(usage, stdout);
        return TOOL_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("attncl %s\n", attncl_version());
        return TOOL_OK;
    }
    tool_error("unknown command '%s'; see attncl --help", argv[1]);
    return TOOL_USAGE;
}

int main(int argc, char **argv)
{
    int status;

    if (argc < 2) {
        tool_error("which command?  see attncl --help");
        return TOOL_USAGE;
    }
    status = run_command(argc, argv);
    // What was printed must have arrived: a full disk is a failure.
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == TOOL_OK)
        status = tool_error("cannot write to standard output");
    return status;
}
