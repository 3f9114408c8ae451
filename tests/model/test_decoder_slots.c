// SPDX-License-Identifier: MIT
// A decoder of slots that start, pause, end, go back and take others' beginnings at random: each text's scores and tokens
// are those of a decoder for it alone.

#include <string.h>

#include "attncl/parameters.h"
#include "attncl/slots.h"
#include "model/drawing.h"
#include "support/compare.h"

enum { SLOTS = 8, LIMIT = 80, SLOT_LIMIT = 70 }; // on GPUs, keys in parts

#define LM "\"layer\": \"transformer\", "
#define LLAMA_FORM                                                                                 \
    "\"pos\": \"no_pos\", \"norm\": \"rms\", \"is_gated\": true, \"activation\": \"silu\", "       \
    "\"rope\": true, "
static const struct {
    const char *config;
    attncl_dtype type;
    double tolerance; // sums of other orders, of 16-bit states rounded to a neighbour
    int window;       // whose layers keep no more
} forms[] = {
    {LM "\"heads\": 3, \"d_ff\": 64", ATTNCL_F32, 2e-5, 0}, // fused steps, on CPUs
    {LM "\"heads\": 3, \"d_ff\": 48, \"pos\": \"learned_pos\"", ATTNCL_F16, 2e-3, 0},
    {LM LLAMA_FORM "\"heads\": 4, \"n_kv_heads\": 2, \"head_dim\": 8, \"d_ff\": 40", ATTNCL_F32,
     2e-5, 0},
    {LM LLAMA_FORM
     "\"heads\": 2, \"d_ff\": 64, \"window\": 6, \"window_layers\": [1, 0], \"softcap\": 0.8, "
     "\"logit_softcap\": 1.5, \"post_norm\": true, \"rope_width\": 8, \"rope_layers\": [0, 1]",
     ATTNCL_F32, 2e-5, 6},
    {LM "\"heads\": 3, \"d_ff\": 48, \"parallel\": true, \"window\": 5", ATTNCL_BF16, 2e-2, 5},
    {LM LLAMA_FORM
     "\"heads\": 4, \"n_kv_heads\": 2, \"head_dim\": 7, \"rope_width\": 4, \"d_ff\": 40",
     ATTNCL_Q8, 2e-2, 0},
    {LM LLAMA_FORM "\"heads\": 4, \"n_kv_heads\": 2, \"d_ff\": 40, \"window\": 11", ATTNCL_Q8, 2e-2,
     11},
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

// What a slot has taken, the scores after each token that they are known of, and the token to take next.
struct text {
    int n, end; // end: the most that n was since the slot was empty
    int32_t tokens[SLOT_LIMIT], next;
    bool known[SLOT_LIMIT], drawn[SLOT_LIMIT];
    float scores[SLOT_LIMIT][VOCABULARY];
};

struct server {
    attncl_model *model;
    attncl_decoder *slots, *alone;
    double tolerance;
    int window;
    unsigned random;
    struct text texts[SLOTS];
};

static int draw_below(struct server *s, int n)
{
    s->random = s->random * 1664525u + 1013904223u;
    return (int)((s->random >> 8) % (unsigned)n);
}

static attncl_model *create_model(const char *config)
{
    attncl_model *model = NULL;
    char text[500];

    snprintf(text, sizeof text,
             "{%s, \"d_model\": 48, \"n_layers\": 2, \"n_vocab\": %d, \"max_len\": %d}", config,
             VOCABULARY, LIMIT);
    ck_ok(attncl_model_create(test_context(), "lm", text, 5, &model));
    return model;
}

static attncl_decoder *open_slots(attncl_model *model, attncl_dtype type)
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    attncl_decoder *decoder = NULL;

    options.slot_limit = SLOT_LIMIT;
    options.state_dtype = type;
    ck_ok(attncl_decoder_create(model, SLOTS, &options, &decoder));
    ck_assert_int_eq(attncl_decoder_limit(decoder), SLOT_LIMIT);
    return decoder;
}

static void open_server(struct server *s, int form)
{
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;

    *s = (struct server){
        .tolerance = forms[form].tolerance, .window = forms[form].window, .random = (unsigned)form};
    s->model = create_model(forms[form].config);
    s->slots = open_slots(s->model, forms[form].type);
    options.state_dtype = forms[form].type;
    ck_ok(attncl_decoder_create(s->model, 1, &options, &s->alone));
}

static void close_server(struct server *s)
{
    attncl_decoder_destroy(s->alone);
    close_model(s->model, s->slots);
}

static int32_t likeliest(const float *scores)
{
    int32_t best = 0;

    for (int32_t c = 1; c < VOCABULARY; ++c)
        best = scores[c] > scores[best] ? c : best;
    return best;
}

// Tokens that were drawn are the likeliest ones, but for ties.
static void check_text(struct server *s, int slot)
{
    const struct text *t = &s->texts[slot];
    float scores[VOCABULARY];

    ck_ok(attncl_decoder_reset(s->alone));
    for (int i = 0; i < t->n; ++i) {
        if (t->drawn[i])
            ck_assert_double_ge((double)scores[t->tokens[i]],
                                (double)scores[likeliest(scores)] - 2 * s->tolerance);
        ck_ok(attncl_decoder_step(s->alone, &t->tokens[i], scores));
        if (t->known[i])
            ck_floats(t->scores[i], scores, VOCABULARY, 0, s->tolerance, "slot %d, token %d", slot,
                      i);
    }
}

static void add_token(struct text *t, int32_t token, bool drawn)
{
    t->tokens[t->n] = token;
    t->drawn[t->n] = drawn;
    t->known[t->n++] = false;
    t->end = t->n > t->end ? t->n : t->end;
}

static void set_scores(struct text *t, const float *scores)
{
    memcpy(t->scores[t->n - 1], scores, sizeof t->scores[0]);
    t->known[t->n - 1] = true;
    t->next = likeliest(scores);
}

static void prefill(struct server *s, int slot, int n)
{
    struct text *t = &s->texts[slot];
    float scores[VOCABULARY];
    int32_t tokens[SLOT_LIMIT] = {0};

    n = n < SLOT_LIMIT - t->n ? n : SLOT_LIMIT - t->n;
    for (int i = 0; i < n; ++i)
        tokens[i] = draw_below(s, VOCABULARY);
    ck_ok(attncl_decoder_slot_prefill(s->slots, slot, n, tokens, scores));
    for (int i = 0; i < n; ++i)
        add_token(t, tokens[i], false);
    set_scores(t, scores);
}

// How many tokens of a text can stay, of `kept` or all of them: layers with a window have lost what others need.
static int keep(struct server *s, int to, int from, int kept)
{
    struct text *t = &s->texts[from];
    char words[160];

    if (s->window > 0 && kept > 0 && t->end > s->window && kept < t->end - 1) {
        snprintf(words, sizeof words,
                 "n is %d, slot %d has taken %d tokens and keeps the last %d in layers with that "
                 "window: "
                 "allowed are 0 and %d to %d",
                 kept, from, t->end, s->window, t->end - 1, t->n);
        ck_fails(attncl_decoder_slot_copy(s->slots, to, from, kept), ATTNCL_ERR_ARGUMENT, words);
        ck_fails(attncl_decoder_slot_truncate(s->slots, from, kept), ATTNCL_ERR_ARGUMENT, words);
        kept = t->n < SLOT_LIMIT ? t->n : t->n - 1;
        kept = kept < t->end - 1 ? 0 : kept;
    }
    ck_ok(to == from ? attncl_decoder_slot_truncate(s->slots, to, kept)
                     : attncl_decoder_slot_copy(s->slots, to, from, kept));
    if (to != from)
        s->texts[to] = *t;
    s->texts[to].n = kept;
    s->texts[to].end = kept > 0 ? t->end : 0;
    ck_assert_int_eq(attncl_decoder_slot_position(s->slots, to), kept);
    return kept;
}

static void start_slot(struct server *s, int slot)
{
    const int from = draw_below(s, SLOTS), n = s->texts[from].n;

    if (n > 0 && from != slot) { // the beginning of another text, which goes on
        keep(s, slot, from, 1 + draw_below(s, n < SLOT_LIMIT / 2 ? n : SLOT_LIMIT / 2));
    }
    prefill(s, slot, 1 + draw_below(s, draw_below(s, 3) ? 9 : 50));
}

static void end_slot(struct server *s, int slot)
{
    const struct text *t = &s->texts[slot];

    check_text(s, slot);
    if (keep(s, slot, slot, draw_below(s, 3) ? 0 : draw_below(s, t->n)) > 0)
        prefill(s, slot, 2);
}

static void step(struct server *s)
{
    float scores[SLOTS * VOCABULARY];
    int32_t tokens[SLOTS];
    bool wanted = false;

    for (int i = 0; i < SLOTS; ++i) {
        tokens[i] = s->texts[i].n > 0 && s->texts[i].n < SLOT_LIMIT && draw_below(s, 6)
                        ? s->texts[i].next
                        : -1;
        wanted |= tokens[i] >= 0;
    }
    ck_ok(attncl_decoder_step(s->slots, tokens, scores));
    for (int i = 0; i < SLOTS && wanted; ++i) {
        if (tokens[i] < 0)
            continue;
        add_token(&s->texts[i], tokens[i], true);
        set_scores(&s->texts[i], scores + i * VOCABULARY);
        ck_assert_int_eq(attncl_decoder_slot_position(s->slots, i), s->texts[i].n);
    }
}

LOOP_TEST(texts_are_those_of_decoders_of_their_own, 0, N_FORMS)
{
    static struct server s;

    open_server(&s, _i);
    for (int round = 0; round < (on_simulator() ? 8 : 40); ++round) {
        for (int i = 0; i < SLOTS; ++i) {
            if (s.texts[i].n == 0 && draw_below(&s, 3) == 0)
                start_slot(&s, i);
            else if (s.texts[i].n == SLOT_LIMIT || (s.texts[i].n > 0 && draw_below(&s, 12) == 0))
                end_slot(&s, i);
        }
        step(&s);
    }
    for (int i = 0; i < SLOTS; ++i)
        check_text(&s, i);
    close_server(&s);
}

// A prompt leaves what other slots keep, the one beside it that is full among them; so does a copy.
TEST(neighbours_stay)
{
    static struct server s;
    int32_t tokens[SLOTS];

    open_server(&s, 0);
    for (int i = 0; i < SLOTS; i += 2)
        prefill(&s, i, SLOT_LIMIT - 1);
    for (int i = 1; i < SLOTS; i += 4)
        prefill(&s, i, 20);
    for (int i = 3; i < SLOTS; i += 4) {
        ck_ok(attncl_decoder_slot_copy(s.slots, i, i - 1, 7));
        s.texts[i] = s.texts[i - 1];
        s.texts[i].n = 7;
    }
    for (int i = 0; i < SLOTS; ++i)
        tokens[i] = i;
    float scores[SLOTS * VOCABULARY];
    ck_ok(attncl_decoder_step(s.slots, tokens, scores));
    for (int i = 0; i < SLOTS; ++i) {
        add_token(&s.texts[i], tokens[i], false);
        set_scores(&s.texts[i], scores + i * VOCABULARY);
        check_text(&s, i);
    }
    ck_assert_int_eq(attncl_decoder_position(s.slots), SLOT_LIMIT);
    close_server(&s);
}

// Copies have lost what their source had, an empty slot nothing.
TEST(windows_lose_the_beginning)
{
    enum { FORM = 3 };
    static struct server s;

    open_server(&s, FORM);
    prefill(&s, 0, 20);
    ck_assert_int_eq(keep(&s, 1, 0, 19), 19);
    ck_assert_int_eq(keep(&s, 1, 1, 18), 19); // 18 are refused
    prefill(&s, 1, 3);
    check_text(&s, 0);
    check_text(&s, 1);
    ck_assert_int_eq(keep(&s, 1, 1, 0), 0);
    prefill(&s, 1, forms[FORM].window);
    ck_assert_int_eq(keep(&s, 1, 1, 2), 2); // all are there
    prefill(&s, 1, 9);
    check_text(&s, 1);
    close_server(&s);
}

// Without scores, in a decoder of one slot, after a reset.
TEST(one_slot)
{
    static struct server s;
    const int32_t tokens[] = {3, 1, 36, -1};
    float scores[VOCABULARY];

    open_server(&s, 0);
    attncl_decoder_destroy(s.slots);
    attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
    options.slot_limit = LIMIT;
    ck_ok(attncl_decoder_create(s.model, 1, &options, &s.slots));
    ck_ok(attncl_decoder_slot_prefill(s.slots, 0, 3, tokens, NULL));
    ck_ok(attncl_decoder_reset(s.slots));
    ck_assert_int_eq(attncl_decoder_slot_position(s.slots, 0), 0);
    ck_ok(attncl_decoder_slot_prefill(s.slots, 0, 2, tokens, NULL));
    ck_ok(attncl_decoder_step(s.slots, tokens + 3, NULL));
    ck_ok(attncl_decoder_step(s.slots, tokens + 2, scores));
    for (int i = 0; i < 3; ++i)
        add_token(&s.texts[0], tokens[i], false);
    set_scores(&s.texts[0], scores);
    check_text(&s, 0);
    close_server(&s);
}

TEST(refusals)
{
    static struct server s;
    const int32_t tokens[SLOTS + 1] = {-1, 1, -2}, high[SLOTS] = {VOCABULARY}, good[SLOTS] = {0};
    int32_t drawn[SLOTS];
    const attncl_sampling likeliest_one = {sizeof likeliest_one, 0, 0, 0};
    float scores[SLOTS * VOCABULARY];

    open_server(&s, 0);
    attncl_decoder *d = s.slots;
    prefill(&s, 2, SLOT_LIMIT);
    prefill(&s, 5, 4);
    ck_fails(attncl_decoder_step(d, tokens, scores), ATTNCL_ERR_ARGUMENT,
             "the token of slot 2 is -2, allowed are 0 to 36, and -1: idle");
    ck_fails(attncl_decoder_step(d, high, scores), ATTNCL_ERR_ARGUMENT, "slot 0 is 37");
    ck_fails(attncl_decoder_step(d, good, scores), ATTNCL_ERR_STATE,
             "slot 2 has taken 70 tokens and takes at most 70, not 1 more");
    ck_fails(attncl_decoder_slot_prefill(d, 5, 67, good, NULL), ATTNCL_ERR_STATE,
             "slot 5 has taken 4 tokens and takes at most 70, not 67 more");
    ck_fails(attncl_decoder_slot_prefill(d, 1, 3, tokens, NULL), ATTNCL_ERR_ARGUMENT,
             "element 0 is -1");
    ck_fails(attncl_decoder_slot_prefill(d, 1, 0, good, NULL), ATTNCL_ERR_ARGUMENT, "0 tokens");
    ck_fails(attncl_decoder_slot_prefill(d, 8, 1, good, NULL), ATTNCL_ERR_ARGUMENT,
             "slot is 8, allowed are 0 to 7");
    ck_fails(attncl_decoder_slot_copy(d, 0, 5, 5), ATTNCL_ERR_ARGUMENT,
             "n is 5, allowed are 0 to 4, the tokens that slot 5 has taken");
    ck_fails(attncl_decoder_slot_copy(d, -1, 5, 1), ATTNCL_ERR_ARGUMENT, "slot is -1");
    ck_fails(attncl_decoder_slot_truncate(d, 5, -1), ATTNCL_ERR_ARGUMENT, "n is -1");
    ck_fails(attncl_decoder_prefill(d, 1, good, NULL), ATTNCL_ERR_UNSUPPORTED, "slot_prefill");
    ck_fails(attncl_decoder_sample(d, 1, good, &likeliest_one, drawn), ATTNCL_ERR_UNSUPPORTED,
             "draw their tokens");
    ck_fails(attncl_decoder_slot_truncate(s.alone, 0, 0), ATTNCL_ERR_STATE, "no slots");
    ck_assert_int_eq(attncl_decoder_slot_position(d, 8), 0);
    ck_assert_int_eq(attncl_decoder_slot_position(s.alone, 0), 0);
    ck_assert_int_eq(attncl_decoder_slot_position(d, 5), 4); // nothing has changed
    check_text(&s, 2);
    prefill(&s, 5, 1);
    check_text(&s, 5);
    close_server(&s);
}

TEST(refused_decoders)
{
    static const struct {
        const char *config;
        int64_t window, slot_limit;
        const char *words;
    } wrong[] = {
        {"\"layer\": \"gmlp\", \"seq_len\": 40, \"d_ffn\": 40", 0, 9, "layer gmlp has no slots"},
        {"\"layer\": \"aft_full\", \"seq_len\": 40, \"d_ff\": 40", 0, 9, "layer aft_full"},
        {"\"layer\": \"feedback\", \"heads\": 3, \"d_ff\": 40", 0, 9, "layer feedback has"},
        {"\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40", 0, 81,
         "slot_limit is 81, allowed are 0 to 80"},
        {"\"layer\": \"transformer\", \"heads\": 3, \"d_ff\": 40", 4, 9,
         "window is 4 and slot_limit is 9: slots have no window"},
    };

    for (size_t i = 0; i < COUNT_OF(wrong); ++i) {
        attncl_decoder_options options = ATTNCL_DECODER_OPTIONS_INIT;
        attncl_decoder *decoder = NULL;
        attncl_model *model = create_model(wrong[i].config);

        options.window = wrong[i].window;
        options.slot_limit = wrong[i].slot_limit;
        ck_fails(attncl_decoder_create(model, 2, &options, &decoder),
                 i < 3 ? ATTNCL_ERR_UNSUPPORTED : ATTNCL_ERR_ARGUMENT, wrong[i].words);
        ck_assert_ptr_null(decoder);
        attncl_model_destroy(model);
    }
}

FIXTURE_ONCE(device_up, device_down);
