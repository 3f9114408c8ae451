// SPDX-License-Identifier: MIT
//
// Serving many texts with one decoder.  Prompts wait in a queue; a slot whose text has ended takes the next one while the
// others go on, and a step reads the weights once for all of them.  What a prompt shares with the beginning of any
// slot's text is copied from there.
//
//     batch MODEL.safetensors "Once upon a time" "Once upon a hill" ...
//
// The texts are continued greedily.  A model without a tokenizer takes bytes as token numbers, and so does the one with
// random weights that stands in for a missing MODEL.

#include <attncl/attncl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SLOTS = 4, N_NEW = 16, MAX_TOKENS = 512 };

struct text {
    int32_t tokens[MAX_TOKENS]; // of the prompt, then those drawn
    int n_prompt, n, end;
};

struct server {
    attncl_model *model;
    attncl_tokenizer *tokenizer; // NULL: none
    attncl_decoder *decoder;
    int64_t limit, vocabulary;
    float *logits; // [N_SLOTS, vocabulary]
    struct text *texts;
    int n_texts, n_started, n_steps, n_reused;
    struct text
        *slots[N_SLOTS]; // the last text of each, which has ended where n == end; NULL: none yet
};

static attncl_status open_server(struct server *s, attncl_context *context, const char *path)
{
    const char *small = "{\"layer\": \"transformer\", \"heads\": 2, \"d_model\": 32, \"d_ff\": 64, "
                        "\"n_layers\": 2, \"n_vocab\": 128, \"max_len\": 64}";
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    attncl_status status = path ? attncl_model_open(context, path, NULL, &s->model)
                                : attncl_model_create(context, "lm", small, 1, &s->model);
    if (status != ATTNCL_OK)
        return status;
    const char *rules = attncl_model_metadata(s->model, "attncl.tokenizer");
    if (rules)
        status = attncl_tokenizer_create(rules, strlen(rules), &s->tokenizer);
    s->limit = attncl_model_decoder_limit(s->model);
    if (s->limit == 0 || s->limit > MAX_TOKENS)
        s->limit = MAX_TOKENS;
    options.slot_limit = s->limit;
    if (status == ATTNCL_OK)
        status = attncl_decoder_create(s->model, N_SLOTS, &options, &s->decoder);
    s->vocabulary = attncl_decoder_vocabulary(s->decoder);
    s->logits = (float *)calloc(N_SLOTS * (size_t)s->vocabulary + 1, sizeof *s->logits);
    return status == ATTNCL_OK && !s->logits ? ATTNCL_ERR_NO_MEMORY : status;
}

static void close_server(struct server *s)
{
    attncl_decoder_destroy(s->decoder);
    attncl_tokenizer_destroy(s->tokenizer);
    attncl_model_destroy(s->model);
    free(s->logits);
    free(s->texts);
}

static attncl_status encode(struct server *s, const char *prompt, struct text *t)
{
    const int64_t most = s->limit > N_NEW ? s->limit - N_NEW : 1;
    const int32_t *tokens = NULL;
    size_t n = strlen(prompt);

    if (s->tokenizer) {
        const attncl_status status =
            attncl_tokenizer_encode(s->tokenizer, prompt, n, 1, &tokens, &n);
        if (status != ATTNCL_OK)
            return status;
    }
    t->n = t->n_prompt = (int)((int64_t)n < most ? (int64_t)n : most);
    t->end = t->n + N_NEW < s->limit ? t->n + N_NEW : (int)s->limit;
    for (int i = 0; i < t->n; i++)
        t->tokens[i] =
            tokens ? tokens[i] : (int32_t)((unsigned char)prompt[i] % (unsigned)s->vocabulary);
    return ATTNCL_OK;
}

static int32_t likeliest(const float *logits, int64_t n)
{
    int32_t best = 0;
    for (int64_t c = 1; c < n; c++)
        best = logits[c] > logits[best] ? (int32_t)c : best;
    return best;
}

// How many tokens of a prompt a slot has taken as its first ones.
static int shared_tokens(const struct server *s, int slot, const struct text *t)
{
    const int n = (int)attncl_decoder_slot_position(s->decoder, slot);
    int shared = 0;
    // The last token is left, whose scores are wanted.
    while (s->slots[slot] && shared < n && shared < t->n - 1 &&
           s->slots[slot]->tokens[shared] == t->tokens[shared])
        shared++;
    return shared;
}

// A text begins in a slot, with what another one, or the text before it, has computed of its prompt.
static attncl_status start(struct server *s, int slot, struct text *t)
{
    int from = slot, n = shared_tokens(s, slot, t);

    for (int i = 0; i < N_SLOTS; i++)
        if (shared_tokens(s, i, t) > n) {
            from = i;
            n = shared_tokens(s, i, t);
        }
    attncl_status status = from == slot ? attncl_decoder_slot_truncate(s->decoder, slot, n)
                                        : attncl_decoder_slot_copy(s->decoder, slot, from, n);
    if (status == ATTNCL_ERR_ARGUMENT) { // layers with a window have lost what is behind n tokens
        n = 0;
        status = attncl_decoder_slot_truncate(s->decoder, slot, n);
    }
    if (status == ATTNCL_OK)
        status = attncl_decoder_slot_prefill(s->decoder, slot, t->n - n, t->tokens + n, s->logits);
    if (status == ATTNCL_OK)
        t->tokens[t->n++] = likeliest(s->logits, s->vocabulary);
    s->slots[slot] = t;
    s->n_reused += n;
    return status;
}

// A token more for each text that has not ended.
static attncl_status step(struct server *s)
{
    int32_t tokens[N_SLOTS];
    attncl_status status;
    for (int i = 0; i < N_SLOTS; i++) {
        const struct text *t = s->slots[i];
        tokens[i] = t && t->n < t->end ? t->tokens[t->n - 1] : -1;
    }
    status = attncl_decoder_step(s->decoder, tokens, s->logits);
    for (int i = 0; i < N_SLOTS && status == ATTNCL_OK; i++)
        if (tokens[i] >= 0)
            s->slots[i]->tokens[s->slots[i]->n++] =
                likeliest(s->logits + i * s->vocabulary, s->vocabulary);
    s->n_steps++;
    return status;
}

static attncl_status serve(struct server *s)
{
    for (;;) {
        int busy = 0;
        for (int i = 0; i < N_SLOTS; i++) {
            if ((!s->slots[i] || s->slots[i]->n >= s->slots[i]->end) && s->n_started < s->n_texts) {
                const attncl_status status = start(s, i, &s->texts[s->n_started++]);
                if (status != ATTNCL_OK)
                    return status;
            }
            busy += s->slots[i] && s->slots[i]->n < s->slots[i]->end;
        }
        if (!busy && s->n_started == s->n_texts)
            return ATTNCL_OK;
        const attncl_status status = step(s);
        if (status != ATTNCL_OK)
            return status;
    }
}

static attncl_status print_texts(const struct server *s)
{
    for (int i = 0; i < s->n_texts; i++) {
        const struct text *t = &s->texts[i];
        const char *text = NULL;
        size_t bytes = 0;
        if (s->tokenizer) {
            const attncl_status status =
                attncl_tokenizer_decode(s->tokenizer, t->tokens, (size_t)t->n, 1, &text, &bytes);
            if (status != ATTNCL_OK)
                return status;
        }
        printf("%d:", i);
        if (text)
            printf(" %s", text);
        for (int k = t->n_prompt; k < t->n && !text; k++)
            printf(" %d", (int)t->tokens[k]);
        printf("\n");
    }
    printf("%d texts in %d slots: %d steps, %d tokens of prompts reused\n", s->n_texts, N_SLOTS,
           s->n_steps, s->n_reused);
    return ATTNCL_OK;
}

int main(int argc, char **argv)
{
    static const char *const few[] = {"Once upon a time", "Once upon a hill", "A",
                                      "The weather",      "The west wind",    "Once more"};
    const int n_few = (int)(sizeof few / sizeof few[0]);
    struct server s;
    attncl_context *context = NULL;

    memset(&s, 0, sizeof s);
    attncl_status status = attncl_context_create(NULL, &context);
    if (status == ATTNCL_OK)
        status = open_server(&s, context, argc > 1 ? argv[1] : NULL);
    s.n_texts = argc > 2 ? argc - 2 : n_few;
    s.texts = (struct text *)calloc((size_t)s.n_texts, sizeof *s.texts);
    if (status == ATTNCL_OK && !s.texts)
        status = ATTNCL_ERR_NO_MEMORY;
    for (int i = 0; i < s.n_texts && status == ATTNCL_OK; i++)
        status = encode(&s, argc > 2 ? argv[2 + i] : few[i], &s.texts[i]);
    if (status == ATTNCL_OK)
        status = serve(&s);
    if (status == ATTNCL_OK)
        status = print_texts(&s);
    if (status != ATTNCL_OK)
        fprintf(stderr, "batch: %s: %s\n", attncl_status_name(status), attncl_last_error());
    close_server(&s);
    attncl_context_destroy(context);
    return status == ATTNCL_OK ? 0 : 1;
}
