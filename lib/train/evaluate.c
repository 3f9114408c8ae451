// SPDX-License-Identifier: MIT
//
// Held-out loss, and accuracy of labels, over every target of the held-out part.

#include <math.h>
#include <stdio.h>

#include "train/trainer.h"

// Loss times targets; targets; targets whose class had the highest score.
enum { SUM_LOSS, SUM_TARGETS, SUM_RIGHT, N_SUMS };

static attncl_status count_right(attncl_trainer *t, attncl_graph *g, const struct batch *batch,
                                 double *right)
{
    const attncl_array *targets = &batch->array[batch->n - 1];
    const size_t count = targets->bytes / sizeof(int32_t);
    const int32_t *target = targets->data;
    int32_t *found = attncl__alloc(targets->bytes);
    REQUIRE(found, ATTNCL_ERR_NO_MEMORY, "%zu classes", count);
    const attncl_status status = attncl_graph_read(g, "class", found, targets->bytes);
    for (size_t i = 0; status == ATTNCL_OK && i < count; ++i)
        *right += target[i] != t->config.settings.pad && found[i] == target[i];
    attncl__free(found);
    return status;
}

// Adds one batch to the sums.
static attncl_status add_batch(attncl_trainer *t, int64_t index, double *sums)
{
    attncl_status status = ATTNCL_OK;
    struct batch batch = {0};
    attncl_graph *g = NULL;
    float loss;
    TRY_DONE(attncl__dataset_batch(t->data, SPLIT_VALID, index, &batch));
    TRY_DONE(attncl__find_step_graph(t, GRAPH_LOSS, &batch, &g));
    TRY_DONE(attncl__write_arrays(g, &batch));
    TRY_DONE(attncl_graph_run(g));
    const double n_targets = (double)attncl__count_targets(t, &batch);
    TRY_DONE(attncl_graph_read(g, "loss", &loss, sizeof loss));
    if (n_targets > 0)
        sums[SUM_LOSS] += (double)loss * n_targets;
    sums[SUM_TARGETS] += n_targets;
    if (attncl__has_labels(t))
        TRY_DONE(count_right(t, g, &batch, &sums[SUM_RIGHT]));
done:
    if (status != ATTNCL_OK && g)
        attncl__graph_drain(g); // it may still read the batch
    attncl__batch_free(&batch);
    return status;
}

// Ranks take batches in turn.  Sums are kept per batch, so that the result does not depend on the number
// of ranks.
static attncl_status mean_loss(attncl_trainer *t, int64_t n_batches, double *loss_ret,
                               double *accuracy_ret)
{
    const int64_t n_ranks = attncl_ranks_size(t->ranks), rank = attncl_ranks_rank(t->ranks);
    double *sums = attncl__alloc_array((size_t)n_batches, N_SUMS * sizeof *sums);
    REQUIRE(sums, ATTNCL_ERR_NO_MEMORY, "losses of %lld batches", (long long)n_batches);
    attncl_status status = ATTNCL_OK;
    double total[N_SUMS] = {0};
    for (int64_t i = rank; i < n_batches; i += n_ranks)
        TRY_DONE(add_batch(t, i, &sums[N_SUMS * i]));
    TRY_DONE(attncl_ranks_sum_double(t->ranks, sums, N_SUMS * (size_t)n_batches));
    for (int64_t i = 0; i < N_SUMS * n_batches; ++i)
        total[i % N_SUMS] += sums[i];
    const double n = total[SUM_TARGETS];
    *loss_ret = n > 0 ? total[SUM_LOSS] / n : 0;
    *accuracy_ret = n > 0 && attncl__has_labels(t) ? total[SUM_RIGHT] / n : NAN;
done:
    attncl__free(sums);
    return status;
}

// Restores the weights after a failure, and returns that failure.
static attncl_status give_up(attncl_trainer *t, attncl_status status)
{
    char message[1024];
    snprintf(message, sizeof message, "%s", attncl_last_error());
    attncl__drop_batches(t);     // their graphs go next
    attncl__drop_step_graphs(t); // a graph whose run failed refuses further runs
    (void)attncl__exchange_averages(t);
    return FAIL(status, "%s", message);
}

attncl_status attncl_trainer_evaluate(attncl_trainer *trainer, double *loss_ret)
{
    REQUIRE(trainer && loss_ret, ATTNCL_ERR_ARGUMENT, "trainer or loss_ret is NULL");
    TRY(attncl__check_usable(trainer));
    const int64_t n_batches = attncl__dataset_count(trainer->data, SPLIT_VALID);
    REQUIRE(n_batches > 0, ATTNCL_ERR_STATE, "there is no held-out part to evaluate");
    double loss = 0, accuracy = NAN;
    TRY(attncl__exchange_averages(trainer));
    const attncl_status status = mean_loss(trainer, n_batches, &loss, &accuracy);
    if (status != ATTNCL_OK)
        return give_up(trainer, status);
    TRY(attncl__exchange_averages(trainer));
    if (loss < trainer->progress.best_loss) {
        trainer->progress.best_loss = loss;
        trainer->progress.best_step = trainer->progress.step;
        trainer->progress.n_worse = 0;
    } else {
        trainer->progress.n_worse += 1;
    }
    trainer->progress.accuracy = accuracy;
    *loss_ret = loss;
    return ATTNCL_OK;
}
