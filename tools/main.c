// SPDX-License-Identifier: MIT
//
// attncl: the library's command line.  One file per subcommand.

#include <stdarg.h>
#include <string.h>

#include "tool.h"

static int command_help(int argc, char **argv);

static const char usage_notes[] =
    "\n"
    "Every command accepts --help and --verbose.  attncl help COMMAND prints the help of a\n"
    "command.  ATTNCL_DEVICE selects the device if --device does not.\n"
    "Exit status: 0 success, 1 failure (one line on stderr says why), 2 wrong command line, 130\n"
    "interrupted.\n";

static const struct command {
    const char *name, *operands, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"devices", "", "List the OpenCL devices", command_devices},
    {"inspect", "FILE | --arch NAME", "Describe a model file or an architecture", command_inspect},
    {"convert", "MODEL OUTPUT", "Store a model's matrices in another float type", command_convert},
    {"run", "MODEL INPUT OUTPUT", "Run a model file on the arrays of INPUT", command_run},
    {"eval", "MODEL TEXT", "Measure how well a language model predicts a text", command_eval},
    {"sample", "MODEL", "Generate text with a language model", command_sample},
    {"train", "[CONFIG.json]", "Train a model on a text, on pairs or on tokens", command_train},
    {"plot", "MODEL INPUT FILE | ARRAYS FILE", "Draw an encoding, attention pooling or a matrix",
     command_plot},
    {"tune", "", "Time kernel variants on a device and store the fastest", command_tune},
    {"selftest", "", "Check a device's results against a CPU reference", command_selftest},
    {"report", "OUT.json", "Collect what a bug report or a new device needs", command_report},
    {"help", "[COMMAND]", "Show this text, or a command's options", command_help},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

int tool_error(const char *format, ...)
{
    va_list args;

    progress_clear();
    if (output_interrupted()) // the failure follows from the signal
        return TOOL_FAILED;
    va_start(args, format);
    print_error(ranks_speaker(), format, args);
    va_end(args);
    return TOOL_FAILED;
}

int tool_failed(void)
{
    return tool_error("%s", attncl_last_error());
}

int tool_status(attncl_status status)
{
    return status == ATTNCL_OK ? TOOL_OK : tool_failed();
}

int tool_no_device(void)
{
    attncl_context *ctx = NULL;

    TOOL_TRY(tool_status(attncl_context_create(NULL, &ctx)));
    (void)attncl_context_destroy(ctx);
    return tool_error("a device has appeared only now; run the command again");
}

// The library's errors are printed as warnings: the command goes on, or reports the failure itself.
static void log_line(attncl_log_level level, const char *text, void *user)
{
    static const char *const names[] = {"", "warning", "warning", "info", "debug"};

    (void)user;
    progress_clear();
    fprintf(stderr, "attncl: %s: %s\n", names[level], text);
}

static void log_everything(void)
{
    attncl_log_set(log_line, NULL, ATTNCL_LOG_DEBUG);
}

// `attncl help --options`: commands print their tables instead of working.
static bool listing = false;

int tool_options(const char *command, const char *usage_text, const struct option_row *rows,
                 int argc, char **argv)
{
    const struct command_line line = {.program = "attncl",
                                      .command = command,
                                      .usage = usage_text,
                                      .rows = rows,
                                      .verbose = log_everything};

    if (listing) {
        command_line_list(&line);
        return TOOL_OK;
    }
    return command_line_read(&line, argc, argv);
}

static const struct command *find_command(const char *name)
{
    char names[128] = "";

    for (int i = 0, used = 0; i < N_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
        used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", i ? ", " : "",
                         commands[i].name);
    }
    tool_error("unknown command '%s'; there are %s", name, names);
    return NULL;
}

static void print_usage(void)
{
    char synopsis[64];

    printf("usage: attncl COMMAND [options] ...\n\n");
    for (int i = 0; i < N_COMMANDS; i++) {
        snprintf(synopsis, sizeof synopsis, "%s %s", commands[i].name, commands[i].operands);
        printf("  %-26s %s\n", synopsis, commands[i].summary);
    }
    fputs(usage_notes, stdout);
}

// Prints the input of man pages and completions: a line for each command, then one for each of its options and
// operands: command, option, argument and help, tab-separated.
static int list_options(void)
{
    listing = true;
    for (int i = 0; i < N_COMMANDS; i++) {
        char *argv[] = {(char *)commands[i].name, NULL};
        printf("%s\t\t%s\t%s\n", commands[i].name, commands[i].operands, commands[i].summary);
        commands[i].run(1, argv);
    }
    listing = false;
    return TOOL_OK;
}

static int command_help(int argc, char **argv)
{
    const char *name = NULL;
    bool options = false;
    const struct option_row rows[] = {
        {"options", .kind = OPTION_SWITCH, .value = &options}, // for tools: not in --help
        {"COMMAND", .kind = OPTION_LAST, .value = &name},
        {.name = NULL},
    };
    const int status = tool_options("help", "usage: attncl help [COMMAND]\n", rows, argc, argv);
    const struct command *command = NULL;

    if (status != OPTIONS_OK)
        return status;
    if (options)
        return list_options();
    if (name && !(command = find_command(name)))
        return TOOL_USAGE;
    if (command) {
        char *help[] = {(char *)command->name, "--help", NULL};
        return command->run(2, help);
    }
    print_usage();
    return TOOL_OK;
}

static int run_command(int argc, char **argv)
{
    const bool is_version = strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0;

    if (is_version || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        if (argc > 2) {
            tool_error("%s: unexpected argument: %s", argv[1], argv[2]);
            return TOOL_USAGE;
        }
        if (is_version)
            printf("attncl %s\n", attncl_version());
        else
            print_usage();
        return TOOL_OK;
    }
    const struct command *command = find_command(argv[1]);
    return command ? command->run(argc - 1, argv + 1) : TOOL_USAGE;
}

// For commands that open no device; the others fail on a wrong variable.
static int warn_of_environment(int status)
{
    if (status == TOOL_OK && attncl_environment_check() != ATTNCL_OK)
        log_line(ATTNCL_LOG_WARN, attncl_last_error(), NULL);
    return status;
}

int main(int argc, char **argv)
{
    int status = TOOL_OK;

    output_begin();
    attncl_log_set(log_line, NULL, ATTNCL_LOG_ERROR);
    if (argc < 2)
        print_usage();
    else
        status = run_command(argc, argv);
    return ranks_end(output_end(warn_of_environment(status)));
}
