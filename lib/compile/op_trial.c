// SPDX-License-Identifier: MIT
//
// Runs one op with random inputs and compares its results.  Outputs are poisoned first, and every element is compared:
// a sample could miss a faulty row, column or lane.  The host needs some tenths of a second for the largest GEMM, less
// than the compiler needs for its kernel.

#include "compile/probes.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/worst_error.h"
#include "launch/command_list.h"

enum way { REFERENCE, CANDIDATE, N_WAYS };

struct trial_run {
    attncl_context *ctx;
    bool is_rehearsal;     // only collects the programs to build; no data, no buffers
    struct op_trial trial; // with this device's extents
    struct device_caps caps;
    struct tensor_desc in[GRAD_MAX_IN], out[GRAD_MAX_OUT];
    struct span in_span[GRAD_MAX_IN], out_span[GRAD_MAX_OUT];
    struct storage in_storage[GRAD_MAX_IN], out_storage[GRAD_MAX_OUT], scratch[N_WAYS];
    float *host_in[GRAD_MAX_IN], *host_out[N_WAYS][GRAD_MAX_OUT];
    struct command_list list[N_WAYS];
};

static void close_run(struct trial_run *run)
{
    for (int i = 0; i < GRAD_MAX_IN; ++i) {
        attncl__buffer_release(&run->in_storage[i].mem);
        attncl__free(run->host_in[i]);
    }
    for (int i = 0; i < GRAD_MAX_OUT; ++i)
        attncl__buffer_release(&run->out_storage[i].mem);
    for (int way = 0; way < N_WAYS; ++way) {
        attncl__command_list_free(&run->list[way]);
        attncl__buffer_release(&run->scratch[way].mem);
        for (int i = 0; i < GRAD_MAX_OUT; ++i)
            attncl__free(run->host_out[way][i]);
    }
}

static struct op_sig make_sig(struct trial_run *run)
{
    const struct op_class *cls = run->trial.cls;

    return (struct op_sig){.caps = &run->caps,
                           .cls = cls,
                           .params = run->trial.params,
                           .n_in = cls->n_in,
                           .n_out = cls->n_out,
                           .in = run->in,
                           .out = run->out,
                           .save_for_backward = !run->trial.expected};
}

static void set_caps(struct trial_run *run, const struct device_caps *caps)
{
    run->caps = *caps;
    if (run->trial.compute_units)
        run->caps.compute_units = run->trial.compute_units;
}

static int64_t compute_full_extent(const struct device_caps *caps)
{
    enum { TILE = 128, REST = 40, MAX_EXTENT = 4096 };
    const int64_t n = TILE * (int64_t)ceil(sqrt(2.0 * caps->compute_units)) - REST;

    return n < MAX_EXTENT ? n : MAX_EXTENT;
}

static attncl_status upload_input(struct trial_run *run, int i)
{
    struct storage *storage = &run->in_storage[i];
    uint32_t random = (uint32_t)i + 1;

    for (int axis = 0; axis < run->trial.in[i].rank; ++axis)
        if (run->trial.in[i].dim[axis] == 0)
            run->trial.in[i].dim[axis] = compute_full_extent(&run->caps);
    TRY(attncl__desc_make(ATTNCL_F32, run->trial.in[i].rank, run->trial.in[i].dim, &run->in[i]));
    const size_t count = (size_t)attncl__desc_count(&run->in[i]);
    run->in_span[i].storage = storage;
    storage->bytes = count * sizeof(float);
    if (run->is_rehearsal)
        return ATTNCL_OK;
    run->host_in[i] = attncl__alloc_array(count, sizeof(float));
    REQUIRE(run->host_in[i], ATTNCL_ERR_NO_MEMORY, "inputs of %s", run->trial.cls->name);
    for (size_t k = 0; k < count; ++k) {
        random = random * 1664525u + 1013904223u;
        const double x = run->trial.scale * (double)(int32_t)random * 0x1p-31;
        run->host_in[i][k] = (float)(run->trial.whole ? rint(x) : x);
    }
    TRY(attncl__buffer_create(run->ctx, storage->bytes, &storage->mem));
    return attncl__buffer_write(run->ctx, storage->mem, 0, run->host_in[i], storage->bytes);
}

// Creates the op's inputs and outputs.  `before`: the run whose results it reads, or NULL.
static attncl_status open_run(struct trial_run *run, const struct trial_run *before)
{
    for (int i = 0; i < run->trial.cls->n_in; ++i) {
        const int result = run->trial.from[i] - 1;
        if (run->trial.in[i].rank > 0) {
            TRY(upload_input(run, i));
        } else if (before) {
            run->in[i] = result >= 0 ? before->out[result] : before->in[i];
            run->in_span[i] = result >= 0 ? before->out_span[result] : before->in_span[i];
        }
    }
    struct op_sig sig = make_sig(run);
    TRY(attncl__op_infer(run->trial.cls, &sig));
    for (int i = 0; i < run->trial.cls->n_out; ++i) {
        struct storage *storage = &run->out_storage[i];
        if (!attncl__desc_present(&run->out[i]))
            continue;
        storage->bytes = attncl__desc_bytes(&run->out[i]);
        run->out_span[i].storage = storage;
        if (!run->is_rehearsal)
            TRY(attncl__buffer_create(run->ctx, storage->bytes, &storage->mem));
    }
    return ATTNCL_OK;
}

static attncl_status execute(struct trial_run *run, enum way way, const struct device_caps *caps)
{
    const struct op_class *cls = run->trial.cls;
    struct command_list *list = &run->list[way];
    struct storage *scratch = &run->scratch[way];
    struct launcher l = {.caps = &run->caps,
                         .command_list = list,
                         .gemm = caps->clblast ? "clblast" : "native",
                         .is_rehearsal = run->is_rehearsal};

    set_caps(run, caps);
    const struct op_call call = {.sig = make_sig(run),
                                 .in = run->in_span,
                                 .out = run->out_span,
                                 .scratch = {cls->scratch ? scratch : NULL}};
    TRY(attncl__command_list_begin(run->ctx, list));
    if (cls->scratch)
        TRY(cls->scratch(&call.sig, &scratch->bytes));
    if (run->is_rehearsal)
        return cls->launch(&l, &call);
    if (cls->scratch)
        TRY(attncl__buffer_create(run->ctx, scratch->bytes, &scratch->mem));
    for (int i = 0; i < cls->n_out; ++i)
        if (run->out_span[i].storage)
            TRY(attncl__buffer_fill(run->ctx, run->out_storage[i].mem, CANARY_WORD, 0,
                                    run->out_storage[i].bytes));
    TRY(cls->launch(&l, &call));
    return attncl__command_list_enqueue(list, 0, NULL, NULL, NULL);
}

static attncl_status read_results(struct trial_run *run, enum way way)
{
    for (int i = 0; i < run->trial.cls->n_out; ++i) {
        const struct storage *storage = &run->out_storage[i];
        if (!run->out_span[i].storage || run->is_rehearsal)
            continue;
        run->host_out[way][i] = attncl__alloc(storage->bytes);
        REQUIRE(run->host_out[way][i], ATTNCL_ERR_NO_MEMORY, "results of %s", run->trial.cls->name);
        TRY(attncl__buffer_read(run->ctx, storage->mem, 0, run->host_out[way][i], storage->bytes));
    }
    return ATTNCL_OK;
}

static attncl_status compare_result(const struct trial_run *run, int result,
                                    struct worst_error *worst)
{
    const struct op_trial *t = &run->trial;
    const struct tensor_desc *out = &run->out[result];
    const float *found = run->host_out[CANDIDATE][result], *in[GRAD_MAX_IN];
    const int64_t width = t->expected ? out->dim[out->rank - 1] : 1;
    double *row = attncl__alloc_array((size_t)width, sizeof *row);

    REQUIRE(row, ATTNCL_ERR_NO_MEMORY, "results of %s", t->cls->name);
    memcpy(in, run->host_in, sizeof in);
    for (int64_t i = 0; i < attncl__desc_count(out); ++i) {
        if (!t->expected)
            *row = (double)run->host_out[REFERENCE][result][i];
        else if (i % width == 0)
            t->expected(t, in, i / width, row);
        const double expected = row[i % width];
        attncl__worst_error_add(worst, i, (double)found[i], expected,
                                t->unit ? t->unit(result, i, expected) : 1);
    }
    attncl__free(row);
    if (!t->unit)
        worst->error = worst->largest > 0 ? worst->error / worst->largest : INFINITY;
    return ATTNCL_OK;
}

static attncl_status compare_results(const struct trial_run *run, char *why)
{
    const struct op_trial *t = &run->trial;
    const double bound = t->max_error[run->caps.precision];
    char text[WORST_ERROR_BYTES];

    for (int i = 0; i < t->cls->n_out && !*why; ++i) {
        struct worst_error worst = {0};
        if (!run->out_span[i].storage || (t->expected && i > 0))
            continue;
        TRY(compare_result(run, i, &worst));
        if (!attncl__error_is_within(&worst, bound))
            snprintf(why, PROBE_WHY_BYTES,
                     "result %d of %s of %s is wrong by %.2g of its %s, more than %.2g: %s", i,
                     t->cls->name, SHAPE(&run->in[0]), worst.error,
                     t->unit ? "size" : "largest element", bound,
                     attncl__format_worst_error(&worst, text));
    }
    return ATTNCL_OK;
}

static attncl_status compare_with_first_run(const struct trial_run *run, int run_number, char *why)
{
    for (int i = 0; i < run->trial.cls->n_out && !*why; ++i) {
        const struct storage *storage = &run->out_storage[i];
        void *again = run->out_span[i].storage ? attncl__alloc(storage->bytes) : NULL;
        if (!run->out_span[i].storage)
            continue;
        REQUIRE(again, ATTNCL_ERR_NO_MEMORY, "results of %s", run->trial.cls->name);
        const attncl_status status =
            attncl__buffer_read(run->ctx, storage->mem, 0, again, storage->bytes);
        if (status == ATTNCL_OK && memcmp(again, run->host_out[CANDIDATE][i], storage->bytes) != 0)
            snprintf(why, PROBE_WHY_BYTES, "result %d of %s of %s is another one in run %d", i,
                     run->trial.cls->name, SHAPE(&run->in[0]), run_number);
        attncl__free(again);
        TRY(status);
    }
    return ATTNCL_OK;
}

// Compilers that move reads across barriers cause races, which a single run seldom shows.
static attncl_status repeat_run(struct trial_run *run, char *why)
{
    enum { MAX_RUNS = 100 };
    const double max_seconds = 0.1, end = attncl__clock_seconds() + max_seconds;

    for (int i = 2; i <= MAX_RUNS && !*why && attncl__clock_seconds() < end; ++i) {
        TRY(attncl__command_list_enqueue(&run->list[CANDIDATE], 0, NULL, NULL, NULL));
        TRY(compare_with_first_run(run, i, why));
    }
    return ATTNCL_OK;
}

static attncl_status compare(struct trial_run *run, const struct device_caps *reference,
                             const struct device_caps *candidate, char *why)
{
    const bool by_kernels = !run->trial.expected;

    if (by_kernels) {
        TRY(execute(run, REFERENCE, reference));
        TRY(read_results(run, REFERENCE));
    }
    const attncl_status status = execute(run, CANDIDATE, candidate);
    if (run->is_rehearsal)
        return status;
    const bool refused = status == ATTNCL_ERR_COMPILE || status == ATTNCL_ERR_UNSUPPORTED;
    if (refused && !by_kernels) {
        attncl__log(ATTNCL_LOG_INFO, "%s is not compared: %s", run->trial.cls->name,
                    attncl_last_error());
        return ATTNCL_OK;
    }
    if (status != ATTNCL_OK && !refused)
        return status;
    if (refused || (by_kernels && !attncl__command_list_has_new_program(&run->list[CANDIDATE],
                                                                        &run->list[REFERENCE]))) {
        snprintf(why, PROBE_WHY_BYTES, "%s does not build or does not fit", run->trial.cls->name);
        return ATTNCL_OK;
    }
    TRY(read_results(run, CANDIDATE));
    TRY(compare_results(run, why));
    return candidate->is_gpu ? repeat_run(run, why) : ATTNCL_OK;
}

attncl_status attncl__op_trial_compare(attncl_context *ctx, const struct op_trial *trial,
                                       const struct device_caps *reference,
                                       const struct device_caps *candidate, char *why)
{
    attncl_status status = ATTNCL_OK;
    const bool is_rehearsal = !why;
    struct trial_run before = {.ctx = ctx, .is_rehearsal = is_rehearsal};
    struct trial_run run = {.ctx = ctx, .is_rehearsal = is_rehearsal, .trial = *trial};

    set_caps(&run, candidate);
    if (trial->before) {
        before.trial = *trial->before;
        set_caps(&before, reference);
        TRY_DONE(open_run(&before, NULL));
        TRY_DONE(execute(&before, REFERENCE, reference));
    }
    TRY_DONE(open_run(&run, trial->before ? &before : NULL));
    TRY_DONE(compare(&run, reference, candidate, why));
done:
    close_run(&run);
    close_run(&before);
    return status;
}
