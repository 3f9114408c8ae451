#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""words.py ROOT: renames files and words of a checkout as words.tsv beside it says; the vocabulary change of 0.1.

A line of the table is a scope and pairs of regular expression and replacement.  The scope is "-" for every file, path
prefixes, or FILE: then the pairs are paths, of files to move.
"""
import os
import re
import subprocess
import sys

root = sys.argv[1]


def git(*args):
    return subprocess.check_output(["git", "-C", root, *args], text=True)


def below_top(path):
    return path.split("/", 1)[1]


pairs = []
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.tsv"), encoding="utf-8") as table:
    for line in table:
        scope, *rest = line.rstrip("\n").split("\t")
        pairs += [(scope, rest[i], rest[i + 1]) for i in range(0, len(rest), 2)]
moves = [(old, new) for scope, old, new in pairs if scope == "FILE"]
for old, new in moves:
    git("mv", old, new)

text = {}
for name in git("ls-files").splitlines():
    if name.endswith((".safetensors", ".svg")) or name == "LICENSE" or name.startswith("tools/rename/"):
        continue
    with open(f"{root}/{name}", encoding="utf-8") as file:
        text[name] = file.read()
before = dict(text)
for old, new in moves:
    for name, s in text.items():
        s = s.replace(old, new)
        if old.startswith(("lib/", "cl/", "include/", "tests/", "bench/")):
            s = re.sub(r"(?<![\w/])" + re.escape(below_top(old)) + r"(?!\w)", below_top(new), s)
        if os.path.dirname(name) == os.path.dirname(new):
            s = re.sub(r"(?<![\w/])" + re.escape(os.path.basename(old)) + r"(?!\w)", os.path.basename(new), s)
        text[name] = s
for scope, old, new in pairs:
    if scope == "FILE":
        continue
    pattern = re.compile(old)
    prefixes = ("",) if scope == "-" else tuple(scope.split())
    for name, s in text.items():
        if name.startswith(prefixes):
            text[name] = pattern.sub(new, s)
for name, s in text.items():
    if s != before[name]:
        with open(f"{root}/{name}", "w", encoding="utf-8") as file:
            file.write(s)
