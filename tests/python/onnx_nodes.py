#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""onnx_nodes.py LIBRARY: ONNX's own node tests of Attention, RotaryEmbedding and RMSNormalization (opset 23 and later), by
attncl.ops.  The onnx package makes their inputs and results."""
import collections
import functools
import sys
import unittest
import warnings

import support

try:
    import numpy as np
    import onnx
    import torch
    from onnx.backend.test.case.node import collect_testcases
except ImportError as error:
    support.skip(f"no {error.name}")
support.use_package(sys.argv[1])
from attncl import ops  # noqa: E402

# Of results that ONNX computes in the narrow type, step by step, and we in float.
TOLERANCES = {"float32": (1e-3, 1e-6), "float16": (5e-3, 2e-3), "bfloat16": (2e-2, 2e-2)}
FORMLESS = "qk_matmul_output_mode %d is not compared: attention is one kernel, which keeps no scores"
skipped = collections.Counter()


def tensor(array):
    """As the library takes it: float32, or as it is."""
    if array is None or array.size == 0 and array.ndim == 0:
        return None
    return torch.from_numpy(np.array(array, dtype=array.dtype if array.dtype in (bool, np.int64) else np.float32))


def split_heads(x, n_heads):
    """[B, T, H C] as [B, H, T, C]; four axes stay."""
    return x if x.dim() == 4 else x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def visible_keys(n_queries, n_keys, starts, node):
    """Of queries at positions starts [B or 1] and on the keys that causal and the window show, [T, S, B or 1]."""
    at = torch.arange(n_queries)[:, None, None] + starts
    key = torch.arange(n_keys)[None, :, None]
    left, right = node.get("left_window_size", -1), node.get("right_window_size", -1)
    seen = torch.ones(n_queries, n_keys, len(starts), dtype=torch.bool)
    if node.get("is_causal"):
        seen &= key <= at
    if left >= 0:
        seen &= at - key <= left
    if right >= 0:
        seen &= key - at <= right
    return seen


def additive(mask, n_keys):
    """A mask of any rank and type as bias [B or 1, H or 1, T or 1, S]; keys that it lacks are hidden."""
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    mask = mask.reshape((1,) * (4 - mask.dim()) + tuple(mask.shape))
    return torch.nn.functional.pad(mask, (0, n_keys - mask.shape[-1]), value=-torch.inf)


def attention(node, q, k, v, attn_mask=None, past_key=None, past_value=None, nonpad_kv_seqlen=None):
    flat = q.dim() == 3
    q = split_heads(q, node.get("q_num_heads"))
    k, v = (split_heads(x, node.get("kv_num_heads")) for x in (k, v))
    if past_key is not None:
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
    n_past = 0 if past_key is None else past_key.shape[2]
    n_queries, n_keys = q.shape[2], k.shape[2]
    settings = {"scale": node.get("scale"), "softcap": node.get("softcap", 0.0)}
    starts = torch.tensor([n_past]) if nonpad_kv_seqlen is None else nonpad_kv_seqlen - n_queries
    if node.get("left_window_size", -1) < 0 and node.get("right_window_size", -1) < 0 and nonpad_kv_seqlen is None and \
            n_past + n_queries == n_keys:
        settings["is_causal"] = bool(node.get("is_causal"))
    else:
        settings["mask"] = visible_keys(n_queries, n_keys, starts, node)
    if attn_mask is not None:
        settings["bias"] = additive(attn_mask, n_keys)
    if nonpad_kv_seqlen is not None:
        settings["lengths"] = nonpad_kv_seqlen
    y = ops.attention(q, k, v, **settings)
    weights = None
    mode = node.get("qk_matmul_output_mode", 0)
    if mode == 3:  # of a unit matrix's rows each weight makes one element
        weights = ops.attention(q, k, torch.eye(n_keys).expand(*k.shape[:2], -1, -1).contiguous(), **settings)
    return y.transpose(1, 2).flatten(2) if flat else y, k, v, weights


def rotary(node, x, cos, sin, position_ids=None):
    flat = x.dim() == 3
    heads = split_heads(x, node.get("num_heads") or None).permute(2, 0, 1, 3).contiguous()  # [T, B, H, C]
    n_batch, n_positions = heads.shape[1], heads.shape[0]
    if position_ids is None:  # a row of the tables for each element
        position_ids = torch.arange(n_batch * n_positions).reshape(n_batch, n_positions)
    table = torch.stack([cos.flatten(0, -2), sin.flatten(0, -2)], 1)
    y = ops.rotary(heads, table, position_ids.T.contiguous(), neighbours=bool(node.get("interleaved")))
    return (y.permute(1, 0, 2, 3).flatten(2) if flat else y.permute(1, 2, 0, 3),)


def rms_normalization(node, x, scale):
    return (ops.rms_norm(x, scale, node.get("epsilon", 1e-5)),)


RUN = {"Attention": attention, "RotaryEmbedding": rotary, "RMSNormalization": rms_normalization}


@functools.cache
def all_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, where ONNX computes what overflows
        return collect_testcases()  # makes them once, for one operator or for all


def cases(op):
    return [c for c in all_cases() if [n.op_type for n in c.model.graph.node] == [op]]


class Nodes(unittest.TestCase):
    def check(self, case):
        node = case.model.graph.node[0]
        settings = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        for inputs, outputs in case.data_sets:
            given = iter(inputs)
            values = [tensor(next(given)) if name else None for name in node.input]
            results = RUN[node.op_type](settings, *values)
            wanted = iter(outputs)
            for name, got in zip(node.output, results):
                if not name:
                    continue
                want = next(wanted)
                if got is None:
                    skipped[FORMLESS % settings.get("qk_matmul_output_mode", 0)] += 1
                    continue
                relative, absolute = TOLERANCES[want.dtype.name]
                np.testing.assert_allclose(got.numpy(), want.astype(np.float32), relative, absolute, err_msg=name)

    def run_all(self, op):
        found = cases(op)
        self.assertTrue(found, f"onnx {onnx.__version__} has no test of {op}")
        for case in found:
            with self.subTest(case.name):
                self.check(case)
        print(f"{op}: {len(found)} tests of onnx {onnx.__version__}")

    def test_attention(self):
        self.run_all("Attention")
        for reason, n in sorted(skipped.items()):
            print(f"  {n} results skipped: {reason}")

    def test_rotary_embedding(self):
        self.run_all("RotaryEmbedding")

    def test_rms_normalization(self):
        self.run_all("RMSNormalization")


if __name__ == "__main__":
    support.need_device()
    support.main()
