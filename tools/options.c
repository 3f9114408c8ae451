// SPDX-License-Identifier: MIT

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Long options without a letter have values from LONG_ONLY on.
enum { MAX_OPTIONS = 32, LONG_ONLY = 256, VAL_HELP = 'h', VAL_VERBOSE = 'v' };

static const struct option_row help_row = {
    .name = "help", .letter = VAL_HELP, .kind = OPTION_SWITCH, .help = "print this help"};
static const struct option_row verbose_row = {.name = "verbose",
                                              .letter = VAL_VERBOSE,
                                              .kind = OPTION_SWITCH,
                                              .help = "print the library's log to stderr"};

void print_error(const char *program, const char *format, va_list args)
{
    char text[2048];

    vsnprintf(text, sizeof text, format, args);
    // One line, even if a file name or a device's answer has control characters.
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program, text);
}

__attribute__((format(printf, 2, 3))) static bool refuse(const struct command_line *line,
                                                         const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_error(line->program, format, args);
    va_end(args);
    return false;
}

static int report_mistake(const struct command_line *line, const char *what, const char *which)
{
    const char *command = line->command ? line->command : "";

    refuse(line, "%s%s%s%s; see %s %s%s--help", command, *command ? ": " : "", what, which,
           line->program, command, *command ? " " : "");
    return OPTIONS_MISTAKE;
}

static bool read_integer(const struct command_line *line, const struct option_row *row,
                         const char *text, int64_t *value)
{
    char *end = NULL;
    long long x;

    errno = 0;
    x = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || x < row->low || x > row->high)
        return refuse(line, "--%s: '%s' is not a whole number from %.0Lf to %.0Lf", row->name, text,
                      row->low, row->high);
    *value = x;
    return true;
}

static bool read_number(const struct command_line *line, const struct option_row *row,
                        const char *text, double *value)
{
    char *end = NULL;
    const double x = strtod(text, &end);

    // Written so that NaN is refused too.
    if (end == text || *end != '\0' || !(x >= row->low && x <= row->high))
        return refuse(line, "--%s: '%s' is not a number from %Lg to %Lg", row->name, text, row->low,
                      row->high);
    *value = x;
    return true;
}

static bool read_range(const struct command_line *line, const struct option_row *row,
                       const char *text, int64_t ends[2])
{
    const char *colon = strchr(text, ':');
    struct option_row rest = *row;
    char first[32];

    if (!colon || (size_t)(colon - text) >= sizeof first)
        return refuse(line, "--%s: '%s' is not of the form A:B", row->name, text);
    snprintf(first, sizeof first, "%.*s", (int)(colon - text), text);
    if (*first && !read_integer(line, row, first, &ends[0]))
        return false;
    if (*first)
        rest.low = ends[0];
    return !colon[1] || read_integer(line, &rest, colon + 1, &ends[1]);
}

static bool take_value(const struct command_line *line, const struct option_row *row,
                       const char *text)
{
    switch (row->kind) {
    case OPTION_SWITCH:
        *(bool *)row->value = true;
        return true;
    case OPTION_INTEGER:
        return read_integer(line, row, text, row->value);
    case OPTION_NUMBER:
        return read_number(line, row, text, row->value);
    case OPTION_RANGE:
        return read_range(line, row, text, row->value);
    case OPTION_CALL:
        return row->take(text, row->value);
    default:
        *(const char **)row->value = text;
        return true;
    }
}

// Formats "-d, --device D"; returns the length of the whole text.
static int format_option(const struct option_row *row, char *text, size_t capacity)
{
    return snprintf(text, capacity, "%c%c%c --%s%s%s", row->letter ? '-' : ' ',
                    row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
                    row->value_name ? " " : "", row->value_name ? row->value_name : "");
}

static bool is_operand(const struct option_row *row)
{
    return row->kind == OPTION_OPERAND || row->kind == OPTION_LAST;
}

static void list_row(const struct command_line *line, const struct option_row *row)
{
    if (is_operand(row))
        printf("%s\t%s\t\t", line->command, row->name);
    else if (row->letter)
        printf("%s\t-%c, --%s\t%s\t", line->command, row->letter, row->name,
               row->value_name ? row->value_name : "");
    else
        printf("%s\t--%s\t%s\t", line->command, row->name, row->value_name ? row->value_name : "");
    for (const char *c = row->help ? row->help : ""; *c; c++)
        putchar(*c == '\n' ? ' ' : *c);
    putchar('\n');
}

void command_line_list(const struct command_line *line)
{
    for (const struct option_row *row = line->rows; row->name; row++)
        if (row->help || is_operand(row))
            list_row(line, row);
    if (line->verbose)
        list_row(line, &verbose_row);
    list_row(line, &help_row);
}

static void print_help(const struct command_line *line, const struct option_row *const *rows, int n)
{
    char name[64];
    int width = 0;

    fputs(line->usage, stdout);
    putchar('\n');
    for (int i = 0; i < n; i++) {
        const int length = format_option(rows[i], name, sizeof name);
        width = rows[i]->help && length > width ? length : width;
    }
    for (int i = 0; i < n; i++) {
        if (!rows[i]->help)
            continue;
        format_option(rows[i], name, sizeof name);
        printf("  %-*s  ", width, name);
        for (const char *c = rows[i]->help; *c; c++) {
            putchar(*c);
            if (*c == '\n')
                printf("%*s", width + 4, "");
        }
        putchar('\n');
    }
    fputs(line->notes ? line->notes : "", stdout);
}

// Fills getopt_long's table and its letters.  The leading ':' keeps getopt silent and distinguishes a missing argument
// from an unknown option.
static void fill_tables(const struct option_row *const *rows, int n, struct option *table,
                        char *letters)
{
    *letters++ = ':';
    for (int i = 0; i < n; i++) {
        const bool has_value = rows[i]->kind != OPTION_SWITCH;
        const int val = rows[i]->letter ? rows[i]->letter : LONG_ONLY + i;

        table[i] = (struct option){rows[i]->name, has_value, NULL, val};
        if (rows[i]->letter)
            *letters++ = (char)val;
        if (rows[i]->letter && has_value)
            *letters++ = ':';
    }
    *letters = '\0';
    memset(&table[n], 0, sizeof table[n]);
}

static int unknown_option(const struct command_line *line, const struct option *table,
                          const char *word)
{
    char text[1024];
    int used = snprintf(text, sizeof text, "%.200s; there are", word);

    for (const struct option *o = table; o->name && used < (int)sizeof text; o++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s --%s", o > table ? "," : "",
                         o->name);
    return report_mistake(line, "unknown option ", text);
}

// After getopt's '?' or ':', optopt is 0 for an unknown long option, `word`; the option's value if a known option lacks
// its argument or has one too many; else an unknown letter.
static int wrong_option(const struct command_line *line, const struct option *table, int val,
                        const char *word)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    char name[64];

    if (optopt == 0)
        return unknown_option(line, table, word);
    for (const struct option *o = table; o->name; o++) {
        if (o->val == optopt) {
            snprintf(name, sizeof name, "--%s", o->name);
            return report_mistake(line, val == ':' ? "no value for " : "unexpected value for ",
                                  name);
        }
    }
    return unknown_option(line, table, letter);
}

static int take_operands(const struct command_line *line, int n, char **operands)
{
    for (const struct option_row *row = line->rows; row->name; row++) {
        if (!is_operand(row) || (row->kind == OPTION_LAST && n == 0))
            continue;
        if (n == 0)
            return report_mistake(line, row->name, " is missing");
        take_value(line, row, *operands++);
        n--;
    }
    return n == 0 ? OPTIONS_OK : report_mistake(line, "unexpected argument: ", *operands);
}

int command_line_read(const struct command_line *line, int argc, char **argv)
{
    const struct option_row *rows[MAX_OPTIONS];
    struct option table[MAX_OPTIONS + 1];
    char letters[2 * MAX_OPTIONS + 2];
    int n = 0, val, found;

    for (const struct option_row *row = line->rows; row->name && n < MAX_OPTIONS - 2; row++)
        if (!is_operand(row))
            rows[n++] = row;
    if (line->verbose)
        rows[n++] = &verbose_row;
    rows[n++] = &help_row;
    fill_tables(rows, n, table, letters);

    while (found = -1, (val = getopt_long(argc, argv, letters, table, &found)) != -1) {
        int i = 0;

        if (val == '?' || val == ':')
            return wrong_option(line, table, val, argv[optind - 1]);
        // getopt also takes the beginning of a name.
        const char *word = argv[optind - 1 - (optarg && optarg == argv[optind - 1])];
        if (found >= 0 && strcspn(word, "=") != strlen(table[found].name) + 2)
            return unknown_option(line, table, word);
        while (table[i].val != val)
            i++;
        if (rows[i] == &help_row) {
            print_help(line, rows, n);
            return EXIT_SUCCESS;
        }
        if (rows[i] == &verbose_row)
            line->verbose();
        else if (!take_value(line, rows[i], optarg))
            return OPTIONS_MISTAKE;
    }
    return take_operands(line, argc - optind, argv + optind);
}
