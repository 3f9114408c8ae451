# SPDX-License-Identifier: MIT
"""op_files.py ROOT: every op of lib/op/op_list.def has its kernel (NAME.cl, or NAME_cpu*.cl and NAME_gpu*.cl) and its
reference, of one name, and a test: an OP_SPEC beside the reference, or tests/op/FAMILY/test_NAME.c.  Instead of a kernel
file, lib/op/FAMILY/NAME.c may say "No kernel: reason"; instead of a reference file, the test may name another below
tests/ref, or say "Reference: what it is".  The host file has one order:
infer, scratch, launch or gemm, of several ops one after another; gradient rules before the class that states them."""
import pathlib
import re
import sys


ORDER = re.compile("((I*S*L+)+(G*C)+)+")
PARTS = re.compile(r"^static (?:attncl_status|struct gemm) (?:\w+_)?(infer|scratch|launch|gemm)\(|^static const struct (grad_rule)|"
                   r"^const struct (op_class)", re.M)


def in_order(text):
    letter = {"infer": "I", "scratch": "S", "launch": "L", "gemm": "L", "grad_rule": "G", "op_class": "C"}
    return ORDER.fullmatch("".join(letter[part[1] or part[2] or part[3]] for part in PARTS.finditer(text)))


def main(root):
    root = pathlib.Path(root)
    ops = dict.fromkeys(re.findall(r"^OP\(([a-z0-9_/]+),", (root / "lib/op/op_list.def").read_text(), re.M))
    complaints = []
    for op in ops:
        family, name = op.split("/")
        host, test = root / f"lib/op/{op}.c", root / f"tests/op/{family}/test_{name}.c"
        for described in (name, name.removesuffix("_bwd")):  # the forward op's spec asks for its gradients
            spec = root / f"tests/ref/{described}.c"
            if not test.exists() and spec.exists() and "OP_SPEC(" in spec.read_text():
                test = spec
        text = {f: f.read_text() if f.exists() else "" for f in (host, test)}
        if host.exists() and not in_order(text[host]):
            complaints.append(f"{op}: not in the order infer, scratch, launch, gradient rule, class")
        for file, instead, said_in in ((host, None, None), (root / f"cl/{op}.cl", "No kernel: ", host), (test, None, None),
                                       (root / f"tests/ref/{name}.c", "Reference: |tests/ref/[a-z_]+\\.c", test)):
            found = file.exists() or list(file.parent.glob(f"{file.stem}_[cg]pu*.cl"))
            if not found and not (instead and re.search(f"// .*({instead})", text[said_in])):
                reason = f", and {said_in.relative_to(root)} says nothing of '{instead}'" if instead else ""
                complaints.append(f"{op}: no {file.relative_to(root)}{reason}")
    print("\n".join(complaints) or f"{len(ops)} ops")
    return bool(complaints) or not ops


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
