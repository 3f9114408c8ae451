// SPDX-License-Identifier: MIT
// A plan as a graph, and as the C program that makes the same graph.

#include <inttypes.h>
#include <stdarg.h>

#include "fuzz/graphs/plan.h"
#include "support/test.h"

const char *program_name(const struct plan_step *s, int i)
{
    static char names[MAX_OPERANDS][20];
    static unsigned next;
    char *name = names[next++ % MAX_OPERANDS];
    if (s->in[i] == ABSENT)
        return "ATTNCL_NONE_VALUE";
    snprintf(name, sizeof names[0], "v[%d]", s->in[i]);
    return name;
}

void program_line(struct builder *b, const struct plan_step *s, const char *format, ...)
{
    va_list arguments;
    if (!b->text)
        return;
    va_start(arguments, format);
    fprintf(b->text, "    v[%d] = ", s->out);
    vfprintf(b->text, format, arguments);
    fprintf(b->text, ";\n");
    va_end(arguments);
}

static void build_leaf(struct builder *b, attncl_context *context, const struct plan *p, int i,
                       attncl_tensor **weight)
{
    const struct plan_value *v = &p->value[i];
    const struct host *h = v->h;
    char name[16];
    snprintf(name, sizeof name, "v%d", i);
    if (v->source == WEIGHT) {
        ck_ok(attncl_tensor_create(context, h->dtype, h->rank, h->dim, h->dtype, host_pack(h),
                                   weight));
        b->v[i] = attncl_graph_weight(b->g, *weight);
    } else if (v->source == CONSTANT) {
        b->v[i] = attncl_graph_constant(b->g, h->dtype, h->rank, h->dim, host_pack(h));
    } else if (h->dtype == ATTNCL_I32) {
        b->v[i] = attncl_graph_index_input(b->g, name, h->rank, h->dim, v->low, v->high);
    } else {
        b->v[i] = attncl_graph_input(b->g, name, h->dtype, h->rank, h->dim);
    }
}

void program_build(struct builder *b, attncl_context *context, const struct plan *p,
                   const struct question *q, attncl_tensor *weights[MAX_VALUES])
{
    attncl_value y[MAX_VALUES], dy[MAX_VALUES], x[MAX_VALUES], dx[MAX_VALUES];
    char name[16];
    for (int i = 0; i < p->n_values; ++i)
        if (p->value[i].source != RESULT)
            build_leaf(b, context, p, i, &weights[i]);
    for (int i = 0; i < p->n_steps; ++i)
        b->v[p->step[i].out] = p->step[i].op->build(b, &p->step[i]);
    for (int i = 0; i < q->n_y; ++i) {
        snprintf(name, sizeof name, "y%d", q->y[i]);
        y[i] = b->v[q->y[i]];
        attncl_graph_output(b->g, name, y[i]);
    }
    for (int i = 0; i < q->n_dy; ++i)
        dy[i] = b->v[q->dy[i]];
    for (int i = 0; i < q->n_x; ++i)
        x[i] = b->v[q->x[i]];
    if (q->n_x > 0)
        attncl_graph_gradient(b->g, (size_t)q->n_dy, y, dy, (size_t)q->n_x, x, dx);
    for (int i = 0; i < q->n_x; ++i) {
        snprintf(name, sizeof name, "d%d", q->x[i]);
        attncl_graph_output(b->g, name, dx[i]);
    }
    updates_build(b, q, dx);
}

attncl_status program_write_inputs(const struct plan *p, attncl_graph *g)
{
    char name[16];
    for (int i = 0; i < p->n_values; ++i) {
        const struct host *h = p->value[i].h;
        snprintf(name, sizeof name, "v%d", i);
        if (p->value[i].source == INPUT &&
            attncl_graph_write(g, name, host_pack(h), host_bytes(h)) != ATTNCL_OK)
            return ATTNCL_ERR_ARGUMENT;
    }
    return ATTNCL_OK;
}

// -- the program

static const char before[] =
    "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n\n#include <attncl/attncl.h>\n\n"
    "#define OK(call)                                                          \\\n"
    "    do {                                                                  \\\n"
    "        if ((call) != ATTNCL_OK) {                                        \\\n"
    "            fprintf(stderr, \"%s: %s\\n\", #call, attncl_last_error());      \\\n"
    "            exit(2);                                                      \\\n"
    "        }                                                                 \\\n"
    "    } while (0)\n\n"
    "static int differs(attncl_graph *g, const char *name, const double *want, size_t n, "
    "double tolerance)\n"
    "{\n"
    "    float *got = malloc((n + 1) * sizeof *got);\n"
    "    int bad = 0;\n"
    "    OK(attncl_graph_read(g, name, got, n * sizeof *got));\n"
    "    for (size_t i = 0; i < n; ++i)\n"
    "        if (!(isnan(want[i]) ? isfinite(got[i]) : fabs(got[i] - want[i]) <= tolerance) && "
    "++bad)\n"
    "            printf(\"%s[%zu] is %.9g, expected %.9g +- %.2g\\n\", name, i, (double)got[i], "
    "want[i], tolerance);\n"
    "    free(got);\n"
    "    return bad > 0;\n"
    "}\n\n";

static void print_array(FILE *to, const char *type, const char *name, int i, const struct host *h)
{
    fprintf(to, "static const %s %s%d[] = {", type, name, i);
    for (int64_t k = 0; k < h->count; ++k) {
        if (!is_float(h))
            fprintf(to, "%d, ", (int)h->data[k]);
        else if (isnan(h->data[k]))
            fprintf(to, "NAN, ");
        else
            fprintf(to, "%.17g, ", h->data[k]);
    }
    fprintf(to, "};\n");
}

static void print_leaf(FILE *to, const struct plan *p, int i)
{
    const struct plan_value *v = &p->value[i];
    char dims[96] = "";
    int used = 0;
    for (int k = 0; k < v->h->rank; ++k)
        used += snprintf(dims + used, sizeof dims - (size_t)used, "%" PRId64 ", ", v->h->dim[k]);
    snprintf(dims + used, sizeof dims - (size_t)used, "0");
    const char *type = attncl_dtype_name(v->h->dtype);
    if (v->source == WEIGHT)
        fprintf(to,
                "    attncl_tensor *w%d;\n    OK(attncl_tensor_create(context, ATTNCL_%s, %d, "
                "(const int64_t[]){%s}, ATTNCL_F32, data%d, &w%d));\n    v[%d] = "
                "attncl_graph_weight(g, w%d);\n",
                i, type, v->h->rank, dims, i, i, i, i);
    else if (v->source == CONSTANT)
        fprintf(to,
                "    v[%d] = attncl_graph_constant(g, ATTNCL_%s, %d, (const int64_t[]){%s}, "
                "data%d);\n",
                i, type, v->h->rank, dims, i);
    else if (v->h->dtype == ATTNCL_I32)
        fprintf(to,
                "    v[%d] = attncl_graph_index_input(g, \"v%d\", %d, (const int64_t[]){%s}, "
                "%d, %d);\n",
                i, i, v->h->rank, dims, (int)v->low, (int)v->high);
    else
        fprintf(to,
                "    v[%d] = attncl_graph_input(g, \"v%d\", ATTNCL_%s, %d, (const int64_t[]){%s});"
                "\n",
                i, i, type, v->h->rank, dims);
}

static void print_list(FILE *to, const char *name, const int *values, int n)
{
    fprintf(to, "    attncl_value %s[] = {", name);
    for (int i = 0; i < n; ++i)
        fprintf(to, "v[%d], ", values[i]);
    fprintf(to, "};\n");
}

static void print_question(FILE *to, const struct question *q)
{
    for (int i = 0; i < q->n_y; ++i)
        fprintf(to, "    attncl_graph_output(g, \"y%d\", v[%d]);\n", q->y[i], q->y[i]);
    if (q->n_x == 0)
        return;
    print_list(to, "y", q->y, q->n_dy);
    print_list(to, "dy", q->dy, q->n_dy);
    print_list(to, "x", q->x, q->n_x);
    fprintf(to, "    attncl_value dx[%d];\n    attncl_graph_gradient(g, %d, y, dy, %d, x, dx);\n",
            q->n_x, q->n_dy, q->n_x);
    for (int i = 0; i < q->n_x; ++i)
        fprintf(to, "    attncl_graph_output(g, \"d%d\", dx[%d]);\n", q->x[i], i);
    updates_print(to, q);
}

void program_print(FILE *to, const struct plan *p, const struct question *q,
                   const struct wanted *wanted, int n)
{
    struct builder b = {.text = to};
    fprintf(to, "// Graph of seed %" PRIu64 ".  Compile: cc -std=c11 graph.c -lattncl -lm\n",
            p->seed);
    fprintf(to, "%s", before);
    for (int i = 0; i < p->n_values; ++i)
        if (p->value[i].source != RESULT)
            print_array(to,
                        is_float(p->value[i].h)              ? "float"
                        : p->value[i].h->dtype == ATTNCL_I32 ? "int32_t"
                                                             : "uint8_t",
                        "data", i, p->value[i].h);
    for (int i = 0; i < n; ++i)
        print_array(to, "double", "want", i, wanted[i].h);
    fprintf(to,
            "\nint main(void)\n{\n    attncl_context *context;\n    attncl_graph *g;\n"
            "    attncl_value v[%d];\n    int bad = 0;\n"
            "    OK(attncl_context_create(NULL, &context));\n"
            "    OK(attncl_graph_create(context, &g));\n",
            MAX_VALUES);
    for (int i = 0; i < p->n_values; ++i)
        if (p->value[i].source != RESULT)
            print_leaf(to, p, i);
    for (int i = 0; i < p->n_steps; ++i)
        (void)p->step[i].op->build(&b, &p->step[i]);
    print_question(to, q);
    fprintf(to,
            "    OK(attncl_graph_compile(g, &(const attncl_compile_options){"
            "sizeof(attncl_compile_options), 0, ATTNCL_PRECISION_DEFAULT, %d}));\n",
            p->n_queues);
    for (int i = 0; i < p->n_values; ++i)
        if (p->value[i].source == INPUT)
            fprintf(to, "    OK(attncl_graph_write(g, \"v%d\", data%d, sizeof data%d));\n", i, i,
                    i);
    for (int i = 0; i < p->n_runs; ++i)
        fprintf(to, "    OK(attncl_graph_run(g));\n");
    for (int i = 0; i < n; ++i)
        fprintf(to, "    bad |= differs(g, \"%s\", want%d, %" PRId64 ", %.9g);\n", wanted[i].name,
                i, wanted[i].h->count, wanted[i].tolerance);
    fprintf(to, "    attncl_graph_destroy(g);\n");
    for (int i = 0; i < p->n_values; ++i)
        if (p->value[i].source == WEIGHT)
            fprintf(to, "    attncl_tensor_destroy(w%d);\n", i);
    fprintf(to, "    OK(attncl_context_destroy(context));\n    return bad;\n}\n");
}
