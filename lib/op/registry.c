// SPDX-License-Identifier: MIT
//
// The table of ops, and what most of them share.

#include "op/op.h"

const struct op_class *const attncl__op_table[] = {
#define OP(file, cls, ...) &attncl__op_##cls,
#include "op/op_list.def"
#undef OP
};
const size_t attncl__n_ops = sizeof attncl__op_table / sizeof attncl__op_table[0];

const struct op_class *attncl__op_find(const char *name)
{
    for (size_t i = 0; i < attncl__n_ops; ++i)
        if (strcmp(attncl__op_table[i]->name, name) == 0)
            return attncl__op_table[i];
    return NULL;
}

attncl_status attncl__infer_like_first(struct op_sig *sig)
{
    const struct tensor_desc *x = &sig->in[0];
    return attncl__desc_make(x->dtype, x->rank, x->dim, &sig->out[0]);
}

void attncl__row_form(const struct device_caps *caps, int64_t width, struct kspec *spec, size_t *local_ret)
{
    const bool cpu = caps->form == FORM_CPU;
    const size_t local = cpu ? 1 : attncl__group_for_row(caps, width);

    kspec_form(spec, cpu ? caps->vector_width : 1, local);
    *local_ret = local;
}

void attncl__flat_form(const struct device_caps *caps, struct kspec *spec, size_t *local_ret,
                       int64_t *per_group_ret)
{
    // CPU: one work-item walks 1024 elements in wide vectors.  GPU: one float4 per work-item.
    const bool cpu = caps->form == FORM_CPU;
    const size_t local = cpu ? 1 : attncl__group_for_row(caps, 1024);
    const int64_t per_item = cpu ? 1024 : 4;

    kspec_form(spec, cpu ? caps->vector_width : 4, local);
    kspec_int(spec, "PER_ITEM", per_item);
    *local_ret = local;
    *per_group_ret = per_item * (int64_t)local;
}
