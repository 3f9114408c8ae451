// SPDX-License-Identifier: MIT
//
// attncl train: from data and a configuration to a trained model, in a directory that can be resumed.

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

static const char usage[] =
    "usage: attncl train [CONFIG.json] --data TEXT --out RUN [options]\n"
    "\n"
    "Trains a model: a language model on the characters of a UTF-8 text or on token\n"
    "numbers, a translator on pairs of sentences, an encoder on pairs of a sentence and\n"
    "its label or a label for each word.  CONFIG.json is {\"arch\", \"model\",\n"
    "\"train\"}: the keys of a model file and those of docs/training.md; all of \"train\"\n"
    "has defaults, which RUN/config.json lists.  RUN gets the log, checkpoints and models.\n";

// What a target is.
static const char *unit_of(const struct training *t)
{
    const struct train_request *r = t->request;

    if (r->pairs && attncl_model_metadata(attncl_trainer_model(t->trainer), "attncl.labels"))
        return "label";
    return r->data ? "character" : r->pairs ? "word" : "token";
}

static bool has_config(const struct training *t)
{
    char path[RUN_PATH_BYTES];
    FILE *file = fopen(run_path(&t->run, "config.json", path), "r");

    if (file)
        fclose(file);
    return file != NULL;
}

// The configuration: of its file, of a training that is resumed, of the model to begin from.
static char *read_config(const struct training *t, int64_t resumed)
{
    const struct train_request *r = t->request;
    const char *path = r->config ? r->config : r->operand;
    char own[RUN_PATH_BYTES];

    if (path || !r->resume)
        return train_config_text(r, path, r->init);
    if (resumed < 0 && !has_config(t))
        return train_config_text(r, NULL, r->init); // nothing was begun
    return train_config_text(r, run_path(&t->run, "config.json", own), NULL);
}

// Makes the trainer; a resumed one has the vocabulary of its checkpoint.
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
    options.init = resumed >= 0 ? run_checkpoint(&t->run, resumed, checkpoint) : r->init;
    options.steps = r->steps >= 0 ? &r->steps : NULL;
    options.seed = r->seed >= 0 ? &seed : NULL;
    options.ranks = t->ranks;
    attncl_status status = attncl_trainer_create(t->context, config, &options, &t->trainer);
    free(config);
    // Without a checkpoint, too: the file may be another program's.
    if (status == ATTNCL_OK && (resumed >= 0 || (t->writes && r->resume && has_config(t))) &&
        train_config_compare(IN_RUN(&t->run, "config.json"), attncl_trainer_config(t->trainer)) !=
            TOOL_OK)
        return TOOL_FAILED;
    if (status == ATTNCL_OK && resumed >= 0)
        status = attncl_trainer_resume(t->trainer, checkpoint);
    if (status == ATTNCL_OK)
        status = attncl_trainer_plan(t->trainer, &t->plan);
    if (status != ATTNCL_OK)
        return tool_failed();
    if (r->prompt && train_check_prompt(attncl_trainer_model(t->trainer), r->prompt) != TOOL_OK)
        return TOOL_FAILED;
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
    if (attncl_ranks_broadcast(t->ranks, &resumed, sizeof resumed) != ATTNCL_OK)
        return tool_failed();
    options.device = ranks_device(r->device);
    options.precision = r->precision;
    options.compile_progress = t->writes ? show_building : NULL;
    if (attncl_context_create(&options, &t->context) != ATTNCL_OK)
        return tool_failed();
    if (create_trainer(t, resumed) != TOOL_OK)
        return TOOL_FAILED;
    t->saved = resumed;
    t->progress.unit = unit_of(t);
    t->progress.first_step = training_step(t);
    t->progress.n_steps = t->plan.steps;
    t->progress.begin = t->curve_time = seconds_now();
    t->progress.valid_loss = NAN;
    t->samples = r->data != NULL;
    t->draws = true;
    if (!t->writes)
        return TOOL_OK;
    if (run_open(&t->run, training_step(t)) != TOOL_OK)
        return TOOL_FAILED;
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
        tool_error("--set: more than %d values; a CONFIG.json holds any number", MAX_SETS);
        return false;
    }
    r->set[r->n_sets++] = text;
    return true;
}

static int mistake(const char *what)
{
    tool_error("train: %s; see attncl train --help", what);
    return TOOL_USAGE;
}

static int check_request(const struct train_request *r)
{
    const int n_data = (r->data != NULL) + (r->tokens != NULL) + (r->pairs != NULL);

    if (r->config && r->operand)
        return mistake("CONFIG and --config exclude each other");
    if (n_data == 0 && !r->batches)
        return mistake("--data, --tokens, --pairs or --batches is missing");
    if (n_data > 1)
        return mistake("--data, --tokens and --pairs exclude each other");
    if (!r->out)
        return mistake("--out is missing");
    if (r->prompt && !r->data)
        return mistake("--prompt is for --data, samples are of characters");
    return TOOL_OK;
}

int command_train(int argc, char **argv)
{
    struct train_request r = {.steps = -1, .seed = -1};
    const struct option_row rows[] = {
        {"config", 'c', OPTION_TEXT, &r.config, "C", .help = "the configuration, as CONFIG"},
        {"data", 't', OPTION_TEXT, &r.data, "TEXT", .help = "a UTF-8 text, by its characters"},
        {"tokens", 'i', OPTION_TEXT, &r.tokens, "FILE",
         .help = "token numbers: \"tokens\" [n] of a safetensors file"},
        {"pairs", 'p', OPTION_TEXT, &r.pairs, "FILE",
         .help = "a line for each pair: source, TAB, target; of arch encoder\n"
                 "the target is a label, or with pool none one for each word"},
        {"batches", 'b', OPTION_TEXT, &r.batches, "FILE",
         .help = "ready batches, in place of the data's: \"tokens\" and \"targets\" [N, T, B]\n"
                 "of a safetensors file, for pairs \"enc_X\", \"dec_X\" and \"targets\" [N, B, T]"},
        {"out", 'o', OPTION_TEXT, &r.out, "RUN", .help = "the directory of the results"},
        {"steps", 'n', OPTION_INTEGER, &r.steps, "N", .help = "in place of the configuration's",
         .low = 1, .high = INT32_MAX},
        {"seed", 's', OPTION_INTEGER, &r.seed, "S", .help = "in place of the configuration's",
         .high = INT32_MAX},
        {"init", 'm', OPTION_TEXT, &r.init, "M",
         .help = "a model file: the first weights, its vocabulary, and without a\n"
                 "configuration its architecture"},
        {"set", 'x', OPTION_CALL, &r, "KEY=VALUE",
         .help = "a key of the configuration, --set model.d_model=128; any number of times",
         .take = take_set},
        {"resume", 'r', OPTION_SWITCH, &r.resume,
         .help = "continue RUN from its last checkpoint, from the beginning where it has none"},
        {"check", 'k', OPTION_SWITCH, &r.check,
         .help = "where a loss is not finite, find the first op whose result is not"},
        {"prompt", 'q', OPTION_TEXT, &r.prompt, "S", .help = "what the samples begin with"},
        JSON_OPTION(&r.json, "the result as JSON, and nothing else"),
        {"device", 'd', OPTION_TEXT, &r.device, "D",
         .help = "gpu, cpu, PLATFORM:DEVICE, or part of a device's name; under mpirun a\n"
                 "list with commas: a device for each rank of a machine"},
        PRECISION_OPTION(&r.precision),
        {"CONFIG", .kind = OPTION_LAST, .value = &r.operand},
        {.name = NULL},
    };
    int status = tool_options("train", usage, rows, argc, argv);

    if (status == OPTIONS_OK)
        status = check_request(&r) == TOOL_OK ? OPTIONS_OK : TOOL_USAGE;
    if (status != OPTIONS_OK)
        return status;
    signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error that has a message
    struct training t = {.request = &r,
                         .plan = ATTNCL_TRAIN_PLAN_INIT,
                         .run = {.path = r.out, .log = -1, .lock = -1}};
    if (ranks_begin(&t.ranks) != TOOL_OK)
        return TOOL_FAILED;
    t.writes = attncl_ranks_rank(t.ranks) == 0;
    status = train(&t);
    return ranks_end(status);
}
