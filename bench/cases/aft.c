// SPDX-License-Identifier: MIT
//
// The AFT mixing.  Batch entries and channels do not see each other, so a full-size run is checked
// on all positions of a few channels of the last batch entry: the definition takes T^2 exponentials
// per channel.

#include "cases/define.h"

// Exponentials that a check may take.
#define CHECKED_PAIRS 0x1p25
enum { MAX_CHECKED_CHANNELS = 8 };

// AFT-conv's heads share keys and biases: k [T, B, heads], pos_bias [heads, window].
static attncl_value build_mix(struct case_data *t, const struct sizes *s, attncl_aft_kind kind)
{
    const bool conv = kind == ATTNCL_AFT_CONV;
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    const attncl_value q = case_input(t, "q", 2, DIMS(s->T, s->B, s->C));
    const attncl_value k = case_input(t, "k", 2, DIMS(s->T, s->B, conv ? s->heads : s->C));
    const attncl_value v = case_input(t, "v", 2, DIMS(s->T, s->B, s->C));
    const attncl_value pos_bias = kind == ATTNCL_AFT_SIMPLE ? ATTNCL_NONE_VALUE
                                  : conv ? ARRAY("pos_bias", 1, s->heads, s->window)
                                         : ARRAY("pos_bias", 1, s->T, s->T);

    desc.kind = kind;
    if (!conv)
        desc.window = s->window;
    desc.causal = s->causal;
    return attncl_aft_mix(t->graph, &desc, q, k, v, pos_bias, ATTNCL_NONE_VALUE);
}

static struct part checked_channels(const struct sizes *s)
{
    int64_t n = (int64_t)(CHECKED_PAIRS / ((double)s->T * (double)s->T));

    if (n > MAX_CHECKED_CHANNELS)
        n = MAX_CHECKED_CHANNELS;
    return part_spread(n > 1 ? n : 1, s->C);
}

static void check_mix(const struct case_data *t, const struct sizes *s, struct check *c,
                      attncl_aft_kind kind)
{
    const struct part channels = checked_channels(s);
    const int64_t window = kind == ATTNCL_AFT_FULL     ? s->T
                           : kind == ATTNCL_AFT_SIMPLE ? 0
                                                       : s->window;
    const struct host *q = PART(t, "q", ALL, LAST, channels);
    struct host *y = host_like(q);

    ref_aft_local_fwd(q, PART(t, "k", ALL, LAST, channels), PART(t, "v", ALL, LAST, channels),
                      kind == ATTNCL_AFT_SIMPLE ? NULL : WHOLE("pos_bias"), NULL, (int)window,
                      s->causal, y, host_like(q));
    check_compare(c, (double)s->T, PART(t, "y", ALL, LAST, channels), y);
}

#define BUILD(NAME, kind)                                                                          \
    static attncl_value build_aft_##NAME(struct case_data *t, const struct sizes *s)               \
    {                                                                                              \
        return build_mix(t, s, kind);                                                              \
    }
#define MIXING(NAME, kind)                                                                         \
    BUILD(NAME, kind)                                                                              \
    static void check_aft_##NAME(const struct case_data *t, const struct sizes *s,                 \
                                 struct check *c)                                                  \
    {                                                                                              \
        check_mix(t, s, c, kind);                                                                  \
    }                                                                                              \
    PLAIN_FAMILY(aft_##NAME, SUITE_OP)

MIXING(local, ATTNCL_AFT_LOCAL)
MIXING(full, ATTNCL_AFT_FULL)
MIXING(simple, ATTNCL_AFT_SIMPLE)

BUILD(conv, ATTNCL_AFT_CONV)

// The first channel of some heads.
static void check_aft_conv(const struct case_data *t, const struct sizes *s, struct check *c)
{
    const struct part heads = part_spread(checked_channels(s).count, s->heads);
    const int64_t width = s->C / s->heads;
    const struct part channels = {heads.begin * width, heads.count ? heads.count : s->heads,
                                  heads.step * width};
    const struct host *q = PART(t, "q", ALL, LAST, channels);
    struct host *y = host_like(q);

    ref_aft_conv_fwd(q, PART(t, "k", ALL, LAST, heads), PART(t, "v", ALL, LAST, channels),
                     PART(t, "pos_bias", heads, ALL), NULL, s->causal, y, host_like(q));
    check_compare(c, (double)s->T, PART(t, "y", ALL, LAST, channels), y);
}

PLAIN_FAMILY(aft_conv, SUITE_OP)
