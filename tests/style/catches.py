# SPDX-License-Identifier: MIT
"""catches.py CMAKE CC CXX LIBRARY CYCLE: each check of this directory refuses what bad/ does wrong.  CYCLE: a list of object files
that form a cycle."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BAD = HERE / "bad"
# {check: (its arguments after the program, words that it must say)}
CHECKS = {
    "layers.cmake": ([], ["op/ must not include graph/", "graph/internal.h is for graph/ alone", "OpenCL belongs to device/",
                          "only the public API"]),
    "kernels.sh": ([BAD], ["no #error for a missing REAL", "says nothing of 'Numerics'", "size depends on the device",
                           "is not LOCAL_INLINE", "no include guard"]),
    "words.sh": ([BAD], ["prints", "ends the process", "heap outside", "environment outside", "cleanup by another label",
                         "set in 2 places", "left over in lib", "without a name", "an error is compared by hand"]),
    "environment.sh": ([BAD], ["ATTNCL_ABSENT"]),
    "headers.sh": ([BAD, "CC", "CXX"], ["does not compile alone"]),
    "format.sh": ([BAD], ["should be clang-formatted"]),
    "exports.sh": ([BAD, "LIBRARY"], ["differ from those of the headers"]),
    "documents.py": ([BAD, "3"], ["names lib/base/absent.c", "README.md has 8 lines, at most 3", "a sentence of 41 words",
                                  "a row that docs/benchmarks.md has not"]),
    "op_files.py": ([BAD], ["no tests/ref/bare.c, and", "not in the order infer"]),
    "structure.py": ([BAD, "3", "5"], ["files and no README.md", "sizes.c: not named in", "op may include (no row)",
                                  "long_one() is longer than 5 lines", "wide_one() has more than 7 parameters",
                                  "nothing provokes ATTNCL_ERR_UNTESTED", "no SPDX-License-Identifier"]),
    "kernel_variants.py": ([BAD], ["unknown type name 'KERNEL'", "gives cl/op/bare.cl 0 values of LS"]),
    "object_cycles.py": (["CYCLE"], ["object files form a cycle", "base/ must not use graph/"]),
}


def main():
    given = dict(zip(("CMAKE", "CC", "CXX", "LIBRARY", "CYCLE"), sys.argv[1:]))
    programs = {".sh": ["sh"], ".py": [sys.executable], ".cmake": [given["CMAKE"], f"-DROOT={BAD}", "-P"]}
    missed = 0
    for check, (arguments, expected) in CHECKS.items():
        command = [*programs[pathlib.Path(check).suffix], HERE / check, *(given.get(a, a) for a in arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 77:
            print(f"{check}: not asked, {done.stderr.strip()}")
            continue
        said = re.sub(r"\s+", " ", done.stdout + done.stderr)
        for words in expected if done.returncode else ["an exit status"]:
            if words not in said or not done.returncode:
                missed += 1
                print(f"{check} does not say '{words}' of tests/style/bad:\n{said[:1000]}", file=sys.stderr)
    return missed > 0


sys.exit(main())
