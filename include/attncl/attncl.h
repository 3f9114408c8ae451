// SPDX-License-Identifier: MIT
/**
 * @file attncl/attncl.h
 * libattncl: attention and attention-free layers on any OpenCL device.
 *
 * Three ways in, each a thin face over the next: the command line `attncl`; model files (model.h);
 * graphs (graph.h with ops.h, aft.h, gmlp.h, recurrent.h, transformer.h).  opencl.h, included
 * apart, works inside the caller's own OpenCL program.
 *
 * Shape letters everywhere: B batch, H heads, T queries, S keys, D head width, C channels, F hidden
 * channels. Arrays are row-major.
 */
#ifndef ATTNCL_ATTNCL_H
#define ATTNCL_ATTNCL_H

#include "attncl/aft.h"
#include "attncl/array.h"
#include "attncl/attention.h"
#include "attncl/context.h"
#include "attncl/describe.h"
#include "attncl/dropout.h"
#include "attncl/dtype.h"
#include "attncl/feedback.h"
#include "attncl/gmlp.h"
#include "attncl/gradient.h"
#include "attncl/graph.h"
#include "attncl/kinds.h"
#include "attncl/log.h"
#include "attncl/model.h"
#include "attncl/ops.h"
#include "attncl/optim.h"
#include "attncl/parameters.h"
#include "attncl/profile.h"
#include "attncl/ranks.h"
#include "attncl/recurrent.h"
#include "attncl/safetensors.h"
#include "attncl/slots.h"
#include "attncl/status.h"
#include "attncl/tensor.h"
#include "attncl/tokenizer.h"
#include "attncl/train.h"
#include "attncl/transformer.h"
#include "attncl/tune.h"
#include "attncl/version.h"

#endif
