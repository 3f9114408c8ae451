// SPDX-License-Identifier: MIT
// CLBlast with guards against its known faults.  Only clblast.c includes its header.
#ifndef ATTNCL_GEMM_CLBLAST_H
#define ATTNCL_GEMM_CLBLAST_H

#include "attncl/context.h"
#include "gemm/gemm.h"

// Why CLBlast cannot compute this GEMM, in a few words; NULL: it can.
const char *attncl__clblast_unsupported_reason(const struct gemm *g);

// True for GPUs in CLBlast's tuning database; its defaults are slow on others.
bool attncl__clblast_has_tuning(const struct device_caps *caps);

// Appends the GEMM without its epilogue.  ERR_BLAS at run time when CLBlast fails.
attncl_status attncl__clblast_gemm(struct launcher *l, const struct gemm *g);

// Gives CLBlast parameters for an NVIDIA GPU that its database lacks; attncl__clblast_gemm() calls
// it once per context.
attncl_status attncl__clblast_add_tuning(attncl_context *ctx);

#endif
