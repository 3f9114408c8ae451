// SPDX-License-Identifier: MIT

#include "op/attention/head_row.h"

#include <inttypes.h>

attncl_status attncl__check_head_forms(const struct op_sig *sig, int i, int64_t width, float eps)
{
    const int64_t *of = sig->axes->of;

    TRY(attncl__check_axes(sig, "A", 1, INT32_MAX));
    REQUIRE(of['F'] <= width / 2, ATTNCL_ERR_SHAPE,
            "table is %s, of %" PRId64 " pairs, heads are of %" PRId64 " channels",
            SHAPE(&sig->in[i + HEAD_TABLE]), of['F'], width);
    REQUIRE(of['D'] < 0 || of['D'] == width, ATTNCL_ERR_SHAPE,
            "%s has D = %" PRId64 ", heads are of %" PRId64 " channels",
            sig->axes->source['D'].name, of['D'], width);
    REQUIRE(eps >= 0, ATTNCL_ERR_ARGUMENT, "eps is %g, must be 0 or more", (double)eps);
    return ATTNCL_OK;
}

struct head_forms attncl__head_forms(const struct op_call *call, int i, bool half, float eps)
{
    const struct tensor_desc *table = &call->sig.in[i + HEAD_TABLE];
    return (struct head_forms){
        {call->in[i + HEAD_QUERY_NORM], call->in[i + HEAD_KEY_NORM], call->in[i + HEAD_TABLE]},
        table->dim[0],
        table->dim[2],
        half,
        eps};
}

void attncl__set_head_forms(struct kspec *spec, const struct head_forms *f)
{
    kspec_int(spec, "ROTATE", !f->mem[HEAD_TABLE].storage ? 0 : f->half ? 2 : 1);
    kspec_int(spec, "HEAD_NORM",
              (f->mem[HEAD_QUERY_NORM].storage != NULL) | (f->mem[HEAD_KEY_NORM].storage != NULL)
                                                              << 1);
}
