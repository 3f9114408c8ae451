#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""convert.py TOOL: attncl convert.  Matrices of trained parameters change their type and nothing else does; the converted
model computes as the same values in F32; what cannot be converted is refused without a file.  Standard library only.
Exit status 77 when there is no device.
"""
import math
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training import TESTS, load, main, write  # noqa: E402

TEXT = "abcabcbacbabcbabacabcb"
LM = os.path.join(TESTS, "data", "lm_transformer.safetensors")


def run(c):
    at, check, works = c.at, c.check, c.works

    def refused(status, words, output, *command):
        c.refused(words, "convert", *command, status=status)
        check(not os.path.exists(output), "%s left %s" % (" ".join(command), output))

    tensors, metadata = load(LM)
    tensors = {n: t for n, t in tensors.items() if not n.startswith(("input.", "expected."))}
    metadata["attncl.vocab"] = "".join(chr(97 + i) for i in range(11))
    write(at("lm"), tensors, metadata)
    before, metadata_before = load(at("lm"))
    for name, dtype in (("f16", "F16"), ("bf16", "BF16")):
        works("convert", at("lm"), at(name), "--dtype", name)
        works("convert", at(name), at("back"), "--dtype", "f32")
        works("convert", at("back"), at("again"), "--dtype", name)
        after, metadata_after = load(at(name))
        back = load(at("back"))[0]
        check(metadata_after == metadata_before, "%s: metadata differ" % name)
        check({n: t[:2] for n, t in back.items()} == {n: t[:2] for n, t in before.items()}, "%s and back: not as before" % name)
        check(load(at("again"))[0] == after, "%s: another rounding the second time" % name)
        n_converted = 0
        for tensor, (kind, shape, old) in before.items():
            if after[tensor][0] == dtype:
                n_converted += 1
                check(len(shape) >= 2 and after[tensor][1] == shape, "%s is %s" % (tensor, after[tensor][:2]))
                pairs = zip(*(struct.unpack("<%df" % (len(old) // 4), b) for b in (old, back[tensor][2])))
                worst = max(abs(x - y) / max(abs(x), 2.0 ** -14) if math.isfinite(y) else math.inf for x, y in pairs)
                check(0 < worst <= 2.0 ** -(11 if dtype == "F16" else 8), "%s as %s: off by %g" % (tensor, dtype, worst))
            else:
                check(after[tensor] == before[tensor], "%s became %s" % (tensor, after[tensor][:2]))
        check(n_converted >= 10, "%s: %d tensors were converted" % (name, n_converted))

    refused(2, "--dtype is missing: f16, bf16 or f32", at("no"), at("lm"), at("no"))
    refused(2, "'F64' is not f16, bf16 or f32", at("no"), at("lm"), at("no"), "--dtype", "F64")
    refused(1, "No such file", at("no"), at("none"), at("no"), "--dtype", "f16")
    refused(1, "none/no: No such file", at("none/no"), at("lm"), at("none/no"), "--dtype", "f16")
    write(at("plain"), tensors, {})
    refused(1, "attncl.arch", at("no"), at("plain"), at("no"), "--dtype", "f16")
    large = dict(tensors)
    kind, shape, values = large["generator.projection.weight"]
    large["generator.projection.weight"] = (kind, shape, struct.pack("<f", 1e6) + values[4:])
    write(at("large"), large, metadata)
    refused(1, "generator.projection.weight: element 0 is 1e+06, which does not fit F16", at("no"), at("large"),
            at("no"), "--dtype", "f16")
    works("convert", at("large"), at("fits"), "--dtype", "bf16")

    with open(at("text"), "w") as f:
        f.write(TEXT)
    for name in ("f16", "bf16"):
        works("convert", at(name), at("back"), "--dtype", "f32")
        nll = [float(works("eval", at(file), at("text")).split()[1]) for file in (name, "back", "lm")]
        check(abs(nll[0] - nll[1]) < 5e-6, "%s: %g, the same values in F32 %g" % (name, nll[0], nll[1]))
        check(abs(nll[0] - nll[2]) < 0.02, "%s: %g, before %g" % (name, nll[0], nll[2]))
        greedy = [works("sample", at(file), "--prompt", "ab", "--length", "6", "--temperature", "0")
                  for file in (name, "back")]
        check(greedy[0] == greedy[1], "%s: writes %s instead of %s" % (name, *greedy))


if __name__ == "__main__":
    sys.exit(main(run))
