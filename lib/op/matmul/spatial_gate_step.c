// SPDX-License-Identifier: MIT
//
// One position t of a causal spatial gate, for decoding.
//
//   history[t] = u, rounded to the history's type: F32, F16 or BF16
//   y[b, c] = z1[b, c] * (sum over j <= t of W[t, j] history[j, b, c] + bias[t])
//
// Costs O(t B C).  On a GPU several work-groups share the positions, and a second pass adds their sums
// (cl/matmul/spatial_gate_step_cpu.cl, _gpu.cl).

#include "op/attention/attention_split.h"
#include "op/row_launch.h"

enum { CHANNELS = 64 }; // of a work-group; few, because one position is little work

static int64_t count_parts(const struct device_caps *caps, const struct op_sig *sig)
{
    const struct tensor_desc *u = &sig->in[2];
    const int64_t groups = ceil_div(u->dim[1], CHANNELS) * u->dim[0];
    return attncl__step_parts(caps, groups, sig->in[0].dim[0]);
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    const size_t count = (size_t)attncl__desc_count(&sig->in[2]) * sizeof(float);
    *bytes_ret =
        sig->caps->variant == VARIANT_GPU ? count * (size_t)count_parts(sig->caps, sig) : 0;
    return ATTNCL_OK;
}

static attncl_status launch_parts(struct launcher *l, const struct op_call *call)
{
    const char *file = "matmul/spatial_gate_step_gpu.cl";
    const struct tensor_desc *u = &call->sig.in[2], *z1 = &call->sig.in[3];
    const int64_t batch = u->dim[0], width = u->dim[1], n = call->sig.in[0].dim[0];
    const int64_t n_parts = count_parts(l->caps, &call->sig);
    struct group_launch parts =
        attncl__group_launch(l->caps, file, "spatial_gate_step_gpu_partial_fwd", 4 * CHANNELS);
    struct group_launch merge =
        attncl__group_launch(l->caps, file, "spatial_gate_step_gpu_merge_fwd", 4 * CHANNELS);
    const int64_t groups = ceil_div(width, (int64_t)parts.local);

    kspec_set_stored(&parts.spec, "CACHE_TYPE", call->sig.in[5].dtype);
    kspec_set_stored(&merge.spec, "CACHE_TYPE", call->sig.in[5].dtype);
    TRY(attncl__check_loops(l->caps, parts.spec.kernel, ceil_div(n, n_parts) + 32));
    TRY(attncl__launch(l, &parts.spec, grid_3d(groups, batch, n_parts, parts.local, 1),
                       ARGS(arg_mem(call->in[0]), arg_mem(call->in[2]), arg_mem(call->in[4]),
                            arg_mem(call->in[5]), arg_mem(call->scratch), arg_i32(n),
                            arg_i32(width))));
    return attncl__launch(l, &merge.spec, grid_2d(groups, batch, merge.local, 1),
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[5]),
                               arg_mem(call->in[3]), arg_mem(call->in[4]), arg_mem(call->scratch),
                               arg_mem(call->out[0]), arg_i64(z1->start),
                               arg_i64(attncl__rows(z1).stride), arg_i32(n), arg_i32(width),
                               arg_i32(n_parts)));
}

static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    struct group_launch p = attncl__group_launch(l->caps, "matmul/spatial_gate_step_cpu.cl",
                                                 "spatial_gate_step_cpu_fwd", CHANNELS);
    const struct tensor_desc *u = &call->sig.in[2], *z1 = &call->sig.in[3];
    const int64_t batch = u->dim[0], width = u->dim[1];
    const struct rows rows = attncl__rows(z1);

    if (l->caps->variant == VARIANT_GPU)
        return launch_parts(l, call);

    kspec_set_stored(&p.spec, "CACHE_TYPE", call->sig.in[5].dtype);
    return attncl__launch(l, &p.spec, grid_2d(ceil_div(width, CHANNELS), batch, p.local, 1),
                          ARGS(arg_mem(call->in[0]), arg_mem(call->in[1]), arg_mem(call->in[2]),
                               arg_mem(call->in[3]), arg_mem(call->in[4]), arg_mem(call->in[5]),
                               arg_mem(call->out[0]), arg_i64(z1->start), arg_i64(rows.stride),
                               arg_i32(call->sig.in[0].dim[0]), arg_i32(width), arg_i32(CHANNELS)));
}

const struct op_class attncl__op_spatial_gate_step_fwd = {
    .name = OP_CLASS(spatial_gate_step_fwd),
    .in = OP_IN({"weight", F32, "N N"}, {"bias", F32, "N"}, {"u", F32, "B C"},
                {"z1", F32 | STRIDED, "B C"}, {"position", I32, "1"},
                {"history", STORED | STATE, "N B C"}),
    .out = OP_OUT({"y", F32, "B C"}),
    .int_axes = "C",
    .filled_axes = "N",
    .scratch = fwd_scratch,
    .launch = fwd_launch,
    .flop = "2NBC", // at the last position; only the device knows the actual one
    .moved = {[0] = "N", [1] = "1", [5] = "NBC + BC"},
};
