// SPDX-License-Identifier: MIT
// Tiling of attention on a device: tiles of keys, blocks of queries, scratch.
#ifndef ATTNCL_OP_ATTENTION_ATTENTION_H
#define ATTNCL_OP_ATTENTION_ATTENTION_H

#include "attncl/kinds.h"
#include "op/dropout_mask.h"

enum attention_input {
    ATT_IN_Q,
    ATT_IN_K,
    ATT_IN_V,
    ATT_IN_MASK,
    ATT_IN_LENS,
    ATT_IN_BIAS,
    ATT_IN_SLOPES,
    ATT_N_IN // inputs that all attention ops share
};
// The forward op's further inputs and outputs.
enum { ATT_IN_POSITION = ATT_N_IN, ATT_IN_STEP };
enum { ATT_OUT_WEIGHTS = 1, ATT_OUT_ROWS = 2 };

// The gradient ops' further inputs.
enum {
    ATT_BWD_IN_Y = ATT_N_IN,
    ATT_BWD_IN_WEIGHTS,
    ATT_BWD_IN_ROWS,
    ATT_BWD_IN_G,
    ATT_BWD_IN_C,
    ATT_BWD_IN_STEP
};

// Bits of MASKING (hides keys inside the range) and BIAS (added to scores) in cl/attention/attention.clh.
enum { MASKING_MASK = 1, MASKING_LENS = 2, MASKING_HARD_LENS = 4 };
enum { BIAS_TABLE = 1, BIAS_SLOPES = 2 };

// GPU variant: a work-group of tx * ty work-items takes 4 ty queries, 4 tx keys at a time and
// 4 tx ne columns of values; dc channels at a time (macro table of cl/attention/attention_gpu.cl).
struct attention_tile_config {
    int tx, ty, ne, dc;
    bool rematerialize; // recompute addresses for each tile instead of keeping them in registers
};

// With matrix instructions (cl/attention/attention_gpu_mma.clh): queries of a work-group, keys at a
// time, columns of values at a time.
enum { ATT_MMA_ROWS = 64, ATT_MMA_KEYS = 32, ATT_MMA_COLUMNS = 32 };

struct attention_tiling {
    int64_t heads, kv_heads; // times batch entries
    int64_t kv_group;        // query heads that share a key and value head
    int64_t n_queries, n_keys, width, value_width;
    // Query i sees keys i + S - T - window_left .. i + S - T + window_right.
    int64_t window_left, window_right;
    int masking, bias; // bits of MASKING and BIAS
    bool dropout;      // of the weights
    bool softcap;      // of the scores
    bool at_position;  // the first query is at the forward op's input `position`
    unsigned vw;
    bool gpu;            // GPU variant
    bool aligned;        // rows of inputs start at and consist of whole float4s
    int key_tile, block; // keys and queries at a time
    // CPU variant, see the macro table of cl/attention/attention_cpu.cl.
    int sum_vectors, score_rows, score_vectors;
    int64_t value_pitch; // values padded to whole panels
    bool copy_values;    // into scratch, after the keys
    int64_t key_floats, value_floats;
    // GPU variant: keys are split among `n_splits` work-groups, whose results are merged.
    enum matrix_instruction mma; // MMA_NONE: FMAs, with `tile`
    const struct attention_tile_config *tile;
    int query_channels; // kept in local memory; 0: queries are read again for each tile of keys
    int64_t n_splits, split_keys;
    int64_t row_floats;     // weights wanted, rows not an output: maximum and 1 / total of each row
    int64_t partial_floats; // with splits: maximum and total of each split's rows, then its sums
};

// CPU variant, for devices with little local memory: takes shorter tiles of keys, then fewer rows.
// False if there are none smaller.
bool attncl__attention_shrink(struct attention_tiling *p);

// ERR_UNSUPPORTED when the device cannot hold a block or would exceed its iteration cap.
attncl_status attncl__attention_choose_tiling(const struct op_sig *sig,
                                              struct attention_tiling *ret);

// GPU variant (attention_gpu.c).
attncl_status attncl__attention_launch_gpu(struct launcher *l, const struct op_call *call,
                                           const struct attention_tiling *tiling);
// Matrix instructions (attention_gpu_tiles.c): their work-group size, and those that the forward op
// uses, MMA_NONE if none.
size_t attncl__attention_mma_group(enum matrix_instruction mma);
enum matrix_instruction attncl__attention_mma(const struct device_caps *caps,
                                              const struct attention_tiling *p, bool weights);
// The same for the gradient op, and the result columns of its work-groups; reads_ds: in a pass that
// reads ds and computes no tiles.
enum matrix_instruction attncl__attention_bwd_mma(const struct device_caps *caps,
                                                  const struct attention_tiling *p);
int64_t attncl__attention_bwd_mma_columns(enum matrix_instruction mma, int64_t columns,
                                          bool reads_ds);
// GPU variant: the best tile configuration for this shape, after skipping `skip` better ones.  NULL: no
// other fits the device's work-groups and local memory.
const struct attention_tile_config *attncl__attention_tile_config(const struct device_caps *caps,
                                                                  int64_t n_queries,
                                                                  int64_t value_width, int skip);

// Tile configuration of the gradients, by the columns of their result.
const struct attention_tile_config *
attncl__attention_bwd_tile_config(const struct device_caps *caps, int64_t columns);

// Macros of a tile; of matrix instructions; of all GPU kernels, except QUERY_CHANNELS.
void attncl__attention_set_tile_macros(struct kspec *spec, const struct attention_tile_config *r);
void attncl__attention_set_mma_macros(struct kspec *spec, const struct device_caps *caps,
                                      enum matrix_instruction mma);
void attncl__attention_set_gpu_macros(struct kspec *spec, const struct attention_tiling *p,
                                      size_t group);

// The width rounded up to whole dc channels, if local memory holds all channels of the queries for
// enough work-groups per compute unit; else 0.
int attncl__attention_query_channels(const struct device_caps *caps,
                                     const struct attention_tile_config *tile, int64_t width);

// Arguments for HEADS and VISIBILITY_PARAMS of cl/attention/attention.clh.
#define ATTENTION_HEADS(call, i) ATTENTION_HEADS_OF((call)->in[i], &(call)->sig.in[i])
#define ATTENTION_HEADS_OF(x, d)                                                                   \
    arg_mem(x), arg_i64((d)->start), arg_i64((d)->stride[0]), arg_i64((d)->stride[1]),             \
        arg_i64((d)->stride[2])
#define ATTENTION_VISIBILITY(call, p)                                                              \
    ATTENTION_VISIBILITY_OF(call, p, &(call)->sig.in[ATT_IN_MASK], &(call)->sig.in[ATT_IN_LENS])
#define ATTENTION_VISIBILITY_OF(call, p, mask, lens)                                               \
    arg_i32((p)->window_left), arg_i32((p)->window_right), arg_mem((call)->in[ATT_IN_MASK]),       \
        arg_i64((mask)->dim[0] == 1 ? 0 : (mask)->dim[1] * (mask)->dim[2]),                        \
        arg_i32((mask)->dim[2]), arg_i32((mask)->dim[2] > 1), arg_mem((call)->in[ATT_IN_LENS]),    \
        arg_i32((lens)->rank > 1), arg_i32((lens)->rank > 1 ? (lens)->dim[1] : 1)

// attncl__launch() with `args` and then the arguments for cl/attention/attention.clh's ATTENTION_PARAMS.
attncl_status attncl__attention_launch(struct launcher *l, const struct op_call *call,
                                       const struct attention_tiling *p, const struct kspec *spec,
                                       struct grid grid, const struct arg *args, size_t n_args);

// y and its gradient are [T, B, H, E] or [B, T, H, E].  The shape, for infer; the axis of T; and y's
// strides between batch entries and between queries.
const char *attncl__attention_result(const struct op_sig *sig);
static inline int attncl__attention_time_axis(const struct op_sig *sig)
{
    const struct attention_fwd_params *params = sig->params;
    return params->layout == ATTNCL_LAYOUT_TIME_FIRST ? 0 : 1;
}
#define ATTENTION_STRIDES(call, y)                                                                 \
    arg_i64((y)->stride[1 - attncl__attention_time_axis(&(call)->sig)]),                           \
        arg_i64((y)->stride[attncl__attention_time_axis(&(call)->sig)])
// Strides of y as an input of the gradient ops.
#define ATTENTION_BWD_STRIDES(call) ATTENTION_STRIDES(call, &(call)->sig.in[ATT_BWD_IN_Y])

// CPU variant: a kernel that includes cl/attention/attention_cpu.clh.
struct kspec attncl__attention_cpu_spec(const struct attention_tiling *p, const char *file,
                                        const char *kernel);

// CPU variant: copies input `tiles` to the scratch as tiles of keys, and input `rows` as rows `pitch`
// apart (0: no copy).
struct attention_packing {
    enum attention_input tiles, rows;
    int64_t tiles_at, rows_at, pitch; // floats
};
attncl_status attncl__attention_launch_packing(struct launcher *l, const struct op_call *call,
                                               const struct attention_tiling *p,
                                               const struct attention_packing *x);

// Pairs of query and key in range, for one head.
double attncl__attention_pairs(const struct op_sig *sig);

// -- gradients (attention_bwd_tiling.c): blocks of queries, splits, scratch, local memory

// GPU variant: work-items and local memory of a work-group.
enum { ATT_BWD_GROUP = 128, ATT_BWD_LOCAL_BYTES = 26 * 1024 };

// Sizes, and offsets in the scratch, in floats.
struct backward_tiling {
    struct attention_tiling tiling; // of the forward pass
    // CPU variant: each of a head's n_splits has its own partial sums of dk and dv.
    int64_t n_splits, tile_keys, key_pitch, value_pitch;
    int64_t values_at, rows_at;
    int64_t local;        // local memory
    int64_t dk_at, dv_at; // partial sums; GPU variant: of query heads that share a key head
    int64_t floats;       // the whole scratch
    // GPU variant: heads whose ds is kept at the same time; 0: dq's pass recomputes it.
    int64_t kept_heads, ds_at, ds_pitch;
};

// ERR_UNSUPPORTED when the device cannot hold a block or would exceed its iteration cap.
attncl_status attncl__attention_bwd_choose_tiling(const struct op_sig *sig,
                                                  struct backward_tiling *ret);

#define GRADIENT_OF_WEIGHTS(call)                                                                  \
    arg_mem((call)->in[ATT_BWD_IN_C]), arg_i32(attncl__desc_present(&(call)->sig.in[ATT_BWD_IN_C]))
#define WEIGHTS_AND_GRADIENT(call)                                                                 \
    arg_mem((call)->in[ATT_BWD_IN_WEIGHTS]), GRADIENT_OF_WEIGHTS(call)

// The inputs that all attention ops share, and all inputs of the gradient ops.
#define ATTENTION_IN(bias_flags)                                                                   \
    {"q", F32 | ANY_VIEW, "B H T D"}, {"k", F32 | ANY_VIEW, "B G S D"},                            \
        {"v", F32 | ANY_VIEW, "B G S E"}, {"mask", U8 | OPTIONAL, "T|1 S B|1"},                    \
        {"valid_lens", I32 | OPTIONAL, "B T?"}, {"bias", bias_flags, "B|1 H|1 T|1 S"},             \
    {                                                                                              \
        "slopes", F32 | OPTIONAL, "H"                                                              \
    }
#define ATTENTION_BWD_IN(bias_flags)                                                               \
    OP_IN(ATTENTION_IN(bias_flags), {"y", F32, NULL}, {"weights", F32 | OPTIONAL, "B H T S"},      \
          {"rows", F32, "B H T 2"}, {"dy", F32, NULL}, {"dweights", F32 | OPTIONAL, "B H T S"},    \
          {"step", I32 | OPTIONAL, ""})
// For both gradient ops.  The GPU variant's deltas go to the start of the scratch.
attncl_status attncl__attention_bwd_infer(struct op_sig *sig);
attncl_status attncl__attention_bwd_launch_delta(struct launcher *l, const struct op_call *call,
                                                 const struct attention_tiling *p);

#endif
