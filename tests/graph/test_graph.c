// SPDX-License-Identifier: MIT
// Graphs on a device: building and its first failure, views and copies, memory, running, state,
// steady state.

#include <string.h>

#include "attncl/gradient.h"
#include "attncl/ops.h"
#include "compile/program.h"
#include "device/context.h"
#include "graph/graph.h"
#include "support/host.h"
#include "support/test.h"

enum { N = 12 };
static const int64_t shape34[] = {3, 4};
static const float ramp[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static attncl_value op2(attncl_graph *g, const char *name, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, attncl__op_find(name), NULL, IN(a, b));
}

static void check_floats(attncl_graph *g, const char *name, const float *want, int n)
{
    float got[64];
    ck_ok(attncl_graph_read(g, name, got, (size_t)n * sizeof got[0]));
    for (int i = 0; i < n; ++i)
        ck_assert_msg(got[i] == want[i], "%s[%d] is %g, expected %g", name, i, (double)got[i],
                      (double)want[i]);
}

TEST(inputs_convert_and_start_as_zeros)
{
    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape34);
    const attncl_value zero = attncl_graph_input(g, "zero", ATTNCL_F32, 2, shape34);
    attncl_graph_output(g, "y", op2(g, "add_fwd", x, zero));
    ck_ok(attncl_graph_compile(g, NULL));

    double wide[N];
    for (int i = 0; i < N; ++i)
        wide[i] = ramp[i];
    ck_ok(attncl_graph_write_as(g, "x", ATTNCL_F64, wide, N));
    ck_ok(attncl_graph_run(g));
    check_floats(g, "y", ramp, N);
    ck_fails(attncl_graph_write_as(g, "x", ATTNCL_I64, wide, N), ATTNCL_ERR_DTYPE, "I64");
    ck_fails(attncl_graph_write_as(g, "x", ATTNCL_F64, wide, 11), ATTNCL_ERR_ARGUMENT,
             "12 elements, 11");
    ck_fails(attncl_graph_write(g, "x", wide, sizeof wide), ATTNCL_ERR_ARGUMENT, "48 bytes, 96");
    ck_fails(attncl_graph_write(g, "q", wide, sizeof wide), ATTNCL_ERR_ARGUMENT, "no input q");
    ck_fails(attncl_graph_read(g, "y", wide, 4), ATTNCL_ERR_ARGUMENT, "48 bytes, capacity for 4");
    attncl_graph_destroy(g);
}

struct progress {
    size_t calls, done, total;
};

static void note_progress(size_t done, size_t total, void *user)
{
    struct progress *p = user;

    // Programs of comparisons at first use are counted for themselves.
    ck_assert(done >= p->done || (done == 0 && p->done == p->total));
    ck_assert(p->calls++ || done == 0);
    p->done = done;
    p->total = total;
}

TEST(compiling_tells_its_progress)
{
    attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
    struct progress seen = {0};
    attncl_context *ctx = NULL;
    attncl_graph *g = NULL;

    options.compile_progress = note_progress;
    options.user = &seen;
    ck_ok(attncl_context_create(&options, &ctx));
    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape34);
    attncl_graph_output(g, "y", op2(g, "add_fwd", attncl_softmax(g, x, -1), x));
    ck_assert_uint_eq(seen.calls, 0);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_uint_eq(seen.done, seen.total);
    ck_assert_uint_ge(seen.total, 2);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(the_first_failure_is_kept_with_its_scope)
{
    attncl_graph *g = test_graph();
    attncl_graph_push_scope(g, "encoder");
    attncl_graph_push_scope(g, "layers.3");
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape34);
    const attncl_value z = attncl_graph_input(g, "z", ATTNCL_F32, 2, (int64_t[]){3, 5});
    const attncl_value bad = op2(g, "add_fwd", x, z);
    ck_assert_int_eq(bad.id, 0);
    attncl_graph_pop_scope(g);
    const attncl_value later = op2(g, "add_fwd", x, x); // does nothing
    ck_assert_int_eq(later.id, 0);
    attncl_graph_output(g, "y", later);
    ck_fails(attncl_graph_compile(g, NULL), ATTNCL_ERR_SHAPE, "encoder.layers.3: add_fwd: ");
    ck_fails(attncl_graph_status(g), ATTNCL_ERR_SHAPE, "[3, 5]");
    ck_fails(attncl_graph_run(g), ATTNCL_ERR_STATE, "not compiled");
    attncl_graph_destroy(g);
}

TEST(builders_refuse_misuse)
{
    static const int64_t long_axis = -1, large[2] = {1 << 30, 1 << 30},
                         nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const struct {
        attncl_dtype dtype;
        int rank;
        const int64_t *dim;
        const char *name;
        attncl_status status;
        const char *words;
    } inputs[] = {{ATTNCL_F32, 1, &long_axis, "a", ATTNCL_ERR_SHAPE, "extent -1"},
                  {ATTNCL_F64, 2, shape34, "a", ATTNCL_ERR_DTYPE, "not F64"},
                  {ATTNCL_F16, 2, shape34, "a", ATTNCL_ERR_DTYPE, "not F16"},
                  {ATTNCL_F32, 2, shape34, "x", ATTNCL_ERR_ARGUMENT, "given twice"},
                  {ATTNCL_F32, 2, large, "a", ATTNCL_ERR_SHAPE, "2^48"},
                  {ATTNCL_F32, 9, nine, "a", ATTNCL_ERR_SHAPE, "rank 9"},
                  {ATTNCL_DTYPE_NONE, 0, NULL, NULL, ATTNCL_ERR_ARGUMENT, "b is missing"},
                  {ATTNCL_DTYPE_NONE, 1, NULL, NULL, ATTNCL_ERR_ARGUMENT, "no value"}};
    for (size_t i = 0; i < COUNT_OF(inputs); ++i) {
        attncl_graph *g = test_graph();
        const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape34);
        if (inputs[i].name)
            attncl_graph_input(g, inputs[i].name, inputs[i].dtype, inputs[i].rank, inputs[i].dim);
        else if (inputs[i].rank == 0)
            op2(g, "add_fwd", x, ATTNCL_NONE_VALUE);
        else
            attncl_graph_output(g, "y", ATTNCL_NONE_VALUE);
        ck_fails(attncl_graph_status(g), inputs[i].status, inputs[i].words);
        attncl_graph_destroy(g);
    }
}

TEST(values_of_another_graph_are_refused)
{
    static const char *const words[] = {"add_fwd: b is a value of another graph",
                                        "output y is a value of another graph",
                                        "x 0 of a gradient is a value of another graph",
                                        "x is a value of another graph",
                                        "a view of a value of another graph",
                                        "the tensor belongs to another context"};
    const struct tensor_desc view = {.dtype = ATTNCL_F32, .rank = 1, .dim = {12}, .stride = {1}};
    attncl_context *ctx = NULL;
    attncl_tensor *tensor = NULL;
    attncl_graph *other = test_graph();
    const attncl_value foreign = attncl_graph_input(other, "x", ATTNCL_F32, 2, shape34);

    ck_ok(attncl_context_create(NULL, &ctx));
    ck_ok(attncl_tensor_create(ctx, ATTNCL_F32, 2, shape34, ATTNCL_F32, NULL, &tensor));
    for (size_t i = 0; i < COUNT_OF(words); ++i) {
        attncl_graph *g = test_graph();
        attncl_value dx;
        const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape34);
        ck_assert_int_eq(attncl_graph_shape(g, foreign).rank, -1);
        if (i == 0)
            op2(g, "add_fwd", x, foreign);
        else if (i == 1)
            attncl_graph_output(g, "y", foreign);
        else if (i == 2)
            attncl_graph_gradient(g, 1, &x, NULL, 1, &foreign, &dx);
        else if (i == 3)
            attncl_softmax(g, foreign, -1);
        else if (i == 5)
            attncl_graph_tensor(g, tensor);
        else
            attncl__graph_view(g, foreign, &view);
        ck_fails(attncl_graph_status(g), ATTNCL_ERR_ARGUMENT, words[i]);
        attncl_graph_destroy(g);
    }
    attncl_graph_destroy(other);
    attncl_tensor_destroy(tensor);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(views_are_copied_for_ops_that_need_it)
{
    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape34);
    struct tensor_desc columns = *attncl__graph_desc(g, x); // columns 1 and 2
    columns.dim[1] = 2;
    columns.start = 1;
    struct tensor_desc turned = *attncl__graph_desc(g, x); // transposed
    turned.dim[0] = 4, turned.dim[1] = 3;
    turned.stride[0] = 1, turned.stride[1] = 4;
    const attncl_value c = attncl__graph_view(g, x, &columns);
    attncl_graph_output(g, "columns", op2(g, "add_fwd", c, c));
    attncl_graph_output(g, "turned", attncl__graph_view(g, x, &turned));
    struct tensor_desc row = *attncl__graph_desc(g, x); // the first
    row.dim[0] = 1;
    attncl_graph_output(g, "row", attncl__graph_view(g, op2(g, "add_fwd", x, x), &row));
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_uint_eq(attncl__graph_program(g)->outputs.list[2].storage->bytes, 4 * sizeof(float));
    ck_ok(attncl_graph_write(g, "x", ramp, sizeof ramp));
    ck_ok(attncl_graph_run(g));
    check_floats(g, "columns", (float[]){2, 4, 10, 12, 18, 20}, 6);
    check_floats(g, "row", (float[]){0, 2, 4, 6}, 4);
    check_floats(g, "turned", (float[]){0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, N);
    attncl_graph_destroy(g);
}

TEST(one_value_may_be_several_outputs)
{
    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape34);
    const attncl_value y = op2(g, "add_fwd", x, x);
    attncl_graph_output(g, "same", x);
    attncl_graph_output(g, "y1", y);
    attncl_graph_output(g, "y2", y);
    attncl_graph_output(g, "z", op2(g, "add_fwd", y, y)); // reads an output
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_ptr_ne(attncl__graph_program(g)->outputs.list[1].storage,
                     attncl__graph_program(g)->outputs.list[2].storage); // each may be bound
    ck_ok(attncl_graph_write(g, "x", ramp, sizeof ramp));
    ck_ok(attncl_graph_run(g));
    float y_want[N], z_want[N];
    for (int i = 0; i < N; ++i) {
        y_want[i] = 2 * ramp[i];
        z_want[i] = 4 * ramp[i];
    }
    ck_ok(attncl_graph_write(g, "x", y_want, sizeof y_want)); // for the next run
    check_floats(g, "same", ramp, N);
    check_floats(g, "y1", y_want, N);
    check_floats(g, "y2", y_want, N);
    check_floats(g, "z", z_want, N);
    attncl_graph_destroy(g);
}

// x -> n additions -> y.
static attncl_graph *chain(int n, int64_t width)
{
    attncl_graph *g = test_graph();
    attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 1, &width);
    for (int i = 0; i < n; ++i)
        x = op2(g, "add_fwd", x, x);
    attncl_graph_output(g, "y", x);
    return g;
}

TEST(memory_is_reused_and_reported_before_it_is_taken)
{
    struct object_counts before, after;
    attncl_memory_report r = ATTNCL_MEMORY_REPORT_INIT;
    setenv("ATTNCL_GUARD", "0", 1); // with canaries nothing is reused
    attncl_graph *g = chain(10, 1 << 16);
    setenv("ATTNCL_GUARD", "1", 1);
    attncl__objects_count(&before);
    ck_ok(attncl_graph_memory(g, &r));
    attncl__objects_count(&after);
    ck_assert_int_eq(before.created[OBJECT_BUFFER], after.created[OBJECT_BUFFER]);
    ck_assert_uint_eq(r.io_bytes, 2 << 18);
    ck_assert_uint_eq(r.activations_bytes, 2 << 18);
    ck_assert_uint_eq(r.arena_bytes, 2 << 18);
    ck_assert_uint_eq(r.unshared_bytes, 9 << 18);

    attncl_compile_options options = ATTNCL_COMPILE_OPTIONS_INIT;
    options.memory_limit = 100000;
    ck_fails(attncl_graph_compile(g, &options), ATTNCL_ERR_DEVICE_MEMORY, "the limit is 100000");
    attncl__objects_count(&after);
    ck_assert_int_eq(before.live[OBJECT_BUFFER], after.live[OBJECT_BUFFER]);
    struct device_caps *caps = &test_context()->caps;
    const struct device_caps kept = *caps;
    caps->global_bytes = 100000;
    options.memory_limit = SIZE_MAX;
    ck_fails(attncl_graph_compile(g, &options), ATTNCL_ERR_DEVICE_MEMORY, "the limit is 100000");
    *caps = kept;
    caps->max_buffer_bytes = 1000;
    ck_fails(attncl_graph_compile(g, NULL), ATTNCL_ERR_DEVICE_MEMORY, "device's largest is 1000");
    *caps = kept;
    ck_ok(attncl_graph_compile(g, NULL)); // a refusal changes nothing
    attncl_graph_destroy(g);
}

TEST(a_tensor_that_is_added_twice_counts_once)
{
    attncl_memory_report r = ATTNCL_MEMORY_REPORT_INIT;
    attncl_graph *g = test_graph();
    attncl_tensor *a, *b;
    ck_ok(attncl_tensor_create(test_context(), ATTNCL_F32, 2, shape34, ATTNCL_F32, NULL, &a));
    ck_ok(attncl_tensor_create(test_context(), ATTNCL_F32, 2, shape34, ATTNCL_F32, NULL, &b));
    const attncl_value first = attncl_graph_tensor(g, a), second = attncl_graph_tensor(g, b);
    const attncl_value again = attncl_graph_tensor(g, a);
    attncl_graph_output(g, "y", op2(g, "add_fwd", op2(g, "add_fwd", first, second), again));
    ck_ok(attncl_graph_memory(g, &r));
    ck_assert_uint_eq(r.weights_bytes, 2 * sizeof(float[3][4]));
    attncl_graph_destroy(g);
    attncl_tensor_destroy(a);
    attncl_tensor_destroy(b);
}

TEST(index_inputs_are_checked)
{
    attncl_graph *g = test_graph();
    const int64_t three = 3;
    const attncl_value t = attncl_graph_index_input(g, "tokens", 1, &three, 0, 17);
    attncl_graph_output(g, "y", t);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_write(g, "tokens", (int32_t[]){0, 16, 3}, 12));
    ck_fails(attncl_graph_write(g, "tokens", (int32_t[]){0, 17, 3}, 12), ATTNCL_ERR_ARGUMENT,
             "tokens: element 1 is 17, allowed are 0 to 16");
    ck_fails(attncl_graph_write_as(g, "tokens", ATTNCL_I64, (int64_t[]){0, -1, 3}, 3),
             ATTNCL_ERR_ARGUMENT, "element 1 is -1");
    ck_fails(attncl_graph_write_as(g, "tokens", ATTNCL_I64, (int64_t[]){0, 1, INT64_C(1) << 40}, 3),
             ATTNCL_ERR_ARGUMENT, "does not fit I32");
    ck_fails(attncl_graph_write_as(g, "tokens", ATTNCL_F32, ramp, 3), ATTNCL_ERR_DTYPE, "F32");
    int32_t got[3];
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", got, sizeof got));
    ck_assert_int_eq(got[1], 16); // refused writes changed nothing
    attncl_graph_destroy(g);
}

TEST(tensors_serve_several_graphs)
{
    attncl_tensor *w = NULL;
    ck_ok(attncl_tensor_create(test_context(), ATTNCL_F32, 2, shape34, ATTNCL_F32, ramp, &w));
    attncl_graph *g[2];
    for (int i = 0; i < 2; ++i) {
        g[i] = test_graph();
        const attncl_value x = attncl_graph_input(g[i], "x", ATTNCL_F32, 2, shape34);
        attncl_graph_output(g[i], "y",
                            op2(g[i], i ? "add_fwd" : "mul_fwd", x, attncl_graph_tensor(g[i], w)));
        ck_ok(attncl_graph_compile(g[i], NULL));
        ck_ok(attncl_graph_write(g[i], "x", ramp, sizeof ramp));
        ck_ok(attncl_graph_run(g[i]));
    }
    float squares[N], doubles[N], back[N];
    for (int i = 0; i < N; ++i) {
        squares[i] = ramp[i] * ramp[i];
        doubles[i] = 2 * ramp[i];
    }
    check_floats(g[0], "y", squares, N);
    check_floats(g[1], "y", doubles, N);
    ck_ok(attncl_tensor_read(w, back, sizeof back));
    ck_assert_mem_eq(back, ramp, sizeof ramp);
    ck_ok(attncl_tensor_write(w, doubles, sizeof doubles));
    ck_ok(attncl_graph_run(g[1]));
    for (int i = 0; i < N; ++i)
        doubles[i] = 3 * ramp[i];
    check_floats(g[1], "y", doubles, N);
    ck_fails(attncl_tensor_write(w, ramp, 4), ATTNCL_ERR_ARGUMENT, "48 bytes, data has 4");
    ck_fails(attncl_tensor_read(w, back, 4), ATTNCL_ERR_ARGUMENT, "48 bytes, data has capacity");
    ck_fails(attncl_context_destroy(test_context()), ATTNCL_ERR_STATE, "");
    attncl_graph_destroy(g[0]);
    attncl_graph_destroy(g[1]);
    attncl_tensor_destroy(w);
}

TEST(empty_values_are_fine)
{
    attncl_graph *g = test_graph();
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){0, 4});
    attncl_graph_output(g, "y", op2(g, "add_fwd", op2(g, "add_fwd", x, x), x));
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_write(g, "x", NULL, 0));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", NULL, 0));
    attncl_graph_destroy(g);
}

TEST(state_is_read_and_written_by_name)
{
    const int64_t one = 1;
    int32_t counted = -1;
    attncl_shape shape;
    attncl_graph *g = test_graph();
    attncl_graph_state(g, "seen", ATTNCL_F32, 2, shape34);
    attncl_graph_state(g, "count", ATTNCL_I32, 1, &one);
    attncl_graph_state(g, "twice", ATTNCL_I32, 1, &one);
    attncl_graph_state(g, "twice", ATTNCL_I32, 1, &one);
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, shape34);
    attncl_graph_output(g, "y", op2(g, "add_fwd", x, x));
    ck_assert_uint_eq(attncl_graph_state_count(g), 0);
    ck_fails(attncl_graph_state_read(g, "count", &counted, 4), ATTNCL_ERR_STATE, "not compiled");
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_uint_eq(attncl_graph_state_count(g), 4);
    ck_assert_str_eq(attncl_graph_state_name(g, 0, &shape), "seen");
    ck_assert(shape.dtype == ATTNCL_F32 && shape.rank == 2 && shape.dim[1] == 4);
    ck_assert_ptr_null(attncl_graph_state_name(g, 4, &shape));

    float seen[N] = {1};
    ck_ok(attncl_graph_state_read(g, "seen", seen, sizeof seen));
    ck_assert(seen[0] == 0);
    ck_ok(attncl_graph_state_write(g, "seen", ramp, sizeof ramp));
    ck_ok(attncl_graph_state_read(g, "seen", seen, sizeof seen));
    ck_assert_int_eq(memcmp(seen, ramp, sizeof seen), 0);
    ck_ok(attncl_graph_reset(g));
    ck_ok(attncl_graph_state_read(g, "seen", seen, sizeof seen));
    ck_assert(seen[N - 1] == 0);
    ck_fails(attncl_graph_state_write(g, "seen", ramp, 8), ATTNCL_ERR_ARGUMENT, "48 bytes, 8");
    ck_fails(attncl_graph_state_read(g, "none", seen, 8), ATTNCL_ERR_ARGUMENT, "no state none");
    ck_fails(attncl_graph_state_read(g, "twice", seen, 4), ATTNCL_ERR_ARGUMENT, "several");
    attncl_graph_destroy(g);
}

// Element i of a source is i: of F64, which becomes F32, or of F32.
static attncl_status count_doubles(const void *from, uint64_t offset, size_t bytes, void *to)
{
    (void)from;
    for (size_t i = 0; i < bytes / 8; ++i)
        ((double *)to)[i] = (double)(offset / 8 + i);
    return ATTNCL_OK;
}

static attncl_status count_floats(const void *from, uint64_t offset, size_t bytes, void *to)
{
    (void)from;
    for (size_t i = 0; i < bytes / 4; ++i)
        ((float *)to)[i] = (float)(offset / 4 + i);
    return ATTNCL_OK;
}

static attncl_status fail_in_the_middle(const void *from, uint64_t offset, size_t bytes, void *to)
{
    return offset > 0 ? FAIL(ATTNCL_ERR_IO, "the file ended")
                      : count_floats(from, offset, bytes, to);
}

static void check_counted(attncl_tensor *t, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof(float);
    float *got = malloc(bytes);

    ck_ok(attncl_tensor_read(t, got, bytes));
    for (int64_t i = 0; i < count; ++i)
        ck_assert_msg(got[i] == (float)i, "element %d of %d is %g", (int)i, (int)count,
                      (double)got[i]);
    free(got);
}

TEST(a_tensor_is_read_in_pieces)
{
    const int64_t count = 3 * (1 << 20) + 5;
    const struct tensor_source sources[] = {{ATTNCL_F32, count_floats, NULL, NULL},
                                            {ATTNCL_F64, count_doubles, NULL, NULL}};
    const struct tensor_source broken = {ATTNCL_F32, fail_in_the_middle, NULL, NULL};
    attncl_tensor *t = NULL;

    for (int k = 0; k < 2; ++k) {
        ck_ok(attncl__tensor_create_from(test_context(), ATTNCL_F32, 1, &count, &sources[k], &t));
        check_counted(t, count);
        attncl_tensor_destroy(t);
    }
    ck_fails(attncl__tensor_create_from(test_context(), ATTNCL_F32, 1, &count, &broken, &t),
             ATTNCL_ERR_IO, "the file ended");
}

// Two in one buffer, and one that needs another.  On devices with memory of their own each has a buffer.
TEST(tensors_of_a_block_are_read_in_place)
{
    const int64_t counts[] = {(1 << 20) + 1, (1 << 20) + 5, (64 << 20) / 4};
    struct tensor_block block = {0};
    attncl_tensor *t[3];

    for (int k = 0; k < 3; ++k) {
        const struct tensor_source source = {k == 1 ? ATTNCL_F64 : ATTNCL_F32,
                                             k == 1 ? count_doubles : count_floats, NULL, &block};
        ck_ok(
            attncl__tensor_create_from(test_context(), ATTNCL_F32, 1, &counts[k], &source, &t[k]));
    }
    ck_ok(attncl__tensor_block_end(test_context(), &block));
    for (int k = 0; k < 3; ++k) {
        check_counted(t[k], counts[k]);
        attncl_tensor_destroy(t[k]);
    }
}

// The second gets the first one's memory.
TEST(new_tensors_without_data_are_zeros)
{
    static const int64_t n = 1000, too_many = (int64_t)1 << 46;
    float data[1000];
    attncl_tensor *t = NULL;

    for (int k = 0; k < 2; ++k) {
        ck_ok(attncl_tensor_create(test_context(), ATTNCL_F32, 1, &n, ATTNCL_F32, NULL, &t));
        ck_ok(attncl_tensor_read(t, data, sizeof data));
        for (int64_t i = 0; i < n; ++i) {
            ck_assert(data[i] == 0);
            data[i] = 1;
        }
        ck_ok(attncl_tensor_write(t, data, sizeof data));
        attncl_tensor_destroy(t);
    }
    ck_fails(attncl_tensor_create(test_context(), ATTNCL_F32, 1, &too_many, ATTNCL_F32, NULL, &t),
             ATTNCL_ERR_DEVICE_MEMORY, "the device allows");
}

TEST(flags_of_a_tensor_are_0_or_1)
{
    static const uint8_t given[] = {0, 1, 2, 255};
    static const int64_t n = sizeof given;
    uint8_t got[sizeof given];
    attncl_tensor *t = NULL;

    ck_ok(attncl_tensor_create(test_context(), ATTNCL_U8, 1, &n, ATTNCL_U8, given, &t));
    ck_ok(attncl_tensor_read(t, got, sizeof got));
    for (size_t i = 0; i < sizeof got; ++i)
        ck_assert_int_eq(got[i], given[i] != 0);
    attncl_tensor_destroy(t);
}

// Weights in 8 bits: made from their bytes alone, without views and gradients.
TEST(quantised_tensors_are_whole)
{
    static const unsigned char bytes[1088];
    static const float floats[16 * 32];
    const int64_t dim[] = {16, 32}, odd[] = {16, 33}, x_dim[] = {2, 32}, y_dim[] = {2, 16};
    attncl_context *ctx = test_context();
    attncl_tensor *t = NULL;
    attncl_value dx;

    ck_fails(attncl_tensor_create(ctx, ATTNCL_Q8, 2, dim, ATTNCL_F32, floats, &t), ATTNCL_ERR_DTYPE,
             "F32 does not convert to Q8");
    ck_fails(attncl_tensor_create(ctx, ATTNCL_F32, 2, dim, ATTNCL_Q8, bytes, &t), ATTNCL_ERR_DTYPE,
             "Q8 does not convert to F32");
    ck_fails(attncl_tensor_create(ctx, ATTNCL_Q8, 2, odd, ATTNCL_Q8, bytes, &t), ATTNCL_ERR_SHAPE,
             "k = 33");
    ck_ok(attncl_tensor_create(ctx, ATTNCL_Q8, 2, dim, ATTNCL_Q8, bytes, &t));
    for (int i = 0; i < 2; ++i) {
        attncl_graph *g = NULL;
        ck_ok(attncl_graph_create(ctx, &g));
        const attncl_value w = attncl_graph_tensor(g, t);
        const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, x_dim);
        if (i == 0) {
            attncl_slice(g, w, 0, 0, 8);
        } else {
            const attncl_value y = attncl_linear(g, x, w, ATTNCL_NONE_VALUE);
            const attncl_value dy = attncl_graph_input(g, "dy", ATTNCL_F32, 2, y_dim);
            attncl_graph_gradient(g, 1, &y, &dy, 1, &x, &dx);
        }
        ck_fails(attncl_graph_status(g), ATTNCL_ERR_DTYPE, i ? "weight is Q8" : "a view of Q8");
        attncl_graph_destroy(g);
    }
    attncl_tensor_destroy(t);
}
