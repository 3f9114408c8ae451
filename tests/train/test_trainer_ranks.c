// SPDX-License-Identifier: MIT
//
// Training on several ranks: this program started by mpirun, against itself alone.

#define _GNU_SOURCE // kill
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attncl/ranks.h"
#include "attncl/train.h"
#include "graph/graph.h"
#include "support/directory.h"
#include "support/ranks_launch.h"
#include "support/test.h"
#include "train/trainer.h"

NO_DEVICE;

enum { STEPS = 50, SAVED = 20, DIES_AFTER = 23, TEXT_BYTES = 1500 };

// Five sequences: no number of ranks shares them evenly.
#define CONFIG(more)                                                                               \
    "{\"arch\": \"lm\", \"model\": {\"layer\": \"transformer\", \"d_model\": 16, \"heads\": 2, "   \
    "\"d_ff\": 16, \"n_layers\": 2}, \"train\": {\"batch_size\": 5, " more                         \
    "\"steps\": 50, \"optimizer\": {\"learning_rate\": 0.01}}}"
static const char *const configs[] = {CONFIG("\"seq_len\": [[0, 8], [18, 12], [25, 16]], "),
                                      CONFIG("\"seq_len\": 8, \"accumulate\": 2, \"ema\": 0.9, "),
                                      CONFIG("\"seq_len\": 8, \"dropout\": 0.2, ")};

static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value ? value : otherwise;
}

static attncl_context *open_device(const attncl_ranks *ranks)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    attncl_context *context = NULL;
    options.device = attncl_ranks_rank(ranks) % 2 == 1 ? getenv("RANKS_ODD_DEVICE") : NULL;
    const attncl_status status = attncl_context_create(&options, &context);
    if (status == ATTNCL_ERR_NO_DEVICE)
        test_exit_skipped("%s", attncl_last_error());
    ck_ok(status);
    return context;
}

// Weights of one rank alone, which differ from step 100 on: 100 steps would take long.
static void check_that_ranks_compare(attncl_ranks *ranks, attncl_trainer *trainer)
{
    ck_ok(attncl__compare_replicas(trainer));
    if (attncl_ranks_rank(ranks) == 1)
        ck_ok(attncl__tensor_clear(trainer->trained[0].tensor[KEPT_WEIGHT]));
    trainer->progress.step = 100;
    if (trainer->devices_differ || attncl_ranks_size(ranks) == 1)
        ck_ok(attncl__compare_replicas(trainer));
    else
        ck_fails(attncl__compare_replicas(trainer), ATTNCL_ERR_STATE, "after step 100");
}

// Trains to step `steps`, from a checkpoint or the start.  Losses go to `log`, a line a step.
static void train(attncl_ranks *ranks, const char *resume, const char *log, int64_t steps)
{
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_context *context = open_device(ranks);
    attncl_trainer *trainer = NULL;
    attncl_train_state state = ATTNCL_TRAIN_STATE_INIT;
    double valid_loss = 0;
    options.data = variable("RANKS_TEXT", NULL);
    options.ranks = ranks;
    ck_ok(attncl_trainer_create(context, configs[atoi(variable("RANKS_CONFIG", "0"))], &options,
                                &trainer));
    if (resume)
        ck_ok(attncl_trainer_resume(trainer, resume));
    ck_ok(attncl_trainer_state(trainer, &state));
    FILE *file = attncl_ranks_rank(ranks) == 0 ? fopen(log, "w") : NULL;
    for (int64_t i = state.step + 1; i <= steps; ++i) {
        attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
        ck_ok(attncl_trainer_step(trainer, &step));
        if (file)
            fprintf(file, "%a %a\n", step.loss, step.grad_norm);
        if (i == SAVED)
            ck_ok(attncl_trainer_save(trainer, variable("RANKS_SAVE", "")));
        if (i == DIES_AFTER && getenv("RANKS_DIE") && attncl_ranks_rank(ranks) == 1)
            kill(getpid(), SIGKILL);
    }
    ck_ok(attncl_trainer_evaluate(trainer, &valid_loss));
    if (file) {
        fprintf(file, "%a 0\n", valid_loss);
        fclose(file);
    }
    if (ranks)
        check_that_ranks_compare(ranks, trainer);
    attncl_trainer_destroy(trainer);
    ck_ok(attncl_context_destroy(context));
}

TEST(worker)
{
    attncl_ranks *ranks = NULL;
    if (!ranks_task())
        return;
    alarm(300);
    ck_ok(attncl_ranks_open(&ranks));
    train(ranks, getenv("RANKS_RESUME"), ranks_task(), atoi(variable("RANKS_STEPS", "50")));
    attncl_ranks_close(ranks);
}
END_TEST

// -- the test

FIXTURE(directory_begin, directory_down);

static void write_text(void)
{
    char text[TEXT_BYTES + 1] = "";
    for (int i = 0; i < TEXT_BYTES; ++i)
        text[i] = "etaoin shrdlu"[(i * i / 7 + i) % 13];
    directory_write("text", text);
    setenv("RANKS_TEXT", IN_DIRECTORY("text"), 1);
    setenv("RANKS_SAVE", IN_DIRECTORY("saved"), 1);
    setenv("ATTNCL_CACHE", "rw", 1); // every process needs the same kernels
    setenv("ATTNCL_CACHE_DIR", IN_DIRECTORY("kernels"), 1);
}

static int read_log(const char *name, double *losses)
{
    FILE *file = fopen(IN_DIRECTORY(name), "r");
    int n = 0;
    ck_assert_msg(file != NULL, "there is no %s", name);
    while (n <= STEPS && fscanf(file, "%la %*a", &losses[n]) == 1)
        ++n;
    fclose(file);
    return n;
}

// The lines of `name` are those of `wanted` from line `from` on, within a tolerance.
static void check_log(const char *name, const char *wanted, int from, double tolerance)
{
    double want[STEPS + 1], got[STEPS + 1];
    const int n_want = read_log(wanted, want), n = read_log(name, got);
    ck_assert_int_eq(n, n_want - from);
    for (int i = 0; i < n; ++i)
        ck_assert_msg(fabs(got[i] - want[from + i]) <= tolerance * fabs(want[from + i]),
                      "%s: line %d is %.9g, expected %.9g", name, i, got[i], want[from + i]);
}

// False where there is nothing to launch with.
static bool launch(int n, const char *more, const char *log, bool expects_success)
{
    char variables[1024];
    snprintf(variables, sizeof variables, "RANKS_TASK='%s' %s", IN_DIRECTORY(log), more);
    const double seconds = ranks_launch(n, variables, expects_success);
    ck_assert_double_lt(seconds, 300);
    return seconds >= 0;
}

static const double same_training = 1e-5, same_bits = 0;

TABLE_TEST(any_number_of_ranks_trains_alike, configs)
{
    char more[64];
    if (ranks_task())
        return;
    write_text();
    snprintf(more, sizeof more, "RANKS_CONFIG=%d", _i);
    setenv("RANKS_CONFIG", strchr(more, '=') + 1, 1);
    train(NULL, NULL, IN_DIRECTORY("one"), STEPS);
    unsetenv("RANKS_CONFIG");
    for (int n = 2; n <= (_i == 0 || test_has_full_sizes() ? 4 : 2); n += 2) {
        if (!launch(n, more, "several", true))
            return;
        check_log("several", "one", 0, same_training);
    }
    if (_i == 0) {
        launch(4, more, "again", true);
        check_log("again", "several", 0, same_bits);
    }
}
END_TEST

TEST(a_rank_dies_and_others_resume)
{
    char more[512];
    if (ranks_task())
        return;
    write_text();
    train(NULL, NULL, IN_DIRECTORY("one"), STEPS);
    ck_assert_int_eq(remove(getenv("RANKS_SAVE")), 0);
    if (!launch(2, "RANKS_DIE=1", "died", false))
        return;
    setenv("RANKS_SAVE", IN_DIRECTORY("unused"), 1);
    train(NULL, IN_DIRECTORY("saved"), IN_DIRECTORY("resumed"), STEPS);
    check_log("resumed", "one", SAVED, same_training);
    snprintf(more, sizeof more, "RANKS_RESUME='%s'", IN_DIRECTORY("saved"));
    launch(4, more, "resumed", true);
    check_log("resumed", "one", SAVED, same_training);
}
END_TEST
