// SPDX-License-Identifier: MIT

#include "harness/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t wanted;

static void on_signal(int signal_number)
{
    (void)signal_number;
    wanted = 1;
}

void stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool stop_wanted(void)
{
    return wanted != 0;
}
