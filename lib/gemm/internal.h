// SPDX-License-Identifier: MIT
// The native GEMM kernels and CLBlast; gemm_backend.c chooses among them.
#ifndef ATTNCL_GEMM_INTERNAL_H
#define ATTNCL_GEMM_INTERNAL_H

#include "attncl/context.h"
#include "base/quantised.h"
#include "gemm/gemm.h"

// `how` receives a description of the kernel, for the log.
enum { GEMM_HOW_BYTES = 96 };

// Tiled GEMM of any shape with k > 0.  ERR_UNSUPPORTED when no tile configuration runs on the device or
// the grid is too large.
attncl_status attncl__gemm_cpu(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES]);
attncl_status attncl__gemm_gpu(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES]);

// Scratch bytes of a tiled GEMM that is not empty and not skinny.
size_t attncl__gemm_cpu_scratch(const struct device_caps *caps, const struct gemm *g);
size_t attncl__gemm_gpu_scratch(const struct device_caps *caps, const struct gemm *g);

// Skinny GEMM: A has few enough rows that B is read once.
bool attncl__gemm_is_skinny(const struct device_caps *caps, const struct gemm *g);
attncl_status attncl__gemm_skinny(struct launcher *l, const struct gemm *g,
                                  char how[GEMM_HOW_BYTES]);
// gemv.c: the skinny GEMMs of cl/gemm/gemv_*.cl.
enum { GEMV_MAX_ROWS = 4 }; // without blocks of rows
bool attncl__gemv_is_supported(const struct device_caps *caps, const struct gemm *g);
bool attncl__gemv_can_norm(const struct device_caps *caps, const struct gemm *g);
attncl_status attncl__gemv(struct launcher *l, const struct gemm *g, char how[GEMM_HOW_BYTES]);

// gemm_quantised.c: B in 8 or 4 bits, transposed.
bool attncl__gemm_quantised_can_norm(const struct device_caps *caps, const struct gemm *g);
bool attncl__gemm_quantised_can_take_others(const struct device_caps *caps, const struct gemm *g);
attncl_status attncl__gemm_quantised(struct launcher *l, const struct gemm *g,
                                     char how[GEMM_HOW_BYTES]);

// Local memory of the CPU variant's normalised rows, each padded to whole vectors.
static inline size_t attncl__gemm_norm_bytes(const struct device_caps *caps, const struct gemm *g)
{
    return (size_t)(g->m * round_up(g->k, caps->vector_width)) * sizeof(float);
}

// Values of macro NORM.
enum gemm_norm_kind { GEMM_NORM_NONE, GEMM_NORM_LAYER, GEMM_NORM_RMS };
static inline void attncl__gemm_add_norm_macro(struct kspec *spec, const struct gemm *g)
{
    const enum gemm_norm_kind kind = !g->norm.weight.storage ? GEMM_NORM_NONE
                                     : g->norm.bias.storage  ? GEMM_NORM_LAYER
                                                             : GEMM_NORM_RMS;
    kspec_int(spec, "NORM", kind);
}

// True when the GEMM has an activation, a bias, a gate or a residual.
bool attncl__gemm_has_epilogue(const struct gemm *g);

// Applies the epilogue to the sum of `n_splits` dense partial results in g->scratch (0: to zero), or to C as it is.
enum { GEMM_SUMS_IN_C = -1 };
attncl_status attncl__gemm_apply_epilogue(struct launcher *l, const struct gemm *g,
                                          int64_t n_splits);

// TUNE_SMALL, TUNE_MEDIUM or TUNE_LARGE.
int attncl__gemm_get_tune_class(const struct gemm *g);

// Append arguments.  The kernels' order is sizes, then A, B and C, then the epilogue (MATRIX_PARAMS and
// EPILOGUE_PARAMS of cl/common/epilogue.clh).
void attncl__gemm_add_matrices(struct arg_list *args, const struct gemm *g,
                               const struct gemm_matrix *c);
void attncl__gemm_add_epilogue(struct arg_list *args, const struct gemm *g);

// The products of A that are computed at once, and their groups of `columns` columns.
int attncl__gemm_count_products(const struct gemm *g);
int64_t attncl__gemm_count_columns(const struct gemm *g, int64_t columns);
// OPERAND_PARAMS and OTHER_PARAMS of cl/gemm/products.clh.
void attncl__gemm_add_operands(struct arg_list *args, const struct gemm *g);
void attncl__gemm_add_others(struct arg_list *args, const struct gemm *g);

// Adds the macros of both tiled variants: TRANS_A, TRANS_B, CAUSAL, WTYPE, ACT.
void attncl__gemm_add_macros(struct kspec *spec, const struct gemm *g);

// The number of tiles of one batch entry; ERR_UNSUPPORTED when all entries together have too many.
int64_t attncl__gemm_tile_count(const struct gemm *g, int64_t tile_m, int64_t tile_n);
attncl_status attncl__gemm_check_groups(const struct gemm *g, int64_t groups);

// Returns the largest work-group size for rows of `width` elements that the built kernel supports, and its
// specialisation, which `make` creates for a given size.
typedef struct kspec (*gemm_spec_fn)(const struct device_caps *caps, const struct gemm *g,
                                     size_t local);
size_t attncl__gemm_fit_group(struct launcher *l, const struct gemm *g, int64_t width,
                              gemm_spec_fn make, struct kspec *spec);

// -- clblast.c, the only file that includes CLBlast's header

// Returns why CLBlast cannot compute this GEMM; NULL: it can.
const char *attncl__clblast_unsupported_reason(const struct gemm *g);

// True when one call computes all batch entries; otherwise each needs a call.
bool attncl__clblast_is_one_call(const struct gemm *g);

// False for NVIDIA GPUs that CLBlast's tuning database lacks; its defaults are slow for them.
bool attncl__clblast_has_tuning(const struct device_caps *caps);

// Appends the GEMM without its epilogue.  ERR_BLAS at run time when CLBlast fails.
attncl_status attncl__clblast_gemm(struct launcher *l, const struct gemm *g);

// Overrides CLBlast's parameters: the size from which it pads operands, and tile sizes for NVIDIA GPUs that its
// database lacks.  attncl__clblast_gemm() calls it once per context.
attncl_status attncl__clblast_add_tuning(attncl_context *ctx);

#endif
