// SPDX-License-Identifier: MIT
//
// The table of ops, by number and by name.

#include "op/op.h"

const struct op_class *const attncl__op_table[] = {
    NULL, // OP_NONE
#define OP(file, cls, ...) &attncl__op_##cls,
#include "op/op_list.def"
#undef OP
};

const struct op_class *attncl__op_find(const char *name)
{
    for (int i = OP_NONE + 1; i < N_OP_IDS; ++i)
        if (strcmp(attncl__op_table[i]->name, name) == 0)
            return attncl__op_table[i];
    return NULL;
}
