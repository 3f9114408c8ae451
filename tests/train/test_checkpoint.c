// SPDX-License-Identifier: MIT
// Checkpoints: 2N steps are N, a checkpoint and N more, bit for bit.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attncl/model.h"
#include "attncl/parameters.h"
#include "attncl/train.h"
#include "train/files.h"

enum { N_STEPS = 3, CONFIG_BYTES = 1024 };

static const char transformer[] =
    "\"d_model\": 8, \"n_layers\": 1, \"layer\": \"transformer\", \"heads\": 2, \"d_ff\": 12, "
    "\"max_len\": 16";
static const char *model_keys, *init; // of the configuration; a file, or NULL
static int batch_size;

// A text in which no window is like another.
static void write_text(void)
{
    char text[601];
    unsigned x = 12345;
    for (size_t i = 0; i + 1 < sizeof text; ++i) {
        x = x * 1103515245u + 12345u;
        text[i] = (char)('a' + (x >> 16) % 11);
    }
    text[sizeof text - 1] = '\0';
    directory_write("text", text);
}

static attncl_trainer *start_on(attncl_context *context, const char *train_keys, const char *data)
{
    char config[CONFIG_BYTES], path[FILE_BYTES], init_path[FILE_BYTES];
    attncl_trainer_options options = ATTNCL_TRAINER_OPTIONS_INIT;
    attncl_trainer *trainer = NULL;
    snprintf(
        config, sizeof config,
        "{\"arch\": \"lm\", \"model\": {%s}, \"train\": {\"batch_size\": %d, %s\"steps\": 20%s%s}}",
        model_keys, batch_size, strstr(train_keys, "seq_len") ? "" : "\"seq_len\": 7, ",
        *train_keys ? ", " : "", train_keys);
    options.data = directory_path(data, path);
    options.init = init ? directory_path(init, init_path) : NULL;
    ck_ok(attncl_trainer_create(context, config, &options, &trainer));
    return trainer;
}

static attncl_trainer *start(const char *train_keys, const char *data)
{
    return start_on(test_context(), train_keys, data);
}

static void take(attncl_trainer *trainer, int n, attncl_train_step *steps)
{
    for (int i = 0; i < n; ++i) {
        steps[i] = (attncl_train_step)ATTNCL_TRAIN_STEP_INIT;
        ck_ok(attncl_trainer_step(trainer, &steps[i]));
    }
}

// With steps that begin before the one before them was waited for.
static void take_overlapping(attncl_trainer *trainer, int n, attncl_train_step *steps)
{
    ck_ok(attncl_trainer_begin(trainer));
    for (int i = 0; i < n; ++i) {
        steps[i] = (attncl_train_step)ATTNCL_TRAIN_STEP_INIT;
        if (i + 1 < n)
            ck_ok(attncl_trainer_begin(trainer));
        ck_ok(attncl_trainer_step(trainer, &steps[i]));
    }
}

static void same_file(const char *a, const char *b)
{
    ck_assert_int_eq(n_differing(a, b), 0);
}

static void up(void)
{
    directory_begin();
    write_text();
    model_keys = transformer;
    init = NULL;
    batch_size = 3;
}

FIXTURE(up, directory_down);

static const char *const configurations[] = {
    "",
    "\"batches\": \"random\", \"optimizer\": {\"amsgrad\": true}, \"seed\": 3",
    "\"batches\": \"sequential\", \"optimizer\": {\"kind\": \"sgd\", \"momentum\": 0.9}",
    "\"optimizer\": {\"kind\": \"noam\", \"warmup\": 4}, \"accumulate\": 2, \"grad_value_clip\": "
    "0.1",
    "\"optimizer\": {\"kind\": \"adamw\"}, \"schedule\": {\"kind\": \"cosine\", \"warmup\": 2}, "
    "\"ema\": 0.9, \"label_smoothing\": 0.1",
    "\"dropout\": 0.2, \"accumulate\": 2, \"seed\": 5",
    "\"accumulate\": 3, \"ema\": 0.8, \"optimizer\": {\"kind\": \"sgd\", \"momentum\": 0.9}",
    "\"seq_len\": [[0, 3], [2, 5], [3, 7], [5, 4]]",
    "\"seq_len\": [[0, 3], [2, 5], [4, 7]], \"accumulate\": 2, \"ema\": 0.9, \"dropout\": 0.2",
};

static void check_resumed(const char *keys)
{
    attncl_train_step whole[2 * N_STEPS], first[N_STEPS], second[N_STEPS];
    attncl_train_state state = ATTNCL_TRAIN_STATE_INIT;
    double loss, again;

    attncl_trainer *trainer = start(keys, "text");
    take(trainer, 2 * N_STEPS, whole);
    ck_ok(attncl_trainer_evaluate(trainer, &loss));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("whole")));
    attncl_trainer_destroy(trainer);

    trainer = start(keys, "text");
    take(trainer, N_STEPS, first);
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("half")));
    attncl_trainer_destroy(trainer);

    trainer = start(keys, "text");
    take(trainer, 1, second);
    ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("half")));
    take(trainer, N_STEPS, second);
    ck_ok(attncl_trainer_evaluate(trainer, &again));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("resumed")));
    ck_ok(attncl_trainer_state(trainer, &state));
    attncl_trainer_destroy(trainer);

    ck_assert_int_eq(state.step, 2 * N_STEPS);
    ck_assert_int_eq(state.best_step, 2 * N_STEPS);
    ck_assert_double_eq(loss, again);
    ck_assert_double_eq(state.best_loss, loss);
    for (int i = 0; i < N_STEPS; ++i) {
        ck_assert_double_eq(first[i].loss, whole[i].loss);
        ck_assert_double_eq(second[i].loss, whole[N_STEPS + i].loss);
        ck_assert_double_eq(second[i].grad_norm, whole[N_STEPS + i].grad_norm);
        ck_assert_double_eq(second[i].learning_rate, whole[N_STEPS + i].learning_rate);
        ck_assert_int_eq(second[i].step, N_STEPS + i + 1);
    }
    same_file("whole", "resumed");
}

TABLE_TEST(resumed_training_gives_the_same_bits, configurations)
{
    check_resumed(configurations[_i]);
}

// Several parameters of the file are rows of one tensor.
TEST(resumed_training_of_stacked_parameters_gives_the_same_bits)
{
    model_keys = "\"d_model\": 8, \"n_layers\": 1, \"layer\": \"feedback_kv\", \"heads\": 2, "
                 "\"d_ff\": 12";
    check_resumed("");
}

// A gate of 7 positions takes less of them; a step's targets are those of its own length, in both its batches.
TEST(a_model_of_fixed_length_takes_shorter_ones)
{
    static const int64_t n_tokens[] = {2 * 3 * 4, 2 * 3 * 4, 2 * 3 * 7};
    attncl_train_step steps[3];
    model_keys =
        "\"d_model\": 8, \"n_layers\": 1, \"layer\": \"gmlp\", \"d_ffn\": 12, \"seq_len\": 7";
    attncl_trainer *trainer = start("\"seq_len\": [[0, 4], [2, 7]], \"accumulate\": 2", "text");
    take_overlapping(trainer, 3, steps);
    for (int i = 0; i < 3; ++i)
        ck_assert_int_eq(steps[i].n_tokens, n_tokens[i]);
    attncl_trainer_destroy(trainer);
}

TEST(evaluations_that_were_no_better_are_remembered)
{
    attncl_train_state state = ATTNCL_TRAIN_STATE_INIT;
    attncl_train_step step;
    double loss, again;

    attncl_trainer *trainer = start("", "text");
    take(trainer, 1, &step);
    ck_ok(attncl_trainer_evaluate(trainer, &loss));
    for (int i = 0; i < 2; ++i)
        ck_ok(attncl_trainer_evaluate(trainer, &again));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("checkpoint")));
    attncl_trainer_destroy(trainer);
    trainer = start("", "text");
    ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")));
    ck_ok(attncl_trainer_state(trainer, &state));
    ck_assert_double_eq(state.best_loss, loss);
    ck_assert_int_eq(state.best_step, 1);
    ck_assert_int_eq(state.n_worse, 2);
    for (int i = 0; i < 9; ++i)
        take(trainer, 1, &step);
    ck_ok(attncl_trainer_evaluate(trainer, &again));
    ck_ok(attncl_trainer_state(trainer, &state));
    attncl_trainer_destroy(trainer);
    ck_assert(again < loss && state.best_loss == again);
    ck_assert(state.best_step == 10 && state.n_worse == 0);
}

// The first step, and the held-out loss before it.
static attncl_train_step first_step(const char *keys, double *loss_ret)
{
    attncl_train_step step;
    attncl_trainer *trainer = start(keys, "text");
    ck_ok(attncl_trainer_evaluate(trainer, loss_ret));
    take(trainer, 1, &step);
    if (!init)
        ck_ok(attncl_trainer_save_model(trainer, IN_DIRECTORY("model")));
    attncl_trainer_destroy(trainer);
    return step;
}

// Dropout and smoothing are for steps alone.
TEST(settings_have_their_effect)
{
    double plain_loss, loss;
    const attncl_train_step plain = first_step("", &plain_loss);
    ck_assert_double_eq(plain.learning_rate, 1e-3);
    ck_assert_int_eq(plain.n_tokens, 3 * 7);
    ck_assert(first_step("\"label_smoothing\": 0.1", &loss).loss != plain.loss);
    ck_assert_double_eq(loss, plain_loss);
    ck_assert(first_step("\"dropout\": 0.2", &loss).loss != plain.loss);
    ck_assert_double_eq(loss, plain_loss);
    first_step("\"seed\": 1", &loss);
    ck_assert_double_ne(loss, plain_loss);
    const attncl_train_step three = first_step("\"accumulate\": 3", &loss);
    ck_assert_int_eq(three.n_tokens, 3 * 3 * 7);
    ck_assert_double_eq_tol(three.loss, plain.loss, 0.5); // a mean
    ck_assert_double_eq(first_step("\"schedule\": {\"warmup\": 2}", &loss).learning_rate, 5e-4);
    init = "model"; // of which the seed says nothing
    ck_assert(first_step("\"batches\": \"sequential\", \"dropout\": 0.2", &loss).loss !=
              first_step("\"batches\": \"sequential\", \"dropout\": 0.2, \"seed\": 1", &loss).loss);
}

// Values are clipped first; the norm that is told is that before both.
TEST(values_are_clipped_and_then_the_norm)
{
    enum { N = 11 };
    static const char name[] = "generator.projection.bias";
    float before[N], after[N];
    attncl_train_step step;
    double loss;
    const double norm = first_step("", &loss).grad_norm;
    attncl_trainer *trainer = start("\"optimizer\": {\"kind\": \"sgd\", \"learning_rate\": 1}, "
                                    "\"grad_value_clip\": 0.001, \"grad_norm_clip\": 1e6",
                                    "text");
    attncl_model *model = attncl_trainer_model(trainer);
    ck_ok(attncl_model_param_read(model, name, before, sizeof before));
    take(trainer, 1, &step);
    ck_ok(attncl_model_param_read(model, name, after, sizeof after));
    attncl_trainer_destroy(trainer);
    ck_assert_double_eq_tol(step.grad_norm, norm, 1e-6 * norm);
    for (int i = 0; i < N; ++i)
        ck_assert_double_eq_tol(fabs((double)after[i] - (double)before[i]), 1e-3, 1e-6);
}

// A mean over targets, whatever share of them the last batch has.
TEST(the_held_out_loss_does_not_depend_on_the_batch_size)
{
    static const int sizes[] = {3, 5};
    double loss[2];

    for (int i = 0; i < 2; ++i) {
        batch_size = sizes[i];
        attncl_trainer *trainer = start("\"valid_len\": 7", "text");
        ck_ok(attncl_trainer_evaluate(trainer, &loss[i]));
        attncl_trainer_destroy(trainer);
    }
    ck_assert_double_eq_tol(loss[0], loss[1], 1e-6 * loss[0]);
}

TABLE_TEST(steps_that_overlap_give_the_same_bits, configurations)
{
    attncl_train_step apart[2 * N_STEPS], overlapping[2 * N_STEPS];
    attncl_trainer *trainer = start(configurations[_i], "text");
    double loss, again;

    take(trainer, 2 * N_STEPS, apart);
    ck_ok(attncl_trainer_evaluate(trainer, &loss));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("apart")));
    attncl_trainer_destroy(trainer);
    trainer = start(configurations[_i], "text");
    take_overlapping(trainer, N_STEPS, overlapping);
    take_overlapping(trainer, N_STEPS, overlapping + N_STEPS);
    ck_ok(attncl_trainer_evaluate(trainer, &again));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("overlapping")));
    attncl_trainer_destroy(trainer);
    same_file("apart", "overlapping");
    ck_assert_double_eq(loss, again);
    for (int i = 0; i < 2 * N_STEPS; ++i) {
        ck_assert_int_eq(overlapping[i].step, apart[i].step);
        ck_assert_double_eq(overlapping[i].loss, apart[i].loss);
        ck_assert_double_eq(overlapping[i].grad_norm, apart[i].grad_norm);
        ck_assert_double_eq(overlapping[i].learning_rate, apart[i].learning_rate);
        ck_assert_int_eq(overlapping[i].n_tokens, apart[i].n_tokens);
    }
}

// What the last letter has of a parameter is infinite.
static void spoil(attncl_trainer *trainer, const char *parameter, size_t last, size_t width,
                  float infinite)
{
    float table[12 * 8];
    const size_t bytes = (last + 1) * width * sizeof *table;
    attncl_model *model = attncl_trainer_model(trainer);

    ck_ok(attncl_model_param_read(model, parameter, table, bytes));
    table[last * width] = infinite;
    ck_ok(attncl_model_param_write(model, parameter, table, bytes));
}

// Only ready batches end with the plan.
TEST(a_step_without_room_for_its_result_is_not_taken)
{
    enum { N_PLANNED = 20 };
    attncl_train_step steps[N_PLANNED + 1], step = ATTNCL_TRAIN_STEP_INIT;
    attncl_trainer *trainer = start("", "text");

    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("before")));
    step.struct_size = 0;
    ck_fails(attncl_trainer_step(trainer, &step), ATTNCL_ERR_ARGUMENT,
             "attncl_train_step has struct_size 0");
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("after")));
    same_file("before", "after");
    take(trainer, N_PLANNED + 1, steps);
    ck_assert_int_eq(steps[N_PLANNED].step, N_PLANNED + 1);
    attncl_trainer_destroy(trainer);
}

static const char *const begun[] = {"", "\"ema\": 0.9", "\"accumulate\": 3"};

TABLE_TEST(what_needs_the_weights_waits_for_steps_that_have_begun, begun)
{
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    attncl_train_fault fault = ATTNCL_TRAIN_FAULT_INIT;
    attncl_trainer *trainer = start(begun[_i], "text");
    double loss;

    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("first")));
    ck_ok(attncl_trainer_begin(trainer));
    ck_ok(attncl_trainer_begin(trainer));
    ck_ok(attncl_trainer_begin(trainer)); // at most two
    for (int i = 1; i <= 2; ++i) {
        char has_begun[32];
        snprintf(has_begun, sizeof has_begun, "step %d has begun", i);
        ck_fails(attncl_trainer_save(trainer, IN_DIRECTORY("x")), ATTNCL_ERR_STATE, has_begun);
        ck_fails(attncl_trainer_evaluate(trainer, &loss), ATTNCL_ERR_STATE, has_begun);
        ck_fails(attncl_trainer_check(trainer, &fault), ATTNCL_ERR_STATE, has_begun);
        ck_ok(attncl_trainer_step(trainer, &step));
        ck_assert_int_eq(step.step, i);
    }
    ck_ok(attncl_trainer_evaluate(trainer, &loss));
    ck_ok(attncl_trainer_begin(trainer));
    ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("first")));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("again")));
    same_file("first", "again");

    // What a step that has begun found not to be finite is forgotten.
    spoil(trainer, "generator.projection.bias", 10, 1, INFINITY);
    ck_ok(attncl_trainer_begin(trainer));
    ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY("first")));
    ck_ok(attncl_trainer_step(trainer, &step));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("again")));
    ck_assert_int_gt(n_differing("first", "again"), 0);
    ck_ok(attncl_trainer_begin(trainer));
    attncl_trainer_destroy(trainer);
    ck_fails(attncl_trainer_begin(NULL), ATTNCL_ERR_ARGUMENT, "trainer is NULL");
}

static const char *const failing[] = {
    "",
    "\"ema\": 0.9, \"optimizer\": {\"amsgrad\": true}",
    "\"accumulate\": 2, \"ema\": 0.9",
    "\"accumulate\": 3, \"optimizer\": {\"kind\": \"sgd\", \"momentum\": 0.9}",
};

// One batch has the letter z: the step of that batch fails.  Steps until one fails: which.  Files: what was before that one, and `after`.
static int64_t take_until_failure(const char *keys, bool spoils_loss, bool overlaps,
                                  const char *after)
{
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    attncl_trainer *trainer = start(keys, "text");
    attncl_status status = ATTNCL_OK;
    int64_t i = 0;
    if (spoils_loss) // gradients are finite
        spoil(trainer, "generator.projection.bias", 11, 1, -INFINITY);
    else
        spoil(trainer, "src_embed.linear.weight", 11, 8, INFINITY);
    if (overlaps)
        ck_ok(attncl_trainer_begin(trainer));
    while (status == ATTNCL_OK && ++i <= 19) {
        if (overlaps)
            ck_ok(attncl_trainer_begin(trainer));
        else
            ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("before")));
        status = attncl_trainer_step(trainer, &step);
    }
    ck_assert_int_eq(status, ATTNCL_ERR_STATE);
    ck_assert_msg(strstr(attncl_last_error(), ": the loss is ") != NULL, "%s", attncl_last_error());
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY(after)));
    attncl_trainer_destroy(trainer);
    return i;
}

TABLE_TEST(a_step_that_is_not_finite_and_those_behind_it_change_nothing, failing)
{
    char keys[CONFIG_BYTES], text[600];

    for (size_t i = 0; i < sizeof text; ++i)
        text[i] = (char)('a' + i * i % 11);
    for (size_t i = 0; i < 11; ++i)
        text[i] = (char)('a' + i);
    text[93] = 'z'; // in batch 4, counted from 0: the middle of three
    text[sizeof text - 1] = '\0';
    directory_write("text", text);
    snprintf(keys, sizeof keys, "\"batches\": \"sequential\"%s%s", *failing[_i] ? ", " : "",
             failing[_i]);
    for (int spoils_loss = 0; spoils_loss < 2; ++spoils_loss) {
        const int64_t alone = take_until_failure(keys, spoils_loss, false, "alone");
        ck_assert_int_ge(alone, 2);
        ck_assert_int_eq(take_until_failure(keys, spoils_loss, true, "behind"), alone);
        same_file("before", "alone");
        same_file("alone", "behind");
    }
}

// Under the parameters' own names are the averages, in the checkpoint and in the model file: half of what was there at
// first, half of what the first step made of it.
static void check_averages(void)
{
    attncl_safetensors *checkpoint = NULL, *model = NULL, *first = NULL;
    char name[200];

    ck_ok(attncl_safetensors_open(IN_DIRECTORY("first"), &first));
    ck_ok(attncl_safetensors_open(IN_DIRECTORY("checkpoint"), &checkpoint));
    ck_ok(attncl_safetensors_open(IN_DIRECTORY("model"), &model));
    for (size_t i = 0; i < attncl_safetensors_count(model); ++i) {
        const attncl_array *a = attncl_safetensors_at(model, i);
        const attncl_array *same = attncl_safetensors_find(checkpoint, a->name);
        snprintf(name, sizeof name, "optimizer.param.%s", a->name);
        const attncl_array *weight = attncl_safetensors_find(checkpoint, name);
        snprintf(name, sizeof name, "optimizer.exp_avg_sq.%s", a->name);
        const attncl_array *squares = attncl_safetensors_find(checkpoint, name);
        ck_assert(same && weight && squares);
        ck_assert_mem_eq(a->data, same->data, a->bytes);
        ck_assert_int_ne(memcmp(a->data, weight->data, a->bytes), 0);
        const float *at_first = attncl_safetensors_find(first, a->name)->data;
        for (size_t k = 0; k < squares->bytes / sizeof(float); ++k) {
            ck_assert(((const float *)squares->data)[k] >= 0);
            ck_assert_double_eq_tol(
                (double)((const float *)a->data)[k],
                0.5 * ((double)at_first[k] + (double)((const float *)weight->data)[k]),
                1e-7 * fabs((double)at_first[k]) + 1e-9);
        }
    }
    attncl_safetensors_close(first);
    attncl_safetensors_close(checkpoint);
    attncl_safetensors_close(model);
}

TEST(a_checkpoint_runs_as_a_model_file)
{
    attncl_train_step step;
    attncl_model *model = NULL;
    double loss, again;
    attncl_trainer *trainer = start("", "text");
    ck_ok(attncl_trainer_save_model(trainer, IN_DIRECTORY("first")));
    attncl_trainer_destroy(trainer);
    trainer = start("\"ema\": 0.5", "text");
    take(trainer, 1, &step);
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("checkpoint")));
    ck_ok(attncl_trainer_save_model(trainer, IN_DIRECTORY("model")));
    ck_ok(attncl_trainer_evaluate(trainer, &loss));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("evaluated")));
    same_file("checkpoint", "evaluated");
    check_averages();
    ck_ok(attncl_model_open(test_context(), IN_DIRECTORY("checkpoint"), NULL, &model));
    ck_assert_str_eq(attncl_model_arch(model), "lm");
    ck_assert_int_eq(attncl_model_config_int(model, "n_vocab", 0), 11);
    ck_assert_str_eq(attncl_model_metadata(model, "attncl.vocab"), "abcdefghijk");
    attncl_model_destroy(model);
    ck_ok(attncl_model_open(test_context(), IN_DIRECTORY("model"), NULL, &model));
    ck_assert_ptr_null(attncl_model_metadata(model, "attncl.train"));
    attncl_model_destroy(model);
    ck_assert_str_eq(attncl_model_metadata(attncl_trainer_model(trainer), "attncl.vocab"),
                     "abcdefghijk");
    attncl_trainer_destroy(trainer);

    // The averages were evaluated.
    init = "model";
    trainer = start("", "text");
    ck_ok(attncl_trainer_evaluate(trainer, &again));
    ck_assert_double_eq(loss, again);
    attncl_trainer_destroy(trainer);
    directory_write("other", "ccbbaaccbbaaccbbaaccbbaaccbbaaccbbaaccbbaaccbbaaccbbaaccbbaa");
    attncl_trainer_destroy(start("", "other")); // by the model's vocabulary
}

TEST(a_file_that_cannot_be_opened_is_named_once)
{
    attncl_trainer *trainer = start("", "text");

    ck_fails(attncl_trainer_resume(trainer, "absent"), ATTNCL_ERR_IO, "absent: No such file");
    ck_assert_str_eq(attncl_last_error(), "absent: No such file or directory");
    directory_write("broken", "{");
    ck_fails(attncl_trainer_resume(trainer, IN_DIRECTORY("broken")), ATTNCL_ERR_FORMAT,
             "/broken: ");
    ck_assert_ptr_null(strstr(strstr(attncl_last_error(), "broken") + 1, "broken"));
    attncl_trainer_destroy(trainer);
}

static void refuse(attncl_trainer *trainer, attncl_status status, const char *words)
{
    attncl_train_step step = ATTNCL_TRAIN_STEP_INIT;
    ck_fails(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")), status, words);
    ck_ok(attncl_trainer_step(trainer, &step)); // as before
    ck_assert_int_eq(step.step, 1);
    attncl_trainer_destroy(trainer);
}

// The checkpoint with its first matrix in another type, or turned, or of a step below 0.
static void change_checkpoint(attncl_dtype type, bool turns, bool negates)
{
    enum { MAX_ARRAYS = 100 };
    attncl_array arrays[MAX_ARRAYS];
    char state[5000];
    attncl_safetensors *file = NULL;
    ck_ok(attncl_safetensors_open(IN_DIRECTORY("kept"), &file));
    const size_t n = attncl_safetensors_count(file);
    const char *text = attncl_safetensors_metadata(file, "attncl.train");
    const char *number = strstr(text, "\"step\": ") + strlen("\"step\": ");
    snprintf(state, sizeof state, "%.*s%s%s", (int)(number - text), text, negates ? "-" : "",
             number);
    const char *const metadata[] = {"attncl.train", state, NULL};
    size_t changed = n;
    ck_assert_uint_le(n, MAX_ARRAYS);
    for (size_t i = n; i-- > 0;) {
        arrays[i] = *attncl_safetensors_at(file, i);
        changed = arrays[i].rank == 2 && arrays[i].dim[0] != arrays[i].dim[1] ? i : changed;
    }
    attncl_array *a = &arrays[changed];
    const int64_t rows = a->dim[0];
    a->dtype = type;
    a->bytes = (size_t)(a->dim[0] * a->dim[1]) * attncl_dtype_bytes(type);
    a->dim[0] = turns ? a->dim[1] : rows;
    a->dim[1] = turns ? rows : a->dim[1];
    ck_ok(attncl_safetensors_write(IN_DIRECTORY("checkpoint"), arrays, n, metadata));
    attncl_safetensors_close(file);
}

TEST(another_training_is_refused)
{
    attncl_train_step steps[N_STEPS];
    attncl_trainer *trainer = start("", "text");
    take(trainer, N_STEPS, steps);
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("checkpoint")));
    ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY("kept")));
    attncl_trainer_destroy(trainer);

    refuse(start("\"optimizer\": {\"kind\": \"sgd\"}", "text"), ATTNCL_ERR_STATE,
           "the optimizer's kind is \"sgd\", the checkpoint's is \"adam\"");
    refuse(start("\"optimizer\": {\"amsgrad\": true}", "text"), ATTNCL_ERR_FORMAT,
           "tensor optimizer.max_exp_avg_sq.");
    directory_write("other", "abcdefghijk abcdefghijk abcdefghijk abcdefghijk abcdefghijk "
                             "abcdefghijk abcdefghijk abcdefghijk abcdefghijk abcdefghijk");
    trainer = start("", "other");
    ck_fails(attncl_trainer_resume(trainer, IN_DIRECTORY("checkpoint")), ATTNCL_ERR_STATE,
             "the model's n_vocab is 12, the checkpoint's is 11");
    attncl_trainer_destroy(trainer);
    directory_write("other", "kabcdefghijabcdefghijkabcdefghijkabcdefghijkabcdefghijkabcdefghijk"
                             "kabcdefghijabcdefghijkabcdefghijkabcdefghijkabcdefghijkabcdefghijk");
    refuse(start("", "other"), ATTNCL_ERR_STATE, "the data have hash ");

    change_checkpoint(ATTNCL_F16, false, false);
    refuse(start("", "text"), ATTNCL_ERR_FORMAT, "type F16, expected F32");
    change_checkpoint(ATTNCL_F32, true, false);
    refuse(start("", "text"), ATTNCL_ERR_SHAPE, "expected [");
    change_checkpoint(ATTNCL_F32, false, true);
    refuse(start("", "text"), ATTNCL_ERR_FORMAT, "step is -");
    directory_write("checkpoint", "no file of tensors");
    refuse(start("", "text"), ATTNCL_ERR_FORMAT, "checkpoint");
}

// Every checkpoint in one precision goes on in that one alone.
TEST(another_precision_is_refused)
{
    static const char *const names[] = {"float32", "tf32", "bf16"};
    attncl_context *context[3];
    char words[64];

    for (int i = 0; i < 3; ++i) {
        attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
        options.precision = (attncl_precision)(ATTNCL_PRECISION_FLOAT32 + i);
        ck_ok(attncl_context_create(&options, &context[i]));
        attncl_trainer *trainer = start_on(context[i], "", "text");
        ck_ok(attncl_trainer_save(trainer, IN_DIRECTORY(names[i])));
        attncl_trainer_destroy(trainer);
    }
    for (int i = 0; i < 9; ++i) {
        attncl_trainer *trainer = start_on(context[i % 3], "", "text");
        snprintf(words, sizeof words, "the precision is %s, the checkpoint's is %s", names[i % 3],
                 names[i / 3]);
        if (i % 3 == i / 3)
            ck_ok(attncl_trainer_resume(trainer, IN_DIRECTORY(names[i / 3])));
        else
            ck_fails(attncl_trainer_resume(trainer, IN_DIRECTORY(names[i / 3])), ATTNCL_ERR_STATE,
                     words);
        attncl_trainer_destroy(trainer);
    }
    for (int i = 0; i < 3; ++i)
        ck_ok(attncl_context_destroy(context[i]));
}
