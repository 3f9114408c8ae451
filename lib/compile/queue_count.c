// SPDX-License-Identifier: MIT
//
// How many queues a graph goes to, where no number is asked for: one, or as many as an estimate says gain, with
// what launches and waits take on this device, on devices that were seen to overlap kernels.
//
// Launches of different queues overlap; the work of nodes does not, since it is taken for what a kernel
// takes that fills the device.  So a graph gains where launches take most of its time.

#include "compile/lowered.h"
#include "launch/queue_gain.h"

static const double min_gain = 1.1; // of each further queue: estimates are no better

// Times as fast as on one queue, on p->n_queues; a launch among those of several queues takes `shared` operations.
static attncl_status estimate(struct lowered *p, double shared, double *gain_ret)
{
    TRY(attncl__schedule(p));
    const double one = p->work + p->n_launches * p->costs.launch;
    const double least = p->work + p->n_launches * shared;
    const double several = p->end_time > least ? p->end_time : least;
    *gain_ret = several > 0 ? one / several : 1;
    return ATTNCL_OK;
}

attncl_status attncl__count_queues(attncl_context *ctx, struct lowered *p)
{
    const double rate = p->caps->flop_per_second;
    struct queue_gain measured;
    double gain = 1, best_gain = 1;
    int best = 1;

    if (p->n_queues > 0) {
        // Of a GPU whose costs are not known: a launch and a wait are as long.
        p->costs = (struct queue_costs){.launch = 1e5, .wait = 1e5};
        return ATTNCL_OK;
    }
    p->queues_chosen = true;
    p->n_queues = 1;
    if (!attncl__queues_may_gain(ctx, p->caps))
        return ATTNCL_OK;
    // Launches alone: a graph without branches is not worth the measurement.
    p->n_queues = MAX_QUEUES;
    p->costs = (struct queue_costs){.launch = rate};
    TRY(estimate(p, 0, &gain));
    p->n_queues = 1;
    if (gain < min_gain || !attncl__queues_gain(ctx, p->caps, &measured))
        return ATTNCL_OK;
    p->costs = (struct queue_costs){.launch = rate * measured.launch_seconds,
                                    .wait = rate * measured.wait_seconds};
    for (int n = 2; n <= MAX_QUEUES; ++n) {
        p->n_queues = n;
        TRY(estimate(p, rate * measured.two_seconds, &gain));
        if (gain < min_gain * best_gain)
            continue;
        best = n;
        best_gain = gain;
    }
    p->n_queues = best;
    return ATTNCL_OK;
}
