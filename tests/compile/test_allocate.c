// SPDX-License-Identifier: MIT
// Allocation: what is in the arena, what has a buffer of its own, what starts as zeros; canaries.

#include "attncl/ops.h"
#include "base/alloc.h"
#include "compile/lowered.h"
#include "compile/program.h"
#include "device/context.h"
#include "support/test.h"

enum { N = 24 };

// y = x + x, z = y + y, an empty value beside them; `flat` is a view of z, `kept` is state.
struct fixture {
    attncl_graph *g;
    attncl_value y, z, empty, kept;
    struct lowered p;
    struct program *program;
};

static attncl_value add(attncl_graph *g, attncl_value a, attncl_value b)
{
    return attncl__graph_add(g, &attncl__op_add_fwd, NULL, IN(a, b));
}

static struct fixture begin(bool canaries)
{
    struct fixture f = {.program = attncl__alloc_zero(sizeof *f.program)};
    const int64_t none[] = {0, 4}, at = 1, dim[] = {1, 4, 1, 1, N};
    const struct feedback_store_fwd_params params = {0};

    ck_ok(attncl_graph_create(test_context(), &f.g));
    f.g->canaries = canaries;
    const attncl_value position = attncl_graph_index_input(f.g, "position", 1, &at, 3, 9);
    f.kept = attncl_graph_state(f.g, "kept", ATTNCL_F32, 5, dim);
    const attncl_value x = attncl_graph_input(f.g, "x", ATTNCL_F32, 2, (int64_t[]){4, N});
    f.y = add(f.g, x, x);
    attncl__graph_add(f.g, &attncl__op_feedback_store_fwd, &params, IN(f.y, position, f.kept));
    f.z = add(f.g, f.y, f.y);
    const attncl_value nothing = attncl_graph_input(f.g, "nothing", ATTNCL_F32, 2, none);
    f.empty = add(f.g, nothing, nothing);
    attncl_graph_output(f.g, "z", attncl_reshape(f.g, f.z, 1, (int64_t[]){4 * N}));
    attncl_graph_output(f.g, "empty", add(f.g, f.empty, f.empty));
    f.program->ctx = test_context();
    ck_ok(attncl__plan(f.g, NULL, &f.p));
    return f;
}

static void end(struct fixture *f)
{
    attncl__program_free(f->program);
    attncl__lowered_free(&f->p);
    attncl_graph_destroy(f->g);
}

LOOP_TEST(each_value_has_its_memory, 0, 2)
{
    struct fixture f = begin(_i);
    ck_ok(attncl__allocate(&f.p, f.program));
    struct program *g = f.program;
    const struct storage *y = &g->storages[f.y.id], *z = &g->storages[f.z.id];

    ck_assert_uint_eq(y->bytes, 4 * N * sizeof(float));
    ck_assert_uint_eq(z->bytes, 4 * N * sizeof(float));
    ck_assert_ptr_ne(y->mem, z->mem);
    ck_assert_ptr_eq(g->storages[f.empty.id].mem, g->empty);
    ck_assert_uint_ge(g->arena_bytes, y->bytes);
    ck_assert_int_eq(g->inputs.n, 3);
    ck_assert_int_eq(g->outputs.n, 2);
    ck_assert_str_eq(g->inputs.list[0].name, "position");
    ck_assert(g->inputs.list[0].ranged && g->inputs.list[0].low == 3 &&
              g->inputs.list[0].high == 9);
    ck_assert(!g->inputs.list[1].ranged);
    ck_assert_ptr_eq(g->outputs.list[0].storage, z); // of the view's base
    ck_assert_int_eq(g->outputs.list[0].desc.rank, 1);
    ck_assert_ptr_eq(g->outputs.list[0].own, z->mem);
    ck_assert_int_eq(g->n_states, 1);
    ck_assert_str_eq(g->states[0].name, "kept");
    ck_assert_ptr_eq(g->states[0].storage, &g->storages[f.kept.id]);
    end(&f);
}

LOOP_TEST(inputs_and_state_start_as_zeros, 0, 2)
{
    struct fixture f = begin(_i);
    float got[4 * N];
    ck_ok(attncl__allocate(&f.p, f.program));
    const struct storage *zeros[] = {f.program->inputs.list[1].storage,
                                     f.program->states[0].storage};

    for (int k = 0; k < 2; ++k) {
        ck_assert_uint_eq(zeros[k]->bytes, sizeof got);
        ck_ok(attncl__buffer_read(test_context(), zeros[k]->mem, 0, got, sizeof got));
        for (int i = 0; i < 4 * N; ++i)
            ck_assert_float_eq(got[i], 0);
    }
    end(&f);
}

// Results are poisoned before a run, inputs and state are not.  No value is without a canary,
// except where it has no elements.
// -- the order in which parts of the arena are released

enum { MAX_PARTS = 64 };

static cl_mem parts[MAX_PARTS];
static int n_parts, n_disordered;
static bool is_watching;

cl_mem __real_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                const void *region, cl_int *ret);
cl_int __real_clReleaseMemObject(cl_mem mem);
cl_mem __wrap_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                const void *region, cl_int *ret);
cl_int __wrap_clReleaseMemObject(cl_mem mem);

cl_mem __wrap_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
                                const void *region, cl_int *ret)
{
    cl_mem mem = __real_clCreateSubBuffer(buffer, flags, type, region, ret);

    if (is_watching && n_parts < MAX_PARTS)
        parts[n_parts++] = mem;
    return mem;
}

cl_int __wrap_clReleaseMemObject(cl_mem mem)
{
    for (int i = 0; is_watching && i < n_parts; ++i)
        if (parts[i] == mem) {
            n_disordered += i != n_parts - 1;
            parts[i] = parts[--n_parts];
        }
    return __real_clReleaseMemObject(mem);
}

// NVIDIA's driver crashes where parts that overlap are released otherwise.
TEST(the_last_part_is_released_first)
{
    attncl_graph *g = NULL;
    n_parts = n_disordered = 0;

    is_watching = true;
    ck_ok(attncl_graph_create(test_context(), &g));
    g->canaries = false;
    attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){4, N});
    for (int i = 0; i < 8; ++i)
        x = attncl_softmax(g, add(g, x, x), -1);
    attncl_graph_output(g, "y", x);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_assert_int_gt(n_parts, 4);
    attncl_graph_destroy(g);
    is_watching = false;
    ck_assert_int_eq(n_parts, 0);
    ck_assert_int_eq(n_disordered, 0);
}

TEST(canaries_surround_each_value)
{
    struct fixture f = begin(true);
    uint32_t word = 0;
    int n_poisoned = 0, n_own = 0;
    ck_ok(attncl__allocate(&f.p, f.program));
    const struct program *g = f.program;

    ck_assert_uint_eq(g->n_guarded, 5); // x, position, kept, y, z
    for (size_t i = 0; i < g->n_guarded; ++i) {
        const struct guarded *v = &g->guarded[i];
        n_poisoned += v->poisoned;
        n_own += v->whole != g->arena;
        ck_assert_uint_ge(v->start, CANARY_BYTES);
        const size_t around[] = {v->start - sizeof word, v->start + v->bytes};
        for (int k = 0; k < 2; ++k) {
            ck_ok(attncl__buffer_read(test_context(), v->whole, around[k], &word, sizeof word));
            ck_assert_uint_eq(word, CANARY_WORD);
        }
    }
    ck_assert_int_eq(n_own, 4);      // y is in the arena
    ck_assert_int_eq(n_poisoned, 1); // z; the arena is poisoned as a whole
    end(&f);
}
