// SPDX-License-Identifier: MIT
//
// Counts of OpenCL objects, created and alive.

#include "device/context.h"

static atomic_long live[N_OBJECT_KINDS];
static atomic_long created[N_OBJECT_KINDS];

void attncl__objects_count(struct object_counts *ret)
{
    for (int i = 0; i < N_OBJECT_KINDS; ++i) {
        ret->live[i] = atomic_load(&live[i]);
        ret->created[i] = atomic_load(&created[i]);
    }
}

void attncl__object_created(enum object_kind kind)
{
    atomic_fetch_add(&live[kind], 1);
    atomic_fetch_add(&created[kind], 1);
}

void attncl__object_released(enum object_kind kind)
{
    atomic_fetch_sub(&live[kind], 1);
}

void attncl__event_release(cl_event *event)
{
    if (!*event)
        return;
    clReleaseEvent(*event);
    attncl__object_released(OBJECT_EVENT);
    *event = NULL;
}

void attncl__event_transfer(cl_event event)
{
    if (event)
        attncl__object_released(OBJECT_EVENT);
}
