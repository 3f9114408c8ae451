// SPDX-License-Identifier: MIT
// Whether command lists are replayed by command buffers.
#ifndef ATTNCL_LAUNCH_COMMAND_BUFFER_CHOICE_H
#define ATTNCL_LAUNCH_COMMAND_BUFFER_CHOICE_H

#include "launch/command_list.h"

// Records the list where the device has command buffers and gains by them, or ATTNCL_COMMAND_BUFFERS says so.  At first
// use on a GPU with this driver it builds a kernel and runs it, for well below a second.  Any thread.
void attncl__command_list_replay(struct command_list *list, const struct device_caps *caps);

// The measurement alone, where command buffers are usable.
attncl_status attncl__command_buffers_measure(attncl_context *ctx, const struct device_caps *caps,
                                              struct command_buffer_gain *ret);

#endif
