// SPDX-License-Identifier: MIT
// Prologues of linear maps: found where they may be, left alone elsewhere, and compute the same.

#include <math.h>

#include "attncl/ops.h"
#include "compile/lowered.h"
#include "device/context.h"
#include "exec/exec.h"
#include "support/compare.h"
#include "support/fused_nodes.h"
#include "support/test.h"

enum { ROWS = 2, C = 20, WHOLE_C = 32, MANY = 33, HEADS = 2, LIMIT = 70, WINDOW = 40 };
static const float eps = 1e-5f;

static attncl_value sines(attncl_graph *g, int rank, const int64_t *dim, float phase)
{
    static float data[LIMIT * MANY * C];
    for (int i = 0; i < LIMIT * MANY * C; ++i)
        data[i] = sinf(phase + (float)i);
    return attncl_graph_constant(g, ATTNCL_F32, rank, dim, data);
}

// -- layer norm or RMS norm -> skinny GEMM

struct fixture {
    attncl_graph *g;
    attncl_value x, z, weight, maps[2]; // z = LN(x)
};

static struct fixture begin_with(int64_t rows, bool rms)
{
    static const int64_t square[] = {C, C};
    struct fixture f = {.g = NULL};

    ck_ok(attncl_graph_create(test_context(), &f.g));
    f.x = attncl_graph_input(f.g, "x", ATTNCL_F32, 2, (int64_t[]){rows, C});
    f.weight = sines(f.g, 1, square, 1);
    f.z = rms ? attncl_rms_norm(f.g, f.x, f.weight, eps)
              : attncl_layer_norm(f.g, f.x, f.weight, sines(f.g, 1, square, 2), eps);
    f.maps[0] = sines(f.g, 2, square, 3);
    f.maps[1] = sines(f.g, 2, square, 4);
    return f;
}

static struct fixture begin(int64_t rows)
{
    return begin_with(rows, false);
}

static attncl_value map(const struct fixture *f, int i)
{
    return attncl_linear(f->g, f->z, f->maps[i], ATTNCL_NONE_VALUE);
}

static bool device_fuses_norms(void)
{
    const struct gemm g = {.batch = 1, .m = ROWS, .n = C, .k = C, .trans_b = true};
    return attncl__gemm_can_norm(&test_context()->caps, &g);
}

static void expect_norms(const attncl_graph *g, int norms, int fused)
{
    ck_assert_int_eq(count_fused(g, &attncl__op_layer_norm_fwd) +
                         count_fused(g, &attncl__op_rms_norm_fwd),
                     norms);
    ck_assert_int_eq(count_maps(g, FUSED_LINEAR_NORM_W), fused);
}

static void run(attncl_graph *g, const char *name, float y[ROWS * C])
{
    float x[ROWS * C];
    for (int i = 0; i < ROWS * C; ++i)
        x[i] = cosf((float)(i * i));
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl__graph_check_canaries(g));
    ck_ok(attncl_graph_read(g, name, y, sizeof x));
}

static attncl_value sum_of_maps(const struct fixture *f)
{
    return attncl_add(f->g, map(f, 0), map(f, 1));
}

LOOP_TEST(every_gemm_computes_the_norm, 0, 2)
{
    float fused[ROWS * C], apart[ROWS * C];
    struct fixture f = begin_with(ROWS, _i);
    attncl_graph_output(f.g, "y", sum_of_maps(&f));
    ck_ok(attncl_graph_compile(f.g, NULL));
    expect_norms(f.g, device_fuses_norms() ? 0 : 1, device_fuses_norms() ? 2 : 0);
    run(f.g, "y", fused);
    attncl_graph_destroy(f.g);

    f = begin_with(ROWS, _i);
    attncl_graph_output(f.g, "y", sum_of_maps(&f));
    attncl_graph_output(f.g, "z", f.z); // another consumer
    ck_ok(attncl_graph_compile(f.g, NULL));
    expect_norms(f.g, 1, 0);
    run(f.g, "y", apart);
    ck_floats(fused, apart, ROWS * C, 0, 1e-5, "y");
    attncl_graph_destroy(f.g);
}

// Compiles with y as output, and finds the norm a node of its own.
static void stays(struct fixture *f, attncl_value y)
{
    attncl_graph_output(f->g, "y", y);
    ck_ok(attncl_graph_compile(f->g, NULL));
    expect_norms(f->g, 1, 0);
    attncl_graph_destroy(f->g);
}

TEST(a_norm_with_other_consumers_stays)
{
    attncl_linear_desc desc = ATTNCL_LINEAR_DESC_INIT;
    struct fixture f = begin(ROWS);
    stays(&f, attncl_add(f.g, map(&f, 0), f.z));

    f = begin(ROWS);
    desc.residual = f.z;
    stays(&f, attncl_linear_fused(f.g, &desc, f.z, f.maps[0], ATTNCL_NONE_VALUE));

    f = begin(ROWS);
    const attncl_value flat = attncl_reshape(f.g, f.z, 1, (int64_t[]){ROWS * C});
    attncl_graph_output(f.g, "flat", attncl_add(f.g, flat, flat));
    stays(&f, map(&f, 0));
}

TEST(a_norm_of_many_rows_or_of_several_axes_stays)
{
    struct fixture f = begin(MANY);
    stays(&f, map(&f, 0));

    f = begin(ROWS);
    const attncl_value weight = sines(f.g, 2, (int64_t[]){ROWS, C}, 1);
    f.z = attncl_layer_norm(f.g, f.x, weight, weight, eps);
    stays(&f, map(&f, 0));
}

// A loop would compute the norm in each iteration.
TEST(a_norm_before_a_loop_stays)
{
    struct fixture f = begin(ROWS);

    attncl__graph_loop_begin(f.g, 3, false);
    const attncl_value y = map(&f, 0);
    attncl__graph_loop_end(f.g);
    stays(&f, y);
}

// After what overwrites x, x is no longer what the norm read.
TEST(a_norm_of_state_that_changes_stays)
{
    struct fixture f = begin(ROWS);
    const attncl_value place =
        attncl_graph_constant(f.g, ATTNCL_I32, 1, (int64_t[]){1}, (int32_t[]){0});
    const attncl_value state =
        attncl_graph_state(f.g, "memory", ATTNCL_F32, 5, (int64_t[]){1, ROWS, 1, 1, C});
    const attncl_value x = attncl_reshape(f.g, state, 2, (int64_t[]){ROWS, C});
    const struct feedback_store_fwd_params params = {0};

    f.z = attncl_layer_norm(f.g, x, f.weight, f.weight, eps);
    attncl__graph_add(f.g, &attncl__op_feedback_store_fwd, &params, IN(f.x, place, state));
    stays(&f, map(&f, 0));
}

// -- sums -> layer norm -> skinny GEMM

enum sum_form { ADDED, SUM_WANTED, NO_NORM };

// y = a map of LN(x + (bias + sums)), or of that sum itself.
static attncl_graph *map_sums(enum sum_form form, float y[ROWS * WHOLE_C])
{
    enum { N_SUMS = 3 };
    const int64_t dim[] = {N_SUMS, ROWS, WHOLE_C}, square[] = {WHOLE_C, WHOLE_C};
    attncl_graph *g = NULL;

    ck_ok(attncl_graph_create(test_context(), &g));
    const attncl_value norm = sines(g, 1, square, 1), x = sines(g, 2, dim + 1, 7);
    attncl_value z = attncl__graph_add(g, &attncl__op_split_k_reduce_fwd, NULL,
                                       IN(sines(g, 3, dim, 8), sines(g, 1, dim + 2, 9), x));
    if (form == SUM_WANTED)
        attncl_graph_output(g, "sum", z);
    if (form != NO_NORM)
        z = attncl_layer_norm(g, z, norm, norm, eps);
    z = attncl_linear(g, z, sines(g, 2, square, 3), ATTNCL_NONE_VALUE);
    attncl_graph_output(g, "y", z);
    ck_ok(attncl_graph_compile(g, NULL));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl__graph_check_canaries(g));
    ck_ok(attncl_graph_read(g, "y", y, ROWS * WHOLE_C * sizeof y[0]));
    return g;
}

static void expect_sums(attncl_graph *g, bool added)
{
    ck_assert_int_eq(count_maps(g, FUSED_LINEAR_PARTIALS), added);
    ck_assert_int_eq(count_fused(g, &attncl__op_split_k_reduce_fwd), !added);
    attncl_graph_destroy(g);
}

TEST(a_gemm_that_computes_the_norm_adds_the_sums)
{
    const struct gemm size = {.batch = 1, .m = ROWS, .n = WHOLE_C, .k = WHOLE_C, .trans_b = true};
    float added[ROWS * WHOLE_C], apart[ROWS * WHOLE_C];

    expect_sums(map_sums(ADDED, added),
                attncl__gemm_can_add_partials(&test_context()->caps, &size));
    expect_sums(map_sums(SUM_WANTED, apart), false); // another consumer
    ck_floats(added, apart, ROWS * WHOLE_C, 0, 1e-5, "y");
    expect_sums(map_sums(NO_NORM, apart), false);
}

// -- step of attention -> linear map

enum kind { DECODER, FEEDBACK, N_KINDS };
enum form { MERGED, WANTED, DROPS, WHOLE, GRADIENTS, N_FORMS };

static attncl_graph *attend(enum kind kind, enum form form, int64_t rows)
{
    const int64_t cache[] = {LIMIT, rows, C}, memory[] = {LIMIT, rows, HEADS, C / HEADS};
    const struct attention_step_fwd_params decoder = {
        .scale = 0.3f, .n_heads = HEADS, .window = WINDOW};
    const struct feedback_attention_fwd_params feedback = {
        .dropout = {.p = form == DROPS ? 0.5 : 0}};
    const attncl_value none = ATTNCL_NONE_VALUE;
    attncl_graph *g = NULL;
    attncl_value z;

    ck_ok(attncl_graph_create(test_context(), &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, cache + 1);
    const attncl_value position = attncl_graph_input(g, "position", ATTNCL_I32, 1, (int64_t[]){1});
    if (kind == DECODER) {
        const attncl_value keys = attncl_graph_state(g, "keys", ATTNCL_F32, 3, cache);
        const attncl_value values = attncl_graph_state(g, "values", ATTNCL_F32, 3, cache);
        z = attncl__graph_add(g, &attncl__op_attention_step_fwd, &decoder,
                              IN(x, x, x, position, keys, values));
    } else {
        const attncl_value keys = sines(g, 4, memory, 1);
        const attncl_value step =
            form == DROPS ? attncl_graph_input(g, "step", ATTNCL_I32, 0, NULL) : none;
        z = attncl__graph_add(g, &attncl__op_feedback_attention_fwd, &feedback,
                              IN(x, keys, sines(g, 4, memory, 2),
                                 sines(g, 3, (int64_t[]){LIMIT, HEADS, C / HEADS}, 3),
                                 sines(g, 2, memory + 2, 4), none, form == WHOLE ? none : position,
                                 form == GRADIENTS ? keys : none, step));
    }
    attncl_graph_output(
        g, "y",
        attncl_linear(g, z, sines(g, 2, (int64_t[]){C, C}, 5), sines(g, 1, (int64_t[]){C}, 6)));
    if (form == WANTED)
        attncl_graph_output(g, "z", z);
    ck_ok(attncl_graph_compile(g, NULL));
    return g;
}

static void expect_merged(attncl_graph *g, bool merged)
{
    const struct device_caps *caps = &test_context()->caps;
    ck_assert_int_eq(count_maps(g, FUSED_LINEAR_POSITION),
                     merged && caps->variant == VARIANT_GPU && !caps->max_loop_iterations);
}

// Positions of one part and of several.
enum { N_POSITIONS = 4 };
static void run_positions(attncl_graph *g, float y[N_POSITIONS][ROWS * C])
{
    static const int32_t positions[N_POSITIONS] = {1, 32, 64, 69};
    for (int i = 0; i < N_POSITIONS; ++i) {
        ck_ok(attncl_graph_write(g, "position", &positions[i], sizeof positions[i]));
        run(g, "y", y[i]);
    }
    attncl_graph_destroy(g);
}

LOOP_TEST(a_map_merges_the_parts_of_a_step, 0, N_KINDS)
{
    float merged[N_POSITIONS][ROWS * C], apart[N_POSITIONS][ROWS * C];
    attncl_graph *g = attend((enum kind)_i, MERGED, ROWS);
    expect_merged(g, true);
    run_positions(g, merged);

    g = attend((enum kind)_i, WANTED, ROWS); // another consumer
    expect_merged(g, false);
    run_positions(g, apart);
    ck_floats(merged[0], apart[0], N_POSITIONS * ROWS * C, 1e-5, 1e-5, "y");

    g = attend((enum kind)_i, MERGED, MANY);
    expect_merged(g, false);
    attncl_graph_destroy(g);
}

// It leaves parts in the GPU variant alone.
TEST(a_step_that_fell_back_to_the_cpu_variant_stays)
{
    attncl_graph *g = attend(DECODER, MERGED, ROWS);
    struct fit fit = {.n_queues = 1};
    struct device_caps caps = test_context()->caps;
    struct lowered p = {0};

    caps.variant = VARIANT_CPU;
    ck_ok(attncl__fit_use(&fit, &attncl__op_attention_step_fwd, &caps));
    ck_ok(attncl__lower(g, &fit, &p));
    ck_ok(attncl__fuse(&p));
    for (int n = 0; n < p.n_nodes; ++n)
        ck_assert(p.nodes[n].cls != &attncl__op_fused_linear_fwd);
    attncl__lowered_free(&p);
    attncl__fit_free(&fit);
    attncl_graph_destroy(g);
}

// To a memory that is whole, or with what only training needs.
LOOP_TEST(other_feedback_attention_stays, DROPS, N_FORMS)
{
    attncl_graph *g = attend(FEEDBACK, (enum form)_i, ROWS);
    expect_merged(g, false);
    attncl_graph_destroy(g);
}
