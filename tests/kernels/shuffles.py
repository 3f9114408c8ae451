#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""shuffles.py VARIANTS [--counts]: kernels that reduce over a work-group of a sub-group or more shuffle on NVIDIA's and AMD's GPUs,
with fewer barriers than by local memory alone, at most two for a reduction of up to 8 sub-groups.  Rows that a sub-group or less shares
take no barrier, longer ones one for each reduction.  AMD's shuffle by DPP at distances below 16.  clang compiles them, to LLVM's
instructions; no GPU is needed.  --counts prints what was counted.  Skipped (77) without clang and libclc.  On Intel's, where ocloc is
installed, the same kernels run as many work-items a thread as they shuffle among, in registers."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from compilers import clang_or_skip, launches  # noqa: E402
from intel_binary import kernels_of_binary  # noqa: E402

NVIDIA = ("nvptx64-nvidia-nvcl", "sm_75", r"shfl\.sync\.bfly")
AMD = r"call .*(?:ds\.bpermute|update\.dpp)"
TARGETS = {"nvidia": NVIDIA, "cdna": ("amdgcn-amd-amdhsa", "gfx90a", AMD), "rdna": ("amdgcn-amd-amdhsa", "gfx1030", AMD)}
# {kernel: its reductions}
KERNELS = {"clip_total_fwd": 1, "cross_entropy_total_fwd": 2, "feedback_attention_fwd": 2, "gemv_dot": 1}
# {kernel over rows: floats that it reduces, by how many reductions}
ROWS = {"softmax_rows_fwd": (2, 2), "layer_norm_rows_fwd": (3, 2)}


def instructions(clang, text, kernel, device):
    """LLVM's, of a kernel."""
    triple, arch, _ = TARGETS[device]
    cpu = f"-march={arch}" if device == "nvidia" else f"-mcpu={arch}"
    done = subprocess.run([clang, "-x", "cl", "-cl-std=CL1.2", "-target", triple, cpu, "-nogpulib", "-O2", "-w", "-S", "-emit-llvm", "-",
                           "-o", "-"], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{kernel} does not compile for {device}: {done.stderr[:400]}")
    return re.search(rf"^define [^\n]*@{kernel}\(.*?^}}", done.stdout, re.M | re.S)[0]


def count(clang, text, kernel, device):
    """(barriers, shuffles, instructions, those by ds_bpermute) of a kernel."""
    body = instructions(clang, text, kernel, device)
    shuffle = TARGETS[device][2]
    return (len(re.findall(r"call .*barrier", body)), len(re.findall(shuffle, body)),
            len(re.findall(r"^  [^ ;].*", body, re.M)), len(re.findall(r"call .*ds\.bpermute", body)))


def intel_faults(source, kernel, name, lanes, group):
    """What is not as it should be in a kernel that Intel's compiler made for Arc."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(["ocloc", "compile", "-q", "-file", source, "-device", "dg2", "-out_dir", directory, "-output", "binary",
                               "-output_no_suffix", "-options", "-cl-std=CL1.2", "-internal_options", "-cl-intel-allow-zebin"],
                              capture_output=True, text=True)
        if done.returncode:
            return [f"{name}: does not compile: {' '.join((done.stdout + done.stderr).split())[:300]}"]
        with open(os.path.join(directory, "binary"), "rb") as file:
            figures = kernels_of_binary(file.read())[kernel]
    faults = []
    if group >= lanes and not figures["simd"] == figures["required_simd"] == lanes:
        faults.append(f"{name}: {figures['simd']} work-items a thread, {lanes} are needed")
    if figures["spill"] or figures["scratch"]:
        faults.append(f"{name}: {figures['spill'] + figures['scratch']} bytes are in memory")
    return faults


def macro(text, name):
    return int((re.search(rf"^#define {name} (\d+)$", text, re.M) or [0, 0])[1])


def row_faults(text, kernel, device, here):
    """What is not as it should be in a kernel over rows."""
    per_row, lanes = macro(text, "LANES_PER_ROW"), macro(text, "SHUFFLE_LANES")
    floats, reductions = ROWS[kernel]
    joined = min(per_row, lanes)
    distances = [2 ** k for k in range(joined.bit_length() - 1)]
    # AMD's distance of 4 is two moves.
    moves = distances if device == "nvidia" else distances + [d for d in distances if d == 4]
    far = 0 if device == "nvidia" else len([d for d in distances if d >= 16])
    expected = (reductions if per_row > lanes else 0, floats * len(moves), floats * far)
    found = (here[0], here[1], here[3])
    return [] if found == expected else [f"barriers, shuffles and ds_bpermute {found}, expected {expected}"]


def main():
    clang = clang_or_skip()
    faults, seen, shuffling = [], set(), set()
    with tempfile.TemporaryDirectory() as directory:
        for source, device, kernel, group, *_ in launches(sys.argv[1], directory):
            intel = device == "intel" and shutil.which("ocloc")
            if device not in TARGETS and not intel or kernel not in KERNELS and kernel not in ROWS:
                continue
            with open(os.path.join(directory, source)) as file:
                text = file.read()
            form = device, kernel, group, macro(text, "LANES_PER_ROW")
            if form in seen:
                continue
            seen.add(form)
            lanes = macro(text, "SHUFFLE_LANES")
            if intel:
                faults += intel_faults(os.path.join(directory, source), kernel, f"{kernel}, {group} work-items, Intel", lanes, int(group))
                shuffling |= {(device, kernel)} if lanes and int(group) >= lanes else set()
                continue
            plain = count(clang, re.sub(r"^#define SHUFFLE.*\n", "", text, flags=re.M), kernel, device)
            here = count(clang, text, kernel, device)
            name = f"{kernel}, {group} work-items{f', {form[3]} for a row' if form[3] else ''}, {device}"
            if "--counts" in sys.argv:
                print(f"{name}: barriers {plain[0]} to {here[0]}, shuffles {here[1]}, instructions {plain[2]} to {here[2]}")
            if not lanes:
                faults.append(f"{name}: SHUFFLE_LANES is not defined")
            elif int(group) < lanes:
                if here != plain:
                    faults.append(f"{name}: differs from local memory, below a sub-group of {lanes}")
            else:
                shuffling.add((device, kernel))
                if kernel in ROWS:
                    faults += [f"{name}: {fault}" for fault in row_faults(text, kernel, device, here)]
                elif here[1] == 0 or here[0] >= plain[0]:
                    faults.append(f"{name}: {here[1]} shuffles, {here[0]} barriers, by local memory {plain[0]}")
                if kernel == "cross_entropy_total_fwd" and here[0] > 2 * KERNELS[kernel]:
                    faults.append(f"{name}: {here[0]} barriers, expected at most {2 * KERNELS[kernel]}")
    asked = [*TARGETS, *(["intel"] if shutil.which("ocloc") else [])]
    faults += [f"no kernel shuffles on {device}" for device in asked if not any(d == device for d, _ in shuffling)]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(seen)} kernels, {len(shuffling)} of them by shuffles on a device: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
