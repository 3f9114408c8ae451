// SPDX-License-Identifier: MIT
//
// subsequent_mask, local_mask: masks from the configuration alone, computed on the host.

#include "model/model.h"

struct settings {
    int64_t n_seq;
    int64_t reach; // keys seen up to the query, itself included
    bool causal;   // no key after the query is seen
    int64_t rank;  // 3: with a last batch axis of 1
};

enum { max_seq = 16384 }; // its square is CONFIG_MAX_TABLE_BYTES

static void fill_mask(const struct settings *s, unsigned char *mask)
{
    for (int64_t i = 0; i < s->n_seq; ++i)
        for (int64_t j = 0; j < s->n_seq; ++j)
            mask[i * s->n_seq + j] = j <= i ? i - j < s->reach : !s->causal && j - i < s->reach;
}

static attncl_status run(attncl_model *model, const attncl_array *inputs, size_t n,
                         attncl_results *results)
{
    const struct settings *s = model->settings;
    const int64_t dim[3] = {s->n_seq, s->n_seq, 1};
    void *mask;
    (void)inputs, (void)n;

    TRY(attncl__results_add(results, "output", ATTNCL_BOOL, (int)s->rank, dim, &mask));
    fill_mask(s, mask);
    return ATTNCL_OK;
}

const struct arch_class attncl__arch_subsequent_mask = {
    .example = "{\"seq_len\": 40}",
    .settings_bytes = sizeof(struct settings),
    .keys = KEYS({"seq_len", KEY_INT, AT(settings, n_seq), .min = 1, .max = max_seq},
                 SETTING(KEY_BOOL, AT(settings, causal), .otherwise = true),
                 SETTING(KEY_INT, AT(settings, rank), .otherwise = 3),
                 SETTING(KEY_INT, AT(settings, reach), .otherwise = max_seq)),
    .outputs = PORTS(PORT("output", BOOL, "seq_len seq_len 1")),
    .run = run,
    .no_gradients = true,
};

const struct arch_class attncl__arch_local_mask = {
    .example = "{\"seq_len\": 40, \"local_window_size\": 8}",
    .settings_bytes = sizeof(struct settings),
    .keys = KEYS({"seq_len", KEY_INT, AT(settings, n_seq), .min = 1, .max = max_seq},
                 SETTING(KEY_INT, AT(settings, rank), .otherwise = 2),
                 {"local_window_size", KEY_INT, AT(settings, reach), .min = 0}),
    .outputs = PORTS(PORT("output", BOOL, "seq_len seq_len")),
    .run = run,
    .no_gradients = true,
};
