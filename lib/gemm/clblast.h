// SPDX-License-Identifier: MIT
// CLBlast behind its guards: the only file that knows it is clblast.c.
#ifndef ATTNCL_GEMM_CLBLAST_H
#define ATTNCL_GEMM_CLBLAST_H

#include "attncl/context.h"
#include "gemm/gemm.h"

// Why CLBlast cannot compute this GEMM, in a few words; NULL: it can.
const char *attncl__clblast_unsupported_reason(const struct gemm *g);

// True for GPUs of CLBlast's tuning database; elsewhere its defaults are poor.
bool attncl__clblast_has_tuning(const struct device_caps *caps);

// Appends the GEMM without its epilogue.  ERR_BLAS at run time when CLBlast fails.
attncl_status attncl__clblast_gemm(struct launcher *l, const struct gemm *g);

// Gives CLBlast parameters for a device that its database lacks; done once for such devices by
// attncl__clblast_gemm().
attncl_status attncl__clblast_add_tuning(attncl_context *ctx);

#endif
