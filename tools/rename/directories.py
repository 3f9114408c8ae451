#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""directories.py ROOT: moves the sources into the directories of docs/architecture.md; run after words.py."""
import re, subprocess, sys, os
root = sys.argv[1]
git = lambda *a: subprocess.check_output(["git","-C",root,*a],text=True)
files = git("ls-files").splitlines()
FAM = [
 ("fused", r"fused_.*|split_k_reduce.*"),
 ("gemm", r"gemm_(cpu|gpu|epilogue|rows|skinny).*|gemv.*|skinny_gemm"),   # only cl/
 ("norm", r"softmax.*|masked_softmax.*|layer_norm.*|argmax"),
 ("elementwise", r"activation.*|binary"),
 ("matmul", r"gemm|gemm_bwd|linear|column_sum|spatial_gate.*"),
 ("attention", r"attention.*|additive_attention.*"),
 ("aft", r"aft_.*"),
 ("recurrent", r"gru.*|loop.*"),
 ("feedback", r"feedback_.*"),
 ("embedding", r"embedding.*|positions"),
 ("view", r"copy|view_scatter_add|concat|rotate|strided_iter"),
 ("train", r"adam|clip|cross_entropy.*"),
]
def family(base):
    for fam, rx in FAM:
        if re.fullmatch(rx, base): return fam
    return None
def target(f):
    d, name = f.rsplit("/",1) if "/" in f else ("", f)
    base, ext = os.path.splitext(name)
    if d == "lib/op":
        if base in ("op","op_list","registry","README","row_tiling"): return None
        fam = family(base); assert fam, f
        assert fam != "gemm", f
        return f"lib/op/{fam}/{name}"
    if d == "cl/op":
        fam = family(base); assert fam, f
        return f"cl/{fam}/{name}"
    if d == "tests/op":
        b = base.removeprefix("test_"); 
        fam = family(b); assert fam, f
        return f"tests/op/{fam}/{name}"
    if d == "lib/device":
        if base in ("cache_file","cache_eviction","private_dir"): return f"lib/store/{name}"
    if d == "tests/device" and base in ("test_cache_file",): return f"tests/store/{name}"
    if d == "lib/launch" and re.fullmatch(r"clblast|gemm.*|skinny_gemm", base): return f"lib/gemm/{name}"
    if d == "tests/launch":
        if re.fullmatch(r"test_(clblast|gemm.*)", base): return f"tests/gemm/{name}"
        if base == "test_row_tiling": return f"tests/op/{name}"
    if d == "lib/graph":
        if base in ("backward","grad_node","grad_accum"): return f"lib/autodiff/{name}"
        if base in ("compile","liveness","memory_plan","merge","rewrite","as_built"): return f"lib/compile/{name}"
        if base in ("run","bind","profile","canary"): return f"lib/exec/{name}"
    if d == "tests/graph":
        if base in ("test_backward",): return f"tests/autodiff/{name}"
        if base in ("test_merge","test_memory_plan","test_plan","test_rewrite"): return f"tests/compile/{name}"
        if base in ("test_bind",): return f"tests/exec/{name}"
    return None
moves = {f:t for f in files if (t := target(f)) and t != f}
for a,b in moves.items():
    os.makedirs(os.path.dirname(f"{root}/{b}"), exist_ok=True)
    subprocess.check_call(["git","-C",root,"mv",a,b])
short = lambda p: p.split("/",1)[1]
rx = []
full = {**moves}
shorts = {}
for a,b in moves.items():
    top = a.split("/",1)[0]
    if top in ("lib","cl"):
        shorts[short(a)] = short(b)            # "op/aft.h" includes, "op/softmax.cl" strings
pat_full = re.compile(r"(?<![\w/])(?:" + "|".join(map(re.escape, sorted(full, key=len, reverse=True))) + r")(?![\w])")
pat_short = re.compile(r"(?<![\w/])(?:" + "|".join(map(re.escape, sorted(shorts, key=len, reverse=True))) + r")(?![\w])")
for f in git("ls-files").splitlines():
    if f.endswith((".safetensors",".svg")) or f.startswith("tools/rename/"): continue
    try: s = open(f"{root}/{f}",encoding="utf-8").read()
    except (UnicodeDecodeError, FileNotFoundError): continue
    t = pat_full.sub(lambda m: full[m[0]], s)
    t = pat_short.sub(lambda m: shorts[m[0]], t)
    if f == "lib/op/op_list.def":
        def row(m):
            fam = family(m[1]); assert fam, m[1]
            return f"OP({fam}/{m[1]},"
        t = re.sub(r"^OP\((\w+),", row, t, flags=re.M)
    if t != s: open(f"{root}/{f}","w",encoding="utf-8").write(t)
