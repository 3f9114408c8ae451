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
    char line[2048];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    // One line, whatever a file's name or a device's answer holds.
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    fflush(stdout);
    fprintf(stderr, "attncl: %s\n", line);
    return TOOL_FAILED;
}

int tool_failed(void)
{
    return tool_error("%s", attncl_last_error());
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
