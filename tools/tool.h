// SPDX-License-Identifier: MIT
// What the subcommands of `attncl` share.  Public API only.
#ifndef ATTNCL_TOOL_H
#define ATTNCL_TOOL_H

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

// One line on stderr, "attncl: ...".  Returns TOOL_FAILED.
int tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The same with the library's last error.
int tool_failed(void);
// The same where no device was listed: the library knows more of the reason than that.
int tool_no_device(void);

// -- options

// Reads a subcommand's options and operands.  OPTIONS_OK, or the exit status to end with.
int tool_options(const char *command, const char *usage, const struct option_row *rows, int argc,
                 char **argv);

// clang-format off
#define DEVICE_OPTION(pointer)                                                                     \
    {"device", 'd', OPTION_TEXT, pointer, "D",                                                     \
     .help = "gpu, cpu, PLATFORM:DEVICE, or part of a device's name"}

// Of commands that work under mpirun.
#define DEVICES_OPTION(pointer)                                                                    \
    {"device", 'd', OPTION_TEXT, pointer, "D",                                                     \
     .help = "gpu, cpu, PLATFORM:DEVICE, or part of a device's name;\n"                             \
             "D,D,...: one for each rank of a machine, under mpirun"}
// clang-format on

// Factors of products; pointer: attncl_precision *.
// clang-format off
#define PRECISION_OPTION(pointer)                                                                  \
    {"precision", 0, OPTION_CALL, pointer, "P",                                                    \
     .help = "least precision of products: float32, tf32 or bf16 (default float32);\n"              \
             "tf32 and bf16 where matrix instructions are faster",                                 \
     .take = take_precision}
// clang-format on
bool take_precision(const char *text, void *precision_ret);

// The type that an option names: f16, bf16, f32 or q8, as attncl_dtype *.  False, and said, for another text.
bool take_state_type(const char *option, const char *text, void *dtype_ret);
// The same, or q4.
bool take_weight_type(const char *option, const char *text, void *dtype_ret);

#define JSON_OPTION(pointer, what)                                                                 \
    {                                                                                              \
        "json", 'j', OPTION_SWITCH, pointer, .help = what                                          \
    }

// -- what a command prints and writes (output.c)

// SIGINT and SIGTERM end the process with 128 plus their number; while a file is being written, after it.
void output_begin(void);
// Calls of begin and end nest.
void output_file_begin(void);
void output_file_end(void);
bool output_interrupted(void);
// The status to exit with after such a signal, which is then forgotten; 0: there was none.
int output_take_interrupt(void);

// Whether a file can be written there, before work is done for it.  Returns an exit status; what is wrong is reported.
int output_check(const char *path);

// Whether two paths lead to one file.
bool output_is_same(const char *a, const char *b);

// output_check(), and that the file is neither the model nor the input (null: none).
int output_check_apart(const char *path, const char *model, const char *input);

// Writes all bytes.  TOOL_FAILED, unreported, leaves errno.
int output_write(int fd, const char *data, size_t bytes);

// Puts a new file in the place of `path`: it is written beside the old one as PATH.part, and on the disk before it takes
// its place.  Returns an exit status; a failure is reported.
int output_replace(const char *path, const char *data, size_t bytes);

// Hands what was printed to standard output.  Returns an exit status; the first failure is reported.
int output_flush(void);

// The status to exit with: of a failure where standard output did not take everything.
int output_end(int status);

// Digits of floats for people and programs.  Files that are read back have as many as that takes: config.json.
#define JSON_DIGITS JSON_REAL_PRECISION(9)

// Prints the value on a line and releases it; NULL: there was no memory.  Returns an exit status.
int json_print(json_t *value);

// A driver's text; null where it is not UTF-8.
json_t *json_text(const char *text);

// A number; null where it is not finite.
json_t *json_number(double x);

// The device's name.
json_t *json_device(const attncl_context *context);

// -- several ranks (ranks.c)

// Joins the ranks that mpirun started, one without it.  Called once, before a device is opened; ranks_end() leaves
// them.  Returns an exit status; a failure is reported.
int ranks_begin(attncl_ranks **ranks_ret);

// What a context of this rank takes as its device: of a list "D,D,..." the one with the number of this rank on its
// machine, the first again after the last.  list null: ATTNCL_DEVICE, else one of the GPUs where there are several.
const char *ranks_device(const char *list);

// Before a failure is printed: "attncl", or with several ranks "attncl: rank 3", after rank 0 had the time to say the same.
const char *ranks_speaker(void);

// Leaves the ranks, or after a failure ends all of them.  Returns `status`.
int ranks_end(int status);

// -- text (text.c)

// Bytes range[0] to range[1] (-1: its end) of a file with a zero after them, the caller's to free; NULL on failure, which is
// reported.
char *read_range(const char *path, const int64_t range[2], size_t *bytes_ret);

// A model's tokenizer, from the metadata value "attncl.tokenizer", or else its characters, from "attncl.vocab".
struct vocabulary {
    attncl_tokenizer *tokenizer;     // null: the model has characters
    attncl_tokenizer_stream *stream; // of what is printed
    int32_t n;
    const char *text;            // in index order, of the model
    size_t *start;               // [n + 1], of each character's bytes in the text
    struct character *character; // [n], in order of code point
};

// A device and a model, what the model works on, opened together.
struct session {
    attncl_context *context;
    attncl_model *model;
    attncl_safetensors *input; // null: none was named
    double opened, compiled; // seconds_now() before opening, and after the last graph was compiled
    // Of a language model, where a text was given.
    struct vocabulary vocabulary;
    int32_t *tokens;
    size_t n_tokens;
};

// Reads the vocabulary of the session's model.  Returns an exit status; a failure is reported.
int vocabulary_open(struct session *session);
void vocabulary_close(struct vocabulary *vocabulary);

// UTF-8 text, with a zero after its end, to the session's tokens.  `name` of the text and text[0]'s place
// `offset` in it are for messages.  Returns an exit status; a failure is reported.
int vocabulary_encode(struct session *session, const char *name, const char *text, size_t bytes,
                      int64_t offset);

// Token numbers between spaces, commas and line ends, to the session's tokens.  Returns an exit status; a failure
// is reported.
int tokens_read(struct session *session, const char *name, const char *text);

// The same of "tokens" [n] of the session's input.
int tokens_take(struct session *session, const char *name);

// Prints the session's tokens from number `from` on, as text or as numbers.  A tokenizer's text is printed by calls one
// after another, the first from 0 on, and tokens_print_end().
void tokens_print(const struct session *session, size_t from, bool as_numbers, FILE *out);
// Prints what is left of an unfinished character.
void tokens_print_end(const struct session *session, FILE *out);

// What the session's tokens are: "characters" or "tokens".
const char *token_unit(const struct session *session, bool as_numbers);

// Whether the last part of a parameter's name, after its last point, is `last`.
bool name_ends_with(const char *name, const char *last);

// -- device and model (session.c)

struct session_options {
    const char *device, *model; // device null: the default one
    const char *input;          // a safetensors file; null: none
    attncl_precision precision;
    bool profile;
    const char *text; // for a language model; null: none.  As vocabulary_encode() takes it.
    const char *text_name;
    size_t text_bytes;
    int64_t text_offset;
    bool text_is_numbers; // of tokens
};

// Opens a session, calls `use` with it and closes it.  `use` must destroy its graphs and decoders.  Returns
// an exit status; a failure is reported.
int session_use(const struct session_options *options,
                int (*use)(struct session *session, const void *request), const void *request);

// Runs the model on all arrays of the input.  graph_ret: null, or receives the graph that ran.
// Returns an exit status; a failure is reported.
int session_run_model(const struct session *session, attncl_results **results_ret,
                      attncl_graph **graph_ret);

// -- progress (progress.c)

// Seconds on a clock that only goes forward.
double seconds_now(void);

// Draws a bar on stderr when it is a terminal, at most some times a second, with `unit` (null: none) per second and
// the time left.  Call it with done 0 first.
void progress_bar(const char *what, const char *unit, int64_t done, int64_t total);

// Draws a line of at most 79 characters, on a terminal and some times a second alike.
void progress_text(const char *text);

// Says on a terminal that kernels are being built, from the second second on.
void progress_building(size_t done, size_t total);

// Erases what was drawn, before something else is printed.
void progress_clear(void);

#endif
