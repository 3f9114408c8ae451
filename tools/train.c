// SPDX-License-Identifier: MIT
//
// attncl train: trains a model from data and a configuration, in a directory from which it can resume.

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train.h"

static const char usage[] =
    "usage: attncl train [CONFIG.json] --data TEXT --out RUN [options]\n"
    "\n"
    "Trains a language model on a UTF-8 text or on token numbers, a translator on\n"
    "pairs of sentences, or an encoder on sentences that have a label, or a label for each\n"
    "word.  CONFIG.json is {\"arch\", \"model\", \"train\"}: the keys of a model file, and those\n"
    "of docs/training.md.  All keys of \"train\" have defaults; RUN/config.json lists\n"
    "them.  The log, checkpoints and models are written to the directory RUN.\n";

// The name of a target.
static const char *target_unit(const struct training *t)
{
    const attncl_model *model = attncl_trainer_model(t->trainer);
    const struct train_request *r = t->request;

    if (r->pairs)
        return attncl_model_metadata(model, "attncl.labels") ? "label" : "word";
    return r->data && !attncl_model_metadata(model, "attncl.tokenizer") ? "character" : "token";
}

// The configuration: from its file, the training to resume, or the model to begin from.
static char *read_config(const struct training *t, int64_t resumed)
{
    const struct train_request *r = t->request;
    const char *path = r->config ? r->config : r->operand;
    char own[RUN_PATH_BYTES];

    if (path || !r->resume)
        return train_config_text(r, path, r->init);
    run_path(&t->run, "config.json", own);
    if (resumed < 0 && access(own, F_OK) != 0)
        return train_config_text(r, NULL, r->init); // no training was begun
    return train_config_text(r, own, NULL);
}

// Creates the trainer; a resumed one has the vocabulary of its checkpoint.
static int create_trainer(struct training *t, int64_t resumed)
{
    const struct train_request *r = t->request;
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    const uint64_t seed = (uint64_t)r->seed;
    char checkpoint[RUN_PATH_BYTES];
    char *config = read_config(t, resumed);

    if (!config)
        return TOOL_FAILED;
    options.data = r->data;
    options.tokens = r->tokens;
    options.pairs = r->pairs;
    options.batches = r->batches;
    options.tokenizer = r->tokenizer;
    options.init = resumed >= 0 ? run_checkpoint(&t->run, resumed, checkpoint) : r->init;
    options.steps = r->steps >= 0 ? &r->steps : NULL;
    options.seed = r->seed >= 0 ? &seed : NULL;
    options.ranks = t->ranks;
    const attncl_status created = attncl_trainer_create(t->context, config, &options, &t->trainer);
    free(config);
    TOOL_TRY(tool_status(created));
    // Even without a checkpoint, since another program may have written the file.
    if (resumed >= 0 || (t->writes && r->resume))
        TOOL_TRY(train_config_compare(IN_RUN(&t->run, "config.json"),
                                      attncl_trainer_config(t->trainer)));
    if (resumed >= 0)
        TOOL_TRY(tool_status(attncl_trainer_resume(t->trainer, checkpoint)));
    TOOL_TRY(tool_status(attncl_trainer_plan(t->trainer, &t->plan)));
    if (r->prompt)
        TOOL_TRY(train_check_prompt(attncl_trainer_model(t->trainer), r->prompt));
    return training_update(t);
}

static void show_building(size_t done, size_t total, void *user)
{
    (void)user;
    progress_building(done, total);
}

static int open_training(struct training *t)
{
    const struct train_request *r = t->request;
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    int64_t resumed = -1;

    if (t->writes && run_check(&t->run, r->resume) != TOOL_OK)
        return TOOL_FAILED;
    if (t->writes && r->resume)
        resumed = run_last_step(&t->run);
    TOOL_TRY(tool_status(attncl_ranks_broadcast(t->ranks, &resumed, sizeof resumed)));
    options.device = ranks_device(r->device);
    options.precision = r->precision;
    options.compile_progress = t->writes ? show_building : NULL;
    TOOL_TRY(tool_status(attncl_context_create(&options, &t->context)));
    TOOL_TRY(create_trainer(t, resumed));
    t->saved = resumed;
    t->progress.unit = target_unit(t);
    t->progress.first_step = training_step(t);
    t->progress.n_steps = t->plan.steps;
    t->progress.begin = t->curve_time = seconds_now();
    t->progress.valid_loss = NAN;
    t->prints_samples = r->data != NULL;
    t->draws_curve = true;
    if (!t->writes)
        return TOOL_OK;
    TOOL_TRY(run_open(&t->run, training_step(t)));
    return run_write(&t->run, "config.json", attncl_trainer_config(t->trainer));
}

static int train(struct training *t)
{
    int status = open_training(t);

    if (status == TOOL_OK)
        status = training_take_steps(t);
    if (status == TOOL_OK)
        status = training_finish(t);
    run_close(&t->run);
    attncl_trainer_destroy(t->trainer);
    if (attncl_context_destroy(t->context) != ATTNCL_OK && status == TOOL_OK)
        status = tool_failed();
    return status;
}

// -- the command line

static bool take_set(const char *text, void *value)
{
    struct train_request *r = value;
    const char *equal = strchr(text, '=');

    if (!equal || equal == text || equal[1] == '\0') {
        tool_error("--set: '%s' is not of the form KEY=VALUE", text);
        return false;
    }
    if (r->n_sets == MAX_SETS) {
        tool_error("--set: more than %d values; use a CONFIG.json", MAX_SETS);
        return false;
    }
    r->set[r->n_sets++] = text;
    return true;
}

static int report_mistake(const char *what)
{
    tool_error("train: %s; see attncl train --help", what);
    return TOOL_USAGE;
}

static int check_request(const struct train_request *r, bool data_is_numbers)
{
    if (r->config && r->operand)
        return report_mistake("CONFIG and --config exclude each other");
    if (!r->data && !r->pairs && !r->batches)
        return report_mistake("--data, --pairs or --batches is missing");
    if (r->data && r->pairs)
        return report_mistake("--data and --pairs exclude each other");
    if (data_is_numbers && !r->data)
        return report_mistake("--tokens is for --data, which is missing");
    if (!r->out)
        return report_mistake("--out is missing");
    if (r->prompt && (!r->data || data_is_numbers))
        return report_mistake("--prompt is for a text in --data, samples are text");
    if (r->tokenizer && (!r->data || data_is_numbers))
        return report_mistake("--tokenizer is for a text in --data");
    return TOOL_OK;
}

int command_train(int argc, char **argv)
{
    struct train_request r = {.steps = -1, .seed = -1};
    bool data_is_numbers = false;
    const struct option_row rows[] = {
        {"config", 'c', OPTION_TEXT, &r.config, "C", .help = "the same as CONFIG"},
        {"data", 0, OPTION_TEXT, &r.data, "TEXT",
         .help = "a UTF-8 text, read by the tokenizer if there is one, else by characters"},
        {"tokenizer", 0, OPTION_TEXT, &r.tokenizer, "FILE",
         .help = "a tokenizer.json for the text (default: that of the model of --init)"},
        {"tokens", 'i', OPTION_SWITCH, &data_is_numbers,
         .help = "the data holds token numbers: \"tokens\" [n] of a safetensors file"},
        {"pairs", 0, OPTION_TEXT, &r.pairs, "FILE",
         .help = "a pair on each line: source, TAB, target; for arch encoder, the target\n"
                 "is a label, or with pool none a label for each word"},
        {"batches", 0, OPTION_TEXT, &r.batches, "FILE",
         .help = "ready batches, which replace those of the data: \"tokens\" and \"targets\"\n"
                 "[N, T, B] of a safetensors file, for pairs \"enc_X\", \"dec_X\" and \"targets\"\n"
                 "[N, B, T]"},
        {"out", 'o', OPTION_TEXT, &r.out, "RUN", .help = "the directory of the results"},
        {"steps", 0, OPTION_INTEGER, &r.steps, "N",
         .help = "number of steps; overrides the configuration", .low = 1, .high = INT32_MAX},
        {"seed", 's', OPTION_INTEGER, &r.seed, "S",
         .help = "seed of the random numbers; overrides the configuration", .high = INT32_MAX},
        {"init", 0, OPTION_TEXT, &r.init, "M",
         .help = "start from the weights and the vocabulary of a model file; without\n"
                 "a configuration, also use its architecture"},
        {"set", 'x', OPTION_CALL, &r, "KEY=VALUE",
         .help = "set a key of the configuration, as in --set model.d_model=128; repeatable",
         .take = take_set},
        {"resume", 'r', OPTION_SWITCH, &r.resume,
         .help = "continue RUN from its last checkpoint, or from the start if it has none"},
        {"check", 0, OPTION_SWITCH, &r.check,
         .help = "if a loss is not finite, find the first operation whose result is not"},
        {"prompt", 'p', OPTION_TEXT, &r.prompt, "S", .help = "the beginning of the samples"},
        JSON_OPTION(&r.json, "print only the result, as JSON"),
        DEVICES_OPTION(&r.device),
        PRECISION_OPTION(&r.precision),
        {"CONFIG", .kind = OPTION_LAST, .value = &r.operand},
        {.name = NULL},
    };
    int status = tool_options("train", usage, rows, argc, argv);

    if (status == OPTIONS_OK)
        status = check_request(&r, data_is_numbers) == TOOL_OK ? OPTIONS_OK : TOOL_USAGE;
    if (status != OPTIONS_OK)
        return status;
    if (data_is_numbers) {
        r.tokens = r.data;
        r.data = NULL;
    }
    signal(SIGXFSZ, SIG_IGN); // a file size limit is then reported as an error
    struct training t = {.request = &r,
                         .plan = ATTNCL_TRAIN_PLAN_INIT,
                         .run = {.path = r.out, .log = -1, .lock = -1}};
    TOOL_TRY(ranks_begin(&t.ranks));
    t.writes = attncl_ranks_rank(t.ranks) == 0;
    status = train(&t);
    return ranks_end(status);
}
