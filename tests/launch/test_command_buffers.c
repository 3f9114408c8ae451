// SPDX-License-Identifier: MIT
// Kernels that are recorded once and enqueued by one call: the bytes of launches one by one, in loops, between copies, in
// callers' buffers, in runs that follow without a wait.

#include <string.h>

#include "attncl/model.h"
#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "attncl/optim.h"
#include "attncl/profile.h"
#include "attncl/tensor.h"
#include "attncl/train.h"
#include "command_buffer_player.h"
#include "compile/program.h"
#include "graph/nodes.h"
#include "support/directory.h"
#include "support/golden.h"
#include "support/test.h"

NO_DEVICE;
FIXTURE_ONCE(player_begin, directory_end);
FIXTURE(player_up, player_down);

TEST(results_are_those_of_plain_launches)
{
    const float(*want)[N] = player_expected();
    static float got[N];
    struct object_counts before, after;

    attncl_context *ctx = player_open("on");
    attncl_graph *g = player_graph(ctx);
    const int n_kernels = player.n_recorded;
    ck_assert_int_eq(n_kernels, (int)attncl__graph_program(g)->command_list.n_commands);
    ck_assert_ptr_nonnull(strstr(player.log_text, "3 command buffers replay kernels of the graph"));
    for (int i = 0; i < N_RUNS; ++i) {
        if (i == 1)
            attncl__objects_count(&before);
        player_run(g, i, got);
        ck_assert_mem_eq(got, want[i], sizeof got);
    }
    attncl__objects_count(&after);
    ck_assert_mem_eq(&after, &before, sizeof after); // runs create nothing
    ck_assert_int_eq(player.n_replays, N_RUNS * (2 + TRIPS));
    ck_assert_int_eq(player.n_plain, 0);
    ck_assert_int_eq(player.n_recorded, n_kernels);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

// A command buffer is enqueued again before it has run.
TEST(runs_follow_without_a_wait)
{
    enum { N_STEPS = 30 };
    static float zero[N], want[N], got[N];

    for (int on = 0; on < 2; ++on) {
        attncl_graph *g = NULL;
        attncl_tensor *w = NULL;
        attncl_context *ctx = player_open(on ? "on" : "off");
        ck_ok(attncl_tensor_create(ctx, ATTNCL_F32, 2, (int64_t[]){ROWS, ROWS}, ATTNCL_F32, zero,
                                   &w));
        ck_ok(attncl_graph_create(ctx, &g));
        const attncl_value weight = attncl_graph_weight(g, w);
        const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){ROWS, ROWS});
        attncl_accumulate(g, weight, player_layer(g, attncl_add(g, weight, x), x));
        ck_ok(attncl_graph_compile(g, NULL));
        player_write(g, 1);
        for (int i = 0; i < N_STEPS; ++i)
            ck_ok(attncl_graph_enqueue(g, 0, NULL, NULL));
        ck_ok(attncl_tensor_read(w, on ? got : want, sizeof got));
        ck_assert_int_eq(player.n_replays, on ? N_STEPS : 0);
        attncl_graph_destroy(g);
        attncl_tensor_destroy(w);
        ck_ok(attncl_context_destroy(ctx));
    }
    ck_assert_mem_eq(got, want, sizeof want);
}

static const char *const models[] = {"lm_feedback_kv", "gru_grad", "lm_transformer_learned_grad",
                                     "encoder_gmlp_grad", "feedback_transformer_grad"};

// Loops of a feedback transformer and of a GRU, gradients.
TABLE_TEST(models_give_the_same_bytes, models)
{
    enum { MAX_BYTES = 1 << 20 };
    static char bytes[2][MAX_BYTES];
    size_t n_bytes[2] = {0, 0};
    struct golden golden;

    golden_load(&golden, models[_i]);
    for (int on = 0; on < 2; ++on) {
        attncl_model *model = NULL;
        attncl_results *results = NULL;
        attncl_context *ctx = player_open(on ? "on" : "off");
        ck_ok(attncl_model_open(ctx, golden.path, &model));
        ck_ok(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL));
        for (size_t i = 0; i < attncl_results_count(results); ++i) {
            const attncl_array *a = attncl_results_at(results, i);
            ck_assert_uint_le(n_bytes[on] + a->bytes, MAX_BYTES);
            memcpy(bytes[on] + n_bytes[on], a->data, a->bytes);
            n_bytes[on] += a->bytes;
        }
        ck_assert_int_eq(player.n_replays > 0, on);
        attncl_results_destroy(results);
        attncl_model_close(model);
        ck_ok(attncl_context_destroy(ctx));
    }
    golden_free(&golden);
    ck_assert_uint_gt(n_bytes[0], 0);
    ck_assert_uint_eq(n_bytes[0], n_bytes[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], n_bytes[0]);
}

// The next step is enqueued before the last one's loss is read.
TEST(training_gives_the_same_bytes)
{
    enum { N_STEPS = 8 };
    static const char config[] =
        "{\"arch\": \"lm\", \"model\": {\"d_model\": 8, \"n_layers\": 1, \"n_vocab\": 7, "
        "\"max_len\": 8, \"layer\": \"transformer\", \"heads\": 2, \"d_ff\": 8}, \"train\": {"
        "\"seq_len\": 8, \"batch_size\": 2, \"steps\": 8, \"dropout\": 0.1}}";
    attncl_train_step step[2][N_STEPS];
    attncl_trainer_options how = ATTNCL_TRAINER_OPTIONS_INIT;
    char text[400], path[FILE_BYTES];

    for (int i = 0; i < 399; ++i)
        text[i] = "abcdefg"[i * i % 7];
    text[399] = '\0';
    directory_write("text", text);
    how.data = directory_path("text", path);
    for (int on = 0; on < 2; ++on) {
        attncl_trainer *trainer = NULL;
        attncl_context *ctx = player_open(on ? "on" : "off");
        ck_ok(attncl_trainer_create(ctx, config, &how, &trainer));
        ck_ok(attncl_trainer_begin(trainer));
        for (int i = 0; i < N_STEPS; ++i) {
            step[on][i] = (attncl_train_step)ATTNCL_TRAIN_STEP_INIT;
            ck_ok(attncl_trainer_begin(trainer));
            ck_ok(attncl_trainer_step(trainer, &step[on][i]));
        }
        ck_assert_int_eq(player.n_replays >= N_STEPS, on);
        attncl_trainer_destroy(trainer);
        ck_ok(attncl_context_destroy(ctx));
    }
    for (int i = 0; i < N_STEPS; ++i) {
        ck_assert_mem_eq(&step[0][i].loss, &step[1][i].loss, sizeof step[0][i].loss);
        ck_assert_mem_eq(&step[0][i].grad_norm, &step[1][i].grad_norm, sizeof step[0][i].grad_norm);
    }
}

static cl_mem buffer_of(const attncl_context *ctx, int run)
{
    float x[N];
    cl_int code = CL_SUCCESS;

    player_fill(x, run);
    cl_mem mem =
        clCreateBuffer(ctx->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof x, x, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return mem;
}

// Kernels are recorded again with another buffer, when it is bound.
TEST(bound_buffers_are_exchanged)
{
    const float(*want)[N] = player_expected();
    static float got[N];

    attncl_context *ctx = player_open("on");
    attncl_graph *g = player_graph(ctx);
    cl_mem in[N_RUNS];
    for (int i = 0; i < N_RUNS; ++i)
        in[i] = buffer_of(ctx, i);
    cl_mem out = buffer_of(ctx, 0);
    ck_ok(attncl_graph_bind(g, "y", out, 0));
    for (int i = 0; i < N_RUNS; ++i) {
        struct object_counts before, after;
        ck_ok(attncl_graph_bind(g, "x", in[i], 0));
        attncl__objects_count(&before);
        ck_ok(attncl_graph_run(g));
        attncl__objects_count(&after);
        ck_assert_mem_eq(&after, &before, sizeof after); // not in the run
        ck_ok(attncl__buffer_read(ctx, out, 0, got, sizeof got));
        ck_assert_mem_eq(got, want[i], sizeof got);
    }
    ck_ok(attncl_graph_bind(g, "x", NULL, 0));
    ck_ok(attncl_graph_bind(g, "y", NULL, 0));
    player_run(g, 2, got);
    ck_assert_mem_eq(got, want[2], sizeof got);
    ck_assert_int_eq(player.n_replays, (N_RUNS + 1) * (2 + TRIPS));
    // What is refused is enqueued kernel by kernel from then on.
    player.refuse_at = player.n_recorded + 2;
    ck_ok(attncl_graph_bind(g, "x", in[3], 0));
    ck_assert_ptr_nonnull(
        strstr(player.log_text, "a graph is not replayed any more: clCommandNDRange"));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", got, sizeof got));
    ck_assert_mem_eq(got, want[3], sizeof got);
    ck_assert_int_eq(player.n_replays, (N_RUNS + 1) * (2 + TRIPS));
    ck_assert_int_eq(player.n_plain,
                     (int)attncl__command_list_length(&attncl__graph_program(g)->command_list));
    for (int i = 0; i < N_RUNS; ++i)
        clReleaseMemObject(in[i]);
    clReleaseMemObject(out);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(a_run_waits_and_gives_an_event)
{
    const float(*want)[N] = player_expected();
    static float got[N];
    cl_event first = NULL, second = NULL;
    cl_int code = CL_SUCCESS;

    attncl_context *ctx = player_open("on");
    attncl_graph *g = player_graph(ctx);
    cl_event gate = clCreateUserEvent(ctx->cl, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    player_write(g, 4);
    ck_ok(attncl_graph_enqueue(g, 1, &gate, &first));
    ck_ok(attncl_graph_enqueue(g, 1, &first, &second));
    ck_assert_int_eq(player.n_replays, 2 * (2 + TRIPS));
    cl_int state = CL_COMPLETE;
    ck_assert_int_eq(
        clGetEventInfo(second, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL),
        CL_SUCCESS);
    ck_assert_int_ne(state, CL_COMPLETE);
    clSetUserEventStatus(gate, CL_COMPLETE);
    ck_assert_int_eq(clWaitForEvents(1, &second), CL_SUCCESS);
    clReleaseEvent(gate);
    clReleaseEvent(first);
    clReleaseEvent(second);
    ck_ok(attncl_graph_read(g, "y", got, sizeof got));
    ck_assert_mem_eq(got, want[4], sizeof got);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

// A profile has the times of each kernel.
TEST(profiled_runs_are_plain)
{
    const float(*want)[N] = player_expected();
    static float got[N];

    player.options.profile = 1;
    attncl_context *ctx = player_open("on");
    attncl_graph *g = player_graph(ctx);
    player_write(g, 1);
    ck_ok(attncl_graph_run_profiled(g));
    ck_assert_int_eq(player.n_replays, 0);
    const attncl_profile_row *row = attncl_graph_profile_row(g, 0);
    ck_assert_ptr_nonnull(row);
    ck_assert_uint_eq(row->runs, 1);
    ck_ok(attncl_graph_read(g, "y", got, sizeof got));
    ck_assert_mem_eq(got, want[1], sizeof got);
    player_run(g, 2, got);
    ck_assert_int_eq(player.n_replays, 2 + TRIPS);
    ck_assert_mem_eq(got, want[2], sizeof got);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(several_queues_are_plain)
{
    attncl_compile_options how = ATTNCL_COMPILE_OPTIONS_INIT;
    const float(*want)[N] = player_expected();
    static float got[N];

    attncl_context *ctx = player_open("on");
    attncl_graph *g = player_layers(ctx);
    attncl_graph_output(
        g, "z",
        attncl_softmax(g, attncl_graph_input(g, "v", ATTNCL_F32, 1, (int64_t[]){ROWS}), -1));
    how.n_queues = 2;
    ck_ok(attncl_graph_compile(g, &how));
    ck_assert_int_eq(attncl__graph_program(g)->command_list.n_queues, 2);
    player_run(g, 0, got);
    ck_assert_mem_eq(got, want[0], sizeof got);
    ck_assert_int_eq(player.n_recorded, 0);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}
