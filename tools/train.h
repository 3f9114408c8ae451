// SPDX-License-Identifier: MIT
// Shared by the files of attncl train.
#ifndef ATTNCL_TOOL_TRAIN_H
#define ATTNCL_TOOL_TRAIN_H

#include "tool.h"

enum { MAX_SETS = 64, RUN_PATH_BYTES = 4096 };

struct train_request {
    const char *config, *operand; // the configuration file, by option or as operand
    const char *data, *tokens, *pairs, *batches, *init, *out, *device, *prompt, *tokenizer;
    const char *set[MAX_SETS]; // "KEY=VALUE"
    int n_sets;
    int64_t steps, seed; // -1: the configuration's
    bool resume, check, json;
    attncl_precision precision;
};

// -- the configuration (train_config.c)

// The configuration as JSON text, which the caller frees: the file `path`, or if NULL that of the model file `from` (NULL:
// none), and the values of --set.  NULL on failure, which it reports.
char *train_config_text(const struct train_request *r, const char *path, const char *from);

// Checks that `text`, a complete configuration, continues the one in file `path`, if that exists.  Returns an exit
// status; reports a difference.
int train_config_compare(const char *path, const char *text);

// -- the directory RUN (run_directory.c)

struct run_directory {
    const char *path;
    int log, lock; // descriptors; -1: not open
};

// Writes path/name to `ret` and returns it.
const char *run_path(const struct run_directory *run, const char *name, char ret[RUN_PATH_BYTES]);
#define IN_RUN(run, name) run_path((run), (name), (char[RUN_PATH_BYTES]){0})

// The same for "checkpoints/step-N.safetensors".
const char *run_checkpoint(const struct run_directory *run, int64_t step, char ret[RUN_PATH_BYTES]);
#define CHECKPOINT_IN_RUN(run, step) run_checkpoint((run), (step), (char[RUN_PATH_BYTES]){0})

// The functions below return an exit status and report a failure.

// Refuses a directory that is not empty, unless it is to be resumed, and then locks it for this process.
int run_check(struct run_directory *run, bool resume);

// The step of the last checkpoint; -1: there is none.
int64_t run_last_step(const struct run_directory *run);

// Creates the directory if missing, locks it for this process, removes partial files, and opens the log without the lines
// after `step`.
int run_open(struct run_directory *run, int64_t step);
void run_close(struct run_directory *run);

// Removes all checkpoints but the last `keep`.
int run_prune(const struct run_directory *run, int64_t keep);

// -- its files (run_files.c)

// Replaces a file of the directory.
int run_write(const struct run_directory *run, const char *name, const char *text);

// Adds a line to the log and releases the value.
int run_log(struct run_directory *run, json_t *line);
int run_log_sync(struct run_directory *run); // to the disk

// Removes the lines of the log after `step`, and a last line that was cut off.
int run_cut_log(const char *path, int64_t step);

// Reports errno of a path.  Returns TOOL_FAILED.
int run_failed_with(const char *path);

// Draws RUN/curve.svg from the log (train_curve.c).
int run_draw_curve(const struct run_directory *run);

// -- printing (train_report.c)

struct train_progress {
    const char *unit;        // "character"
    int64_t first_step;      // taken before this process
    int64_t n_steps;         // to be taken in all
    double begin;            // seconds_now() when this process began
    attncl_train_step last;  // the last step
    double tokens_per_s;     // of the last step
    double valid_loss;       // of the last evaluation
    attncl_train_state best; // after the last step
};

// Draws the progress line on a terminal.
void train_show_step(const struct train_progress *p);
// Prints a line after an evaluation.
void train_print_evaluation(const struct train_progress *p);
// Prints the line at the end, or JSON.
int train_print_end(const struct train_progress *p, const struct train_request *r, bool early,
                    const char *model_path, attncl_context *context);

// Checks that the prompt has tokens of the model.  Returns an exit status; reports a failure.
int train_check_prompt(attncl_model *model, const char *prompt);

// Prints the prompt (NULL: the beginning of a line) and n tokens of its continuation by the model file.  Returns an exit
// status; reports a failure.
int train_print_sample(const struct train_progress *p, attncl_context *context,
                       const char *model_path, const char *prompt, int64_t n);

// -- the steps (train_steps.c)

struct training {
    const struct train_request *request;
    attncl_ranks *ranks; // null: one
    attncl_context *context;
    attncl_trainer *trainer;
    attncl_train_plan plan;
    struct run_directory run;
    struct train_progress progress;
    int64_t begun;     // the last step begun
    int64_t saved;     // the step of the last checkpoint; -1: none
    double curve_time; // seconds_now() when the curve was last drawn
    bool writes;       // only rank 0 writes files
    bool is_ending;    // no further step begins
    bool draws_curve, prints_samples;
};

// The steps taken, as of the last training_update(), which asks the trainer.
int64_t training_step(const struct training *training);
int training_update(struct training *training);

// Takes all remaining steps, with evaluations and checkpoints.  Returns an exit status; after a signal, which ends the
// steps with a checkpoint, that of the signal.
int training_take_steps(struct training *training);
// Writes the last checkpoint and model, and prints the end.
int training_finish(struct training *training);

#endif
