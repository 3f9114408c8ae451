// SPDX-License-Identifier: MIT
// Helpers of the fusion rules: matching over producer and consumer links.

#include "compile/fuse.h"

int attncl__fusion_find_producer(const struct lowered *p, int n, int i, const struct op_class *cls)
{
    const int value = input_of(p, n, i), producer = p->values[value].producer;

    return is_op(p, producer, cls) && p->nodes[producer].outputs[0] == value &&
                   p->nodes[producer].loop == p->nodes[n].loop
               ? producer
               : -1;
}

int attncl__fusion_find_sole_producer(const struct lowered *p, int n, int i,
                                      const struct op_class *cls)
{
    const struct lowered_value *v = &p->values[input_of(p, n, i)];

    return v->n_uses == 1 && !v->is_output ? attncl__fusion_find_producer(p, n, i, cls) : -1;
}

bool attncl__fusion_is_plain_map(const struct lowered *p, int n, int first)
{
    const struct op_class *cls = p->nodes[n].cls;
    // Parameters of fused_linear_fwd begin with those of linear_fwd.
    const struct fused_linear_fwd_params *params = p->nodes[n].params;
    const struct fused_linear_fwd_params *of_first = p->nodes[first].params;

    if (cls != p->nodes[first].cls || input_of(p, n, LINEAR_X) != input_of(p, first, LINEAR_X) ||
        params->linear.activation != ATTNCL_IDENTITY || has_input(p, n, LINEAR_GATE) ||
        has_input(p, n, LINEAR_RESIDUAL))
        return false;
    return cls == &attncl__op_linear_fwd ||
           (input_of(p, n, FUSED_LINEAR_NORM_W) == input_of(p, first, FUSED_LINEAR_NORM_W) &&
            input_of(p, n, FUSED_LINEAR_NORM_B) == input_of(p, first, FUSED_LINEAR_NORM_B) &&
            params->eps == of_first->eps);
}

void attncl__fusion_list_map_inputs(const struct lowered *p, int n, int in[N_FUSED_LINEAR_INPUTS])
{
    memset(in, 0, N_FUSED_LINEAR_INPUTS * sizeof in[0]);
    memcpy(in, p->nodes[n].inputs, (size_t)p->nodes[n].cls->n_in * sizeof in[0]);
}

attncl_status attncl__fusion_replace_map(struct lowered *p, int n, const int *in,
                                         struct fused_linear_fwd_params **params_ret)
{
    struct fused_linear_fwd_params *params = attncl__lowered_alloc(p, sizeof *params);

    REQUIRE(params, ATTNCL_ERR_NO_MEMORY, "node of fused_linear_fwd");
    *params_ret = memcpy(params, p->nodes[n].params, p->nodes[n].cls->params_bytes);
    return attncl__lowered_replace(p, n, &attncl__op_fused_linear_fwd, params, in);
}
