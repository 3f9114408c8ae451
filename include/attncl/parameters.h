// SPDX-License-Identifier: MIT
/**
 * @file attncl/parameters.h
 * A model's parameters: created from a seed, read, written, saved as a model file.  And its loss and
 * gradients in your own graph, for training.
 *
 *     attncl_model_create(context, "lm", config, seed, &model);
 *     attncl_model_loss(model, g, NULL, inputs, n, &loss);           // tokens and targets
 *     attncl_model_gradient(model, g, loss, values, gradients);
 *     for (i = 0; i < attncl_model_tensor_count(model); i++)
 *         attncl_adam_update(g, &adam, rates, gradients[i], &adam_values[i]);   // attncl/optim.h
 *     attncl_graph_compile(g, NULL);                                  // each run is a step
 *     attncl_model_save(model, "model.safetensors", NULL);
 *
 * Threads: one at a time per model and its graphs.
 */
#ifndef ATTNCL_PARAMETERS_H
#define ATTNCL_PARAMETERS_H

#include "attncl/array.h"
#include "attncl/graph.h"
#include "attncl/model.h"

ATTNCL_BEGIN

/**
 * Creates a model with PyTorch's initial distributions: uniform within +-1 / sqrt(inputs), normal, or constant,
 * by parameter.  The values depend only on seed, name and element: the same bits on every device
 * (docs/model-files.md).
 *
 * @param arch       its name, "lm"
 * @param config     a JSON object as in metadata attncl.config
 * @param model_ret  owned by the caller, released by attncl_model_destroy() before the context
 * Errors: ERR_FORMAT for an unknown architecture and a configuration that it does not accept,
 * ERR_ARGUMENT, ERR_SHAPE, ERR_DEVICE_MEMORY, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_model_create(attncl_context *context, const char *arch,
                                             const char *config, uint64_t seed,
                                             attncl_model **model_ret);

/**
 * Writes a model file: the current trained parameters, in PyTorch's names and shapes, and the metadata.
 * Buffers that follow from the configuration (fixed positions, masks) are left out.  An existing file is
 * replaced atomically.
 *
 * @param metadata  key, value, key, value ... NULL: added to the model's metadata, or replacing its
 * values; or NULL
 * Errors: ERR_IO, ERR_ARGUMENT, ERR_OPENCL, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_model_save(attncl_model *model, const char *path,
                                           const char *const *metadata);

/* parameters, as files name them */

/** A parameter.  Start from ATTNCL_PARAM_INIT. */
typedef struct attncl_param {
    size_t struct_size;
    const char *name; /**< "encoder.layers.0.norm_ff.weight", borrowed from the model */
    attncl_shape
        shape;     /**< its dtype is how the device keeps it: F32, or as the file F16 or BF16 */
    int trainable; /**< 0: a buffer that follows from the configuration */
} attncl_param;

#define ATTNCL_PARAM_INIT                                                                          \
    {                                                                                              \
        sizeof(attncl_param), 0, {ATTNCL_DTYPE_NONE, 0, {0}}, 0                                    \
    }

/** Number of parameters.  Errors: none. */
ATTNCL_API size_t attncl_model_param_count(const attncl_model *model);

/** Parameter `i`, in the model's order.
 * Errors: ERR_ARGUMENT beyond the last. */
ATTNCL_API attncl_status attncl_model_param_at(const attncl_model *model, size_t i,
                                               attncl_param *param_ret);

/** Waits for the runs in flight and copies a parameter, always as F32: `bytes` exactly its size in F32.
 * Errors: ERR_ARGUMENT for the name or the size, ERR_OPENCL. */
ATTNCL_API attncl_status attncl_model_param_read(attncl_model *model, const char *name, void *data,
                                                 size_t bytes);

/** Replaces a parameter in every graph of the model, from F32; rounds if the device keeps 16 bits.
 * Blocks until `data` may be reused.
 * Errors: as attncl_model_param_read(). */
ATTNCL_API attncl_status attncl_model_param_write(attncl_model *model, const char *name,
                                                  const void *data, size_t bytes);

/* training */

/** A trained tensor on the device: a parameter, or several stacked for one GEMM.  Start from
 * ATTNCL_MODEL_TENSOR_INIT. */
typedef struct attncl_model_tensor {
    size_t struct_size;
    const char *name;      /**< unique in the model, borrowed */
    attncl_tensor *tensor; /**< borrowed */
    attncl_shape shape;
} attncl_model_tensor;

#define ATTNCL_MODEL_TENSOR_INIT                                                                   \
    {                                                                                              \
        sizeof(attncl_model_tensor), 0, 0,                                                         \
        {                                                                                          \
            ATTNCL_DTYPE_NONE, 0,                                                                  \
            {                                                                                      \
                0                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/** Number of trained tensors.  Errors: none. */
ATTNCL_API size_t attncl_model_tensor_count(const attncl_model *model);

/** Trained tensor `i`, in the model's order.
 * Errors: ERR_ARGUMENT beyond the last. */
ATTNCL_API attncl_status attncl_model_tensor_at(const attncl_model *model, size_t i,
                                                attncl_model_tensor *tensor_ret);

/** How a loss is computed.  Start from ATTNCL_LOSS_DESC_INIT. */
typedef struct attncl_loss_desc {
    size_t struct_size;
    int64_t pad;            /**< the target that marks padding, -1: none */
    double label_smoothing; /**< in [0, 1): share of each target that is spread over all classes */
    double dropout;         /**< p in [0, 1], if the architecture trains with dropout */
    uint64_t seed;          /**< of dropout */
    attncl_value step;      /**< I32 [], of dropout: another number, other elements; null: 0 */
    int64_t batch_begin,
        batch_total; /**< of dropout: the inputs are the sequences from batch_begin on of
                                         a batch of batch_total, and get its masks; 0, 0: all */
} attncl_loss_desc;

#define ATTNCL_LOSS_DESC_INIT                                                                      \
    {                                                                                              \
        sizeof(attncl_loss_desc), -1, 0, 0, 0, ATTNCL_VALUE_INIT, 0, 0                             \
    }

/**
 * Adds a model's forward pass and the cross entropy of its output to a graph.  The graph's inputs are the
 * architecture's and "targets".
 *
 * @param desc      NULL: the defaults
 * @param inputs    as of attncl_model_graph(), and "targets": integers, one for each row of the
 *                  output, [T, B] of lm, [B, T] of seq2seq_bahdanau and seq2seq_transformer
 * @param loss_ret  the mean over the targets that are not padding, []
 *
 * ERR_UNSUPPORTED for an architecture whose output is not class scores.
 * Errors: ERR_ARGUMENT, ERR_SHAPE, ERR_DTYPE, ERR_UNSUPPORTED, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_model_loss(attncl_model *model, attncl_graph *g,
                                           const attncl_loss_desc *desc, const attncl_array *inputs,
                                           size_t n, attncl_value *loss_ret);

/**
 * Adds the gradients of a loss to its graph.
 *
 * @param values_ret    receives the value of each trained tensor, attncl_model_tensor_count() of
 *                       them
 * @param gradients_ret  receives as many gradients
 * Errors: ERR_ARGUMENT, ERR_UNSUPPORTED, ERR_NO_MEMORY.
 */
ATTNCL_API attncl_status attncl_model_gradient(attncl_model *model, attncl_graph *g,
                                               attncl_value loss, attncl_value *values_ret,
                                               attncl_value *gradients_ret);

ATTNCL_END

#endif
