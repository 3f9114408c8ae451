#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Test kernels.known_files: what gpu-resources.known and offline.known say, those two programs do not compile again, and
nothing else: a source that changed, what had a fault, or what another compiler made, is compiled.  Both programs run over
kernels written here.  Skipped (77) without the compilers."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOOD = """// Doubles.
#define LS 64
kernel void good(global float *x) { x[get_local_id(0)] *= 2; }
"""
# The array is indexed by an argument: it is in memory.
SPILLING = """kernel void good(global float *x, int n)
{
    float kept[64];
    for (int i = 0; i < 64; ++i)
        kept[i] = x[i] * x[i + n];
    x[n] = kept[n & 63];
}
"""


class Program:
    def __init__(self, directory, command):
        self.known, self.source = os.path.join(directory, "known"), os.path.join(directory, "good.cl")
        self.command = [sys.executable, *command, "--known", self.known]

    def run(self, *options):
        """(exit status, sources known, sources compiled, output)"""
        done = subprocess.run([*self.command, *options], capture_output=True, text=True)
        said = done.stdout + done.stderr
        if done.returncode == 77:
            print(said, end="", file=sys.stderr)
            sys.exit(77)
        counts = re.search(r"(\d+) are known to have none and (\d+) were compiled|(\d+) compilations are known to succeed, of (\d+) others", said)
        assert counts, said
        return done.returncode, *(int(n) for n in counts.groups() if n), said

    def write(self, text):
        with open(self.source, "w") as file:
            file.write(text)

    def digests(self):
        with open(self.known) as file:
            return len(re.findall(r"^[0-9a-f]{16}$", file.read(), re.M))


def expect(program, what, expected, *options):
    found = program.run(*options)
    assert found[:3] == expected, f"{what}: exit status, known, compiled {found[:3]}, expected {expected}\n{found[3]}"
    return found[3]


def check(program, n, faulty, fault):
    """n compilations of a source.  The one of `faulty` is refused with the word `fault`."""
    program.write(GOOD)
    expect(program, "nothing known", (0, 0, n))
    expect(program, "written", (0, 0, n), "--write-known")
    assert program.digests() == n, f"{program.digests()} digests, expected {n}"
    expect(program, "known", (0, n, 0))
    expect(program, "all", (0, 0, n), "--all")
    program.write(GOOD.replace("// Doubles.\n", "/* Twice\n\n as much. */\n\n"))
    expect(program, "another comment", (0, n, 0))
    program.write(GOOD.replace("*= 2", "*= 3"))
    expect(program, "another kernel", (0, 0, n))
    program.write(GOOD.replace("LS 64", "LS 32"))
    expect(program, "another macro", (0, 0, n))
    program.write(faulty)
    for options in ([], ["--write-known"], []):
        said = expect(program, "a fault", (1, 0, n), *options)
        assert fault in said, f"no word of '{fault}'\n{said}"
    program.write(GOOD)
    program.run("--write-known")
    with open(program.known) as file:
        text = file.read()
    with open(program.known, "w") as file:
        file.write(re.sub(r"^(\[[\w-]+\]) .*", r"\1 another compiler", text, flags=re.M))
    assert "is of another compiler" in expect(program, "another compiler", (0, 0, n))
    with open(program.known, "w") as file:
        file.write(text + "<<<<<<< ours\n")
    done = subprocess.run(program.command, capture_output=True, text=True)
    assert done.returncode not in (0, 77) and "neither a section nor a digest" in done.stderr, done.stderr


def main():
    with tempfile.TemporaryDirectory() as directory:
        variants = os.path.join(directory, "variants")
        with open(variants, "w") as file:
            file.write(f"#!/bin/sh\ncp {directory}/good.cl \"$1\"/good.cl\n"
                       f"printf '%s/good.cl\\tcdna\\tgood\\t64\\t0\\t0\\tdoubles\\n' \"$1\"\n")
        os.chmod(variants, 0o755)
        resources = Program(directory, [os.path.join(HERE, "gpu-resources"), "--quick", "--arch", "gfx90a", "--variants", variants])
        check(resources, 1, SPILLING, "in memory")
        os.remove(resources.known)
        # Without Intel's compiler, one target less.
        offline = Program(directory, [os.path.join(HERE, "offline.py"), directory])
        offline.write(GOOD)
        check(offline, offline.run()[2], GOOD.replace("*= 2", "+= y"), "does not compile for spir64")
    print("both programs compile what they do not know, and no more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
