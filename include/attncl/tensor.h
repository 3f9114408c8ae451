// SPDX-License-Identifier: MIT
/**
 * @file attncl/tensor.h
 * Arrays that live on the device beyond one graph: weights, above all.  Several graphs may read the
 * same tensor.
 *
 * Threads: any; objects that nothing changes may be shared.
 */
#ifndef ATTNCL_TENSOR_H
#define ATTNCL_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "attncl/context.h"
#include "attncl/dtype.h"

ATTNCL_BEGIN

typedef struct attncl_tensor attncl_tensor;

/**
 * Creates a tensor and uploads its elements.
 *
 * @param dtype       type on the device: F32, I32, U8, or F16 and BF16 for weights that ops read so
 * @param dim         `rank` extents, row-major, borrowed for the call
 * @param data_dtype  type of `data`: any float type for a float type, any integer type or BOOL for I32 and
 * U8
 * @param data        the elements in C order, borrowed for the call; NULL: zeros
 * @param tensor_ret  owned by the caller, released by attncl_tensor_destroy() after every graph
 * that uses it
 *
 * ERR_SHAPE, ERR_DTYPE, ERR_DEVICE_MEMORY; ERR_ARGUMENT for a number that F16 cannot hold.  Any thread.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, ERR_DEVICE_MEMORY.
 */
ATTNCL_API attncl_status attncl_tensor_create(attncl_context *context, attncl_dtype dtype, int rank,
                                              const int64_t *dim, attncl_dtype data_dtype,
                                              const void *data, attncl_tensor **tensor_ret);

/** NULL is fine.
 * Errors: none. */
ATTNCL_API void attncl_tensor_destroy(attncl_tensor *tensor);

/** Copies `bytes` (exactly the tensor's) to `data`, in the tensor's type.  Blocks.
 * Errors: ERR_ARGUMENT for the size, ERR_OPENCL. */
ATTNCL_API attncl_status attncl_tensor_read(attncl_tensor *tensor, void *data, size_t bytes);

/** Replaces all elements: `bytes` exactly the tensor's, in the tensor's type.  Runs in flight read the old
 * elements, later runs the new ones.  Blocks until `data` may be reused.
 * Errors: ERR_ARGUMENT for the size, ERR_OPENCL. */
ATTNCL_API attncl_status attncl_tensor_write(attncl_tensor *tensor, const void *data, size_t bytes);

ATTNCL_END

#endif
