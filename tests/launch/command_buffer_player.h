// SPDX-License-Identifier: MIT
// Calls that stand between the library and OpenCL where command buffers are tested: they count, refuse, and let time pass as
// on a GPU that gains or does not.  A program that links the file is on the played device.
#ifndef TEST_LAUNCH_COMMAND_BUFFER_PLAYER_H
#define TEST_LAUNCH_COMMAND_BUFFER_PLAYER_H

#include "attncl/graph.h"
#include "device/command_buffer.h"
#include "device/context.h"

// What a kernel that is enqueued by itself takes, where time is played.
#define PLAIN_S 5e-6
#define VERSION(major, minor, patch)                                                               \
    ((cl_uint)(major) << 22 | (cl_uint)(minor) << 12 | (cl_uint)(patch))

// What the device is said to have.  OWN: what it has.
#define OWN UINT32_MAX
struct played_device {
    cl_uint version; // 0: another extension
    cl_uint capabilities;
    const char *without; // a function
};
extern const struct played_device player_itself;

extern struct command_buffer_player {
    int n_replays, n_recorded, n_plain; // enqueued, recorded, enqueued one by one
    int refuse_at;                      // the kernel whose recording is refused; 0: none
    bool is_played;                     // time is
    double host_time, replayed_seconds; // a kernel of a command buffer takes
    struct played_device device;
    attncl_context_options options;
    char log_text[1 << 16];
} player;

// Fixtures: once, which needs a driver with the extension or skips; and for each case.
void player_begin(void);
void player_up(void);
void player_down(void);

// A context with this ATTNCL_COMMAND_BUFFERS; NULL: what the library chooses.  Counts begin at 0.
attncl_context *player_open(const char *setting);

// Graphs of an input "x" and an output "y", N elements each: six kernels, six in a loop, six.
enum { ROWS = 24, N = ROWS * ROWS, TRIPS = 3, N_RUNS = 5 };
attncl_value player_layer(attncl_graph *g, attncl_value y, attncl_value x);
attncl_graph *player_layers(attncl_context *ctx);
attncl_graph *player_graph(attncl_context *ctx); // compiled
void player_fill(float x[N], int run);
void player_write(attncl_graph *g, int run);
void player_run(attncl_graph *g, int i, float y[N]);
// What runs of it give, kernel by kernel.
const float (*player_expected(void))[N];

#endif
