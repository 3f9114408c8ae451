// SPDX-License-Identifier: MIT
// A command line described by a table of options, for attncl and attncl-bench.  The table also gives --help.
#ifndef ATTNCL_TOOL_OPTIONS_H
#define ATTNCL_TOOL_OPTIONS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

// The kind of an option: its argument, and the type of the variable that receives it.
enum option_kind {
    OPTION_SWITCH,  // no argument; bool, which becomes true
    OPTION_TEXT,    // const char *
    OPTION_INTEGER, // int64_t in [low, high]
    OPTION_NUMBER,  // double in [low, high]
    OPTION_RANGE,   // "A:B", int64_t[2], low <= A <= B <= high; an omitted end is not written
    OPTION_CALL,    // anything; the row's function takes it
    OPTION_OPERAND, // not an option: the next operand, const char *
    OPTION_LAST     // an operand that may be missing
};

struct option_row {
    const char *name; // without "--"; null ends the table
    int letter;       // its short form; 0: none
    enum option_kind kind;
    void *value;
    const char *value_name; // in --help
    const char *help;       // lines, the last without '\n'; null: not in --help
    long double low, high;  // exact for every int64_t
    bool (*take)(const char *text, void *value); // OPTION_CALL; false after reporting a mistake
};

struct command_line {
    const char *program;           // the start of error messages
    const char *command;           // a subcommand; null: none
    const char *usage;             // printed by --help before the options
    const char *notes;             // printed by --help after them; null: nothing
    const struct option_row *rows; // operands in order
    void (*verbose)(void);         // called by --verbose; null: there is no such option
};

enum { OPTIONS_OK = -1, OPTIONS_MISTAKE = 2 };

// Reads the options and operands.  Returns OPTIONS_OK, or the exit status to end with: 0 after --help, OPTIONS_MISTAKE
// after an error message.
int command_line_read(const struct command_line *line, int argc, char **argv);

// Prints the options and operands, a line each: command, "-d, --device", "D" and help, tab-separated.
void command_line_list(const struct command_line *line);

// Prints one line on stderr, "program: ...".
void print_error(const char *program, const char *format, va_list args);

#endif
