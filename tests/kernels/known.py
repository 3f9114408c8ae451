# SPDX-License-Identifier: MIT
"""Kernels that compiled without a fault before, so that they need not again: the files *.known here.

A section for each target, "[gfx90a] Debian clang version 15.0.6", then a line for each kernel source: the first 16 hexadecimal
digits of a SHA-256 of all that the result depends on but the compiler's version, sorted so that branches merge.  A section of
other versions holds nothing: everything is compiled."""
import hashlib
import os
import re
import subprocess

COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.S)


def digest(*parts):
    whole = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        whole.update(b"%d:" % len(data) + data)
    return whole.hexdigest()[:16]


def code_of(text):
    """A source without comments, blank lines and line numbers."""
    text = COMMENT.sub(lambda hit: hit[1] or " ", text)
    lines = (line.rstrip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("#line "))


def intel_versions(ocloc):
    """Of the packages of Intel's compiler, which does not say; None where Debian does not know them."""
    try:
        owner = subprocess.run(["dpkg-query", "-S", os.path.realpath(ocloc)], capture_output=True, text=True, check=True).stdout
        said = subprocess.run(["dpkg-query", "-f", "${Package} ${Version}, ", "-W", owner.split(":")[0], "libigc1"],
                              capture_output=True, text=True, check=True).stdout
        return said.rstrip(", ")
    except (OSError, subprocess.CalledProcessError):
        return None


class Known:
    def __init__(self, path):
        self.path, self.sections = path, {}
        digests = None
        if os.path.exists(path):
            with open(path) as file:
                for line in file:
                    section = re.match(r"\[([\w-]+)\] (.*)", line)
                    if section:
                        digests = set()
                        self.sections[section[1]] = (section[2], digests)
                    elif re.fullmatch(r"[0-9a-f]{16}\n", line) and digests is not None:
                        digests.add(line.strip())
                    elif not line.startswith("#"):
                        raise ValueError(f"{path}: neither a section nor a digest: {line.strip()!r}")

    def holds(self, target, versions, key):
        """Versions of compilers that are not known are None: then nothing is."""
        said, digests = self.sections.get(target, (None, ()))
        return versions is not None and said == versions and key in digests

    def differs(self, target, versions):
        """In words, where the section was written by other versions."""
        said = self.sections.get(target, (versions,))[0]
        return None if said == versions else f"{target}: all are compiled, by {versions}; {os.path.basename(self.path)} is of {said}"

    def replace(self, target, versions, digests):
        if versions is None or not digests:
            self.sections.pop(target, None)
        else:
            self.sections[target] = (versions, set(digests))

    def add(self, target, versions, digests):
        said, before = self.sections.get(target, (versions, set()))
        self.replace(target, versions, set(digests) | (before if said == versions else set()))

    def write(self, head):
        with open(self.path, "w") as out:
            out.write("".join(f"# {line}\n" for line in head))
            for target, (versions, digests) in sorted(self.sections.items()):
                out.write(f"[{target}] {versions}\n" + "".join(f"{key}\n" for key in sorted(digests)))
