// SPDX-License-Identifier: MIT

#include "harness/run_case.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/try.h"
#include "device/context.h"
#include "harness/check.h"

// A fast wrong result is worth nothing, so an unchecked result is never timed.
static attncl_status check_case(struct trial *t, struct result *r)
{
    struct check check = {0};

    TRY(trial_run(t));
    TRY(trial_read(t));
    t->c->family->check(t, &check);
    host_reset();
    r->error = check_error(&check);
    r->error_limit = check_limit(t->c->family, &t->c->sizes);
    if (!(r->error <= r->error_limit))
        r->outcome = OUTCOME_WRONG;
    return ATTNCL_OK;
}

static attncl_status try_case(struct trial *t, const struct measure_options *options,
                              struct result *r)
{
    TRY(trial_open(t));
    r->compile_s = t->compile_s;
    TRY(check_case(t, r));
    return r->outcome == OUTCOME_WRONG ? ATTNCL_OK : measure(t, options, &r->timing);
}

void run_case(attncl_context *ctx, const struct bench_case *c,
              const struct measure_options *options, struct result *result_ret)
{
    struct trial *t = calloc(1, sizeof *t);
    struct result r = {.c = c, .outcome = OUTCOME_OK};
    attncl_status status = ATTNCL_ERR_NO_MEMORY;

    if (t) {
        t->ctx = ctx;
        t->c = c;
        status = try_case(t, options, &r);
    }
    if (status == ATTNCL_ERR_UNSUPPORTED || status == ATTNCL_ERR_DEVICE_MEMORY)
        r.outcome = OUTCOME_NOT_RUN;
    else if (status != ATTNCL_OK)
        r.outcome = OUTCOME_FAILED;
    if (status != ATTNCL_OK)
        snprintf(r.reason, sizeof r.reason, "%s", t ? attncl_last_error() : "out of memory");
    if (t)
        trial_close(t);
    free(t);
    *result_ret = r;
}
