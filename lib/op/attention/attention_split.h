// SPDX-License-Identifier: MIT
// Attention of one position on GPUs: the keys so far are shared out to several work-groups, whose
// results a second pass merges (cl/attention/attention_split_gpu.cl).
#ifndef ATTNCL_OP_ATTENTION_ATTENTION_SPLIT_H
#define ATTNCL_OP_ATTENTION_ATTENTION_SPLIT_H

#include "op/attention/head_row.h"

// Element (j, b, h, c) at start + j * memory + b * batch + h * head + c.
struct head_rows {
    struct span mem;
    int64_t start, memory, batch, head;
};

// A row [H width] for each batch entry, [G width] of keys and values.
struct step_rows {
    struct span mem;
    int64_t start, stride;
};

struct attention_split {
    struct step_rows q;
    struct step_rows new_key, new_value; // stored at the position first; `stores` false: none
    bool stores;
    bool slots; // a position for each batch entry, of entries that store
    struct head_rows keys, values;
    attncl_dtype
        dtype; // of keys and values: F16, BF16, U8 (rows in 8 bits, of entries that store), else F32
    enum { NO_PLACES, JOINT_PLACES, SPLIT_PLACES } places;
    struct span place_rows, u, place_bias; // of relative positions
    int64_t n_places;
    struct span position, y, scratch;
    int64_t batch, n_heads, kv_group, width,
        limit;            // kv_group: heads that share a key head; limit: of positions
    int64_t span;         // keys that are seen, the last of those so far; at most limit
    int64_t n_parts;      // 0: y is merged from those in scratch; else y receives so many
    float scale, softcap; // softcap 0: none
    struct span slopes;   // absent: none
    struct head_forms forms;
};

static inline void attncl__set_cache_type(struct kspec *spec, attncl_dtype dtype)
{
    kspec_set_stored(spec, "CACHE_TYPE", dtype == ATTNCL_U8 ? ATTNCL_Q8 : dtype);
}

// Of the scratch; 0 in the CPU variant.  ERR_SHAPE where that is too much.
attncl_status attncl__attention_split_scratch(const struct device_caps *caps, int64_t rows,
                                              int64_t limit, int64_t width, size_t *bytes_ret);

attncl_status attncl__attention_split_launch(struct launcher *l, const struct attention_split *p);

// Parts of up to `limit` rows when `n_groups` work-groups would share each of them: as many as fill the
// device, and none of less than 32 rows.
int64_t attncl__step_parts(const struct device_caps *caps, int64_t n_groups, int64_t limit);

// Keys that a step sees at most, of `limit`; window 0: all.
int64_t attncl__step_span(int64_t window, int64_t limit);

// Inputs of the ops that it computes, attention_step_fwd and feedback_attention_fwd.
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
    FEEDBACK_DCACHE, // for the backward pass alone, as the step of dropout is for training
    FEEDBACK_STEP
};

#endif
