// SPDX-License-Identifier: MIT

#include "op/attention/attention_split.h"

#include "base/ckd.h"
#include "op/row_launch.h"

int64_t attncl__step_parts(const struct device_caps *caps, int64_t n_groups, int64_t limit)
{
    enum { GROUPS = 64, GROUPS_PER_UNIT = 2, MAX_PARTS = 64, MIN_ROWS = 32 };
    const int64_t units = GROUPS_PER_UNIT * (int64_t)caps->compute_units;
    const int64_t wanted = units > GROUPS ? units : GROUPS, max = ceil_div(limit, MIN_ROWS);
    int64_t parts = n_groups > 0 ? ceil_div(wanted, n_groups) : 1;

    if (parts > MAX_PARTS)
        parts = MAX_PARTS;
    if (parts > max)
        parts = max;
    return parts > 1 ? parts : 1;
}

int64_t attncl__step_span(int64_t window, int64_t limit)
{
    return window > 0 && window < limit ? window : limit;
}

attncl_status attncl__attention_split_scratch(const struct device_caps *caps, int64_t rows,
                                              int64_t limit, int64_t width, size_t *bytes_ret)
{
    size_t n;

    *bytes_ret = 0;
    if (caps->variant == VARIANT_CPU || rows == 0)
        return ATTNCL_OK;
    const int64_t parts = attncl__step_parts(caps, rows, limit);
    REQUIRE(ckd_mul_size((size_t)rows, (size_t)parts, &n) &&
                ckd_mul_size(n, (size_t)(width + 2) * sizeof(float), bytes_ret),
            ATTNCL_ERR_SHAPE, "%" PRId64 " heads of %" PRId64 " channels are too many", rows,
            width);
    return ATTNCL_OK;
}

#define HEAD_ROW_ARGS(x)                                                                           \
    arg_mem((x)->mem), arg_i64((x)->start), arg_i64((x)->memory), arg_i64((x)->batch),             \
        arg_i64((x)->head)
#define STEP_ROW_ARGS(x) arg_mem((x)->mem), arg_i64((x)->start), arg_i64((x)->stride)

static bool is_float4(const struct head_rows *x)
{
    return x->start % 4 == 0 && x->memory % 4 == 0 && x->batch % 4 == 0 && x->head % 4 == 0;
}

static void set_macros(struct kspec *spec, const struct attention_split *p)
{
    kspec_int(spec, "FLOAT4", p->width % 4 == 0 && is_float4(&p->keys));
    attncl__set_cache_type(spec, p->dtype);
    kspec_int(spec, "STORES", p->stores);
    kspec_int(spec, "SLOTS", p->slots);
    kspec_int(spec, "RING", p->ring);
    kspec_int(spec, "SOFTCAP", p->softcap > 0);
    kspec_int(spec, "PLACES", (int)p->places);
    kspec_int(spec, "SLOPES", p->slopes.storage != NULL);
    attncl__set_head_forms(spec, &p->forms);
}

static attncl_status launch_parts(struct launcher *l, const struct attention_split *p,
                                  int64_t n_parts)
{
    const int64_t rows = p->batch * p->n_heads;
    struct group_launch parts =
        attncl__group_launch(l->caps, "attention/attention_split_gpu.cl", "attention_split_gpu_fwd",
                             p->width > 64 ? 512 : 256);
    const int64_t local = (int64_t)parts.local;
    // Per key: a work-item's part of the score, and each of its columns.
    const int64_t part_keys = ceil_div(p->span, n_parts) + 32;

    TRY(attncl__check_loops(l->caps, parts.spec.kernel,
                            part_keys * (ceil_div(p->width, local) + 2 + p->width / local)));
    set_macros(&parts.spec, p);
    return attncl__launch(l, &parts.spec, grid_2d(rows, n_parts, parts.local, 1),
                          ARGS(STEP_ROW_ARGS(&p->q), STEP_ROW_ARGS(&p->new_key),
                               STEP_ROW_ARGS(&p->new_value), HEAD_ROW_ARGS(&p->keys),
                               HEAD_ROW_ARGS(&p->values), arg_mem(p->place_rows), arg_mem(p->u),
                               arg_mem(p->place_bias), arg_mem(p->position),
                               arg_mem(p->n_parts ? p->y : p->scratch), arg_i32(p->n_heads),
                               arg_i32(p->kv_group), arg_i32(p->n_places), arg_i32(p->width),
                               arg_i32(p->limit), arg_i32(p->span), arg_f32(p->scale),
                               arg_f32(p->softcap), arg_local(2 * sizeof(float) * (size_t)p->width),
                               arg_mem(p->slopes), HEAD_FORM_ARGS(&p->forms)));
}

static attncl_status launch_merge(struct launcher *l, const struct attention_split *p,
                                  int64_t n_parts)
{
    enum { PART_FLOATS = 3 }; // attention_merge.clh
    const int64_t rows = p->batch * p->n_heads;
    struct group_launch merge =
        attncl__group_launch(l->caps, "attention/attention_split_gpu.cl",
                             "attention_split_gpu_merge_fwd", p->width > 64 ? 512 : 256);

    set_macros(&merge.spec, p);
    return attncl__launch(l, &merge.spec, grid_1d(rows, merge.local),
                          ARGS(arg_mem(p->scratch), arg_mem(p->position), arg_mem(p->y),
                               arg_i32(p->n_heads), arg_i32(n_parts), arg_i32(p->width),
                               arg_i32(p->span),
                               arg_local(PART_FLOATS * sizeof(float) * (size_t)n_parts)));
}

attncl_status attncl__attention_split_launch(struct launcher *l, const struct attention_split *p)
{
    if (p->n_parts)
        return launch_parts(l, p, p->n_parts);
    const int64_t n_parts = attncl__step_parts(l->caps, p->batch * p->n_heads, p->span);
    TRY(launch_parts(l, p, n_parts));
    return launch_merge(l, p, n_parts);
}
