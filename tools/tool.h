// SPDX-License-Identifier: MIT
// What the subcommands of `attncl` share.  Public API only.
#ifndef ATTNCL_TOOL_H
#define ATTNCL_TOOL_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <attncl/attncl.h>

// Exit statuses.
enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

// The subcommands: argv[0] is the subcommand's name.  Return an exit status.
int command_devices(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_run(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_sample(int argc, char **argv);
int command_plot(int argc, char **argv);
int command_tune(int argc, char **argv);

// One line on stderr, "attncl: ...".  Returns TOOL_FAILED.
int tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The same with the library's last error.
int tool_failed(void);

// -- options (options.c)

// One subcommand's command line.
struct command {
    const char *name;
    const char *usage;            // printed by --help
    const struct option *options; // getopt_long's, without --help and --verbose; ends with zeros
    int n_operands;               // how many file names it takes
};

enum { OPTION_DONE = -1, OPTION_EXIT = -2 };

// The next option's `val`, its argument in optarg.  OPTION_DONE when the options are used up and
// the operands, from argv[optind] on, are as many as the command takes; OPTION_EXIT when the
// program ends with *exit_ret: --help, or a mistake.
int tool_option(const struct command *command, int argc, char **argv, int *exit_ret);

// Numbers in options.  False, with a line on stderr, unless `text` is one in [low, high].
bool tool_integer(const char *option, const char *text, int64_t low, int64_t high,
                  int64_t *value_ret);
bool tool_number(const char *option, const char *text, double low, double high, double *value_ret);

// -- device and model (session.c)

struct session {
    attncl_context *context;
    attncl_model *model;
};

// Opens the device (NULL: the default one) and the model file into an empty session.  Returns an
// exit status; on failure, which is reported on stderr, the session is empty again.
int session_open(const char *device, bool profile, const char *path, struct session *session);

// Runs the model on all arrays of a file.  graph_ret: NULL, or receives the graph that ran. Returns
// an exit status; a failure is reported.
int session_run(const struct session *session, const attncl_safetensors *input,
                attncl_results **results_ret, attncl_graph **graph_ret);

// Closes both; destroy graphs and decoders first.  Returns `status`, or a failure of closing.
int session_close(struct session *session, int status);

// -- text (text.c)

// A model's characters, from the metadata value "attncl.vocab": their code points in index order.
struct vocabulary {
    int32_t n;
    uint32_t *code;   // [n], in index order
    int32_t *by_code; // [n], indices in order of code point
};

// False, with a line on stderr, when the model has none or it does not fit the model.
bool vocabulary_open(const attncl_model *model, struct vocabulary *vocabulary);
void vocabulary_close(struct vocabulary *vocabulary);

// UTF-8 text to indices.  `offset` is text[0]'s place in the file, for messages that name a
// character and its offset. *tokens_ret is the caller's to free.
bool vocabulary_encode(const struct vocabulary *vocabulary, const char *text, size_t bytes,
                       int64_t offset, int32_t **tokens_ret, size_t *n_ret);

// Code point to UTF-8, zero-terminated.
void utf8_encode(uint32_t code, char text[5]);

// A text as a JSON string, with its quotes.
void json_string(FILE *out, const char *text);

// -- progress (progress.c)

// Seconds on a clock that only goes forward.
double seconds_now(void);

// Draws a bar on stderr when it is a terminal, at most some times a second; done == total erases
// it.
void progress_bar(const char *what, int64_t done, int64_t total);

#endif
