// SPDX-License-Identifier: MIT
//
// attncl: the library's command line.  One file per subcommand.

#include <stdarg.h>
#include <string.h>

#include "tool.h"

static int command_help(int argc, char **argv);

static const char usage_notes[] =
    "\n"
    "Every command takes --help and --verbose; attncl help COMMAND prints the same.\n"
    "ATTNCL_DEVICE names the device where --device does not.\n"
    "Exit status: 0 done, 1 failed (one line on stderr says why), 2 the command line is wrong,\n"
    "130 interrupted.\n";

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
    {"plot", "MODEL INPUT FILE.png", "Draw a positional encoding or attention pooling",
     command_plot},
    {"tune", "", "Time kernel variants on a device and store the fastest", command_tune},
    {"selftest", "", "Check a device's results against a CPU reference", command_selftest},
    {"help", "[COMMAND]", "Show this text, or a command's options", command_help},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0], MAX_NAME = 16 };

int tool_error(const char *format, ...)
{
    va_list args;

    progress_clear();
    if (output_interrupted()) // a failure that follows from it
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

static void log_line(attncl_log_level level, const char *text, void *user)
{
    static const char *const names[] = {"", "error", "warning", "info", "debug"};

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

// Insertions, deletions and replacements of letters that turn one word into the other.
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[MAX_NAME + 1];
    const size_t n = strlen(b);

    if (n > MAX_NAME || strlen(a) > MAX_NAME)
        return MAX_NAME;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            const size_t shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[n];
}

static const struct command *find_command(const char *name)
{
    const struct command *nearest = commands;
    char names[128] = "";

    for (int i = 0, used = 0; i < N_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
        used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", i ? ", " : "",
                         commands[i].name);
        if (edit_distance(name, commands[i].name) < edit_distance(name, nearest->name))
            nearest = &commands[i];
    }
    const bool is_near = edit_distance(name, nearest->name) <= 2;
    tool_error("unknown command '%s'%s%s; there are %s", name, is_near ? ", nearest: " : "",
               is_near ? nearest->name : "", names);
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

// What man pages and completions are made of: a line for each command, then one for each of its options and
// operands; command, option, argument and help with tabs between them.
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
            tool_error("%s: one argument too many: %s", argv[1], argv[2]);
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

int main(int argc, char **argv)
{
    output_begin();
    if (argc < 2)
        print_usage();
    return ranks_end(output_end(argc < 2 ? TOOL_OK : run_command(argc, argv)));
}
