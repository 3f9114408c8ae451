// SPDX-License-Identifier: MIT
// Shared by the subcommands of `attncl`, which use the public API only.
#ifndef ATTNCL_TOOL_H
#define ATTNCL_TOOL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <attncl/attncl.h>
#include <jansson.h>

#include "options.h"

// Exit statuses.
enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = OPTIONS_MISTAKE };

// Tables and help texts are at most this wide.
enum { OUTPUT_COLUMNS = 100 };

// The subcommands: argv[0] is the subcommand's name.  Return an exit status.
int command_devices(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_run(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_sample(int argc, char **argv);
int command_plot(int argc, char **argv);
int command_train(int argc, char **argv);
int command_tune(int argc, char **argv);
int command_selftest(int argc, char **argv);
int command_report(int argc, char **argv);

// Prints one line on stderr, "attncl: ...".  Returns TOOL_FAILED.
int tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same with the library's last error.
int tool_failed(void);
// The same with the library's reason why there is no device.
int tool_no_device(void);
// TOOL_OK, or tool_failed() if the library's call failed.
int tool_status(attncl_status status);

// Returns from the function, with that status, unless the status is TOOL_OK.
#define TOOL_TRY(call)                                                                             \
    do {                                                                                           \
        const int try_status = (call);                                                             \
        if (try_status != TOOL_OK)                                                                 \
            return try_status;                                                                     \
    } while (0)

// -- options

// Reads a subcommand's options and operands.  OPTIONS_OK, or the exit status to end with.
int tool_options(const char *command, const char *usage, const struct option_row *rows, int argc,
                 char **argv);

// clang-format off
#define DEVICE_OPTION(pointer)                                                                     \
    {"device", 'd', OPTION_TEXT, pointer, "D",                                                     \
     .help = "gpu, cpu, PLATFORM:DEVICE, or part of a device's name"}

// For commands that work under mpirun.
#define DEVICES_OPTION(pointer)                                                                    \
    {"device", 'd', OPTION_TEXT, pointer, "D",                                                     \
     .help = "gpu, cpu, PLATFORM:DEVICE, or part of a device's name;\n"                             \
             "D,D,...: one for each rank of a machine, under mpirun"}
// clang-format on

// pointer: attncl_precision *.
// clang-format off
#define PRECISION_OPTION(pointer)                                                                  \
    {"precision", 0, OPTION_CALL, pointer, "P",                                                    \
     .help = "least precision of products: float32, tf32 or bf16 (default float32);\n"              \
             "tf32 and bf16 where matrix instructions are faster",                                 \
     .take = take_precision}
// clang-format on
bool take_precision(const char *text, void *precision_ret);

// Parses the type f16, bf16, f32 or q8 into an attncl_dtype *.  Returns false for another text and reports it.
bool take_state_type(const char *option, const char *text, void *dtype_ret);
// The same, and q4.
bool take_weight_type(const char *option, const char *text, void *dtype_ret);

#define JSON_OPTION(pointer, what)                                                                 \
    {                                                                                              \
        "json", 'j', OPTION_SWITCH, pointer, .help = what                                          \
    }

// -- output (output.c)

// From now on SIGINT and SIGTERM end the process with status 128 plus their number, but not while a file is written:
// between output_file_begin() and output_file_end(), which nest.
void output_begin(void);
void output_file_begin(void);
void output_file_end(void);
bool output_interrupted(void);
// The exit status for a signal that came, which it clears; 0: none came.
int output_take_interrupt(void);

// Checks, before work is done for it, that a file can be written.  Returns an exit status; reports a failure.
int output_check(const char *path);

// Whether two paths are the same file.
bool output_is_same(const char *a, const char *b);

// output_check(), and checks that the file is neither the model nor the input (null: none).
int output_check_apart(const char *path, const char *model, const char *input);

// Writes all bytes.  Returns TOOL_FAILED, unreported, with errno set.
int output_write(int fd, const char *data, size_t bytes);

// The file to write for `path`: where an existing symbolic link leads, written to `target`, else `path`.
const char *output_target(const char *path, char target[PATH_MAX]);

// Writes PATH.part to the disk, then renames it to `path` or where a link leads.  Returns an exit status; reports a failure.
int output_replace(const char *path, const char *data, size_t bytes);

// Flushes standard output.  Returns an exit status; reports the first failure.
int output_flush(void);

// Flushes standard output and returns the exit status: `status`, or if that is TOOL_OK the status of flushing.
int output_end(int status);

// Digits of printed floats; files that are read back, such as config.json, have as many as they need.
#define JSON_DIGITS JSON_REAL_PRECISION(9)

// Prints the value on a line and releases it; NULL: out of memory.  Returns an exit status.
int json_print(json_t *value);

// The text of a driver; null if it is not UTF-8.
json_t *json_text(const char *text);
// A number; null if it is not finite.
json_t *json_number(double x);
// The device's name.
json_t *json_device(const attncl_context *context);
// The array's dimensions as JSON, or printed as "[2, 3]".
json_t *json_shape(const attncl_array *array);
void print_shape(const attncl_array *array);

// -- several ranks (ranks.c)

// Joins the ranks that mpirun started; without mpirun there is one.  Called once, before a device is opened.  Returns an
// exit status; reports a failure.
int ranks_begin(attncl_ranks **ranks_ret);

// The device of this rank: of a list "D,D,..." the entry with this rank's number on its machine, modulo the entries.  list
// NULL: ATTNCL_DEVICE, else one of the GPUs if there are several.
const char *ranks_device(const char *list);

// The prefix of an error message: "attncl", or with several ranks "attncl: rank 3".  Ranks after 0 wait, so that rank 0
// reports an error of all first.
const char *ranks_speaker(void);

// Leaves the ranks, or after a failure ends all of them.  Returns the exit status.
int ranks_end(int status);

// -- text (text.c)

// Reads bytes range[0] to range[1] (-1: the end) of a file and adds a zero; the caller frees them.  NULL on failure, which
// it reports.
char *read_range(const char *path, const int64_t range[2], size_t *bytes_ret);

// A model's tokenizer, from metadata "attncl.tokenizer", or else its characters, from "attncl.vocab".
struct vocabulary {
    attncl_tokenizer *tokenizer;     // null: tokens are characters
    attncl_tokenizer_stream *stream; // decodes the printed tokens
    int32_t n;                       // characters
    const char *text;                // the characters in order of index
    size_t *start;                   // [n + 1], the byte in `text` where each begins
    struct character *character;     // [n], in order of code point
};

// A device, a model and its input, opened together.
struct session {
    attncl_context *context;
    attncl_model *model;
    attncl_safetensors *input; // null: none
    double opened, compiled;   // seconds_now() before opening, after compiling the last graph
    // A language model's, if a text was given.
    struct vocabulary vocabulary;
    int32_t *tokens;
    size_t n_tokens;
};

// Reads the vocabulary of the session's model.  Returns an exit status; reports a failure.
int vocabulary_open(struct session *session);
void vocabulary_close(struct vocabulary *vocabulary);

// Encodes UTF-8 text, zero-terminated, as the session's tokens.  For messages: the text's name, and the offset of `text`
// in it.  Returns an exit status; reports a failure.
int vocabulary_encode(struct session *session, const char *name, const char *text, size_t bytes,
                      int64_t offset);

// Reads token numbers, separated by spaces, commas or line ends, as the session's tokens.  Returns an exit status; reports
// a failure.
int tokens_read(struct session *session, const char *name, const char *text);
// The same from the array "tokens", [n], of the session's input.
int tokens_take(struct session *session, const char *name);

// Prints the session's tokens from number `from` on, as text or as numbers.  With a tokenizer, calls must follow one
// another, the first with from = 0, and end with tokens_print_end().
void tokens_print(const struct session *session, size_t from, bool as_numbers, FILE *out);
// Prints the rest of an unfinished character.
void tokens_print_end(const struct session *session, FILE *out);

// The name of the session's tokens: "characters" or "tokens".
const char *token_unit(const struct session *session, bool as_numbers);

// Whether the last part of a parameter's name, after its last dot, is `last`.
bool name_ends_with(const char *name, const char *last);

// -- device and model (session.c)

struct session_options {
    const char *device, *model; // device null: the default device
    const char *input;          // a safetensors file; null: none
    attncl_precision precision;
    bool profile;
    const char *text; // for a language model; null: none.  As vocabulary_encode() takes it.
    const char *text_name;
    size_t text_bytes;
    int64_t text_offset;
    bool text_is_numbers; // the text holds token numbers
};

// Opens a session, calls `use` with it and closes it.  `use` must destroy its graphs and decoders.  Returns an exit
// status; reports a failure.
int session_use(const struct session_options *options,
                int (*use)(struct session *session, const void *request), const void *request);

// Runs the model on all arrays of the input.  graph_ret: null, or receives the graph that ran.  Returns an exit status;
// reports a failure.
int session_run_model(const struct session *session, attncl_results **results_ret,
                      attncl_graph **graph_ret);

// -- progress (progress.c)

// Seconds of a monotonic clock.
double seconds_now(void);

// The next three draw on stderr if it is a terminal, at most a few times per second.

// Draws a bar with `unit` (null: none) per second and the time left.  Call it with done 0 first.
void progress_bar(const char *what, const char *unit, int64_t done, int64_t total);
// Draws a line of at most 79 characters.
void progress_text(const char *text);
// Says that kernels are being built, once that takes more than a second.
void progress_building(size_t done, size_t total);

// Erases the line, before something else is printed.
void progress_clear(void);

#endif
