// SPDX-License-Identifier: MIT
//
// Reading a subcommand's options: the two that all share, and mistakes in one line.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

enum { MAX_OPTIONS = 16, VAL_HELP = 'h', VAL_VERBOSE = 'v' };

static void log_line(attncl_log_level level, const char *text, void *user)
{
    static const char *const names[] = {"", "error", "warning", "info", "debug"};

    (void)user;
    fprintf(stderr, "attncl: %s: %s\n", names[level], text);
}

// The command's options and the shared ones in one table, and their letters for getopt.  The
// leading ':' keeps getopt silent and tells a missing argument from an unknown option.
static void full_table(const struct command *command, struct option *table, char *letters)
{
    static const struct option shared[] = {
        {"help", no_argument, NULL, VAL_HELP},
        {"verbose", no_argument, NULL, VAL_VERBOSE},
    };
    int n = 0;

    *letters++ = ':';
    for (const struct option *o = command->options; o->name && n < MAX_OPTIONS - 3; o++)
        table[n++] = *o;
    memcpy(&table[n], shared, sizeof shared);
    n += 2;
    memset(&table[n], 0, sizeof table[n]);
    for (int i = 0; i < n; i++) {
        *letters++ = (char)table[i].val;
        if (table[i].has_arg == required_argument)
            *letters++ = ':';
    }
    *letters = '\0';
}

static int mistake(const struct command *command, const char *what, const char *which)
{
    tool_error("%s: %s%s; see attncl %s --help", command->name, what, which, command->name);
    return TOOL_USAGE;
}

// After getopt's '?' or ':', optopt is 0 for an unknown long option, which is then `word`; a letter
// of the table for a known option with a value missing or too much; another letter for an unknown
// short option.
static int wrong_option(const struct command *command, const struct option *table, int val,
                        const char *word)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    char name[64];

    if (optopt == 0)
        return mistake(command, "unknown option ", word);
    for (const struct option *o = table; o->name; o++) {
        if (o->val == optopt) {
            snprintf(name, sizeof name, "--%s", o->name);
            return mistake(command, val == ':' ? "no value for " : "a value too much for ", name);
        }
    }
    return mistake(command, "unknown option ", letter);
}

int tool_option(const struct command *command, int argc, char **argv, int *exit_ret)
{
    struct option table[MAX_OPTIONS];
    char letters[2 * MAX_OPTIONS + 2];
    int val;

    full_table(command, table, letters);
    do {
        val = getopt_long(argc, argv, letters, table, NULL);
        if (val == VAL_VERBOSE)
            attncl_set_log(log_line, NULL, ATTNCL_LOG_DEBUG);
    } while (val == VAL_VERBOSE);

    if (val == VAL_HELP) {
        fputs(command->usage, stdout);
        *exit_ret = TOOL_OK;
        return OPTION_EXIT;
    }
    if (val == '?' || val == ':') {
        *exit_ret = wrong_option(command, table, val, argv[optind - 1]);
        return OPTION_EXIT;
    }
    if (val == -1) {
        if (argc - optind == command->n_operands)
            return OPTION_DONE;
        *exit_ret =
            argc - optind < command->n_operands
                ? mistake(command, "a file name is missing", "")
                : mistake(command, "one argument too many: ", argv[optind + command->n_operands]);
        return OPTION_EXIT;
    }
    return val;
}

bool tool_integer(const char *option, const char *text, int64_t low, int64_t high,
                  int64_t *value_ret)
{
    char *end = NULL;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < low || value > high) {
        tool_error("%s: '%s' is not a whole number from %lld to %lld", option, text, (long long)low,
                   (long long)high);
        return false;
    }
    *value_ret = value;
    return true;
}

bool tool_number(const char *option, const char *text, double low, double high, double *value_ret)
{
    char *end = NULL;
    const double value = strtod(text, &end);

    // Written so that NaN is refused too.
    if (end == text || *end != '\0' || !(value >= low && value <= high)) {
        tool_error("%s: '%s' is not a number from %g to %g", option, text, low, high);
        return false;
    }
    *value_ret = value;
    return true;
}
