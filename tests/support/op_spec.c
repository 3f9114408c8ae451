// SPDX-License-Identifier: MIT
//
// The tests of op specs: one graph for each case and size, and what must come out of it.

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "accuracy/table.h"
#include "base/quantised.h"
#include "support/op_test.h"
#include "support/spec_point.h"

// The op as a graph, with the arrays of the problem.
static struct op_graph graph;

static void take_arrays(const struct spec_point *p)
{
    graph.n_in = p->n_in;
    graph.n_out = p->n_out;
    graph.wanted = p->wanted;
    memcpy(graph.in, p->in, sizeof p->in);
    memcpy(graph.out, p->out, sizeof p->out);
    memcpy(graph.dy, p->dy, sizeof p->dy);
}

// Inputs are views where the op takes views, of 16-bit types, or copies them.
static void fill(struct spec_point *p)
{
    spec_fill(p);
    for (int i = 0; i < p->n_in && p->view; ++i)
        if (p->in[i] && p->in[i]->rank > 0 && !(p->state >> i & 1) &&
            !attncl__is_quantised(p->in[i]->dtype))
            p->in[i]->as_view = !attncl__is_16_bit(p->in[i]->dtype) ||
                                (graph.cls && attncl__op_inputs(graph.cls, STRIDED) >> i & 1);
}

// What the device gives the second time must have the same bits.
static void check_same(const struct spec_point *p, const char *name, const struct host *first,
                       const struct host *second)
{
    if (first && memcmp(first->data, second->data, (size_t)first->count * sizeof first->data[0]))
        spec_wrong(p, "%s is not the same twice", name);
}

// Reads a result and compares it, with what is expected and with *last, which becomes it.
static void check_result(const struct spec_point *p, const struct spec_expected *e,
                         enum spec_result which, int i, struct host **last)
{
    static const char *const prefixes[] = {"out", "in", "dx"};
    const char *const name = which == SPEC_OUT ? p->out_slot[i].name : p->in_slot[i].name;
    struct host *got = host_like(which == SPEC_OUT ? p->out[i] : p->in[i]);

    if (op_graph_read(&graph, prefixes[which], i, got) != ATTNCL_OK) {
        spec_wrong(p, "%s is not read: %s", name, attncl_last_error());
        return;
    }
    spec_compare(p, e, which, i, got);
    check_same(p, name, *last, got);
    *last = got;
}

// Runs the graph with what p->in holds; `repeat`: twice, with the same bits.
static void check_run(const struct spec_point *p, bool repeat)
{
    struct host *last[3][SPEC_MAX_IN] = {{NULL}};
    struct spec_expected e;

    spec_expect(p, &e);
    take_arrays(p);
    for (int pass = 0; pass <= repeat; ++pass) {
        if (op_graph_run(&graph) != ATTNCL_OK) {
            spec_wrong(p, "does not run: %s", attncl_last_error());
            return;
        }
        for (int i = 0; i < p->n_out; ++i)
            if (e.out[i])
                check_result(p, &e, SPEC_OUT, i, &last[SPEC_OUT][i]);
        for (int i = 0; i < p->n_in; ++i) {
            if (e.state[i])
                check_result(p, &e, SPEC_STATE, i, &last[SPEC_STATE][i]);
            if (p->wanted >> i & 1)
                check_result(p, &e, SPEC_DX, i, &last[SPEC_DX][i]);
        }
    }
}

static bool open_graph(struct spec_point *p)
{
    char text[OP_GRAPH_TEXT_BYTES];

    fill(p);
    take_arrays(p);
    if (op_graph_open(&graph, p->c->params) != ATTNCL_OK)
        spec_wrong(p, "does not compile: %s", attncl_last_error());
    else if (!op_graph_has_shapes(&graph, text))
        spec_wrong(p, "%s", text);
    else
        return true;
    op_graph_close(&graph);
    return false;
}

// -- the tests

static bool has(const struct spec_point *p, attncl_dtype dtype)
{
    for (int i = 0; i < p->n_in; ++i)
        if (p->in_slot[i].present && p->in_slot[i].dtype == dtype)
            return true;
    return false;
}

static void check_all_data(struct spec_point *p)
{
    const unsigned all = p->c->data ? p->c->data : p->spec->data, others = ~(MASK_SPARSE - 1u);
    // Strides and data are apart: results of smoke sizes from views are compared for one kind.
    const bool one = p->view && !p->wanted && !test_has_full_sizes();
    const unsigned data = NORMAL | (one         ? 0
                                    : p->wanted ? all & (others | p->spec->grad_data)
                                                : all);
    const unsigned idle = (has(p, ATTNCL_I32) ? 0 : INT_ENDS) |
                          (has(p, ATTNCL_U8) ? 0 : MASK_SPARSE | MASK_LAST | MASK_NONE);

    p->kind = NORMAL;
    const bool open = open_graph(p);
    for (unsigned kind = NORMAL; open && kind < END_OF_DATA; kind <<= 1) {
        if (!(data & ~idle & kind))
            continue;
        p->kind = kind;
        fill(p);
        check_run(p, kind == NORMAL);
    }
    p->kind = NORMAL;
    if (open)
        op_graph_close(&graph);
}

// How many sizes of a case are tried.
static int most_sizes(void)
{
    return test_has_few_sizes() ? 1 : on_simulator() ? 2 : INT_MAX;
}

// Gradients of smoke sizes: dense and as views in turn.
static void check_sizes(struct spec_point *p)
{
    const bool full = test_has_full_sizes(), both = full || !p->wanted;
    const int most = most_sizes();

    for (int f = 0; f <= full; ++f)
        for (int k = 0; k < most && spec_sizes_at(spec_sizes_text(p, f), k, &p->sizes); ++k)
            for (int view = 0; view < 2; ++view) {
                p->view = view;
                if (both || k % 2 == view)
                    check_all_data(p);
            }
}

static void check_gradients(struct spec_point *p)
{
    p->wanted = spec_wanted(p);
    if (p->wanted)
        check_sizes(p);
}

// NaN and infinity in the first, a middle and the last element of each input, and of dy with gradients.  But for full
// sizes, each infinity has one place, and with gradients or few sizes NaN too.
static void check_special_size(struct spec_point *p)
{
    static const double specials[] = {NAN, INFINITY, -INFINITY};
    const int n_in = p->n_in, n_slots = n_in + (p->wanted ? p->n_out : 0);
    const bool full = test_has_full_sizes(), few = p->wanted || test_has_few_sizes();

    if (!open_graph(p))
        return;
    for (int i = 0; i < n_slots; ++i)
        for (int s = 0; s < 9; ++s) {
            fill(p);
            struct host *const h = i < n_in ? p->in[i] : p->dy[i - n_in];
            const bool runs = full || s % 4 == 0 || (s % 3 == 0 && !few);
            if (!h || h->dtype != ATTNCL_F32 || h->count == 0 || !runs)
                continue;
            h->data[s / 3 * (h->count - 1) / 2] = specials[s % 3];
            snprintf(p->note, sizeof p->note, "%g in %s%s, place %d", specials[s % 3],
                     i < n_in ? "" : "d",
                     i < n_in ? p->in_slot[i].name : p->out_slot[i - n_in].name, s / 3);
            check_run(p, false);
            p->note[0] = 0;
        }
    op_graph_close(&graph);
}

static void check_specials(struct spec_point *p)
{
    const char *const text = p->c->special ? p->c->special : p->spec->special;
    // With few sizes, of the first case that has any.
    const int most = test_has_few_sizes() && spec_tally.n_compared > 0 ? 0 : most_sizes();

    for (int k = 0; k < most && spec_sizes_at(text, k, &p->sizes); ++k)
        check_special_size(p);
}

static void check_special_gradients(struct spec_point *p)
{
    p->wanted = p->spec->ref_bwd ? spec_wanted(p) : 0;
    if (p->wanted)
        check_specials(p);
}

// The status of an op with these inputs, which are zeros.
static attncl_status try(const struct spec_point *p, struct host *const *in)
{
    take_arrays(p);
    memcpy(graph.in, in, sizeof p->in);
    const attncl_status status = op_graph_open(&graph, p->c->params);
    op_graph_close(&graph);
    return status;
}

static int uses(const struct spec_point *p, char letter)
{
    int n = 0;

    for (int i = 0; i < p->n_in; ++i)
        n += p->in_slot[i].present && strchr(p->in_slot[i].axes, letter);
    return n;
}

static bool is_used(const struct spec_point *p, char letter)
{
    for (int i = 0; i < p->n_out; ++i)
        if (p->out_slot[i].present && strchr(p->out_slot[i].axes, letter))
            return true;
    return uses(p, letter) > 0;
}

// The first size that has an axis of this letter.
static bool find_axis(struct spec_point *p, char letter)
{
    for (int k = 0; spec_sizes_at(spec_sizes_text(p, false), k, &p->sizes); ++k)
        if (p->sizes.rank[letter - 'A'] > 0 && is_used(p, letter))
            return true;
    return false;
}

static void check_empty(struct spec_point *p)
{
    const struct op_spec *const s = p->spec;

    for (char letter = 'A'; letter <= 'Z'; ++letter) {
        if (!find_axis(p, letter))
            continue;
        p->sizes.dim[letter - 'A'][0] = 0;
        if (s->nonzero && strchr(s->nonzero, letter)) {
            fill(p);
            if (try(p, p->in) != ATTNCL_ERR_SHAPE)
                spec_wrong(p, "%c = 0 gives %s", letter, attncl_last_error());
            continue;
        }
        for (int gradients = 0; gradients <= (s->ref_bwd != NULL); ++gradients) {
            p->wanted = gradients ? spec_wanted(p) : 0;
            if (open_graph(p)) {
                check_run(p, false);
                op_graph_close(&graph);
            }
        }
    }
}

static bool has_word_of(const char *text, const char *word, size_t n)
{
    for (const char *at = text; (at = strchr(at, *word)); ++at)
        if (strncmp(at, word, n) == 0 &&
            (at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) &&
            !isalnum((unsigned char)at[n]) && at[n] != '_')
            return true;
    return false;
}

// As a whole word: every message begins with the op's name.  "value3" may be called "value" there.
static bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    size_t base = n;

    while (base > 1 && isdigit((unsigned char)word[base - 1]))
        --base;
    return has_word_of(text, word, n) || has_word_of(text, word, base);
}

// Expects a refusal whose message has one of the names of the inputs that `letter` is an axis of, or inputs[i]'s.
static void check_refused(struct spec_point *p, struct host *const *in, int i, const char *letters,
                          attncl_status status, const char *change)
{
    const attncl_status got = try(p, in);
    bool named = false;

    spec_tally.n_compared += 1;
    for (int k = 0; k < p->n_in; ++k)
        named |= (k == i || (letters && strpbrk(p->in_slot[k].axes, letters))) &&
                 has_word(attncl_last_error(), p->in_slot[k].name);
    if (got == ATTNCL_OK)
        spec_wrong(p, "accepts %s with another %s", p->in_slot[i].name, change);
    else if (got != status || !named)
        spec_wrong(p, "another %s of %s: %s: %s", change, p->in_slot[i].name,
                   attncl_status_name(got), attncl_last_error());
}

// One extent more; the name in the message is of an input with that letter.
static void check_extent_refused(struct spec_point *p, struct host **in, int i, int axis,
                                 const char *letters)
{
    const struct host *const x = in[i];
    int64_t dim[ATTNCL_MAX_RANK];

    memcpy(dim, x->dim, sizeof dim);
    dim[axis] += 1;
    in[i] = host_new(x->dtype, x->rank, dim);
    check_refused(p, in, i, letters, ATTNCL_ERR_SHAPE, "extent");
}

static void check_refusals_of_input(struct spec_point *p, int i)
{
    struct host *in[SPEC_MAX_IN], *const x = p->in[i];
    const struct spec_slot *const s = &p->in_slot[i];
    int axis = 0;

    memcpy(in, p->in, sizeof in);
    in[i] = host_new(x->dtype == ATTNCL_I32 ? ATTNCL_F32 : ATTNCL_I32, x->rank, x->dim);
    if (!s->any_type)
        check_refused(p, in, i, NULL, ATTNCL_ERR_DTYPE, "type");
    if (attncl__is_quantised(x->dtype)) // other shapes are no tensors
        return;
    for (const char *at = s->axes; *at; ++at) {
        const char letters[] = {*at, 0};
        const bool sums = at[1] == '+';
        in[i] = x;
        if (isupper((unsigned char)*at) && uses(p, *at) > 1 && p->sizes.rank[*at - 'A'] > 0 &&
            !(p->spec->unequal && strchr(p->spec->unequal, *at)))
            check_extent_refused(p, in, i, axis, letters);
        axis += isdigit((unsigned char)*at) ? 1 : p->sizes.rank[*at - 'A'];
        while (sums && at[1] && (at[1] == '+' || *at == '+'))
            ++at;
    }
    // Weights of the last axes may have one less.
    const bool has_group =
        isupper((unsigned char)s->axes[0]) && p->sizes.rank[s->axes[0] - 'A'] > 1;
    if (x->rank > 0 && !(s->any_rank && (uses(p, s->axes[0]) < 2 || has_group))) {
        in[i] = host_new(x->dtype, x->rank - 1, x->dim + 1);
        check_refused(p, in, i, s->axes, ATTNCL_ERR_SHAPE, "rank");
    }
    if (s->any_rank && s->axes[1]) {
        in[i] = host_new(x->dtype, 0, NULL);
        check_refused(p, in, i, NULL, ATTNCL_ERR_SHAPE, "rank");
    }
}

static void check_refusals(struct spec_point *p)
{
    for (int k = 0; spec_sizes_at(spec_sizes_text(p, false), k, &p->sizes); ++k)
        for (int i = 0; i < p->n_in; ++i)
            if (fill(p), p->in[i])
                check_refusals_of_input(p, i);
    spec_sizes_at(spec_sizes_text(p, false), 0, &p->sizes);
    if (p->c != p->spec->cases)
        return;
    for (const struct op_refusal *r = p->spec->refusals; r->words; ++r) {
        struct spec_point q = *p;
        struct op_case changed = *p->c;
        changed.params = r->params ? r->params : changed.params;
        q.c = &changed;
        spec_declare(&q, r->with);
        if (r->sizes)
            spec_sizes_at(r->sizes, 0, &q.sizes);
        fill(&q);
        spec_tally.n_compared += 1;
        if (try(&q, q.in) != r->status || !strstr(attncl_last_error(), r->words))
            spec_wrong(p, "expected a refusal with \"%s\", got: %s", r->words, attncl_last_error());
    }
}

// `what` of results: has a row in the table of errors (tests/run --accuracy).
static void check_cases(const struct op_spec *s, void (*check)(struct spec_point *p),
                        const char *what)
{
    spec_tally = (struct spec_tally){0};
    graph.cls = attncl__op_find(s->op);
    graph.build = s->build;
    ck_assert_msg(graph.cls || s->build, "there is no op %s", s->op);
    for (const struct op_case *c = s->cases; c == s->cases || c->name; ++c) {
        struct spec_point p = spec_point_of(s, c);
        p.state = graph.cls ? attncl__op_inputs(graph.cls, STATE) : 0;
        check(&p);
        host_reset();
    }
    if (what)
        table_add(s->op, spec_tally.worst, 1, "of what is allowed", what);
    ck_assert_msg(spec_tally.n_wrong == 0, "%s: %d wrong", s->op, spec_tally.n_wrong);
    ck_assert_msg(spec_tally.n_compared > 0, "%s: nothing was compared", s->op);
}

// _i: the spec.
#define SPEC_TEST(name, check, what)                                                               \
    START_TEST(name)                                                                               \
    {                                                                                              \
        check_cases(spec_at(_i), check, what);                                                     \
    }                                                                                              \
    END_TEST

SPEC_TEST(matches_the_reference, check_sizes, "results")
SPEC_TEST(gradients_match, check_gradients, "gradients")
SPEC_TEST(special_values, check_specials, NULL)
SPEC_TEST(special_gradients, check_special_gradients, NULL)
SPEC_TEST(empty_axes, check_empty, NULL)
SPEC_TEST(refusals, check_refusals, NULL)

static void add_tests(const struct op_spec *spec, int i)
{
    const bool is_class = attncl__op_find(spec->op);
    const struct {
        const TTest *test;
        bool applies;
    } tests[] = {{matches_the_reference, true},
                 {gradients_match, spec->grad},
                 {special_values, spec->special},
                 {special_gradients, spec->special && spec->grad && spec->ref_bwd},
                 {empty_axes, is_class && strpbrk(spec->in, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")},
                 {refusals, is_class}};

    for (size_t t = 0; t < COUNT_OF(tests); ++t)
        if (tests[t].applies)
            test_add_at(spec->file, spec->line, tests[t].test, i, i + 1);
}

void test_add_specs(void)
{
    for (int i = 0; spec_at(i); ++i)
        add_tests(spec_at(i), i);
}
