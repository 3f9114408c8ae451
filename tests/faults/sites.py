# SPDX-License-Identifier: MIT
"""sites.py PROGRAM FILE...: every place in lib/ that calls OpenCL has failed in a test of tests/faults.

The layer writes a FILE for each test: the places of the calls that it saw, as offsets.  The places that there are
come from the program's code: the linker leaves one call of clFunction@plt for each.
"""

import os
import re
import subprocess
import sys

SKIPPED = 77
# Places that no test makes fail, and why.
EXCEPTIONS = {
    "clEnqueueBarrierWithWaitList": "only before commands that CLBlast enqueues, which it does on GPUs",
}
CALL = re.compile(r"^ *([0-9a-f]+):\t(call|jmp)\S* .*<(cl[A-Z]\w+)@plt>")
ADDRESS = re.compile(r"^ *([0-9a-f]+):\t")


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()


def calls(program):
    """(address after it, address, function, is a jump) of each call of OpenCL, but for releases."""
    found, last = [], None
    for line in run("objdump", "-d", "--no-show-raw-insn", program):
        at = ADDRESS.match(line)
        if at and last:
            found.append((int(at[1], 16), *last))
            last = None
        match = CALL.match(line)
        if match and not match[3].startswith("clRelease"):
            last = (int(match[1], 16), match[3], match[2] == "jmp")
    return found


def places(program, addresses):
    """Where the addresses are: "lib/device/buffer.c:22"; None: not in lib/."""
    lines = run("addr2line", "-e", program, text="\n".join(f"{a:x}" for a in addresses))
    if all(line.startswith("?") for line in lines):
        print("skipped: the programs have no debug information")
        sys.exit(SKIPPED)
    found = [re.search(r"(?:^|/)(lib/\w+/\w+\.c:\d+)", os.path.normpath(line)) for line in lines]
    return [match[1] if match else None for match in found]


def failures(path):
    """(offset, function, failures) of each place that the layer saw."""
    with open(path) as file:
        rows = [line.split() for line in file]
    return [(int(offset, 16), function, int(n_failed)) for offset, function, _, n_failed in rows]


def main():
    program, files = sys.argv[1], sys.argv[2:]
    table = {}  # (place, function): failures
    seen = [row for file in files for row in failures(file)]
    found = calls(program)
    after = {(call[0], call[2]) for call in found if not call[3]}
    by_call, jumps = {}, {}  # jumps by function, since the place that the layer saw is the caller of the one with the jump
    for offset, function, n_failed in seen:
        by_call[offset, function] = by_call.get((offset, function), 0) + n_failed
        if (offset, function) not in after:
            jumps[function] = jumps.get(function, 0) + n_failed
    for call, place in zip(found, places(program, [call[1] for call in found])):
        if place:
            key = (place, call[2])
            n_failed = jumps.get(call[2], 0) if call[3] else by_call.get((call[0], call[2]), 0)
            table[key] = table.get(key, 0) + n_failed
    missing = 0
    for (place, function), n_failed in sorted(table.items()):
        excuse = EXCEPTIONS.get(function) if n_failed == 0 else None
        print(f"{place:36} {function:32} {n_failed:7} {excuse or ''}")
        missing += n_failed == 0 and not excuse
    print(f"{sum(n > 0 for n in table.values())} of {len(table)} places have failed")
    if missing or not table:
        print(f"{missing} places never failed, and nothing says why")
        sys.exit(1)


main()
