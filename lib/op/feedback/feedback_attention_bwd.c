// SPDX-License-Identifier: MIT
//
// Backward pass of feedback attention (cl/feedback/feedback_attention_bwd.cl has the formulas).
//
//   query        dq; and, for the other ops, m p and ds of every memory and du per batch entry
//   accumulate   query, and adds to the gradients of keys and values in a cache's slots; a feedback
//                transformer's steps run it one after another, last step first
//   memory       dk, dv
//   positions    dU, du, dw
//
// lib/op/feedback/feedback_attention.c explains and has checked the shapes.

#include <math.h>

#include "op/dropout_mask.h"
#include "op/row_launch.h"

enum { Q, KEYS, VALUES, PLACES, U, PLACE_BIAS, POSITION, DY, DWEIGHTS, STEP };
enum { ACCUMULATE_CACHE = DWEIGHTS }; // _accumulate has the cache in place of DWEIGHTS
enum { OUT_DQ, OUT_SCORES, OUT_DU_PARTS };

#define MEMORIES(span, d)                                                                          \
    arg_mem(span), arg_i64((d)->start), arg_i64((d)->stride[0]), arg_i64((d)->stride[1]),          \
        arg_i64((d)->stride[2])

static struct group_launch choose_pass(const struct launcher *l, const char *kernel, bool split,
                                       bool dropout, int64_t width)
{
    struct group_launch p = attncl__group_launch(l->caps, "feedback/feedback_attention_bwd.cl",
                                                 kernel, width > 64 ? width : 64);

    kspec_int(&p.spec, "SPLIT", split);
    kspec_int(&p.spec, "DROPOUT", dropout);
    return p;
}

static attncl_status launch_query(struct launcher *l, const struct op_call *call,
                                  struct span dweights)
{
    const struct tensor_desc *in = call->sig.in, *k = &in[KEYS];
    const struct feedback_attention_fwd_params *params = call->sig.params;
    const struct group_launch p =
        choose_pass(l, "feedback_attention_bwd_query", attncl__desc_present(&in[PLACE_BIAS]),
                    params->dropout.p > 0, k->dim[3]);

    return attncl__launch(
        l, &p.spec, grid_2d(k->dim[2], k->dim[1], p.local, 1),
        ARGS(ROW_ARGS(call, Q), MEMORIES(call->in[KEYS], k),
             MEMORIES(call->in[VALUES], &in[VALUES]), arg_mem(call->in[PLACES]),
             arg_mem(call->in[U]), arg_mem(call->in[PLACE_BIAS]), arg_mem(call->in[POSITION]),
             arg_mem(call->in[DY]), arg_mem(dweights), arg_i32(dweights.storage != NULL),
             arg_mem(call->out[OUT_DQ]), arg_mem(call->out[OUT_SCORES]),
             arg_mem(call->out[OUT_DU_PARTS]), arg_i32(attncl__desc_present(&in[POSITION])),
             arg_i32(k->dim[0]), arg_i32(in[PLACES].dim[0]), arg_i32(k->dim[3]),
             arg_f32((float)(1 / sqrt((double)k->dim[3]))),
             DROPOUT_ARGS(&params->dropout, call->in[STEP]), arg_i32(params->dropout.batch_begin),
             arg_i32(attncl__dropout_batch(&params->dropout, k->dim[1]))));
}

static attncl_status query_launch(struct launcher *l, const struct op_call *call)
{
    return launch_query(l, call, call->in[DWEIGHTS]);
}

// Arguments of the memory kernel, which two ops launch.
struct memory_call {
    const struct op_call *call; // its input Q is the query
    struct span u, scores, dy, position;
    struct span dkeys, dvalues;
    struct tensor_desc keys, values; // [S, B, H, D] in dkeys and dvalues
    bool growing, adds;
};

enum { GROUPS_PER_CORE = 8 };

static attncl_status launch_memory(struct launcher *l, const struct memory_call *m)
{
    const struct group_launch p =
        choose_pass(l, "feedback_attention_bwd_memory", false, false, m->keys.dim[3]);

    // On a CPU, just enough work-groups to keep the cores busy.
    const int64_t rows = m->keys.dim[2] * m->keys.dim[1];
    if (rows == 0 || m->keys.dim[0] == 0)
        return ATTNCL_OK;
    const int64_t wanted = ceil_div(GROUPS_PER_CORE * (int64_t)l->caps->compute_units, rows);
    const int64_t per_group =
        l->caps->variant == VARIANT_CPU ? ceil_div(m->keys.dim[0], wanted) : 1;

    return attncl__launch(
        l, &p.spec,
        grid_3d(m->keys.dim[2], m->keys.dim[1], ceil_div(m->keys.dim[0], per_group), p.local, 1),
        ARGS(ROW_ARGS(m->call, Q), arg_mem(m->u), arg_mem(m->scores), arg_mem(m->dy),
             arg_mem(m->position), MEMORIES(m->dkeys, &m->keys), MEMORIES(m->dvalues, &m->values),
             arg_i32(m->growing), arg_i32(m->adds), arg_i32(m->keys.dim[0]), arg_i32(per_group),
             arg_i32(m->keys.dim[3])));
}

// A slot of a cache [slots, B, H, S, D] as [S, B, H, D].
static struct tensor_desc view_slot(const struct tensor_desc *cache, int64_t slot)
{
    return (struct tensor_desc){
        .dtype = ATTNCL_F32,
        .rank = 4,
        .dim = {cache->dim[3], cache->dim[1], cache->dim[2], cache->dim[4]},
        .stride = {cache->stride[3], cache->stride[1], cache->stride[2], cache->stride[4]},
        .start = slot * cache->stride[0],
    };
}

static attncl_status accumulate_infer(struct op_sig *sig)
{
    const struct feedback_attention_fwd_params *params = sig->params;

    REQUIRE(params->slot >= 0 && params->slot + 2 <= sig->axes->of['L'], ATTNCL_ERR_SHAPE,
            "dcache is %s, from slot %d on there must be two", SHAPE(&sig->in[ACCUMULATE_CACHE]),
            params->slot);
    return ATTNCL_OK;
}

static attncl_status accumulate_launch(struct launcher *l, const struct op_call *call)
{
    const struct feedback_attention_fwd_params *params = call->sig.params;
    const struct tensor_desc *cache = &call->sig.in[ACCUMULATE_CACHE];
    const struct memory_call m = {
        .call = call,
        .u = call->in[U],
        .scores = call->out[OUT_SCORES],
        .dy = call->in[DY],
        .position = call->in[POSITION],
        .dkeys = call->in[ACCUMULATE_CACHE],
        .dvalues = call->in[ACCUMULATE_CACHE],
        .keys = view_slot(cache, params->slot),
        .values = view_slot(cache, params->slot + 1),
        .growing = true,
        .adds = params->adds,
    };

    if (attncl__desc_count(&call->sig.in[Q]) == 0)
        return ATTNCL_OK;
    TRY(launch_query(l, call, (struct span){NULL}));
    return launch_memory(l, &m);
}

enum { M_U = Q + 1, M_SCORES, M_DY };

static attncl_status memory_launch(struct launcher *l, const struct op_call *call)
{
    const struct memory_call m = {
        .call = call,
        .u = call->in[M_U],
        .scores = call->in[M_SCORES],
        .dy = call->in[M_DY],
        .dkeys = call->out[0],
        .dvalues = call->out[1],
        .keys = call->sig.out[0],
        .values = call->sig.out[1],
    };

    return launch_memory(l, &m);
}

enum { P_Q, P_U, P_SCORES, P_DU_PARTS, P_PLACES, P_PLACE_BIAS, P_POSITION };
enum { OUT_DPLACES, OUT_DU, OUT_DPLACE_BIAS };

static attncl_status places_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *in = call->sig.in, *places = &in[P_PLACES];
    const int64_t n_heads = places->dim[1], width = places->dim[2];
    const struct group_launch p =
        choose_pass(l, "feedback_attention_bwd_positions", attncl__desc_present(&in[P_PLACE_BIAS]),
                    false, width);

    return attncl__launch(l, &p.spec, grid_2d(n_heads, places->dim[0] + 1, p.local, 1),
                          ARGS(ROW_ARGS(call, P_Q), arg_mem(call->in[P_U]),
                               arg_mem(call->in[P_SCORES]), arg_mem(call->in[P_DU_PARTS]),
                               arg_mem(call->in[P_POSITION]), arg_mem(call->out[OUT_DPLACES]),
                               arg_mem(call->out[OUT_DU]), arg_mem(call->out[OUT_DPLACE_BIAS]),
                               arg_i32(attncl__desc_present(&in[P_POSITION])),
                               arg_i32(in[P_SCORES].dim[1]), arg_i32(in[P_SCORES].dim[3]),
                               arg_i32(places->dim[0]), arg_i32(width)));
}

const struct op_class attncl__op_feedback_attention_bwd_query = {
    .name = OP_CLASS(feedback_attention_bwd_query),
    .in = OP_IN({"query", F32 | STRIDED, "B C"}, {"key", F32 | ANY_VIEW, "S B H D"},
                {"value", F32 | ANY_VIEW, "S B H D"}, {"key_pos_embeddings", F32, "P H D"},
                {"query_pos_bias", F32, "H D"}, {"key_pos_bias", F32 | OPTIONAL, "P H"},
                {"position", I32 | OPTIONAL, "1"}, {"dy", F32, "B C"},
                {"dweights", F32 | OPTIONAL, "S B H"}, {"step", I32 | OPTIONAL, ""}),
    .out = OP_OUT({"dquery", F32, "B C"}, {"scores", F32, "2 B H S"}, {"du_parts", F32, "B C"}),
    .launch = query_launch,
    .flop = "9SBHD", // scores, dp, and the sums of dq
    .moved = {[PLACES] = "SHD", [PLACE_BIAS] = "SH"},
};

const struct op_class attncl__op_feedback_attention_bwd_accumulate = {
    .name = OP_CLASS(feedback_attention_bwd_accumulate),
    .in = OP_IN({"query", F32 | STRIDED, "B C"}, {"key", F32 | ANY_VIEW, "S B H D"},
                {"value", F32 | ANY_VIEW, "S B H D"}, {"key_pos_embeddings", F32, "P H D"},
                {"query_pos_bias", F32, "H D"}, {"key_pos_bias", F32 | OPTIONAL, "P H"},
                {"position", I32, "1"}, {"dy", F32, "B C"}, {"dcache", F32 | STATE, "L B H S D"},
                {"step", I32 | OPTIONAL, ""}),
    .out = OP_OUT({"dquery", F32, "B C"}, {"scores", F32, "2 B H S"}, {"du_parts", F32, "B C"}),
    .infer = accumulate_infer,
    .launch = accumulate_launch,
    .flop = "9SBHD",
    .moved = {[PLACES] = "SHD", [PLACE_BIAS] = "SH", [ACCUMULATE_CACHE] = "4SBHD"},
};

const struct op_class attncl__op_feedback_attention_bwd_memory = {
    .name = OP_CLASS(feedback_attention_bwd_memory),
    .in = OP_IN({"query", F32 | STRIDED, "B C"}, {"query_pos_bias", F32, "H D"},
                {"scores", F32, "2 B H S"}, {"dy", F32, "B C"},
                {"key", F32 | ANY_VIEW | SHAPE_ONLY, "S B H D"}),
    .out = OP_OUT({"dkey", F32, "S B H D"}, {"dvalue", F32, "S B H D"}),
    .launch = memory_launch,
    .flop = "3SBHD",
};

const struct op_class attncl__op_feedback_attention_bwd_positions = {
    .name = OP_CLASS(feedback_attention_bwd_positions),
    .in = OP_IN({"query", F32 | STRIDED, "B C"}, {"query_pos_bias", F32, "H D"},
                {"scores", F32, "2 B H S"}, {"du_parts", F32, "B C"},
                {"key_pos_embeddings", F32, "P H D"}, {"key_pos_bias", F32 | OPTIONAL, "P H"},
                {"position", I32 | OPTIONAL, "1"}),
    .out = OP_OUT({"dkey_pos_embeddings", F32, "P H D"}, {"dquery_pos_bias", F32, "H D"},
                  {"dkey_pos_bias", F32, "=key_pos_bias"}),
    .launch = places_launch,
};
