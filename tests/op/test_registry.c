// SPDX-License-Identifier: MIT
// The table of ops: names are found, and gradient rules agree with the classes that they name.

#include "op/op.h"
#include "support/test.h"

NO_DEVICE;

// Of an op whose line in op_list.def says NO_PARAMS; any other's are at least an int32_t.
enum { NO_PARAMS_BYTES = sizeof(struct softmax_fwd_params) };

TEST(every_op_is_found_by_its_name)
{
    for (int i = OP_NONE + 1; i < N_OP_IDS; ++i)
        ck_assert_ptr_eq(attncl__op_find(attncl__op_table[i]->name), attncl__op_table[i]);
    ck_assert_ptr_null(attncl__op_find("absent_fwd"));
}

static void check_rule(const struct op_class *forward, const struct grad_rule *rule)
{
    if (rule->op == OP_NONE)
        return;
    const struct op_class *op = attncl__op_table[rule->op];
    const size_t given = rule->same_params ? forward->params_bytes : NO_PARAMS_BYTES;
    ck_assert_msg(op->params_bytes == given,
                  "%s gives %zu bytes of parameters to %s, which takes %zu", forward->name, given,
                  op->name, op->params_bytes);
    for (int i = 0; i < GRAD_MAX_IN; ++i)
        ck_assert_msg(rule->in[i].kind == REF_NONE || i < op->n_in, "%s has no input %d", op->name,
                      i);
    for (int i = 0; i < GRAD_MAX_OUT; ++i)
        ck_assert_msg(rule->out[i].kind == REF_NONE || i < op->n_out, "%s has no output %d",
                      op->name, i);
}

TEST(a_rule_gives_its_op_the_parameters_that_it_takes)
{
    for (int i = OP_NONE + 1; i < N_OP_IDS; ++i)
        for (int r = 0; r < attncl__op_table[i]->n_grad; ++r)
            check_rule(attncl__op_table[i], &attncl__op_table[i]->grad[r]);
}
