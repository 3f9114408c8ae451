# SPDX-License-Identifier: MIT
"""The inner loop of a kernel, in an assembler text: how many instructions, and how many of them do what.

Loops are jumps back; the instructions of loops within a loop do not count as its own.  The inner one is that with the most
FMAs of its own, of those that read or write memory where there are any."""
import re

# A mnemonic's kind, the first that matches.  v_pk_fma and v_dual_fma do two; counted as instructions, not as operations.
KINDS = {
    "sass": (("fma", r"FFMA|HMMA"), ("local", r"LDS|STS"), ("global", r"LDG|STG|LD\b|ST\b"), ("barrier", r"BAR"),
             ("shuffle", r"SHFL"), ("private", r"LDL|STL")),
    "amd": (("fma", r"v_(pk_|dual_)?(fma|fmac|mad|mac)_.*f32|v_mfma|v_wmma|v_(pk_|dual_)?fma[mak]k_f32"),
            ("shuffle", r"ds_(bpermute|permute|swizzle)"), ("local", r"ds_"), ("global", r"global_|flat_|buffer_(load|store)"),
            ("private", r"scratch_"), ("barrier", r"s_barrier")),
    "intel": (("fma", r"mad:f|dpas"), ("local", r"send:local"), ("global", r"send:global"), ("private", r"send:scratch"),
              ("barrier", r"sync\.bar")),
}


def kernels_of_sass(text):
    """{kernel: [(address or label, mnemonic, target)]} of nvdisasm's output."""
    found, body = {}, None
    for line in text.split("\n"):
        name = re.match(r"\.text\.(\w+):", line)
        label = re.match(r"(\.L_x_\d+):", line)
        code = re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)(.*)", line)
        if name:
            body = found.setdefault(name[1], [])
        elif body is not None and label:
            body.append((label[1], None, None))
        elif body is not None and code:
            target = re.search(r"`\((\.L_x_\d+)\)", code[3]) if code[2].startswith("BRA") else None
            body.append((None, code[2], target and target[1]))
    return found


def kernels_of_amd(text):
    found, body = {}, None
    for line in text.split("\n"):
        name = re.match(r"(\w+):\s*; @\1", line)
        label = re.match(r"(\.LBB\w+):", line)
        code = re.match(r"\s+([a-z]\w+)(.*)", line)
        if name:
            body = found.setdefault(name[1], [])
        elif line.startswith(".Lfunc_end"):
            body = None
        elif body is not None and label:
            body.append((label[1], None, None))
        elif body is not None and code:
            target = re.search(r"(\.LBB\w+)", code[2]) if re.match(r"s_c?branch", code[1]) else None
            body.append((None, code[1], target and target[1]))
    return found


def kernel_of_intel(text):
    """[(label, mnemonic, target)] of an .asm that Intel's compiler dumps.  Of a message, what it is for: buffer 254 is local memory."""
    body = []
    for line in text.split("\n"):
        label = re.match(r"(\w+):$", line)
        code = re.match(r"(?:\(W[^)]*\)|\([~&]?f[\d.]+[^)]*\)|\(W&[^)]*\))?\s+([a-z][\w.]*)\s(.*)", line)
        if label:
            body.append((label[1], None, None))
        elif code:
            mnemonic = code[1]
            if mnemonic == "mad":
                mnemonic += ":f" if re.search(r">:f\b", code[2]) else ":d"
            elif mnemonic.startswith("send") and re.search(r"(read|write|load|store)", code[2].partition("//")[2]):
                local = mnemonic == "send.slm" or re.search(r"0x[0-9A-F]{6}FE\b", code[2])
                mnemonic = "send:scratch" if "scratch" in code[2] else "send:local" if local else "send:global"
            elif re.match(r"(load|store)[._]", mnemonic):
                mnemonic = "send:local" if ".slm" in mnemonic else "send:global"
            jump = code[1] in ("while", "jmpi", "goto", "brc", "brd")
            target = re.search(r"\b(_\d+_\d+|L\d+)\b", code[2].partition("//")[0]) if jump else None
            body.append((None, mnemonic, target and target[1]))
    return body


def loops(body):
    """[(first, last)] of jumps back."""
    at = {label: i for i, (label, _, _) in enumerate(body) if label}
    return [(at[target], i) for i, (_, _, target) in enumerate(body) if target in at and at[target] < i - 1]


def count(body, kinds):
    number = {"instructions": 0, **{kind: 0 for kind, _ in kinds}}
    for _, mnemonic, _ in body:
        if not mnemonic or mnemonic in ("NOP", "s_nop", "nop", "join"):
            continue
        number["instructions"] += 1
        for kind, pattern in kinds:
            if re.match(pattern, mnemonic):
                number[kind] += 1
                break
    return number


def inner_loop(body, assembler):
    """Counts of the inner loop; None where a kernel has no loop."""
    found = set(loops(body))
    counts = []
    for first, last in found:
        within = {i for a, b in found if (a, b) != (first, last) and first <= a and b <= last for i in range(a, b + 1)}
        counts.append(count([body[i] for i in range(first, last + 1) if i not in within], KINDS[assembler]))
    return max(counts, key=lambda n: (n["local"] + n["global"] > 0, n["fma"], n["instructions"]), default=None)
