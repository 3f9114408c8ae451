// SPDX-License-Identifier: MIT

#define _GNU_SOURCE // RTLD_NEXT

#include "command_buffer_player.h"

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "attncl/log.h"
#include "attncl/ops.h"
#include "graph/graph.h"
#include "launch/timed_kernels.h"
#include "support/directory.h"
#include "support/test.h"

enum { EXTENSIONS_WITH_VERSION = 0x1060, CAPABILITIES = 0x12A9, EXIT_SKIPPED = 77 };

static struct command_buffer_calls real_calls;

struct name_version {
    cl_uint version;
    char name[64];
};

const struct played_device player_itself = {OWN, OWN, ""};
struct command_buffer_player player;

// The linker's --wrap sends the library's calls here.
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __real_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!player.is_played)
        return __real_clock_gettime(clock, t);
    t->tv_sec = (time_t)player.host_time;
    t->tv_nsec = (long)(1e9 * (player.host_time - (double)t->tv_sec));
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

    ++player.n_plain;
    player.host_time += PLAIN_S;
    return real(queue, kernel, n_axes, offset, global, local, n_wait, wait, event);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t bytes, void *value,
                       size_t *bytes_ret)
{
    REAL(cl_int, "clGetDeviceInfo", cl_device_id, cl_device_info, size_t, void *, size_t *);
    const cl_int code = real(device, what, bytes, value, bytes_ret);

    if (what == CAPABILITIES && player.device.capabilities != OWN)
        *(cl_bitfield *)value = player.device.capabilities;
    if (what == EXTENSIONS_WITH_VERSION && player.device.version != OWN && value)
        for (struct name_version *at = value; (char *)at < (char *)value + bytes; ++at)
            if (strcmp(at->name, "cl_khr_command_buffer") == 0) {
                at->version = player.device.version;
                if (player.device.version == 0)
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
    if (++player.n_recorded == player.refuse_at)
        return CL_OUT_OF_RESOURCES;
    return real_calls.add_kernel(buffer, queue, properties, kernel, n_axes, offset, global, local,
                                 n_wait, wait, sync_point, handle);
}

static cl_int CL_API_CALL enqueue(cl_uint n_queues, cl_command_queue *queues,
                                  struct command_buffer *buffer, cl_uint n_wait,
                                  const cl_event *wait, cl_event *event)
{
    ++player.n_replays;
    player.host_time += TIMED_SHORT * player.replayed_seconds;
    return real_calls.enqueue(n_queues, queues, buffer, n_wait, wait, event);
}

void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
    const struct command_buffer_calls mine = {.add_kernel = add_kernel, .enqueue = enqueue};
    REAL(void *, "clGetExtensionFunctionAddressForPlatform", cl_platform_id, const char *);
    void *function = real(platform, name);

    if (strcmp(name, player.device.without) == 0)
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

static char former[8]; // ATTNCL_COMMAND_BUFFERS, as it was

static void listen(attncl_log_level level, const char *text, void *user)
{
    (void)user;
    if (level <= ATTNCL_LOG_INFO &&
        strlen(player.log_text) + strlen(text) + 2 < sizeof player.log_text)
        strcat(strcat(player.log_text, text), "\n");
}

// NULL: what the library chooses.
attncl_context *player_open(const char *setting)
{
    attncl_context *ctx = NULL;

    if (setting)
        setenv("ATTNCL_COMMAND_BUFFERS", setting, 1);
    else
        unsetenv("ATTNCL_COMMAND_BUFFERS");
    ck_ok(attncl_context_create(&player.options, &ctx));
    player.n_replays = player.n_recorded = player.n_plain = 0;
    return ctx;
}

void player_up(void)
{
    static char path[FILE_BYTES];

    remove(IN_DIRECTORY("cache/selftest.txt"));
    player.options = (attncl_context_options)ATTNCL_CONTEXT_OPTIONS_INIT;
    player.options.cache_dir = directory_path("cache", path);
    unsetenv("ATTNCL_CACHE"); // findings are kept
    const char *const text = getenv("ATTNCL_COMMAND_BUFFERS");
    snprintf(former, sizeof former, "%s", text ? text : "");
    attncl_log_set(listen, NULL, ATTNCL_LOG_INFO);
    player.log_text[0] = '\0';
    player.refuse_at = 0;
    player.is_played = false;
    player.device = player_itself;
}

void player_down(void)
{
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    setenv("ATTNCL_COMMAND_BUFFERS", former, 1);
    setenv("ATTNCL_CACHE", "off", 1);
}

// A driver with the extension, or no test.
void player_begin(void)
{
    struct command_buffer_calls calls;
    const char *missing = NULL;
    attncl_context *ctx = NULL;

    player.device = player_itself;
    setenv("ATTNCL_GEMM", "native", 1); // a call of CLBlast would end a stretch
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
attncl_value player_layer(attncl_graph *g, attncl_value y, attncl_value x)
{
    for (int i = 0; i < 2; ++i)
        y = attncl_softmax(
            g, attncl_add(g, attncl_softmax(g, attncl_linear(g, y, x, ATTNCL_NONE_VALUE), -1), x),
            -1);
    return y;
}

// Six kernels, six in a loop, six.
attncl_graph *player_layers(attncl_context *ctx)
{
    attncl_graph *g = NULL;

    ck_ok(attncl_graph_create(ctx, &g));
    const attncl_value x = attncl_graph_input(g, "x", ATTNCL_F32, 2, (int64_t[]){ROWS, ROWS});
    attncl_value y = player_layer(g, x, x);
    attncl_graph_output(g, "first", y);
    attncl__graph_loop_begin(g, TRIPS);
    y = player_layer(g, y, x);
    attncl__graph_loop_end(g);
    attncl_graph_output(g, "y", player_layer(g, y, x));
    return g;
}

attncl_graph *player_graph(attncl_context *ctx)
{
    attncl_graph *g = player_layers(ctx);

    ck_ok(attncl_graph_compile(g, NULL));
    return g;
}

void player_fill(float x[N], int run)
{
    for (int i = 0; i < N; ++i)
        x[i] = (float)((i * 37 + run * 11) % 101) / 50 - 1;
}

void player_write(attncl_graph *g, int run)
{
    float x[N];

    player_fill(x, run);
    ck_ok(attncl_graph_write(g, "x", x, sizeof x));
}

void player_run(attncl_graph *g, int i, float y[N])
{
    player_write(g, i);
    ck_ok(attncl_graph_run(g));
    ck_ok(attncl_graph_read(g, "y", y, N * sizeof *y));
}

// What runs of `layers` give, kernel by kernel.
const float (*player_expected(void))[N]
{
    static float want[N_RUNS][N];
    static bool known;

    if (known)
        return (const float(*)[N])want;
    attncl_context *ctx = player_open("off");
    attncl_graph *g = player_graph(ctx);
    for (int i = 0; i < N_RUNS; ++i)
        player_run(g, i, want[i]);
    ck_assert_int_eq(player.n_recorded + player.n_replays, 0);
    ck_assert_int_gt(player.n_plain, 0);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
    known = true;
    return (const float(*)[N])want;
}
