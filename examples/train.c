// SPDX-License-Identifier: MIT
//
// Training: a causal language model of AFT-local layers learns which character follows in a text.
// One graph holds the loss, its gradients and Adam's update of the weights: each run of it is a
// step.
//
//     train [TEXT MODEL [STEPS]]
//
// Reads an ASCII text, trains on its first nine tenths and writes a model file for `attncl eval`,
// `attncl sample` and `attncl run`: examples/models was made so.  Without arguments a small model
// learns a sentence.  `attncl train` does more of the same.

#include <math.h>
#include <string.h>

#include "example.h"

static const char sentence[] = "in the beginning was the word and the word was read by a machine ";

// Positions and sequences of a batch, the model's other keys, steps, and the steps in which the
// learning rate rises to its peak.
struct sizes {
    int T, B;
    const char *layers;
    int steps, warmup;
    double peak;
};
static const struct sizes small = {
    24, 8,  "\"d_model\": 32, \"d_ff\": 64, \"n_layers\": 1, \"local_window_size\": 8",
    60, 10, 0.02};
static const struct sizes large = {
    128,  16,  "\"d_model\": 128, \"d_ff\": 256, \"n_layers\": 4, \"local_window_size\": 32",
    2000, 200, 0.004};

enum { MAX_TENSORS = 128, MAX_BATCH = 128 * 16, SAVE_EVERY = 100, REPORT_EVERY = 20 };

static unsigned char text[4 << 20]; // a longer text is cut
static size_t n_text;               // characters that it trains on
static int32_t token_of[128];       // of each character
static char vocabulary[128];        // and back
static int32_t tokens[MAX_BATCH], targets[MAX_BATCH];

// The text and its vocabulary, in the order of the characters' codes.  0: the message is out.
static int read_text(const char *path, int n_least)
{
    size_t n = sizeof sentence - 1;
    FILE *file = path ? fopen(path, "rb") : NULL;

    memcpy(text, sentence, n);
    if (file) {
        n = fread(text, 1, sizeof text, file);
        fclose(file);
    }
    n_text = path ? n / 10 * 9 : n;
    if ((path && !file) || n_text <= (size_t)n_least) {
        fprintf(stderr, "train: %s cannot be read, or has no more than %d characters to train on\n",
                path ? path : "the sentence", n_least);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (text[i] == 0 || text[i] > 127) {
            fprintf(stderr, "train: byte %zu is %d, not ASCII\n", i, (int)text[i]);
            return 0;
        }
        token_of[text[i]] = 1;
    }
    int32_t n_vocab = 0;
    for (int c = 1; c < 128; c++) {
        if (token_of[c]) {
            token_of[c] = n_vocab;
            vocabulary[n_vocab++] = (char)c;
        }
    }
    return 1;
}

// B windows of the text and the characters after theirs: [T, B].
static void draw(const struct sizes *s, uint32_t *seed)
{
    for (int b = 0; b < s->B; b++) {
        *seed = *seed * 1664525u + 1013904223u;
        const size_t start = (size_t)((double)(n_text - (size_t)s->T) * (*seed >> 8) / 16777216.0);
        for (int i = 0; i < s->T; i++) {
            tokens[i * s->B + b] = token_of[text[start + (size_t)i]];
            targets[i * s->B + b] = token_of[text[start + (size_t)i + 1]];
        }
    }
}

static attncl_status create_model(attncl_context *context, const struct sizes *s,
                                  attncl_model **model)
{
    char config[256];

    snprintf(config, sizeof config,
             "{\"layer\": \"aft_local\", \"seq_len\": %d, \"n_vocab\": %d, %s}", s->T,
             (int)strlen(vocabulary), s->layers);
    return attncl_model_create(context, "lm", config, 1, model);
}

// The graph of a step.  A mistake of a builder is reported by attncl_graph_compile().
static attncl_status build(attncl_model *model, const struct sizes *s, attncl_graph *g)
{
    const int64_t dim[] = {s->T, s->B};
    const attncl_array inputs[] = {attncl_array_make("tokens", ATTNCL_I32, 2, dim, NULL),
                                   attncl_array_make("targets", ATTNCL_I32, 2, dim, NULL)};
    const size_t n = attncl_model_tensor_count(model);
    attncl_value loss, params[MAX_TENSORS], gradients[MAX_TENSORS], clipped[MAX_TENSORS];
    attncl_adam_desc adam = ATTNCL_ADAM_DESC_INIT;
    attncl_schedule_desc schedule = ATTNCL_SCHEDULE_DESC_INIT;
    attncl_model_tensor tensor = ATTNCL_MODEL_TENSOR_INIT;
    char name[160];

    attncl_status status = attncl_model_loss(model, g, NULL, inputs, 2, &loss);
    if (status == ATTNCL_OK)
        status = attncl_model_gradient(model, g, loss, params, gradients);
    if (status != ATTNCL_OK)
        return status;
    attncl_graph_output(g, "loss", loss);
    attncl_clip_grad_norm(g, n, gradients, 1.0, ATTNCL_CLIP_EPSILON, clipped);

    // The rate rises in a line to its peak and then falls as 1 / sqrt(step).
    schedule.kind = ATTNCL_RATE_INVERSE_SQRT;
    schedule.d_model = 1;
    schedule.warmup = s->warmup;
    adam.learning_rate = s->peak * sqrt(schedule.warmup);
    adam.beta2 = 0.99;
    const attncl_value taken = attncl_graph_index_input(g, "taken", 0, NULL, 0, INT32_MAX);
    const attncl_value rates = attncl_adam_rates(
        g, &adam, attncl_learning_rate(g, &schedule, adam.learning_rate, taken), taken);
    for (size_t i = 0; i < n && attncl_model_tensor_at(model, i, &tensor) == ATTNCL_OK; i++) {
        attncl_adam_values values = ATTNCL_ADAM_VALUES_INIT;
        const attncl_shape shape = tensor.shape;
        values.param = params[i];
        snprintf(name, sizeof name, "mean.%s", tensor.name);
        values.exp_avg = attncl_graph_state(g, name, ATTNCL_F32, shape.rank, shape.dim);
        snprintf(name, sizeof name, "mean_square.%s", tensor.name);
        values.exp_avg_sq = attncl_graph_state(g, name, ATTNCL_F32, shape.rank, shape.dim);
        attncl_adam_update(g, &adam, rates, clipped[i], &values);
    }
    return attncl_graph_compile(g, NULL);
}

static attncl_status take_step(const struct sizes *s, attncl_graph *g, int32_t taken,
                               uint32_t *seed)
{
    const size_t bytes = (size_t)(s->T * s->B) * sizeof tokens[0];

    draw(s, seed);
    attncl_status status = attncl_graph_write(g, "tokens", tokens, bytes);
    if (status == ATTNCL_OK)
        status = attncl_graph_write(g, "targets", targets, bytes);
    if (status == ATTNCL_OK)
        status = attncl_graph_write(g, "taken", &taken, sizeof taken);
    return status == ATTNCL_OK ? attncl_graph_run(g) : status;
}

// path: of the model file, NULL: none.  fall_ret: the last loss as a part of the first.
static attncl_status train(attncl_model *model, const struct sizes *s, attncl_graph *g,
                           const char *path, double *fall_ret)
{
    const char *const metadata[] = {"attncl.vocab", vocabulary, NULL};
    float loss = 0, first = 0;
    uint32_t seed = 1;

    attncl_status status = build(model, s, g);
    for (int32_t i = 0; i < s->steps && status == ATTNCL_OK; i++) {
        const int is_last = i + 1 == s->steps;
        status = take_step(s, g, i, &seed);
        if (status == ATTNCL_OK && (i % REPORT_EVERY == 0 || is_last)) {
            status = attncl_graph_read(g, "loss", &loss, sizeof loss);
            first = i == 0 ? loss : first;
            printf("step %d: loss %.4f\n", (int)i, (double)loss);
            fflush(stdout);
        }
        if (status == ATTNCL_OK && path && ((i + 1) % SAVE_EVERY == 0 || is_last))
            status = attncl_model_save(model, path, metadata);
    }
    *fall_ret = first > 0 ? loss / first : 1;
    return status;
}

int main(int argc, char **argv)
{
    struct sizes s = argc > 1 ? large : small;
    attncl_context *context = NULL;
    attncl_model *model = NULL;
    attncl_graph *g = NULL;
    double fall = 1;

    s.steps = argc > 3 ? atoi(argv[3]) : s.steps;
    if (argc == 2 || argc > 4 || s.steps < 1) {
        fprintf(stderr, "usage: train [TEXT MODEL [STEPS]]\n");
        return EXIT_FAILURE;
    }
    if (!read_text(argc > 1 ? argv[1] : NULL, s.T))
        return EXIT_FAILURE;
    attncl_status status = attncl_context_create(NULL, &context); // of the device ATTNCL_DEVICE
    if (status == ATTNCL_OK)
        status = create_model(context, &s, &model);
    if (status == ATTNCL_OK)
        status = attncl_graph_create(context, &g);
    if (status == ATTNCL_OK)
        status = train(model, &s, g, argc > 1 ? argv[2] : NULL, &fall);
    if (status != ATTNCL_OK) {
        fprintf(stderr, "train: %s\n", attncl_last_error());
    } else if (argc == 1 && !(fall < 0.25)) {
        fprintf(stderr, "train: the loss fell to %.2f of the first only\n", fall);
        status = ATTNCL_ERR_STATE;
    }
    attncl_graph_destroy(g); // before the model, whose weights it uses
    attncl_model_destroy(model);
    if (attncl_context_destroy(context) != ATTNCL_OK)
        status = ATTNCL_ERR_STATE;
    return status == ATTNCL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
