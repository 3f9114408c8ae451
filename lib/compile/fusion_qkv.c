// SPDX-License-Identifier: MIT
//
// Three linear maps of the same rows -> step of attention or attention-free mixing: the maps become one
// node of three results, in the place of the last.  With the layer norm that each has in front, or none.

#include "compile/fusion_match.h"
#include "op/matmul/linear.h"

enum { N_MAPS = 3 };
enum { WITHOUT_NORM, WITH_NORM }; // kind

static const struct linear_fwd_params *linear_params(const struct lowered *p, int map, int kind)
{
    const void *params = p->nodes[map].params;
    return kind == WITH_NORM ? &((const struct fused_norm_linear_fwd_params *)params)->linear
                             : params;
}

static float eps_of(const struct lowered *p, int map)
{
    return ((const struct fused_norm_linear_fwd_params *)p->nodes[map].params)->norm.eps;
}

// The same rows and the same norm as the first map's; no activation, gate or residual.
static bool is_plain(const struct lowered *p, int map, int first, int kind)
{
    if (linear_params(p, map, kind)->activation != GEMM_ACT_NONE ||
        has_input(p, map, LINEAR_GATE) || has_input(p, map, LINEAR_RESIDUAL) ||
        input_of(p, map, LINEAR_X) != input_of(p, first, LINEAR_X))
        return false;
    return kind == WITHOUT_NORM ||
           (input_of(p, map, NORM_LINEAR_NORM_W) == input_of(p, first, NORM_LINEAR_NORM_W) &&
            input_of(p, map, NORM_LINEAR_NORM_B) == input_of(p, first, NORM_LINEAR_NORM_B) &&
            eps_of(p, map) == eps_of(p, first));
}

static bool find_maps(const struct lowered *p, int step, const struct op_class *cls,
                      struct fusion *f)
{
    for (int i = 0; i < N_MAPS; ++i) {
        const int map = attncl__fusion_sole_producer_of(p, step, i, cls);
        if (map < 0 || !is_plain(p, map, i > 0 ? f->node[0] : map, f->kind))
            return false;
        f->node[i] = map;
        f->last = map > f->last ? map : f->last;
    }
    f->n_nodes = N_MAPS;
    return true;
}

static bool match_qkv(const struct lowered *p, int step, struct fusion *f)
{
    if (!is_op(p, step, &attncl__op_aft_step_fwd) &&
        !is_op(p, step, &attncl__op_attention_step_fwd))
        return false;
    f->kind = WITH_NORM;
    if (find_maps(p, step, &attncl__op_fused_norm_linear_fwd, f))
        return true;
    f->kind = WITHOUT_NORM;
    f->last = 0;
    return find_maps(p, step, &attncl__op_linear_fwd, f);
}

static bool qkv_is_legal(const struct lowered *p, const struct fusion *f)
{
    for (int i = 0; i < N_MAPS; ++i)
        if (attncl__fusion_overwritten_before(p, f->node[i], f->last))
            return false;
    return true;
}

static void qkv_inputs(const struct lowered *p, const struct fusion *f, int in[N_QKV_INPUTS])
{
    memset(in, 0, N_QKV_INPUTS * sizeof in[0]);
    in[QKV_X] = input_of(p, f->node[0], LINEAR_X);
    for (int i = 0; i < N_MAPS; ++i) {
        in[QKV_WEIGHT + i] = input_of(p, f->node[i], LINEAR_WEIGHT);
        in[QKV_BIAS + i] = input_of(p, f->node[i], LINEAR_BIAS);
    }
    if (f->kind == WITH_NORM) {
        in[QKV_NORM_W] = input_of(p, f->node[0], NORM_LINEAR_NORM_W);
        in[QKV_NORM_B] = input_of(p, f->node[0], NORM_LINEAR_NORM_B);
    }
}

static bool qkv_is_profitable(const struct lowered *p, struct fusion *f)
{
    int in[N_QKV_INPUTS];
    struct op_sig sig;

    qkv_inputs(p, f, in);
    attncl__lowered_sig_of(p, &attncl__op_fused_qkv_fwd, in, &sig);
    return attncl__fused_qkv_supported(&sig);
}

static attncl_status build_qkv(struct lowered *p, const struct fusion *f)
{
    struct fused_qkv_fwd_params *params = attncl__lowered_alloc(p, sizeof *params);
    int in[N_QKV_INPUTS], out[N_MAPS];

    REQUIRE(params, ATTNCL_ERR_NO_MEMORY, "node of fused_qkv_fwd");
    if (f->kind == WITH_NORM)
        params->norm.eps = eps_of(p, f->node[0]);
    qkv_inputs(p, f, in);
    for (int i = 0; i < N_MAPS; ++i)
        out[i] = p->nodes[f->node[i]].outputs[0];
    TRY(attncl__lowered_replace(p, f->last, &attncl__op_fused_qkv_fwd, params, in));
    for (int i = 0; i < N_MAPS; ++i) {
        p->nodes[f->last].outputs[i] = out[i];
        p->values[out[i]].producer = f->last;
        if (f->node[i] != f->last)
            attncl__lowered_remove(p, f->node[i]);
    }
    return ATTNCL_OK;
}

const struct fusion_rule attncl__fuse_qkv = {"qkv", match_qkv, qkv_is_legal, qkv_is_profitable,
                                             build_qkv};
