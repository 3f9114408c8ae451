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
// learns a sentence.

#include <math.h>
#include <string.h>

#include "example.h"

static const char sentence[] = "in the beginning was the word and the word was read by a machine ";

// Positions and sequences of a batch, channels, hidden channels, layers, window, steps, and the
// steps in which the learning rate rises to its peak.
struct sizes {
    int64_t T, B, C, F, layers, window, steps, warmup;
    double peak;
};
static const struct sizes small = {24, 8, 32, 64, 1, 8, 60, 10, 0.02};
static const struct sizes large = {128, 16, 128, 256, 4, 32, 2000, 200, 0.004};

enum { MAX_LAYERS = 4, MAX_PARAMS = 5 + 17 * MAX_LAYERS, SAVE_EVERY = 100, REPORT_EVERY = 20 };

struct param {
    char name[64];
    int rank;
    int64_t dim[2];
    attncl_tensor *tensor;
};

struct trainer {
    struct sizes size;
    const char *model; // null: none is written
    size_t n_text;     // characters that it trains on
    unsigned char *text;
    int32_t token_of[128]; // of each character
    char vocabulary[128];  // and back
    int64_t n_vocab;

    attncl_context *context;
    attncl_graph *graph;
    struct param params[MAX_PARAMS];
    attncl_value weights[MAX_PARAMS];
    int n_params;
    attncl_status status; // of making the parameters
    uint32_t seed;
};

// -- the model

// The next parameter, [rows, columns] or [columns] when rows is 0: uniform in middle +- spread.  Names are
// those of the PyTorch model (docs/model-files.md).
static attncl_value param(struct trainer *t, const char *layer, const char *name, int64_t rows,
                          int64_t columns, float middle, float spread)
{
    struct param *p = &t->params[t->n_params];
    const size_t n = (size_t)((rows ? rows : 1) * columns);
    float *data = (float *)malloc(n * sizeof *data);

    if (!data || t->status != ATTNCL_OK) {
        t->status = t->status != ATTNCL_OK ? t->status : ATTNCL_ERR_NO_MEMORY;
        free(data);
        return attncl_value_none();
    }
    snprintf(p->name, sizeof p->name, "%s%s", layer, name);
    p->rank = rows ? 2 : 1;
    p->dim[0] = rows ? rows : columns;
    p->dim[1] = columns;
    example_fill(data, n, spread, &t->seed);
    for (size_t i = 0; i < n; i++)
        data[i] += middle;
    t->status =
        attncl_tensor_create(t->context, ATTNCL_F32, p->rank, p->dim, ATTNCL_F32, data, &p->tensor);
    free(data);
    if (t->status != ATTNCL_OK)
        return attncl_value_none();
    t->weights[t->n_params] = attncl_graph_weight(t->graph, p->tensor);
    return t->weights[t->n_params++];
}

static attncl_value norm(struct trainer *t, const char *layer, const char *name, attncl_value x)
{
    char weight[32], bias[32];

    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    const attncl_value w = param(t, layer, weight, 0, t->size.C, 1, 0);
    return attncl_layer_norm(t->graph, x, w, param(t, layer, bias, 0, t->size.C, 0, 0), 1e-5f);
}

// x + AFT(norm(x)), then y + FFN(norm(y))
static attncl_value block(struct trainer *t, int64_t index, attncl_value x)
{
    const int64_t T = t->size.T, C = t->size.C, F = t->size.F;
    const float spread = 1 / sqrtf((float)C);
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    attncl_aft_params aft = ATTNCL_AFT_PARAMS_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    attncl_ffn_params ffn = ATTNCL_FFN_PARAMS_INIT;
    char layer[32];

    snprintf(layer, sizeof layer, "encoder.layers.%d.", (int)index);
    desc.window = t->size.window;
    desc.causal = 1;
    in.query = in.key = in.value = norm(t, layer, "norm_self_attn", x);
    in.residual = x;
    aft.query_weight = param(t, layer, "self_attn.query.weight", C, C, 0, spread);
    aft.query_bias = param(t, layer, "self_attn.query.bias", 0, C, 0, 0);
    aft.key_weight = param(t, layer, "self_attn.key.weight", C, C, 0, spread);
    aft.key_bias = param(t, layer, "self_attn.key.bias", 0, C, 0, 0);
    aft.value_weight = param(t, layer, "self_attn.value.weight", C, C, 0, spread);
    aft.value_bias = param(t, layer, "self_attn.value.bias", 0, C, 0, 0);
    aft.pos_bias = param(t, layer, "self_attn.pos_bias", T, T, 0, 0);
    aft.output_weight = param(t, layer, "self_attn.output.weight", C, C, 0, spread);
    aft.output_bias = param(t, layer, "self_attn.output.bias", 0, C, 0, 0);
    const attncl_value y = attncl_aft(t->graph, &desc, &aft, &in);

    const attncl_value z = norm(t, layer, "norm_ff", y);
    ffn.layer1_weight = param(t, layer, "feed_forward.layer1.weight", F, C, 0, spread);
    ffn.layer1_bias = param(t, layer, "feed_forward.layer1.bias", 0, F, 0, 0);
    ffn.layer2_weight = param(t, layer, "feed_forward.layer2.weight", C, F, 0, spread);
    ffn.layer2_bias = param(t, layer, "feed_forward.layer2.bias", 0, C, 0, 0);
    return attncl_feed_forward(t->graph, &ffn, ATTNCL_RELU, z, y);
}

static attncl_value model_loss(struct trainer *t)
{
    const int64_t dim[] = {t->size.T, t->size.B}, C = t->size.C, V = t->n_vocab;
    attncl_graph *g = t->graph;
    const float spread = 1 / sqrtf((float)C);
    const attncl_value tokens = attncl_graph_index_input(g, "tokens", 2, dim, 0, V);
    const attncl_value targets = attncl_graph_index_input(g, "targets", 2, dim, 0, V);
    const attncl_value embedding = param(t, "", "src_embed.linear.weight", V, C, 0, spread);
    const attncl_value table = attncl_sinusoid(g, t->size.T, C);

    attncl_value x = attncl_embedding(g, tokens, embedding, sqrtf((float)C));
    x = attncl_add_positions(g, x, table, ATTNCL_LAYOUT_TIME_FIRST);
    for (int64_t i = 0; i < t->size.layers; i++)
        x = block(t, i, x);
    x = norm(t, "", "encoder.norm", x);
    const attncl_value weight = param(t, "", "generator.projection.weight", V, C, 0, spread);
    const attncl_value bias = param(t, "", "generator.projection.bias", 0, V, 0, 0);
    return attncl_cross_entropy(g, attncl_linear(g, x, weight, bias), targets, ATTNCL_REDUCE_MEAN,
                                -1);
}

// -- training

// A mistake made here is reported by attncl_graph_compile().
static void build(struct trainer *t)
{
    attncl_graph *g = t->graph;
    attncl_adam_desc adam = ATTNCL_ADAM_DESC_INIT;
    attncl_schedule_desc schedule = ATTNCL_SCHEDULE_DESC_INIT;
    attncl_value gradients[MAX_PARAMS], clipped[MAX_PARAMS];
    const attncl_value loss = model_loss(t);
    const size_t n = (size_t)t->n_params;

    attncl_graph_gradient(g, 1, &loss, NULL, n, t->weights, gradients);
    attncl_clip_grad_norm(g, n, gradients, 1.0, ATTNCL_CLIP_EPSILON, clipped);
    attncl_graph_output(g, "loss", loss);

    // The rate rises in a line to its peak and then falls as 1 / sqrt(step).
    schedule.kind = ATTNCL_RATE_INVERSE_SQRT;
    schedule.d_model = 1;
    schedule.warmup = (double)t->size.warmup;
    adam.learning_rate = t->size.peak * sqrt(schedule.warmup);
    adam.beta2 = 0.99;
    const attncl_value taken = attncl_graph_index_input(g, "taken", 0, NULL, 0, INT32_MAX);
    const attncl_value rates = attncl_adam_rates(g, &adam, &schedule, taken);
    for (size_t i = 0; i < n; i++) {
        const struct param *p = &t->params[i];
        attncl_adam_values values = ATTNCL_ADAM_VALUES_INIT;
        char name[96];
        values.param = t->weights[i];
        snprintf(name, sizeof name, "mean.%s", p->name);
        values.exp_avg = attncl_graph_state(g, name, ATTNCL_F32, p->rank, p->dim);
        snprintf(name, sizeof name, "mean_square.%s", p->name);
        values.exp_avg_sq = attncl_graph_state(g, name, ATTNCL_F32, p->rank, p->dim);
        attncl_adam_update(g, &adam, rates, clipped[i], &values);
    }
}

// B windows of the text and the characters after theirs: [T, B].
static void draw(struct trainer *t, int32_t *tokens, int32_t *targets)
{
    const size_t T = (size_t)t->size.T, B = (size_t)t->size.B;

    for (size_t b = 0; b < B; b++) {
        t->seed = t->seed * 1664525u + 1013904223u;
        const size_t start = (size_t)((t->n_text - T) * (double)(t->seed >> 8) / 16777216.0);
        for (size_t i = 0; i < T; i++) {
            tokens[i * B + b] = t->token_of[t->text[start + i]];
            targets[i * B + b] = t->token_of[t->text[start + i + 1]];
        }
    }
}

static attncl_status take_step(struct trainer *t, int32_t taken, int32_t *tokens, int32_t *targets)
{
    const size_t bytes = (size_t)(t->size.T * t->size.B) * sizeof *tokens;
    attncl_status status;

    draw(t, tokens, targets);
    status = attncl_graph_write(t->graph, "tokens", tokens, bytes);
    if (status == ATTNCL_OK)
        status = attncl_graph_write(t->graph, "targets", targets, bytes);
    if (status == ATTNCL_OK)
        status = attncl_graph_write(t->graph, "taken", &taken, sizeof taken);
    return status == ATTNCL_OK ? attncl_graph_run(t->graph) : status;
}

static attncl_status read_params(struct trainer *t, float **data, attncl_array *arrays)
{
    attncl_status status = ATTNCL_OK;

    for (int i = 0; i < t->n_params && status == ATTNCL_OK; i++) {
        const struct param *p = &t->params[i];
        const size_t bytes = (size_t)(p->dim[0] * (p->rank == 2 ? p->dim[1] : 1)) * sizeof *data[i];
        data[i] = (float *)malloc(bytes);
        if (!data[i])
            return ATTNCL_ERR_NO_MEMORY;
        status = attncl_tensor_read(p->tensor, data[i], bytes);
        arrays[i].name = p->name;
        arrays[i].dtype = ATTNCL_F32;
        arrays[i].rank = p->rank;
        memcpy(arrays[i].dim, p->dim, sizeof p->dim);
        arrays[i].data = data[i];
        arrays[i].bytes = bytes;
    }
    return status;
}

// The weights and what they are the weights of.  A file of that name is replaced in one step.
static attncl_status save(struct trainer *t)
{
    static attncl_array arrays[MAX_PARAMS];
    float *data[MAX_PARAMS] = {NULL};
    char config[256];
    const char *const metadata[] = {"attncl.arch", "lm", "attncl.config", config, "attncl.vocab",
                                    t->vocabulary, NULL};

    snprintf(config, sizeof config,
             "{\"layer\": \"aft_local\", \"d_model\": %d, \"n_layers\": %d, \"seq_len\": %d, "
             "\"local_window_size\": %d, \"d_ff\": %d, \"n_vocab\": %d}",
             (int)t->size.C, (int)t->size.layers, (int)t->size.T, (int)t->size.window,
             (int)t->size.F, (int)t->n_vocab);
    attncl_status status = read_params(t, data, arrays);
    if (status == ATTNCL_OK)
        status = attncl_safetensors_write(t->model, arrays, (size_t)t->n_params, metadata);
    for (int i = 0; i < t->n_params; i++)
        free(data[i]);
    return status;
}

// fall_ret: the last loss as a part of the first.
static attncl_status train(struct trainer *t, double *fall_ret)
{
    const size_t count = (size_t)(t->size.T * t->size.B);
    int32_t *tokens = (int32_t *)malloc(2 * count * sizeof *tokens);
    float loss = 0, first = 0;

    if (!tokens)
        return ATTNCL_ERR_NO_MEMORY;
    build(t);
    attncl_status status = t->status;
    if (status == ATTNCL_OK)
        status = attncl_graph_compile(t->graph, NULL);
    for (int32_t i = 0; i < t->size.steps && status == ATTNCL_OK; i++) {
        const int is_last = i + 1 == t->size.steps;
        status = take_step(t, i, tokens, tokens + count);
        if (status == ATTNCL_OK && (i % REPORT_EVERY == 0 || is_last)) {
            status = attncl_graph_read(t->graph, "loss", &loss, sizeof loss);
            first = i == 0 ? loss : first;
            printf("step %d: loss %.4f\n", (int)i, (double)loss);
            fflush(stdout);
        }
        if (status == ATTNCL_OK && t->model && ((i + 1) % SAVE_EVERY == 0 || is_last))
            status = save(t);
    }
    free(tokens);
    *fall_ret = first > 0 ? loss / first : 1;
    return status;
}

// -- the text

static int is_usable(struct trainer *t, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++) {
        if (t->text[i] == 0 || t->text[i] > 127) {
            fprintf(stderr, "train: %s: byte %zu is %d, not ASCII\n", path, i, (int)t->text[i]);
            return 0;
        }
        t->token_of[t->text[i]] = 1;
    }
    if (t->n_text <= (size_t)t->size.T)
        fprintf(stderr, "train: %s: %zu characters to train on, at least %d are needed\n", path,
                t->n_text, (int)t->size.T + 1);
    return t->n_text > (size_t)t->size.T;
}

// The text and its vocabulary, in the order of the characters' codes.
static int read_text(struct trainer *t, const char *path)
{
    static unsigned char text[4 << 20]; // a longer text is cut
    size_t n = sizeof sentence - 1;

    memcpy(text, sentence, n);
    if (path) {
        FILE *file = fopen(path, "rb");
        n = file ? fread(text, 1, sizeof text, file) : 0;
        const int failed = !file || ferror(file);
        if (file)
            fclose(file);
        if (failed) {
            fprintf(stderr, "train: %s cannot be read\n", path);
            return 0;
        }
    }
    t->text = text;
    t->n_text = path ? n / 10 * 9 : n;
    if (!is_usable(t, n, path ? path : "the sentence"))
        return 0;
    for (int c = 1; c < 128; c++) {
        if (t->token_of[c]) {
            t->token_of[c] = (int32_t)t->n_vocab;
            t->vocabulary[t->n_vocab++] = (char)c;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    static struct trainer t;
    attncl_status status;
    double fall = 0;

    if (argc == 2 || argc > 4) {
        fprintf(stderr, "usage: train [TEXT MODEL [STEPS]]\n");
        return EXIT_FAILURE;
    }
    t.size = argc > 1 ? large : small;
    t.size.steps = argc > 3 ? atoi(argv[3]) : t.size.steps;
    if (t.size.steps < 1) {
        fprintf(stderr, "train: %s steps, at least 1 is needed\n", argv[3]);
        return EXIT_FAILURE;
    }
    t.model = argc > 1 ? argv[2] : NULL;
    t.seed = 1;
    if (!read_text(&t, argc > 1 ? argv[1] : NULL))
        return EXIT_FAILURE;
    status = attncl_context_create(NULL, &t.context); // ATTNCL_DEVICE names another device
    if (status == ATTNCL_OK)
        status = attncl_graph_create(t.context, &t.graph);
    if (status == ATTNCL_OK)
        status = train(&t, &fall);
    if (status != ATTNCL_OK) {
        fprintf(stderr, "train: %s\n", attncl_last_error());
    } else if (!t.model && !(fall < 0.25)) {
        fprintf(stderr, "train: the loss fell to %.2f of the first only\n", fall);
        status = ATTNCL_ERR_STATE;
    }
    attncl_graph_destroy(t.graph); // before the tensors it uses
    for (int i = 0; i < t.n_params; i++)
        attncl_tensor_destroy(t.params[i].tensor);
    if (attncl_context_destroy(t.context) != ATTNCL_OK)
        status = ATTNCL_ERR_STATE;
    return status == ATTNCL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
