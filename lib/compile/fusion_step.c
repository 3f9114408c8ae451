// SPDX-License-Identifier: MIT
//
// Decode steps: [split_k_reduce ->] fused_linear ... -> linear becomes fused_step -> split_k_reduce.
// The fused step, which produces split-K partial sums, takes the position of the node before the last
// linear.

#include "compile/fuse.h"
#include "op/attention/attention_split.h"

// Indices into struct fusion.node; a split_k_reduce of the residual stream may follow.
enum { OUTER, INNER, MAP_Q, MAP_K, MAP_V };

// By kind: the inner op, the number of maps in front of it, and the fused step's inputs that the
// inner op's inputs after q, k and v become.
static const struct {
    const struct op_class *cls;
    int n_maps;
    int inputs[N_FUSED_INPUTS - FUSED_POS_BIAS + 1]; // up to 0
} inner_steps[N_FUSED_STEPS] = {
    [FUSED_AFT] = {&attncl__op_aft_step_fwd,
                   3,
                   {FUSED_POS_BIAS, FUSED_POSITION, FUSED_SUMS, FUSED_KEYS, FUSED_VALUES}},
    [FUSED_ATTENTION] = {&attncl__op_attention_step_fwd,
                         3,
                         {FUSED_POSITION, FUSED_KEYS, FUSED_VALUES, FUSED_POS_BIAS}},
    [FUSED_FFN] = {&attncl__op_fused_linear_fwd, 1, {0}},
};

// Returns the index of the first map; the FFN's inner op is itself a map.
static int first_map(const struct fusion *fusion)
{
    return fusion->kind == FUSED_FFN ? INNER : MAP_Q;
}

// Returns the split_k_reduce node that completes the residual stream; -1 if it is already complete.
static int find_stream(const struct fusion *fusion)
{
    const int end = first_map(fusion) + inner_steps[fusion->kind].n_maps;
    return fusion->n_nodes > end ? fusion->node[end] : -1;
}

static const struct fused_linear_fwd_params *map_params(const struct lowered *p, int map)
{
    return p->nodes[map].params;
}

// The last linear adds to the residual stream, without activation or gate.
static bool is_plain_outer(const struct lowered *p, int n)
{
    return is_op(p, n, &attncl__op_linear_fwd) &&
           ((const struct linear_fwd_params *)p->nodes[n].params)->activation == ATTNCL_IDENTITY &&
           !has_input(p, n, LINEAR_GATE) && has_input(p, n, LINEAR_RESIDUAL);
}

// Whether the step rotates or normalises heads, which the fused step does not.
static bool prepares_heads(const struct lowered *p, int step)
{
    for (int i = STEP_FORMS; i < STEP_FORMS + N_HEAD_FORMS; ++i)
        if (has_input(p, step, i))
            return true;
    return false;
}

static bool find_mixing_step(const struct lowered *p, int outer, struct fusion *fusion)
{
    int inner = -1;

    if (!is_plain_outer(p, outer))
        return false;
    for (int kind = 0; inner < 0 && kind < FUSED_FFN; ++kind) {
        inner = attncl__fusion_find_sole_producer(p, outer, LINEAR_X, inner_steps[kind].cls);
        fusion->kind = kind;
    }
    if (inner < 0 || (fusion->kind == FUSED_ATTENTION && prepares_heads(p, inner)))
        return false;
    const struct aft_step_fwd_params *aft = p->nodes[inner].params; // if it is an AFT step
    if (fusion->kind == FUSED_AFT && aft->per_head)
        return false;
    fusion->node[OUTER] = outer;
    fusion->node[INNER] = fusion->last = inner;
    for (int i = MAP_Q; i <= MAP_V; ++i) {
        fusion->node[i] =
            attncl__fusion_find_sole_producer(p, inner, i - MAP_Q, &attncl__op_fused_linear_fwd);
        if (fusion->node[i] < 0 ||
            !attncl__fusion_is_plain_map(p, fusion->node[i], fusion->node[MAP_Q]))
            return false;
    }
    fusion->n_nodes = MAP_V + 1;
    return true;
}

static void list_inputs(const struct lowered *p, const struct fusion *fusion,
                        int in[N_FUSED_INPUTS])
{
    const int map = fusion->node[first_map(fusion)], stream = find_stream(fusion),
              inner = fusion->node[INNER];
    const int n_maps = inner_steps[fusion->kind].n_maps;

    memset(in, 0, N_FUSED_INPUTS * sizeof in[0]);
    in[FUSED_X] = stream < 0 ? input_of(p, map, LINEAR_X) : input_of(p, stream, SPLIT_K_RESIDUAL);
    in[FUSED_NORM_W] = input_of(p, map, FUSED_LINEAR_NORM_W);
    in[FUSED_NORM_B] = input_of(p, map, FUSED_LINEAR_NORM_B);
    in[FUSED_PARTIALS] = stream < 0 ? 0 : input_of(p, stream, SPLIT_K_PARTIALS);
    in[FUSED_PARTIALS_BIAS] = stream < 0 ? 0 : input_of(p, stream, SPLIT_K_BIAS);
    for (int i = 0; i < n_maps; ++i) {
        in[FUSED_WQ + 2 * i] = input_of(p, fusion->node[first_map(fusion) + i], LINEAR_WEIGHT);
        in[FUSED_BQ + 2 * i] = input_of(p, fusion->node[first_map(fusion) + i], LINEAR_BIAS);
    }
    in[FUSED_WO] = input_of(p, fusion->node[OUTER], LINEAR_WEIGHT);
    for (const int *i = inner_steps[fusion->kind].inputs; *i; ++i)
        in[*i] = input_of(p, inner, n_maps + (int)(i - inner_steps[fusion->kind].inputs));
}

static bool is_matched(const struct fusion *fusion, int n)
{
    for (int i = 0; i < fusion->n_nodes; ++i)
        if (fusion->node[i] == n)
            return true;
    return false;
}

static bool step_is_legal(const struct lowered *p, const struct fusion *fusion)
{
    const int position = fusion->last, stream = find_stream(fusion);
    int in[N_FUSED_INPUTS];

    list_inputs(p, fusion, in);
    for (int i = 0; i < N_FUSED_INPUTS; ++i)
        if (p->values[p->values[in[i]].base].producer >= position)
            return false;
    if (stream < 0)
        return true;
    const struct lowered_value *sum = &p->values[p->nodes[stream].outputs[0]];
    for (const struct use *use = sum->first_use; use; use = use->next)
        if (use->node < position && !is_matched(fusion, use->node))
            return false;
    return true;
}

// Heads that share a key head form one block; too few blocks would leave compute units idle.
static bool has_enough_blocks(const struct op_sig *sig)
{
    enum { ENOUGH = 8 };
    const struct fused_step_fwd_params *params = sig->params;
    const int64_t kv_group = attncl__fused_step_kv_group(sig);
    const int64_t n = params->attention.n_heads / kv_group;

    return kv_group == 1 || n >= ENOUGH || n >= (int64_t)sig->caps->compute_units;
}

static bool step_is_profitable(const struct lowered *p, struct fusion *fusion)
{
    const void *inner = p->nodes[fusion->node[INNER]].params;
    struct fused_step_fwd_params *params = (void *)fusion->params;
    int in[N_FUSED_INPUTS];
    struct op_sig sig;

    _Static_assert(sizeof *params <= sizeof fusion->params, "a fused step's parameters");
    params->kind = fusion->kind;
    params->eps = map_params(p, fusion->node[first_map(fusion)])->eps;
    if (fusion->kind == FUSED_AFT)
        memcpy(&params->aft, inner, sizeof params->aft);
    else if (fusion->kind == FUSED_ATTENTION)
        memcpy(&params->attention, inner, sizeof params->attention);
    else
        params->activation = map_params(p, fusion->node[INNER])->linear.activation;
    list_inputs(p, fusion, in);
    attncl__lowered_fill_class_sig(p, &attncl__op_fused_step_fwd, in, &sig);
    sig.params = params;
    params->n_blocks = attncl__fused_step_blocks(&sig);
    return attncl__fused_step_supported(&sig) && has_enough_blocks(&sig);
}

static bool match_mixing_step(const struct lowered *p, int outer, struct fusion *fusion)
{
    return find_mixing_step(p, outer, fusion) && step_is_legal(p, fusion) &&
           step_is_profitable(p, fusion);
}

// Extends the match by the node that completes the residual stream.
static bool match_stream(const struct lowered *p, struct fusion *fusion)
{
    const int map = fusion->node[first_map(fusion)];
    const int stream =
        attncl__fusion_find_producer(p, map, LINEAR_X, &attncl__op_split_k_reduce_fwd);

    fusion->node[fusion->n_nodes++] = stream;
    return stream >= 0 && step_is_legal(p, fusion) && step_is_profitable(p, fusion);
}

static bool match_mixing_step_after(const struct lowered *p, int outer, struct fusion *fusion)
{
    return find_mixing_step(p, outer, fusion) && match_stream(p, fusion);
}

static bool match_ffn_after(const struct lowered *p, int outer, struct fusion *fusion)
{
    if (!is_plain_outer(p, outer))
        return false;
    const int inner =
        attncl__fusion_find_sole_producer(p, outer, LINEAR_X, inner_steps[FUSED_FFN].cls);
    if (inner < 0 || has_input(p, inner, LINEAR_GATE) || has_input(p, inner, LINEAR_RESIDUAL))
        return false;
    *fusion = (struct fusion){
        .node = {outer, inner}, .n_nodes = INNER + 1, .last = inner, .kind = FUSED_FFN};
    return match_stream(p, fusion);
}

static attncl_status build_step(struct lowered *p, const struct fusion *fusion)
{
    const struct op_class *cls = &attncl__op_fused_step_fwd;
    const int outer = fusion->node[OUTER], inner = fusion->node[INNER],
              stream = find_stream(fusion);
    const int total = stream < 0 ? 0 : p->nodes[stream].outputs[0];
    int in[N_FUSED_INPUTS];
    struct op_sig sig;

    list_inputs(p, fusion, in);
    attncl__lowered_fill_class_sig(p, cls, in, &sig);
    sig.params = fusion->params;
    TRY(attncl__op_infer(cls, &sig));
    void *params = attncl__lowered_alloc(p, cls->params_bytes);
    struct tensor_desc *sums = attncl__lowered_alloc(p, sizeof *sums);
    REQUIRE(params && sums, ATTNCL_ERR_NO_MEMORY, "node of %s", cls->name);
    memcpy(params, fusion->params, cls->params_bytes);
    *sums = sig.out[FUSED_PARTIAL_SUMS];

    for (int i = INNER + 1; i < fusion->n_nodes; ++i)
        attncl__lowered_remove(p, fusion->node[i]);
    TRY(attncl__lowered_replace(p, inner, cls, params, in));
    p->values[p->nodes[inner].outputs[FUSED_PARTIAL_SUMS]].desc = sums;
    p->nodes[inner].outputs[FUSED_RESIDUAL_OUT] = total;
    if (total)
        p->values[total].producer = inner;
    const int reduce[N_SPLIT_K_INPUTS] = {
        [SPLIT_K_PARTIALS] = p->nodes[inner].outputs[FUSED_PARTIAL_SUMS],
        [SPLIT_K_BIAS] = input_of(p, outer, LINEAR_BIAS),
        [SPLIT_K_RESIDUAL] = input_of(p, outer, LINEAR_RESIDUAL),
    };
    return attncl__lowered_replace(p, outer, &attncl__op_split_k_reduce_fwd, NULL, reduce);
}

const struct fusion_rule attncl__fuse_mixing_step_after = {match_mixing_step_after, build_step};
const struct fusion_rule attncl__fuse_mixing_step = {match_mixing_step, build_step};
const struct fusion_rule attncl__fuse_ffn_after = {match_ffn_after, build_step};
