// SPDX-License-Identifier: MIT
// Where command buffers are used: which versions are known, what is refused while recording, which lists are recorded,
// whether a GPU gains by them.

#include <string.h>

#include "attncl/ops.h"
#include "command_buffer_player.h"
#include "compile/program.h"
#include "launch/command_buffer_choice.h"
#include "launch/timed_kernels.h"
#include "support/directory.h"
#include "support/played_gpu.h"
#include "support/test.h"

NO_DEVICE;
FIXTURE_ONCE(player_begin, directory_end);
FIXTURE(player_up, player_down);

// -- which devices have them

static const struct {
    struct played_device played;
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
    const float(*want)[N] = player_expected();
    static float got[N];

    attncl_context *ctx = player_open("on");
    player.device = devices[_i].played;
    attncl_graph *g = player_graph(ctx);
    if (devices[_i].lacks) {
        player_run(g, 0, got);
        ck_assert_mem_eq(got, want[0], sizeof got);
        ck_assert_int_eq(player.n_recorded + player.n_replays, 0);
        ck_assert_msg(strstr(player.log_text, devices[_i].lacks) != NULL, "%s", player.log_text);
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
    attncl_context *ctx = player_open("on");

    strcpy(ctx->info.opencl_version, "OpenCL 2.1 ");
    attncl_graph *g = player_graph(ctx);
    ck_assert_int_eq(player.n_recorded, 0);
    ck_assert_ptr_nonnull(strstr(player.log_text, "lacks cl_khr_command_buffer"));
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(what_is_refused_while_recording_is_plain)
{
    const float(*want)[N] = player_expected();
    static float got[N];

    attncl_context *ctx = player_open("on");
    player.refuse_at = 8; // of the second stretch
    attncl_graph *g = player_graph(ctx);
    ck_assert_msg(strstr(player.log_text, "the graph's kernels are not recorded: "
                                          "clCommandNDRangeKernelKHR: CL_OUT_OF_RESOURCES") != NULL,
                  "%s", player.log_text);
    player_run(g, 1, got);
    ck_assert_mem_eq(got, want[1], sizeof got);
    ck_assert_int_eq(player.n_replays, 0);
    attncl_graph_destroy(g);
    ck_ok(attncl_context_destroy(ctx));
}

TEST(a_wrong_setting_is_an_error)
{
    attncl_context *ctx = NULL;

    setenv("ATTNCL_COMMAND_BUFFERS", "yes", 1);
    ck_fails(attncl_context_create(&player.options, &ctx), ATTNCL_ERR_ARGUMENT,
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
    attncl_context *ctx = player_open("on");

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
    ck_assert_int_eq(player.n_recorded, 4 + 5 + 6 + 7);
    ck_ok(attncl__command_list_enqueue(&command_list, 0, NULL, NULL, NULL));
    ck_assert_int_eq(player.n_replays, 1 + 1 + 3 + 1);
    ck_assert_int_eq(player.n_plain, 3 + 2 * 4);
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
    ck_assert_int_eq(player.n_replays, 6);
    end_list(ctx);
}

// A list that a run flushes on the way is not recorded.
TEST(what_takes_long_is_plain)
{
    attncl_context *ctx = player_open("on");

    begin_list(ctx);
    append(8);
    attncl__command_list_estimate(&command_list, 0, COMMAND_LIST_FLUSH_SECONDS / 2);
    ck_assert_uint_eq(attncl__command_list_find_stretches(&command_list), 1);
    attncl__command_list_loop(&command_list, 0, 2);
    attncl__command_list_replay(&command_list, &ctx->caps);
    ck_assert_int_eq(player.n_recorded, 0);
    end_list(ctx);
}

// -- whether a GPU gains

static attncl_context *open_gpu(double seconds)
{
    attncl_context *ctx = player_open(NULL);

    play_gpu(ctx);
    ctx->queue_gain_known = true;
    player.is_played = true;
    player.host_time = 1;
    player.replayed_seconds = seconds;
    return ctx;
}

static void close_gpu(attncl_context *ctx)
{
    ck_ok(attncl_context_destroy(ctx));
    player.is_played = false;
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
    attncl_graph *g = player_graph(ctx);

    ck_assert(ctx->command_buffers.gain_known);
    gain = ctx->command_buffers.gain;
    ck_assert_double_eq_tol(gain.speed, PLAIN_S / speeds[_i].seconds, 0.01);
    ck_assert_double_eq_tol(gain.plain_seconds, PLAIN_S, 0.01 * PLAIN_S);
    ck_assert_double_eq_tol(gain.replayed_seconds, speeds[_i].seconds, 0.01 * PLAIN_S);
    ck_assert_ptr_nonnull(
        strstr(player.log_text, speeds[_i].used ? "command buffers are used: kernels of one"
                                                : "command buffers are not used: kernels of one"));
    player.n_replays = 0;
    player_run(g, 0, got);
    ck_assert_int_eq(player.n_replays, speeds[_i].used ? 2 + TRIPS : 0);
    attncl_graph_destroy(g);
    setenv("ATTNCL_COMMAND_BUFFERS", "off", 1);
    g = player_graph(ctx);
    player.n_replays = 0;
    player_run(g, 0, want);
    ck_assert_int_eq(player.n_replays, 0);
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
    attncl_graph *g = player_graph(ctx);
    attncl_graph_destroy(g);
    const struct command_buffer_gain first = ctx->command_buffers.gain;
    close_gpu(ctx);
    ctx = open_gpu(PLAIN_S);
    g = player_graph(ctx);
    ck_assert_int_eq(player.n_plain + player.n_replays, 0);
    ck_assert(attncl__graph_program(g)->command_list.replays);
    ck_assert_mem_eq(&ctx->command_buffers.gain, &first, sizeof first);
    attncl_graph_destroy(g);
    ck_assert(attncl__finding_read(ctx, "command buffers", text));
    ck_assert_ptr_nonnull(strstr(text, "2.00 times as fast replayed"));
    ck_ok(attncl__finding_keep(ctx, "command buffers", "of another form"));
    close_gpu(ctx);
    ctx = open_gpu(PLAIN_S);
    g = player_graph(ctx); // measured again
    ck_assert(!attncl__graph_program(g)->command_list.replays);
    ck_assert_int_gt(player.n_plain, 0);
    attncl_graph_destroy(g);
    close_gpu(ctx);
}

TEST(a_measurement_that_fails_is_plain)
{
    char text[FINDING_BYTES];
    attncl_context *ctx = open_gpu(PLAIN_S / 2);

    player.refuse_at = 1;
    attncl_graph *g = player_graph(ctx);
    ck_assert(!attncl__graph_program(g)->command_list.replays);
    ck_assert_ptr_nonnull(
        strstr(player.log_text, "command buffers are not used: clCommandNDRange"));
    ck_assert(!attncl__finding_read(ctx, "command buffers", text));
    attncl_graph_destroy(g);
    close_gpu(ctx);
}

// On CPUs, where a graph has few kernels, and where it is said.
TEST(what_does_not_need_it_is_not_measured)
{
    attncl_context *ctx = player_open(NULL);

    if (ctx->caps.is_cpu) {
        attncl_graph *g = player_graph(ctx);
        ck_assert(!ctx->command_buffers.known);
        ck_assert_int_eq(player.n_plain + player.n_recorded, 0);
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
    g = player_graph(ctx);
    attncl_graph_destroy(g);
    ck_assert(!ctx->command_buffers.known);
    setenv("ATTNCL_COMMAND_BUFFERS", "on", 1);
    g = player_graph(ctx);
    attncl_graph_destroy(g);
    ck_assert(ctx->command_buffers.usable && !ctx->command_buffers.gain_known);
    close_gpu(ctx);
}
