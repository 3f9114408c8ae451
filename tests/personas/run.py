#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py BUILD --persona NAME[,NAME...]|all [--only REGEX] [--jobs N]

Runs the tests of a build directory on devices that the layer of layer.c plays.  A case that fails must be in the
list of refusals, with its message; a case that an entry names and that does not fail is an error too.  Without
--only the cards' first starts may build no more programs than STARTS says.  Prints a line per persona; exit status 1
when something is not as the list says, 77 when the OpenCL loader does not load layers.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from support.ctest_list import ctest_list  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ONLY = r"^(op|layer|model|gemm|launch|exec|compile|autodiff)[.]"
VENDOR = "/etc/OpenCL/vendors/pocl.icd"
TIMEOUT = 1200
# The most programs that the first text of the bundled model builds, and the first step of its training.  The persona
# mi210 builds 18 and 32, the others 16 and 29.  Shuffles are off, which PoCL's compiler does not know, and CLBlast,
# which builds its own.
CARDS = ("h200", "mi210", "a770")
MODEL = os.path.join(HERE, os.pardir, os.pardir, "examples", "models", "shakespeare.safetensors")
STARTS = [(20, ("sample", MODEL, "--prompt", "ROMEO", "--length", "1")),
          (32, ("train", "--init", MODEL, "--data", "text", "--steps", "1", "--out", "run",
                "--set", "train.valid_fraction=0"))]


def names():
    with open(os.path.join(HERE, "table.c")) as f:
        return re.findall(r'\.name = "(\w+)"', f.read())


def environment_of(build, persona):
    layer = os.path.join(build, "tests", "libattncl_persona_layer.so")
    return {"OCL_ICD_VENDORS": VENDOR, **os.environ, "OPENCL_LAYERS": layer, "ATTNCL_PERSONA": persona}


def first_starts(build, persona):
    """Those that build too many programs."""
    for most, words in STARTS:
        with tempfile.TemporaryDirectory() as tmp:
            with open(os.path.join(tmp, "text"), "w") as f:
                f.write("ROMEO: hello world, so we go. " * 200)
            env = dict(environment_of(build, persona), ATTNCL_CACHE="off", ATTNCL_CACHE_DIR=tmp, ATTNCL_SHUFFLE="off",
                       ATTNCL_GEMM="native")
            r = subprocess.run([os.path.join(build, "tools", "attncl"), *words, "--verbose"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env=env, cwd=tmp, encoding="utf-8", timeout=TIMEOUT)
        n = len(re.findall(r"\.cl built$", r.stdout, re.M))
        print(f"{persona}: {words[0]} builds {n} programs first")
        if r.returncode != 0 or not 0 < n <= most:
            yield f"{persona}: {words[0]}: exit status {r.returncode}, {n} programs, at most {most}: {r.stdout[-400:]}"


class Refusal:
    def __init__(self, line, number):
        parts = [p.strip() for p in re.split(r" \| ", line)]
        if len(parts) != 5:
            sys.exit(f"refusals.txt:{number}: {len(parts)} columns, not 5")
        self.persona, self.test, self.case, self.message, self.reason = parts
        self.number = number

    def is_of(self, persona, test):
        return persona == self.persona and test == self.test

    def names(self, case):
        return any(fnmatch.fnmatchcase(case, pattern) for pattern in self.case.split())


def refusals(path):
    with open(path) as f:
        return [Refusal(line, i) for i, line in enumerate(f, 1) if line.strip() and line[0] != "#"]


def tests(build, only):
    seen = set()
    for t in ctest_list(build):
        name = t["name"].split("@")[0]  # the persona has its own variant
        # Those of kernels in small work-groups play a device of their own.
        if not re.search(only, name) or ".groups_of_" in name or name in seen:
            continue
        seen.add(name)
        properties = {p["name"]: p["value"] for p in t.get("properties", [])}
        environment = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        environment.pop("ATTNCL_VARIANT", None)
        yield name, t.get("command"), environment


def cases(output):
    """{case: its message, None where it passed} of what the Check library printed."""
    pattern = r"^\S+:\d+:([FEP]):[^:]*:(\w+):(\d+): (.*(?:\n(?!\S+:\d+:[FEPS]:|persona ).*)*)"
    return {f"{case}:{iteration}": None if result == "P" else " ".join(message.split())
            for result, case, iteration, message in re.findall(pattern, output, re.M)}


def run(build, persona, name, command, environment):
    """(outcome, cases): outcome is "passed", "skipped" or "failed"."""
    if not command or not os.path.exists(command[0]):
        return "failed", {"": "not built"}
    env = dict(environment_of(build, persona), **environment, CK_VERBOSITY="verbose")
    env.pop("ATTNCL_DUMP_CL", None)
    try:
        r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, timeout=TIMEOUT,
                           encoding="utf-8", errors="replace")
    except subprocess.TimeoutExpired:
        return "failed", {"": f"ran for more than {TIMEOUT} s"}
    if r.returncode == 77:
        return "skipped", {}
    found = cases(r.stdout)
    if r.returncode == 0:
        return "passed", found
    if not any(found.values()) or r.returncode != 1:
        found[""] = f"exit status {r.returncode}: {' '.join(r.stdout[-500:].split())}"
    return "failed", found


def judge(persona, name, found, listed):
    """What differs from the list in a test that ran."""
    mine = [r for r in listed if r.is_of(persona, name)]
    for case, message in found.items():
        if message is not None and not any(r.names(case) and re.search(r.message, message) for r in mine):
            yield f"{persona}: {name} {case}: {message[:400]}"
    for r in mine:
        named = {case: message for case, message in found.items() if r.names(case)}
        passed = [case for case, message in named.items() if not message or not re.search(r.message, message)]
        if passed or not named:
            yield f"refusals.txt:{r.number}: {name} is not refused so: {' '.join(passed) or r.case}"


def play(build, persona, wanted, listed, jobs):
    """Runs the tests on one device; the number of errors."""
    n = {"passed": 0, "skipped": 0, "failed": 0}
    errors = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(lambda t=t: (t[0], *run(build, persona, *t))) for t in wanted]
        for done in concurrent.futures.as_completed(running):
            name, outcome, found = done.result()
            n[outcome] += 1
            new = list(judge(persona, name, found, listed)) if outcome != "skipped" else []
            errors += new
            print(*new, sep="\n", end="\n" if new else "", flush=True)
    print(f"{persona}: {n['passed']} passed, {n['failed']} with failures, {n['skipped']} skipped; "
          f"{len(errors)} differences from refusals.txt", flush=True)
    return len(errors) + (n["passed"] + n["failed"] == 0)


def loads_layers(build, listed_names):
    """Whether a device is the persona's: otherwise every test would pass on the driver's own."""
    tool = os.path.join(build, "tools", "attncl")
    r = subprocess.run([tool, "devices"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                       env=environment_of(build, listed_names[0]))
    if " persona" not in r.stdout and "Apple M1" not in r.stdout:
        print(f"skipped: the OpenCL loader has not loaded the layer: {r.stdout}", file=sys.stderr)
        return False
    return True


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--persona", required=True)
    p.add_argument("--only", default=ONLY)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    o = p.parse_args()
    build = os.path.abspath(o.build)
    chosen = names() if o.persona == "all" else o.persona.split(",")
    for name in chosen:
        if name not in names():
            sys.exit(f"run.py: unknown persona '{name}'; choose from {', '.join(names())}")
    if not loads_layers(build, chosen):
        return 77
    listed = refusals(os.path.join(HERE, "refusals.txt"))
    wanted = [t for t in tests(build, o.only)]
    if not wanted:
        sys.exit(f"run.py: no test matches '{o.only}'")
    errors = sum(play(build, persona, wanted, listed, o.jobs) for persona in chosen)
    cards = [p for p in chosen if p in CARDS and o.only == ONLY]
    starts = [line for persona in cards for line in first_starts(build, persona)]
    print(*starts, sep="\n", end="\n" if starts else "")
    return 1 if errors or starts else 0


if __name__ == "__main__":
    sys.exit(main())
