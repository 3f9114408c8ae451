// SPDX-License-Identifier: MIT
//
// Ops that absorb the node in front of them.  For a skinny GEMM this costs less time than a launch:
//
//   norm -> maps            each map computes the norm itself
//   split_k_reduce -> norm and map   the map adds the partial sums before it normalises
//   attention step -> map   the step leaves partial results, which the map merges
//
// An optimiser update saves writing and reading all gradients once more:
//
//   gradient clipping -> update   the update multiplies by the factor

#include "compile/fuse.h"
#include "op/attention/attention_split.h"

enum { NORM_X, NORM_WEIGHT, NORM_BIAS };

static bool can_take_norm(const struct lowered *p, int n, int norm)
{
    const int result = p->nodes[norm].outputs[0];

    if (!is_op(p, n, &attncl__op_linear_fwd) || p->nodes[n].loop != p->nodes[norm].loop ||
        input_of(p, n, LINEAR_X) != result)
        return false;
    for (int i = LINEAR_X + 1; i < N_LINEAR_INPUTS; ++i)
        if (p->values[input_of(p, n, i)].base == result)
            return false;
    return true;
}

static void list_norm_inputs(const struct lowered *p, int map, int norm,
                             int in[N_FUSED_LINEAR_INPUTS])
{
    attncl__fusion_list_map_inputs(p, map, in);
    in[LINEAR_X] = input_of(p, norm, NORM_X);
    in[FUSED_LINEAR_NORM_W] = input_of(p, norm, NORM_WEIGHT);
    in[FUSED_LINEAR_NORM_B] =
        p->nodes[norm].cls->n_in > NORM_BIAS ? input_of(p, norm, NORM_BIAS) : 0;
}

static bool norm_is_profitable(const struct lowered *p, const struct fusion *fusion)
{
    const struct lowered_value *result = &p->values[p->nodes[fusion->node[0]].outputs[0]];
    int in[N_FUSED_LINEAR_INPUTS];
    struct op_sig sig;

    for (const struct use *use = result->first_use; use; use = use->next) {
        list_norm_inputs(p, use->node, fusion->node[0], in);
        attncl__lowered_fill_class_sig(p, &attncl__op_fused_linear_fwd, in, &sig);
        if (!attncl__fused_linear_supported(&sig))
            return false;
    }
    return true;
}

static bool match_norm(const struct lowered *p, int norm, struct fusion *fusion)
{
    if (!is_op(p, norm, &attncl__op_layer_norm_fwd) && !is_op(p, norm, &attncl__op_rms_norm_fwd))
        return false;
    const struct lowered_value *result = &p->values[p->nodes[norm].outputs[0]];
    if (result->is_output)
        return false;
    for (const struct use *use = result->first_use; use; use = use->next) {
        if (!can_take_norm(p, use->node, norm))
            return false;
        fusion->last = use->node > fusion->last ? use->node : fusion->last;
    }
    fusion->node[fusion->n_nodes++] = norm;
    return result->n_uses > 0 && norm_is_profitable(p, fusion);
}

static attncl_status build_norm(struct lowered *p, const struct fusion *fusion)
{
    const struct lowered_node *norm = &p->nodes[fusion->node[0]];
    const struct layer_norm_fwd_params *norm_params = norm->params; // RMS norm's begin alike
    const struct lowered_value *result = &p->values[norm->outputs[0]];
    struct fused_linear_fwd_params *params;
    int in[N_FUSED_LINEAR_INPUTS];

    while (result->first_use) {
        const int map = result->first_use->node;
        list_norm_inputs(p, map, fusion->node[0], in);
        TRY(attncl__fusion_replace_map(p, map, in, &params));
        params->eps = norm_params->eps;
    }
    attncl__lowered_remove(p, fusion->node[0]);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_norm = {match_norm, build_norm};

static void list_sums_inputs(const struct lowered *p, const struct fusion *fusion,
                             int in[N_FUSED_LINEAR_INPUTS])
{
    const int sum = fusion->node[0];

    attncl__fusion_list_map_inputs(p, fusion->last, in);
    in[LINEAR_X] = input_of(p, sum, SPLIT_K_RESIDUAL);
    in[FUSED_LINEAR_PARTIALS] = input_of(p, sum, SPLIT_K_PARTIALS);
    in[FUSED_LINEAR_PARTIALS_BIAS] = input_of(p, sum, SPLIT_K_BIAS);
}

// After the last fused step of a model: the others' sums are part of the residual stream and have several consumers.
static bool match_sums(const struct lowered *p, int map, struct fusion *fusion)
{
    int in[N_FUSED_LINEAR_INPUTS];
    struct op_sig sig;

    if (!is_op(p, map, &attncl__op_fused_linear_fwd))
        return false;
    fusion->node[fusion->n_nodes++] =
        attncl__fusion_find_sole_producer(p, map, LINEAR_X, &attncl__op_split_k_reduce_fwd);
    fusion->last = map;
    if (fusion->node[0] < 0)
        return false;
    list_sums_inputs(p, fusion, in);
    attncl__lowered_fill_class_sig(p, &attncl__op_fused_linear_fwd, in, &sig);
    return attncl__fused_linear_supported(&sig);
}

static attncl_status build_sums(struct lowered *p, const struct fusion *fusion)
{
    int in[N_FUSED_LINEAR_INPUTS];
    struct fused_linear_fwd_params *params;

    list_sums_inputs(p, fusion, in);
    TRY(attncl__fusion_replace_map(p, fusion->last, in, &params));
    attncl__lowered_remove(p, fusion->node[0]);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_sums = {match_sums, build_sums};

// Attention steps: a decoder's, which first stores the position's key and value, or a feedback transformer's.
enum { DECODER, FEEDBACK, N_KINDS };
static const struct {
    const struct op_class *step;
    int keys, position; // indices of inputs; keys are [limit, B, ...]
} kinds[N_KINDS] = {
    [DECODER] = {&attncl__op_attention_step_fwd, STEP_KEYS, STEP_POSITION},
    [FEEDBACK] = {&attncl__op_feedback_attention_fwd, FEEDBACK_KEYS, FEEDBACK_POSITION},
};

// A step over growing memories, without the inputs and outputs that only training needs and without weights as output.
static bool is_feedback_step(const struct lowered *p, int n)
{
    const struct feedback_attention_fwd_params *params = p->nodes[n].params;
    return has_input(p, n, FEEDBACK_POSITION) && !has_input(p, n, FEEDBACK_DCACHE) &&
           params->dropout.p == 0 && !params->want_weights;
}

// The map computes one number of parts for all rows, so batch entries must share a position.
static bool has_one_position(const struct lowered *p, int n)
{
    return p->values[input_of(p, n, STEP_POSITION)].desc->dim[0] == 1;
}

static void list_merge_inputs(const struct lowered *p, const struct fusion *fusion,
                              int in[N_FUSED_LINEAR_INPUTS])
{
    attncl__fusion_list_map_inputs(p, fusion->last, in);
    in[FUSED_LINEAR_POSITION] = input_of(p, fusion->node[0], kinds[fusion->kind].position);
}

// Infers the step with the fusion's parameters: sig->out[0] describes its partial results.
static attncl_status infer_parts(const struct lowered *p, const struct fusion *fusion,
                                 struct op_sig *sig)
{
    const struct lowered_node *step = &p->nodes[fusion->node[0]];

    attncl__lowered_fill_sig(p, step, sig);
    sig->params = fusion->params;
    return attncl__op_infer(step->cls, sig);
}

static bool merge_is_profitable(const struct lowered *p, struct fusion *fusion)
{
    const struct lowered_node *step = &p->nodes[fusion->node[0]];
    const struct device_caps *caps = attncl__fit_get_caps(p->fit, step->cls, p->caps);
    const int64_t *keys = p->values[step->inputs[kinds[fusion->kind].keys]].desc->dim;
    struct attention_step_fwd_params *decoder = (void *)fusion->params;
    struct feedback_attention_fwd_params *feedback = (void *)fusion->params;
    int in[N_FUSED_LINEAR_INPUTS];
    struct tensor_desc parts;
    struct op_sig sig;

    _Static_assert(sizeof *feedback <= sizeof fusion->params, "a step's parameters");
    memcpy(fusion->params, step->params, step->cls->params_bytes);
    if (fusion->kind == DECODER)
        decoder->n_parts = (int32_t)attncl__step_parts(caps, keys[1] * decoder->n_heads,
                                                       attncl__step_span(decoder->window, keys[0]));
    else
        feedback->n_parts = (int32_t)attncl__step_parts(caps, keys[1] * keys[2], keys[0]);
    if (caps->variant != VARIANT_GPU || infer_parts(p, fusion, &sig) != ATTNCL_OK)
        return false;
    parts = sig.out[0];
    list_merge_inputs(p, fusion, in);
    attncl__lowered_fill_class_sig(p, &attncl__op_fused_linear_fwd, in, &sig);
    sig.in[LINEAR_X] = parts;
    return attncl__fused_linear_supported(&sig);
}

static bool match_merge(const struct lowered *p, int map, struct fusion *fusion)
{
    int step = -1;

    if (!is_op(p, map, &attncl__op_linear_fwd))
        return false;
    for (int kind = 0; step < 0 && kind < N_KINDS; ++kind) {
        step = attncl__fusion_find_sole_producer(p, map, LINEAR_X, kinds[kind].step);
        fusion->kind = kind;
    }
    fusion->node[fusion->n_nodes++] = step;
    fusion->last = map;
    return step >= 0 &&
           (fusion->kind == DECODER ? has_one_position(p, step) : is_feedback_step(p, step)) &&
           merge_is_profitable(p, fusion);
}

static attncl_status build_merge(struct lowered *p, const struct fusion *fusion)
{
    struct lowered_node *step = &p->nodes[fusion->node[0]];
    void *params = attncl__lowered_alloc(p, step->cls->params_bytes);
    struct tensor_desc *parts = attncl__lowered_alloc(p, sizeof *parts);
    struct fused_linear_fwd_params *map;
    int in[N_FUSED_LINEAR_INPUTS];
    struct op_sig sig;

    REQUIRE(params && parts, ATTNCL_ERR_NO_MEMORY, "node of %s", step->cls->name);
    TRY(infer_parts(p, fusion, &sig));
    *parts = sig.out[0];
    list_merge_inputs(p, fusion, in);
    TRY(attncl__fusion_replace_map(p, fusion->last, in, &map));
    map->own_keys = fusion->kind == DECODER;
    map->limit = (int32_t)sig.in[kinds[fusion->kind].keys].dim[0];
    if (fusion->kind == DECODER) // only keys inside the window are split into parts
        map->limit = (int32_t)attncl__step_span(
            ((const struct attention_step_fwd_params *)fusion->params)->window, map->limit);
    step->params = memcpy(params, fusion->params, step->cls->params_bytes);
    p->values[step->outputs[0]].desc = parts;
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_merge = {match_merge, build_merge};

enum { UPDATE_GRAD = 1, SCALE_X = 0, SCALE_FACTOR = 1, MAX_UPDATE_INPUTS = 7 };

static bool match_clipping(const struct lowered *p, int update, struct fusion *fusion)
{
    if (!is_op(p, update, &attncl__op_adam_update_fwd) &&
        !is_op(p, update, &attncl__op_sgd_update_fwd))
        return false;
    fusion->node[fusion->n_nodes++] =
        attncl__fusion_find_sole_producer(p, update, UPDATE_GRAD, &attncl__op_scale_by_fwd);
    fusion->last = update;
    return fusion->node[0] >= 0;
}

// The factor is the update's last input.
static attncl_status build_clipping(struct lowered *p, const struct fusion *fusion)
{
    const struct lowered_node *update = &p->nodes[fusion->last];
    int in[MAX_UPDATE_INPUTS];

    assert(update->cls->n_in <= MAX_UPDATE_INPUTS);
    memcpy(in, update->inputs, (size_t)update->cls->n_in * sizeof in[0]);
    in[UPDATE_GRAD] = input_of(p, fusion->node[0], SCALE_X);
    in[update->cls->n_in - 1] = input_of(p, fusion->node[0], SCALE_FACTOR);
    TRY(attncl__lowered_replace(p, fusion->last, update->cls, update->params, in));
    attncl__lowered_remove(p, fusion->node[0]);
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_clipping = {match_clipping, build_clipping};
