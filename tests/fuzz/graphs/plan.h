// SPDX-License-Identifier: MIT
// Random graphs: a plan is drawn from a seed, evaluated in double by tests/ref, and built through
// the public interface.
#ifndef ATTNCL_TEST_PLAN_H
#define ATTNCL_TEST_PLAN_H

#include <stdio.h>

#include "attncl/gradient.h"
#include "attncl/graph.h"
#include "ref/ref.h"
#include "support/host.h"
#include "support/spec_point.h"

enum { MAX_VALUES = 320, MAX_STEPS = 24, MAX_OPERANDS = 16, MAX_NUMBERS = 8, ABSENT = -1 };

enum source { RESULT, INPUT, WEIGHT, CONSTANT };

struct plan_value {
    struct host *h; // its elements: of a result, of the last evaluation
    enum source source;
    int64_t low, high; // of an I32 input
    bool is_used, is_view, has_no_gradient;
};

struct plan_step {
    const struct plan_op *op;
    struct spec_point point; // of an op that a spec describes: its case and sizes
    int in[MAX_OPERANDS];    // values, or ABSENT
    int64_t number[MAX_NUMBERS];
    double real;
    int out;
};

struct plan {
    uint64_t seed, state;
    bool takes_all; // while a step is chosen: values without gradients too
    int mood;       // of the leaves' elements
    int n_queues,
        n_runs; // it is compiled for so many queues, and run so often before results are read
    struct plan_value value[MAX_VALUES];
    int n_values;
    struct plan_step step[MAX_STEPS];
    int n_steps;
};

struct builder {
    attncl_graph *g;
    attncl_value v[MAX_VALUES];
};

struct plan_op {
    const char *name;
    const struct op_spec *spec; // NULL: written by hand
    // Takes value x, finds or makes the other operands, adds the result; false: it does not fit.
    bool (*choose)(struct plan *p, struct plan_step *s, int x);
    void (*evaluate)(const struct plan *p, const struct plan_step *s);
    attncl_value (*build)(struct builder *b, const struct plan_step *s);
    bool has_no_gradient; // its results are taken by such ops alone
    double terms; // how large inner terms are whose difference the result is; 0: not larger than it
    // NULL, or: corners of the definition are so near on both sides that differences do not show them.
    bool (*near_corners)(const struct plan *p, const struct plan_step *s);
};
// The three functions are called PREFIX_choose and so on.
#define PLAN_OP(op, prefix)                                                                        \
    .name = (op), .choose = prefix##_choose, .evaluate = prefix##_evaluate, .build = prefix##_build

extern const struct plan_op plan_views[];
extern const int plan_n_views;
const struct plan_op *plan_spec_at(int i); // NULL after the last

// -- plan.c
// It begins with ops `first` to `end` - 1, at most 16, each of leaves of its own.
void plan_draw(struct plan *p, uint64_t seed, int first, int end);
const struct plan_op *plan_op_at(int i);                        // NULL after the last
int64_t plan_number(struct plan *p, int64_t low, int64_t high); // in [low, high]
bool plan_chance(struct plan *p, int percent);
// An F32 value of this shape: one that there is, or a new leaf.
int plan_operand(struct plan *p, int rank, const int64_t *dim);
// New leaves: uniform in a range; a weight of 16 bits.
int plan_uniform(struct plan *p, double low, double high, int rank, const int64_t *dim);
int plan_stored(struct plan *p, attncl_dtype dtype, int rank, const int64_t *dim);
int plan_lengths(struct plan *p, int64_t low, int64_t high, int rank, const int64_t *dim); // I32
int plan_mask(struct plan *p, int rank, const int64_t *dim);                               // U8
// These end choose(): they add the result, and are true.
bool plan_result(struct plan *p, struct plan_step *s, int rank, const int64_t *dim);
bool plan_result_like(struct plan *p, struct plan_step *s, int x); // of the shape of value x
bool plan_view(struct plan *p, struct plan_step *s, int rank, const int64_t *dim);
// Evaluates all steps but the one whose result is `kept` (ABSENT: none).
void plan_evaluate(const struct plan *p, int kept);

static inline int64_t last_extent(const struct host *h)
{
    return h->dim[h->rank - 1];
}

// F32, or a weight of 16 bits.
static inline bool is_float(const struct host *h)
{
    return h->dtype != ATTNCL_I32 && h->dtype != ATTNCL_U8;
}

static inline struct host *operand(const struct plan *p, const struct plan_step *s, int i)
{
    return s->in[i] == ABSENT ? NULL : p->value[s->in[i]].h;
}

static inline struct host *result(const struct plan *p, const struct plan_step *s)
{
    return p->value[s->out].h;
}

static inline attncl_value taken(const struct builder *b, const struct plan_step *s, int i)
{
    return s->in[i] == ABSENT ? ATTNCL_NONE_VALUE : b->v[s->in[i]];
}

// The step's operands and result, in evaluate() and build().
#define IN(i) operand(p, s, i)
#define OUT   result(p, s)
#define V(i)  taken(b, s, i)
// evaluate() and build() that are an expression.
#define PLAN_EVALUATE(prefix, expression)                                                          \
    static void prefix##_evaluate(const struct plan *p, const struct plan_step *s)                 \
    {                                                                                              \
        expression;                                                                                \
    }
#define PLAN_BUILD(prefix, expression)                                                             \
    static attncl_value prefix##_build(struct builder *b, const struct plan_step *s)               \
    {                                                                                              \
        return expression;                                                                         \
    }

// -- wanted.c
// Of the first n_dy outputs y the gradients dy are inputs of the plan; gradients of values x are asked for.
struct question {
    int y[MAX_VALUES], n_y;
    int dy[MAX_VALUES], n_dy;
    int x[MAX_VALUES], n_x;
    struct update {
        int x, kind; // an index of x[]
    } update[MAX_VALUES];
    int n_updates;
};
// What the graph must give, and how far it may be off.
struct wanted {
    char name[16];
    const struct host *h;
    double tolerance;
};
// Elements of gradients that were measured by differences, and those left out: the definition has a corner there.
struct measured {
    int64_t elements, skipped;
};
// Every result that no step takes, and a gradient for each of them; leaves and one result between.
void plan_ask(struct plan *p, struct question *q);
double plan_largest(const struct plan *p);
bool plan_near_corners(const struct plan *p);
// Both return how many are wanted.  `copy` has the evaluated plan's values, which are the same afterwards.
int want_results(const struct plan *p, const struct question *q, struct host *const *copy,
                 struct wanted *w);
int want_gradients(const struct plan *p, const struct question *q, struct host *const *copy,
                   struct wanted *w, struct measured *measured);
// Widens tolerances of gradients by the roundings of terms that cancel on the way to them: of all results' gradients,
// which costs as many differences again.
void widen_gradients(const struct plan *p, const struct question *q, struct host *const *copy,
                     struct wanted *w, int n);

// -- updates.c
void updates_choose(struct plan *p, struct question *q, int percent); // of all graphs
void updates_build(struct builder *b, const struct question *q, const attncl_value *gradients);
// What the weights are afterwards; `gradients`: as want_gradients() left them.  Returns how many are wanted.
int want_updates(const struct question *q, struct host *const *copy, const struct wanted *gradients,
                 struct wanted *w);

// -- program.c
// Builds leaves, steps, outputs and gradients.
void program_build(struct builder *b, attncl_context *context, const struct plan *p,
                   const struct question *q, attncl_tensor *weights[MAX_VALUES]);
attncl_status program_write_inputs(const struct plan *p, attncl_graph *g);
// Seed, leaves and steps: each operand by its place, then the real number and the whole ones.
void plan_print(FILE *to, const struct plan *p);

#endif
