// SPDX-License-Identifier: MIT
//
// subsequent_mask, local_mask: masks from the configuration alone.  There is nothing for a device
// to do.

#include <inttypes.h>

#include "model/model.h"

struct settings {
    int64_t n_seq;
    int64_t reach; // keys seen before a query, and itself
    bool causal;   // none is seen after it
    int64_t rank;  // 3: a batch axis of 1 in the end
};

enum { max_seq = 16384 }; // its square is CONFIG_MAX_TABLE_BYTES

static const struct key subsequent_keys[] = {
    {"seq_len", KEY_INT, AT(settings, n_seq), .min = 1, .max = max_seq},
    SETTING(KEY_BOOL, AT(settings, causal), .otherwise = true),
    SETTING(KEY_INT, AT(settings, rank), .otherwise = 3),
    SETTING(KEY_INT, AT(settings, reach), .otherwise = max_seq),
    {0},
};

static const struct key local_keys[] = {
    {"seq_len", KEY_INT, AT(settings, n_seq), .min = 1, .max = max_seq},
    SETTING(KEY_INT, AT(settings, rank), .otherwise = 2),
    {"local_window_size", KEY_INT, AT(settings, reach), .min = 0},
    {0},
};

static void fill(const struct settings *s, unsigned char *mask)
{
    for (int64_t i = 0; i < s->n_seq; ++i)
        for (int64_t j = 0; j < s->n_seq; ++j)
            mask[i * s->n_seq + j] = j <= i ? i - j < s->reach : !s->causal && j - i < s->reach;
}

static attncl_status run(attncl_model *model, const attncl_array *inputs, size_t n,
                         attncl_results **results_ret)
{
    const struct settings *s = model->settings;
    const int64_t dim[3] = {s->n_seq, s->n_seq, 1};
    attncl_status status = ATTNCL_OK;
    attncl_results *results = NULL;
    unsigned char *mask = NULL;
    struct tensor_desc d;
    (void)inputs, (void)n;

    TRY_DONE(attncl__desc_make(ATTNCL_BOOL, (int)s->rank, dim, &d));
    mask = attncl__alloc(attncl__desc_bytes(&d));
    if (!mask) {
        status = FAIL(ATTNCL_ERR_NO_MEMORY, "mask %s", SHAPE(&d));
        goto done;
    }
    fill(s, mask);
    TRY_DONE(attncl__results_create(1, &results));
    TRY_DONE(attncl__results_add(results, "output", ATTNCL_BOOL, (int)s->rank, dim, mask));
    mask = NULL; // ownership has passed to the results
    *results_ret = results;
    results = NULL;

done:
    attncl_results_destroy(results);
    attncl__free(mask);
    return status;
}

static const struct port subsequent_output[] = {PORT("output", BOOL, "seq_len seq_len 1"), {0}};
static const struct port local_output[] = {PORT("output", BOOL, "seq_len seq_len"), {0}};

const struct arch_class attncl__arch_subsequent_mask = {
    .name = "subsequent_mask",
    .example = "{\"seq_len\": 40}",
    .settings_bytes = sizeof(struct settings),
    .keys = subsequent_keys,
    .outputs = subsequent_output,
    .run = run,
    .no_gradients = true,
};

const struct arch_class attncl__arch_local_mask = {
    .name = "local_mask",
    .example = "{\"seq_len\": 40, \"local_window_size\": 8}",
    .settings_bytes = sizeof(struct settings),
    .keys = local_keys,
    .outputs = local_output,
    .run = run,
    .no_gradients = true,
};
