// SPDX-License-Identifier: MIT
//
// Rows of keys and values go into caches, behind the tokens that were taken (cl/attention/attention_append.cl).
//
//   keys[p + t, b] = k[t, b], values[p + t, b] = v[t, b], p + t < S, rounded to the caches' type: F32, F16, BF16 or, as U8,
//   rows in 8 bits (q8_row.h)
//   all_keys[j, b] = keys[j, b] as floats, j < p + T, and all_values; later rows are undefined.  Absent for caches of F32
//
// p >= 0, the position, is read on the device, and all_keys has S rows.  Without it p is 0, and all_keys has T rows.
//
// With `last`, the index of the last row that is no padding, caches are rings of the last S positions, t in row t mod S:
//
//   all_keys[j, b] = the key of position p - n + j as caches have it, j < n + T, n = min(p, S), the output n_front; S + T rows
//   keys[(p + t) mod S, b] = k[t, b], last - S < t <= last
//
// Heads of k may first be normalised and rotated, as in attention_step_fwd (head_row.h).  rotated: q, prepared likewise.

#include <inttypes.h>

#include "op/attention/attention_split.h"
#include "op/attention/q8_row.h"
#include "op/row_launch.h"

enum {
    IN_K,
    IN_V,
    IN_POSITION,
    IN_KEYS,
    IN_VALUES,
    IN_Q,
    IN_FORMS,
    IN_LAST = IN_FORMS + N_HEAD_FORMS
};
enum { OUT_KEYS, OUT_VALUES, OUT_Q, OUT_N_FRONT };
enum { NEW_ROWS = 1, OLD_ROWS = 2 }; // macro RING

static attncl_status fwd_infer(struct op_sig *sig)
{
    const struct attention_append_fwd_params *params = sig->params;
    const int64_t width = params->width;
    int64_t *of = sig->axes->of;
    const bool is_behind = attncl__desc_present(&sig->in[IN_POSITION]);
    const bool is_ring = attncl__desc_present(&sig->in[IN_LAST]);

    for (const char *c = "KC"; *c; ++c)
        REQUIRE(of[(int)*c] < 0 || (width > 0 && of[(int)*c] % width == 0), ATTNCL_ERR_SHAPE,
                "%s has %c = %" PRId64 ", which cannot be cut into heads of width %" PRId64,
                sig->axes->source[(int)*c].name, *c, of[(int)*c], width);
    const int64_t row = attncl__cache_row(sig->in[IN_KEYS].dtype, of['K'], of['K'] / width);
    REQUIRE(of['R'] == row, ATTNCL_ERR_SHAPE, "keys has R = %" PRId64 ", must be %" PRId64, of['R'],
            row);
    TRY(attncl__check_head_forms(sig, IN_FORMS, width, params->eps));
    if (!is_behind && !is_ring)
        TRY(attncl__check_at_most(sig, 'T', 'S'));
    of['N'] = is_behind ? of['S'] : of['T'];
    if (is_behind && is_ring) {
        of['N'] += of['T'];
        sig->out[OUT_N_FRONT].dtype = ATTNCL_I32;
    }
    if (sig->in[IN_KEYS].dtype != ATTNCL_F32 || is_ring)
        sig->out[OUT_KEYS].dtype = sig->out[OUT_VALUES].dtype = ATTNCL_F32;
    if (attncl__desc_present(&sig->in[IN_Q]))
        sig->out[OUT_Q].dtype = ATTNCL_F32;
    return attncl__check_product(sig, is_behind && is_ring ? "NB" : "SB", INT32_MAX);
}

// ring: the macro's value; n_rows: of keys.
static attncl_status launch_rows(struct launcher *l, const struct op_call *call, int64_t n_rows,
                                 int ring)
{
    const struct attention_append_fwd_params *params = call->sig.params;
    const struct tensor_desc *in = call->sig.in, *k = &in[IN_K], *q = &in[IN_Q];
    const struct head_forms forms = attncl__head_forms(call, IN_FORMS, params->half, params->eps);
    const int64_t heads = k->dim[2] / params->width, q_heads = q->dim[2] / params->width;
    const int64_t key_rows = n_rows * heads, q_rows = ring == OLD_ROWS ? 0 : k->dim[0] * q_heads;
    struct row_launch p =
        attncl__row_launch(l->caps, "attention/attention_append.cl", "attention_append_fwd",
                           k->dim[1] * (key_rows > q_rows ? key_rows : q_rows), params->width);
    struct arg_list args = {.n = 0};

    p.grid.groups[1] = attncl__desc_present(q) && ring != OLD_ROWS ? 3 : 2;
    attncl__set_cache_type(&p.spec, in[IN_KEYS].dtype);
    attncl__set_head_forms(&p.spec, &forms);
    kspec_int(&p.spec, "BEHIND", attncl__desc_present(&in[IN_POSITION]));
    kspec_int(&p.spec, "RING", ring);
    arg_list_add(
        &args, ARGS(ROW_ARGS(call, IN_K), ROW_ARGS(call, IN_V), arg_mem(call->in[IN_POSITION]),
                    arg_mem(call->in[IN_KEYS]), arg_mem(call->in[IN_VALUES]), ROW_ARGS(call, IN_Q),
                    arg_mem(call->out[OUT_KEYS]), arg_mem(call->out[OUT_VALUES]),
                    arg_mem(call->out[OUT_Q]), arg_i32(k->dim[0]), arg_i32(k->dim[1]),
                    arg_i32(heads), arg_i32(q_heads), arg_i32(params->width),
                    arg_i32(in[IN_KEYS].dim[0]), arg_i32(p.rows_per_group), HEAD_FORM_ARGS(&forms),
                    arg_local(sizeof(float) * p.vw * (size_t)ceil_div(params->width, p.vw))));
    if (ring)
        arg_list_add(&args, ARGS(arg_mem(call->in[IN_LAST]), arg_mem(call->out[OUT_N_FRONT])));
    return attncl__launch(l, &p.spec, p.grid, args.arg, args.n);
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    const struct tensor_desc *k = &call->sig.in[IN_K], *all = &call->sig.out[OUT_KEYS];

    if (!attncl__desc_present(&call->sig.in[IN_LAST]))
        return launch_rows(l, call, attncl__desc_present(all) ? all->dim[0] : k->dim[0], 0);
    if (attncl__desc_present(&call->sig.in[IN_POSITION]))
        TRY(launch_rows(l, call, call->sig.in[IN_KEYS].dim[0], OLD_ROWS));
    return launch_rows(l, call, k->dim[0], NEW_ROWS);
}

const struct op_class attncl__op_attention_append_fwd = {
    .name = OP_CLASS(attention_append_fwd),
    .in = OP_IN({"k", F32 | STRIDED, "T B K"}, {"v", F32 | STRIDED, "T B K"},
                {"position", I32 | OPTIONAL, "1"}, {"keys", STORED | OR_U8 | STATE, "S B R"},
                {"values", SAME_TYPE | STATE, "S B R"}, {"q", F32 | STRIDED | OPTIONAL, "T B C"},
                HEAD_FORM_INPUTS, {"last", I32 | OPTIONAL, "1"}),
    .out = OP_OUT({"all_keys", F32 | OPTIONAL, "N B K"}, {"all_values", F32 | OPTIONAL, "N B K"},
                  {"rotated", F32 | OPTIONAL, "T B C"}, {"n_front", I32 | OPTIONAL, "1"}),
    .int_axes = "TBKS",
    .filled_axes = "TBKS",
    .infer = fwd_infer,
    .launch = fwd_launch,
    .moved = {[IN_KEYS] = "x", [IN_VALUES] = "x"},
};
