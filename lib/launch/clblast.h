// SPDX-License-Identifier: MIT
// CLBlast behind its guards: the only file that knows it is clblast.c.
#ifndef ATTNCL_LAUNCH_CLBLAST_H
#define ATTNCL_LAUNCH_CLBLAST_H

#include "attncl/context.h"
#include "launch/gemm.h"

// Why CLBlast cannot make this product, in a few words; NULL: it can.
const char *attncl__clblast_refuses(const struct gemm *g);

// True for GPUs of CLBlast's tuning database; elsewhere its defaults are poor.
bool attncl__clblast_knows(const struct device_caps *caps);

// Appends the product without its epilogue.  ERR_BLAS at run time when CLBlast fails.
attncl_status attncl__clblast_gemm(struct launcher *l, const struct gemm *g);

// Gives CLBlast parameters for a device that its database lacks; done once for such devices by
// attncl__clblast_gemm().
attncl_status attncl__clblast_add_rows(attncl_context *ctx);

#endif
