// SPDX-License-Identifier: MIT
// The table of ops: names are found, gradient rules agree with the classes that they name, and each op has a spec.

#include "support/op_spec.h"
#include "support/op_test.h"

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

// Ops without an OP_SPEC, whose tests are written by hand.
static const struct {
    const char *op, *reason;
} without_spec[] = {
    {"feedback_load_fwd", "its result's width is a product of its cache's axes"},
    {"zeros_fwd", "its shape is a parameter"},
    {"view_scatter_add_fwd", "its views are parameters"},
    {"aft_step_fwd", "decodes position by position"},
    {"aft_prefill_fwd", "its state is a product of axes"},
    {"fused_step_fwd", "its inputs depend on its parameters"},
    {"loop_index_fwd", "counts a loop's iterations"},
    {"loop_row_fwd", "rows of any rank"},
    {"loop_stack_fwd", "complete after a loop's last iteration"},
    {"loop_sum_fwd", "complete after a loop's last iteration"},
    {"fused_linear_fwd", "refused where a device or many rows do not allow one launch"},
    {"schedule_rate_fwd",
     "its input is one step: the test walks them, on the device and on the host"},
};

// A gradient op counts where the spec of its forward op asks for gradients.
static bool has_spec(int id)
{
    if (spec_find(attncl__op_table[id]->name))
        return true;
    for (int i = OP_NONE + 1; i < N_OP_IDS; ++i) {
        const struct op_class *const forward = attncl__op_table[i];
        const struct op_spec *const spec = spec_find(forward->name);
        for (int r = 0; spec && spec->grad && r < forward->n_grad; ++r)
            if ((int)forward->grad[r].op == id)
                return true;
    }
    return false;
}

TEST(every_op_has_a_spec_or_a_reason)
{
    for (int i = OP_NONE + 1; i < N_OP_IDS; ++i) {
        const char *const name = attncl__op_table[i]->name;
        int n_rows = 0;
        for (size_t row = 0; row < COUNT_OF(without_spec); ++row)
            n_rows += strcmp(without_spec[row].op, name) == 0;
        ck_assert_msg(n_rows == !has_spec(i), "%s %s", name,
                      n_rows ? "has a spec: remove its row of without_spec"
                             : "needs an OP_SPEC beside its reference, or a row of without_spec");
    }
}
