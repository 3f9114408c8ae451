// SPDX-License-Identifier: MIT
// Kernels that are recorded once and enqueued by one call: the bytes of launches one by one, in loops, between copies, in
// callers' buffers, in runs that follow without a wait; where they are used, and where not.  The calls below stand between
// the library and OpenCL: they count, refuse, and let time pass as on a GPU that gains or does not.

#define _GNU_SOURCE // RTLD_NEXT

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attncl/log.h"
#include "attncl/model.h"
#include "attncl/opencl.h"
#include "attncl/ops.h"
#include "attncl/optim.h"
#include "attncl/profile.h"
#include "attncl/tensor.h"
#include "attncl/train.h"
#include "compile/program.h"
#include "graph/nodes.h"
#include "launch/command_buffer_choice.h"
#include "launch/timed_kernels.h"
#include "support/directory.h"
#include "support/golden.h"
#include "support/test.h"

NO_DEVICE;

// -- the device

#define PLAIN_S 5e-6
#define VERSION(major, minor, patch)                                                               \
    ((cl_uint)(major) << 22 | (cl_uint)(minor) << 12 | (cl_uint)(patch))

enum { EXTENSIONS_WITH_VERSION = 0x1060, CAPABILITIES = 0x12A9, EXIT_SKIPPED = 77 };

static struct command_buffer_calls real_calls;
static int n_replays, n_recorded, n_plain; // enqueued, recorded, enqueued one by one
static int refuse_at;                      // the kernel whose recording is refused; 0: none
static bool is_played;
static double host_time, replayed_seconds; // a kernel of a command buffer takes

struct name_version {
    cl_uint version;
    char name[64];
};

// What the device is said to have: OWN: what it has.
#define OWN UINT32_MAX
static const struct player {
    cl_uint version; // 0: another extension
    cl_uint capabilities;
    const char *without; // a function
} itself = {OWN, OWN, ""};
static struct player played;

// The linker's --wrap sends the library's calls here.
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __real_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!is_played)
        return __real_clock_gettime(clock, t);
    t->tv_sec = (time_t)host_time;
    t->tv_nsec = (long)(1e9 * (host_time - (double)t->tv_sec));
    return 0;
}

#define REAL(type, name, ...)                                                                      \
    type (*real)(__VA_ARGS__) = NULL;                                                              \
    *(void **)&real = dlsym(RTLD_NEXT, name)

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint n_axes,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint n_wait, const cl_event *wait, cl_event *event)
{
    REAL(cl_int, "clEnqueueNDRangeKernel", cl_command_queue, cl_kernel, cl_uint, const size_t *,
         const size_t *, const size_t *, cl_uint, const cl_event *, cl_event *);

    ++n_plain;
    host_time += PLAIN_S;
    return real(queue, kernel, n_axes, offset, global, local, n_wait, wait, event);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void *value,
                       size_t *bytes_ret)
{
    REAL(cl_int, "clGetDeviceInfo", cl_device_id, cl_device_info, size_t, void *, size_t *);
    const cl_int code = real(device, what, bytes, value, bytes_ret);

    if (what == CAPABILITIES && played.capabilities != OWN)
        *(cl_bitfield *)value = played.capabilities;
    if (what == EXTENSIONS_WITH_VERSION && played.version != OWN && value)
        for (struct name_version *at = value; (char *)at < (char *)value + bytes; ++at)
            if (strcmp(at->name, "cl_khr_command_buffer") == 0) {
                at->version = played.version;
                if (played.version == 0)
                    at->name[0] = 'x';
            }
    return code;
}

static cl_int CL_API_CALL add_kernel(struct command_buffer *buffer, cl_command_queue queue,
                                     const cl_ulong *properties, cl_kernel kernel, cl_uint n_axes,
                                     const size_t *offset, const size_t *global,
                                     const size_t *local, cl_uint n_wait, const cl_uint *wait,
                                     cl_uint *sync_point, void **handle)
{
    if (++n_recorded == refuse_at)
        return CL_OUT_OF_RESOURCES;
    return real_calls.add_kernel(buffer, queue, properties, kernel, n_axes, offset, global, local,
                                 n_wait, wait, sync_point, handle);
}

static cl_int CL_API_CALL enqueue(cl_uint n_queues, cl_command_queue *queues,
                                  struct command_buffer *buffer, cl_uint n_wait,
                                  const cl_event *wait, cl_event *event)
{
    ++n_replays;
    host_time += TIMED_SHORT * replayed_seconds;
    return real_calls.enqueue(n_queues, queues, buffer, n_wait, wait, event);
}

void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
    const struct command_buffer_calls mine = {.add_kernel = add_kernel, .enqueue = enqueue};
    REAL(void *, "clGetExtensionFunctionAddressForPlatform", cl_platform_id, const char *);
    void *function = real(platform, name);

    if (strcmp(name, played.without) == 0)
        return NULL;
    if (function && strcmp(name, "clCommandNDRangeKernelKHR") == 0) {
        memcpy(&real_calls.add_kernel, &function, sizeof function);
        memcpy(&function, &mine.add_kernel, sizeof function);
    } else if (function && strcmp(name, "clEnqueueCommandBufferKHR") == 0) {
        memcpy(&real_calls.enqueue, &function, sizeof function);
        memcpy(&function, &mine.enqueue, sizeof function);
    }
    return function;
}

// -- contexts on it

static attncl_context_options options = ATTNCL_CONTEXT_OPTIONS_INIT;
static char log_text[1 << 16], former[8]; // ATTNCL_COMMAND_BUFFERS, as it was

static void listen(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    if (level <= ATTNCL_LOG_INFO && strlen(log_text) + strlen(text) + 2 < sizeof log_text)
        strcat(strcat(log_text, text), "\n");
}

// NULL: what the library chooses.
static attncl_context *open(const char *setting)
{
    attncl_context *ctx = NULL;

    if (setting)
        setenv("ATTNCL_COMMAND_BUFFERS", setting, 1);
    else
        unsetenv("ATTNCL_COMMAND_BUFFERS");
    ck_ok(attncl_context_create(&options, &ctx));
    n_replays = n_recorded = n_plain = 0;
    return ctx;
}

static void up(void)
{
    static char path[FILE_BYTES];

    remove(IN_DIRECTORY("cache/selftest.txt"));
    options = (attncl_context_options)ATTNCL_CONTEXT_OPTIONS_INIT;
    options.cache_dir = directory_path("cache", path);
    unsetenv("ATTNCL_CACHE"); // findings are kept
    const char *const text = getenv("ATTNCL_COMMAND_BUFFERS");
    snprintf(former, sizeof former, "%s", text ? text : "");
    attncl_log_set(listen, NULL, ATTNCL_LOG_INFO);
    log_text[0] = '\0';
    refuse_at = 0;
    is_played = false;
    played = itself;
}

static void down(void)
{
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    setenv("ATTNCL_COMMAND_BUFFERS", former, 1);
    setenv("ATTNCL_CACHE", "off", 1);
}

// A driver with the extension, or no test.
static void skip_without(void)
{
    struct command_buffer_calls calls;
    const char *missing = NULL;
    attncl_context *ctx = NULL;

    played = itself;
    if (attncl_context_create(NULL, &ctx) != ATTNCL_OK) {
        fprintf(stderr, "skipped: %s\n", attncl_last_error());
        exit(EXIT_SKIPPED);
    }
    ck_ok(attncl__command_buffers_find(ctx, &calls, &missing));
    ck_ok(attncl_context_destroy(ctx));
    if (missing) {
        fprintf(stderr, "skipped: the device lacks %s\n", missing);
        exit(EXIT_SKIPPED);
    }
    directory_begin();
}

FIXTURE_ONCE(skip_without, directory_end);
FIXTURE(up, down);

enum { ROWS = 24, N = ROWS * ROWS, TRIPS = 3, N_RUNS = 5 };

static attncl_value layer(attncl_graph *g, attncl_value y, attncl_value x)
{
    for (int i = 0; i < 2; ++i)
        y = attncl_softmax(
            g, attncl_add(g, attncl_softmax(g, attncl_linear(g, y, x, ATTNCL_NONE_VALUE), -1), x),
            -1);
    return y;
}

// Six kernels, six in a loop, six.
static attncl_graph *layers(attncl_context *ctx)
{
    attncl_graph *g = NULL;

    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){ROWS, ROWS});
    attncl_value y = layer(g, x, x);
    attncl_graph_output(g, "first", y);
    attncl__graph_loop_begin(g, TRIPS);
    y = layer(g, y, x);
    attncl__graph_loop_end(g);
    attncl_graph_output(g, "y", layer(g, y, x));
    return g;
}

static attncl_graph *compiled(attncl_context *ctx)
{
    attncl_graph *g = layers(ctx);

    ck_ok(attncl_graph_compile(g, NULL));
    return g;
}

static void fill(float x[N], int run)
{
    for (int i = 0; i < N; ++i)
        x[i] = (float)((i * 37 + run * 11) % 101) / 50 - 1;
}

static void write(attncl_graph *g, int run)
{
    float x[N];

    fill(x, run);
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
}

static void run(attncl_graph *g, int i, float y[N])
{
    write(g, i);
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", y, N * sizeof *y));
}

// What runs of `layers` give, kernel by kernel.
static const float (*expected(void))[N]
{
    static float want[N_RUNS][N];
    static bool known;

    if (known)
        return (const float(*)[N])want;
    attncl_context *ctx = open("off");
    attncl_graph *g = compiled(ctx);
    for (int i = 0; i < N_RUNS; ++i)
        run(g, i, want[i]);
    ck_assert_int_eq(n_recorded + n_replays, 0);
    ck_assert_int_gt(n_plain, 0);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
    known = true;
    return (const float(*)[N])want;
}

TEST(results_are_those_of_plain_launches)
{
    const float(*want)[N] = expected();
    static float got[N];
    struct object_counts before, after;

    attncl_context *ctx = open("on");
    attncl_graph *g = compiled(ctx);
    const int n_kernels = n_recorded;
    ck_assert_int_eq(n_kernels, (int)attncl__graph_program(g)->command_list.n_commands);
    ck_assert_ptr_nonnull(strstr(log_text, "3 command buffers replay kernels of the graph"));
    for (int i = 0; i < N_RUNS; ++i) {
        if (i == 1)
            attncl__objects_count(&before);
        run(g, i, got);
        ck_assert_mem_eq(got, want[i], sizeof got);
    }
    attncl__objects_count(&after);
    ck_assert_mem_eq(&after, &before, sizeof after); // runs create nothing
    ck_assert_int_eq(n_replays, N_RUNS * (2 + TRIPS));
    ck_assert_int_eq(n_plain, 0);
    ck_assert_int_eq(n_recorded, n_kernels);
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
        attncl_context *ctx = open(on ? "on" : "off");
        ck_ok(attncl_tensor_create(ctx, ATTNCL_F32, 2, (int64_t[]){ROWS, ROWS}, ATTNCL_F32, zero,
                                   &w));
        ck_ok(attncl_graph_create(ctx, &g));
        const attncl_value weight = attncl_graph_weight(g, w);
        const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){ROWS, ROWS});
        attncl_accumulate(g, weight, layer(g, attncl_add(g, weight, x), x));
        ck_ok(attncl_graph_compile(g, NULL));
        write(g, 1);
        for (int i = 0; i < N_STEPS; ++i)
            ck_ok(attncl_graph_enqueue(g, 0, NULL, NULL));
        ck_ok(attncl_tensor_read(w, on ? got : want, sizeof got));
        ck_assert_int_eq(n_replays, on ? N_STEPS : 0);
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
        attncl_context *ctx = open(on ? "on" : "off");
        ck_ok(attncl_model_open(ctx, golden.path, &model));
        ck_ok(attncl_model_run(model, golden.inputs, golden.n_inputs, &results, NULL));
        for (size_t i = 0; i < attncl_results_count(results); ++i) {
            const attncl_array *a = attncl_results_at(results, i);
            ck_assert_uint_le(n_bytes[on] + a->bytes, MAX_BYTES);
            memcpy(bytes[on] + n_bytes[on], a->data, a->bytes);
            n_bytes[on] += a->bytes;
        }
        ck_assert_int_eq(n_replays > 0, on);
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
        attncl_context *ctx = open(on ? "on" : "off");
        ck_ok(attncl_trainer_create(ctx, config, &how, &trainer));
        ck_ok(attncl_trainer_begin(trainer));
        for (int i = 0; i < N_STEPS; ++i) {
            step[on][i] = (attncl_train_step)ATTNCL_TRAIN_STEP_INIT;
            ck_ok(attncl_trainer_begin(trainer));
            ck_ok(attncl_trainer_step(trainer, &step[on][i]));
        }
        ck_assert_int_eq(n_replays >= N_STEPS, on);
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

    fill(x, run);
    cl_mem mem =
        clCreateBuffer(ctx->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof x, x, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return mem;
}

// Kernels are recorded again with another buffer, when it is bound.
TEST(bound_buffers_are_exchanged)
{
    const float(*want)[N] = expected();
    static float got[N];

    attncl_context *ctx = open("on");
    attncl_graph *g = compiled(ctx);
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
    run(g, 2, got);
    ck_assert_mem_eq(got, want[2], sizeof got);
    ck_assert_int_eq(n_replays, (N_RUNS + 1) * (2 + TRIPS));
    // What is refused is enqueued kernel by kernel from then on.
    refuse_at = n_recorded + 2;
    ck_ok(attncl_graph_bind(g, "x", in[3], 0));
    ck_assert_ptr_nonnull(strstr(log_text, "a graph is not replayed any more: clCommandNDRange"));
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", got, sizeof got));
    ck_assert_mem_eq(got, want[3], sizeof got);
    ck_assert_int_eq(n_replays, (N_RUNS + 1) * (2 + TRIPS));
    ck_assert_int_eq(n_plain,
                     (int)attncl__command_list_length(&attncl__graph_program(g)->command_list));
    for (int i = 0; i < N_RUNS; ++i)
        clReleaseMemObject(in[i]);
    clReleaseMemObject(out);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(a_run_waits_and_gives_an_event)
{
    const float(*want)[N] = expected();
    static float got[N];
    cl_event first = NULL, second = NULL;
    cl_int code = CL_SUCCESS;

    attncl_context *ctx = open("on");
    attncl_graph *g = compiled(ctx);
    cl_event gate = clCreateUserEvent(ctx->cl, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    write(g, 4);
    ck_ok(attncl_graph_enqueue(g, 1, &gate, &first));
    ck_ok(attncl_graph_enqueue(g, 1, &first, &second));
    ck_assert_int_eq(n_replays, 2 * (2 + TRIPS));
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
    const float(*want)[N] = expected();
    static float got[N];

    options.profile = 1;
    attncl_context *ctx = open("on");
    attncl_graph *g = compiled(ctx);
    write(g, 1);
    ck_ok(attncl_graph_run_profiled(g));
    ck_assert_int_eq(n_replays, 0);
    const attncl_profile_row *row = attncl_graph_profile_row(g, 0);
    ck_assert_ptr_nonnull(row);
    ck_assert_uint_eq(row->runs, 1);
    ck_ok(attncl_graph_read(g, "y", got, sizeof got));
    ck_assert_mem_eq(got, want[1], sizeof got);
    run(g, 2, got);
    ck_assert_int_eq(n_replays, 2 + TRIPS);
    ck_assert_mem_eq(got, want[2], sizeof got);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(several_queues_are_plain)
{
    attncl_compile_options how = ATTNCL_COMPILE_OPTIONS_INIT;
    const float(*want)[N] = expected();
    static float got[N];

    attncl_context *ctx = open("on");
    attncl_graph *g = layers(ctx);
    attncl_graph_output(
        g, "z",
        attncl_softmax(g, attncl_graph_input(g, "v", ATTNCL_F32, 1, (int64_t[]){ROWS}), -1));
    how.n_queues = 2;
    ck_ok(attncl_graph_compile(g, &how));
    ck_assert_int_eq(attncl__graph_program(g)->command_list.n_queues, 2);
    run(g, 0, got);
    ck_assert_mem_eq(got, want[0], sizeof got);
    ck_assert_int_eq(n_recorded, 0);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

// -- which devices have them

static const struct {
    struct player played;
    bool simultaneous; // by a flag
    const char *lacks; // NULL: nothing
} devices[] = {
    {{0, OWN, ""}, false, "lacks cl_khr_command_buffer"},
    {{VERSION(0, 8, 9), OWN, ""}, false, "lacks a version of cl_khr_command_buffer that is known"},
    {{VERSION(0, 9, 0), 0x4, ""}, true, NULL},
    {{VERSION(0, 9, 7), 0xf, ""}, true, NULL},
    {{VERSION(0, 9, 0), 0xb, ""}, true, "lacks command buffers that are enqueued again"},
    {{VERSION(0, 9, 7), 0, ""}, true, "lacks command buffers that are enqueued again"},
    {{VERSION(0, 9, 8), 0, ""}, false, NULL},
    {{VERSION(0, 9, 9), 0, ""}, false, "lacks a version of cl_khr_command_buffer that is known"},
    {{VERSION(1, 0, 0), 0, ""}, false, NULL},
    {{VERSION(1, 0, 1), 0, ""}, false, NULL},
    {{VERSION(1, 1, 0), OWN, ""}, false, "lacks a version of cl_khr_command_buffer that is known"},
    {{VERSION(2, 0, 0), OWN, ""}, false, "lacks a version of cl_khr_command_buffer that is known"},
    {{OWN, OWN, "clFinalizeCommandBufferKHR"}, false, "lacks clFinalizeCommandBufferKHR"},
};

TABLE_TEST(which_versions_are_known, devices)
{
    const float(*want)[N] = expected();
    static float got[N];

    attncl_context *ctx = open("on");
    played = devices[_i].played;
    attncl_graph *g = compiled(ctx);
    if (devices[_i].lacks) {
        run(g, 0, got);
        ck_assert_mem_eq(got, want[0], sizeof got);
        ck_assert_int_eq(n_recorded + n_replays, 0);
        ck_assert_msg(strstr(log_text, devices[_i].lacks) != NULL, "%s", log_text);
    } else { // a run is of the device's own version
        ck_assert(attncl__graph_program(g)->command_list.replays);
        const cl_ulong *properties = ctx->command_buffers.calls.properties;
        ck_assert(devices[_i].simultaneous ? properties && properties[1] == 1 : !properties);
    }
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

// OpenCL before 3.0 does not tell the version.
TEST(a_device_of_another_opencl_is_plain)
{
    attncl_context *ctx = open("on");

    strcpy(ctx->info.opencl_version, "OpenCL 2.1 ");
    attncl_graph *g = compiled(ctx);
    ck_assert_int_eq(n_recorded, 0);
    ck_assert_ptr_nonnull(strstr(log_text, "lacks cl_khr_command_buffer"));
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(what_is_refused_while_recording_is_plain)
{
    const float(*want)[N] = expected();
    static float got[N];

    attncl_context *ctx = open("on");
    refuse_at = 8; // of the second stretch
    attncl_graph *g = compiled(ctx);
    ck_assert_msg(strstr(log_text, "the graph's kernels are not recorded: "
                                   "clCommandNDRangeKernelKHR: CL_OUT_OF_RESOURCES") != NULL,
                  "%s", log_text);
    run(g, 1, got);
    ck_assert_mem_eq(got, want[1], sizeof got);
    ck_assert_int_eq(n_replays, 0);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(a_wrong_setting_is_an_error)
{
    attncl_context *ctx = NULL;

    setenv("ATTNCL_COMMAND_BUFFERS", "yes", 1);
    ck_fails(attncl_context_create(&options, &ctx), ATTNCL_ERR_ARGUMENT,
             "ATTNCL_COMMAND_BUFFERS is yes, expected one of: on, off");
}

// -- which lists are recorded

static struct command_list command_list;
static struct timed_kernels kernels;

static void begin_list(attncl_context *ctx)
{
    ck_ok(attncl__command_list_begin(ctx, &command_list));
    ck_ok(attncl__timed_kernels_open(&kernels, ctx, &ctx->caps));
}

static void end_list(attncl_context *ctx)
{
    attncl__command_list_free(&command_list);
    attncl__timed_kernels_close(&kernels);
    ck_ok(attncl_context_destroy(ctx));
}

static void append(int n)
{
    for (int i = 0; i < n; ++i)
        ck_ok(attncl__timed_kernels_append(&kernels, &command_list, 0, 1));
}

static attncl_status fill_out(attncl_context *ctx, void *user, cl_event *event)
{
    (void)event; // gives none
    return attncl__buffer_fill(ctx, ((struct storage *)user)->mem, 0x40000000u, 0, sizeof(float));
}

// Kernels between copies, calls and loops, short stretches one by one.
TEST(stretches_are_of_kernels_alone)
{
    attncl_context *ctx = open("on");

    begin_list(ctx);
    append(4);
    ck_ok(attncl__command_list_add_copy(&command_list, "copy", &kernels.out[0], 0, &kernels.out[1],
                                        0, sizeof(float)));
    append(3); // too few
    ck_ok(attncl__command_list_add_call(&command_list, "fill", fill_out, &kernels.out[1], NULL));
    append(5);
    const size_t loop = command_list.n_commands;
    append(6);
    attncl__command_list_loop(&command_list, loop, 3);
    append(2);
    attncl__command_list_loop(&command_list, loop + 6, 4); // a loop of two
    append(7);
    attncl__command_list_replay(&command_list, &ctx->caps);
    ck_assert_int_eq(n_recorded, 4 + 5 + 6 + 7);
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
    ck_assert_int_eq(n_replays, 1 + 1 + 3 + 1);
    ck_assert_int_eq(n_plain, 3 + 2 * 4);
    float copied = 0;
    ck_ok(attncl__buffer_read(ctx, kernels.out[1].mem, 0, &copied, sizeof copied));
    ck_assert_float_eq(copied, 2);
    // A part of a run, and one with an event for each command.
    cl_event events[64];
    size_t first = 0;
    ck_ok(attncl__command_list_enqueue_nodes(&command_list, &first, 0));
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, events, NULL));
    for (size_t i = 0; i < attncl__command_list_length(&command_list); ++i)
        attncl__event_release(&events[i]);
    ck_assert_int_eq(n_replays, 6);
    end_list(ctx);
}

// A list that a run flushes on the way is not recorded.
TEST(what_takes_long_is_plain)
{
    attncl_context *ctx = open("on");

    begin_list(ctx);
    append(8);
    attncl__command_list_estimate(&command_list, 0, COMMAND_LIST_FLUSH_SECONDS / 2);
    ck_assert_uint_eq(attncl__command_list_find_stretches(&command_list), 1);
    attncl__command_list_loop(&command_list, 0, 2);
    attncl__command_list_replay(&command_list, &ctx->caps);
    ck_assert_int_eq(n_recorded, 0);
    end_list(ctx);
}

// -- whether a GPU gains

static attncl_context *open_gpu(double seconds)
{
    attncl_context *ctx = open(NULL);

    ctx->caps.is_cpu = false;
    ctx->caps.is_gpu = true;
    ctx->variant_known = true; // its kernels are right
    ctx->variant = VARIANT_GPU;
    ctx->caps.variant = VARIANT_GPU;
    ctx->caps.vector_width = 4;
    ctx->caps.flop_per_second = 1e12;
    ctx->queue_gain_known = true;
    is_played = true;
    host_time = 1;
    replayed_seconds = seconds;
    return ctx;
}

static void close_gpu(attncl_context *ctx)
{
    ck_ok(attncl_context_destroy(ctx));
    is_played = false;
}

static const struct {
    double seconds;
    bool used;
} speeds[] = {{PLAIN_S / 4, true},
              {PLAIN_S / 1.25, true},
              {PLAIN_S / 1.15, false},
              {PLAIN_S, false},
              {2 * PLAIN_S, false}};

TABLE_TEST(a_gpu_uses_what_it_gains_by, speeds)
{
    static float want[N], got[N];
    struct command_buffer_gain gain;
    attncl_context *ctx = open_gpu(speeds[_i].seconds);
    attncl_graph *g = compiled(ctx);

    ck_assert(ctx->command_buffers.gain_known);
    gain = ctx->command_buffers.gain;
    ck_assert_double_eq_tol(gain.speed, PLAIN_S / speeds[_i].seconds, 0.01);
    ck_assert_double_eq_tol(gain.plain_seconds, PLAIN_S, 0.01 * PLAIN_S);
    ck_assert_double_eq_tol(gain.replayed_seconds, speeds[_i].seconds, 0.01 * PLAIN_S);
    ck_assert_ptr_nonnull(strstr(log_text, speeds[_i].used
                                               ? "command buffers are used: kernels of one"
                                               : "command buffers are not used: kernels of one"));
    n_replays = 0;
    run(g, 0, got);
    ck_assert_int_eq(n_replays, speeds[_i].used ? 2 + TRIPS : 0);
    attncl_graph_destroy(g);
    setenv("ATTNCL_COMMAND_BUFFERS", "off", 1);
    g = compiled(ctx);
    n_replays = 0;
    run(g, 0, want);
    ck_assert_int_eq(n_replays, 0);
    ck_assert_mem_eq(got, want, sizeof want);
    attncl_graph_destroy(g);
    close_gpu(ctx);
}

// In another context too, which then enqueues nothing to find out.
TEST(what_was_measured_is_kept)
{
    char text[FINDING_BYTES];
    attncl_context *ctx = open_gpu(PLAIN_S / 2);

    ck_assert(!attncl__finding_read(ctx, "command buffers", text));
    attncl_graph *g = compiled(ctx);
    attncl_graph_destroy(g);
    const struct command_buffer_gain first = ctx->command_buffers.gain;
    close_gpu(ctx);
    ctx = open_gpu(PLAIN_S);
    g = compiled(ctx);
    ck_assert_int_eq(n_plain + n_replays, 0);
    ck_assert(attncl__graph_program(g)->command_list.replays);
    ck_assert_mem_eq(&ctx->command_buffers.gain, &first, sizeof first);
    attncl_graph_destroy(g);
    ck_assert(attncl__finding_read(ctx, "command buffers", text));
    ck_assert_ptr_nonnull(strstr(text, "2.00 times as fast replayed"));
    ck_ok(attncl__finding_keep(ctx, "command buffers", "of another form"));
    close_gpu(ctx);
    ctx = open_gpu(PLAIN_S);
    g = compiled(ctx); // measured again
    ck_assert(!attncl__graph_program(g)->command_list.replays);
    ck_assert_int_gt(n_plain, 0);
    attncl_graph_destroy(g);
    close_gpu(ctx);
}

TEST(a_measurement_that_fails_is_plain)
{
    char text[FINDING_BYTES];
    attncl_context *ctx = open_gpu(PLAIN_S / 2);

    refuse_at = 1;
    attncl_graph *g = compiled(ctx);
    ck_assert(!attncl__graph_program(g)->command_list.replays);
    ck_assert_ptr_nonnull(strstr(log_text, "command buffers are not used: clCommandNDRange"));
    ck_assert(!attncl__finding_read(ctx, "command buffers", text));
    attncl_graph_destroy(g);
    close_gpu(ctx);
}

// On CPUs, where a graph has few kernels, and where it is said.
TEST(what_does_not_need_it_is_not_measured)
{
    attncl_context *ctx = open(NULL);

    if (ctx->caps.is_cpu) {
        attncl_graph *g = compiled(ctx);
        ck_assert(!ctx->command_buffers.known);
        ck_assert_int_eq(n_plain + n_recorded, 0);
        attncl_graph_destroy(g);
    }
    ck_ok(attncl_context_destroy(ctx));

    attncl_graph *g = NULL;
    ctx = open_gpu(PLAIN_S / 2);
    ck_ok(attncl_graph_create(ctx, &g));
    attncl_graph_output(
        g, "y",
        attncl_softmax(g, attncl_graph_input(g, "x", ATTNCL_F32, 1, (int64_t[]){ROWS}), -1));
    ck_ok(attncl_graph_compile(g, NULL));
    attncl_graph_destroy(g);
    setenv("ATTNCL_COMMAND_BUFFERS", "off", 1);
    g = compiled(ctx);
    attncl_graph_destroy(g);
    ck_assert(!ctx->command_buffers.known);
    setenv("ATTNCL_COMMAND_BUFFERS", "on", 1);
    g = compiled(ctx);
    attncl_graph_destroy(g);
    ck_assert(ctx->command_buffers.usable && !ctx->command_buffers.gain_known);
    close_gpu(ctx);
}
