// SPDX-License-Identifier: MIT
// Attention of one position on GPUs: several work-groups share the keys so far, and a second pass
// merges their results (cl/attention/attention_split_gpu.cl).
#ifndef ATTNCL_OP_ATTENTION_ATTENTION_SPLIT_H
#define ATTNCL_OP_ATTENTION_ATTENTION_SPLIT_H

#include "op/attention/head_row.h"

// Element (j, b, h, c) at start + j * memory + b * batch + h * head + c.
struct head_rows {
    struct span mem;
    int64_t start, memory, batch, head;
};

// A row [H width] per batch entry; [G width] for keys and values.
struct step_rows {
    struct span mem;
    int64_t start, stride;
};

struct attention_split {
    struct step_rows q;
    struct step_rows new_key, new_value; // if `stores`, stored at the position first
    bool stores;
    bool slots; // a position per batch entry; needs `stores`
    bool ring;  // position t is in row t mod `limit`; needs `stores`
    struct head_rows keys, values;
    attncl_dtype dtype; // of keys and values: F32, F16, BF16 or, with `stores`, U8 (8-bit rows)
    enum { NO_PLACES, JOINT_PLACES, SPLIT_PLACES } places;
    struct span place_rows, u, place_bias; // of relative positions
    int64_t n_places;
    struct span position, y, scratch;
    int64_t batch, n_heads, kv_group, width; // kv_group: query heads that share a key head
    int64_t limit;                           // number of positions
    int64_t span;                            // a query sees the last `span` keys, at most `limit`
    int64_t n_parts;      // 0: y is merged from parts in the scratch; else y receives n_parts parts
    float scale, softcap; // softcap 0: none
    struct span slopes;   // absent: none
    struct head_forms forms;
};

static inline void attncl__set_cache_type(struct kspec *spec, attncl_dtype dtype)
{
    kspec_set_stored(spec, "CACHE_TYPE", dtype == ATTNCL_U8 ? ATTNCL_Q8 : dtype);
}

// Bytes of scratch; 0 in the CPU variant.  ERR_SHAPE if they are too many.
attncl_status attncl__attention_split_scratch(const struct device_caps *caps, int64_t rows,
                                              int64_t limit, int64_t width, size_t *bytes_ret);

attncl_status attncl__attention_split_launch(struct launcher *l, const struct attention_split *p);

// The number of parts into which to split `limit` rows, each part taking `n_groups` work-groups: enough
// to fill the device, each of at least 32 rows.
int64_t attncl__step_parts(const struct device_caps *caps, int64_t n_groups, int64_t limit);

// The most keys, out of `limit`, that a step sees; window 0: all.
int64_t attncl__step_span(int64_t window, int64_t limit);

// Inputs of the two ops that use it, attention_step_fwd and feedback_attention_fwd.
enum attention_step_input {
    STEP_Q,
    STEP_K,
    STEP_V,
    STEP_POSITION,
    STEP_KEYS,
    STEP_VALUES,
    STEP_SLOPES,
    STEP_FORMS // of heads (head_row.h)
};
enum feedback_attention_input {
    FEEDBACK_Q,
    FEEDBACK_KEYS,
    FEEDBACK_VALUES,
    FEEDBACK_PLACES,
    FEEDBACK_U,
    FEEDBACK_PLACE_BIAS,
    FEEDBACK_POSITION,
    FEEDBACK_DCACHE, // read by the backward pass only
    FEEDBACK_STEP
};

#endif
